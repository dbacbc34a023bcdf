"""Pictures by matplotlib (extra ``plot``): opaque and with strong lines, legible on light and dark pages."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tacit.explain.odds import best_test

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
except ImportError as missing:  # pragma: no cover - the test environment has matplotlib
    from tacit.errors import TacitError

    raise TacitError(
        "missing-extra",
        "pictures need matplotlib, which is not installed",
        why="it is left out of the base installation to keep it small",
        fix="pip install 'tacit[plot]'",
    ) from missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from tacit.explain.economy import Spending
    from tacit.explain.explanation import Explanation
    from tacit.explain.figures import RateDistortion, SmallCrowd
    from tacit.explain.tradeoff import Tradeoff


class Measured(Protocol):
    """A measured advantage with its interval and its bound."""

    @property
    def epsilon(self) -> float: ...
    @property
    def advantage(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def bound(self) -> float: ...


__all__ = [
    "Picture",
    "explanation",
    "rate_distortion_curves",
    "repeated_questions",
    "small_crowd_density",
    "spending",
    "success_curve",
    "tradeoff_curve",
]

BLUE, ORANGE, GREEN, RED, GREY = "#1f5fa8", "#c25e00", "#1b7f4b", "#b3261e", "#555555"


class Picture(Figure):
    """A matplotlib figure that shows itself in a notebook and needs no window system."""

    def __init__(self, width: float = 7.0, height: float = 4.2) -> None:
        super().__init__(figsize=(width, height), layout="constrained", facecolor="white", dpi=110)

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def axes(
    picture: Picture, title: str, xlabel: str, ylabel: str, place: tuple[int, int, int] = (1, 1, 1)
) -> Axes:
    """Add one plain set of axes."""
    ax: Axes = picture.add_subplot(*place)
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(visible=True, color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend_below(ax: Axes, columns: int = 3, title: str | None = None) -> None:
    """Put the legend under the axes, where it hides nothing."""
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncol=columns,
        fontsize=8,
        frameon=False,
        title=title,
        title_fontsize=8,
    )


def logarithmic(*sides: Axis) -> None:
    """Label logarithmic axes with plain numbers, more densely where they span little."""
    for side in sides:
        low, high = side.get_view_interval()
        side.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 300 else (1,)))
        side.set_major_formatter(StrMethodFormatter("{x:g}"))
        side.set_minor_formatter(NullFormatter())


def success_curve(curve: Sequence[Measured], title: str, *, exposed: float, exposed_label: str) -> Picture:
    """Draw the measured advantage with its intervals, the bound, and the unprotected release."""
    picture = Picture()
    ax = axes(picture, title, "epsilon (total cost of what the attacker saw)", "attacker's advantage")
    points = sorted(curve, key=lambda point: point.epsilon)
    epsilon = np.array([point.epsilon for point in points])
    fine = np.geomspace(epsilon[0] / 1.5, epsilon[-1] * 1.5, 200)
    ax.axhline(exposed, color=RED, linestyle="--", label=exposed_label)
    ax.plot(fine, np.tanh(fine / 2), color=GREY, label="bound tanh(epsilon / 2)")
    ax.fill_between(fine, np.tanh(fine / 2), 1, color=GREY, alpha=0.08, linewidth=0)
    ax.errorbar(epsilon, *_bars(points), fmt="o", color=BLUE, capsize=3, label="measured against Tacit")
    ax.set_xscale("log")
    ax.set_xticks(epsilon, [f"{value:g}" for value in epsilon])
    ax.minorticks_off()
    ax.set_ylim(-0.08, 1.08)
    legend_below(ax)
    return picture


def repeated_questions(
    repeats: Sequence[int], redrawn: Sequence[Measured], stored: Sequence[Measured], epsilon: float
) -> Picture:
    """Draw the advantage over the number of repetitions: fresh noise climbs, a stored answer does not."""
    picture = Picture()
    ax = axes(
        picture,
        f"Asking again, epsilon {epsilon:g} each",
        "how often the question is asked",
        "attacker's advantage",
    )
    for points, color, label in ((redrawn, RED, "fresh noise"), (stored, BLUE, "stored answer")):
        ax.errorbar(repeats, *_bars(points), fmt="o-", color=color, capsize=3, label=label)
        ax.plot(repeats, [point.bound for point in points], "--", color=color, label=f"bound, {label}")
    ax.set_xscale("log")
    ax.set_xticks(list(repeats), [str(again) for again in repeats])
    ax.minorticks_off()
    ax.set_ylim(-0.08, 1.08)
    legend_below(ax, columns=2)
    return picture


def _bars(points: Sequence[Measured]) -> tuple[list[float], list[list[float]]]:
    heights = [point.advantage for point in points]
    below = [point.advantage - point.low for point in points]
    above = [point.high - point.advantage for point in points]
    return heights, [below, above]


def explanation(meant: Explanation) -> Picture:
    """Draw belief after over belief before, the best test, and what the cost means for families."""
    picture = Picture(11, 3.9)
    share = np.linspace(0, 1, 201)
    before = share[1:-1]
    loss, label = meant.odds_limit
    left = axes(picture, "What an attacker can believe", "belief before", "belief after", (1, 3, 1))
    left.plot(share, share, "--", color=GREY, label="unchanged")
    for sign, color, text in ((1, RED, "at most"), (-1, BLUE, "at least")):
        odds = before / (1 - before) * np.exp(sign * loss)
        left.plot(before, odds / (1 + odds), color=color, label=text)
    legend_below(left, title=label)
    middle = axes(picture, "The best test", "false alarms", "true alarms", (1, 3, 2))
    rates, power = np.linspace(0, 1, 201), best_test(meant.cost)
    middle.plot(share, share, "--", color=GREY, label="blind guessing")
    middle.plot(rates, [power(float(rate)) for rate in rates], color=RED, label="best possible")
    legend_below(middle)
    right = axes(picture, "Groups and families", "people together", "advantage, at most", (1, 3, 3))
    sizes = [str(family.size) for family in meant.families]
    right.bar(sizes, [family.advantage for family in meant.families], color=BLUE, width=0.6)
    right.set_ylim(0, 1)
    return picture


def tradeoff_curve(answer: Tradeoff) -> Picture:
    """Draw error over epsilon with the answer marked, and error over n where n matters."""
    picture = Picture(11 if answer.crowd else 7, 4.2)
    columns = 2 if answer.crowd else 1
    sure = f"{100 * answer.confidence:g} % of answers within"
    ax = axes(picture, f"Error of a {answer.question.statistic}", "epsilon", sure, (1, columns, 1))
    ax.loglog(*zip(*answer.curve, strict=True), color=BLUE)
    ax.plot([answer.epsilon], [answer.error], "o", color=RED)
    ax.annotate(
        f"epsilon {answer.epsilon:.3g}\nfor +/- {answer.error:g}",
        (answer.epsilon, answer.error),
        xytext=(10, 10),
        textcoords="offset points",
        color=RED,
    )
    logarithmic(ax.xaxis, ax.yaxis)
    if answer.crowd:
        side = axes(picture, f"... and with n, at epsilon {answer.epsilon:.3g}", "n", sure, (1, 2, 2))
        side.loglog(*zip(*answer.crowd, strict=True), "o-", color=GREEN)
        side.set_xticks([n for n, _ in answer.crowd], [f"{n:,}" for n, _ in answer.crowd])
        side.minorticks_off()
        logarithmic(side.yaxis)
    return picture


def rate_distortion_curves(figure: RateDistortion) -> Picture:
    """Draw MSE over epsilon, and MSE over KL with the Gaussian line for comparison."""
    picture = Picture(11, 4.2)
    points = figure.points
    epsilon = [p.epsilon for p in points]
    left = axes(picture, "Error of a count", "epsilon", "mean squared error", (1, 2, 1))
    left.loglog(epsilon, [p.textbook_mse for p in points], "--", color=GREY, label="textbook 2 / epsilon^2")
    left.loglog(epsilon, [p.mse for p in points], "o-", color=BLUE, label="noise drawn")
    left.legend(fontsize=9)
    right = axes(
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
    right.loglog([p.kl for p in points], [p.mse for p in points], "o-", color=BLUE, label="Laplace, drawn")
    ends = np.geomspace(points[0].kl, points[-1].kl, 50)
    right.loglog(ends, 0.5 / ends, color=ORANGE, label="Gaussian: KL x MSE = 1/2 (not pure)")
    right.legend(fontsize=9)
    logarithmic(left.xaxis, left.yaxis, right.xaxis, right.yaxis)
    return picture


def small_crowd_density(crowd: SmallCrowd) -> Picture:
    """Draw the density of the noisy answer, the useless part shaded."""
    picture = Picture()
    title = f"Sum of a few people, epsilon {crowd.epsilon:g}: useless with probability {crowd.useless:.2f}"
    ax = axes(picture, title, "answer", "density")
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
        label="negative, or off by more than 100 %",
    )
    ax.axvline(crowd.truth, color=GREY, linestyle="--", label=f"truth {crowd.truth:g}")
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=9)
    return picture


def spending(bought: Spending) -> Picture:
    """Draw each question's share and relative error, and the sum of errors over the budget."""
    picture = Picture(11, 4.2)
    names = [one.name for one in bought.purchases]
    left = axes(picture, f"Epsilon {bought.epsilon:g}, divided", "", "share of the budget", (1, 2, 1))
    bars = left.bar(names, [one.share for one in bought.purchases], color=BLUE, width=0.6)
    left.bar_label(bars, [f"error {one.relative:.2%}" for one in bought.purchases], fontsize=9)
    left.margins(y=0.15)
    right = axes(
        picture, "What more budget would buy", "epsilon", "sum of weighted relative errors", (1, 2, 2)
    )
    budget = np.geomspace(bought.epsilon / 8, bought.epsilon * 8, 60)
    right.loglog(budget, bought.equal_split * bought.epsilon / budget, "--", color=GREY, label="equal shares")
    right.loglog(budget, bought.total * bought.epsilon / budget, color=BLUE, label="best division")
    right.plot([bought.epsilon], [bought.total], "o", color=RED)
    logarithmic(right.xaxis, right.yaxis)
    right.legend(fontsize=9)
    return picture
