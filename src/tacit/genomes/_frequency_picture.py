"""The picture of frequencies: one bar with its interval for each variant, a colour for each cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.core import about_release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.genomes._frequency_table import AlleleFrequencies
    from tacit.picture import Picture

_COLOURS = ("#0b7285", "#c25e00", "#1b7f4b", "#b3261e", "#5f3dc4", "#555555", "#a61e4d", "#7a5c00")
_MOST = 100  # variants in one picture: more cannot be told apart


def plot_frequencies(table: AlleleFrequencies, ax: Axes | None, certificate: Certificate) -> Axes | Picture:
    """Draw the first 100 variants; at most 8 clusters."""
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(9.0, 3.8)
        plot_frequencies(table, picture.subplots(), certificate)
        return picture
    cells = table.columns["frequency"]
    labels = [str(one) for one in table.keys.get("cluster", ("",) * len(table))]
    clusters = list(dict.fromkeys(labels))
    shown = min(_MOST, len(table) // max(1, len(clusters)))
    for number, (colour, cluster) in enumerate(zip(_COLOURS, clusters, strict=False)):
        own = [i for i, label in enumerate(labels) if label == cluster][:shown]
        at = [place + 0.3 * (number - (len(clusters) - 1) / 2) for place in range(1, len(own) + 1)]
        ends = [((cells.low[i] or 0), (cells.high[i] or 0)) for i in own]
        value = [
            (low + high) / 2 if cells.value[i] is None else float(cells.value[i])  # type: ignore[arg-type]
            for i, (low, high) in zip(own, ends, strict=True)
        ]
        below = [v - low for v, (low, _) in zip(value, ends, strict=True)]
        above = [high - v for v, (_, high) in zip(value, ends, strict=True)]
        ax.errorbar(at, value, yerr=[below, above], fmt="o", markersize=3, elinewidth=1.2, color=colour,
                    label=cluster.replace("$", r"\$") or None)  # fmt: skip
    more = "" if shown * max(1, len(clusters)) == len(table) else f" of the first {shown} variants"
    about = about_release(f"allele frequencies{more}", certificate).replace("$", r"\$")
    ax.set_title(
        f"{about}\nbars: {table.confidence * 100:g} % interval for the noise", fontsize=9, loc="left"
    )
    ax.set(xlabel="variant", ylabel="frequency", xlim=(0, shown + 1))
    ax.set_ylim(0, min(1.0, 1.15 * max((high or 0 for high in cells.high), default=1.0)))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", alpha=0.3)
    if clusters != [""]:
        ax.legend(fontsize=8, frameon=False, title="cluster", title_fontsize=8)
    return ax
