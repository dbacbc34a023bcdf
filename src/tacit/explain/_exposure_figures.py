"""The figures of what exact genomes, maps and networks give away, beside what noisy ones do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tacit.explain._attack_figures import ADVANTAGE, advantage_chart, advantage_points, named_powers
from tacit.show import BLUE, GREEN, GREY, ORANGE, RED, Chart, ChartAxis, ChartSeries, Figure, Matrix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from tacit.explain._attack_figures import MeasuredAdvantage

    _Grid = npt.NDArray[np.float64]


def genome_powers(
    exact: Mapping[int, float],
    theory: Mapping[int, float],
    epsilons: Sequence[float],
    noisy: Sequence[tuple[float, float, float, float]],
    *,
    blind: float,
) -> Figure:
    """Show the members found in exact frequencies, and in noisy ones: found, low, high, bound."""
    members = ChartAxis("members found", ends=(0.0, 1.05))
    left = (
        ChartSeries("points", list(exact), list(exact.values()), label="measured", colour=RED),
        ChartSeries("line", list(theory), list(theory.values()), label="theory", colour=GREY, dashed=True),
        _blind(blind),
    )
    found, low, high, bound = zip(*noisy, strict=True)
    right = (
        ChartSeries("points", epsilons, found, low, high, "measured (insider)"),
        ChartSeries("bounds", epsilons, bound, label="bound", colour=GREY),
        _blind(blind),
    )
    panels = (
        Chart(left, named_powers(list(exact), "number of SNPs", ","), members, "Exact allele frequencies"),
        Chart(right, named_powers(epsilons, "epsilon"), members, "The same frequencies from Tacit"),
    )
    return Figure("", panels, across=2)


def beacon_powers(
    random: Mapping[int, float],
    rarest: Mapping[int, float],
    curve: Sequence[MeasuredAdvantage],
    *,
    blind: float,
) -> Figure:
    """Show the members found by exact answers, and the advantage against noisy counts."""
    left = (
        ChartSeries("joined", list(random), list(random.values()), label="random alleles", colour=ORANGE),
        ChartSeries("points", list(rarest), list(rarest.values()), label="rarest alleles", colour=RED),
        _blind(blind),
    )
    asked = named_powers(sorted({*rarest, *random}), "number of questions", ",")
    panels = (
        Chart(left, asked, ChartAxis("members found", ends=(0.0, 1.08)), "A beacon that says yes or no"),
        advantage_chart(curve, "Noisy counts from Tacit", epsilon="epsilon (total cost)"),
    )
    return Figure("", panels, across=2)


def unique_people(
    alone: Mapping[int, tuple[float, float]], people: int, curve: Sequence[MeasuredAdvantage]
) -> Figure:
    """Show the share of unique people over the number of markers, and the advantage against a noisy count."""
    formula, counted = zip(*alone.values(), strict=True)
    left = (
        ChartSeries("points", list(alone), counted, label="counted", colour=RED),
        ChartSeries("line", list(alone), formula, label="by the formula", colour=GREY, dashed=True),
    )
    markers = ChartAxis("number of markers", ticks=tuple((float(one), str(one)) for one in alone))
    share = ChartAxis("share of people", ends=(0.0, 1.08))
    panels = (
        Chart(left, markers, share, f"Unique among {people:,} people"),
        advantage_chart(curve, "A noisy count from Tacit"),
    )
    return Figure("", panels, across=2)


def sharpened_maps(
    maps: tuple[_Grid, _Grid, _Grid, _Grid], places: npt.NDArray[np.int64], titles: tuple[str, str, str, str]
) -> Figure:
    """Show two smoothed maps, each beside what sharpening shows; circles mark the true sites."""
    panels = []
    for number, (cells, title) in enumerate(zip(maps, titles, strict=True)):
        top = float(np.quantile(cells, 0.9995))
        panel = Matrix(np.clip(cells, 0, top), title=title, top=top)
        if number % 2:
            highest = np.argsort(cells, axis=None)[::-1][: len(places)]
            attacked = np.stack(np.unravel_index(highest, cells.shape), axis=1)
            panel = replace(panel, spots=(("what the attacker finds", attacked), ("true sites", places)))
        panels.append(panel)
    return Figure("", tuple(panels), across=2)


def friendship_curves(curves: Mapping[str, Sequence[MeasuredAdvantage]], scaled: str) -> Figure:
    """Show the advantage against several counts over epsilon; the curve named `scaled` is not private."""
    colours = iter((BLUE, GREEN, ORANGE))
    points = tuple(
        advantage_points(curve, name, RED if name == scaled else next(colours))
        for name, curve in curves.items()
    )
    chart = advantage_chart(next(iter(curves.values())), "")
    return Figure(
        "Is there a friendship between two people?",
        (Chart((chart.series[0], *points), chart.x, ADVANTAGE),),
    )


def _blind(share: float) -> ChartSeries:
    return ChartSeries("across", (), (share,), label="blind guessing", colour=GREEN, dashed=True)
