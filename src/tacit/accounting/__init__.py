"""The algebra of privacy: costs, budgets, filters, conversions and calibration. No data, no noise."""

from tacit.accounting._numeric import Bracket
from tacit.accounting.budget import Budget, Spend
from tacit.accounting.cost import Cost
from tacit.accounting.filters import Filter, Remaining

__all__ = ["Bracket", "Budget", "Cost", "Filter", "Remaining", "Spend"]
