"""Costs that certificates state, worked out again from the parameters that stand beside them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.exact import read_fraction
from tacit.mechanisms.additive._cross_tables import LISTED_SIGMAS, ResidualNoise
from tacit.mechanisms.additive._integer_noise import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Adjacency, Cost

_ROUNDED = 1 - Fraction(1, 10**8)  # the cost of replaced rows is rounded up from floats, by less than this


def cost_is_too_small(law: Mapping[str, Any], adjacency: Adjacency) -> bool:
    """Whether the document of a mechanism states a cost below the one that follows from its parameters.

    Guarantee: for integer noise and for the residuals of cross tables, the cost is worked out from the
    sensitivity (or the sizes and the rows of a unit) and the noise. For sums of cells, only the noise that
    stands in the document is checked: the document names the sums by their fingerprint. Other mechanisms,
    and residuals of more sets than a document lists, are not checked; the answer is then no. Raises
    ``KeyError``, ``TypeError``, ``ValueError`` or a refusal for what no mechanism writes.

    Parameters
    ----------
    law
        What `Mechanism.to_json` returned, as it stands in a certificate.
    adjacency
        What a neighbour of the dataset is.

    Examples
    --------
    >>> law = ResidualNoise((2, 3), {(): 4, (0,): 6}).to_json()
    >>> cost_is_too_small(law, "add/remove")
    False
    >>> cost_is_too_small({**law, "sigmas": [[[], "4"], [[0], "3"]]}, "add/remove")
    True
    """
    from tacit.accounting import Cost

    stated = Cost.from_json(law["cost"])
    if "noise" in law:
        return law["noise"]["cost"] != law["cost"] or cost_is_too_small(law["noise"], adjacency)
    costs = _costs(law, adjacency)
    return bool(costs) and not any(_covers(stated, one) for one in costs)


def _costs(law: Mapping[str, Any], adjacency: Adjacency) -> list[Cost]:
    """Return the costs that the parameters allow; none where they are not all in the document."""
    from tacit.accounting import Cost

    match law.get("mechanism"):
        case "residual-noise" if "sigmas" in law:
            sigmas = {tuple(one): read_fraction(sigma) for one, sigma in law["sigmas"]}
            if len(sigmas) < len(law["sigmas"]):
                raise ValueError("a set of columns is listed twice")
            return [ResidualNoise(law["sizes"], sigmas, rows=law["rows"], adjacency=adjacency).cost]
        case "residual-noise" if law["sets"] <= LISTED_SIGMAS:
            raise ValueError("so few sets are listed one by one")
        case "discrete-laplace":
            scale, sensitivity = read_fraction(law["scale"]), law["sensitivity"]
            return [DiscreteLaplace(scale=scale, sensitivity=sensitivity, adjacency=adjacency).cost]
        case "discrete-gaussian":
            sigma, squared = read_fraction(law["sigma"]), read_fraction(law["sensitivity_squared"])
            many = Cost.zcdp(squared / (2 * sigma**2), adjacency=adjacency)
            root = math.isqrt(math.ceil(squared))
            single = [Cost.discrete_gaussian(sigma=sigma, sensitivity=root, adjacency=adjacency)]
            return [many, *(single if root**2 == squared else [])]
    return []


def _covers(stated: Cost, cost: Cost) -> bool:
    """Whether a stated cost is the one that was found, or takes at least as much from every budget."""
    if stated == cost:
        return True
    ours, theirs = stated.spend, cost.spend
    if stated.adjacency != cost.adjacency or ours.delta < theirs.delta:
        return False
    pairs = ((ours.epsilon, theirs.epsilon), (ours.rho, theirs.rho))
    return all(a is None or (b is not None and a >= b * _ROUNDED) for a, b in pairs)
