"""The report of a release of synthetic rows: what was measured, how well rows agree, what is not covered."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from tacit.report import Report, ReportTable
from tacit.synth._facts import METHODS, table_name
from tacit.synth._intervals import covering, half_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.synth._fit import NoisyTable
    from tacit.synth._synthetic_table import SyntheticTable

_FAR = 1.5  # a model that is further from a measurement, in units of its noise, is too small
_LISTED = 60


def distance(held: SyntheticTable, table: NoisyTable) -> float:
    """Return how far rows are from a measurement: the root mean square over its cells, in units of the noise.

    About 1 or less where only noise is between them.
    """
    if held.model is not None:
        expected = held.model.table(table.columns)
    else:
        codes = held.codes()
        at = np.ravel_multi_index(tuple(codes[:, c] for c in table.columns), table.counts.shape)
        counts = np.bincount(at, minlength=table.counts.size)
        expected = counts.reshape(table.counts.shape).astype(np.float64)
    return float(np.sqrt(np.mean((expected - table.counts) ** 2))) / table.sigma


def summary_of(held: SyntheticTable) -> Report:
    """Return what was measured, without a fit."""
    return Report(_title(held), _lead(held), (_listed(held, None),), tuple(_notes(held)))


def report_of(held: SyntheticTable) -> Report:
    """Return the whole report; it needs the fit, and nothing but the release."""
    measured = _listed(held, lambda table: distance(held, table))
    far = [t for t in held.measured[:_LISTED] if distance(held, t) > _FAR]
    notes = _notes(held)
    if far:
        names = ", ".join(dict.fromkeys(table_name(held.columns, t.columns) for t in far))
        notes.insert(
            0,
            f"the rows miss {names} by more than {_FAR} times the noise: the model is "
            "too small (a larger size helps), or what was declared impossible does occur",
        )
    return Report(_title(held), _lead(held), (measured,), tuple(notes))


def _title(held: SyntheticTable) -> str:
    many = max(0, round(held.total))
    return f"Synthetic rows: about {many:,} rows, {len(held.columns)} columns"


def _lead(held: SyntheticTable) -> tuple[str, ...]:
    z = NormalDist().inv_cdf((1 + held.confidence) / 2)
    chosen = sum(step[0] == "choice" for step in held.steps)
    said = f"{METHODS[held.design.method]}."
    choices = f" {chosen} choices were made." if chosen else ""
    return (
        f"{said}{choices} The number of rows is noisy: {held.total:,.0f} +/- {z * held.total_error:,.0f}.",
    )


def _listed(held: SyntheticTable, away: Callable[[NoisyTable], float] | None) -> ReportTable:
    """List the measurements in their order."""
    header = ("table", "cells", "+/-", "covers", "cells below 2 sigma")
    rows = []
    for table in held.measured[:_LISTED]:
        width, level = _width(held, table)
        small = int((table.counts < 2 * table.sigma).sum())
        line = [
            table_name(held.columns, table.columns),
            f"{table.counts.size:,}",
            f"{width:,.0f}",
            f"{math.floor(1000 * level + 1e-6) / 10:.1f} %",
            f"{small:,}",
        ]
        rows.append((*line, f"{away(table):.2f}") if away else tuple(line))
    more = len(held.measured) - _LISTED
    title = "Measured tables" + (f" (the first {_LISTED}; {more:,} more)" if more > 0 else "")
    return ReportTable(title, (*header, "distance in sigma") if away else header, tuple(rows))


def _width(held: SyntheticTable, table: NoisyTable) -> tuple[float, float]:
    """Return the half-width of a cell of one measurement and how often it covers; or that from residuals."""
    if held.together is not None:
        return held.together.half_width(table.columns, held.confidence), held.confidence
    return half_width(table.sigma, 1, held.confidence), covering(table.sigma, 1, held.confidence)


def _notes(held: SyntheticTable) -> list[str]:
    covered = f"{held.confidence * 100:.4g} %"
    if held.together is None:
        covered = f"at least {covered} of the time (half-widths are whole numbers; the table says how often)"
    else:
        covered += " of the time"
    notes = [
        (
            f"+/- covers the noise on one measured cell, {covered}. Tables that are neither "
            "measured nor sums of measured tables are not covered: there, the rows follow the model, and no "
            "measurement supports the model. Errors that treat the rows as real data are too small."
        ),
        "Cells below 2 sigma cannot be distinguished from empty cells: small groups are lost first.",
    ]
    if invented := [column.name for column in held.columns if column.invented]:
        notes.append(f"Values of {', '.join(invented)} inside a cell are invented evenly.")
    if held.design.zeros:
        cells = sum(int(mask.sum()) for mask in held.design.zeros.values())
        what = "the combination that was" if cells == 1 else f"one of the {cells:,} combinations that were"
        notes.append(f"No row has {what} declared impossible.")
    return [*notes, *held.left_out]
