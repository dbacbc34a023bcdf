"""Explainable boosting: an additive model whose shapes are drawn with bands of the noise.

The fit takes noisy counts of the bins, then noisy sums of residuals by bin. Each noisy sum moves one shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from tacit.core import Step
from tacit.exact import count
from tacit.learn.estimators._declared_bounds import declared_classes
from tacit.learn.estimators._estimator import PrivateEstimator
from tacit.learn.estimators._fits import FitSteps, share_of_noise
from tacit.learn.estimators._fitted_numbers import FeatureBins, ShapeFunctions, read_categories
from tacit.learn.estimators._generalised_linear import read_classes
from tacit.learn.estimators._whole_features import as_numbers, counted_rows, whole_classes
from tacit.mechanisms import RoundedGaussian, SampledSteps
from tacit.parameters import Listed, Share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.learn._examples import Examples
    from tacit.learn.estimators._fitted_numbers import FittedNumbers

    PlacesWithClasses = tuple[NDArray[np.int64], NDArray[np.int64]]


RESIDUAL_STEPS = 2**20  # residuals are whole multiples of 1 / RESIDUAL_STEPS
SCORE_STEPS = 2**12  # scores are whole multiples of 1 / SCORE_STEPS
MAX_SCORE = 16  # scores beyond it count as it
_COUNTS_SHARE = Fraction(1, 10)  # of the cost, for the counts; the sums of residuals have the rest


def chances() -> NDArray[np.int64]:
    """Return the chance of the second class for each score on the grid, in steps of 1 / RESIDUAL_STEPS.

    One public table: the chance of a row then follows from its whole score alone, whoever else is there.
    """
    scores = np.arange(-MAX_SCORE * SCORE_STEPS, MAX_SCORE * SCORE_STEPS + 1) / SCORE_STEPS
    return np.floor(RESIDUAL_STEPS / (1 + np.exp(-scores))).astype(np.int64)


@dataclass(frozen=True, slots=True)
class BoostingSchedule:
    """The schedule of the steps, which is public: passes, learning rate, noise of a sum of residuals.

    Parameters
    ----------
    noise
        The standard deviation of the noise on a sum of residuals, where one row moves it by at most 1.
    """

    passes: int
    rate: float
    noise: float

    @property
    def averaged_from(self) -> int:
        """The first pass that the released shapes average; they average all later passes as well."""
        return self.passes // 2

    @property
    def averaged_passes(self) -> int:
        """The number of passes that the released shapes average."""
        return self.passes - self.averaged_from

    def move(self, sums: NDArray[np.float64] | float, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far each bin of a shape moves: a Newton step, held back where the noise is large."""
        return 4 * self.rate * sums / (np.maximum(counts, 0) + 2 * self.noise)


@dataclass(slots=True)
class BoostingSteps:
    """The sums of `SampledSteps` for boosting: one feature after the other, pass after pass.

    One row is in one bin of the step's feature with a residual between -1 and 1, so it moves the sums of a
    step by at most `RESIDUAL_STEPS`, in L2.
    """

    places: NDArray[np.int64]
    labels: NDArray[np.int64]
    schedule: BoostingSchedule
    counts: Sequence[NDArray[np.float64]]
    intercept: int
    step: int = 0
    _shapes: list[NDArray[np.int64]] = field(default_factory=list)
    _kept: list[NDArray[np.float64]] = field(default_factory=list)
    _scores: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _chances: NDArray[np.int64] = field(default_factory=chances)

    def __post_init__(self) -> None:
        self._shapes = [np.zeros(len(one), np.int64) for one in self.counts]
        self._kept = [np.zeros(len(one)) for one in self.counts]
        self._scores = np.full(len(self.labels), self.intercept, np.int64)

    @property
    def units(self) -> int:
        """The number of rows; every step uses all of them."""
        return len(self.labels)

    def sums(self, sample: NDArray[np.int64]) -> Any:
        """Return the sum of the residuals in each bin of the step's feature, times RESIDUAL_STEPS."""
        del sample  # the rate is 1
        j = self.step % len(self.counts)
        bound = MAX_SCORE * SCORE_STEPS
        chance = self._chances[np.clip(self._scores, -bound, bound) + bound]
        residuals = (RESIDUAL_STEPS * self.labels - chance).astype(np.float64)
        return np.bincount(self.places[:, j], residuals, len(self.counts[j])).astype(np.int64)

    def update(self, noisy: Any) -> None:
        """Move the shape of the step's feature; keep it from the second half of the passes on."""
        j, features = self.step % len(self.counts), len(self.counts)
        move = self.schedule.move(np.asarray(noisy, np.float64) / RESIDUAL_STEPS, self.counts[j])
        bound = MAX_SCORE * SCORE_STEPS
        moves = np.clip(np.rint(move * SCORE_STEPS), -bound, bound).astype(np.int64)
        self._shapes[j] += moves
        self._scores += moves[self.places[:, j]]
        if self.step // features >= self.schedule.averaged_from:
            self._kept[j] += self._shapes[j] / self.schedule.averaged_passes
        self.step += 1

    def result(self) -> Any:
        """Return the mean of each shape over the second half of the passes."""
        return [(one / SCORE_STEPS).tolist() for one in self._kept]


def bin_counts(
    places: NDArray[np.int64], codes: NDArray[np.int64], sizes: Sequence[int]
) -> NDArray[np.int64]:
    """Return the number of rows of the second class, then in each bin of each feature."""
    exact = [np.bincount(places[:, j], minlength=size) for j, size in enumerate(sizes)]
    return np.concatenate([[codes.sum()], *exact]).astype(np.int64)


def read_counts(noisy: Any, sizes: Sequence[int]) -> tuple[list[NDArray[np.float64]], float]:
    """Read the noisy counts of each feature's bins, and the log odds of the second class."""
    second, *rest = np.asarray(noisy, np.float64)
    counts = np.split(np.asarray(rest), np.cumsum(sizes)[:-1])
    total = max(3.0, float(np.mean([one.sum() for one in counts])))
    share = min(max(float(second) / total, 1 / total), 1 - 1 / total)
    return counts, min(max(math.log(share / (1 - share)), -MAX_SCORE / 2), MAX_SCORE / 2)


def noise_spread(
    schedule: BoostingSchedule, values: NDArray[np.float64], counts: NDArray[np.float64], sigma: float
) -> NDArray[np.float64]:
    """Return the standard deviation of the noise in each bin of a released shape, to first order, from above.

    What is released is the mean over the second half of the passes, less the mean over all rows. A step adds
    its noise; that later steps take a part of it back is not used, because features that go together take
    back less. The noisy counts, of deviation ``sigma``, move the mean over all rows as well.
    """
    at_least_0 = np.maximum(counts, 0)
    total = max(float(at_least_0.sum()), 1.0)
    share = at_least_0 / total
    passes_left = schedule.passes - np.arange(schedule.passes)
    weights = np.minimum(passes_left, schedule.averaged_passes) / schedule.averaged_passes
    variance = schedule.move(schedule.noise, counts) ** 2 * float((weights**2).sum())
    middle = float((share**2 * variance).sum()) + float((values**2).sum()) * (sigma / total) ** 2
    return np.asarray(np.sqrt(variance * (1 - 2 * share) + middle))


def boosting_steps(
    data: Examples,
    noise: Fraction,
    bins: FeatureBins,
    classes: NDArray[Any],
    passes: int,
    rate: float,
    document: Mapping[str, JSON],
) -> FitSteps[PlacesWithClasses]:
    """Return the steps of boosting: counts of all bins, then passes over all features, one after the other.

    One row is in one bin of each feature and adds at most one to the second class, so it moves the counts by
    at most the root of (features + 1). In a step it is in one bin, with a residual between -1 and 1.
    """
    features = len(bins.features)
    reach = Fraction(math.isqrt((features + 1) * 4**20) + 1, 2**20) * data.per_unit
    counting = RoundedGaussian(sigma=share_of_noise(noise, _COUNTS_SHARE, reach), sensitivity=reach)
    steps, sensitivity = passes * features, RESIDUAL_STEPS * data.per_unit
    sigma = math.ceil(share_of_noise(noise, (1 - _COUNTS_SHARE) / steps, sensitivity))
    stepping = SampledSteps(sigma=sigma, sensitivity=sensitivity, rate=1, steps=steps)
    schedule = BoostingSchedule(passes, rate, sigma / RESIDUAL_STEPS)

    def load() -> PlacesWithClasses:
        rows, targets = counted_rows(data)[:2]
        codes = whole_classes(targets, classes)
        return bins.places(rows[codes >= 0]), codes[codes >= 0]

    def begin(examples: PlacesWithClasses, noisy: Sequence[Any]) -> BoostingSteps:
        counts, intercept = read_counts(noisy[0], bins.sizes)
        return BoostingSteps(*examples, schedule, counts, round(intercept * SCORE_STEPS))

    def reading(noisy: Sequence[Any], confidence: Fraction) -> Mapping[str, NDArray[Any]]:
        counts, intercept = read_counts(noisy[0], bins.sizes)
        quantile = NormalDist().inv_cdf((1 + float(confidence)) / 2)
        values, errors, shares, score = [], [], [], intercept
        for in_bins, raw in zip(counts, noisy[1], strict=True):
            share = np.maximum(in_bins, 0)
            share = share / share.sum() if share.sum() > 0 else np.full(len(in_bins), 1 / len(in_bins))
            middle = float(np.asarray(raw) @ share)
            score += middle
            values.append(np.asarray(raw) - middle)
            errors.append(quantile * noise_spread(schedule, values[-1], in_bins, float(counting.sigma)))
            shares.append(share)
        arrays = {"values": values, "error": errors, "share": shares}
        return {
            "intercept": np.asarray(score),
            **{name: np.concatenate(parts) for name, parts in arrays.items()},
        }

    return FitSteps(
        settings={
            "features": features, "names": [name for name, _ in bins.features],
            "cuts": [list(cuts) for _, cuts in bins.features], "classes": classes.tolist(),
            "passes": passes, "learning_rate": rate, "per_unit": data.per_unit,
            **document,
        },
        load=load,
        steps=(
            Step(counting, lambda examples, _: bin_counts(*examples, bins.sizes),
                 {"statistic": "rows in each bin"}),
            Step(stepping, begin, {"statistic": "sums of residuals in each bin"}),
        ),
        reading=reading,
        content=ShapeFunctions,
    )  # fmt: skip


@dataclass(kw_only=True, eq=False, repr=False)
class ExplainableBoostingClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """An additive model for two classes that explains itself, protected by (epsilon, delta).

    Guarantee: each feature is cut into public bins. One row is in one bin of each feature, and in a step its
    residual is between -1 and 1. Counts and steps together cost one Gaussian of the promise. A value that is
    missing has its own bin.

    Parameters
    ----------
    classes
        The two labels that can occur: public. A row with another label counts as zero.
    bounds, bins
        Public bounds of the features, and into how many bins of equal width they are cut.
    cuts
        Public cuts instead of bounds and bins: one increasing list for each feature, or lists by name.
    categories
        For features that are categories, coded 0, 1, 2 ...: the words for these numbers, by name.
    names
        Names of the features, for the report and the picture; by default those of the columns.
    passes, learning_rate
        How often each feature is visited, and how far a step goes. Shapes are averaged over the second half
        of the passes.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`.

    Attributes
    ----------
    shapes_
        The released `ShapeFunctions`: print them for a report, ``release_.plot()`` draws them.
    intercept_
        The log odds of the second class where no feature adds anything.
    feature_importances_
        The mean size of what each feature adds.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.repeat([[20.0], [80.0]], 3000, axis=0)
    >>> y = np.repeat([0, 1], 3000)
    >>> model = tc.learn.ExplainableBoostingClassifier(
    ...     classes=[0, 1], cuts=[[40, 65]], names=["age"], epsilon=8, delta=1e-6, size=6000,
    ...     dataset="doctest of boosting", budget=tc.Budget(epsilon=10, delta=1e-6),
    ... )
    >>> model.fit(X, y).predict([[30.0], [70.0]]).tolist()
    [0, 1]
    """

    classes: Sequence[Any] | None = None
    bounds: tuple[Any, Any] | None = None
    bins: int = 16
    cuts: Mapping[str, Sequence[float]] | Sequence[Sequence[float]] | None = None
    categories: Mapping[str, Sequence[str]] | None = None
    names: Sequence[str] | None = None
    passes: int = 10
    learning_rate: float = 0.5

    kind: ClassVar[str] = "explainable boosting"
    unlike_scikit_learn: ClassVar[dict[str, str]] = {
        **PrivateEstimator.unlike_scikit_learn,
        "check_classifier_not_supporting_multiclass": "an undeclared label counts as zero, without a word",
    }

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[Any]:
        declared_classes(self.classes, 2, "the score is the log odds of one of two declared classes")
        labels, features = read_classes(self.classes), self.n_features_in_
        names = self._names(features)
        bins = FeatureBins.declared(names, self.bounds, count("bins", self.bins), self.cuts, self.categories)
        rate = float(Share().read("learning_rate", self.learning_rate))
        document = {
            "categories": {
                name: list(words) for name, words in read_categories(self.categories, names).items()
            }
        }
        passes = count("passes", self.passes, zero=False)
        return boosting_steps(data, noise, bins, labels, passes, rate, document)

    def _names(self, features: int) -> list[str]:
        """Return the names of the features: those given, those of the columns, or numbers."""
        declared = getattr(self, "feature_names_in_", None) if self.names is None else self.names
        names = (
            [f"feature {j + 1}" for j in range(features)]
            if declared is None
            else [str(one) for one in declared]
        )
        return Listed("names", "None", least=features, most=features, different=True).read("names", names)

    def _learned(self, fitted: FittedNumbers) -> None:
        # a prepaid fit or a search stores plain numbers
        self.shapes_ = ShapeFunctions(fitted.estimator, fitted.numbers, fitted.settings)
        self.classes_ = np.asarray(fitted.settings["classes"])
        self.intercept_ = self.shapes_.intercept
        self.feature_importances_ = np.array([one.importance for one in self.shapes_.shapes])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log odds of the second class."""
        features = as_numbers(self._seen(X))
        return self.shapes_.decision_function(features)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class."""
        second = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -500, 500)))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likelier class of each row."""
        second = (self.decision_function(X) > 0).astype(np.int64)
        return np.asarray(self.classes_[second])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
