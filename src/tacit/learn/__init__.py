"""Learning: models that do not memorise people, hospitals that train together, estimators, teacher ensembles.

PyTorch, scikit-learn and Flower are extras, and each is imported when it is first needed.

In reading order:

`_examples`     the dataset of learning: features, targets and who owns them; rows of units
`_cells`        cells and types of what users hand over, read so that no cell changes how others count
`_arrays`       arrays as JSON documents
`training`      private training of PyTorch models
`layers`        clipped sums of gradients, layer by layer, for training
`estimators`    scikit-learn's conventions around a plan, a charge and a release
`evaluation`    accuracy, AUC, calibration and scores of a model, with noise and a charge
`teachers`      teacher ensembles, which label public queries for a student
`federated`     hospitals and clients that train together
`_questions`    the questions about examples, each declared once

Importing this package asks Intel's math library for sums that do not depend on where in memory a row lies
(``MKL_CBWR``), unless the variable is set. It reads the variable before its first product and never again.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from tacit.calls import refuse_wrong_calls, refusing
from tacit.learn import federated
from tacit.learn._examples import Examples, examples
from tacit.learn.estimators._fitted_numbers import FittedNumbers, ShapeFunction, ShapeFunctions
from tacit.learn.evaluation._evaluation import evaluate
from tacit.learn.evaluation._measures import Evaluation, MeasuredShare
from tacit.learn.teachers._noisy_labels import NoisyLabels, representatives
from tacit.learn.teachers._teachers import Teachers
from tacit.learn.teachers._vote_reading import VoteReading
from tacit.learn.training._settings import AdaptiveClip
from tacit.learn.training._trained_model import TrainedModel

if TYPE_CHECKING:
    from tacit.learn.estimators._boosting import ExplainableBoostingClassifier
    from tacit.learn.estimators._estimator import PrivateEstimator
    from tacit.learn.estimators._generalised_linear import LogisticRegression, PoissonRegressor
    from tacit.learn.estimators._kmeans import KMeans
    from tacit.learn.estimators._linear import LinearRegression, Ridge
    from tacit.learn.estimators._naive_bayes import NaiveBayes
    from tacit.learn.estimators._prepaid import Folds, prepaid
    from tacit.learn.estimators._search import search, search_question
    from tacit.learn.estimators._transformers import PCA, Standardiser
    from tacit.learn.evaluation._scorer import scorer
    from tacit.learn.training._setup import Augmentation
    from tacit.learn.training._trainer import Trainer

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
    "PCA": ("estimators._transformers", "sklearn"),
    "Augmentation": ("training._setup", "torch"),
    "ExplainableBoostingClassifier": ("estimators._boosting", "sklearn"),
    "Folds": ("estimators._prepaid", "sklearn"),
    "KMeans": ("estimators._kmeans", "sklearn"),
    "LinearRegression": ("estimators._linear", "sklearn"),
    "LogisticRegression": ("estimators._generalised_linear", "sklearn"),
    "NaiveBayes": ("estimators._naive_bayes", "sklearn"),
    "PoissonRegressor": ("estimators._generalised_linear", "sklearn"),
    "PrivateEstimator": ("estimators._estimator", "sklearn"),
    "Ridge": ("estimators._linear", "sklearn"),
    "Standardiser": ("estimators._transformers", "sklearn"),
    "Trainer": ("training._trainer", "torch"),
    "prepaid": ("estimators._prepaid", "sklearn"),
    "scorer": ("evaluation._scorer", "sklearn"),
    "search": ("estimators._search", "sklearn"),
    "search_question": ("estimators._search", "sklearn"),
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
