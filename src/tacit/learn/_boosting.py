"""Explainable boosting in learning: an additive model whose shapes are drawn with bands of the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.learn._boosting_bins import FeatureBins, read_categories
from tacit.learn._boosting_plan import boosting_steps
from tacit.learn._declared_bounds import declared_classes
from tacit.learn._estimator import PrivateEstimator
from tacit.learn._logistic import read_classes
from tacit.learn._shape_functions import ShapeFunctions
from tacit.learn._whole_features import as_numbers
from tacit.parameters import Share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn._fit_steps import FitSteps
    from tacit.learn._fitted_numbers import FittedNumbers


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
        said = {
            "categories": {
                name: list(words) for name, words in read_categories(self.categories, names).items()
            }
        }
        passes = count("passes", self.passes, zero=False)
        return boosting_steps(data, noise, bins, labels, passes, rate, said)

    def _names(self, features: int) -> list[str]:
        """Return the names of the features: those given, those of the columns, or numbers."""
        given = getattr(self, "feature_names_in_", None) if self.names is None else self.names
        names = (
            [f"feature {j + 1}" for j in range(features)] if given is None else [str(one) for one in given]
        )
        if len(names) != features or len(set(names)) != features:
            raise bad_parameter("names", f"{features} different names", len(names), fix=Set(names=None))
        return names

    def _learned(self, fitted: FittedNumbers) -> None:
        # a prepaid fit or a search stores plain numbers
        self.shapes_ = ShapeFunctions(fitted.estimator, fitted.numbers, fitted.settings)
        self.classes_ = np.asarray(fitted.settings["classes"])
        self.intercept_ = self.shapes_.intercept
        self.feature_importances_ = np.array([one.importance for one in self.shapes_.shapes])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log odds of the second class."""
        held = as_numbers(self._seen(X))
        return self.shapes_.decision_function(held)

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
