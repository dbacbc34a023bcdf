"""Pictures by matplotlib (extra ``plot``): opaque background and strong lines, legible on light and dark pages."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

try:
    from matplotlib.figure import Figure
except ImportError as missing:  # pragma: no cover - the test environment has matplotlib
    from tacit.errors import TacitError

    raise TacitError(
        "not-installed",
        "pictures need matplotlib, which is not installed",
        why="it is left out of the base installation to keep it small",
        fix="pip install 'tacit[plot]'",
    ) from missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tacit.audit.lab.game import Success

__all__ = ["Picture", "repeated_questions", "success_curve"]

BLUE, ORANGE, GREEN, RED, GREY = "#1f5fa8", "#c25e00", "#1b7f4b", "#b3261e", "#555555"


class Picture(Figure):
    """A matplotlib figure that shows itself in a notebook and needs no window system."""

    def __init__(self, width: float = 7.0, height: float = 4.2) -> None:
        super().__init__(figsize=(width, height), layout="constrained", facecolor="white", dpi=110)

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def axes(picture: Picture, title: str, xlabel: str, ylabel: str, place: tuple[int, int, int] = (1, 1, 1)) -> Axes:
    """Add one plain set of axes."""
    ax: Axes = picture.add_subplot(*place)
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(visible=True, color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def success_curve(
    curve: Sequence[Success], title: str, *, exposed: float, exposed_label: str
) -> Picture:
    """Draw the measured advantage with its intervals, the bound, and what the unprotected release gives away."""
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
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.93), fontsize=9, framealpha=0.95)
    return picture


def repeated_questions(
    repeats: Sequence[int], redrawn: Sequence[Success], stored: Sequence[Success], epsilon: float
) -> Picture:
    """Draw the advantage over the number of repetitions: fresh noise climbs, a stored answer does not."""
    picture = Picture()
    ax = axes(picture, f"Asking again, epsilon {epsilon:g} each", "how often the question is asked", "attacker's advantage")
    for points, color, label in ((redrawn, RED, "fresh noise"), (stored, BLUE, "stored answer")):
        ax.errorbar(repeats, *_bars(points), fmt="o-", color=color, capsize=3, label=label)
        ax.plot(repeats, [point.bound for point in points], "--", color=color, label=f"bound, {label}")
    ax.set_xscale("log")
    ax.set_xticks(list(repeats), [str(again) for again in repeats])
    ax.minorticks_off()
    ax.set_ylim(-0.08, 1.08)
    ax.legend(loc="center left", fontsize=9, framealpha=0.95)
    return picture


def _bars(points: Sequence[Success]) -> tuple[list[float], list[list[float]]]:
    heights = [point.advantage for point in points]
    below = [point.advantage - point.low for point in points]
    above = [point.high - point.advantage for point in points]
    return heights, [below, above]
