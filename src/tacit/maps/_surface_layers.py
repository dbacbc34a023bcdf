"""The two layers of a surface in one picture: the estimates, and what is there despite the noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.maps._regions import GridRegions
from tacit.maps._surface_files import facts_line
from tacit.maps._surface_picture import draw_regions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.picture import Picture


def plot_layers(surface: Any, facts: Mapping[str, Any]) -> Picture:
    """Draw the counts, and beside them the lower ends of their intervals, in the same colours."""
    from tacit.picture import Picture

    boxes = surface.regions.boxes
    (south, west), (north, east) = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    ratio = 1 / max(math.cos(math.radians((south + north) / 2)), 0.05)
    high = 5.0 * (north - south) / (east - west) * ratio
    picture = Picture(11.0, min(max(high + 1.2, 3.0), 9.0))
    axes: Any = picture.subplots(1, 2, sharex=True, sharey=True)
    drawn: Any = None
    low, _ = surface._intervals()  # noqa: SLF001 - the surface's own picture
    grid = isinstance(surface.regions, GridRegions)
    size = 1.0 if grid else surface.regions.areas  # leaves differ in size
    top = max(float((surface.counts / size).max()), 1e-9)
    level = f"{surface.confidence * 100:g} % interval"
    said = (f"estimate (hatched: the {level} contains 0)", f"at least (lower end of the {level})")
    for one, values, words in zip(axes, (surface.counts, np.maximum(low, 0)), said, strict=True):
        drawn = draw_regions(one, surface, values / size)
        drawn.set_clim(0, top)
        one.set(xlim=(west, east), ylim=(south, north), xlabel="longitude", aspect=ratio)
        one.set_title(words, fontsize=9)
    axes[0].set_ylabel("latitude")
    picture.colorbar(drawn, ax=axes, label="points in a cell" if grid else "points per km²", shrink=0.8)
    if line := facts_line(facts):
        axes[0].annotate(line, (0, 1), (0, 22), "axes fraction", "offset points", fontsize=8)
    return picture
