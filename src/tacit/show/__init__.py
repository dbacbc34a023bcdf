"""Figures: what a result shows, as plain data, and the one place where it is drawn.

A result answers `Figure` objects: charts, matrices and maps in plain numbers and words. This room draws them
as SVG for pages, as text for terminals, and with matplotlib (extra ``plot``) as pictures and files.

In reading order: `_figures` (the data), `_scales`, `_svg`, `_text`, `_matplotlib` (the three drawings),
`_safe_text`.
"""

from tacit.show._figures import (
    BLUE,
    GREEN,
    GREY,
    MOST_SERIES,
    ORANGE,
    RED,
    Chart,
    ChartAxis,
    ChartSeries,
    Drawn,
    Figure,
    Mark,
    Matrix,
    Panel,
    RegionMap,
    chosen,
    needed_package,
    numbers,
    shortened,
    together,
)
from tacit.show._safe_text import visible
from tacit.show._scales import days_of, decimals, rounded_end, shown
from tacit.show._svg import meter_svg
from tacit.show._text import draw_curve, preview

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "MOST_SERIES",
    "ORANGE",
    "RED",
    "Chart",
    "ChartAxis",
    "ChartSeries",
    "Drawn",
    "Figure",
    "Mark",
    "Matrix",
    "Panel",
    "RegionMap",
    "chosen",
    "days_of",
    "decimals",
    "draw_curve",
    "meter_svg",
    "needed_package",
    "numbers",
    "preview",
    "rounded_end",
    "shortened",
    "shown",
    "together",
    "visible",
]
