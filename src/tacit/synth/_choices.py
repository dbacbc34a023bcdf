"""The choices of synthetic rows: which tables may be measured, how the budget is shared, and AIM and MST.

The design consists of public facts. AIM and MST are generators of steps for
`tacit.mechanisms.AdaptiveTables`. They get the noisy counts of a table or the number of the chosen candidate,
with the rho that is left. None of them sees the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.mechanisms import ChooseTable, DiscreteGaussian, Exponential, MeasureTable, TableCandidate
from tacit.synth._fit import NoisyTable, fit
from tacit.synth._model import model_of, tree_cells

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.mechanisms import AdaptiveTables
    from tacit.synth._fit import FittedModel
    from tacit.synth._model import Columns, GraphicalModel
    from tacit.tables import CodedRows


MOST_CELLS = 2_000_000  # that a model, or a table, may have
KEPT_SHARE = Fraction(1, 5)  # of rho, for the tables that are kept
NOISE_L1 = math.sqrt(2 / math.pi)  # the mean of |noise|, in standard deviations
_ROUNDS = 16  # a round may first take one part in so many of rho, for each column


@dataclass(frozen=True, eq=False)
class SynthDesign:
    """What decides which steps are taken, apart from noisy results.

    Parameters
    ----------
    sizes
        How many places each column has.
    method
        ``"aim"``, ``"mst"`` or ``"tables"``.
    up_to
        The most columns of a table that counts: of the workload of AIM, or of the tables measured.
    size
        The most cells of the model.
    keep
        The tables that are measured first, whatever happens.
    zeros
        For some sets of columns, where nothing can be.
    """

    sizes: tuple[int, ...]
    method: str
    up_to: int
    size: int
    keep: tuple[Columns, ...] = ()
    zeros: Mapping[Columns, NDArray[np.bool_]] = field(default_factory=dict)

    def cells(self, columns: Columns) -> int:
        """Return how many cells a table has."""
        return math.prod(self.sizes[c] for c in columns)

    def fits(self, sets: list[Columns], share: float = 1.0) -> bool:
        """Return whether a model of these tables stays within a share of its size."""
        return tree_cells([*sets, *self.zeros], self.sizes) <= self.size * share

    @property
    def possible(self) -> bool:
        """Whether what was declared impossible fits into the model and leaves something."""
        return self.fits([], 4.0) and model_of({}, self.zeros, self.sizes, 1.0) is not None

    def workload(self) -> dict[Columns, int]:
        """Return the tables that may be chosen, each with its weight.

        The weight of a table is how many columns it shares with the wanted tables, summed over these: each
        of its columns is in equally many of them.

        Examples
        --------
        >>> SynthDesign((2, 3, 4), "aim", 2, 100).workload()[0, 1]  # shares 2 + 1 + 1 with the three pairs
        4
        """
        every = range(len(self.sizes))
        width = min(self.up_to, len(self.sizes))
        each = math.comb(len(self.sizes) - 1, width - 1)
        tables = [c for n in range(1, width + 1) for c in combinations(every, n)]
        return {c: len(c) * each for c in tables if self.cells(c) <= self.size}

    @property
    def many_tables(self) -> int:
        """How many tables are measured or may be chosen, at most; counted without listing them."""
        width = min(self.up_to, len(self.sizes))
        if self.method == "tables":
            return math.comb(len(self.sizes), width)
        return sum(
            math.comb(len(self.sizes), n) for n in range(1, (2 if self.method == "mst" else width) + 1)
        )

    def all_tables(self) -> list[Columns]:
        """Return the tables of the method "tables": all of the widest kind, and those kept."""
        width = min(self.up_to, len(self.sizes))
        tables = [*combinations(range(len(self.sizes)), width)]
        return [*tables, *(c for c in self.keep if not any(set(c) <= set(one) for one in tables))]

    def parts(self) -> int:
        """Return how many pairs of a table of the method "tables" and a set of its columns there are."""
        width = min(self.up_to, len(self.sizes))
        return (math.comb(len(self.sizes), width) << width) + sum(1 << len(one) for one in self.keep)

    def certain(self, mechanism: AdaptiveTables) -> list[tuple[Columns, Fraction]]:
        """Return the tables that AIM and MST measure for certain, in their order, each with its sigma."""
        rho = mechanism.rho
        sigmas = [(c, mechanism.sigma_for(rho * KEPT_SHARE / len(self.keep))) for c in self.keep]
        sigma = mechanism.sigma_for(self.one_way_rho(mechanism))
        return [*sigmas, *(((i,), sigma) for i in range(len(self.sizes)) if (i,) not in self.keep)]

    def free_rho(self, mechanism: AdaptiveTables) -> Fraction:
        """Return the rho that is not reserved for the tables that are kept."""
        return mechanism.rho * (1 - KEPT_SHARE) if self.keep else mechanism.rho

    def one_way_rho(self, mechanism: AdaptiveTables) -> Fraction:
        """Return the rho of each column's own table."""
        free, columns = self.free_rho(mechanism), len(self.sizes)
        if columns == 1:
            return free
        return free / (3 * columns) if self.method == "mst" else self.round_rho(mechanism) * Fraction(9, 10)

    def round_rho(self, mechanism: AdaptiveTables) -> Fraction:
        """Return the rho of the first rounds of AIM."""
        return self.free_rho(mechanism) / (_ROUNDS * len(self.sizes))

    def choice_rho(self, mechanism: AdaptiveTables) -> Fraction:
        """Return the least rho of a choice; of MST, that of each choice."""
        if self.method == "mst":
            return self.free_rho(mechanism) / (3 * max(1, len(self.sizes) - 1))
        return self.round_rho(mechanism) / 10

    def check_noise(self, mechanism: AdaptiveTables) -> None:
        """Refuse a rho so small that the noise of some step cannot be drawn: before anything is charged."""
        for sigma in {sigma for _, sigma in self.certain(mechanism)}:
            DiscreteGaussian(sigma=sigma, sensitivity_squared=mechanism.moved_squared)
        weight = max(self.workload().values()) if self.method == "aim" else 1
        epsilon = mechanism.epsilon_for(self.choice_rho(mechanism))
        Exponential(epsilon, sensitivity=mechanism.moved * weight, grid=1)

    def to_json(self) -> dict[str, JSON]:
        """Return the design as JSON; impossible cells by their numbers."""
        return {
            "sizes": list(self.sizes),
            "method": self.method,
            "up_to": self.up_to,
            "size": self.size,
            "keep": [list(one) for one in self.keep],
            "never": [[list(c), np.flatnonzero(mask).tolist()] for c, mask in self.zeros.items()],
        }

    @classmethod
    def from_json(cls, document: Any) -> SynthDesign:
        """Read the design back; raises ``ValueError`` where it is not one."""
        sizes = tuple(_whole(one, 1) for one in document["sizes"])
        method, zeros = document["method"], {}
        if method not in {"aim", "mst", "tables"} or not sizes:
            raise ValueError("not a design")
        for columns_document, cells in document["never"]:
            columns = columns_in(columns_document, len(sizes))
            many = math.prod(sizes[c] for c in columns)
            places = [_whole(cell, 0) for cell in cells]
            if many > MOST_CELLS or not all(place < many for place in places):
                raise ValueError("not the cells of a table")
            mask = np.zeros(many, bool)
            mask[places] = True
            zeros[columns] = mask.reshape([sizes[c] for c in columns])
        keep = tuple(columns_in(one, len(sizes)) for one in document["keep"])
        up_to, size = _whole(document["up_to"], 1), _whole(document["size"], 1)
        design = cls(sizes, method, min(up_to, len(sizes)), size, keep, zeros)
        if size > MOST_CELLS or not design.possible:
            raise ValueError("not a design")
        return design


def columns_in(document: Any, many: int) -> Columns:
    """Read rising numbers of columns from a document."""
    columns = tuple(_whole(one, 0) for one in document)
    if not columns or list(columns) != sorted(set(columns)) or columns[-1] >= many:
        raise ValueError("not the columns of a table")
    return columns


def _whole(document: Any, low: int) -> int:
    if type(document) is not int or document < low:
        raise ValueError("not a whole number")
    return document


def subsets_of(columns: Columns, sizes: tuple[int, ...]) -> list[Columns]:
    """Return all subsets of the columns that have more than one place.

    Examples
    --------
    >>> subsets_of((0, 1), (2, 1))
    [(), (0,)]
    """
    varying = [c for c in columns if sizes[c] > 1]
    return [part for n in range(len(varying) + 1) for part in combinations(varying, n)]


TableStepper: TypeAlias = "Generator[MeasureTable | ChooseTable, tuple[Any, Fraction], None]"

_QUICK = 60  # steps of the fit after a round
_MEASURING = Fraction(9, 10)  # of a round; the rest chooses
_LARGEST = 2.0**40


class SteppedTables:
    """Exact tables of coded rows, and the steps: what `AdaptiveTables` asks for.

    The exact tables are here; the generator of steps does not know this object.
    """

    def __init__(self, rows: CodedRows, steps: TableStepper) -> None:
        self._rows: CodedRows | None = rows
        self._steps = steps
        self._held: dict[tuple[int, ...], NDArray[np.int64]] = {}
        self._result: Any = None

    def table(self, columns: Sequence[int]) -> NDArray[np.int64]:
        """Return an exact table."""
        assert self._rows is not None  # noqa: S101 - there is no table after the last step
        key = tuple(columns)
        if key not in self._held:
            self._held[key] = self._rows.table(key)
        return self._held[key]

    def next_step(self, left: Fraction) -> MeasureTable | ChooseTable | None:
        """Return the next step; after the last, drop everything that is exact."""
        try:
            return self._steps.send(None if self._result is None else (self._result, left))  # type: ignore[arg-type]
        except StopIteration:
            self._rows, self._held = None, {}
            return None

    def receive(self, result: Any) -> None:
        """Receive a noisy result."""
        self._result = result


def steps_of(design: SynthDesign, mechanism: AdaptiveTables) -> TableStepper:
    """Return the steps of a design."""
    if design.method == "aim" and len(design.sizes) > 1:
        return _aim(design, mechanism)
    if design.method == "mst" and len(design.sizes) > 1:
        return _mst(design, mechanism)
    return _one_table(design, mechanism)


def _measured(columns: Columns, sigma: Fraction, noisy: NDArray[np.int64]) -> NoisyTable:
    return NoisyTable(columns, np.asarray(noisy, np.float64), float(sigma))


def _certain(
    design: SynthDesign, mechanism: AdaptiveTables
) -> Generator[Any, Any, tuple[list[NoisyTable], Fraction]]:
    """Measure what is measured for certain."""
    tables, remaining = [], mechanism.rho
    for columns, sigma in design.certain(mechanism):
        noisy, remaining = yield MeasureTable(columns, sigma)
        tables.append(_measured(columns, sigma, noisy))
    return tables, remaining


def _one_table(design: SynthDesign, mechanism: AdaptiveTables) -> TableStepper:
    yield from _certain(design, mechanism)


def _candidate(model: GraphicalModel, columns: Columns, weight: int, sigma: float | None) -> TableCandidate:
    expected = model.table(columns)
    allowed = 0 if sigma is None else round(min(NOISE_L1 * sigma * expected.size, _LARGEST))
    counts = np.rint(np.clip(expected, 0, _LARGEST)).astype(np.int64)
    return TableCandidate(columns, counts, weight, allowed)


def _mst(design: SynthDesign, mechanism: AdaptiveTables) -> TableStepper:
    """Choose a tree of pairs, then measure them (McKenna, Miklau and Sheldon 2021)."""
    tables, remaining = yield from _certain(design, mechanism)
    model = fit(tables, design.sizes, design.zeros, steps=_QUICK).model
    groups = {i: {i} for i in range(len(design.sizes))}
    for columns in design.keep:
        _join(groups, columns)
    distinct = len({id(group) for group in groups.values()})
    chosen: list[Columns] = []
    if distinct < 2:
        return
    epsilon = mechanism.epsilon_for(design.free_rho(mechanism) / 3 / (distinct - 1))
    candidates = [
        _candidate(model, pair, 1, None)
        for pair in combinations(range(len(design.sizes)), 2)
        if design.cells(pair) <= design.size
    ]
    for _ in range(distinct - 1):
        cells = tree_cells([*design.keep, *chosen, *design.zeros], design.sizes)
        separate_pairs = [
            one
            for one in candidates
            if groups[one.columns[0]] is not groups[one.columns[1]]
            # a pair that joins two groups adds its own cells: far from the limit there is no need to look
            and (
                2 * (cells + one.estimate.size) <= design.size
                or design.fits([*design.keep, *chosen, one.columns])
            )
        ]
        if not separate_pairs:
            break
        chosen_index, remaining = yield ChooseTable(separate_pairs, epsilon)
        chosen.append(separate_pairs[chosen_index].columns)
        _join(groups, chosen[-1])
    for i, pair in enumerate(chosen):
        _, remaining = yield MeasureTable(pair, mechanism.sigma_for(remaining / (len(chosen) - i)))


def _join(groups: dict[int, set[int]], columns: Iterable[int]) -> None:
    """Put columns that are measured together into one group."""
    merged = set().union(*(groups[c] for c in columns))
    for column in merged:
        groups[column] = merged


def _aim(design: SynthDesign, mechanism: AdaptiveTables) -> TableStepper:
    """Choose the table that the model misses most, measure it, fit again (AIM, McKenna and others 2022)."""
    tables, remaining = yield from _certain(design, mechanism)
    fitted = fit(tables, design.sizes, design.zeros, steps=_QUICK)
    workload = design.workload()
    rho = design.round_rho(mechanism)
    while remaining > 0:
        is_final = remaining < 2 * rho
        if is_final:
            rho = remaining
        sigma = mechanism.sigma_for(rho * _MEASURING)
        share = float((mechanism.rho - remaining + (remaining if is_final else 0)) / mechanism.rho)
        allowed = _allowed(design, fitted, workload, share)
        candidates = [_candidate(fitted.model, c, workload[c], float(sigma)) for c in allowed]
        chosen_index, remaining = yield ChooseTable(candidates, mechanism.epsilon_for(rho * (1 - _MEASURING)))
        columns = candidates[chosen_index].columns
        if is_final:
            sigma = mechanism.sigma_for(remaining)
        del candidates
        noisy, remaining = yield MeasureTable(columns, sigma)
        tables.append(_measured(columns, sigma, noisy))
        if is_final:
            return
        before = fitted.model.table(columns)
        fitted = fit(tables, design.sizes, design.zeros, start=fitted, steps=_QUICK)
        change = float(np.abs(fitted.model.table(columns) - before).sum())
        if change <= NOISE_L1 * float(sigma) * design.cells(columns):
            rho *= 4


def _allowed(
    design: SynthDesign, fitted: FittedModel, workload: dict[Columns, int], share: float
) -> list[Columns]:
    """Return the tables that may be chosen: inside a clique, or the model stays within its share."""
    measured_columns = list(fitted.potentials)
    allowed = [
        c
        for c in workload
        if fitted.model.tree.home(c) is not None or design.fits([*measured_columns, c], share)
    ]
    return allowed or [(i,) for i in range(len(design.sizes))]
