"""The tree mechanism for streams with pure epsilon: noisy sums over blocks of days, blocks of blocks, ..."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.exact import count
from tacit.mechanisms._discrete_laplace import DiscreteLaplace
from tacit.mechanisms._mechanism import figure
from tacit.mechanisms._stream_noise import StreamNoise, read_days
from tacit.parameters import Integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.exact import Number


@dataclass(frozen=True, init=False, repr=False)
class TreeNoise(StreamNoise):
    """Release noisy sums of single days, of blocks of days, of blocks of blocks, with Laplace noise.

    Guarantee: a day is in one block of each level, so a unit that changes one day by at most D (L1) changes
    all rows by at most D times the number of levels, and a unit in k days by k times as much. Days, and sums
    of days, are read by least squares over all rows, so that they agree.

    Parameters
    ----------
    days
        The horizon: at most so many days come in.
    branching
        How many blocks make a block of the next level.
    epsilon, sensitivity
        The cost, and the most that a unit moves one day, in L1.
    levels
        How many levels there are; by default as many as fit into the horizon.
    most_days, apart
        In how many days one unit can be, and how many days apart at least.

    Examples
    --------
    >>> import tacit as tc
    >>> noise = tc.mechanisms.TreeNoise(days=365, branching=8, epsilon=1, sensitivity=1)
    >>> noise.levels, noise.rows(64), round(noise.spread(None), 1)
    (3, 73, 12.4)
    """

    days: int
    branching: int
    levels: int
    most_days: int
    apart: int
    noise: DiscreteLaplace
    _move: int

    def __init__(
        self,
        *,
        days: int,
        branching: int,
        epsilon: Number,
        sensitivity: int,
        levels: int | None = None,
        most_days: int = 1,
        apart: int = 1,
    ) -> None:
        horizon, most, gap = read_days(days, most_days, apart)
        base = Integer(2, instead=8).read("branching", branching)
        height, width = 1, base
        while width <= horizon:
            height, width = height + 1, width * base
        height = height if levels is None else min(height, count("levels", levels, zero=False))
        move = count("sensitivity", sensitivity, zero=False)
        noise = DiscreteLaplace(epsilon=epsilon, sensitivity=move * most * height)
        for name, value in (
            ("days", horizon), ("branching", base), ("levels", height), ("most_days", most), ("apart", gap),
            ("noise", noise), ("_move", move),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def rows(self, days: int) -> int:
        """Return how many blocks of all levels are complete."""
        return sum(days // self.branching**level for level in range(self.levels))

    def sums(self, values: list[Any], memory: Any) -> tuple[list[Any], Any]:
        """Return the blocks that the new days complete; the memory is the sums of incomplete blocks."""
        seen, open_sums = (0, [0] * self.levels) if memory is None else memory
        held = [np.asarray(one, dtype=object) for one in open_sums]
        rows = []
        for value in values:
            seen += 1
            held = [one + np.asarray(value, dtype=object) for one in held]
            for level in range(self.levels):
                if seen % self.branching**level == 0:
                    rows.append(held[level])
                    held[level] = held[level] * 0
        return rows, [seen, [np.asarray(one, dtype=object).tolist() for one in held]]

    def estimate(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the days, by least squares over all complete blocks."""
        days = next(n for n in range(self.days + 1) if self.rows(n) == len(rows))
        found, at = [], 0
        for inverse in self._inverses(days):
            part = rows[at : at + inverse.shape[1]]
            found.append(np.tensordot(inverse, part, axes=1))
            at += inverse.shape[1]
        return np.concatenate(found) if found else rows[:0]

    def weights(self, window: int | None, day: int, through: int) -> NDArray[np.float64]:
        """Return what each complete block adds to the sum of a window of days."""
        asked = np.zeros(through)
        asked[0 if window is None else max(0, day - window) : day] = 1.0
        found, at = [], 0
        for inverse in self._inverses(through):
            found.append(asked[at : at + inverse.shape[0]] @ inverse)
            at += inverse.shape[0]
        return np.concatenate(found)

    def _inverses(self, days: int) -> list[NDArray[np.float64]]:
        """Return the least-squares inverse of each block of the highest level, the last one incomplete."""
        largest = self.branching ** (self.levels - 1)
        full, rest = divmod(days, largest)
        parts = [largest] * full + ([rest] if rest else [])
        return [tree_inverse(self.branching, self.levels, part) for part in parts]

    def spread(self, window: int | None) -> float:
        """Return the root mean square error on the day of its release, over the horizon.

        The complete blocks of a prefix are a forest of trees without common noise. So the variance of a
        window is a sum: of whole trees, v' = 1/(1 + 1/(B v)), and of the end of the tree in which it begins.
        """
        if window is not None:
            Integer(1).read("window", window)
        own = [1.0]
        for _ in range(1, self.levels):
            own.append(1 / (1 + 1 / (self.branching * own[-1])))
        t = np.arange(1, self.days + 1)
        left = t.copy() if window is None else np.minimum(window, t)
        total = 0.0
        for level, variance in enumerate(own):
            size = self.branching**level
            blocks = t // size if level + 1 == self.levels else t // size % self.branching
            whole = np.minimum(blocks, left // size)
            left -= whole * size
            total += variance * float(whole.sum())
            cut = np.where(blocks > whole, left, 0)  # what is left ends a tree of this level
            for days, often in enumerate(np.bincount(cut)[1:], start=1):
                total += float(often) * self._end(level, days, own)[0] if often else 0.0
            left -= cut
        return self._deviation() * math.sqrt(total / self.days)

    def _end(self, level: int, days: int, own: list[float]) -> tuple[float, float]:
        """Return the variance of the last days of a complete tree, and their covariance with its total."""
        if level == 0 or days == self.branching**level:
            return own[level], own[level]
        below = own[level - 1]
        whole, rest = divmod(days, self.branching ** (level - 1))
        part, shared = self._end(level - 1, rest, own) if rest else (0.0, 0.0)
        both = whole * below + shared  # with the sum of the parts; then the tree's own noise is used
        scale = self.branching * below + 1
        return whole * below + part - both**2 / scale, both / scale

    @property
    def _one_day(self) -> int:
        return self._move

    def to_json(self) -> dict[str, Any]:
        """Return the exact parameters and the cost."""
        return {
            "mechanism": "tree-noise",
            "days": self.days,
            "branching": self.branching,
            "levels": self.levels,
            "most_days": self.most_days,
            "apart": self.apart,
            "noise": self.noise.to_json(),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        size = figure(self.scale * unit)
        return f"tree of {self.levels} levels, {self.branching} a block, discrete Laplace noise, scale {size}"

    def __repr__(self) -> str:
        return f"TreeNoise({self.describe()}; {self.days} days)"


@lru_cache(maxsize=64)
def tree_inverse(branching: int, levels: int, days: int) -> NDArray[np.float64]:
    """Return the matrix that reads days off the complete blocks of one block of the highest level."""
    lines = []
    for day in range(1, days + 1):
        for level in range(levels):
            width = branching**level
            if day % width == 0:
                line = np.zeros(days)
                line[day - width : day] = 1.0
                lines.append(line)
    blocks = np.array(lines)
    return np.asarray(np.linalg.solve(blocks.T @ blocks, blocks.T))
