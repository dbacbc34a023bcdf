"""A surface drawn as a map: counts in colours, and regions that cannot be told from 0 hatched."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import about_release
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.maps._regions import GridRegions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.maps._difference import SurfaceDifference
    from tacit.maps._regions import Regions
    from tacit.maps._surface import Surface
    from tacit.picture import Picture

_LAYERS = ("n", "density")
_HATCHED = 4096  # regions; more would be drawn too slowly
_BORDERED = 1000  # regions of different sizes; the borders and hatches of more would hide their colours


def plot_surface(
    surface: Surface, what: str | None, ax: Axes | None, certificate: Certificate
) -> Axes | Picture:
    """Draw counts or densities, with what the noise hides hatched."""
    layer = "n" if what is None else what
    if layer not in _LAYERS:
        raise TacitError(
            "unknown-column", f"the surface has no layer {layer!r}", fix=Choose(_LAYERS, given=str(layer))
        )
    axes, picture = _frame(surface.regions, ax)
    counts = surface.counts / (surface.regions.areas if layer == "density" else 1.0)
    drawn = draw_regions(axes, surface, counts)
    label = "points per km²" if layer == "density" else "points in a region (noisy)"
    axes.figure.colorbar(drawn, ax=axes, label=label, shrink=0.85)
    hatched = f"hatched: the {surface.confidence * 100:g} % interval contains 0"
    about = about_release(surface.regions.words, certificate).replace("$", r"\$")
    axes.set_title(f"{about}\n{hatched}", fontsize=9, loc="left")
    return axes if picture is None else picture


def plot_difference(difference: SurfaceDifference, ax: Axes | None) -> Axes | Picture:
    """Draw differences around white, with those that the noise may explain hatched."""
    axes, picture = _frame(difference.regions, ax)
    cells = difference["n"]
    low, high = (np.array(ends, dtype=np.float64) for ends in (cells.low, cells.high))
    top = max(float(np.abs(difference.counts).max()), 1e-9)
    unclear = (low <= 0) & (high >= 0)
    drawn = _coloured(axes, difference.regions, difference.counts, unclear, ("RdBu_r", -top, top))
    axes.figure.colorbar(drawn, ax=axes, label="first minus second (noisy)", shrink=0.85)
    hatched = f"hatched: the {difference.confidence * 100:g} % interval contains 0"
    axes.set_title(f"{difference.regions.words}; {hatched}", fontsize=9)
    return axes if picture is None else picture


def _frame(regions: Regions, ax: Axes | None) -> tuple[Any, Picture | None]:
    """Return axes with the shape of the map, on a new picture if none are given."""
    from tacit.picture import Picture

    south, west = regions.boxes[:, :2].min(axis=0)
    north, east = regions.boxes[:, 2:].max(axis=0)
    ratio = 1 / max(math.cos(math.radians((south + north) / 2)), 0.05)
    picture = None
    axes: Any = ax
    if ax is None:
        high = 7.0 * 0.8 * (north - south) / (east - west) * ratio
        picture = Picture(7.0, min(max(high + 0.8, 2.5), 9.0))
        axes = picture.subplots()
    axes.set(xlim=(west, east), ylim=(south, north), xlabel="longitude", ylabel="latitude", aspect=ratio)
    return axes, picture


def draw_regions(axes: Any, surface: Surface, counts: Any) -> Any:
    """Draw the regions in colours that are 0 at white, and hatch those that may be empty."""
    low, _ = surface._intervals()  # noqa: SLF001 - the surface's own picture
    top = max(float(counts.max()), 1e-9)
    return _coloured(axes, surface.regions, counts, low <= 0, ("YlOrBr", 0.0, top))


def _coloured(
    axes: Any, regions: Regions, counts: Any, unclear: Any, colours: tuple[str, float, float]
) -> Any:
    """Draw numbers in colours between two ends, and hatch those that are unclear."""
    ramp, bottom, top = colours
    drawn: Any
    if isinstance(regions, GridRegions):
        lat, lon = regions.box.edges(*regions.shape)
        drawn = axes.pcolormesh(lon, lat, counts.reshape(regions.shape), cmap=ramp, vmin=bottom, vmax=top)
    else:
        many = len(regions) > _BORDERED
        border: Any = (
            {"edgecolor": "face", "linewidth": 0.1} if many else {"edgecolor": "0.6", "linewidth": 0.4}
        )
        drawn = _patches(regions, np.ones(len(regions), dtype=bool), cmap=ramp, **border)
        drawn.set_array(counts)
        drawn.set_clim(bottom, top)
        axes.add_collection(drawn)
    most = _HATCHED if isinstance(regions, GridRegions) else _BORDERED
    if len(regions) <= most and unclear.any():
        axes.add_collection(
            _patches(regions, unclear, facecolor="none", edgecolor="0.75", linewidth=0, hatch="////")
        )
    return drawn


def _patches(regions: Regions, chosen: Any, **style: Any) -> Any:
    """Return some regions as one collection."""
    from matplotlib.collections import PatchCollection

    outlines = regions.outlines()
    return PatchCollection([_patch(outlines[i]) for i in np.flatnonzero(chosen)], **style)


def _patch(outline: Any) -> Any:
    """Turn a GeoJSON polygon, holes included, into a path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    parts = [outline["coordinates"]] if outline["type"] == "Polygon" else outline["coordinates"]
    rings = [np.asarray(ring, dtype=np.float64)[:, :2] for part in parts for ring in part]
    return PathPatch(Path.make_compound_path(*(Path(ring, closed=True) for ring in rings)))
