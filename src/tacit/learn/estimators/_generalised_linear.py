"""Logistic and Poisson regression: noisy gradient descent with exact whole gradients.

The clipped gradient of each unit is a vector of whole numbers, and their sum is exact. Descent on noisy sums
has momentum, and the model has the mean of the weights over the second half of the steps.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from sklearn.base import ClassifierMixin

from tacit.core import Step
from tacit.exact import count, rational
from tacit.learn.estimators._declared_bounds import (
    bounds_document,
    declared_classes,
    read_feature_bounds,
    refuse_wide,
)
from tacit.learn.estimators._estimator import PrivateEstimator, PrivateRegressor
from tacit.learn.estimators._fits import FitSteps, share_of_noise
from tacit.learn.estimators._whole_features import (
    FEATURE_STEPS,
    as_numbers,
    scaled_features,
    whole_classes,
    whole_features,
)
from tacit.mechanisms import SampledSteps
from tacit.parameters import Integer, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.learn._examples import Examples
    from tacit.learn.estimators._fitted_numbers import FittedNumbers


#: The clip in grid steps: the L2 sensitivity of a sum of unit gradients, whatever the clip is.
CLIP_STEPS = 2**28
#: Residuals are whole numbers of 1 / RESIDUAL_STEPS.
RESIDUAL_STEPS = 2**16
_WEIGHT_STEPS = 2**16
_MAX_WEIGHT = 2**8
_BLOCK = 2**16  # units at a time
_TABLE_STEPS = 2**8  # predictions are looked up on a grid of 1/256
_TABLE_REACH = 32
_FURTHEST = 2.0**100  # where a descent that runs away stops


class ResidualRule(Protocol):
    """How far off a model is on each example, as whole numbers; a function of that example alone."""

    @property
    def largest(self) -> int:
        """The largest residual, in 1 / RESIDUAL_STEPS."""

    def residuals(self, scores: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return prediction minus target for these examples, in 1 / RESIDUAL_STEPS; zero for invalid ones."""


@dataclass(frozen=True, eq=False)
class ClassResiduals:
    """Residuals of classes: probability minus 1 for the own class, minus 0 for others."""

    labels: NDArray[np.int64]

    @property
    def largest(self) -> int:
        """The largest residual: 1."""
        return RESIDUAL_STEPS

    def residuals(self, scores: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the residuals; one score column stands for the second of two classes."""
        full = scores if scores.shape[1] > 1 else np.concatenate([np.zeros_like(scores), scores], axis=1)
        # softmax by a table of whole numbers, so that no rounding depends on other examples
        below = np.minimum(np.floor((full.max(axis=1, keepdims=True) - full) * _TABLE_STEPS + 0.5), _LAST)
        weights = _falling_powers()[below.astype(np.int64)]
        share = (weights * RESIDUAL_STEPS) // weights.sum(axis=1, keepdims=True)
        labels = self.labels[places]
        valid = labels >= 0
        share[np.flatnonzero(valid), labels[valid]] -= RESIDUAL_STEPS
        share[~valid] = 0
        return np.asarray(share if scores.shape[1] > 1 else share[:, 1:])


@dataclass(frozen=True, eq=False)
class CountResiduals:
    """Residuals of counts: the expected count, at most ``most``, minus the count."""

    counts: NDArray[np.float64]
    most: int

    @property
    def largest(self) -> int:
        """The largest residual: the largest count."""
        return self.most * RESIDUAL_STEPS

    def residuals(self, scores: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the residuals."""
        index = np.clip(np.floor(scores * _TABLE_STEPS + 0.5), -_LAST, _LAST).astype(np.int64)
        expected = np.minimum(_powers()[index + _LAST], self.most * RESIDUAL_STEPS)
        counts = self.counts[places]
        valid = np.isfinite(counts)
        clipped = np.floor(np.clip(np.where(valid, counts, 0.0), 0.0, self.most) * RESIDUAL_STEPS + 0.5)
        return np.where(valid[:, None], expected - clipped.astype(np.int64)[:, None], 0)


_LAST = _TABLE_REACH * _TABLE_STEPS


@lru_cache(maxsize=1)
def _falling_powers() -> NDArray[np.int64]:
    """Return exp(-i / 256) in 2^-30, at least 0, for i up to the end of the table."""
    return np.floor(np.exp(-np.arange(_LAST + 1) / _TABLE_STEPS) * 2.0**30).astype(np.int64)


@lru_cache(maxsize=1)
def _powers() -> NDArray[np.int64]:
    """Return exp(i / 256) in 1 / RESIDUAL_STEPS, for i from -_LAST to _LAST, cut off at 2^46."""
    powers = np.minimum(np.exp(np.arange(-_LAST, _LAST + 1) / _TABLE_STEPS), 2.0**30)
    return np.asarray(np.floor(powers * RESIDUAL_STEPS), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class UnitGradients:
    """Sums of clipped gradients of a linear model, as exact whole numbers of ``clip / CLIP_STEPS``.

    Guarantee: the sum with one unit more differs by a vector of L2 norm at most CLIP_STEPS. Each unit's
    vector is a function of that unit's own examples: scores and sums are products of whole numbers below
    2^53, which are exact in any order, and the rest are elementwise operations that IEEE 754 determines.

    Parameters
    ----------
    features
        Whole features (see `whole_features`), one line for each example.
    rule
        How residuals follow from scores.
    clip
        The largest norm of one unit's gradient, with features from -1 to 1.
    rows
        Which examples each unit has, padded with -1.
    """

    features: NDArray[np.float64]
    rule: ResidualRule
    clip: float
    rows: NDArray[np.int64]

    def sums(self, weights: NDArray[np.float64], sample: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the sampled units, outputs x features."""
        total = np.zeros(weights.shape, np.int64)
        weight_steps = np.rint(np.clip(weights, -_MAX_WEIGHT, _MAX_WEIGHT) * _WEIGHT_STEPS)
        for start in range(0, len(sample), _BLOCK):
            units = self.rows[sample[start : start + _BLOCK]]
            total += (
                self._single(weight_steps, units[:, 0])
                if units.shape[1] == 1
                else self._several(weight_steps, units)
            )
        return total

    def _residuals(self, weight_steps: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        scores = (self.features[places] @ weight_steps.T) / (FEATURE_STEPS * _WEIGHT_STEPS)
        return self.rule.residuals(scores, places)

    def _single(self, weight_steps: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Clip a product of residuals and features by its residuals alone, so that no product is formed."""
        features = self.features[places]
        residuals = self._residuals(weight_steps, places)
        length = np.square(features).sum(axis=1).astype(np.int64)  # whole numbers below 2^53
        error = np.sqrt(np.square(residuals).sum(axis=1).astype(np.float64))
        reach = np.sqrt(length.astype(np.float64))
        free = CLIP_STEPS / (self.clip * RESIDUAL_STEPS * FEATURE_STEPS)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.minimum(free, np.where(error * reach > 0, CLIP_STEPS / (error * reach), 0.0))
        shortened = np.trunc(residuals * factor[:, None]).astype(np.int64)
        max_squared = CLIP_STEPS**2 // np.maximum(length, 1)
        shortened[(length == 0) | (np.square(shortened).sum(axis=1) > max_squared)] = 0
        return np.asarray(shortened.T.astype(np.float64) @ features, dtype=np.float64).astype(np.int64)

    def _several(self, weight_steps: NDArray[np.float64], units: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up the gradients of each unit's examples, then clip; in smaller blocks, for memory."""
        total = np.zeros(weight_steps.shape, np.int64)
        step = max(1, 2**22 // weight_steps.size)
        for start in range(0, len(units), step):
            gradients = np.zeros((len(units[start : start + step]), *weight_steps.shape), np.int64)
            for column in units[start : start + step].T:
                present = np.flatnonzero(column >= 0)
                residuals = self._residuals(weight_steps, column[present])
                features = self.features[column[present]].astype(np.int64)
                gradients[present] += residuals[:, :, None] * features[:, None, :]
            total += self._clipped(gradients).sum(axis=0)
        return total

    def _clipped(self, gradients: NDArray[np.int64]) -> NDArray[np.int64]:
        """Scale each gradient to at most the clip; a unit that would still exceed it counts as zero."""
        largest = self.rows.shape[1] * self.rule.largest * FEATURE_STEPS
        step = 2 ** max(0, largest.bit_length() - 22)
        coarse = np.abs(gradients) // step + 1  # above the true size, so that the norm is too
        norm = np.sqrt(np.square(coarse).sum(axis=(1, 2)).astype(np.float64)) * step
        free = CLIP_STEPS / (self.clip * RESIDUAL_STEPS * FEATURE_STEPS)
        factor = np.minimum(free, CLIP_STEPS / norm)
        shortened = np.trunc(gradients * factor[:, None, None]).astype(np.int64)
        shortened[~_fits(shortened)] = 0
        return np.asarray(shortened)


def _fits(shortened: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether the squared norm of each unit is at most CLIP_STEPS squared, in exact whole numbers."""
    high, low = np.abs(shortened) >> 14, np.abs(shortened) & (2**14 - 1)
    squares, mixed, rest = (one.sum(axis=(1, 2)) for one in (np.square(high), high * low, np.square(low)))
    small = squares <= CLIP_STEPS  # else the norm is too large, and the sum below could overflow
    total = np.where(small, squares, 0) * 2**28 + np.where(small, mixed, 0) * 2**15 + rest
    return np.asarray(small & (total <= CLIP_STEPS**2))


@dataclass(frozen=True)
class DescentSettings:
    """Public settings of a descent: all of them, with the noise, decide what one release computes."""

    outputs: int
    inputs: int
    size: int
    clip: float
    steps: int
    learning_rate: float
    momentum: float
    penalty: float


@dataclass(eq=False)
class GradientDescent:
    """The sums and the moves of a descent, for `SampledSteps`: each step sees only its noisy sum.

    Parameters
    ----------
    settings
        The public settings. The sum is divided by the declared size, never by a count.
    gradients
        The exact sums.
    """

    settings: DescentSettings
    gradients: UnitGradients
    _weights: NDArray[np.float64] = field(init=False)
    _speed: NDArray[np.float64] = field(init=False)
    _mean: NDArray[np.float64] = field(init=False)
    _step: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        shape = (self.settings.outputs, self.settings.inputs)
        self._weights, self._speed, self._mean = (np.zeros(shape) for _ in range(3))

    @property
    def units(self) -> int:
        """The number of units: private, for drawing the sample."""
        return len(self.gradients.rows)

    def sums(self, sample: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact sum of clipped gradients at the current weights."""
        return self.gradients.sums(self._weights, sample)

    @np.errstate(all="ignore")  # a descent that runs away
    def update(self, noisy: Any) -> None:
        """Move the weights by a noisy sum; whatever the settings, they stay finite."""
        settings = self.settings
        mean = np.asarray(noisy, dtype=np.float64) * (settings.clip / CLIP_STEPS / settings.size)
        self._speed = settings.momentum * self._speed + mean + settings.penalty * self._weights
        self._weights = self._weights - settings.learning_rate * self._speed
        state = (np.nan_to_num(one) for one in (self._speed, self._weights))
        self._speed, self._weights = (np.clip(one, -_FURTHEST, _FURTHEST) for one in state)
        self._step += 1
        if 2 * self._step > settings.steps:
            self._mean = self._mean + self._weights / (settings.steps - settings.steps // 2)

    def result(self) -> list[list[float]]:
        """Return the mean of the weights over the second half of the steps."""
        weights: list[list[float]] = self._mean.tolist()
        return weights


#: With so many whole features, scores stay below 2^53 and are exact in any order.
_MAX_FEATURES = 2**16


def read_descent(
    estimator: Any, *, outputs: int, features: int, size: int, noise: Fraction
) -> DescentSettings:
    """Read the settings of a descent from an estimator's parameters, or refuse what is wrong.

    Without a learning rate it is 0.03 over the noise of a step (the deviation of each coordinate of the mean
    gradient), from 2 to 16: a public rule, found on digits and breast_cancer.
    """
    refuse_wide(features, _MAX_FEATURES)
    momentum = float(RealNumber(least=0, below=1).read("momentum", estimator.momentum))
    clip = float(rational("clip", estimator.clip))
    steps = count("steps", estimator.steps, zero=False)
    rate = estimator.learning_rate
    if rate is None:
        rate = min(16.0, max(2.0, 0.03 * size / (float(noise) * math.sqrt(steps) * clip)))
    return DescentSettings(
        outputs=outputs,
        inputs=features + bool(estimator.fit_intercept),
        size=size,
        clip=clip,
        steps=steps,
        learning_rate=float(rational("learning_rate", rate)),
        momentum=momentum,
        penalty=float(rational("penalty", estimator.penalty, zero=True)),
    )


def descent_steps(
    data: Examples,
    settings: DescentSettings,
    noise: Fraction,
    load: Callable[[], tuple[NDArray[np.float64], ResidualRule]],
    *,
    document: Mapping[str, JSON],
) -> FitSteps[UnitGradients]:
    """Return the steps of a fit whose one mechanism takes all gradient steps, on all units each time."""
    sigma = math.ceil(share_of_noise(noise, Fraction(1, settings.steps), CLIP_STEPS))
    mechanism = SampledSteps(sigma=sigma, sensitivity=CLIP_STEPS, rate=1, steps=settings.steps)

    def gradients() -> UnitGradients:
        features, rule = load()
        return UnitGradients(features, rule, settings.clip, data.units())

    def reading(noisy: Sequence[Any], confidence: Fraction) -> dict[str, NDArray[Any]]:
        del confidence  # a descent has no intervals
        return {"weights": np.asarray(noisy[0], dtype=np.float64)}

    return FitSteps(
        {**asdict(settings), "per_unit": data.per_unit, **document},
        gradients,
        (
            Step(
                mechanism,
                lambda gradients, _: GradientDescent(settings, gradients),
                {"statistic": "sums of clipped gradients"},
            ),
        ),
        reading,
    )


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Logistic regression for two or more classes, protected by (epsilon, delta).

    Guarantee: `fit` takes ``steps`` gradient steps. In each of them one unit moves the exact sum of whole
    numbers by at most the clip, and rounded Gaussian noise is added to the sum. All steps together cost
    exactly one Gaussian of the promise.

    Parameters
    ----------
    classes
        All labels that can occur: public. An example with another label counts as zero.
    bounds
        Public bounds of the features: two numbers, or two lists with one number for each feature.
    fit_intercept
        Whether the model has an intercept.
    clip
        The largest norm of one unit's gradient, with features scaled to -1 .. 1.
    steps, learning_rate, momentum
        The descent. The weights are averaged over the second half of the steps. By default the learning
        rate, from 2 to 16, is smaller where the noise of a step is larger.
    penalty
        Weight of the squared norm of the coefficients.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.repeat([[0.0], [1.0]], 2000, axis=0)
    >>> y = np.repeat(["healthy", "ill"], 2000)
    >>> model = tc.learn.LogisticRegression(
    ...     epsilon=4, delta=1e-6, classes=["healthy", "ill"], bounds=(0, 1), size=4000,
    ...     dataset="doctest of logistic regression", budget=tc.Budget(epsilon=9, delta=1e-5),
    ... )
    >>> model.fit(X, y).predict([[0.1], [0.9]]).tolist()
    ['healthy', 'ill']
    """

    classes: Sequence[Any] | None = None
    bounds: tuple[Any, Any] | None = None
    fit_intercept: bool = True
    clip: float = 1.0
    steps: int = 60
    learning_rate: float | None = None
    momentum: float = 0.5
    penalty: float = 0.0

    kind: ClassVar[str] = "logistic regression"

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[Any]:
        labels = read_classes(self.classes)
        low, high = read_feature_bounds(self.bounds, self.n_features_in_)
        settings = read_descent(
            self, outputs=1 if len(labels) == 2 else len(labels), features=self.n_features_in_,
            size=data.size, noise=noise,
        )  # fmt: skip

        def load() -> tuple[NDArray[np.float64], ClassResiduals]:
            features, target = data._arrays  # noqa: SLF001 - the parts of a dataset
            rows = whole_features(features, low, high, intercept=self.fit_intercept)
            return rows, ClassResiduals(whole_classes(target, labels))

        return descent_steps(
            data, settings, noise, load,
            document={"classes": labels.tolist(), "bounds": bounds_document(low, high),
                  "intercept": self.fit_intercept, "features": self.n_features_in_},
        )  # fmt: skip

    def _learned(self, fitted: FittedNumbers) -> None:
        settings = fitted.settings
        self.classes_ = np.asarray(settings["classes"])
        self._low, self._high = read_feature_bounds(settings["bounds"], self.n_features_in_)
        self._scaled = fitted.numbers["weights"]
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        self.coef_ = self._scaled[:, : self.n_features_in_] / half
        self._constant = self._scaled[:, -1] if settings["intercept"] else np.zeros(len(self._scaled))
        self.intercept_ = self._constant - self.coef_ @ middle
        self.n_iter_ = int(settings["steps"])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each class; of two classes, the score of the second one."""
        features = self._seen(X)
        weights = self._scaled[:, : self.n_features_in_]
        scores = scaled_features(features, self._low, self._high) @ weights.T + self._constant
        return np.asarray(scores if len(self.classes_) > 2 else scores[:, 0])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.stack([np.zeros(len(scores)), scores], axis=1)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each class."""
        return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each example."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise may spoil any one fit
        return tags


def read_classes(classes: Any) -> NDArray[Any]:
    """Read the declared labels, or refuse; they are sorted as scikit-learn sorts them.

    Examples
    --------
    >>> read_classes(["ill", "healthy"]).tolist()
    ['healthy', 'ill']
    """
    return np.unique(np.asarray(declared_classes(classes)))


_LARGEST = 2**14


@dataclass(kw_only=True, eq=False, repr=False)
class PoissonRegressor(PrivateRegressor):
    """Poisson regression of counts, with the logarithm as link.

    Guarantee: as for `LogisticRegression`: each of ``steps`` sums of clipped whole gradients gets rounded
    Gaussian noise, and all of them together cost exactly one Gaussian of the promise.

    Parameters
    ----------
    most
        The largest count of an example: public. A larger one counts as this, a negative one as 0.
    bounds
        Public bounds of the features: two numbers, or two lists with one number for each feature.
    fit_intercept
        Whether the model has an intercept.
    clip
        The largest norm of one unit's gradient, with features scaled to -1 .. 1.
    steps, learning_rate, momentum
        The descent. The weights are averaged over the second half of the steps.
    penalty
        Weight of the squared norm of the coefficients.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.repeat([[-1.0], [1.0]], 5000, axis=0)
    >>> model = tc.learn.PoissonRegressor(
    ...     epsilon=4, delta=1e-6, bounds=(-1, 1), most=10, size=10_000,
    ...     dataset="doctest of Poisson regression", budget=tc.Budget(epsilon=9, delta=1e-5),
    ... )
    >>> few, many = model.fit(X, np.repeat([1, 4], 5000)).predict([[-1.0], [1.0]])
    >>> 0.5 < few < 2 < many < 8
    np.True_
    """

    most: int | None = None
    bounds: tuple[Any, Any] | None = None
    fit_intercept: bool = True
    clip: float = 2.0
    steps: int = 60
    learning_rate: float = 0.3
    momentum: float = 0.5
    penalty: float = 0.0

    kind: ClassVar[str] = "Poisson regression"

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[Any]:
        max_count = self._read_most()
        low, high = read_feature_bounds(self.bounds, self.n_features_in_)
        settings = read_descent(self, outputs=1, features=self.n_features_in_, size=data.size, noise=noise)

        def load() -> tuple[NDArray[np.float64], CountResiduals]:
            features, target = data._arrays  # noqa: SLF001 - the parts of a dataset
            rows = whole_features(features, low, high, intercept=self.fit_intercept)
            return rows, CountResiduals(as_numbers(target).ravel(), max_count)

        return descent_steps(
            data, settings, noise, load,
            document={"most": max_count, "bounds": bounds_document(low, high),
                  "intercept": bool(self.fit_intercept), "features": self.n_features_in_},
        )  # fmt: skip

    def _read_most(self) -> int:
        """Return the declared largest count, or refuse."""
        why = "it bounds what one example can say, and the data is not asked for it"
        return Integer(1, _LARGEST, why=why, instead=20).read("most", self.most)

    def _score_bounds(self) -> tuple[float, float]:
        return 0.0, float(self._read_most())

    def _learned(self, fitted: FittedNumbers) -> None:
        settings, weights = fitted.settings, fitted.numbers["weights"][0]
        self._low, self._high = read_feature_bounds(settings["bounds"], self.n_features_in_)
        self._most = int(settings["most"])
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        self.coef_ = weights[: self.n_features_in_] / half
        self.intercept_ = float(weights[-1] if settings["intercept"] else 0.0) - float(self.coef_ @ middle)
        self.n_iter_ = int(settings["steps"])

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the expected count of each example, at most ``most``."""
        features = self._seen(X)
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        within = scaled_features(features, self._low, self._high) * half + middle
        scores = np.minimum(within @ self.coef_ + self.intercept_, 50.0)
        return np.asarray(np.minimum(np.exp(scores), self._most))
