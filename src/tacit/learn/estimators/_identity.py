"""The identity of a fit: which dataset and ledger an estimator names, and how its data is recognised again.

An estimator needs some public facts before anything is opened or charged; without them the fit is refused.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Either, Set
from tacit.learn._cells import cells, column_cells, written_cells
from tacit.ledger import Ledger
from tacit.parameters import Instance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from numpy.typing import NDArray

    from tacit.learn.estimators._estimator import PrivateEstimator


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
    table = features if hasattr(features, "shape") else np.asarray(cells(features))
    if len(table.shape) != 2:
        raise ValueError("X must have two axes, rows and features. Reshape your data.")
    if not table.shape[1]:
        raise ValueError("X has 0 feature(s), while a minimum of 1 is required.")
    if getattr(getattr(table, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported")


def one_column(target: Any) -> NDArray[Any]:
    """Return a target as one column; its values are not looked at.

    Examples
    --------
    >>> one_column([1, 0]).tolist()
    [1, 0]
    """
    column = np.asarray(cells(target))
    if column.ndim == 2 and column.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warning = "A column-vector y was passed when a 1d array was expected."
        warnings.warn(warning, DataConversionWarning, stacklevel=5)
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError("y must have one axis, a value for each row")
    if column.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    return column


#: The ledger in memory of this process, by the process that made it.
_memory: dict[int, Ledger] = {}

#: Parts of scikit-learn that fit an estimator many times and never ask for the whole price.
_MANY_FITS = (
    "sklearn.calibration", "sklearn.ensemble", "sklearn.feature_selection", "sklearn.model_selection",
    "sklearn.multiclass", "sklearn.multioutput", "sklearn.semi_supervised",
)  # fmt: skip
#: Parts of scikit-learn that draw the rows of a fit by their positions, or a row several times.
_DRAWN_ROWS = (
    "sklearn.ensemble._bagging", "sklearn.ensemble._weight_boosting",
    "sklearn.model_selection._search_successive_halving", "sklearn.semi_supervised",
)  # fmt: skip
_DRAWING = frozenset({"learning_curve", "permutation_test_score"})
#: Parts of scikit-learn that make exact numbers from predictions for held-out rows.
_EXACT_SCORES = ("sklearn.calibration", "sklearn.model_selection._validation")


def open_for_fit(where: object) -> Ledger:
    """Open the ledger that an estimator names; None stands for this process's own ledger in memory."""
    if where is None:
        return _own_memory()
    why = "scikit-learn copies the parameters of an estimator, and charges to a copy would not count"
    address: Instance[Any] = Instance(
        (str, os.PathLike), 'ledger="study.ledger"', "the path or address of a ledger", why
    )
    return Ledger.open(address.read("ledger", where))


def _own_memory() -> Ledger:
    """Return this process's ledger in memory; refuse it to a process that another one started."""
    process = os.getpid()
    if process not in _memory and (_memory or multiprocessing.parent_process() is not None):
        raise TacitError(
            "not-allowed",
            "an estimator without a ledger file was fitted in a second process",
            why="a ledger in memory belongs to one process; charges in another one would not reach it",
            fix=Either(Set(ledger="study.ledger"), Code("n_jobs=1")),
        )
    if process not in _memory:
        _memory[process] = Ledger.memory()
    return _memory[process]


def data_digest(ledger: Ledger, *arrays: Any) -> str:
    """Return a digest of arrays, keyed with the ledger's key: equal arrays are recognised, nothing is shown.

    Examples
    --------
    >>> ledger = Ledger.memory()
    >>> data_digest(ledger, np.zeros(3)) == data_digest(ledger, np.zeros(3))
    True
    >>> data_digest(ledger, np.zeros(3)) == data_digest(ledger, np.zeros((3, 1)))
    False
    """
    parts: list[bytes] = []
    for array in arrays:
        column = column_cells(array)
        plain = column.dtype.kind != "O"
        body = np.ascontiguousarray(column).tobytes() if plain else written_cells(column.tolist())
        head = f"{column.dtype.str if plain else 'O'}{column.shape}{len(body)};".encode()
        parts += [head, body]
    return ledger.keyed_digest("fits", b"".join(parts))


def private_parts(estimator: Any) -> list[Any]:
    """Return the private estimators in an estimator, a pipeline or a search, outer ones first."""
    from tacit.learn.estimators._estimator import PrivateEstimator

    if isinstance(estimator, PrivateEstimator):
        return [estimator]
    inner = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    parts = {id(one): one for one in inner if isinstance(one, PrivateEstimator)}
    if not parts:
        raise bad_parameter(
            "estimator", "one that contains a private estimator", estimator,
            fix=Code("tc.learn.LogisticRegression(...)"),
        )  # fmt: skip
    return list(parts.values())


def refuse_hidden_fits() -> None:
    """Refuse a fit that cross-validation, a search or an ensemble of scikit-learn started.

    What decides is who calls, never the data.
    """
    if _called_from(_MANY_FITS):
        raise TacitError(
            "not-allowed",
            "scikit-learn started this fit as one of several",
            why="each fit costs, and scikit-learn never asks what all of them cost together",
            fix=Either(
                Code("tc.learn.search(estimator, grid, X, y, epsilon=1, delta=1e-6)"),
                Code("with tc.learn.prepaid(estimator, fits=16, epsilon=1, delta=1e-6): search.fit(X, y)"),
            ),
        )


def refuse_drawn_rows() -> None:
    """Refuse a prepaid fit on rows that scikit-learn drew by their positions, or some of them twice.

    One patient more would move others, or count several times, so the price of a fit would not hold. What
    decides is who calls, never the data.
    """
    from tacit.learn.estimators._prepaid import Folds

    frames = [one for one in _callers() if one.f_globals.get("__name__", "").startswith("sklearn.")]
    validations = [
        one for one in frames if one.f_globals["__name__"] == "sklearn.model_selection._validation"
    ]
    folds = [one.f_locals["cv"] for one in validations if "cv" in one.f_locals]
    if (
        any(one.f_globals["__name__"].startswith(_DRAWN_ROWS) for one in frames)
        or any(one.f_code.co_name in _DRAWING for one in validations)
        or not all(isinstance(one, Folds) for one in folds)
    ):
        raise TacitError(
            "not-allowed",
            "scikit-learn drew the rows of this fit by their positions, or some rows several times",
            why="one more patient would move other patients or count twice, and then no number of fits "
            "bounds the cost",
            fix=Set(cv="tc.learn.Folds(5)"),
        )


def refuse_exact_scores() -> None:
    """Refuse predictions from which cross-validation or a search of scikit-learn makes exact scores."""
    if _called_from(_EXACT_SCORES) and not _called_from(("tacit.learn.evaluation._scorer",)):
        raise TacitError(
            "not-allowed",
            "scikit-learn asked for an exact score on held-out patients",
            why="an exact score says something about each of them, and nobody paid for it",
            fix=Code('scoring=tc.learn.scorer("accuracy", epsilon=0.1)'),
        )


def _called_from(modules: tuple[str, ...]) -> bool:
    """Return whether a function of these modules is among the callers."""
    return any(frame.f_globals.get("__name__", "").startswith(modules) for frame in _callers())


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - Python's own way to the callers
    while frame is not None:
        yield frame
        frame = frame.f_back
