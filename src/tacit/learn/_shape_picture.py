"""Shape functions as a picture: one small chart for each feature, with the band of the noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import about_release
from tacit.errors import bad_parameter
from tacit.fixes import Choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.learn._shape_functions import ShapeFunction, ShapeFunctions
    from tacit.picture import Picture

_COLOUR = "#0b7285"
_MOST = 9  # charts in one picture
_WORDS = 8  # bins up to which each is named


def plot_shapes(
    model: ShapeFunctions, what: str | None, ax: Axes | None, certificate: Certificate
) -> Axes | Picture:
    """Draw the shape of one feature, or the shapes of the most important features beside each other."""
    names = tuple(one.feature for one in model.shapes)
    if what is not None and what not in names:
        raise bad_parameter("column", "one of the features", what, fix=Choose(names, given=what))
    ordered = sorted(model.shapes, key=lambda one: -one.importance)
    chosen = [one for one in ordered if what in {None, one.feature}][:_MOST]
    about = about_release("shapes", certificate).replace("$", r"\$")
    title = f"{about}\nlog odds of {model.classes[1]}; the band is the interval for the noise"
    if ax is not None:
        _draw(ax, chosen[0])
        ax.set_title(f"{title}\n{chosen[0].feature}", fontsize=9, loc="left")
        return ax
    from tacit.picture import Picture

    wide = min(3, len(chosen))
    high = math.ceil(len(chosen) / wide)
    picture = Picture(3.2 * wide + 1, 2.4 * high + 1)
    grid: Any = picture.subplots(high, wide, squeeze=False, sharey=True)
    for place, axes in enumerate(grid.flat):
        if place < len(chosen):
            _draw(axes, chosen[place])
            axes.set_title(chosen[place].feature, fontsize=9, loc="left")
        else:
            axes.set_visible(False)
    picture.suptitle(title, fontsize=9, x=0.01, ha="left")
    return picture


def _draw(axes: Axes, one: ShapeFunction) -> None:
    """Draw a step for each bin but the one of missing values, and the band around it."""
    value, error = np.asarray(one.values[:-1]), np.asarray(one.error[:-1])
    edges = np.arange(len(value) + 1) - 0.5
    low, high = np.r_[value - error, 0.0], np.r_[value + error, 0.0]
    low[-1], high[-1] = low[-2], high[-2]
    axes.fill_between(edges, low, high, step="post", color=_COLOUR, alpha=0.25, linewidth=0)
    axes.step(edges, np.r_[value, value[-1]], where="post", color=_COLOUR, linewidth=1.6)
    axes.axhline(0, color="#555555", linewidth=0.8)
    if one.words or len(value) <= _WORDS:
        axes.set_xticks(range(len(value)), one.labels[:-1], rotation=35, ha="right", fontsize=7)
    else:
        every = math.ceil(len(one.cuts) / 6)
        axes.set_xticks(
            edges[1:-1:every], [f"{cut:g}" for cut in one.cuts[::every]], rotation=35, ha="right", fontsize=7
        )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.tick_params(axis="y", labelsize=7)
