"""Adaptive tables, the mechanism of synthetic rows: choose tables privately and measure them, in steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.mechanisms._discrete_gaussian import DiscreteGaussian
from tacit.mechanisms._exponential import Exponential
from tacit.mechanisms._mechanism import Mechanism, figure, read_adjacency, show
from tacit.mechanisms._roots import square_root_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost

_MOST = 2**40  # counts and estimates beyond it become it: no sum over a table then overflows
_MOST_CELLS = 2**21


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
        if table.shape != self.estimate.shape or table.size > _MOST_CELLS:
            raise ValueError("the estimate has another shape, or the table has too many cells")
        held = np.clip(table, -_MOST, _MOST) - np.clip(self.estimate, -_MOST, _MOST)
        return self.weight * (int(np.abs(held).sum()) - self.allowance)


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
        made: list[list[Any]] = []
        left = self.rho
        while (step := value.next_step(left)) is not None:
            left -= self.rho_of(step)
            if left < 0:
                raise bad_parameter("a step", "within the rho that is left", show(left))
            made.append(
                self._measured(step, value) if isinstance(step, MeasureTable) else self._chosen(step, value)
            )
        return made

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
