"""The figures of attacks that explain a bound: measured against proven, proven against claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from tacit.show import BLUE, GREY, RED, Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The axis of advantages, on which blind guessing is 0 and an attacker who is always right is 1.
ADVANTAGE = ChartAxis("attacker's advantage", ends=(-0.08, 1.08))


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
) -> Figure:
    """Show the measured advantage with its intervals, the bound, and the advantage without protection."""
    line = ChartSeries("across", (), (exposed,), label=exposed_label, colour=RED, dashed=True)
    epsilon = "epsilon (total cost of what the attacker saw)"
    return Figure(title, (advantage_chart(curve, "", (line,), epsilon),))


def advantage_chart(
    curve: Sequence[MeasuredAdvantage],
    title: str,
    more: tuple[ChartSeries, ...] = (),
    epsilon: str = "epsilon",
) -> Chart:
    """Return the measured advantage with its intervals over epsilon, and the bound of a pure cost."""
    epsilons = sorted(point.epsilon for point in curve)
    fine = np.geomspace(epsilons[0] / 1.5, epsilons[-1] * 1.5, 100)
    bound = np.tanh(fine / 2).tolist()
    impossible = ChartSeries(
        "line", fine.tolist(), bound, bound, [1.0] * 100, "bound tanh(epsilon / 2)", GREY
    )
    measured = advantage_points(curve, "measured against Tacit", BLUE)
    return Chart((*more, impossible, measured), named_powers(epsilons, epsilon), ADVANTAGE, title)


def advantage_points(curve: Sequence[MeasuredAdvantage], label: str, colour: int) -> ChartSeries:
    """Return measured advantages with their intervals over epsilon."""
    points = sorted(curve, key=lambda point: point.epsilon)
    ends = ((getattr(point, end) for point in points) for end in ("advantage", "low", "high"))
    return ChartSeries.of("points", [point.epsilon for point in points], ends, label=label, colour=colour)


def named_powers(values: Sequence[float], name: str, form: str = "g") -> ChartAxis:
    """Return a logarithmic axis on which exactly these values are written."""
    return ChartAxis(
        name, kind="logarithmic", ticks=tuple((float(value), format(value, form)) for value in values)
    )


def repeated_questions(
    repeats: Sequence[int],
    redrawn: Sequence[MeasuredAdvantage],
    stored: Sequence[MeasuredAdvantage],
    epsilon: float,
) -> Figure:
    """Show the advantage over the number of repetitions, for fresh noise and for stored answers."""
    series = []
    for points, colour, label in ((redrawn, RED, "fresh noise"), (stored, BLUE, "stored answer")):
        ends = ((getattr(point, end) for point in points) for end in ("advantage", "low", "high"))
        series.append(ChartSeries.of("joined", repeats, ends, label=label, colour=colour))
        bounds = [point.bound for point in points]
        series.append(
            ChartSeries("line", repeats, bounds, label=f"bound, {label}", colour=colour, dashed=True)
        )
    chart = Chart(tuple(series), named_powers(repeats, "number of times the question is asked"), ADVANTAGE)
    return Figure(f"The same question again, epsilon {epsilon:g} each time", (chart,))


def audit_curves(
    epsilons: Sequence[float],
    proven: Sequence[float],
    claimed: Sequence[float] | None,
    events: Mapping[str, float],
    *,
    confidence: float,
    delta: float,
) -> Figure:
    """Show the proven lower bound on delta, the claimed curve, and the epsilon that each event proves."""
    curves = [ChartSeries("line", epsilons, proven, label="proven: at least")]
    if claimed is not None:
        curves.append(
            ChartSeries("line", epsilons, claimed, label="claimed: at most", colour=RED, dashed=True)
        )
    left = Chart(
        tuple(curves),
        ChartAxis("epsilon"),
        ChartAxis("delta"),
        f"Lower bound at confidence {confidence:.10g}",
    )
    named = f"proven epsilon at delta {delta:g}"
    if any(value > 0 for value in events.values()):
        bars = ChartSeries("bars", range(len(events)), list(events.values()))
        right = Chart(
            (bars,), ChartAxis("", tuple(events)), ChartAxis(named, ends=(0.0, None)), "Events", sideways=True
        )
    else:
        right = Chart((), ChartAxis(), ChartAxis(named), "Events", note="no event proves more than 0")
    return Figure("", (left, right), across=2)


def membership_curve(
    alarms: Sequence[float],
    found: Sequence[float],
    rates: Sequence[float],
    allowed: Sequence[float] | None,
) -> Figure:
    """Show the share of members that an attack finds over its false alarms, and what a claim allows."""
    series = [ChartSeries("line", alarms, found, label="this attack")]
    if allowed is not None:
        series.insert(
            0,
            ChartSeries("line", rates, allowed, label="claimed: any attack at most", colour=RED, dashed=True),
        )
    series.append(
        ChartSeries("line", (0.0, 1.0), (0.0, 1.0), label="blind guessing", colour=GREY, dashed=True)
    )
    x, y = (ChartAxis(f"share of {what}", kind="shares") for what in ("false alarms", "members found"))
    return Figure("Who was in the training data?", (Chart(tuple(series), x, y),))
