"""Learning: models that do not memorise people, hospitals that train together, estimators, teacher ensembles.

PyTorch, scikit-learn and Flower are extras, and each is imported when it is first needed.
"""

from __future__ import annotations

from tacit.learn import federated
from tacit.learn._examples import Examples, examples

__all__ = ["Examples", "examples", "federated"]
