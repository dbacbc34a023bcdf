"""How a surface is shown: as text, as figures, and as one HTML file.

The text for terminals and notebooks is a small map of characters, or the largest regions. Figures show counts
on a map; regions that cannot be told from 0 are hatched. The offline map is one HTML file with its own
picture, script and policy, and no network.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import struct
import zlib
from dataclasses import replace
from functools import partial
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.maps._regions import BoxRegions, GridRegions
from tacit.maps._surface import facts_line
from tacit.report import short_percent
from tacit.show import Figure, RegionMap, chosen, preview, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tacit.maps._regions import Regions
    from tacit.maps._surface import Surface
    from tacit.maps._surface_difference import SurfaceDifference


_LISTED = 12  # regions
_LAYERS = {"n": "points in a region (noisy)", "density": "points per km²"}
_TITLES = {"n": "points in", "density": "points per km² in"}
_WIDE = 1000.0  # the width of the drawing, in its own units
_FEW = 1000  # regions whose borders are drawn
_RAMP = np.array([[255, 255, 255], [254, 227, 145], [254, 153, 41], [204, 76, 2], [102, 37, 6]], dtype=float)


def surface_text(surface: Surface, marks: tuple[str, ...]) -> str:
    """Write the total, a map of a grid, and the largest regions."""
    total = surface.total
    head = f"{surface.regions.words}, {total.value:,.0f} points [{total.low:,.0f}, {total.high:,.0f}]"
    each = f"each region within {surface.half_widths.max():,.3g} at {short_percent(surface.confidence)}"
    lines = [f"{head}; {each}"]
    if isinstance(surface.regions, GridRegions):
        lines += preview(surface.figures("n")[0].panels[0])
    else:
        lines_shown = surface.table if len(surface) <= _LISTED else surface.top(_LISTED)
        lines.append(replace(lines_shown, left_out=()).text())
    lines += [*surface.notes, *(mark for mark in marks if mark not in surface.notes)]
    return "\n".join(visible(line) if "\n" not in line else line for line in lines)


def surface_html(surface: Surface, marks: tuple[str, ...]) -> str:
    """Write the same for a notebook."""
    return f"<pre>{escape(surface_text(surface, marks))}</pre>"


def surface_figures(surface: Surface, layer: str | None) -> tuple[Figure, ...]:
    """Return the counts and the densities, with what the noise hides hatched."""
    return chosen(layer, {name: partial(_surface_figure, surface, name) for name in _LAYERS})


def _surface_figure(surface: Surface, layer: str) -> Figure:
    values = surface.counts / (surface.regions.areas if layer == "density" else 1.0)
    panel = _map(surface.regions, values, _lowest(surface) <= 0, _LAYERS[layer])
    title = f"{_TITLES[layer]} {surface.regions.words}"
    return Figure(title, (panel,), (_hatched(surface.confidence),))


def layers_figure(surface: Surface, title: str) -> Figure:
    """Return the counts, and beside them the lower ends of their intervals, in the same colours."""
    low = _lowest(surface)
    grid = isinstance(surface.regions, GridRegions)
    size = 1.0 if grid else surface.regions.areas  # leaves differ in size
    label = "points in a cell" if grid else "points per km²"
    level = f"{short_percent(surface.confidence)} interval"
    heads = (f"estimate (hatched: the {level} contains 0)", f"at least (lower end of the {level})")
    ends = (0.0, max(float((surface.counts / size).max()), 1e-9))
    panels = tuple(
        _map(surface.regions, values / size, low <= 0, label, ends, head)
        for head, values in zip(heads, (surface.counts, np.maximum(low, 0)), strict=True)
    )
    return Figure(title, panels, across=2)


def difference_figure(difference: SurfaceDifference) -> Figure:
    """Return differences around white, with those that the noise may explain hatched."""
    cells = difference["n"]
    low, high = (np.array(ends, dtype=np.float64) for ends in (cells.low, cells.high))
    top = max(float(np.abs(difference.counts).max()), 1e-9)
    unclear = (low <= 0) & (high >= 0)
    label = "first minus second (noisy)"
    panel = _map(difference.regions, difference.counts, unclear, label, (-top, top))
    title = f"first minus second in {difference.regions.words}"
    return Figure(title, (panel,), (_hatched(difference.confidence),))


def _lowest(surface: Surface) -> NDArray[np.float64]:
    low, _ = surface._intervals()  # noqa: SLF001 - the surface's own figure
    return low


def _hatched(confidence: float) -> str:
    return f"hatched: the {short_percent(confidence)} interval contains 0"


def _map(
    regions: Regions, values: NDArray[np.float64], unclear: NDArray[np.bool_], label: str,
    ends: tuple[float, float] | None = None, title: str = "",
) -> RegionMap:  # fmt: skip
    keys = list(regions.keys.values())

    def name(i: int) -> str:
        return ", ".join(f"{one[i]:.6g}" if isinstance(one[i], float) else str(one[i]) for one in keys)

    ends = ends or (0.0, max(float(values.max()), 1e-9))
    if isinstance(regions, GridRegions):
        lat, lon = regions.box.edges(*regions.shape)
        return RegionMap((), values, name, label, unclear, ends, (np.asarray(lon), np.asarray(lat)), title)
    shapes = tuple(_rings(outline) for outline in regions.outlines())
    return RegionMap(shapes, values, name, label, unclear, ends, title=title)


def _rings(outline: Any) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Return the rings of a GeoJSON polygon, or of several."""
    parts = [outline["coordinates"]] if outline["type"] == "Polygon" else outline["coordinates"]
    return tuple(tuple((float(lon), float(lat)) for lon, lat, *_ in ring) for part in parts for ring in part)


def surface_page(surface: Any, facts: Mapping[str, Any], *, title: str) -> str:
    """Return the page: grids as a picture of one dot for each cell, other regions as outlines.

    Guarantee: the page holds what the surface holds and nothing else. Its policy allows its own style and
    script by their digests, and pictures that stand in the file.
    """
    low, high = surface._intervals()  # noqa: SLF001 - the surface's own page
    boxes = surface.regions.boxes
    (south, west), (north, east) = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    shrink = max(math.cos(math.radians((south + north) / 2)), 0.05)
    height = _WIDE * float((north - south) / ((east - west) * shrink))
    grid = isinstance(surface.regions, GridRegions)
    shade = surface.counts if grid else surface.counts / surface.regions.areas  # leaves differ in size
    colours, unclear = _colours(shade), low <= 0
    frame = (south, west, north, east, height)
    picture = (
        _pictures(surface, colours, unclear, height) if grid else _outlines(surface, colours, unclear, frame)
    )
    data = {
        "box": [float(side) for side in (south, west, north, east)],
        "width": _WIDE, "height": height, "shape": list(surface.regions.shape) if grid else None,
        "n": _rounded(surface.counts), "low": _rounded(low), "high": _rounded(high),
        "confidence": surface.confidence, "names": _names(surface),
    }  # fmt: skip
    parts = {
        "@TITLE@": html.escape(title),
        "@META@": html.escape(json.dumps(dict(facts), allow_nan=False)),
        "@FACTS@": html.escape(facts_line(facts) or "A private surface."),
        "@LEGEND@": _legend(_top(shade), "points in a cell" if grid else "points per km²"),
        "@ERROR@": html.escape(_error(surface)),
        "@UNIT@": html.escape(str(facts.get("unit") or "person")),
        "@NOTES@": "".join(
            f'<p class="soft">{html.escape(str(note))}</p>' for note in facts.get("notes", ())
        ),
        "@WIDTH@": f"{_WIDE:g}",
        "@HEIGHT@": f"{height:.3f}",
        "@LINES@": "" if len(surface) <= _FEW else "many",
        "@DRAWN@": picture,
        "@DATA@": json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
    }
    page = files("tacit.maps").joinpath("map.html").read_text(encoding="utf-8")
    page = re.sub("|".join(parts), lambda mark: parts[mark.group()], page)
    return page.replace("@POLICY@", _policy(page), 1)


def _policy(page: str) -> str:
    """Return the content security policy: own style and script by their digests, pictures in the file."""
    [style] = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    [script] = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    return (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _top(counts: NDArray[np.float64]) -> float:
    """Return the count of the darkest colour."""
    return max(float(np.max(counts)), 1e-9)


def _colours(counts: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return red, green and blue of each region; the root of the count spreads small counts."""
    at = np.sqrt(np.clip(counts / _top(counts), 0, 1)) * (len(_RAMP) - 1)
    below = np.minimum(at.astype(int), len(_RAMP) - 2)
    part = (at - below)[:, None]
    return np.asarray((_RAMP[below] * (1 - part) + _RAMP[below + 1] * part).round().astype(np.uint8))


def _pale(colours: NDArray[np.uint8], unclear: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the colours, with those of regions that may be empty nearer to white."""
    pale = 255 - (255 - colours.astype(int)) * 7 // 20
    return np.where(unclear[:, None], pale, colours).astype(np.uint8)


def _legend(top: float, of: str) -> str:
    """Return the colours with their values; each step has the same width, because colours follow the root."""
    steps = len(_RAMP) - 1
    stops = "".join(
        f'<stop offset="{i / steps:g}" stop-color="#{int(red):02x}{int(green):02x}{int(blue):02x}" />'
        for i, (red, green, blue) in enumerate(_RAMP)
    )
    ends = {0: "start", steps: "end"}
    marks = "".join(
        f'<text x="{270 * i / steps + 1:g}" y="28" text-anchor="{ends.get(i, "middle")}">'
        f"{'0 or less' if i == 0 else format(top * (i / steps) ** 2, '.3g')}</text>"
        for i in (0, *range(2, steps + 1))
    )
    return (
        f'<svg id="legend" viewBox="0 0 272 46" role="img" aria-label="{of}: white is 0 or less, '
        f'dark brown is {top:.3g}"><defs><linearGradient id="ramp">{stops}</linearGradient></defs>'
        f'<rect x="1" y="1" width="270" height="13" fill="url(#ramp)" stroke="#56606b" />{marks}'
        f'<text x="136" y="43" text-anchor="middle">{of}</text></svg>'
    )


def _error(surface: Any) -> str:
    """Say how far a region may lie from the truth."""
    half = surface.half_widths
    smallest, largest = f"{half.min():,.3g}", f"{half.max():,.3g}"
    far = largest if smallest == largest else f"{smallest} to {largest}"
    level = short_percent(surface.confidence)
    return f"a region lies within {far} points of its exact count with {level} confidence"


def _pictures(surface: Any, colours: NDArray[np.uint8], unclear: NDArray[np.bool_], height: float) -> str:
    """Draw a grid twice: cells that may be empty pale, and white."""
    rows, columns = surface.regions.shape
    pale = _pale(colours, unclear)
    white = np.where(unclear[:, None], np.uint8(255), colours)
    images = []
    for name, values, visibility in (("estimates", pale, "visible"), ("certain", white, "hidden")):
        data = base64.b64encode(png_of(values.reshape(rows, columns, 3)[::-1])).decode()
        images.append(
            f'<image id="{name}" x="0" y="0" width="{_WIDE:g}" height="{height:.3f}" '
            f'visibility="{visibility}" '
            f'preserveAspectRatio="none" href="data:image/png;base64,{data}" />'
        )
    return "".join(images)


def _outlines(
    surface: Any, colours: NDArray[np.uint8], unclear: NDArray[np.bool_],
    frame: tuple[float, float, float, float, float],
) -> str:  # fmt: skip
    """Draw every other region as a path."""
    south, west, north, east, height = frame
    boxes = isinstance(surface.regions, BoxRegions)
    paths = []
    fills = _pale(colours, unclear)
    for i, outline in enumerate(surface.regions.outlines()):
        parts = [outline["coordinates"]] if outline["type"] == "Polygon" else outline["coordinates"]
        rings = []
        for ring in (ring for part in parts for ring in part):
            at = np.asarray(ring, dtype=np.float64)[:, :2]
            x, y = (at[:, 0] - west) / (east - west) * _WIDE, (north - at[:, 1]) / (north - south) * height
            if boxes:
                rings.append(f"M{x[0]:.2f} {y[0]:.2f}H{x[1]:.2f}V{y[2]:.2f}H{x[0]:.2f}Z")
            else:
                rings.append("M" + "L".join(f"{a:.2f} {b:.2f}" for a, b in zip(x, y, strict=True)) + "Z")
        red, green, blue = fills[i].tolist()
        kind = ' class="unclear"' if unclear[i] else ""
        paths.append(
            f'<path data-i="{i}"{kind} fill="#{red:02x}{green:02x}{blue:02x}" fill-rule="evenodd" '
            f'd="{"".join(rings)}" />'
        )
    return "".join(paths)


def png_of(pixels: NDArray[np.uint8]) -> bytes:
    """Write an array of rows, columns and three colours as a PNG file.

    Examples
    --------
    >>> png_of(np.zeros((2, 3, 3), dtype=np.uint8))[1:4]
    b'PNG'
    """
    rows, columns, _ = pixels.shape

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    lines = np.zeros((rows, 1 + 3 * columns), dtype=np.uint8)  # each line begins with its filter, none
    lines[:, 1:] = pixels.reshape(rows, -1)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def _names(surface: Any) -> list[str] | None:
    """Return what regions are called, where they have names."""
    keys = surface.regions.keys
    columns = [values for name, values in keys.items() if name not in {"south", "west", "north", "east"}]
    return [str(one) for one in columns[0]] if columns else None


def _rounded(values: NDArray[np.float64]) -> list[float]:
    """Return numbers with one decimal; whole ones as such."""
    return [int(one) if one == int(one) else one for one in np.round(values, 1).tolist()]
