"""The noise of a strategy: exact whole-number sums of cells, and integer noise on each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.exact import count
from tacit.mechanisms._discrete_gaussian import DiscreteGaussian
from tacit.mechanisms._discrete_laplace import DiscreteLaplace
from tacit.mechanisms._input_values import read_integers, wrong_input
from tacit.mechanisms._integer_mechanism import IntegerMechanism
from tacit.mechanisms._linear_noise import LinearNoise, linear_half_width
from tacit.mechanisms._mechanism import exactly_one, figure, read_adjacency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tacit.accounting import Adjacency, Cost
    from tacit.exact import Number
    from tacit.strategies import RangeStrategy, Workload

_LARGEST = 12  # Laplace terms that keep their own law; the others join the normal
_ROOM = 2**62
_AT_ONCE = 2**22  # weights in one block


@dataclass(frozen=True, init=False, repr=False)
class StrategyNoise(IntegerMechanism):
    """Release B x + noise for the counts x of ordered cells, where B is a matrix of whole numbers.

    Guarantee: a unit with at most k rows moves B x by at most k times the largest norm of a column of B: each
    row adds one column, and norms add up at most. Several groups, each with cells of its own, change nothing
    in this, because a row is in one group. Where units are replaced, each of k rows goes from one cell to
    another, or comes, or goes, and the largest distance of two columns counts too; rows in two groups are as
    far apart as the root of the sum of their squares. The norms are those of the whole numbers in B, in L2
    for Gaussian noise and in L1 for Laplace noise. docs/proofs/ranges.md has the proof.

    Parameters
    ----------
    strategy
        What is measured.
    rho
        Gaussian noise with this cost; or give `epsilon`.
    epsilon, delta
        Laplace noise of this cost; with `delta` Gaussian noise.
    rows
        How many rows one unit has at most (k).
    grouped
        Whether there are several groups, each with cells of its own.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> from tacit.strategies import Workload, factored
    >>> noise = tc.mechanisms.StrategyNoise(factored(Workload(4, "prefixes")), rho=0.5)
    >>> round(noise.spread(Workload(4, "prefixes")), 3)
    1.311
    >>> np.shape(noise.release([120, 80, 30, 4]))
    (4,)
    """

    additive: ClassVar[bool] = True

    strategy: RangeStrategy
    rows: int
    grouped: bool
    adjacency: Adjacency
    noise: DiscreteGaussian | DiscreteLaplace

    def __init__(
        self,
        strategy: RangeStrategy,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number = 0,
        rows: int = 1,
        grouped: bool = False,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        most, relation = count("rows", rows, zero=False), read_adjacency(adjacency)
        made: DiscreteGaussian | DiscreteLaplace
        if exactly_one(rho=rho, epsilon=epsilon) == "rho" or delta:
            squared = strategy.column_squared
            if relation == "replace":
                squared = max(squared, strategy.move_squared, 2 * squared if grouped else 0)
            limit = {"rho": rho} if epsilon is None else {"epsilon": epsilon, "delta": delta}
            made = DiscreteGaussian(**limit, sensitivity_squared=most**2 * squared, adjacency=relation)
        else:
            moved = strategy.column_sum
            if relation == "replace":
                moved = max(moved, strategy.move_sum, 2 * moved if grouped else 0)
            made = DiscreteLaplace(epsilon=epsilon, sensitivity=most * moved, adjacency=relation)
        for name, value in (
            ("strategy", strategy), ("rows", most), ("grouped", bool(grouped)), ("adjacency", relation),
            ("noise", made),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def cost(self) -> Cost:
        """What all sums together take from a budget."""
        return self.noise.cost

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each sum."""
        return self.noise.scale

    @property
    def law(self) -> LinearNoise:
        """The noise on each sum, for intervals."""
        size = float(self.scale)
        return LinearNoise(normal=size) if isinstance(self.noise, DiscreteGaussian) else LinearNoise((size,))

    def sums(self, value: object) -> NDArray[Any]:
        """Return the exact sums B x of the counts of cells, which run along the last axis."""
        counts = np.asarray(read_integers(value))
        cells = self.strategy.cells
        if counts.ndim == 0 or counts.shape[-1] != cells:
            raise wrong_input(f"the counts of {cells} cells", counts, fix="count every cell")
        whole = self.strategy.matrix.T
        most = max(abs(int(counts.max(initial=0))), abs(int(counts.min(initial=0))))
        if most * int(np.abs(whole).max()) * cells < _ROOM:
            return np.asarray(counts.astype(np.int64) @ whole)
        return np.asarray(counts.astype(object) @ whole.astype(object))

    def release(self, value: object) -> Any:
        """Return the noisy sums of the counts of cells; groups, if any, run along the first axis."""
        return self.noise.release(self.sums(value))

    def release_many(self, value: object, count: int) -> NDArray[Any]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        return self.noise.release_many(self.sums(value), count)

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return how far one noisy sum may lie from the true sum."""
        return self.noise.half_width(confidence, copies=copies)

    def spread(self, workload: Workload) -> float:
        """Return the root mean square error of the questions of a workload."""
        return math.sqrt(self.noise.variance * self.strategy.mean_variance(workload))

    @property
    def worst_pair(self) -> tuple[list[int], list[int]]:
        """No rows, and all rows of one unit in the cell whose column is the largest."""
        gaussian = isinstance(self.noise, DiscreteGaussian)
        matrix = self.strategy.matrix
        norms = (matrix**2).sum(axis=0) if gaussian else np.abs(matrix).sum(axis=0)
        moved = [0] * self.strategy.cells
        moved[int(norms.argmax())] = self.rows
        return [0] * self.strategy.cells, moved

    def to_json(self) -> dict[str, Any]:
        """Return the fingerprint of the sums, the exact noise and the cost."""
        return {
            "mechanism": "strategy-noise",
            "cells": self.strategy.cells,
            "sums": len(self.strategy.matrix),
            "strategy": self.strategy.digest,
            "rows": self.rows,
            "noise": self.noise.to_json(),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        law = "Gaussian" if isinstance(self.noise, DiscreteGaussian) else "Laplace"
        size = figure(self.scale * unit / self.strategy.scale)
        return f"{self.strategy.describe()}, discrete {law} noise, scale {size}"

    def __repr__(self) -> str:
        return f"StrategyNoise({self.describe()}; {self.strategy.cells} cells)"


def weighted_half_widths(law: LinearNoise, weights: ArrayLike, failing: float) -> NDArray[np.float64]:
    """Return the t with ``P(|sum_i weights_i noise_i| > t)`` at most ``failing``, for many sums of noise.

    The weights run along the last axis. Half of the largest weight is added, because noise is in whole steps
    (docs/proofs/maps.md, section 6). Of Laplace noise the largest terms keep their law, and the others join
    the normal, as in streams.

    Examples
    --------
    >>> weighted_half_widths(LinearNoise(normal=10.0), [[0.1, 0.1]], 0.05).round(2).tolist()
    [2.82]
    """
    w = np.abs(np.atleast_1d(np.asarray(weights, dtype=np.float64)))
    lines = w.reshape(-1, w.shape[-1])
    found = np.empty(len(lines))
    step = max(1, _AT_ONCE // max(1, lines.shape[1]))
    for first in range(0, len(lines), step):
        part = lines[first : first + step]
        normal = law.normal * np.sqrt((part**2).sum(axis=1))
        largest = part.max(axis=1, initial=0.0)
        if law.laplace:
            part = -np.sort(-part, axis=1)
            rest = np.sqrt(2 * (part[:, _LARGEST:] ** 2).sum(axis=1)) * law.laplace[0]
            own = part[:, :_LARGEST] * law.laplace[0]
            widths = linear_half_width(failing, own, np.hypot(normal, rest))
        else:
            widths = linear_half_width(failing, np.zeros((len(part), 1)), normal)
        found[first : first + step] = np.where(largest > 0, widths + largest / 2, 0.0)
    return found.reshape(w.shape[:-1])
