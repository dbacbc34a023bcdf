"""The declared data of an estimator: which public facts it needs before anything is opened or charged."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.learn._cells import cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.learn._estimator import PrivateEstimator

_NEEDED = (("dataset", 'dataset="patients"'), ("budget", "budget=tc.Budget(epsilon=1, delta=1e-6)"))


def needs_names(estimator: PrivateEstimator) -> None:
    """Refuse an estimator that has no dataset or no budget."""
    for name, example in _NEEDED:
        if getattr(estimator, name) is None:
            raise TacitError(
                "bad-parameter",
                f"the estimator needs {name}",
                why="the ledger keeps the budget of each dataset under its name",
                fix=Code(example),
            )


def check_shape(features: Any) -> None:
    """Refuse features that are not a table of real numbers; the refusal shows nothing of the table.

    scikit-learn's own refusals print values and the number of rows.

    Examples
    --------
    >>> check_shape(np.zeros(3))
    Traceback (most recent call last):
    ValueError: X must have two axes, rows and features. Reshape your data.
    """
    held = features if hasattr(features, "shape") else np.asarray(cells(features))
    if len(held.shape) != 2:
        raise ValueError("X must have two axes, rows and features. Reshape your data.")
    if not held.shape[1]:
        raise ValueError("X has 0 feature(s), while a minimum of 1 is required.")
    if getattr(getattr(held, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported")


def one_column(target: Any) -> NDArray[Any]:
    """Return a target as one column; its values are not looked at.

    Examples
    --------
    >>> one_column([1, 0]).tolist()
    [1, 0]
    """
    held = np.asarray(cells(target))
    if held.ndim == 2 and held.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        said = "A column-vector y was passed when a 1d array was expected."
        warnings.warn(said, DataConversionWarning, stacklevel=5)
        held = held[:, 0]
    if held.ndim != 1:
        raise ValueError("y must have one axis, a value for each row")
    if held.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    return held
