"""The content of an evaluation: accuracy, AUC and calibration of a model, with intervals and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import AnswerTable, Cells, Content
from tacit.learn._arrays import from_document, to_document
from tacit.learn._evaluation_reading import MeasuredShare
from tacit.report import Report, ReportTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from tacit.core import JSON, Value
    from tacit.show import Figure

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
            one = getattr(self, name)
            if one is not None:
                noise = f"{one.noise:.3f}"
                rows.append((name, words, f"{one.value:.3f}", f"{one.low:.3f} to {one.high:.3f}", noise))
        outcome = f"share of {self.classes[1]}" if len(self.classes) == 2 else "share of right answers"
        bins = tuple(
            (f"{a:g} to {b:g}", f"{max(n, 0):,.0f}", f"{one.value:.2f}", f"{one.low:.2f} to {one.high:.2f}")
            for a, b, n, one in zip(
                self.edges, self.edges[1:], self.counts.sum(axis=0), self.outcomes, strict=False
            )
            if one.high - one.low < 1
        )
        level = f"{self.confidence * 100:g} %"
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
        known = {name: one for name in _MEASURES if (one := getattr(self, name)) is not None}
        yield "measures", self._table({"measure": tuple(known)}, "value", tuple(known.values()))
        low, high = (tuple(self.edges[part].tolist()) for part in (slice(-1), slice(1, None)))
        yield "outcomes", self._table({"from": low, "to": high}, "share", self.outcomes)

    def _table(
        self, keys: dict[str, tuple[Value, ...]], name: str, shares: tuple[MeasuredShare, ...]
    ) -> AnswerTable:
        ends = (tuple(float(getattr(one, end)) for one in shares) for end in ("value", "low", "high"))
        return AnswerTable(keys, {name: Cells(*ends)}, self.confidence)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the ``calibration`` by bin, and the share of hits against that of false alarms (``roc``)."""
        from tacit.learn._evaluation_figures import evaluation_figures

        return evaluation_figures(self, what)


def _numbers(one: MeasuredShare | None) -> JSON:
    return None if one is None else [one.value, one.low, one.high, one.noise]


def _read(document: Any) -> MeasuredShare | None:
    return None if document is None else MeasuredShare(*(float(number) for number in document))
