"""Pictures of what exact genomes, maps and networks give away, beside what noisy ones do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.explain._attack_pictures import draw_advantage
from tacit.explain._axes import BLUE, GREEN, GREY, ORANGE, RED, add_axes, legend_below, new_picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from tacit.explain._attack_pictures import MeasuredAdvantage
    from tacit.picture import Picture

    _Grid = npt.NDArray[np.float64]


def genome_powers(
    exact: Mapping[int, float],
    theory: Mapping[int, float],
    epsilons: Sequence[float],
    noisy: Sequence[tuple[float, float, float, float]],
    *,
    blind: float,
) -> Picture:
    """Draw the members found in exact frequencies, and in noisy ones: found, low, high, bound."""
    picture = new_picture(10, 4.2)
    left = add_axes(picture, "Exact allele frequencies", "number of SNPs", "members found", (1, 2, 1))
    left.plot(list(exact), list(exact.values()), "o", color=RED, label="measured")
    left.plot(list(theory), list(theory.values()), "--", color=GREY, label="theory")
    right = add_axes(picture, "The same frequencies from Tacit", "epsilon", "", (1, 2, 2))
    found, low, high, bound = (np.array(side) for side in zip(*noisy, strict=True))
    right.errorbar(
        epsilons,
        found,
        [found - low, high - found],
        fmt="o",
        color=BLUE,
        capsize=3,
        label="measured (insider)",
    )
    right.plot(epsilons, bound, "_", color=GREY, markersize=22, markeredgewidth=2, label="bound")
    for ax, ticks, form in ((left, list(exact), ","), (right, list(epsilons), "g")):
        ax.axhline(blind, color=GREEN, linestyle=":", label="blind guessing")
        ax.set_xscale("log")
        ax.set_xticks(ticks, [format(value, form) for value in ticks])
        _name_ticks(ax)
        ax.set_ylim(0, 1.05)
        legend_below(ax)
    return picture


def beacon_powers(
    random: Mapping[int, float],
    rarest: Mapping[int, float],
    curve: Sequence[MeasuredAdvantage],
    *,
    blind: float,
) -> Picture:
    """Draw the members found by exact answers, and the advantage against noisy counts."""
    picture = new_picture(10, 4.2)
    left = add_axes(
        picture, "A beacon that says yes or no", "number of questions", "members found", (1, 2, 1)
    )
    left.plot(list(random), list(random.values()), "o-", color=ORANGE, label="random alleles")
    left.plot(list(rarest), list(rarest.values()), "s", color=RED, label="rarest alleles")
    left.axhline(blind, color=GREEN, linestyle=":", label="blind guessing")
    left.set_xscale("log")
    left.set_xticks([*rarest, *random], [f"{value:,}" for value in (*rarest, *random)])
    _name_ticks(left)
    left.set_ylim(0, 1.08)
    legend_below(left)
    right = add_axes(
        picture, "Noisy counts from Tacit", "epsilon (total cost)", "attacker's advantage", (1, 2, 2)
    )
    draw_advantage(right, curve)
    legend_below(right)
    return picture


def unique_people(
    alone: Mapping[int, tuple[float, float]], people: int, curve: Sequence[MeasuredAdvantage]
) -> Picture:
    """Draw the share of unique people over the number of markers, and the advantage against a noisy count."""
    picture = new_picture(10, 4.2)
    left = add_axes(
        picture, f"Unique among {people:,} people", "number of markers", "share of people", (1, 2, 1)
    )
    formula, counted = zip(*alone.values(), strict=True)
    left.plot(list(alone), counted, "o", color=RED, label="counted")
    left.plot(list(alone), formula, "--", color=GREY, label="by the formula")
    left.set_xticks(list(alone))
    left.set_ylim(0, 1.08)
    legend_below(left)
    right = add_axes(picture, "A noisy count from Tacit", "epsilon", "attacker's advantage", (1, 2, 2))
    draw_advantage(right, curve)
    legend_below(right)
    return picture


def sharpened_maps(
    maps: tuple[_Grid, _Grid, _Grid, _Grid], places: npt.NDArray[np.int64], titles: tuple[str, str, str, str]
) -> Picture:
    """Draw two smoothed maps, each beside what sharpening shows; circles mark the true sites."""
    picture = new_picture(8.2, 8.4)
    for number, (cells, title) in enumerate(zip(maps, titles, strict=True), start=1):
        ax: Axes = picture.add_subplot(2, 2, number)
        ax.set_title(title, loc="left", fontsize=10, fontweight="bold")
        top = float(np.quantile(cells, 0.9995))
        ax.imshow(np.clip(cells, 0, top), cmap="magma", interpolation="nearest", vmin=0, vmax=top)
        if number % 2 == 0:
            highest = np.argsort(cells, axis=None)[::-1][: len(places)]
            row, column = np.unravel_index(highest, cells.shape)
            ax.scatter(column, row, s=7, color="#ffd23f", label="what the attacker finds")
            ax.scatter(
                places[:, 1], places[:, 0], s=70, facecolors="none", edgecolors="#59d2fe", linewidths=0.9,
                label="true sites",
            )  # fmt: skip
            ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0), ncol=2, frameon=False)
        ax.set_xticks([])
        ax.set_yticks([])
    return picture


def friendship_curves(curves: Mapping[str, Sequence[MeasuredAdvantage]], scaled: str) -> Picture:
    """Draw the advantage against several counts over epsilon; the curve named `scaled` is not private."""
    picture = new_picture()
    ax = add_axes(picture, "Is there a friendship between two people?", "epsilon", "attacker's advantage")
    colors = iter((BLUE, GREEN, ORANGE))
    for place, (name, curve) in enumerate(curves.items()):
        color = RED if name == scaled else next(colors)
        draw_advantage(ax, curve, label=name, color=color, bound=place == 0)
    legend_below(ax, columns=2)
    return picture


def _name_ticks(ax: Axes) -> None:
    ax.minorticks_off()
    ax.tick_params(axis="x", labelsize=9)
