"""Pictures that explain what a cost means; matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.explain._axes import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    add_axes,
    label_logarithmic,
    legend_below,
    new_picture,
)
from tacit.explain._odds import best_test
from tacit.report import percent

if TYPE_CHECKING:
    from tacit.explain._explanation import Explanation
    from tacit.explain._rate_distortion import RateDistortion
    from tacit.explain._small_crowd import SmallCrowd
    from tacit.explain._spending import Spending
    from tacit.explain._tradeoff import Tradeoff
    from tacit.picture import Picture


def explanation(meant: Explanation) -> Picture:
    """Draw the belief after a release over the belief before, the best test, and the meaning for families."""
    picture = new_picture(11, 3.9)
    share = np.linspace(0, 1, 201)
    before = share[1:-1]
    loss, label = meant.odds_limit
    left = add_axes(picture, "What an attacker can believe", "belief before", "belief after", (1, 3, 1))
    left.plot(share, share, "--", color=GREY, label="unchanged")
    for sign, color, text in ((1, RED, "at most"), (-1, BLUE, "at least")):
        after = 1 / (1 + (1 - before) / before * np.exp(-sign * min(loss, 700)))
        left.plot(before, after, color=color, label=text)
    legend_below(left, title=label)
    middle = add_axes(picture, "The best test", "rate of false alarms", "rate of true alarms", (1, 3, 2))
    rates, power = np.linspace(0, 1, 201), best_test(meant.cost)
    middle.plot(share, share, "--", color=GREY, label="blind guessing")
    middle.plot(rates, [power(float(rate)) for rate in rates], color=RED, label="best possible")
    legend_below(middle)
    right = add_axes(picture, "Groups and families", "people together", "advantage, at most", (1, 3, 3))
    sizes = [str(family.size) for family in meant.families]
    right.bar(sizes, [family.advantage for family in meant.families], color=BLUE, width=0.6)
    right.set_ylim(0, 1)
    return picture


def tradeoff_curve(answer: Tradeoff) -> Picture:
    """Draw error over epsilon with the answer marked, and error over n where n matters."""
    picture = new_picture(11 if answer.crowd else 7)
    columns = 2 if answer.crowd else 1
    sure = f"{100 * answer.confidence:g} % of answers within"
    title = f"Error of a {answer.question.statistic} over epsilon"
    ax = add_axes(picture, title, "epsilon", sure, (1, columns, 1))
    ax.loglog(*zip(*answer.curve, strict=True), color=BLUE)
    ax.plot([answer.epsilon], [answer.error], "o", color=RED)
    ax.annotate(
        f"epsilon {answer.epsilon:.3g}\nfor +/- {answer.error:g}",
        (answer.epsilon, answer.error),
        xytext=(10, 10),
        textcoords="offset points",
        color=RED,
    )
    label_logarithmic(ax.xaxis, ax.yaxis)
    if answer.crowd:
        side = add_axes(picture, f"Error over n, at epsilon {answer.epsilon:.3g}", "n", sure, (1, 2, 2))
        side.loglog(*zip(*answer.crowd, strict=True), "o-", color=GREEN)
        side.set_xticks([n for n, _ in answer.crowd], [f"{n:,}" for n, _ in answer.crowd])
        side.minorticks_off()
        label_logarithmic(side.yaxis)
    return picture


def rate_distortion_curves(figure: RateDistortion) -> Picture:
    """Draw MSE over epsilon, and MSE over KL with the Gaussian line for comparison."""
    picture = new_picture(11)
    points = figure.points
    epsilon = [p.epsilon for p in points]
    left = add_axes(picture, "Error of a count", "epsilon", "mean squared error", (1, 2, 1))
    left.loglog(epsilon, [p.textbook_mse for p in points], "--", color=GREY, label="textbook 2 / epsilon^2")
    left.loglog(epsilon, [p.mse for p in points], "o-", color=BLUE, label="noise that Tacit draws")
    left.legend(fontsize=9)
    right = add_axes(
        picture,
        "Rate and distortion",
        "information about one person, KL in nats",
        "mean squared error",
        (1, 2, 2),
    )
    right.loglog(
        [p.textbook_kl for p in points],
        [p.textbook_mse for p in points],
        "--",
        color=GREY,
        label="Laplace, textbook",
    )
    right.loglog([p.kl for p in points], [p.mse for p in points], "o-", color=BLUE, label="Laplace, as drawn")
    ends = np.geomspace(points[0].kl, points[-1].kl, 50)
    right.loglog(ends, 0.5 / ends, color=ORANGE, label="Gaussian: KL x MSE = 1/2 (not pure)")
    right.legend(fontsize=9)
    label_logarithmic(left.xaxis, left.yaxis, right.xaxis, right.yaxis)
    return picture


def small_crowd_density(crowd: SmallCrowd) -> Picture:
    """Draw the density of the noisy answer, with the useless part shaded."""
    picture = new_picture()
    title = f"Sum over a few people, epsilon {crowd.epsilon:g}: useless with probability {crowd.useless:.2f}"
    ax = add_axes(picture, title, "answer", "density")
    scale = crowd.bound / crowd.epsilon
    x = np.linspace(crowd.truth - 4 * scale, crowd.truth + 4 * scale, 801)
    density = np.exp(-np.abs(x - crowd.truth) / scale) / (2 * scale)
    ax.plot(x, density, color=BLUE)
    ax.fill_between(
        x,
        density,
        where=np.abs(x - crowd.truth) >= crowd.truth,
        color=RED,
        alpha=0.35,
        label="negative or wrong by more than 100 %",
    )
    ax.axvline(crowd.truth, color=GREY, linestyle="--", label=f"true sum {crowd.truth:g}")
    ax.set_ylim(bottom=0)
    legend_below(ax)
    return picture


def spending(bought: Spending) -> Picture:
    """Draw the share and relative error of each question, and the sum of the errors over the budget."""
    picture = new_picture(11)
    names = [one.name for one in bought.purchases]
    title = f"How epsilon {bought.epsilon:g} is divided"
    left = add_axes(picture, title, "", "share of the budget", (1, 2, 1))
    bars = left.bar(names, [one.share for one in bought.purchases], color=BLUE, width=0.6)
    left.bar_label(bars, [f"error {percent(one.relative, 2)}" for one in bought.purchases], fontsize=9)
    left.margins(y=0.15)
    right = add_axes(
        picture, "What a larger budget would buy", "epsilon", "sum of weighted relative errors", (1, 2, 2)
    )
    budget = np.geomspace(bought.epsilon / 8, bought.epsilon * 8, 60)
    right.loglog(budget, bought.equal_split * bought.epsilon / budget, "--", color=GREY, label="equal shares")
    right.loglog(budget, bought.total * bought.epsilon / budget, color=BLUE, label="best division")
    right.plot([bought.epsilon], [bought.total], "o", color=RED)
    label_logarithmic(right.xaxis, right.yaxis)
    right.legend(fontsize=9)
    return picture
