"""Durable names of fits: which ledger an estimator pays from, and how its data is recognised again."""

from __future__ import annotations

import multiprocessing
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Either, Set
from tacit.learn._cells import column_cells, written_cells
from tacit.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

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
    if isinstance(where, Ledger) or not isinstance(where, str | os.PathLike):
        raise bad_parameter(
            "ledger",
            "the path or address of a ledger",
            where,
            why="scikit-learn copies the parameters of an estimator, and charges to a copy would not count",
            fix=Set(ledger="study.ledger"),
        )
    return Ledger.open(where)


def _own_memory() -> Ledger:
    """Return this process's ledger in memory; refuse it to a process that another one started."""
    own = os.getpid()
    if own not in _memory and (_memory or multiprocessing.parent_process() is not None):
        raise TacitError(
            "not-allowed",
            "an estimator without a ledger file was fitted in a second process",
            why="a ledger in memory belongs to one process; charges in another one would not reach it",
            fix=Either(Set(ledger="study.ledger"), Code("n_jobs=1")),
        )
    if own not in _memory:
        _memory[own] = Ledger.memory()
    return _memory[own]


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
    for one in arrays:
        held = column_cells(one)
        plain = held.dtype.kind != "O"
        body = np.ascontiguousarray(held).tobytes() if plain else written_cells(held.tolist())
        head = f"{held.dtype.str if plain else 'O'}{held.shape}{len(body)};".encode()
        parts += [head, body]
    return ledger.keyed_digest("fits", b"".join(parts))


def private_parts(estimator: Any) -> list[Any]:
    """Return the private estimators in an estimator, a pipeline or a search, outer ones first."""
    from tacit.learn._estimator import PrivateEstimator

    if isinstance(estimator, PrivateEstimator):
        return [estimator]
    inner = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    found = {id(one): one for one in inner if isinstance(one, PrivateEstimator)}
    if not found:
        raise bad_parameter(
            "estimator", "one that contains a private estimator", estimator,
            fix=Code("tc.learn.LogisticRegression(...)"),
        )  # fmt: skip
    return list(found.values())


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
    from tacit.learn._folds import Folds

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
    if _called_from(_EXACT_SCORES) and not _called_from(("tacit.learn._scorer",)):
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
