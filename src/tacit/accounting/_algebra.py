"""The algebra of privacy laws in accounting: adjacency, groups, samples, and which law dominates which.

Adjacency is the relation of neighbours that a cost is for, and decides which costs may be combined.
`docs/proofs/costs.md` proves each rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tacit.accounting._charge import charge
from tacit.accounting._laws import (
    ApproximateLoss,
    BestOfLoss,
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GDPLoss,
    GroupLoss,
    LaplaceLoss,
    LossLaw,
    ParallelLoss,
    Parts,
    PureLoss,
    RandomizedResponseLoss,
    RenyiLoss,
    SampledLoss,
    ShuffledLoss,
    ShuffledResponseLoss,
    ZCDPLoss,
)
from tacit.errors import TacitError
from tacit.fixes import Code, Set

if TYPE_CHECKING:
    from collections.abc import Iterable


def can_sample(parts: Parts) -> bool:
    """Return whether every part has a pair of distributions to mix; a rho or a Renyi curve has none."""
    for law, _ in parts:
        match law:
            case ZCDPLoss() | RenyiLoss() | ShuffledLoss() | ShuffledResponseLoss() | BestOfLoss():
                return False
            case SampledLoss(_, inner) | GroupLoss(_, inner) if not can_sample(inner):
                return False
            case ParallelLoss(branches) if not all(can_sample(branch) for branch in branches):
                return False
    return True


def grouped(law: LossLaw, m: int) -> LossLaw:
    """Return what a law reveals about m units together, as a law of the same kind where possible."""
    match law:
        case GaussianLoss(sigma, s):
            return GaussianLoss(sigma, m * s)
        case DiscreteGaussianLoss(sigma, s):
            return DiscreteGaussianLoss(sigma, m * s)
        case DiscreteGaussianVectorLoss(sigma, squared):
            return DiscreteGaussianVectorLoss(sigma, m * m * squared)
        case LaplaceLoss(scale, s):
            return LaplaceLoss(scale, m * s)
        case DiscreteLaplaceLoss(scale, s):
            return DiscreteLaplaceLoss(scale, m * s)
        case GDPLoss(mu):
            return GDPLoss(m * mu)
        case ZCDPLoss(rho):
            return ZCDPLoss(m * m * rho)
        case PureLoss(epsilon) | RandomizedResponseLoss(epsilon) | CategoricalResponseLoss(epsilon):
            return PureLoss(m * epsilon)
        case BoundedRangeLoss(epsilon):
            return BoundedRangeLoss(m * epsilon)
        case ApproximateLoss(epsilon, delta) if not epsilon and m * delta < 1:
            return ApproximateLoss(epsilon, m * delta)  # the distance of laws, which adds up
        case GroupLoss(already, parts):
            return GroupLoss(m * already, parts)
        case _:
            return GroupLoss(m, ((law, 1),))


def dominates(large: Parts, small: Parts) -> bool:
    """Return whether ``large`` reveals at least as much at every epsilon; False if that is not evident."""
    have = dict(large)
    if all(have.get(law, 0) >= times for law, times in small):
        return True
    if len(large) == len(small) == 1:
        (big, often), (little, seldom) = large[0], small[0]
        return often >= seldom and _stronger(big, little)
    return False


def _stronger(big: LossLaw, little: LossLaw) -> bool:
    match big, little:
        case (
            (GaussianLoss(a, s) | DiscreteGaussianLoss(a, s)),
            (GaussianLoss(b, t) | DiscreteGaussianLoss(b, t)),
        ):
            return type(big) is type(little) and (
                s / a >= t / b if isinstance(big, GaussianLoss) else a == b and s >= t
            )
        case LaplaceLoss(a, s), LaplaceLoss(b, t):
            return s / a >= t / b
        case DiscreteLaplaceLoss(a, s), DiscreteLaplaceLoss(b, t):
            return a == b and s >= t
        case GDPLoss(a), GDPLoss(b):
            return a >= b
        case ZCDPLoss(a), ZCDPLoss(b):
            return a >= b
        case BoundedRangeLoss(a), BoundedRangeLoss(b):
            return a >= b
        case CategoricalResponseLoss(a, k), CategoricalResponseLoss(b, n):
            return a >= b and k <= n
        case ((PureLoss(a) | RandomizedResponseLoss(a)), _):
            epsilon = charge(((little, 1),))
            return epsilon.delta == 0 and epsilon.epsilon is not None and a >= epsilon.epsilon
        case ApproximateLoss(a, d), ApproximateLoss(b, e):
            return a >= b and d >= e
        case _:
            return False


#: Neighbours differ by the presence of one unit, or by the data of one unit.
Adjacency = Literal["add/remove", "replace"]
ADJACENCIES: tuple[Adjacency, ...] = ("add/remove", "replace")
ADD_REMOVE: Adjacency = "add/remove"
REPLACE: Adjacency = "replace"


def the_same(adjacencies: Iterable[Adjacency]) -> Adjacency:
    """Return the common adjacency of costs that are combined, or refuse."""
    kinds = set(adjacencies)
    if len(kinds) > 1:
        raise TacitError(
            "adjacency-mixed",
            "costs under add/remove and under replace cannot be combined",
            why="they protect against different changes to the data, so their sum has no meaning",
            fix="state both costs under the same adjacency, each with the sensitivity that belongs to it",
        )
    return kinds.pop()


def check(parts: Parts, adjacency: Adjacency) -> None:
    """Refuse laws that guarantee nothing under this adjacency, at every level of nesting."""
    for law, _ in parts:
        _check(law, adjacency)


def check_local(parts: Parts) -> None:
    """Refuse parts, at every level of nesting, that say nothing about two values of one local report.

    A sample hides whether a unit takes part, and branches keep a unit in its place: both speak of a unit that
    is added or removed. Between two values, the sampled report may reveal as much as the whole report, and a
    value that moves from one branch to another changes both.
    """
    for law, _ in parts:
        match law:
            case SampledLoss() | ParallelLoss():
                kind = "a sample" if isinstance(law, SampledLoss) else "parallel branches"
                raise TacitError(
                    "no-guarantee",
                    f"a local report cannot be {kind}: its cost must hold between any two values",
                    why="samples and branches cover a unit that is added or removed, not a changed value",
                    fix=Code("Cost.randomized_response(1).shuffled(1000)"),
                )
            case GroupLoss(_, inner):
                check_local(inner)
            case BestOfLoss(_, _, candidates):
                for candidate in candidates:
                    check_local(candidate)


def holds_between_values(parts: Parts) -> bool:
    """Return whether the parts may be the cost of one local report (`check_local`).

    Examples
    --------
    >>> from tacit.accounting import Cost
    >>> holds_between_values(Cost.pure(1).parts), holds_between_values(Cost.pure(1).sampled(0.1).parts)
    (True, False)
    """
    return not any(
        isinstance(law, SampledLoss | ParallelLoss)
        or (isinstance(law, GroupLoss) and not holds_between_values(law.parts))
        or (isinstance(law, BestOfLoss) and not all(holds_between_values(one) for one in law.candidates))
        for law, _ in parts
    )


def _check(law: LossLaw, adjacency: Adjacency) -> None:
    match law:
        case SampledLoss(_, inner):
            if adjacency != ADD_REMOVE:
                raise TacitError(
                    "no-guarantee",
                    "the cost of a Poisson sample holds if a unit is added or removed, not if it is replaced",
                    why="the bound compares answers with and without the unit, and a cost under replace "
                    "does not describe answers without it",
                    fix="state the cost under add/remove, then sample it",
                )
            if not can_sample(inner):
                raise TacitError(
                    "no-guarantee",
                    "this cost cannot be sampled: it is only a rho, a Renyi curve, shuffled reports or "
                    "the best of several runs",
                    why="sampling mixes two distributions, and such a cost does not say which two",
                    fix=Code("Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)"),
                )
            check(inner, adjacency)
        case GroupLoss(_, inner):
            check(inner, adjacency)
        case ParallelLoss(branches):
            if adjacency != ADD_REMOVE:
                raise TacitError(
                    "no-guarantee",
                    "the cost of branches holds if a unit is added or removed, not if one is replaced",
                    why="a replaced unit may move from one branch to another, and then both change",
                    fix="state the branches under add/remove",
                )
            for branch in branches:
                check(branch, adjacency)
        case BestOfLoss(runs, _, candidates):
            if runs == "poisson" and any(charge(candidate).delta for candidate in candidates):
                raise TacitError(
                    "no-guarantee",
                    "a Poisson number of runs needs candidates without a delta",
                    why="the bound needs the whole loss distribution of a run, and a cost with a delta does "
                    "not define it",
                    fix=Set(law="logarithmic"),
                )
            for candidate in candidates:
                check(candidate, adjacency)
        case ShuffledLoss() | ShuffledResponseLoss() if adjacency != REPLACE:
            raise TacitError(
                "no-guarantee",
                "the cost of shuffled reports holds if a report is replaced, not if one is added",
                why="the number of reports is public",
                fix=Set(adjacency="replace"),
            )
