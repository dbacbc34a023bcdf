"""Neighbours: which costs may be combined, and which laws say something under which relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tacit.accounting._algebra import can_sample
from tacit.accounting._laws import GroupLoss, LossLaw, ParallelLoss, Parts, SampledLoss, ShuffledLoss
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ADD_REMOVE", "ADJACENCIES", "REPLACE", "Adjacency", "check", "the_same"]

#: Neighbours differ by one unit's presence, or by one unit's data.
Adjacency = Literal["add/remove", "replace"]
ADJACENCIES: tuple[Adjacency, ...] = ("add/remove", "replace")
ADD_REMOVE: Adjacency = "add/remove"
REPLACE: Adjacency = "replace"


def the_same(adjacencies: Iterable[Adjacency]) -> Adjacency:
    """Return the one adjacency of costs that are to be combined."""
    kinds = set(adjacencies)
    if len(kinds) > 1:
        raise TacitError(
            "adjacency-mixed",
            "costs under add/remove and under replace cannot be combined",
            why="they protect against different changes of the data, so their sum would promise neither",
            fix='state both with the same adjacency="add/remove" and the sensitivity that belongs to it',
        )
    return kinds.pop()


def check(parts: Parts, adjacency: Adjacency) -> None:
    """Refuse laws that say nothing under this adjacency, wherever they stand in the tree."""
    for law, _ in parts:
        _check(law, adjacency)


def _check(law: LossLaw, adjacency: Adjacency) -> None:
    match law:
        case SampledLoss(_, inner):
            if adjacency != ADD_REMOVE:
                raise TacitError(
                    "no-guarantee",
                    "Poisson sampling speaks of a unit added or removed, not of one replaced",
                    why="a replaced unit changes both sides, and the mixture that hides it is unknown",
                    fix='state the cost under adjacency="add/remove" and sample that',
                )
            if not can_sample(inner):
                raise TacitError(
                    "no-guarantee",
                    "a cost known by rho, by a Renyi curve or as shuffled reports cannot be sampled",
                    why="sampling mixes two distributions, and such a cost does not say which they are",
                    fix="Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)",
                )
            check(inner, adjacency)
        case GroupLoss(_, inner):
            check(inner, adjacency)
        case ParallelLoss(branches):
            if adjacency != ADD_REMOVE:
                raise TacitError(
                    "no-guarantee",
                    "parallel branches speak of a unit added or removed, not of one replaced",
                    why="a replaced unit may leave one branch for another, and both then change",
                    fix='state the branches under adjacency="add/remove"',
                )
            for branch in branches:
                check(branch, adjacency)
        case ShuffledLoss() if adjacency != REPLACE:
            raise TacitError(
                "no-guarantee",
                "shuffled reports speak of a report replaced, not of one added",
                why="the number of reports is public",
                fix='adjacency="replace"',
            )
