"""A surface for a terminal and for a notebook: a small map of characters, and the largest regions."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from tacit.maps._regions import GridRegions
from tacit.show import preview, visible

if TYPE_CHECKING:
    from tacit.maps._surface import Surface

_LISTED = 12  # regions


def surface_text(surface: Surface, marks: tuple[str, ...]) -> str:
    """Write the total, a map of a grid, and the largest regions."""
    total = surface.total
    head = f"{surface.regions.words}, {total.value:,.0f} points [{total.low:,.0f}, {total.high:,.0f}]"
    each = f"each region within {surface.half_widths.max():,.3g} at {surface.confidence * 100:g} %"
    lines = [f"{head}; {each}"]
    if isinstance(surface.regions, GridRegions):
        lines += preview(surface.figures("n")[0].panels[0])
    else:
        shown = surface.table if len(surface) <= _LISTED else surface.top(_LISTED)
        lines.append(replace(shown, left_out=()).text())
    lines += [*surface.notes, *(mark for mark in marks if mark not in surface.notes)]
    return "\n".join(visible(line) if "\n" not in line else line for line in lines)


def surface_html(surface: Surface, marks: tuple[str, ...]) -> str:
    """Write the same for a notebook."""
    return f"<pre>{escape(surface_text(surface, marks))}</pre>"
