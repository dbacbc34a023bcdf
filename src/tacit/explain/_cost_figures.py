"""The figures that explain what a cost means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.explain._odds import best_test
from tacit.report import percent
from tacit.show import BLUE, GREEN, GREY, ORANGE, RED, Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    from tacit.explain._explanation import Explanation
    from tacit.explain._tradeoff import RateDistortion, SmallCrowd, Spending, Tradeoff

_SHARES = tuple(np.linspace(0, 1, 101).tolist())
_WHOLE = (0.0, 1.0)


def explanation(meant: Explanation) -> Figure:
    """Show the belief after a release over the belief before, the best test, and the meaning for families."""
    before = np.array(_SHARES[1:-1])
    loss, label = meant.odds_limit
    beliefs = [ChartSeries("line", _WHOLE, _WHOLE, label="unchanged", colour=GREY, dashed=True)]
    for sign, colour, words in ((1, RED, "at most"), (-1, BLUE, "at least")):
        after = 1 / (1 + (1 - before) / before * np.exp(-sign * min(loss, 700)))
        beliefs.append(ChartSeries("line", before.tolist(), after.tolist(), label=words, colour=colour))
    power = best_test(meant.cost)
    tests = (
        ChartSeries("line", _WHOLE, _WHOLE, label="blind guessing", colour=GREY, dashed=True),
        ChartSeries("line", _SHARES, [power(rate) for rate in _SHARES], label="best possible", colour=RED),
    )
    sizes = tuple(str(family.size) for family in meant.families)
    families = ChartSeries("bars", range(len(sizes)), [family.advantage for family in meant.families])
    share = ChartAxis(kind="shares", ends=_WHOLE)
    panels = (
        Chart(tuple(beliefs), _named(share, "belief before"), _named(share, "belief after"),
              "What an attacker can believe", legend=label),
        Chart(tests, _named(share, "rate of false alarms"), _named(share, "rate of true alarms"),
              "The best test"),
        Chart((families,), ChartAxis("people together", sizes), _named(share, "advantage, at most"),
              "Groups and families"),
    )  # fmt: skip
    return Figure("", panels, across=3)


def _named(axis: ChartAxis, name: str) -> ChartAxis:
    return ChartAxis(name, axis.names, axis.kind, axis.ends)


def tradeoff_curve(answer: Tradeoff) -> Figure:
    """Show error over epsilon with the answer marked, and error over n where n matters."""
    errors = ChartAxis(f"{100 * answer.confidence:g} % of answers within", kind="logarithmic")
    answer_words = f"epsilon {answer.epsilon:.3g} for +/- {answer.error:g}"
    epsilons, widths = zip(*answer.curve, strict=True)
    curve = ChartSeries("line", epsilons, widths)
    mark = ChartSeries("points", (answer.epsilon,), (answer.error,), label=answer_words, colour=RED)
    title = f"Error of a {answer.question.statistic} over epsilon"
    panels = [Chart((curve, mark), ChartAxis("epsilon", kind="logarithmic"), errors, title)]
    if answer.crowd:
        sizes = ChartAxis("n", kind="logarithmic", ticks=tuple((float(n), f"{n:,}") for n, _ in answer.crowd))
        people, widths = zip(*answer.crowd, strict=True)
        crowd = ChartSeries("joined", people, widths, colour=GREEN)
        panels.append(Chart((crowd,), sizes, errors, f"Error over n, at epsilon {answer.epsilon:.3g}"))
    return Figure("", tuple(panels), across=2)


def rate_distortion_curves(figure: RateDistortion) -> Figure:
    """Show MSE over epsilon, and MSE over KL with the Gaussian line for comparison."""
    points = figure.points
    epsilon, mse = [p.epsilon for p in points], [p.mse for p in points]
    textbook = [p.textbook_mse for p in points]
    ends = np.geomspace(points[0].kl, points[-1].kl, 50)
    errors = ChartAxis("mean squared error", kind="logarithmic")
    information = (
        ChartSeries("line", epsilon, textbook, label="textbook 2 / epsilon^2", colour=GREY, dashed=True),
        ChartSeries("joined", epsilon, mse, label="noise that Tacit draws"),
    )
    right = (
        ChartSeries("line", [p.textbook_kl for p in points], textbook, label="Laplace, textbook", colour=GREY,
               dashed=True),
        ChartSeries("joined", [p.kl for p in points], mse, label="Laplace, as drawn"),
        ChartSeries("line", ends.tolist(), (0.5 / ends).tolist(), label="Gaussian: KL x MSE = 1/2 (not pure)",
               colour=ORANGE),
    )  # fmt: skip
    kl = ChartAxis("information about one person, KL in nats", kind="logarithmic")
    panels = (
        Chart(information, ChartAxis("epsilon", kind="logarithmic"), errors, "Error of a count"),
        Chart(right, kl, errors, "Rate and distortion"),
    )
    return Figure("", panels, across=2)


def small_crowd_density(crowd: SmallCrowd) -> Figure:
    """Show the density of the noisy answer, with the useless part shaded."""
    scale = crowd.bound / crowd.epsilon
    x = np.linspace(crowd.truth - 4 * scale, crowd.truth + 4 * scale, 401)
    density = np.exp(-np.abs(x - crowd.truth) / scale) / (2 * scale)
    useless = [
        None if abs(at - crowd.truth) < crowd.truth else height for at, height in zip(x, density, strict=True)
    ]
    shaded = [None if height is None else 0.0 for height in useless]
    words = "negative or wrong by more than 100 %"
    series = (
        ChartSeries("line", x.tolist(), density.tolist()),
        ChartSeries("line", x.tolist(), useless, shaded, useless, words, RED),
        ChartSeries(
            "upright", (crowd.truth,), (0.0,), label=f"true sum {crowd.truth:g}", colour=GREY, dashed=True
        ),
    )
    title = f"Sum over a few people, epsilon {crowd.epsilon:g}: useless with probability {crowd.useless:.2f}"
    return Figure(title, (Chart(series, ChartAxis("answer"), ChartAxis("density", ends=(0.0, None))),))


def spending(bought: Spending) -> Figure:
    """Show the share and relative error of each question, and the sum of the errors over the budget."""
    names = tuple(f"{one.name}: error {percent(one.relative, 2)}" for one in bought.purchases)
    shares = ChartSeries("bars", range(len(names)), [one.share for one in bought.purchases])
    budget = np.geomspace(bought.epsilon / 8, bought.epsilon * 8, 60)
    epsilons = budget.tolist()
    errors = (
        ChartSeries("line", epsilons, (bought.equal_split * bought.epsilon / budget).tolist(),
               label="equal shares", colour=GREY, dashed=True),
        ChartSeries("line", epsilons, (bought.total * bought.epsilon / budget).tolist(),
               label="best division"),
        ChartSeries("points", (bought.epsilon,), (bought.total,), colour=RED),
    )  # fmt: skip
    epsilon = ChartAxis("epsilon", kind="logarithmic")
    panels = (
        Chart((shares,), ChartAxis("", names), ChartAxis("share of the budget", kind="shares"),
              f"How epsilon {bought.epsilon:g} is divided"),
        Chart(errors, epsilon, ChartAxis("sum of weighted relative errors", kind="logarithmic"),
              "What a larger budget would buy"),
    )  # fmt: skip
    return Figure("", panels, across=2)
