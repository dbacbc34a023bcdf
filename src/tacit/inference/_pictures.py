"""Pictures of inference: coefficients with their intervals, and survival curves with bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.core import about_release
from tacit.inference._estimate import percent_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.inference._regression_table import RegressionTable
    from tacit.inference._survival_curves import SurvivalCurves
    from tacit.picture import Picture

_COLOURS = ("#0b7285", "#c25e00", "#1b7f4b", "#b3261e", "#5f3dc4", "#555555", "#a61e4d", "#7a5c00")
_GREY = "#888888"
_COVERS = "for privacy noise and chance in who was included"


def plot_coefficients(found: RegressionTable, ax: Axes | None, certificate: Certificate) -> Axes | Picture:
    """Draw each coefficient in its own units with its interval; those that the noise hides have none."""
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(6.5, 1.6 + 0.5 * len(found.coefficients))
        plot_coefficients(found, picture.subplots(), certificate)
        return picture
    names = list(found.coefficients)
    for place, (name, one) in enumerate(found.coefficients.items()):
        if one.value is None or one.low is None or one.high is None:
            ax.text(0, place, "hidden by the noise", ha="center", va="center", fontsize=8, color=_GREY)
            continue
        ends = [[one.value - one.low], [one.high - one.value]]
        ax.errorbar([one.value], [place], xerr=ends, fmt="o", color=_COLOURS[0], capsize=3, label=name)
    ax.axvline(0, color=_GREY, linewidth=0.8, linestyle="--")
    ax.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    _finish(ax, "coefficients", certificate, found.model.level)
    ax.set_xlabel("change of the outcome for each unit" if found.model.fit == "linear" else "log-odds")
    return ax


def plot_curves(found: SurvivalCurves, ax: Axes | None, certificate: Certificate) -> Axes | Picture:
    """Draw the curves as steps with their bands, as far as the noise leaves enough at risk."""
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(7.0, 4.4)
        plot_curves(found, picture.subplots(), certificate)
        return picture
    for colour, (group, curve) in zip(_COLOURS, found.curves.items(), strict=False):
        known = [one for one in curve if one.value is not None]
        times = np.array(found.cuts[: len(known) + 1])
        value, low, high = (
            np.array([1.0, *(float(getattr(one, end)) for one in known)]) for end in ("value", "low", "high")
        )
        label = str(group).replace("$", r"\$") if found.by else None
        ax.step(times, value, where="post", color=colour, linewidth=1.6, label=label)
        ax.fill_between(times, low, high, step="post", color=colour, alpha=0.18, linewidth=0)
    _finish(ax, "share without the event", certificate, found.level)
    ax.set(
        xlim=(found.cuts[0], found.cuts[-1]),
        ylim=(0, 1.02),
        xlabel=found.time,
        ylabel="share without the event",
    )
    if found.by:
        ax.legend(fontsize=8, frameon=False, title=found.by.replace("$", r"\$"), title_fontsize=8)
    return ax


def _finish(ax: Axes, what: str, certificate: Certificate, level: float) -> None:
    about = about_release(what, certificate).replace("$", r"\$")
    ax.set_title(f"{about}\n{percent_words(level)} intervals {_COVERS}", fontsize=9, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3)
