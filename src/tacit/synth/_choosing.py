"""The steps of synthetic rows: AIM or MST, from noisy results alone.

Each is a generator of steps for `tacit.mechanisms.AdaptiveTables`. It gets the noisy counts of a table or the
number of the chosen candidate, with the rho that is left. None of them sees the data.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.mechanisms import ChooseTable, MeasureTable, TableCandidate
from tacit.synth._design import NOISE_L1
from tacit.synth._fit import NoisyTable, fit
from tacit.synth._junction_tree import tree_cells

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from numpy.typing import NDArray

    from tacit.mechanisms import AdaptiveTables
    from tacit.synth._design import SynthDesign
    from tacit.synth._fit import FittedModel
    from tacit.synth._model import Columns, GraphicalModel
    from tacit.tables import CodedRows

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
    tables, left = [], mechanism.rho
    for columns, sigma in design.certain(mechanism):
        noisy, left = yield MeasureTable(columns, sigma)
        tables.append(_measured(columns, sigma, noisy))
    return tables, left


def _one_table(design: SynthDesign, mechanism: AdaptiveTables) -> TableStepper:
    yield from _certain(design, mechanism)


def _candidate(model: GraphicalModel, columns: Columns, weight: int, sigma: float | None) -> TableCandidate:
    expected = model.table(columns)
    allowed = 0 if sigma is None else round(min(NOISE_L1 * sigma * expected.size, _LARGEST))
    whole = np.rint(np.clip(expected, 0, _LARGEST)).astype(np.int64)
    return TableCandidate(columns, whole, weight, allowed)


def _mst(design: SynthDesign, mechanism: AdaptiveTables) -> TableStepper:
    """Choose a tree of pairs, then measure them (McKenna, Miklau and Sheldon 2021)."""
    tables, left = yield from _certain(design, mechanism)
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
        held = tree_cells([*design.keep, *chosen, *design.zeros], design.sizes)
        apart = [
            one
            for one in candidates
            if groups[one.columns[0]] is not groups[one.columns[1]]
            # a pair that joins two groups adds its own cells: far from the limit there is no need to look
            and (
                2 * (held + one.estimate.size) <= design.size
                or design.fits([*design.keep, *chosen, one.columns])
            )
        ]
        if not apart:
            break
        place, left = yield ChooseTable(apart, epsilon)
        chosen.append(apart[place].columns)
        _join(groups, chosen[-1])
    for i, pair in enumerate(chosen):
        _, left = yield MeasureTable(pair, mechanism.sigma_for(left / (len(chosen) - i)))


def _join(groups: dict[int, set[int]], columns: Iterable[int]) -> None:
    """Put columns that are measured together into one group."""
    merged = set().union(*(groups[c] for c in columns))
    for column in merged:
        groups[column] = merged


def _aim(design: SynthDesign, mechanism: AdaptiveTables) -> TableStepper:
    """Choose the table that the model misses most, measure it, fit again (AIM, McKenna and others 2022)."""
    tables, left = yield from _certain(design, mechanism)
    fitted = fit(tables, design.sizes, design.zeros, steps=_QUICK)
    workload = design.workload()
    rho = design.round_rho(mechanism)
    while left > 0:
        last = left < 2 * rho
        if last:
            rho = left
        sigma = mechanism.sigma_for(rho * _MEASURING)
        share = float((mechanism.rho - left + (left if last else 0)) / mechanism.rho)
        allowed = _allowed(design, fitted, workload, share)
        candidates = [_candidate(fitted.model, c, workload[c], float(sigma)) for c in allowed]
        place, left = yield ChooseTable(candidates, mechanism.epsilon_for(rho * (1 - _MEASURING)))
        columns = candidates[place].columns
        if last:
            sigma = mechanism.sigma_for(left)
        del candidates
        noisy, left = yield MeasureTable(columns, sigma)
        tables.append(_measured(columns, sigma, noisy))
        if last:
            return
        before = fitted.model.table(columns)
        fitted = fit(tables, design.sizes, design.zeros, start=fitted, steps=_QUICK)
        moved = float(np.abs(fitted.model.table(columns) - before).sum())
        if moved <= NOISE_L1 * float(sigma) * design.cells(columns):
            rho *= 4


def _allowed(
    design: SynthDesign, fitted: FittedModel, workload: dict[Columns, int], share: float
) -> list[Columns]:
    """Return the tables that may be chosen: inside a clique, or the model stays within its share."""
    measured = list(fitted.potentials)
    found = [
        c for c in workload if fitted.model.tree.home(c) is not None or design.fits([*measured, c], share)
    ]
    return found or [(i,) for i in range(len(design.sizes))]
