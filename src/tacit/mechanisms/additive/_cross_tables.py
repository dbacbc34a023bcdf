"""Cross tables: the noise with which many tables are measured together, and tables that are chosen privately.

Noise on the residuals of cross tables measures many tables together, exactly on the integers. Adaptive
tables, the mechanism of synthetic rows, choose tables privately and measure them, in steps.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._grid import fits
from tacit.mechanisms._input_values import wrong_input
from tacit.mechanisms._mechanism import Mechanism, figure, read_adjacency, show
from tacit.mechanisms._noise_laws import GaussianLaw, check_width, square_root_up
from tacit.mechanisms.additive._integer_noise import DiscreteGaussian
from tacit.mechanisms.choices._selection import Exponential
from tacit.strategies import ColumnSet, ResidualSets, replace_cost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost


_STEPS = 2**96  # costs are whole numbers of 1/_STEPS, rounded up
_BITS = 24  # of a sigma, rounded up: at most a part in 2^23 more noise
LISTED_SIGMAS = 2_000  # sets whose sigma the document lists; of more it has a digest
_SAFE = 2**62
_FLOATS = 1e-9  # more than rounding can take off a sum in floats


def residual(table: NDArray[Any]) -> NDArray[Any]:
    """Return ``prod of (n_i I - 1 1^T)`` applied to a table of whole numbers, exactly.

    Numbers that may leave 64 bits are Python ints. A table without columns, a total, is its own residual.

    Examples
    --------
    >>> residual(np.array([3, 1, 0])).tolist(), residual(np.array([[1, 0], [0, 0]])).tolist()
    ([5, -1, -4], [[1, -1], [-1, 1]])
    """
    residuals = np.asarray(table)
    largest = (
        int(np.abs(residuals).max(initial=0))
        if residuals.dtype != object
        else max(map(abs, residuals.flat), default=0)
    )
    if residuals.dtype == object or largest * math.prod(2 * n for n in residuals.shape) >= _SAFE:
        residuals = residuals.astype(object)
    for axis, n in enumerate(residuals.shape):
        residuals = n * residuals - residuals.sum(axis=axis, keepdims=True)
    return residuals


@dataclass(frozen=True, init=False, repr=False)
class ResidualNoise(Mechanism):
    """Release the residuals of cross tables with discrete Gaussian noise, each set with its own sigma.

    Guarantee: rho = k^2 sum over sets S of prod n_i (n_i - 1) / (2 sigma_S^2), zero-concentrated, where a
    unit owns at most k of the counted rows. One row moves the table of S by 1 in one cell, so it moves the
    residual of S by one column of ``prod (n_i I - 1 1^T)``, whose squared norm is prod n_i (n_i - 1); k
    rows move it by at most k times as much. Under ``replace`` the cost is that of the worst pair of rows
    (docs/proofs/workloads.md).

    Parameters
    ----------
    sizes
        How many values each column has.
    sigmas
        The noise of each set of columns, on its integer residual.
    rows
        The most rows of one unit, k.
    adjacency
        What a neighbour is.

    Examples
    --------
    >>> noise = ResidualNoise((2, 3), {(): 4, (0,): 6, (0, 1): 20})
    >>> noise.rho <= Fraction(1, 32) + Fraction(2, 72) + Fraction(12, 800) + Fraction(1, 10**9)
    True
    >>> total, by_sex, both = noise.release([np.array(9), np.array([4, 5]), np.array([[1, 2, 1], [2, 2, 1]])])
    >>> both.shape
    (2, 3)
    """

    sizes: tuple[int, ...]
    sets: tuple[ColumnSet, ...]
    sigmas: tuple[Fraction, ...]
    rows: int
    adjacency: Adjacency

    def __init__(
        self,
        sizes: Sequence[int],
        sigmas: Mapping[ColumnSet, Number],
        *,
        rows: int = 1,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        shape = tuple(count("sizes", n, zero=False) for n in sizes)
        for columns in sigmas:
            if any(not 0 <= i < len(shape) for i in columns) or list(columns) != sorted(set(columns)):
                raise bad_parameter(
                    "sigmas", "given for rising numbers of columns", columns, fix=Set(sigmas={})
                )
        spreads = tuple(rational("sigma", value) for value in sigmas.values())
        for spread in spreads:
            check_width(spread, power=56)
        for name, value in (
            ("sizes", shape),
            ("sets", tuple(sigmas)),
            ("sigmas", spreads),
            ("rows", count("rows", rows, zero=False)),
            ("adjacency", read_adjacency(adjacency)),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def planned(
        cls,
        plan: ResidualSets,
        squares: NDArray[np.float64],
        *,
        rho: Number,
        rows: int = 1,
        adjacency: Adjacency = "add/remove",
    ) -> ResidualNoise:
        """Scale the noise of a residual plan to a cost; every sigma is rounded up.

        Parameters
        ----------
        plan, squares
            The sets, and the noise of each as `ResidualSets.least_largest` gives it, at rho = 1/2.
        rho
            What the release may cost.
        rows, adjacency
            See the class.
        """
        budget = rational("rho", rho)
        per_row = plan.rho(squares)
        if adjacency == "replace":
            per_row = max(per_row, plan.replaced(squares))
        factor, more = rows * math.sqrt(per_row / float(budget)) * (1 + 1e-9), 1e-6
        while True:
            sigmas = {
                one: _short(factor * math.sqrt(square) * math.prod(plan.sizes[i] for i in one))
                for one, square in zip(plan.sets, squares.tolist(), strict=True)
            }
            noise = cls(plan.sizes, sigmas, rows=rows, adjacency=adjacency)
            if noise.rho <= budget:
                return noise
            factor, more = factor * (1 + more), 2 * more  # of a tiny rho, the steps of the cost count

    @property
    def squares(self) -> NDArray[np.float64]:
        """The variance ``s_S^2`` of the noise on each residual over prod n_i."""
        of = zip(self.sets, self.sigmas, strict=True)
        return np.array([float(sigma / math.prod(self.sizes[i] for i in one)) ** 2 for one, sigma in of])

    @cached_property
    def rho(self) -> Fraction:
        """What one release costs: an upper bound, a whole number of 2^-96."""
        total = 0
        for columns, sigma in zip(self.sets, self.sigmas, strict=True):
            norm = self.rows**2 * self.norm(columns) * sigma.denominator**2 * _STEPS
            total += -(-norm // (2 * sigma.numerator**2))
        rounded = Fraction(total, _STEPS)
        if self.adjacency == "add/remove":
            return rounded
        largest = replace_cost(self.sizes, self.sets, self.squares) * (1 + _FLOATS)
        replaced = Fraction(largest) * self.rows**2
        return max(rounded, Fraction(math.ceil(replaced * _STEPS), _STEPS))

    def norm(self, one: ColumnSet) -> int:
        """Return the squared norm of what one row adds to the residual of a set."""
        return math.prod(self.sizes[i] * (self.sizes[i] - 1) for i in one)

    @property
    def cost(self) -> Cost:
        """The rho of all sets together."""
        from tacit.accounting import Cost

        return Cost.zcdp(self.rho, adjacency=self.adjacency)

    def residuals(self, tables: Sequence[Any]) -> list[NDArray[Any]]:
        """Return the exact residuals of the tables of all sets, in their order."""
        shapes = [tuple(self.sizes[i] for i in one) for one in self.sets]
        arrays = [np.asarray(table) for table in tables]
        if [table.shape for table in arrays] != shapes or any(
            table.dtype.kind not in "iuO" for table in arrays
        ):
            raise wrong_input(
                "one table of whole numbers for each set of columns", tables,
                fix="give the tables of noise.sets, in this order",
            )  # fmt: skip
        return [residual(table) for table in arrays]

    def release(self, value: Any) -> list[NDArray[Any]]:
        """Return the noisy residuals, for the exact tables of all sets in their order."""
        noisy = []
        for exact, sigma in zip(self.residuals(value), self.sigmas, strict=True):
            draws = GaussianLaw(sigma).draws(exact.shape)
            big = exact.dtype == object or not fits(exact, draws)
            noisy.append(exact.astype(object) + draws.astype(object) if big else exact + draws)
        return noisy

    def release_many(self, value: Any, count: int) -> NDArray[Any]:
        """Return `count` independent outputs, one line of all numbers for each: for auditors only."""
        parts = []
        for exact, sigma in zip(self.residuals(value), self.sigmas, strict=True):
            draws = GaussianLaw(sigma).draws((count, exact.size))
            parts.append(exact.reshape(-1).astype(object if exact.dtype == object else np.int64) + draws)
        return np.concatenate(parts, axis=1)

    @property
    def worst_pair(self) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
        """No rows, and k equal rows; under replace, k equal rows and k rows that differ in all columns."""
        empty = [np.zeros([self.sizes[i] for i in one], np.int64) for one in self.sets]
        tables, neighbours = [table.copy() for table in empty], [table.copy() for table in empty]
        for some, others in zip(tables, neighbours, strict=True):
            some[(0,) * some.ndim] = self.rows
            others[(-1,) * others.ndim] = self.rows
        return (empty, tables) if self.adjacency == "add/remove" else (neighbours, tables)

    def to_json(self) -> dict[str, Any]:
        """Return sizes, rows, the exact sigma of each set (of very many their digest) and the cost."""
        pairs = [[list(one), str(sigma)] for one, sigma in zip(self.sets, self.sigmas, strict=True)]
        text = json.dumps(pairs, separators=(",", ":")).encode()
        noise: dict[str, Any] = (
            {"sigmas": pairs}
            if len(pairs) <= LISTED_SIGMAS
            else {"sets": len(pairs), "sigmas_sha256": hashlib.sha256(text).hexdigest()}
        )
        return {
            "mechanism": "residual-noise",
            "sizes": list(self.sizes),
            "rows": self.rows,
            **noise,
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words.

        Examples
        --------
        >>> ResidualNoise((2, 3), {(): 4, (0,): 6}).describe()
        'discrete Gaussian noise on 2 residuals, sigma 4 to 6'
        """
        smallest, largest = (figure(one * unit) for one in (min(self.sigmas), max(self.sigmas)))
        return f"discrete Gaussian noise on {len(self.sets):,} residuals, sigma {smallest} to {largest}"

    def __repr__(self) -> str:
        return f"ResidualNoise({self.describe()}; rho {float(self.rho):.6g})"


def _short(value: float) -> Fraction:
    """Round a sigma up to 24 bits.

    Examples
    --------
    >>> _short(0.1) >= Fraction(1, 10), _short(3.0)
    (True, Fraction(3, 1))
    """
    shift = _BITS - math.frexp(value)[1]
    scaled = math.ceil(math.ldexp(value, shift))
    return Fraction(scaled, 1 << shift) if shift >= 0 else Fraction(scaled << -shift)


_MAX_COUNT = 2**40  # counts and estimates beyond it become it: no sum over a table then overflows
_MAX_CELLS = 2**21


@dataclass(frozen=True, slots=True, eq=False)
class TableCandidate:
    """A table that may be chosen.

    Parameters
    ----------
    columns
        The numbers of its columns.
    estimate
        What is expected of the table, as whole numbers: public.
    weight
        What its distance counts, a positive whole number: public.
    allowance
        The distance that noise alone would make, a whole number: public.
    """

    columns: tuple[int, ...]
    estimate: NDArray[np.int64]
    weight: int
    allowance: int

    def score(self, table: NDArray[np.int64]) -> int:
        """Return the weight times how much further the table is from the estimate than noise would be.

        One row more or less moves it by at most the weight, up or down.

        Examples
        --------
        >>> TableCandidate((0,), np.array([5, 5]), 3, 2).score(np.array([9, 4]))
        9
        """
        if table.shape != self.estimate.shape or table.size > _MAX_CELLS:
            raise ValueError("the estimate has another shape, or the table has too many cells")
        difference = np.clip(table, -_MAX_COUNT, _MAX_COUNT) - np.clip(self.estimate, -_MAX_COUNT, _MAX_COUNT)
        return self.weight * (int(np.abs(difference).sum()) - self.allowance)


@dataclass(frozen=True, slots=True)
class MeasureTable:
    """A step that adds noise to every cell of a table."""

    columns: tuple[int, ...]
    sigma: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class ChooseTable:
    """A step that chooses one of several tables by the exponential mechanism."""

    candidates: Sequence[TableCandidate]
    epsilon: Fraction


AdaptiveStep: TypeAlias = MeasureTable | ChooseTable


class TableSteps(Protocol):
    """What a field hands to `AdaptiveTables`: exact tables, and which step follows from noisy results."""

    def table(self, columns: Sequence[int]) -> NDArray[np.int64]:
        """Return an exact table: each row of the data is in one of its cells."""

    def next_step(self, left: Fraction) -> AdaptiveStep | None:
        """Return the next step, from public facts and earlier results alone; None after the last.

        ``left`` is the rho that is left.
        """

    def receive(self, result: Any) -> None:
        """Receive the noisy counts of a table, or the number of the chosen candidate."""


@dataclass(frozen=True, init=False, repr=False, slots=True)
class AdaptiveTables(Mechanism):
    """Choose tables of counts and measure them, in steps that depend on earlier results.

    Guarantee: rho, zero-concentrated, for all steps together. The whole rho is charged, and a step that would
    exceed it is refused: a filter (Feldman and Zrnic 2021; Whitehouse and others 2023).

    Argument (docs/proofs/synth.md): a unit has at most `rows` rows, each in one cell of every table. So it
    moves a table by at most `rows` in L1 and in L2, and the score of a candidate by at most `rows` times the
    weight, in either direction. A measurement costs rows^2 / (2 sigma^2). A choice has bounded range and
    costs epsilon^2 / 8; its scores are not monotone, because a row that brings one table closer to its
    estimate takes another away from it. Under replace, two units differ: 2 rows^2 and 2 rows.

    Parameters
    ----------
    rho
        The cost of all steps.
    rows
        The most rows that one unit has.
    adjacency
        What makes neighbours: ``"add/remove"`` or ``"replace"``.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> mechanism = tc.mechanisms.AdaptiveTables(rho=2, rows=1)
    >>> class OneTable:  # measures its only table once
    ...     seen = None
    ...     def table(self, columns):
    ...         return np.array([700, 300])
    ...     def next_step(self, left):
    ...         if self.seen is not None:
    ...             return None
    ...         return tc.mechanisms.MeasureTable((0,), mechanism.sigma_for(left))
    ...     def receive(self, result):
    ...         self.seen = result
    >>> [[kind, columns, sigma, cells]] = mechanism.release(OneTable())
    >>> kind, columns, sigma, 690 < cells[0] < 710
    ('table', [0], '1/2', True)
    """

    rho: Fraction
    rows: int
    adjacency: Adjacency

    def __init__(self, *, rho: Number, rows: int, adjacency: Adjacency = "add/remove") -> None:
        object.__setattr__(self, "rho", rational("rho", rho))
        object.__setattr__(self, "rows", count("rows", rows, zero=False))
        object.__setattr__(self, "adjacency", read_adjacency(adjacency))
        DiscreteGaussian(sigma=self.sigma_for(self.rho), sensitivity_squared=self.moved_squared)  # or refuse

    @property
    def moved(self) -> int:
        """How far one unit moves a table in L1."""
        return self.rows * (2 if self.adjacency == "replace" else 1)

    @property
    def moved_squared(self) -> int:
        """The square of how far one unit moves a table in L2."""
        return self.rows**2 * (2 if self.adjacency == "replace" else 1)

    @property
    def cost(self) -> Cost:
        """The whole rho."""
        from tacit.accounting import Cost

        return Cost.zcdp(self.rho, adjacency=self.adjacency)

    def sigma_for(self, rho: Fraction) -> Fraction:
        """Return the standard deviation of a measurement that costs at most this rho."""
        return square_root_up(self.moved_squared / (2 * rho))

    def epsilon_for(self, rho: Fraction) -> Fraction:
        """Return the epsilon of a choice that costs at most this rho.

        Examples
        --------
        >>> AdaptiveTables(rho=1, rows=1).epsilon_for(Fraction(1, 2))
        Fraction(2, 1)
        """
        return Fraction(math.isqrt(math.floor(8 * rho * 4**60)), 2**60)

    def rho_of(self, step: AdaptiveStep) -> Fraction:
        """Return what a step costs."""
        if isinstance(step, MeasureTable):
            return self.moved_squared / (2 * step.sigma**2)
        return step.epsilon**2 / 8

    def release(self, value: TableSteps) -> list[list[Any]]:  # type: ignore[override]
        """Take the steps; return noisy tables and choices in their order, as JSON data.

        A noisy table is ``["table", columns, sigma, cells]``, a choice ``["choice", columns, epsilon]``.
        """
        releases: list[list[Any]] = []
        remaining = self.rho
        while (step := value.next_step(remaining)) is not None:
            remaining -= self.rho_of(step)
            if remaining < 0:
                raise bad_parameter("a step", "within the rho that is left", show(remaining))
            releases.append(
                self._measured(step, value) if isinstance(step, MeasureTable) else self._chosen(step, value)
            )
        return releases

    def _measured(self, step: MeasureTable, value: TableSteps) -> list[Any]:
        law = DiscreteGaussian(sigma=step.sigma, sensitivity_squared=self.moved_squared)
        noisy = law.release(np.asarray(value.table(step.columns), np.int64))
        value.receive(noisy)
        return ["table", list(step.columns), str(step.sigma), noisy.ravel().tolist()]

    def _chosen(self, step: ChooseTable, value: TableSteps) -> list[Any]:
        largest = max(one.weight for one in step.candidates)
        law = Exponential(step.epsilon, sensitivity=self.moved * largest, adjacency=self.adjacency, grid=1)
        chosen = law.release([one.score(value.table(one.columns)) for one in step.candidates])
        value.receive(chosen)
        return ["choice", list(step.candidates[chosen].columns), str(step.epsilon)]

    def release_many(self, value: object, count: int) -> NDArray[np.float64]:
        """Return what `RecordedTables` released, as numbers, `count` times: for auditors only."""
        lines = [self.release(value) for _ in range(count)]  # type: ignore[arg-type]
        return np.array([[columns[0], *cells] for *_, (_, columns, _, cells) in lines], float)

    @property
    def worst_pair(self) -> tuple[object, object]:
        """No rows, and one unit with all its rows in one cell of two tables; a choice, then its table.

        The rows take the first table away from its estimate and bring the second closer.
        """
        return RecordedTables(self, 0), RecordedTables(self, self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the name, the rho, the rows of a unit, the numerics and the cost."""
        return {
            "mechanism": "adaptive-tables",
            "rho": str(self.rho),
            "rows": self.rows,
            "adjacency": self.adjacency,
            "numerics": "exact",
            "cost": self.cost.to_json(),
        }

    def describe(self) -> str:
        """Return the mechanism in a few words."""
        return f"tables chosen and measured within rho {figure(self.rho)}"

    def __repr__(self) -> str:
        return f"AdaptiveTables(rho={show(self.rho)}, rows={self.rows})"


@dataclass(slots=True)
class RecordedTables:
    """One choice between two tables with one cell each, then its measurement: for auditors."""

    mechanism: AdaptiveTables
    count: int
    results: list[Any] = field(default_factory=list)

    def table(self, columns: Sequence[int]) -> NDArray[np.int64]:
        """Return the one cell."""
        del columns
        return np.array([self.count], np.int64)

    def next_step(self, left: Fraction) -> AdaptiveStep | None:
        """Choose with half of the rho, measure with the other half, then start anew."""
        far = 100 * self.mechanism.rows
        if len(self.results) == 2:
            self.results = []
            return None
        if self.results:
            return MeasureTable((self.results[0],), self.mechanism.sigma_for(left))
        candidates = [
            TableCandidate((0,), np.array([0], np.int64), 1, 0),
            TableCandidate((1,), np.array([far], np.int64), 1, far),
        ]
        return ChooseTable(candidates, self.mechanism.epsilon_for(left / 2))

    def receive(self, result: Any) -> None:
        """Keep a result."""
        self.results.append(result)
