"""The algebra of privacy: costs, budgets, filters, conversions and calibration. No data, no noise."""

from tacit.accounting.budget import Budget, Spend
from tacit.accounting.filters import Filter, Remaining

__all__ = ["Budget", "Filter", "Remaining", "Spend"]
