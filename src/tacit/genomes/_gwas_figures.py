"""The figures of summary statistics: a Manhattan plot, a quantile plot, and the largest effects."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tacit.report import percent
from tacit.show import GREY, RED, Chart, ChartAxis, ChartSeries, Figure, chosen, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.genomes._summary_statistics import SummaryStatistics

_COLOURS = (0, 7)
_THRESHOLD = float(-np.log10(5e-8))
_MOST_POINTS = (
    4_000  # the smallest p-values, and of the others every so-manyth: they lie on top of each other
)
_EFFECTS = 12


def gwas_figures(statistics: SummaryStatistics, what: str | None) -> tuple[Figure, ...]:
    """Return the figures, or the one of this name."""
    made = {"manhattan": _manhattan, "qq": _quantiles, "effects": _effects}
    return chosen(what, {name: partial(make, statistics) for name, make in made.items()})


def _manhattan(statistics: SummaryStatistics) -> Figure:
    """Show -log10 p of every SNP along the genome, with the usual threshold of 5e-8."""
    height = statistics.neg_log_10_p_value
    names = np.array([str(one) for one in statistics.sites["chromosome"]])
    position = np.asarray(statistics.sites["position"], np.float64)
    chromosomes = sorted(set(names.tolist()), key=_order)
    spans = [float(np.ptp(position[names == one])) for one in chromosomes]
    start, series, ticks = 0.0, [], []
    drawn = _drawn(height)
    for number, one in enumerate(chromosomes):
        rows = np.flatnonzero((names == one) & drawn)
        x = start + position[rows] - position[names == one].min()
        series.append(ChartSeries("points", x.tolist(), numbers(height[rows]), colour=_COLOURS[number % 2]))
        ticks.append((start + spans[number] / 2, one))
        start += spans[number] + max(0.01 * sum(spans), 1.0)
    series.append(ChartSeries("across", (), (_THRESHOLD,), label="p = 5e-8", colour=RED, dashed=True))
    along = "chromosome" if chromosomes != ["."] else "variant"
    chart = Chart(
        tuple(series), ChartAxis(along, ticks=tuple(ticks)), ChartAxis("-log10 p", ends=(0.0, None))
    )
    return _figure(statistics, chart)


def _drawn(height: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which SNPs are drawn: all, or the highest ones and a part of the others."""
    if height.size <= _MOST_POINTS:
        return np.ones(height.size, bool)
    kept: NDArray[np.bool_] = np.arange(height.size) % (2 * height.size // _MOST_POINTS) == 0
    kept[np.argsort(np.nan_to_num(height))[-_MOST_POINTS // 2 :]] = True
    return kept


def _quantiles(statistics: SummaryStatistics) -> Figure:
    """Show the observed p-values against those expected without any association, with a 95 % band."""
    from scipy.stats import beta, chi2

    seen = np.sort(statistics.neg_log_10_p_value[~np.isnan(statistics.z)])[::-1]
    rank = np.arange(1, len(seen) + 1)
    drawn = np.unique(np.geomspace(1, max(len(seen), 1), 500).astype(int)) - 1 if len(seen) else rank
    drawn = drawn[::-1]
    expected = -np.log10(rank / (len(seen) + 1))[drawn]
    low, high = (-np.log10(beta.ppf(q, rank[drawn], len(seen) + 1 - rank[drawn])) for q in (0.975, 0.025))
    band = ChartSeries("line", expected.tolist(), expected.tolist(), low.tolist(), high.tolist(),
                  "95 % band without association", GREY)  # fmt: skip
    points = ChartSeries("points", expected.tolist(), seen[drawn].tolist(), colour=_COLOURS[0])
    note = ""
    if len(seen):
        note = f"inflation (lambda) {np.nanmedian(statistics.z**2) / chi2.ppf(0.5, 1):.2f}"
    return _figure(
        statistics,
        Chart((band, points), ChartAxis("expected -log10 p"), ChartAxis("observed -log10 p"), note=note),
    )


def _effects(statistics: SummaryStatistics) -> Figure:
    """Show the effects of the SNPs with the smallest p-values, with their intervals."""
    order = np.argsort(-np.nan_to_num(np.abs(statistics.z), nan=-1.0), kind="stable")[:_EFFECTS]
    low, high = statistics.intervals
    sites = statistics.sites
    names = tuple(
        str(sites["name"][i])
        if sites["name"][i] != "."
        else f"{sites['chromosome'][i]}:{sites['position'][i]}"
        for i in order
    )
    ends = (part[order] for part in (statistics.beta, low, high))
    series = (
        ChartSeries("across", (), (0.0,), colour=GREY),
        ChartSeries.of("points", range(len(names)), ends),
    )
    label = f"{statistics.outcome} for each {statistics.per}"
    chart = Chart(series, ChartAxis("", names), ChartAxis(label), sideways=True)
    return _figure(statistics, chart, f"{percent(statistics.confidence, 0)} intervals")


def _figure(statistics: SummaryStatistics, chart: Chart, *words: str) -> Figure:
    return Figure(f"{len(statistics):,} SNPs, phenotypes randomised", (chart,), words)


def _order(name: str) -> tuple[int, str]:
    """Order chromosomes by number, then the others by name."""
    from tacit.genomes._sites import plain_chromosome

    plain = plain_chromosome(name)
    return (int(plain), "") if plain.isdigit() else (10**6, plain)
