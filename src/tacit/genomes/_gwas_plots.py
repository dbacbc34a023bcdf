"""Pictures of summary statistics: a Manhattan plot, a quantile plot, and the largest effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from tacit.genomes._summary_statistics import SummaryStatistics
    from tacit.picture import Picture

_COLOURS = ("#0b7285", "#7a5c00")
_THRESHOLD = -np.log10(5e-8)
_MOST_POINTS = 60_000  # of the large p-values every so-manyth is drawn: they lie on top of each other
_EFFECTS = 12


def plot_manhattan(statistics: SummaryStatistics, ax: Axes | None = None) -> Axes | Picture:
    """Draw -log10 p of every SNP along the genome, with the usual threshold of 5e-8."""
    if ax is None:
        return _picture(plot_manhattan, statistics, 9.0, 3.8)
    height = statistics.neg_log_10_p_value
    names = [str(one) for one in statistics.sites["chromosome"]]
    position = np.asarray(statistics.sites["position"], np.float64)
    chromosomes = sorted(set(names), key=_order)
    start, ticks = 0.0, []
    gap = 0.01 * sum(float(np.ptp(position[np.array(names) == one])) for one in chromosomes)
    for number, one in enumerate(chromosomes):
        rows = np.flatnonzero(np.array(names) == one)
        place = start + position[rows] - position[rows].min()
        few = rows.size > _MOST_POINTS // len(chromosomes)
        kept = (height[rows] > 2) | (np.arange(rows.size) % 10 == 0) if few else np.ones(rows.size, bool)
        ax.scatter(place[kept], height[rows][kept], s=6, color=_COLOURS[number % 2], linewidths=0)
        ticks.append((start + place[-1]) / 2 if rows.size else start)
        start = float(place.max()) + max(gap, 1.0)
    ax.axhline(_THRESHOLD, color="#b3261e", linewidth=1, linestyle="--")
    ax.text(0.995, _THRESHOLD, "p = 5e-8", color="#b3261e", fontsize=8, ha="right", va="bottom",
            transform=ax.get_yaxis_transform())  # fmt: skip
    ax.set_xticks(ticks, chromosomes, fontsize=8)
    ax.set_xlabel("chromosome" if chromosomes != ["."] else "variant")
    ax.set_ylim(bottom=0)
    return _finished(ax, statistics, "-log10 p")


def plot_quantiles(statistics: SummaryStatistics, ax: Axes | None = None) -> Axes | Picture:
    """Draw the observed p-values against those expected without any association, with a 95 % band."""
    from scipy.stats import beta, chi2

    if ax is None:
        return _picture(plot_quantiles, statistics, 4.6, 4.4)
    seen = np.sort(statistics.neg_log_10_p_value[~np.isnan(statistics.z)])[::-1]
    rank = np.arange(1, len(seen) + 1)
    drawn = np.unique(np.geomspace(1, max(len(seen), 1), 2_000).astype(int)) - 1 if len(seen) else rank
    expected = -np.log10(rank / (len(seen) + 1))[drawn]
    low, high = (-np.log10(beta.ppf(q, rank[drawn], len(seen) + 1 - rank[drawn])) for q in (0.975, 0.025))
    ax.fill_between(expected, low, high, color="#868e96", alpha=0.3, linewidth=0,
                    label="95 % band without association")  # fmt: skip
    ax.plot(expected, expected, color="#555555", linewidth=1)
    ax.scatter(expected, seen[drawn], s=8, color=_COLOURS[0], linewidths=0)
    if len(seen):
        middle = np.nanmedian(statistics.z**2) / chi2.ppf(0.5, 1)
        ax.text(0.03, 0.86, f"inflation (lambda) {middle:.2f}", transform=ax.transAxes, fontsize=8)
    ax.legend(fontsize=8, frameon=False, loc="upper left")
    ax.set_xlabel("expected -log10 p")
    return _finished(ax, statistics, "observed -log10 p")


def plot_effects(statistics: SummaryStatistics, ax: Axes | None = None) -> Axes | Picture:
    """Draw the effects of the SNPs with the smallest p-values, with their intervals."""
    if ax is None:
        return _picture(plot_effects, statistics, 6.4, 3.8)
    order = np.argsort(-np.nan_to_num(np.abs(statistics.z), nan=-1.0), kind="stable")[:_EFFECTS][::-1]
    low, high = statistics.intervals
    value, places = statistics.beta[order], np.arange(len(order))
    reach = np.stack([value - low[order], high[order] - value])
    ax.errorbar(value, places, xerr=reach, fmt="o", color=_COLOURS[0], markersize=4, capsize=2)
    ax.axvline(0, color="#555555", linewidth=1)
    sites = statistics.sites
    labels = [
        str(sites["name"][i])
        if sites["name"][i] != "."
        else f"{sites['chromosome'][i]}:{sites['position'][i]}"
        for i in order
    ]
    ax.set_yticks(places, labels, fontsize=8)
    ax.set_xlabel(f"{statistics.outcome} for each {statistics.per}", fontsize=8)
    return _finished(ax, statistics, "", f"; {percent(statistics.confidence, 0)} intervals")


#: The pictures by name.
DRAWINGS: dict[str, Callable[..., Any]] = {
    "manhattan": plot_manhattan,
    "qq": plot_quantiles,
    "effects": plot_effects,
}


def _picture(draw: Callable[..., Any], statistics: SummaryStatistics, width: float, height: float) -> Picture:
    from tacit.picture import Picture

    picture = Picture(width, height)
    draw(statistics, picture.subplots())
    return picture


def _finished(ax: Axes, statistics: SummaryStatistics, label: str, more: str = "") -> Axes:
    title = f"{len(statistics):,} SNPs, phenotypes randomised{more}"
    ax.set_title(title, fontsize=9, loc="left")
    ax.set_ylabel(label)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _order(name: str) -> tuple[int, str]:
    """Order chromosomes by number, then the others by name."""
    from tacit.genomes._sites import plain_chromosome

    plain = plain_chromosome(name)
    return (int(plain), "") if plain.isdigit() else (10**6, plain)
