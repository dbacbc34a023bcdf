"""Naive Bayes: noisy counts of the declared classes and noisy sums of their rows.

The means of the classes follow from these; the spread within classes is declared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from tacit.core import Step
from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.learn.estimators._declared_bounds import bounds_document, read_feature_bounds
from tacit.learn.estimators._estimator import PrivateEstimator
from tacit.learn.estimators._fits import FitSteps, share_of_noise
from tacit.learn.estimators._generalised_linear import read_classes
from tacit.learn.estimators._identity import refuse_exact_scores
from tacit.learn.estimators._rows import (
    MOVED_MEANS,
    RADIUS,
    around,
    centre_and_radius,
    finite_features,
    moment_step,
    read_grid,
    sums_by,
)
from tacit.learn.estimators._whole_features import counted_rows, whole_classes
from tacit.mechanisms import RoundedGaussian

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn.estimators._fitted_numbers import FittedNumbers
    from tacit.learn.estimators._rows import RowGrid

    RowsWithClasses = tuple[NDArray[np.int64], NDArray[np.int64]]


COUNTED = RADIUS // 3  # what one row adds to the count of its class: a tenth of the squared total
_MEANS = Fraction(1, 10)  # the share of the moments of all rows
_REACH = Fraction(5, 4)  # the radius of rows around the mean, in roots of the total variance
MOVED = math.isqrt(RADIUS**2 + COUNTED**2) + 1


def class_integers(rows: NDArray[np.int64], codes: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return a count and the sum of the rows for each class; a row is in one class."""
    columns = np.concatenate([np.full((len(rows), 1), COUNTED), rows], axis=1)
    return sums_by(codes, columns, classes)


def class_steps(
    data: Examples, noise: Fraction, grid: RowGrid, classes: NDArray[Any]
) -> FitSteps[RowsWithClasses]:
    """Return the steps of naive Bayes.

    Moments of all rows come first. Around their noisy mean a row has at most RADIUS steps, and it is in one
    class, so it moves counts and sums by at most MOVED.
    """
    sensitivities = MOVED_MEANS * data.per_unit, MOVED * data.per_unit
    means = share_of_noise(noise, _MEANS, sensitivities[0])
    sums = share_of_noise(noise, 1 - _MEANS, sensitivities[1])

    def load() -> RowsWithClasses:
        features, targets = counted_rows(data)[:2]
        rows, good = grid.whole(features)
        codes = whole_classes(targets, classes)
        counting = good & (codes >= 0)
        return rows[counting], codes[counting]

    def sums_of(labelled: RowsWithClasses, noisy: Sequence[Any]) -> NDArray[np.int64]:
        rows, codes = labelled
        _, centre, radius = centre_and_radius(noisy[0])
        return class_integers(around(rows, centre, math.ceil(_REACH * radius)), codes, len(classes))

    def reading(noisy: Sequence[Any], confidence: Fraction) -> Mapping[str, NDArray[Any]]:
        del confidence
        _, centre, radius = centre_and_radius(noisy[0])
        step = math.ceil(_REACH * radius) / RADIUS
        numbers = np.asarray(noisy[1], np.float64)
        counts = np.maximum(numbers[:, 0] / COUNTED, 1.0)
        means = grid.features(centre + numbers[:, 1:] * step / counts[:, None])
        error = float(sums) * step / counts[:, None] * grid.units * (grid.clip / grid.steps)
        return {
            "class_count": numbers[:, 0] / COUNTED,
            "class_prior": counts / counts.sum(),
            "theta": np.clip(means, grid.low, grid.high),
            "theta_error": error,
            "spread": grid.units,
        }

    return FitSteps(
        settings={
            "classes": classes.tolist(), "bounds": bounds_document(grid.low, grid.high), "clip": grid.clip,
            "spread": grid.units.tolist(), "per_unit": data.per_unit, "features": len(grid.low),
        },
        load=load,
        steps=(
            moment_step(means, data.per_unit, of=lambda labelled: labelled[0]),
            Step(RoundedGaussian(sigma=sums, sensitivity=sensitivities[1]), sums_of,
                 {"statistic": "counts of the classes and sums of their rows around the noisy mean"}),
        ),
        reading=reading,
    )  # fmt: skip


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveBayes(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Gaussian naive Bayes that protects each unit by (epsilon, delta).

    Guarantee: noisy moments of all rows give a centre and a radius. Around this centre each row is clipped to
    the radius and added to the sum of its class. Both together cost one Gaussian of the promise.

    Parameters
    ----------
    classes
        All labels that can occur: public. A row with another label counts as zero.
    bounds
        Public bounds of the features: two numbers, or two lists with one number for each feature.
    spread
        The declared standard deviation of a feature within a class: one number, or one for each feature; by
        default a quarter of the range.
    clip
        The longest distance of a row from the middle of the bounds, in spreads; by default that of a corner.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`.

    Attributes
    ----------
    classes_, class_prior_, class_count_, theta_
        As in scikit-learn, from noisy numbers.
    theta_error_
        The standard deviation of the noise of each mean.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.repeat([[1.0], [9.0]], 2000, axis=0)
    >>> y = np.repeat(["healthy", "ill"], 2000)
    >>> model = tc.learn.NaiveBayes(
    ...     classes=["healthy", "ill"], bounds=(0, 10), epsilon=8, delta=1e-6, size=4000,
    ...     dataset="doctest of naive Bayes", budget=tc.Budget(epsilon=10, delta=1e-6),
    ... )
    >>> model.fit(X, y).predict([[2.0], [8.0]]).tolist()
    ['healthy', 'ill']
    """

    classes: Sequence[Any] | None = None
    bounds: tuple[Any, Any] | None = None
    spread: Any = None
    clip: float | None = None

    kind: ClassVar[str] = "naive Bayes"

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[Any]:
        labels = read_classes(self.classes)
        low, high = read_feature_bounds(self.bounds, self.n_features_in_)
        spread = _read_spread(self.spread, low, high)
        grid = read_grid(self.bounds, self.clip, self.n_features_in_, RADIUS, spread)
        return class_steps(data, noise, grid, labels)

    def _learned(self, fitted: FittedNumbers) -> None:
        self.classes_ = np.asarray(fitted.settings["classes"])
        for name, array in fitted.numbers.items():
            setattr(self, f"{name}_", array)

    @np.errstate(all="ignore")  # a warning would say something about one value
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each class."""
        middle = self.theta_.mean(axis=0) if hasattr(self, "theta_") else np.zeros(1)
        refuse_exact_scores()
        features = finite_features(self, X, middle)
        away = (features[:, None, :] - self.theta_[None, :, :]) / self.spread_
        scores = np.log(self.class_prior_) - (away**2).sum(axis=2) / 2
        top = scores.max(axis=1, keepdims=True)
        return np.asarray(scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row."""
        likeliest = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])


def _read_spread(spread: Any, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Read the declared spread of each feature; by default a quarter of its range."""
    if spread is None:
        return (high - low) / 4
    try:
        spreads = np.broadcast_to(np.asarray(spread, np.float64), low.shape).copy()
    except (TypeError, ValueError):
        spreads = np.zeros(1)
    if not (np.isfinite(spreads).all() and (spreads > 0).all()):
        raise bad_parameter(
            "spread", "a positive number, or one for each feature", spread, fix=Set(spread=1.0)
        )
    return spreads
