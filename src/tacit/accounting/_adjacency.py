"""Adjacency in accounting: the relation of neighbours that a cost is for, and which costs may be combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tacit.accounting._algebra import can_sample
from tacit.accounting._charge import charge
from tacit.accounting._laws import (
    BestOfLoss,
    GroupLoss,
    LossLaw,
    ParallelLoss,
    Parts,
    SampledLoss,
    ShuffledLoss,
    ShuffledResponseLoss,
)
from tacit.errors import TacitError
from tacit.fixes import Code, Set

if TYPE_CHECKING:
    from collections.abc import Iterable

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
                for one in candidates:
                    check_local(one)


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
            if runs == "poisson" and any(charge(one).delta for one in candidates):
                raise TacitError(
                    "no-guarantee",
                    "a Poisson number of runs needs candidates without a delta",
                    why="the bound needs the whole loss distribution of a run, and a cost with a delta does "
                    "not define it",
                    fix=Set(law="logarithmic"),
                )
            for one in candidates:
                check(one, adjacency)
        case ShuffledLoss() | ShuffledResponseLoss() if adjacency != REPLACE:
            raise TacitError(
                "no-guarantee",
                "the cost of shuffled reports holds if a report is replaced, not if one is added",
                why="the number of reports is public",
                fix=Set(adjacency="replace"),
            )
