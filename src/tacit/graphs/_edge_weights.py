"""Weights of edges: clipped to a public range and rounded to a public grid, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.exact import rational
from tacit.fixes import Set

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.graphs._edges import EdgeArrays

#: How many steps of the grid the largest weight has.
WEIGHT_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class WeightFact:
    """The column or attribute with the weights, and the largest weight of a pair that counts."""

    column: str
    most: Fraction

    @property
    def step(self) -> Fraction:
        """The public grid."""
        return self.most / WEIGHT_STEPS

    def steps(
        self,
        edges: EdgeArrays,
        ends: tuple[NDArray[np.int64], NDArray[np.int64]],
        weights: NDArray[np.float64],
        *,
        symmetric: bool,
    ) -> NDArray[np.int64]:
        """Return the weight of each edge in steps of the grid.

        Each row is clipped to [0, most]; what is missing or not a number weighs nothing. The rows of a pair
        are added up (of a matrix, the larger of its two entries counts), and the sum is clipped again. So a
        pair's weight depends on its own rows alone, and lies between 0 and `WEIGHT_STEPS` steps.
        """
        top = float(self.most)
        rows = np.clip(np.nan_to_num(weights, nan=0.0, posinf=top, neginf=0.0), 0.0, top)
        place = edges.places(*ends)
        kept = place >= 0
        total = np.zeros(edges.size)
        with np.errstate(over="ignore"):  # a warning about a value would say something about it
            (np.maximum if symmetric else np.add).at(total, place[kept], rows[kept])
        whole = np.floor(np.minimum(total, top) / top * WEIGHT_STEPS + 0.5).astype(np.int64)
        return np.clip(whole, 0, WEIGHT_STEPS)


def read_weight(given: Any) -> WeightFact | None:
    """Read ``("minutes", (0, 60))``, or refuse it."""
    if given is None:
        return None
    try:
        column, (low, high) = given
    except (TypeError, ValueError):
        raise _wrong("it must be the name of a column and a range") from None
    if not isinstance(column, str) or not column:
        raise _wrong("it must be the name of a column and a range")
    fix = Set(weight=("minutes", (0, 60)))
    if rational("weight", low, zero=True, negative=True, fix=fix) != 0:
        raise _wrong("the range must start at 0, the weight of a pair that is not connected")
    return WeightFact(column, rational("weight", high, fix=fix))


def _wrong(why: str) -> TacitError:
    return TacitError(
        "missing-bounds",
        "weight is not a column with a range that starts at 0",
        why=f"{why}; noise hides a weight only if the largest one is public",
        fix=Set(weight=("minutes", (0, 60))),
    )
