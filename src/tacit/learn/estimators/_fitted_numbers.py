"""Fitted numbers, the content of an estimator's release: what was learned, and the public settings.

Explainable boosting releases shape functions: an intercept, and one shape with a band for each feature. A
shape has one height for each bin. The bins come from public cuts for each feature, and one more bin is for
missing values. The figures are small charts, one for each feature, with the band of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import JSON, Content, plain_table
from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.learn._arrays import from_document, to_document
from tacit.learn.estimators._declared_bounds import read_feature_bounds
from tacit.parameters import Instance, Integer, Listed, Mapped, refuse_auto
from tacit.report import Report, ReportTable
from tacit.show import GREY, MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure, chosen, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tacit.core import AnswerTable


_SHOWN = 8  # lines of a table that the text shows

_STORED: Instance[dict[str, Any]] = Instance(dict, "document=numbers.to_json()", "what to_json wrote")
_MAX_BINS = 1_000
_CUTS = 'cuts={"age": [30, 40, 50, 60]}'
_CATEGORIES = 'categories={"sex": ["female", "male"]}'
_MAX_CHARTS = 9  # charts in one figure
_WORDS = 8  # bins up to which each is named


@dataclass(frozen=True, eq=False, repr=False)
class FittedNumbers(Content):
    """What an estimator learned: arrays by name, computed from noisy numbers and public facts alone.

    Parameters
    ----------
    estimator
        The kind of estimator, such as ``"logistic regression"``.
    numbers
        The arrays, such as ``coef`` and ``intercept``; ``low`` and ``high`` where there are intervals.
    settings
        The public settings of the fit.

    Examples
    --------
    >>> fitted = FittedNumbers("ridge", {"coef": np.array([0.5])}, {"penalty": "1"})
    >>> FittedNumbers.from_json(fitted.to_json()).numbers["coef"].tolist()
    [0.5]
    """

    kind: ClassVar[str] = "fitted-numbers"
    described: ClassVar[str] = "a fitted model"
    estimator: str
    numbers: Mapping[str, NDArray[Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, JSON]:
        """Return the arrays, with their types, and the settings."""
        return {
            "estimator": self.estimator,
            "numbers": {name: to_document(array) for name, array in self.numbers.items()},
            "settings": dict(self.settings),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the content back."""
        document = _STORED.read("document", document)
        numbers = {str(name): from_document(one) for name, one in document["numbers"].items()}
        return cls(str(document["estimator"]), numbers, dict(document["settings"]))

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the arrays in a few lines each."""
        lines = [self.estimator]
        for name, array in self.numbers.items():
            shape = " x ".join(f"{n:,}" for n in array.shape)
            few = np.array2string(array, precision=4, threshold=_SHOWN, edgeitems=3, max_line_width=90)
            lines.append(
                f"  {name} ({shape}): " + few.replace("\n", "\n    ") if shape else f"  {name}: {few}"
            )
        return "\n".join([*lines, *marks])

    def __repr__(self) -> str:
        return self.text()

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the numbers of all arrays, and their texts, if some have texts."""
        for caption, column, has_numbers in (("numbers", "value", True), ("texts", "text", False)):
            tables = {
                name: np.asarray(array)
                for name, array in self.numbers.items()
                if (np.asarray(array).dtype.kind in "biuf") == has_numbers
            }
            lines = [
                (name, ", ".join(map(str, place)), value.item() if has_numbers else str(value))
                for name, array in tables.items()
                for place, value in np.ndenumerate(array)
            ]
            if lines:
                names, places, values = zip(*lines, strict=True)
                yield caption, plain_table({"array": names, "place": places}, {column: values})

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return each learned array: a point for each number, with its interval where there is one."""
        return chosen(what, {name: partial(self._figure, name) for name in self.numbers})

    def _figure(self, name: str) -> Figure:
        lines = np.atleast_2d(self.numbers[name])
        lines = lines.reshape(-1, lines.shape[-1])
        with_intervals = (
            name == next(iter(self.numbers)) and {"low", "high"} <= set(self.numbers) and len(lines) == 1
        )
        low, high = (numbers(self.numbers[end]) for end in ("low", "high")) if with_intervals else ((), ())
        places = range(lines.shape[-1])
        series = tuple(
            ChartSeries("points", places, numbers(line), low, high, colour=i) for i, line in enumerate(lines)
        )
        zero = ChartSeries("across", (), (0.0,), colour=GREY, dashed=True)
        chart = Chart((zero, *series[:MOST_SERIES]), ChartAxis("place in the array"), ChartAxis(name))
        return Figure(f"{self.estimator}, {name}", (chart,))


@dataclass(frozen=True, slots=True)
class FeatureBins:
    """The public cuts of each feature. A value at a cut is in the bin above it; the last bin is for missing.

    Examples
    --------
    >>> bins = FeatureBins((("age", (40.0, 65.0)),))
    >>> bins.sizes, bins.places(np.array([[40.0], [12.0], [np.nan]])).tolist()
    ((4,), [[1], [0], [3]])
    """

    features: tuple[tuple[str, tuple[float, ...]], ...]

    @classmethod
    def declared(
        cls, names: Sequence[str], bounds: Any, bins: int, cuts: Any, categories: Any
    ) -> FeatureBins:
        """Read what is declared of each feature: the words of its categories, its cuts, or else its bounds.

        Examples
        --------
        >>> FeatureBins.declared(["age", "sex"], ([0, 0], [90, 1]), 3, None, {"sex": ["f", "m"]}).features
        (('age', (30.0, 60.0)), ('sex', (0.5,)))
        """
        words = read_categories(categories, names)
        cuts_by_name = _by_name("cuts", cuts, names)
        rest = [name for name in names if name not in words and name not in cuts_by_name]
        low, high = read_feature_bounds(bounds, len(names)) if rest else (None, None)
        if rest:
            Integer(2, _MAX_BINS, instead=16).read("bins", bins)
        features: list[tuple[str, tuple[float, ...]]] = []
        for j, name in enumerate(names):
            if name in words:
                feature_cuts = tuple(k + 0.5 for k in range(len(words[name]) - 1))
            elif name in cuts_by_name:
                feature_cuts = _read_cuts(cuts_by_name[name])
            else:
                feature_cuts = tuple(float(low[j] + (high[j] - low[j]) * k / bins) for k in range(1, bins))  # type: ignore[index]
            features.append((name, feature_cuts))
        return cls(tuple(features))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of bins of each feature, with the one for missing values."""
        return tuple(len(cuts) + 2 for _, cuts in self.features)

    def places(self, features: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the bin of each value, one column for each feature."""
        indices = np.empty(features.shape, np.int64)
        for j, (_, cuts) in enumerate(self.features):
            column = features[:, j]
            indices[:, j] = np.searchsorted(np.asarray(cuts), column, side="right")
            indices[np.isnan(column), j] = len(cuts) + 1
        return indices


def read_categories(categories: Any, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read the words for the values 0, 1, 2 ... of features that are categories, by the feature's name."""
    declared = {} if categories is None else categories
    if isinstance(declared, Mapping):
        declared = {str(name): words for name, words in declared.items()}
    words = Listed("words", '["female", "male"]', most=_MAX_BINS, different=True)
    by_name = Mapped("words by the names of features", _CATEGORIES, names=tuple(names))
    return {
        name: tuple(words.read("categories", [str(word) for word in words.read("categories", listed)]))
        for name, listed in by_name.read("categories", declared).items()
    }


def _by_name(parameter: str, declared: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return lists by the name of their feature; they may be given so, or one for each feature in order."""
    if declared is None:
        return {}
    if not isinstance(declared, Mapping):
        lists = Listed("lists, one for each feature", "[[30, 40], [0.5]]", least=len(names), most=len(names))
        declared = dict(zip(names, lists.read(parameter, declared), strict=True))
    return Mapped("lists by the names of features", _CUTS, names=tuple(names)).read(parameter, declared)


def _read_cuts(declared: Any) -> tuple[float, ...]:
    """Read the cuts of one feature: finite, increasing numbers."""
    refuse_auto("an estimator", declared, Code(_CUTS))
    rising = Listed("finite numbers", "[30, 40, 50]", least=0, most=_MAX_BINS - 1, rising=True)
    try:
        cuts = tuple(rising.read("cuts", [float(cut) for cut in declared]))
    except (TypeError, ValueError):
        cuts = (math.nan,)
    if not np.isfinite(cuts).all():
        raise bad_parameter("cuts", "lists of finite numbers", declared, fix=Code(_CUTS))
    return cuts


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
        shapes = [self.numbers[name].shape for name in ("values", "error", "share")]
        if self.numbers["intercept"].shape or set(shapes) != {(bins,)} or len(self.classes) != 2:
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
        functions = []
        for name, feature_cuts, (a, b) in zip(names, cuts, pairwise(ends), strict=True):
            parts = (self.numbers[kind][a:b].tolist() for kind in ("values", "error", "share"))
            values, error, share = (tuple(part) for part in parts)
            categories = tuple(str(word) for word in words.get(name, ()))
            functions.append(ShapeFunction(str(name), feature_cuts, values, error, share, categories))
        return tuple(functions)

    def decision_function(self, features: Any) -> NDArray[np.float64]:
        """Return the log odds of the second class for each row of features."""
        table = np.asarray(features, np.float64)
        places = FeatureBins(tuple((shape.feature, shape.cuts) for shape in self.shapes)).places(table)
        score = np.full(len(table), self.intercept)
        for j, shape in enumerate(self.shapes):
            score += np.asarray(shape.values)[places[:, j]]
        return score

    def predict_proba(self, features: Any) -> NDArray[np.float64]:
        """Return the chances of the two classes for each row of features."""
        second = 1 / (1 + np.exp(-np.clip(self.decision_function(features), -500, 500)))
        return np.column_stack([1 - second, second])

    def report(self) -> Report:
        """Return the features by importance, and where each adds and takes most."""
        ordered = sorted(self.shapes, key=lambda shape: -shape.importance)
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
        return shape_figures(self, what)


def _extreme(shape: ShapeFunction, pick: Any) -> str:
    """Say which bin adds least or most, the bin for missing values aside."""
    at = int(pick(shape.values[:-1]))
    return f"{shape.labels[at]}: {shape.values[at]:+.2f} +/- {shape.error[at]:.2f}"


def shape_figures(model: ShapeFunctions, name: str | None) -> tuple[Figure, ...]:
    """Return the shapes of the most important features in one figure, or the shape of one feature."""
    ordered = sorted(model.shapes, key=lambda shape: -shape.importance)
    if name is None:
        return (_figure(model, *ordered[:_MAX_CHARTS]),)
    return chosen(name, {one.feature: partial(_figure, model, one) for one in ordered})


def _figure(model: ShapeFunctions, *shapes: ShapeFunction) -> Figure:
    words = f"log odds of {model.classes[1]}; the band is the interval for the noise"
    return Figure("shapes", tuple(map(_chart, shapes)), (words,), across=min(3, len(shapes)))


def _chart(shape: ShapeFunction) -> Chart:
    """Return a step for each bin but the one of missing values, and the band around it."""
    value, error = np.asarray(shape.values[:-1]), np.asarray(shape.error[:-1])
    edges = np.arange(len(value) + 1) - 0.5
    if shape.words or len(value) <= _WORDS:
        ticks = [(float(i), str(label)) for i, label in enumerate(shape.labels[:-1])]
    else:
        every = math.ceil(len(shape.cuts) / 6)
        ticks = [(i + 0.5, f"{cut:g}") for i, cut in list(enumerate(shape.cuts))[::every]]
    band = ((value - error).tolist(), (value + error).tolist())
    steps = ChartSeries("steps", edges.tolist(), value.tolist(), *band)
    zero = ChartSeries("across", (), (0.0,), colour=GREY)
    return Chart((zero, steps), ChartAxis("", ticks=tuple(ticks)), ChartAxis(), shape.feature)
