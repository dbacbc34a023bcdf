"""A surface for a terminal and for a notebook: a small map of characters, and the largest regions."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from tacit.core import visible
from tacit.maps._regions import GridRegions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.maps._surface import Surface

_SHADES = " .:-=+*#%@"
_HIGH, _WIDE = 20, 60
_LISTED = 12  # regions


def surface_text(surface: Surface, marks: tuple[str, ...]) -> str:
    """Write the total, a map of a grid, and the largest regions."""
    total = surface.total
    head = f"{surface.regions.words}, {total.value:,.0f} points [{total.low:,.0f}, {total.high:,.0f}]"
    each = f"each region within {surface.half_widths.max():,.3g} at {surface.confidence * 100:g} %"
    lines = [f"{head}; {each}"]
    if isinstance(surface.regions, GridRegions):
        lines += _map(surface.counts.reshape(surface.regions.shape))
    else:
        shown = surface.table if len(surface) <= _LISTED else surface.top(_LISTED)
        lines.append(replace(shown, left_out=()).text())
    lines += [*surface.notes, *(mark for mark in marks if mark not in surface.notes)]
    return "\n".join(visible(line) if "\n" not in line else line for line in lines)


def surface_html(surface: Surface, marks: tuple[str, ...]) -> str:
    """Write the same for a notebook."""
    return f"<pre>{escape(surface_text(surface, marks))}</pre>"


def _map(counts: NDArray[np.float64]) -> list[str]:
    """Draw a grid, north at the top, several cells in one character if it is large."""
    rows, columns = (-(-size // most) for size, most in zip(counts.shape, (_HIGH, _WIDE), strict=True))
    step_y, step_x = max(rows, 1), max(columns, 1)
    summed = np.add.reduceat(counts, np.arange(0, counts.shape[0], step_y), axis=0)
    summed = np.add.reduceat(summed, np.arange(0, counts.shape[1], step_x), axis=1)[::-1]
    cells = np.add.reduceat(np.ones(counts.shape), np.arange(0, counts.shape[0], step_y), axis=0)
    cells = np.add.reduceat(cells, np.arange(0, counts.shape[1], step_x), axis=1)[::-1]
    summed *= step_y * step_x / cells  # the last ones may stand for fewer cells
    top = max(float(summed.max()), 1.0)
    level = np.clip(np.ceil(summed / top * (len(_SHADES) - 1)), 0, len(_SHADES) - 1).astype(int)
    wide = 2 if summed.shape[1] * 2 <= _WIDE else 1
    drawn = ["|" + "".join(_SHADES[i] * wide for i in line) + "|" for line in level]
    border = "+" + "-" * (summed.shape[1] * wide) + "+"
    each = "a cell" if step_y == step_x == 1 else f"{step_y} x {step_x} cells"
    return [border, *drawn, border, f"north at the top; {_SHADES[-1]} stands for {top:,.0f} in {each}"]
