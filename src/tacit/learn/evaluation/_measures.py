"""The measures of an evaluation: accuracy, AUC and calibration, with their intervals and figures.

Each measure is a smooth function of the counts of all cells. To first order its error is a sum over cells of
the cell's influence times its error, so the noise adds sigma^2 times the sum of squared influences, and the
sample of patients adds the sum of counts times squared influences. No patient is drawn a second time.

The figures are calibration by bin of the score, and the curve of hits and false alarms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from html import escape
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Cells, Content
from tacit.learn._arrays import from_document, to_document
from tacit.report import Report, ReportTable, short_percent
from tacit.show import GREY, Chart, ChartAxis, ChartSeries, Figure, chosen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, Value


_ENDS = (0.0, 1.0)
_GUESSING = ChartSeries("line", _ENDS, _ENDS, colour=GREY, dashed=True)


@dataclass(frozen=True, slots=True)
class MeasuredShare:
    """A measure of a model on held-out units, with an interval for the noise and for the sample of units.

    Parameters
    ----------
    value
        The estimate.
    low, high
        The interval for patients like these: noise and sampling together.
    noise
        The half-width that the noise alone would have.
    """

    value: float
    low: float
    high: float
    noise: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, slots=True)
class HistogramReader:
    """Noisy counts of rows by bin of the score, for the wrong or first class and for the right or second.

    Parameters
    ----------
    edges
        The public edges of the bins.
    counts
        Two lines of noisy counts.
    sigma
        The standard deviation of the noise of a count.
    per_unit
        How many rows one unit can have: the sample of units then varies at most so many times as much.
    confidence
        How often intervals cover.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.float64]
    sigma: float
    per_unit: int
    confidence: Fraction

    @property
    def total(self) -> float:
        """The noisy number of rows, at least 1."""
        return max(1.0, float(self.counts.sum()))

    @property
    def middles(self) -> NDArray[np.float64]:
        """The middle of each bin."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    def share(self, hit: NDArray[np.float64], low: float = 0.0, high: float = 1.0) -> MeasuredShare:
        """Return the mean over all rows of a public number for each cell: accuracy, calibration."""
        value = float((self.counts * hit).sum()) / self.total
        enough = self.counts.sum() > 3 * self.sigma * np.sqrt(self.counts.size)
        return self._measured(value, (hit - value) / self.total, low, high, enough=bool(enough))

    def auc(self) -> MeasuredShare:
        """Return the chance that a row of the second class scores above one of the first; ties count half."""
        negatives, positives = self.counts
        sizes = negatives.sum(), positives.sum()
        enough = min(sizes) > 3 * self.sigma * np.sqrt(len(negatives))
        negative, positive = negatives / max(sizes[0], 1.0), positives / max(sizes[1], 1.0)
        below = np.cumsum(negative) - negative / 2  # share of the first class below each bin
        above = positive.sum() - np.cumsum(positive) + positive / 2
        value = float((positive * below).sum())
        influence = np.stack([(above - value) / max(sizes[0], 1.0), (below - value) / max(sizes[1], 1.0)])
        return self._measured(value, influence, 0.0, 1.0, enough=bool(enough))

    def outcomes(self) -> tuple[MeasuredShare, ...]:
        """Return the share of the right or second class in each bin; an empty interval is all of 0 to 1."""
        outcomes = []
        for missed, hit in self.counts.T:
            rows = missed + hit
            enough = rows > 3 * self.sigma * np.sqrt(2)
            value = min(max(hit / rows, 0.0), 1.0) if rows > 0 else 0.5
            noise = self.sigma**2 * (value**2 + (1 - value) ** 2) / max(rows, 1.0) ** 2
            sample = self.per_unit * max(value * (1 - value), 1 / max(rows, 4.0)) / max(rows, 1.0)
            outcomes.append(self._interval(value, noise, sample, 0.0, 1.0, enough=bool(enough)))
        return tuple(outcomes)

    def _measured(
        self, value: float, influence: NDArray[np.float64], low: float, high: float, *, enough: bool
    ) -> MeasuredShare:
        """Return a measure with the variance that its influences give."""
        noise = self.sigma**2 * float((influence**2).sum())
        sample = self.per_unit * max(float((self.counts * influence**2).sum()), 0.0)
        return self._interval(value, noise, sample, low, high, enough=enough)

    def _interval(
        self, value: float, noise: float, sample: float, low: float, high: float, *, enough: bool
    ) -> MeasuredShare:
        quantile = NormalDist().inv_cdf((1 + float(self.confidence)) / 2)
        if not enough:
            return MeasuredShare(min(max(value, low), high), low, high, high - low)
        half = quantile * float(np.sqrt(noise + sample))
        ends = min(max(value - half, low), high), max(min(value + half, high), low)
        return MeasuredShare(min(max(value, low), high), *ends, quantile * float(np.sqrt(noise)))


_MEASURES = ("accuracy", "auc", "calibration")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Content):
    """How well a model does on held-out units.

    Parameters
    ----------
    accuracy
        The share of rows whose class is right, where the likelier class is chosen.
    auc
        The chance that a unit of the second class scores higher than one of the first, for scores in public
        bins; None with more than two classes.
    calibration
        The share of the second class (or of right answers) minus the mean score, scores rounded to the middle
        of their bin. A calibrated model has 0.
    outcomes
        For each bin, the share of the second class (or of right answers).
    edges
        The public edges of the bins.
    counts
        The noisy counts: two lines, one number for each bin.
    classes
        The declared classes.
    confidence
        How often intervals cover.
    """

    kind: ClassVar[str] = "evaluation"
    described: ClassVar[str] = "an evaluation of a model"
    accuracy: MeasuredShare
    auc: MeasuredShare | None
    calibration: MeasuredShare
    outcomes: tuple[MeasuredShare, ...]
    edges: NDArray[np.float64]
    counts: NDArray[np.float64]
    classes: tuple[Any, ...]
    confidence: float

    def to_json(self) -> JSON:
        """Return the evaluation as JSON."""
        return {
            **{name: _numbers(getattr(self, name)) for name in _MEASURES},
            "outcomes": [_numbers(one) for one in self.outcomes],
            "edges": to_document(self.edges),
            "counts": to_document(self.counts),
            "classes": list(self.classes),
            "confidence": self.confidence,
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the evaluation back; raises ``ValueError`` where it is none."""
        measures = {name: _read(document[name]) for name in _MEASURES}
        outcomes = tuple(_read(one) for one in document["outcomes"])
        edges, counts = from_document(document["edges"]), from_document(document["counts"])
        needed = [measures["accuracy"], measures["calibration"], *outcomes]
        if None in needed or edges.ndim != 1 or counts.shape != (2, len(edges) - 1) != (2, len(outcomes)):
            raise ValueError("not an evaluation")
        return cls(
            **measures, outcomes=outcomes, edges=edges, counts=counts,  # type: ignore[arg-type]
            classes=tuple(document["classes"]), confidence=float(document["confidence"]),
        )  # fmt: skip

    def report(self) -> Report:
        """Return the measures, and the calibration by bin."""
        meaning = {
            "accuracy": "right answers",
            "auc": "a row of the second class scores higher",
            "calibration": "mean outcome minus mean score",
        }
        rows = []
        for name, words in meaning.items():
            measure = getattr(self, name)
            if measure is not None:
                noise = f"{measure.noise:.3f}"
                rows.append(
                    (name, words, f"{measure.value:.3f}", f"{measure.low:.3f} to {measure.high:.3f}", noise)
                )
        outcome = f"share of {self.classes[1]}" if len(self.classes) == 2 else "share of right answers"
        bins = tuple(
            (
                f"{a:g} to {b:g}",
                f"{max(n, 0):,.0f}",
                f"{measure.value:.2f}",
                f"{measure.low:.2f} to {measure.high:.2f}",
            )
            for a, b, n, measure in zip(
                self.edges, self.edges[1:], self.counts.sum(axis=0), self.outcomes, strict=False
            )
            if measure.high - measure.low < 1
        )
        level = short_percent(self.confidence)
        return Report(
            "Evaluation on held-out data",
            (f"About {max(self.counts.sum(), 0):,.0f} rows; intervals hold for patients like these.",),
            (
                ReportTable(
                    "", ("measure", "meaning", "value", f"{level} interval", "of it noise"), tuple(rows)
                ),
                ReportTable("Calibration by score", ("score", "rows", outcome, f"{level} interval"), bins),
            ),
            ("Intervals cover the noise and the sampling of patients, to first order.",),
        )

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the report for a terminal."""
        return "\n".join([self.report().text(), *marks])

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the report for a notebook."""
        return self.report().html() + "".join(f"<p>{escape(mark)}</p>" for mark in marks)

    def __repr__(self) -> str:
        return self.text()

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the measures, and the outcomes of each bin of scores."""
        measures = {name: measure for name in _MEASURES if (measure := getattr(self, name)) is not None}
        yield "measures", self._table({"measure": tuple(measures)}, "value", tuple(measures.values()))
        low, high = (tuple(self.edges[part].tolist()) for part in (slice(-1), slice(1, None)))
        yield "outcomes", self._table({"from": low, "to": high}, "share", self.outcomes)

    def _table(
        self, keys: dict[str, tuple[Value, ...]], name: str, shares: tuple[MeasuredShare, ...]
    ) -> AnswerTable:
        ends = (tuple(float(getattr(one, end)) for one in shares) for end in ("value", "low", "high"))
        return AnswerTable(keys, {name: Cells(*ends)}, self.confidence)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the ``calibration`` by bin, and the share of hits against that of false alarms (``roc``)."""
        return evaluation_figures(self, what)


def _numbers(measure: MeasuredShare | None) -> JSON:
    return None if measure is None else [measure.value, measure.low, measure.high, measure.noise]


def _read(document: Any) -> MeasuredShare | None:
    return None if document is None else MeasuredShare(*(float(number) for number in document))


def evaluation_figures(evaluation: Evaluation, figure: str | None) -> tuple[Figure, ...]:
    """Return ``calibration`` and, for two classes, ``roc``."""
    charts = (
        {"calibration": _calibration}
        if evaluation.auc is None
        else {"calibration": _calibration, "roc": _roc}
    )
    caption = f"accuracy {evaluation.accuracy}" + (f", AUC {evaluation.auc}" if evaluation.auc else "")
    return chosen(
        figure, {name: partial(_figure, name, make, evaluation, caption) for name, make in charts.items()}
    )


def _figure(name: str, make: object, evaluation: Evaluation, caption: str) -> Figure:
    return Figure(name, (make(evaluation),), (caption,))  # type: ignore[operator]


def _calibration(evaluation: Evaluation) -> Chart:
    """Return the share of the second class in each bin that has enough rows, with its interval."""
    middles = (evaluation.edges[1:] + evaluation.edges[:-1]) / 2
    indices = [i for i, one in enumerate(evaluation.outcomes) if one.high - one.low < 1]
    ends = ([getattr(evaluation.outcomes[i], end) for i in indices] for end in ("value", "low", "high"))
    words = f"share of {evaluation.classes[1]}" if len(evaluation.classes) == 2 else "share of right answers"
    x = ChartAxis("score of the model", ends=_ENDS)
    y = ChartAxis(f"{words}, {short_percent(evaluation.confidence)} intervals", ends=_ENDS)
    return Chart((_GUESSING, ChartSeries.of("points", middles[indices].tolist(), ends)), x, y)


def _roc(evaluation: Evaluation) -> Chart:
    """Return hits against false alarms, from the highest score down; noise is smoothed to rising steps."""
    shares = [np.cumsum(line[::-1]) / max(float(line.sum()), 1.0) for line in evaluation.counts]
    alarms, hits = (np.r_[0, np.clip(np.maximum.accumulate(one), 0, 1)].tolist() for one in shares)
    x, y = (ChartAxis(f"share of {one} above the score", ends=_ENDS) for one in evaluation.classes)
    return Chart((_GUESSING, ChartSeries("line", alarms, hits)), x, y)
