"""k-means in learning: a private coreset, clustering of it for free, and two noisy moves of the centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin, TransformerMixin

from tacit.learn._estimator import PrivateEstimator
from tacit.learn._fit_names import refuse_exact_scores
from tacit.learn._kmeans_plan import kmeans_steps
from tacit.learn._row_metric import finite_features, read_grid
from tacit.learn._row_moments import RADIUS

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn._fit_steps import FitSteps
    from tacit.learn._fitted_numbers import FittedNumbers


@dataclass(kw_only=True, eq=False, repr=False)
class KMeans(ClusterMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """k-means that protects each unit by (epsilon, delta).

    Guarantee: noisy moments give a centre and a radius, to which rows are clipped. One row is then in one
    node of each level of a tree, in one leaf, and with one centre in each move. All parts together cost one
    Gaussian of the promise.
    Which cluster a row of the training data has is not released; `predict` says it for rows that you have.

    Parameters
    ----------
    n_clusters
        The number of clusters.
    bounds
        Public bounds of the features: two numbers, or two lists with one number for each feature.
    clip
        The longest distance of a row from the middle of the bounds; by default that of a corner. A smaller
        one lowers the noise, and rows beyond it are moved toward the middle.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`.

    Attributes
    ----------
    cluster_centers_
        The centres.
    cluster_sizes_
        The noisy number of rows of each cluster.
    cluster_errors_
        The standard deviation of the noise of each coordinate of the centres, in the last move.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.repeat([[-8.0, 3.0], [8.0, -3.0]], 2000, axis=0)
    >>> model = tc.learn.KMeans(
    ...     n_clusters=2, bounds=(-10, 10), epsilon=8, delta=1e-6, size=4000,
    ...     dataset="doctest of k-means", budget=tc.Budget(epsilon=10, delta=1e-6),
    ... )
    >>> found = model.fit(X).predict([[-8, 3], [-7, 2], [8, -3]])
    >>> bool(found[0] == found[1] != found[2])
    True
    """

    n_clusters: int = 8
    bounds: tuple[Any, Any] | None = None
    clip: float | None = None

    kind: ClassVar[str] = "k-means"
    unlike_scikit_learn: ClassVar[dict[str, str]] = {
        **PrivateEstimator.unlike_scikit_learn,
        "check_clustering": "the cluster of each patient is not released",
    }

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[Any]:
        grid = read_grid(self.bounds, self.clip, self.n_features_in_, RADIUS)
        return kmeans_steps(data, noise, grid, self.n_clusters)

    def _learned(self, fitted: FittedNumbers) -> None:
        self.cluster_centers_ = fitted.numbers["cluster_centers"]
        self.cluster_sizes_ = fitted.numbers["cluster_sizes"]
        self.cluster_errors_ = fitted.numbers["cluster_errors"]
        self._n_features_out = len(self.cluster_centers_)

    @np.errstate(all="ignore")  # a warning would say something about one value
    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the distance of each row from each centre."""
        middle = self.cluster_centers_.mean(axis=0) if hasattr(self, "cluster_centers_") else np.zeros(1)
        held = finite_features(self, X, middle)
        squared = ((held[:, None, :] - self.cluster_centers_[None, :, :]) ** 2).sum(axis=2)
        return np.asarray(np.sqrt(squared))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the nearest cluster of each row."""
        refuse_exact_scores()
        return np.asarray(self.transform(X).argmin(axis=1))

    def fit_predict(self, X: Any, y: Any = None, **given: Any) -> NDArray[np.int64]:
        """Fit, and return the nearest cluster of each row that you gave."""
        return self.fit(X, y, **given).predict(X)
