"""Learning: models that do not memorise people, hospitals that train together, estimators, teacher ensembles.

PyTorch, scikit-learn and Flower are extras, and each is imported when it is first needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tacit.learn._adaptive_clip import AdaptiveClip
from tacit.learn._examples import Examples, examples
from tacit.learn._trained_model import TrainedModel

if TYPE_CHECKING:
    from tacit.learn._trainer import Trainer
    from tacit.learn._training_setup import Augmentation

__all__ = ["AdaptiveClip", "Augmentation", "Examples", "TrainedModel", "Trainer", "examples"]

#: Public name -> module that holds it, and the package that it needs, which is an extra of the same name.
_LAZY = {
    "Augmentation": ("tacit.learn._training_setup", "torch"),
    "Trainer": ("tacit.learn._trainer", "torch"),
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'tacit.learn' has no attribute {name!r}")
    from tacit.core import needs

    home, package = _LAZY[name]
    needs(name, package, f"tacit[{package}]")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value
