"""The figures of an evaluation: calibration by bin of the score, and the curve of hits and false alarms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tacit.show import GREY, Chart, ChartAxis, ChartSeries, Figure, chosen

if TYPE_CHECKING:
    from tacit.learn._evaluation_table import Evaluation

_ENDS = (0.0, 1.0)
_GUESSING = ChartSeries("line", _ENDS, _ENDS, colour=GREY, dashed=True)


def evaluation_figures(found: Evaluation, what: str | None) -> tuple[Figure, ...]:
    """Return ``calibration`` and, for two classes, ``roc``."""
    made = {"calibration": _calibration} if found.auc is None else {"calibration": _calibration, "roc": _roc}
    measured = f"accuracy {found.accuracy}" + (f", AUC {found.auc}" if found.auc else "")
    return chosen(what, {name: partial(_figure, name, make, found, measured) for name, make in made.items()})


def _figure(name: str, make: object, found: Evaluation, measured: str) -> Figure:
    return Figure(name, (make(found),), (measured,))  # type: ignore[operator]


def _calibration(found: Evaluation) -> Chart:
    """Return the share of the second class in each bin that has enough rows, with its interval."""
    middles = (found.edges[1:] + found.edges[:-1]) / 2
    shown = [i for i, one in enumerate(found.outcomes) if one.high - one.low < 1]
    ends = ([getattr(found.outcomes[i], end) for i in shown] for end in ("value", "low", "high"))
    words = f"share of {found.classes[1]}" if len(found.classes) == 2 else "share of right answers"
    x = ChartAxis("score of the model", ends=_ENDS)
    y = ChartAxis(f"{words}, {found.confidence * 100:g} % intervals", ends=_ENDS)
    return Chart((_GUESSING, ChartSeries.of("points", middles[shown].tolist(), ends)), x, y)


def _roc(found: Evaluation) -> Chart:
    """Return hits against false alarms, from the highest score down; noise is smoothed to rising steps."""
    shares = [np.cumsum(line[::-1]) / max(float(line.sum()), 1.0) for line in found.counts]
    alarms, hits = (np.r_[0, np.clip(np.maximum.accumulate(one), 0, 1)].tolist() for one in shares)
    x, y = (ChartAxis(f"share of {one} above the score", ends=_ENDS) for one in found.classes)
    return Chart((_GUESSING, ChartSeries("line", alarms, hits)), x, y)
