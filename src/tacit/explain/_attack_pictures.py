"""Pictures of attacks that explain a bound: measured against proven, proven against claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from tacit.explain._axes import BLUE, GREY, RED, add_axes, legend_below, new_picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from tacit.picture import Picture


class MeasuredAdvantage(Protocol):
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


def success_curve(
    curve: Sequence[MeasuredAdvantage], title: str, *, exposed: float, exposed_label: str
) -> Picture:
    """Draw the measured advantage with its intervals, the bound, and the advantage without protection."""
    picture = new_picture()
    ax = add_axes(picture, title, "epsilon (total cost of what the attacker saw)", "attacker's advantage")
    ax.axhline(exposed, color=RED, linestyle="--", label=exposed_label)
    draw_advantage(ax, curve)
    legend_below(ax)
    return picture


def draw_advantage(
    ax: Axes,
    curve: Sequence[MeasuredAdvantage],
    *,
    label: str = "measured against Tacit",
    color: str = BLUE,
    bound: bool = True,
) -> None:
    """Draw the measured advantage with its intervals over epsilon, and the bound of a pure cost."""
    points = sorted(curve, key=lambda point: point.epsilon)
    epsilon = np.array([point.epsilon for point in points])
    if bound:
        fine = np.geomspace(epsilon[0] / 1.5, epsilon[-1] * 1.5, 200)
        ax.plot(fine, np.tanh(fine / 2), color=GREY, label="bound tanh(epsilon / 2)")
        ax.fill_between(fine, np.tanh(fine / 2), 1, color=GREY, alpha=0.08, linewidth=0)
    ax.errorbar(epsilon, *_bars(points), fmt="o", color=color, capsize=3, label=label)
    ax.set_xscale("log")
    ax.set_xticks(epsilon, [f"{value:g}" for value in epsilon])
    ax.minorticks_off()
    ax.set_ylim(-0.08, 1.08)


def repeated_questions(
    repeats: Sequence[int],
    redrawn: Sequence[MeasuredAdvantage],
    stored: Sequence[MeasuredAdvantage],
    epsilon: float,
) -> Picture:
    """Draw the advantage over the number of repetitions, for fresh noise and for stored answers."""
    picture = new_picture()
    ax = add_axes(
        picture,
        f"The same question again, epsilon {epsilon:g} each time",
        "number of times the question is asked",
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


def audit_curves(
    epsilons: Sequence[float],
    proven: Sequence[float],
    claimed: Sequence[float] | None,
    events: Mapping[str, float],
    *,
    confidence: float,
    delta: float,
) -> Picture:
    """Draw the proven lower bound on delta, the claimed curve, and the epsilon that each event proves."""
    picture = new_picture(10, 4)
    title = f"Lower bound at confidence {confidence:.10g}"
    left = add_axes(picture, title, "epsilon", "delta", (1, 2, 1))
    left.plot(epsilons, proven, color=BLUE, label="proven: at least")
    if claimed is not None:
        left.plot(epsilons, claimed, "--", color=RED, label="claimed: at most")
    left.legend(fontsize=9)
    right = add_axes(picture, "Events", f"proven epsilon at delta {delta:g}", "", (1, 2, 2))
    if any(value > 0 for value in events.values()):
        right.barh(list(events), list(events.values()), color=BLUE)
    else:
        right.text(0.5, 0.5, "no event proves more than 0", ha="center", transform=right.transAxes)
        right.set_yticks([])
    right.set_xlim(left=0)
    return picture


def membership_curve(
    alarms: Sequence[float],
    found: Sequence[float],
    rates: Sequence[float],
    allowed: Sequence[float] | None,
) -> Picture:
    """Draw the share of members that an attack finds over its false alarms, and what a claim allows."""
    picture = new_picture()
    ax = add_axes(picture, "Who was in the training data?", "share of false alarms", "share of members found")
    if allowed is not None:
        ax.plot(rates, allowed, "--", color=RED, label="claimed: any attack at most")
    ax.plot(alarms, found, color=BLUE, label="this attack")
    ax.plot([0, 1], [0, 1], ":", color=GREY, label="blind guessing")
    legend_below(ax)
    return picture


def _bars(points: Sequence[MeasuredAdvantage]) -> tuple[list[float], list[list[float]]]:
    heights = [point.advantage for point in points]
    below = [point.advantage - point.low for point in points]
    above = [point.high - point.advantage for point in points]
    return heights, [below, above]
