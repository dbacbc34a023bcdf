"""A surface drawn as a map: counts in colours, and regions that cannot be told from 0 hatched."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.maps._regions import GridRegions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.maps._surface import Surface
    from tacit.picture import Picture

__all__ = ["draw_regions", "plot_surface"]

_LAYERS = ("n", "density")
_HATCHED = 4096  # regions; more would be drawn too slowly
_BORDERED = 1000  # regions of different sizes; the borders and hatches of more would hide their colours


def plot_surface(
    surface: Surface, what: str | None, ax: Axes | None, certificate: Certificate
) -> Axes | Picture:
    """Draw counts or densities, with what the noise hides hatched."""
    from tacit.picture import Picture

    layer = "n" if what is None else what
    if layer not in _LAYERS:
        raise TacitError(
            "unknown-column", f"the surface has no layer {layer!r}", fix=Choose(_LAYERS, given=str(layer))
        )
    south, west = surface.regions.boxes[:, :2].min(axis=0)
    north, east = surface.regions.boxes[:, 2:].max(axis=0)
    ratio = 1 / max(math.cos(math.radians((south + north) / 2)), 0.05)
    picture = None
    if ax is None:
        high = 7.0 * 0.8 * (north - south) / (east - west) * ratio
        picture = Picture(7.0, min(max(high + 0.8, 2.5), 9.0))
        axes: Any = picture.subplots()
    else:
        axes = ax
    counts = surface.counts / (surface.regions.areas if layer == "density" else 1.0)
    drawn = draw_regions(axes, surface, counts)
    label = "points per km²" if layer == "density" else "points in a region (noisy)"
    axes.figure.colorbar(drawn, ax=axes, label=label, shrink=0.85)
    axes.set(xlim=(west, east), ylim=(south, north), xlabel="longitude", ylabel="latitude", aspect=ratio)
    hatched = f"hatched: the {surface.confidence * 100:g} % interval contains 0"
    axes.set_title(f"{surface.regions.words}; {hatched}", fontsize=9)
    del certificate
    return axes if picture is None else picture


def draw_regions(axes: Any, surface: Surface, counts: Any) -> Any:
    """Draw the regions in colours that are 0 at white, and hatch those that may be empty."""
    low, _ = surface._intervals()  # noqa: SLF001 - the surface's own picture
    unclear = low <= 0
    top = max(float(counts.max()), 1e-9)
    drawn: Any
    if isinstance(surface.regions, GridRegions):
        lat, lon = surface.regions.box.edges(*surface.regions.shape)
        shown = counts.reshape(surface.regions.shape)
        drawn = axes.pcolormesh(lon, lat, shown, cmap="YlOrBr", vmin=0, vmax=top)
    else:
        many = len(surface) > _BORDERED
        border: Any = (
            {"edgecolor": "face", "linewidth": 0.1} if many else {"edgecolor": "0.6", "linewidth": 0.4}
        )
        drawn = _patches(surface, np.ones(len(surface), dtype=bool), cmap="YlOrBr", **border)
        drawn.set_array(counts)
        drawn.set_clim(0, top)
        axes.add_collection(drawn)
    most = _HATCHED if isinstance(surface.regions, GridRegions) else _BORDERED
    if len(surface) <= most and unclear.any():
        axes.add_collection(
            _patches(surface, unclear, facecolor="none", edgecolor="0.75", linewidth=0, hatch="////")
        )
    return drawn


def _patches(surface: Surface, chosen: Any, **style: Any) -> Any:
    """Return some regions as one collection."""
    from matplotlib.collections import PatchCollection

    outlines = surface.regions.outlines()
    return PatchCollection([_patch(outlines[i]) for i in np.flatnonzero(chosen)], **style)


def _patch(outline: Any) -> Any:
    """Turn a GeoJSON polygon, holes included, into a path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    parts = [outline["coordinates"]] if outline["type"] == "Polygon" else outline["coordinates"]
    rings = [np.asarray(ring, dtype=np.float64)[:, :2] for part in parts for ring in part]
    return PathPatch(Path.make_compound_path(*(Path(ring, closed=True) for ring in rings)))
