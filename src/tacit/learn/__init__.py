"""Learning: models that do not memorise people, hospitals that train together, estimators, teacher ensembles.

PyTorch, scikit-learn and Flower are extras, and each is imported when it is first needed.

Importing this package asks Intel's math library for sums that do not depend on where in memory a row lies
(``MKL_CBWR``), unless the variable is set. It reads the variable before its first product and never again.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from tacit.calls import refuse_wrong_calls, refusing
from tacit.learn import federated
from tacit.learn._adaptive_clip import AdaptiveClip
from tacit.learn._evaluation import evaluate
from tacit.learn._evaluation_reading import MeasuredShare
from tacit.learn._evaluation_table import Evaluation
from tacit.learn._examples import Examples, examples
from tacit.learn._fitted_numbers import FittedNumbers
from tacit.learn._noisy_labels import NoisyLabels
from tacit.learn._representatives import representatives
from tacit.learn._shape_functions import ShapeFunction, ShapeFunctions
from tacit.learn._teachers import Teachers
from tacit.learn._trained_model import TrainedModel
from tacit.learn._vote_reading import VoteReading

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
    from tacit.learn._search import search, search_question
    from tacit.learn._standardise import Standardiser
    from tacit.learn._trainer import Trainer
    from tacit.learn._training_setup import Augmentation

__all__ = [
    "PCA",
    "AdaptiveClip",
    "Augmentation",
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
    "NoisyLabels",
    "PoissonRegressor",
    "PrivateEstimator",
    "Ridge",
    "ShapeFunction",
    "ShapeFunctions",
    "Standardiser",
    "Teachers",
    "TrainedModel",
    "Trainer",
    "VoteReading",
    "evaluate",
    "examples",
    "federated",
    "prepaid",
    "representatives",
    "scorer",
    "search",
    "search_question",
]

os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

#: What needs an extra: the module that has it, and the package that must be there, which names the extra.
_LAZY = {
    "PCA": ("_pca", "sklearn"),
    "Augmentation": ("_training_setup", "torch"),
    "ExplainableBoostingClassifier": ("_boosting", "sklearn"),
    "Folds": ("_folds", "sklearn"),
    "KMeans": ("_kmeans", "sklearn"),
    "LinearRegression": ("_linear", "sklearn"),
    "LogisticRegression": ("_logistic", "sklearn"),
    "NaiveBayes": ("_naive_bayes", "sklearn"),
    "PoissonRegressor": ("_poisson", "sklearn"),
    "PrivateEstimator": ("_estimator", "sklearn"),
    "Ridge": ("_linear", "sklearn"),
    "Standardiser": ("_standardise", "sklearn"),
    "Trainer": ("_trainer", "torch"),
    "prepaid": ("_prepaid", "sklearn"),
    "scorer": ("_scorer", "sklearn"),
    "search": ("_search", "sklearn"),
    "search_question": ("_search", "sklearn"),
}

refuse_wrong_calls(__name__, __all__)


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'tacit.learn' has no attribute {name!r}")
    from tacit.core import needs

    module, package = _LAZY[name]
    needs(name, package, f"tacit[{package}]")
    value: object = refusing(getattr(import_module(f"tacit.learn.{module}"), name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
