"""Quantiles from noisy running totals: the cells in which the true quantile may lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.core import AnswerTable, Cells
from tacit.mechanisms import linear_half_width, weighted_half_widths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import Value
    from tacit.tables._ordered_counts import OrderedCounts


def kept_cells(running: NDArray[np.float64], q: float, widths: NDArray[np.float64]) -> tuple[int, int]:
    """Return the first and the last cell in which the quantile may lie.

    Cell j holds the quantile if F(j) >= q n and F(j - 1) <= q n. It is kept unless F(j) < q n - c or
    F(j - 1) > q n + c, where c is the half-width of F - q n at that place. Of the true cell either happens
    with at most half of the missing confidence. If no cell is kept, the nearest one is.

    Parameters
    ----------
    running
        F before the first cell, after the first, ..., after the last, which is n.
    q
        The share.
    widths
        The half-width of F - q n at each place.

    Examples
    --------
    >>> kept_cells(np.array([0.0, 10, 40, 60, 100]), 0.5, np.full(5, 5.0))
    (2, 2)
    >>> kept_cells(np.array([0.0, 10, 47, 60, 100]), 0.5, np.full(5, 5.0))
    (1, 2)
    """
    away = running - q * running[-1]
    below = away[1:] < -widths[1:]
    above = away[:-1] > widths[:-1]
    kept = np.flatnonzero(~(below | above))
    if len(kept):
        return int(kept[0]), int(kept[-1])
    miss = np.maximum(-away[1:] - widths[1:], away[:-1] - widths[:-1])
    nearest = int(miss.argmin())
    return nearest, nearest


def quantile_table(counts: OrderedCounts, wanted: Sequence[float], *, population: bool) -> AnswerTable:
    """Return the quantiles of each group, with the ends of the cells in which they may lie."""
    sums, rare = counts.strategy.sums, 1 - counts.confidence
    z = float(linear_half_width(rare, np.zeros((1, 1)), np.ones(1))[0])
    lines: list[tuple[Value, float, Value, Value, Value]] = []
    for q in wanted:
        noise = weighted_half_widths(counts.law, sums - q * sums[-1], rare)
        for group, running, rising in zip(counts.groups, counts.running, counts.rising, strict=True):
            sampling = z * np.sqrt(max(running[-1], 1.0) * q * (1 - q)) if population else 0.0
            first, last = kept_cells(running, q, np.hypot(noise, sampling))
            value = _value(counts, rising, q, first, last)
            lines.append(
                (group, q, value, _edge(counts, first, after=False), _edge(counts, last, after=True))
            )
    groups, shares, values, lows, highs = (tuple(part) for part in zip(*lines, strict=True))
    keys: dict[str, tuple[Value, ...]] = {counts.by: groups} if counts.by else {}
    keys["q"] = shares
    covers = "noise and sampling" if population else "noise"
    note = (
        f"the interval covers the {covers}, in whole cells; a value inside a cell assumes that its rows are "
        "spread evenly"
    )
    none = (None,) * len(lines)
    if all(isinstance(one, int | float) for part in (values, lows, highs) for one in part):
        columns = {counts.column: Cells(values, lows, highs)}
    else:
        parts = (("", values), ("_from", lows), ("_to", highs))
        columns = {counts.column + end: Cells(part, none, none) for end, part in parts}
    return AnswerTable(keys, columns, counts.confidence, {counts.column: note}, counts.left_out)


def _edge(counts: OrderedCounts, cell: int, *, after: bool) -> Value:
    """Return an end of a cell: a cut, or the value itself."""
    return counts.cuts[cell + after] if counts.cuts else counts.places[cell]


def _value(counts: OrderedCounts, rising: NDArray[np.float64], q: float, first: int, last: int) -> Value:
    """Return the quantile of the rising running totals, inside the cells that are kept."""
    wanted = q * rising[-1]
    cell = min(max(int(np.searchsorted(rising[1:], wanted)), first), last)
    low, high = _edge(counts, cell, after=False), _edge(counts, cell, after=True)
    if not counts.cuts or not isinstance(low, float) or not isinstance(high, float):
        return low
    inside = rising[cell + 1] - rising[cell]
    share = (wanted - rising[cell]) / inside if inside > 0 else 0.5
    return low + (high - low) * float(min(max(share, 0.0), 1.0))
