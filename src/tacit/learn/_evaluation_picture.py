"""Pictures of an evaluation: calibration by bin of the score, and the curve of hits and false alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.core import about_release
from tacit.errors import bad_parameter
from tacit.fixes import Choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.learn._evaluation_table import Evaluation
    from tacit.picture import Picture

_COLOUR, _GREY = "#0b7285", "#888888"


def plot_evaluation(
    found: Evaluation, what: str, ax: Axes | None, certificate: Certificate
) -> Axes | Picture:
    """Draw ``calibration`` or ``roc``."""
    allowed = ("calibration",) if found.auc is None else ("calibration", "roc")
    if what not in allowed:
        raise bad_parameter("column", "a picture of this evaluation", what, fix=Choose(allowed, given=what))
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(5.2, 5.0)
        plot_evaluation(found, what, picture.subplots(), certificate)
        return picture
    (_draw_calibration if what == "calibration" else _draw_roc)(found, ax)
    about = about_release(what, certificate).replace("$", r"\$")
    measured = f"accuracy {found.accuracy}" + (f", AUC {found.auc}" if found.auc else "")
    ax.set_title(f"{about}\n{measured}", fontsize=9, loc="left")
    ax.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, linestyle="--")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3)
    return ax


def _draw_calibration(found: Evaluation, ax: Axes) -> None:
    """Draw the share of the second class in each bin that has enough rows, with its interval."""
    middles = (found.edges[1:] + found.edges[:-1]) / 2
    shown = [i for i, one in enumerate(found.outcomes) if one.high - one.low < 1]
    value = np.array([found.outcomes[i].value for i in shown])
    ends = np.array([[found.outcomes[i].low, found.outcomes[i].high] for i in shown]).reshape(-1, 2)
    errors = np.abs(ends.T - value)
    ax.errorbar(middles[shown], value, yerr=errors, fmt="o", color=_COLOUR, capsize=2, markersize=4)
    ax.set_xlabel("score of the model")
    words = f"share of {found.classes[1]}" if len(found.classes) == 2 else "share of right answers"
    ax.set_ylabel(f"{words}, {found.confidence * 100:g} % intervals")


def _draw_roc(found: Evaluation, ax: Axes) -> None:
    """Draw hits against false alarms, from the highest score down; noise is smoothed to rising steps."""
    shares = [np.cumsum(line[::-1]) / max(float(line.sum()), 1.0) for line in found.counts]
    alarms, hits = (np.r_[0, np.clip(np.maximum.accumulate(one), 0, 1)] for one in shares)
    ax.plot(alarms, hits, color=_COLOUR, linewidth=1.6, marker=".", markersize=4)
    ax.set_xlabel(f"share of {found.classes[0]} above the score")
    ax.set_ylabel(f"share of {found.classes[1]} above the score")
