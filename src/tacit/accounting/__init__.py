"""Accounting, the algebra of privacy: costs, budgets, filters and calibration, without data or noise.

Modules, in reading order:

- `_laws`: the laws of privacy loss, of which a cost is made
- `_algebra`: adjacency, groups, samples, and which law dominates which
- `_zcdp`: certified rho and Renyi divergences of laws in closed form
- `_charge`: exact upper values of epsilon, delta and rho of a sum
- `_renyi_curve`: the Renyi curve of a sum
- `numeric`: certified bounds on the loss distribution of a sum
- `_worst_case`: bounds over all units, branches and groups
- `_cost`: the cost; `_display` shows it, `_json` stores it, `_genuine` makes it anew from outside
- `_budget`: budgets, and what one charge takes
- `_mixture`: how a filter reads a budget in epsilon and delta at a few Renyi orders
- `_filters`: budgets that hold even if queries depend on earlier answers; `_remaining`: what is left of them
- `_calibration`: the least noise, or the most queries, within a target
- `_risk`: what an attacker may achieve, and the largest amount within it
- `textbook`: formulae of the textbooks, for teaching

Examples
--------
>>> from tacit.accounting import Cost
>>> (Cost.pure(0.1) + Cost.pure(0.2)).epsilon(delta=0)
0.3
"""

from tacit.accounting import textbook
from tacit.accounting._algebra import ADJACENCIES, Adjacency
from tacit.accounting._budget import Budget, Spend
from tacit.accounting._calibration import calibrate, queries_within, rho_within, scale_for, sigma_for
from tacit.accounting._cost import Cost
from tacit.accounting._filters import Filter
from tacit.accounting._genuine import genuine
from tacit.accounting._remaining import Left, Remaining, least_left
from tacit.accounting._risk import RISKS, TOTALS, Risk, amount_near, cost_of_budget, out_of_reach
from tacit.accounting._zcdp import largest_pure, pure_rho, rho_cap
from tacit.accounting.numeric import Bracket
from tacit.calls import refuse_wrong_calls

__all__ = [
    "ADJACENCIES",
    "RISKS",
    "TOTALS",
    "Adjacency",
    "Bracket",
    "Budget",
    "Cost",
    "Filter",
    "Left",
    "Remaining",
    "Risk",
    "Spend",
    "amount_near",
    "calibrate",
    "cost_of_budget",
    "genuine",
    "largest_pure",
    "least_left",
    "out_of_reach",
    "pure_rho",
    "queries_within",
    "rho_cap",
    "rho_within",
    "scale_for",
    "sigma_for",
    "textbook",
]

refuse_wrong_calls(__name__, __all__)
