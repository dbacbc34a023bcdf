"""Principal components in learning: noisy means, then noisy products of all pairs of features around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from tacit.learn._component_sums import component_steps
from tacit.learn._estimator import PrivateEstimator
from tacit.learn._row_metric import finite_features, read_grid
from tacit.learn._row_moments import RADIUS

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn._fit_steps import FitSteps
    from tacit.learn._fitted_numbers import FittedNumbers


@dataclass(kw_only=True, eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components that protect each unit by (epsilon, delta).

    Guarantee: noisy moments give a centre and a radius. Around this centre each row is clipped to the radius,
    and the products of all pairs of features get Gaussian noise. Both together cost one Gaussian of the
    promise.

    Parameters
    ----------
    n_components
        How many components are kept; by default all.
    bounds
        Public bounds of the features: two numbers, or two lists with one number for each feature.
    clip
        The longest distance of a row from the middle of the bounds; by default that of a corner.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`.

    Attributes
    ----------
    components_, mean_, explained_variance_, explained_variance_ratio_
        As in scikit-learn, from noisy numbers. Rows beyond the radius are clipped to it, which takes variance
        from components with long tails. The sum of all variances is scaled to the noisy total, where the
        noise leaves no doubt that it is larger.
    agreement_
        About the squared cosine of each component with that of the exact data, to first order in the noise; 0
        where the component cannot be told from noise.
    noise_variance_
        The variance that the largest component of noise alone seems to explain.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.outer(np.tile([-1.0, 1.0], 5000), [3.0, 4.0])
    >>> model = tc.learn.PCA(
    ...     n_components=1, bounds=(-5, 5), epsilon=8, delta=1e-6, size=10_000,
    ...     dataset="doctest of components", budget=tc.Budget(epsilon=10, delta=1e-6),
    ... )
    >>> bool(abs(model.fit(X).components_[0] @ [0.6, 0.8]) > 0.99)
    True
    """

    n_components: int | None = None
    bounds: tuple[Any, Any] | None = None
    clip: float | None = None

    kind: ClassVar[str] = "principal components"

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[Any]:
        grid = read_grid(self.bounds, self.clip, self.n_features_in_, RADIUS)
        return component_steps(data, noise, grid, self.n_components)

    def _learned(self, fitted: FittedNumbers) -> None:
        for name, array in fitted.numbers.items():
            setattr(self, f"{name}_", array if array.shape else float(array))
        self.n_components_ = self._n_features_out = len(self.components_)

    @np.errstate(all="ignore")  # a warning would say something about one value
    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of each row on the components, to the last bit the same beside any other rows.

        A product of matrices adds up in an order that depends on the number of rows. The next step of a
        pipeline would then read everybody's scores differently because of one patient.
        """
        middle = self.mean_ if hasattr(self, "mean_") else np.zeros(1)
        held = finite_features(self, X, middle) - self.mean_
        scores = np.zeros((len(held), len(self.components_)))
        for column, weights in zip(held.T, self.components_.T, strict=True):
            scores += column[:, None] * weights
        return scores

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Return features for scores."""
        check_is_fitted(self)
        return np.asarray(self.mean_ + check_array(X) @ self.components_)
