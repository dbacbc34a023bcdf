"""The noise on cross tables: how tables are rebuilt from what was measured, and how far a cell may be off.

Two ways to measure (docs/proofs/workloads.md). With Gaussian noise, the residuals of all subsets of the
wanted tables are measured. With Laplace noise, the largest wanted tables are. Each of them then says
something about the residual of every subset; what several tables say is averaged with weights by their
variance, which is least squares, because residuals are orthogonal. Both ways, all rebuilt tables agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from tacit.exact import read_fraction
from tacit.mechanisms import linear_half_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.strategies import ColumnSet

_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class CrossNoise:
    """What was measured of cross tables, and with which noise.

    Parameters
    ----------
    sizes
        How many places each axis has.
    law
        ``gaussian`` noise on residuals, or ``laplace`` noise on tables.
    sets
        Which residuals, or which tables.
    scales
        The sigma or the scale of each, on its integers.

    Examples
    --------
    >>> from fractions import Fraction
    >>> noise = CrossNoise((2, 3), "laplace", ((0, 1),), (Fraction(2),))
    >>> noise.variance((0, 1)), noise.variance((0,)), round(noise.half_width((0, 1), 0.95), 2)
    (8.0, 24.0, 6.0)
    """

    sizes: tuple[int, ...]
    law: Literal["gaussian", "laplace"]
    sets: tuple[ColumnSet, ...]
    scales: tuple[Fraction, ...]
    _place: dict[ColumnSet, int] = field(init=False, repr=False, compare=False)
    _of_column: tuple[set[int], ...] = field(init=False, repr=False, compare=False)
    _known: dict[ColumnSet, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {one: at for at, one in enumerate(self.sets)})
        object.__setattr__(self, "_known", {})
        object.__setattr__(self, "_of_column", tuple(set() for _ in self.sizes))
        for at, one in enumerate(self.sets):
            for i in one:
                self._of_column[i].add(at)

    def cells(self, columns: Sequence[int]) -> int:
        """Return how many cells a table has."""
        return math.prod(self.sizes[i] for i in columns)

    def covers(self, table: ColumnSet) -> bool:
        """Whether a table can be rebuilt from what was measured."""
        if self.law == "laplace":
            return any(set(table) <= set(one) for one in self.sets)
        return self._core(table) in self._place

    def _core(self, table: ColumnSet) -> ColumnSet:
        """Return the columns that have more than one place; the others add nothing."""
        return tuple(i for i in table if self.sizes[i] > 1)

    def _subsets(self, table: ColumnSet) -> Iterator[ColumnSet]:
        core = self._core(table)
        return chain.from_iterable(combinations(core, k) for k in range(len(core) + 1))

    def _share(self, one: ColumnSet) -> float:
        return math.prod(1 - 1 / self.sizes[i] for i in one)

    def _precisions(self, one: ColumnSet) -> dict[int, float]:
        """Return 1 / variance of what each measurement says about the numbers of a residual."""
        if self.law == "gaussian":
            at = self._place[one]
            return {at: (self.cells(one) / float(self.scales[at])) ** 2}
        whole = self.cells(one)
        return {
            at: whole / (self.cells(self.sets[at]) * 2 * float(self.scales[at]) ** 2)
            for at in self._holders(one)
        }

    def _precision(self, one: ColumnSet) -> float:
        """Return 1 / variance of what all measurements together say; kept, because many tables need it."""
        if one not in self._known:
            self._known[one] = sum(self._precisions(one).values())
        return self._known[one]

    def _holders(self, one: ColumnSet) -> Iterable[int]:
        """Return the measured tables that hold a set of columns."""
        if not one:
            return range(len(self.sets))
        return sorted(set.intersection(*(self._of_column[i] for i in one)))

    def variance(self, table: ColumnSet) -> float:
        """Return the variance of every cell of a table: an upper bound, and nearly exact."""
        return sum(
            self._share(one) / self._precision(one) / self.cells([j for j in table if j not in one]) ** 2
            for one in self._subsets(table)
        )

    def half_width(self, table: ColumnSet, confidence: float) -> float:
        """Return how far a cell of a table may be off with this confidence, one cell at a time.

        The noise of a cell is a weighted sum of many independent integers. Its law is that of the sum of
        the continuous noises, and half a step of the largest weight is added for the integers.
        """
        if self.law == "gaussian":
            from scipy.special import ndtri

            z = float(ndtri((1 + confidence) / 2))
            return z * math.sqrt(self.variance(table)) + self.step(table)
        scales, weights, times = map(np.array, zip(*self._laplace_terms(table), strict=True))
        each = scales * np.abs(weights)
        copies = None if (times == 1).all() else times
        wide = linear_half_width(1 - confidence, each, times=copies)
        if np.allclose(np.abs(weights), 1):  # a sum of noisy integers is one
            return float(math.floor(float(wide) + 0.5))
        return float(wide) + self.step(table)

    def step(self, table: ColumnSet) -> float:
        """Return half a step of the largest weight with which one noisy integer enters a cell."""
        if self.law == "gaussian":
            return 0.5 / self.cells(table)
        return max(abs(weight) for _, weight, _ in self._laplace_terms(table)) / 2

    def _laplace_terms(self, table: ColumnSet) -> Iterator[tuple[float, float, float]]:
        """Return scale, weight and number of the noises in one cell of a table, those with weight 0 left out.

        The noise on a cell of a measured table counts by the common columns in which the two cells agree.
        """
        for at, common, many in self._kinds(table):
            own = self.cells(self.sets[at]) * 2 * float(self.scales[at]) ** 2
            weights = np.empty([2] * len(common))  # by which of the common columns are in the set,
            for one in self._subsets(common):
                said = self.cells(one) / own / self._precision(one)
                rest = self.cells([j for j in table if j not in one])
                weights[tuple(int(i in one) for i in common)] = said / rest
            times = np.full([2] * len(common), float(many))
            for axis, i in enumerate(common):  # and then by those in which the two cells differ
                apart, within = np.split(weights, 2, axis=axis)
                share = 1 / self.sizes[i]
                weights = np.concatenate([apart + within * (1 - share), apart - within * share], axis=axis)
                times = times * np.array([1.0, self.sizes[i] - 1]).reshape(
                    -1, *[1] * (len(common) - axis - 1)
                )
            for weight, copies in zip(weights.reshape(-1).tolist(), times.reshape(-1).tolist(), strict=True):
                if abs(weight) > _TINY:
                    yield float(self.scales[at]), weight, copies

    def _kinds(self, table: ColumnSet) -> Iterator[tuple[int, ColumnSet, int]]:
        """Return one measured table of each kind, its columns in common, and the noises in one cell of those.

        Measured tables are alike that have the same columns in common with the table, the same scale, and
        equally many cells for each cell of those columns.
        """
        core = set(self._core(table))
        kinds: dict[tuple[ColumnSet, int, Fraction], list[int]] = {}
        for at, (held, scale) in enumerate(zip(self.sets, self.scales, strict=True)):
            common = tuple(i for i in held if i in core)
            beyond = self.cells([i for i in held if i not in core])
            kinds.setdefault((common, beyond, scale), [at, 0])[1] += beyond
        for (common, _, _), (at, many) in kinds.items():
            yield at, common, many

    def estimate(self, table: ColumnSet, noisy: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Rebuild a table from the noisy integers: unbiased, and in agreement with all others."""
        made = np.zeros([self.sizes[i] for i in table])
        for one in self._subsets(table):
            shape = [self.sizes[i] if i in one else 1 for i in table]
            rest = self.cells([j for j in table if j not in one])
            made += self._residual(one, noisy).reshape(shape) / rest
        return np.round(made, 9) + 0.0  # cells of whole numbers stay whole

    def _residual(self, one: ColumnSet, noisy: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Estimate the residual of a set, over prod n_i: what its table says beyond smaller ones."""
        precisions = self._precisions(one)
        total = sum(precisions.values())
        made = np.zeros([self.sizes[i] for i in one])
        for at, precision in precisions.items():
            said = np.asarray(noisy[at], np.float64)
            if self.law == "gaussian":
                said = said / self.cells(one)
            else:
                said = said.sum(axis=tuple(k for k, i in enumerate(self.sets[at]) if i not in one))
            made += said * (precision / total)
        for axis in range(made.ndim):
            made = made - made.mean(axis=axis, keepdims=True)
        return made

    def to_json(self) -> JSON:
        """Return the noise as JSON, scales exactly."""
        listed: JSON = [[list(one), str(scale)] for one, scale in zip(self.sets, self.scales, strict=True)]
        return {"sizes": list(self.sizes), "law": self.law, "measured": listed}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the noise back; raises ``ValueError`` where it is not one."""
        law, sizes = document["law"], tuple(document["sizes"])
        sets = tuple(tuple(one) for one, _ in document["measured"])
        scales = tuple(read_fraction(scale) for _, scale in document["measured"])
        columns = set(range(len(sizes)))
        known = all(list(one) == sorted(columns & set(one)) for one in sets) and len(set(sets)) == len(sets)
        whole = all(type(n) is int and n >= 1 for n in (*sizes, *(i + 1 for one in sets for i in one)))
        if (
            law not in {"gaussian", "laplace"}
            or not (known and whole and sets)
            or not all(0 < float(scale) < math.inf for scale in scales)
        ):
            raise ValueError("not the noise of cross tables")
        return cls(sizes, law, sets, scales)
