"""Pictures of measured tables: bars with intervals, and pairs as heat maps in which noise is hatched."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import about_release, visible
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose
from tacit.synth._facts import table_name
from tacit.synth._table_views import source_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.picture import Picture
    from tacit.synth._model import Columns
    from tacit.synth._synthetic_table import SyntheticTable

_COLOUR = "#0b7285"
_MOST = 9  # charts in one picture
_LETTERS = 14  # of a label


def plot_tables(
    held: SyntheticTable, what: str | None, ax: Axes | None, certificate: Certificate
) -> Axes | Picture:
    """Draw one measured table of one or two columns, or the measured pairs beside each other."""
    found = _drawable(held)
    names = {table_name(held.columns, columns): columns for columns in found}
    if what is not None and what not in names:
        raise bad_parameter("column", "a measured table", what, fix=Choose(tuple(names), given=what))
    pairs = [columns for columns in found if len(columns) == 2]
    chosen = [names[what]] if what is not None else (pairs or found)[:_MOST]
    about = about_release("synthetic rows", certificate).replace("$", r"\$")
    title = f"{about}\nmeasured counts; hatched cells are below 2 standard deviations of the noise"
    if ax is not None:
        _draw(ax, held, chosen[0])
        ax.set_title(f"{title}\n{table_name(held.columns, chosen[0])}", fontsize=9, loc="left")
        return ax
    from tacit.picture import Picture

    wide = min(3, len(chosen))
    high = math.ceil(len(chosen) / wide)
    picture = Picture(3.6 * wide + 1, 3.0 * high + 1)
    grid: Any = picture.subplots(high, wide, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place < len(chosen):
            _draw(axes, held, chosen[place])
            axes.set_title(_plain(table_name(held.columns, chosen[place])), fontsize=9, loc="left")
        else:
            axes.set_visible(False)
    picture.suptitle(title, fontsize=9, x=0.01, ha="left")
    return picture


def _drawable(held: SyntheticTable) -> list[Columns]:
    """Return the measured tables of one or two columns, each once, and the pairs inside larger ones."""
    found: dict[Columns, None] = {}
    for table in held.measured:
        if len(table.columns) <= 2:
            found[table.columns] = None
        else:
            found |= {(a, b): None for a in table.columns for b in table.columns if a < b}
    return list(found)


def _draw(axes: Axes, held: SyntheticTable, columns: Columns) -> None:
    source = source_of(held, columns)
    if source is None:  # pragma: no cover - only measured tables are drawn
        raise TacitError("bad-parameter", "this table was not measured")
    values, sigma = source.counts, source.sigma
    labels = [[_plain(visible(one))[:_LETTERS] for one in held.columns[c].labels] for c in columns]
    if len(columns) == 1:
        axes.bar(range(values.size), values, yerr=source.width, color=_COLOUR, ecolor="#333333", capsize=2)
        axes.set_xticks(range(values.size), labels[0], rotation=45, ha="right", fontsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        return
    axes.imshow(np.maximum(values, 0), aspect="auto", cmap="Blues")
    low = np.ma.masked_where(values >= 2 * sigma, np.ones_like(values))
    axes.pcolor(
        np.arange(values.shape[1] + 1) - 0.5, np.arange(values.shape[0] + 1) - 0.5, low,
        hatch="////", alpha=0.0, linewidth=0,
    )  # fmt: skip
    for axis, names in ((axes.yaxis, labels[0]), (axes.xaxis, labels[1])):
        every = max(1, math.ceil(len(names) / 16))
        axis.set_ticks(range(0, len(names), every), names[::every], fontsize=6)
    axes.tick_params(axis="x", rotation=45)


def _plain(text: str) -> str:
    return text.replace("$", r"\$")
