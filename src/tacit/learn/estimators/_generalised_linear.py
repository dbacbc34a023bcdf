"""Logistic regression in learning: noisy gradient descent with exact whole gradients.

Poisson regression in learning: expected counts by noisy gradient descent with exact whole gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.learn.estimators._declared_bounds import bounds_document, declared_classes, read_feature_bounds
from tacit.learn.estimators._descent import ClassResiduals, CountResiduals, descent_steps, read_descent
from tacit.learn.estimators._estimator import PrivateClassifier, PrivateRegressor
from tacit.learn.estimators._whole_features import as_numbers, scaled_features, whole_classes, whole_features
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn.estimators._fits import FitSteps
    from tacit.learn.estimators._fitted_numbers import FittedNumbers


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(PrivateClassifier):
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
            whole = whole_features(features, low, high, intercept=self.fit_intercept)
            return whole, ClassResiduals(whole_classes(target, labels))

        return descent_steps(
            data, settings, noise, load,
            said={"classes": labels.tolist(), "bounds": bounds_document(low, high),
                  "intercept": self.fit_intercept, "features": self.n_features_in_},
        )  # fmt: skip

    def _learned(self, fitted: FittedNumbers) -> None:
        said = fitted.settings
        self.classes_ = np.asarray(said["classes"])
        self._low, self._high = read_feature_bounds(said["bounds"], self.n_features_in_)
        self._scaled = fitted.numbers["weights"]
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        self.coef_ = self._scaled[:, : self.n_features_in_] / half
        self._constant = self._scaled[:, -1] if said["intercept"] else np.zeros(len(self._scaled))
        self.intercept_ = self._constant - self.coef_ @ middle
        self.n_iter_ = int(said["steps"])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each class; of two classes, the score of the second one."""
        held = self._seen(X)
        weights = self._scaled[:, : self.n_features_in_]
        scores = scaled_features(held, self._low, self._high) @ weights.T + self._constant
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
        most = self._read_most()
        low, high = read_feature_bounds(self.bounds, self.n_features_in_)
        settings = read_descent(self, outputs=1, features=self.n_features_in_, size=data.size, noise=noise)

        def load() -> tuple[NDArray[np.float64], CountResiduals]:
            features, target = data._arrays  # noqa: SLF001 - the parts of a dataset
            whole = whole_features(features, low, high, intercept=self.fit_intercept)
            return whole, CountResiduals(as_numbers(target).ravel(), most)

        return descent_steps(
            data, settings, noise, load,
            said={"most": most, "bounds": bounds_document(low, high),
                  "intercept": bool(self.fit_intercept), "features": self.n_features_in_},
        )  # fmt: skip

    def _read_most(self) -> int:
        """Return the declared largest count, or refuse."""
        why = "it bounds what one example can say, and the data is not asked for it"
        return Integer(1, _LARGEST, why=why, instead=20).read("most", self.most)

    def _score_bounds(self) -> tuple[float, float]:
        return 0.0, float(self._read_most())

    def _learned(self, fitted: FittedNumbers) -> None:
        said, weights = fitted.settings, fitted.numbers["weights"][0]
        self._low, self._high = read_feature_bounds(said["bounds"], self.n_features_in_)
        self._most = int(said["most"])
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        self.coef_ = weights[: self.n_features_in_] / half
        self.intercept_ = float(weights[-1] if said["intercept"] else 0.0) - float(self.coef_ @ middle)
        self.n_iter_ = int(said["steps"])

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the expected count of each example, at most ``most``."""
        held = self._seen(X)
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        within = scaled_features(held, self._low, self._high) * half + middle
        scores = np.minimum(within @ self.coef_ + self.intercept_, 50.0)
        return np.asarray(np.minimum(np.exp(scores), self._most))
