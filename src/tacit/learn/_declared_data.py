"""The declared data of an estimator: which public facts it needs before anything is opened or charged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Declare

if TYPE_CHECKING:
    from tacit.learn._estimator import PrivateEstimator

__all__ = ["needs_names"]

_NEEDED = (("dataset", "patients"), ("budget", {"epsilon": 1}))


def needs_names(estimator: PrivateEstimator) -> None:
    """Refuse an estimator that has no dataset or no budget."""
    for name, example in _NEEDED:
        if getattr(estimator, name) is None:
            raise TacitError(
                "bad-parameter",
                f"the estimator needs {name}",
                why="the ledger keeps the budget of each dataset under its name",
                fix=Declare(name, example),
            )
