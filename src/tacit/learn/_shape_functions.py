"""The content of explainable boosting: an intercept, and for each feature a shape with a band."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.learn._boosting_bins import FeatureBins
from tacit.learn._fitted_numbers import FittedNumbers
from tacit.report import Report, ReportTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.show import Figure


@dataclass(frozen=True, slots=True)
class ShapeFunction:
    """The shape of one feature: what each bin adds to the score, in units of log odds.

    Parameters
    ----------
    feature
        The feature's name.
    cuts
        The public cuts between its bins; one more bin is for missing values.
    values
        What each bin adds; the mean over the (noisy) number of examples in each bin is 0.
    error
        The half-width of the band around each value, for the noise alone, to first order.
    share
        The noisy share of the examples in each bin.
    words
        The words for the bins, where the feature is a category.
    """

    feature: str
    cuts: tuple[float, ...]
    values: tuple[float, ...]
    error: tuple[float, ...]
    share: tuple[float, ...]
    words: tuple[str, ...] = ()

    @property
    def importance(self) -> float:
        """The mean size of what the feature adds."""
        return float(np.dot(np.abs(self.values), self.share))

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins in words."""
        if self.words:
            return (*self.words, "missing")
        ends = [f"{cut:g}" for cut in self.cuts]
        if not ends:
            return ("all", "missing")
        middle = [f"{a} to {b}" for a, b in pairwise(ends)]
        return (f"below {ends[0]}", *middle, f"{ends[-1]} and above", "missing")


@dataclass(frozen=True, eq=False, repr=False)
class ShapeFunctions(FittedNumbers):
    """An additive model that explains itself: the score is the intercept plus one value for each feature.

    The score is in log odds of the second of the two declared classes. ``numbers`` holds the intercept, and
    the values, errors and shares of all bins, one feature after the other.
    """

    kind: ClassVar[str] = "shape-functions"
    described: ClassVar[str] = "an explainable model"

    def __post_init__(self) -> None:
        bins = sum(len(cuts) + 2 for cuts in self._said("cuts"))
        held = [self.numbers[name].shape for name in ("values", "error", "share")]
        if self.numbers["intercept"].shape or set(held) != {(bins,)} or len(self.classes) != 2:
            raise ValueError("not shape functions")
        if any(one.words and len(one.words) != len(one.cuts) + 1 for one in self.shapes):
            raise ValueError("not shape functions")

    def _said(self, name: str) -> Any:
        return self.settings[name]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The two declared classes."""
        return tuple(self._said("classes"))

    @property
    def intercept(self) -> float:
        """The score of an example to which no feature adds anything, in log odds."""
        return float(self.numbers["intercept"])

    @cached_property
    def shapes(self) -> tuple[ShapeFunction, ...]:
        """The shape of each feature."""
        words: dict[str, Any] = self._said("categories")
        names, cuts = self._said("names"), [tuple(float(x) for x in one) for one in self._said("cuts")]
        ends = np.cumsum([0, *(len(one) + 2 for one in cuts)]).tolist()
        found = []
        for name, own, (a, b) in zip(names, cuts, pairwise(ends), strict=True):
            parts = (self.numbers[kind][a:b].tolist() for kind in ("values", "error", "share"))
            values, error, share = (tuple(part) for part in parts)
            known = tuple(str(word) for word in words.get(name, ()))
            found.append(ShapeFunction(str(name), own, values, error, share, known))
        return tuple(found)

    def decision_function(self, features: Any) -> NDArray[np.float64]:
        """Return the log odds of the second class for each row of features."""
        table = np.asarray(features, np.float64)
        places = FeatureBins(tuple((one.feature, one.cuts) for one in self.shapes)).places(table)
        score = np.full(len(table), self.intercept)
        for j, one in enumerate(self.shapes):
            score += np.asarray(one.values)[places[:, j]]
        return score

    def predict_proba(self, features: Any) -> NDArray[np.float64]:
        """Return the chances of the two classes for each row of features."""
        second = 1 / (1 + np.exp(-np.clip(self.decision_function(features), -500, 500)))
        return np.column_stack([1 - second, second])

    def report(self) -> Report:
        """Return the features by importance, and where each adds and takes most."""
        ordered = sorted(self.shapes, key=lambda one: -one.importance)
        rows = tuple(
            (one.feature, f"{one.importance:.2f}", _extreme(one, np.argmin), _extreme(one, np.argmax))
            for one in ordered
        )
        return Report(
            f"Explainable boosting for {self.classes[1]!r} against {self.classes[0]!r}",
            (f"Intercept {self.intercept:.2f}; each feature adds to the log odds by its bin.",),
            (ReportTable("", ("feature", "mean size", "takes most", "adds most"), rows),),
            ("+/- is the interval for the noise, to first order; sampling is not included.",),
        )

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the features by importance for a terminal."""
        return "\n".join([self.report().text(), *marks])

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the features by importance for a notebook."""
        from html import escape

        return self.report().html() + "".join(f"<p>{escape(mark)}</p>" for mark in marks)

    def __repr__(self) -> str:
        return self.text()

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the shapes of the most important features with their bands, or the shape of one feature."""
        from tacit.learn._shape_figures import shape_figures

        return shape_figures(self, what)


def _extreme(one: ShapeFunction, pick: Any) -> str:
    """Say which bin adds least or most, the bin for missing values aside."""
    at = int(pick(one.values[:-1]))
    return f"{one.labels[at]}: {one.values[at]:+.2f} +/- {one.error[at]:.2f}"
