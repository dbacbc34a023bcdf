"""A series as a picture: one line over the days for each group, with the intervals as a band around it."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from tacit.core import about_release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import AnswerTable, Certificate
    from tacit.picture import Picture

_COLOURS = ("#0b7285", "#c25e00", "#1b7f4b", "#b3261e", "#5f3dc4", "#555555", "#a61e4d", "#7a5c00")


def plot_series(table: AnswerTable, column: str, ax: Axes | None, certificate: Certificate) -> Axes | Picture:
    """Draw one column of a series; at most 8 groups, the first ones."""
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(8.0, 3.8)
        plot_series(table, column, picture.subplots(), certificate)
        return picture
    axes, cells = ax, table.columns[column]
    others = [name for name in table.keys if name != "day"]
    labels = [", ".join(str(table.keys[name][i]) for name in others) for i in range(len(table))]
    groups = list(dict.fromkeys(labels))
    for colour, group in zip(_COLOURS, groups, strict=False):
        at = [i for i, label in enumerate(labels) if label == group]
        days: Any = [date.fromisoformat(str(table.keys["day"][i])[:10]) for i in at]
        line: Any = [cells.value[i] for i in at]
        axes.plot(days, line, color=colour, linewidth=1.6, label=group or None)
        band: Any = [cells.low[i] for i in at], [cells.high[i] for i in at]
        axes.fill_between(days, *band, color=colour, alpha=0.2, linewidth=0)
    about = about_release(column, certificate).replace("$", r"\$")
    band_words = f"the band is the {table.confidence * 100:g} % interval for the noise"
    axes.set_title(f"{about}\n{band_words}", fontsize=9, loc="left")
    axes.set_ylabel(column)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.tick_params(axis="x", labelrotation=30)
    if others:
        legend = axes.legend(fontsize=8, title=", ".join(others), frameon=False)
        legend.get_title().set_fontsize(8)
    return axes
