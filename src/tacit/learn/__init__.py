"""Learning: models that do not memorise people, hospitals that train together, estimators, teacher ensembles.

PyTorch, scikit-learn and Flower are extras, and each is imported when it is first needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tacit.learn._evaluation import evaluate
from tacit.learn._evaluation_reading import MeasuredShare
from tacit.learn._evaluation_table import Evaluation
from tacit.learn._examples import Examples, examples
from tacit.learn._fitted_numbers import FittedNumbers
from tacit.learn._shape_functions import ShapeFunction, ShapeFunctions

if TYPE_CHECKING:
    from tacit.learn._boosting import ExplainableBoostingClassifier
    from tacit.learn._estimator import PrivateEstimator
    from tacit.learn._folds import Folds
    from tacit.learn._kmeans import KMeans
    from tacit.learn._linear import LinearRegression, Ridge
    from tacit.learn._logistic import LogisticRegression
    from tacit.learn._naive_bayes import NaiveBayes
    from tacit.learn._pca import PCA
    from tacit.learn._poisson import PoissonRegressor
    from tacit.learn._prepaid import prepaid
    from tacit.learn._scorer import scorer
    from tacit.learn._search import search
    from tacit.learn._standardise import Standardiser

__all__ = [
    "PCA",
    "Evaluation",
    "Examples",
    "ExplainableBoostingClassifier",
    "FittedNumbers",
    "Folds",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "MeasuredShare",
    "NaiveBayes",
    "PoissonRegressor",
    "PrivateEstimator",
    "Ridge",
    "ShapeFunction",
    "ShapeFunctions",
    "Standardiser",
    "evaluate",
    "examples",
    "prepaid",
    "scorer",
    "search",
]

#: What needs an extra: the module that has it, the package that must be there, and the extra.
_LAZY = {
    "ExplainableBoostingClassifier": ("_boosting", "sklearn", "sklearn"),
    "Folds": ("_folds", "sklearn", "sklearn"),
    "KMeans": ("_kmeans", "sklearn", "sklearn"),
    "LinearRegression": ("_linear", "sklearn", "sklearn"),
    "LogisticRegression": ("_logistic", "sklearn", "sklearn"),
    "NaiveBayes": ("_naive_bayes", "sklearn", "sklearn"),
    "PCA": ("_pca", "sklearn", "sklearn"),
    "PoissonRegressor": ("_poisson", "sklearn", "sklearn"),
    "PrivateEstimator": ("_estimator", "sklearn", "sklearn"),
    "Ridge": ("_linear", "sklearn", "sklearn"),
    "Standardiser": ("_standardise", "sklearn", "sklearn"),
    "prepaid": ("_prepaid", "sklearn", "sklearn"),
    "scorer": ("_scorer", "sklearn", "sklearn"),
    "search": ("_search", "sklearn", "sklearn"),
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'tacit.learn' has no attribute {name!r}")
    from tacit.core import needs

    module, package, extra = _LAZY[name]
    needs(name, package, f"tacit[{extra}]")
    return getattr(import_module(f"tacit.learn.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
