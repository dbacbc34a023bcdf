"""The figures of surfaces: counts on a map, and regions that cannot be told from 0 hatched."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.maps._regions import GridRegions
from tacit.show import Figure, RegionMap, chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.maps._difference import SurfaceDifference
    from tacit.maps._regions import Regions
    from tacit.maps._surface import Surface

_LAYERS = {"n": "points in a region (noisy)", "density": "points per km²"}


def surface_figures(surface: Surface, what: str | None) -> tuple[Figure, ...]:
    """Return the counts and the densities, with what the noise hides hatched."""
    return chosen(what, {name: partial(_surface_figure, surface, name) for name in _LAYERS})


def _surface_figure(surface: Surface, layer: str) -> Figure:
    values = surface.counts / (surface.regions.areas if layer == "density" else 1.0)
    panel = _map(surface.regions, values, _lowest(surface) <= 0, _LAYERS[layer])
    return Figure(surface.regions.words, (panel,), (_hatched(surface.confidence),))


def layers_figure(surface: Surface, title: str) -> Figure:
    """Return the counts, and beside them the lower ends of their intervals, in the same colours."""
    low = _lowest(surface)
    grid = isinstance(surface.regions, GridRegions)
    size = 1.0 if grid else surface.regions.areas  # leaves differ in size
    label = "points in a cell" if grid else "points per km²"
    level = f"{surface.confidence * 100:g} % interval"
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
    return Figure(difference.regions.words, (panel,), (_hatched(difference.confidence),))


def _lowest(surface: Surface) -> NDArray[np.float64]:
    low, _ = surface._intervals()  # noqa: SLF001 - the surface's own figure
    return low


def _hatched(confidence: float) -> str:
    return f"hatched: the {confidence * 100:g} % interval contains 0"


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
