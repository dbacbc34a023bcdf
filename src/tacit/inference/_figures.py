"""The figures of inference: coefficients with their intervals, and survival curves with bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.inference._estimate import percent_words
from tacit.show import GREY, MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    from tacit.inference._regression_table import RegressionTable
    from tacit.inference._survival_curves import SurvivalCurves

_COVERS = "for privacy noise and chance in who was included"


def coefficients_figure(found: RegressionTable) -> Figure:
    """Return each coefficient in its own units with its interval; those that the noise hides have none."""
    ends = ((getattr(one, end) for one in found.coefficients.values()) for end in ("value", "low", "high"))
    zero = ChartSeries("across", (), (0.0,), colour=GREY, dashed=True)
    names = tuple(found.coefficients)
    hidden = ", ".join(name for name, one in found.coefficients.items() if one.value is None)
    units = "change of the outcome for each unit" if found.model.fit == "linear" else "log-odds"
    chart = Chart(
        (zero, ChartSeries.of("points", range(len(names)), ends)),
        ChartAxis("", names),
        ChartAxis(units),
        sideways=True,
    )
    words = [f"{percent_words(found.model.level)} intervals {_COVERS}"]
    words += [f"hidden by the noise: {hidden}"] if hidden else []
    return Figure("coefficients", (chart,), tuple(words))


def curves_figure(found: SurvivalCurves) -> Figure:
    """Return the curves as steps with their bands, as far as the noise leaves enough at risk."""
    series = []
    for number, (group, curve) in enumerate(list(found.curves.items())[:MOST_SERIES]):
        known = [one for one in curve if one.value is not None]
        times = [*found.cuts[: len(known) + 1], found.cuts[len(known)]]  # the last value is reached, not kept
        ends = ((1.0, *(getattr(one, end) for one in known)) for end in ("value", "low", "high"))
        series.append(
            ChartSeries.of("steps", times, ends, label=str(group) if found.by else "", colour=number)
        )
    x = ChartAxis(found.time, ends=(float(found.cuts[0]), float(found.cuts[-1])))
    chart = Chart(
        tuple(series), x, ChartAxis("share without the event", ends=(0.0, 1.02)), legend=found.by or ""
    )
    return Figure("share without the event", (chart,), (f"{percent_words(found.level)} intervals {_COVERS}",))
