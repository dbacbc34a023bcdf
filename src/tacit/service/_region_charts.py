"""The chart of a surface: its regions as a map, darker where more was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tacit.service._chart_panels import ACCENT, AXIS, WIDTH, Chart, drawing
from tacit.service._scales import shown
from tacit.service._svg import element, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: How many regions a map draws; a surface with more has no picture here, only its values.
MOST_REGIONS: Final = 4096
_LISTED = 20
_MOST_HEIGHT = 640.0
_MOST_CORNERS = 200_000


def region_chart(surface: Any) -> Chart | None:
    """Draw a surface; None if it has too many regions.

    Parameters
    ----------
    surface
        The content of a release: a `tacit.maps.Surface`.

    Examples
    --------
    >>> import tacit as tc
    >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
    ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
    >>> chart = region_chart(sites.grid(4, 4).plan(epsilon=1).release().content)
    >>> chart.title, str(chart.drawing).count("<path")
    ('Counts in 4 x 4 cells', 16)
    """
    if len(surface) > MOST_REGIONS:
        return None
    shapes = [list(_rings(one)) for one in surface.regions.outlines()]
    corners = [corner for shape in shapes for ring in shape for corner in ring]
    if not corners or len(corners) > _MOST_CORNERS:
        return None
    west, east = min(x for x, _ in corners), max(x for x, _ in corners)
    south, north = min(y for _, y in corners), max(y for _, y in corners)
    scale = min((WIDTH - 2) / max(east - west, 1e-9), _MOST_HEIGHT / max(north - south, 1e-9))
    counts = [float(one) for one in surface.counts]
    top = max([*counts, 1e-9])

    def path(shape: Sequence[Sequence[tuple[float, float]]]) -> str:
        return "".join(
            "M"
            + "L".join(f"{number(1 + (x - west) * scale)} {number(1 + (north - y) * scale)}" for x, y in ring)
            + "Z"
            for ring in shape
        )

    parts = [
        element(
            "path", d=path(shape), class_="c-band", fill=ACCENT, stroke=AXIS, stroke_width="0.3",
            fill_opacity=f"{min(1.0, max(0.0, count / top)):.3f}", fill_rule="evenodd",
        )
        for shape, count in zip(shapes, counts, strict=True)
    ]  # fmt: skip
    title = f"Counts in {surface.regions.words}"
    summary = f"Darker regions have larger counts; the darkest stands for {shown(top)}. North is at the top."
    header, rows, numeric = _table(surface.top(_LISTED))
    return Chart(
        drawing(title, summary, 2 + (north - south) * scale, parts), title, summary, header, rows, numeric
    )


def _rings(geometry: Any) -> Iterator[list[tuple[float, float]]]:
    """Return the rings of a polygon, or of several."""
    several = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
    for polygon in several:
        for ring in polygon:
            yield [(float(corner[0]), float(corner[1])) for corner in ring]


def _table(lines: Any) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], tuple[int, ...]]:
    """Return the regions with the largest counts."""
    keys = [lines.shown_keys(name) for name in lines.keys]
    cells = next(iter(lines.columns.values()))
    values = [[shown(float(one)) for one in end] for end in (cells.value, cells.low, cells.high)]
    rows = tuple(tuple(row) for row in zip(*keys, *values, strict=True))[:_LISTED]
    first = len(lines.keys)
    return (*lines.keys, "n", "n, low", "n, high"), rows, (first, first + 1, first + 2)
