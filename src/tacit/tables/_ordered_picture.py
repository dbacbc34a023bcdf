"""A picture of ordered counts: the running totals or the cells, with the noise as a band."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import about_release
from tacit.errors import TacitError
from tacit.fixes import Choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.picture import Picture
    from tacit.tables._ordered_counts import OrderedCounts

_COLOURS = ("#0b7285", "#c25e00", "#1b7f4b", "#b3261e", "#5f3dc4", "#555555", "#a61e4d", "#7a5c00")
_KINDS = ("distribution", "histogram")
_MOST_NAMES = 12  # on the axis


def plot_ordered(
    counts: OrderedCounts, what: str | None, ax: Axes | None, certificate: Certificate
) -> Axes | Picture:
    """Draw one line or one row of steps for each group; at most 8 groups, the first ones."""
    kind = what or _KINDS[0]
    if kind not in _KINDS:
        raise TacitError(
            "bad-parameter", f"there is no picture {kind!r} of ordered counts", fix=Choose(_KINDS, given=kind)
        )
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(8.0, 3.8)
        plot_ordered(counts, kind, picture.subplots(), certificate)
        return picture
    axes, n = ax, len(counts)
    table = counts.distribution if kind == "distribution" else counts.counts
    numbers = all(isinstance(cut, float) for cut in counts.cuts) and bool(counts.cuts)
    edges: Any = np.array(counts.cuts) if numbers else np.arange(n + 1) - 0.5
    cells = table.columns["n"]
    for i, (colour, group) in enumerate(zip(_COLOURS, counts.groups, strict=False)):
        value, low, high = (np.array(part[i * n : (i + 1) * n], dtype=float) for part in
                            (cells.value, cells.low, cells.high))  # fmt: skip
        label = str(group) if counts.by else None
        if kind == "distribution":
            value, low, high = (np.concatenate([[0.0], part]) for part in (value, low, high))
            axes.plot(edges, value, color=colour, linewidth=1.6, label=label)
            axes.fill_between(edges, low, high, color=colour, alpha=0.2, linewidth=0)
        else:
            axes.stairs(value, edges, color=colour, linewidth=1.6, label=label)
            axes.stairs(high, edges, baseline=low, fill=True, color=colour, alpha=0.2)
    _name(axes, counts, kind, certificate, numbers=numbers)
    return axes


def _name(axes: Axes, counts: OrderedCounts, kind: str, certificate: Certificate, *, numbers: bool) -> None:
    what = "rows below" if kind == "distribution" else "rows by"
    about = about_release(f"{what} {counts.column}", certificate).replace("$", r"\$")
    band = f"the band is the {counts.confidence * 100:g} % interval for the noise, one place at a time"
    axes.set_title("\n".join([about, band, *counts.notes]), fontsize=9, loc="left")
    axes.set_xlabel(counts.column.replace("$", r"\$"))
    axes.set_ylabel("rows")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    if not numbers:
        some = range(0, len(counts), -(-len(counts) // _MOST_NAMES))
        axes.set_xticks(list(some), [str(counts.places[i]) for i in some], rotation=45, ha="right")
    if counts.by:
        axes.legend(fontsize=8, title=counts.by, frameon=False)
