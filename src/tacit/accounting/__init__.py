"""Accounting, the algebra of privacy: costs, budgets, filters and calibration, without data or noise.

Examples
--------
>>> from tacit.accounting import Cost
>>> (Cost.pure(0.1) + Cost.pure(0.2)).epsilon(delta=0)
0.3
"""

from tacit.accounting import textbook
from tacit.accounting._adjacency import ADJACENCIES, Adjacency
from tacit.accounting._budget import Budget, Spend
from tacit.accounting._calibration import calibrate, queries_within, rho_within, scale_for, sigma_for
from tacit.accounting._cost import Cost
from tacit.accounting._filters import Filter
from tacit.accounting._genuine import genuine
from tacit.accounting._remaining import Remaining
from tacit.accounting._zcdp import largest_pure, pure_rho, rho_cap
from tacit.accounting.numeric import Bracket
from tacit.calls import refuse_wrong_calls

__all__ = [
    "ADJACENCIES",
    "Adjacency",
    "Bracket",
    "Budget",
    "Cost",
    "Filter",
    "Remaining",
    "Spend",
    "calibrate",
    "genuine",
    "largest_pure",
    "pure_rho",
    "queries_within",
    "rho_cap",
    "rho_within",
    "scale_for",
    "sigma_for",
    "textbook",
]

refuse_wrong_calls(__name__, __all__)
