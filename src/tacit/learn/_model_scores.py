"""Scores of a model for held-out rows: row by row or in blocks, without errors that depend on a row."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Set

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ScoredModel:
    """A model that is evaluated: how it scores rows, and what identifies it."""

    score: Callable[[Any], Any]
    digest: str


def scoring_function(model: Any) -> Callable[[Any], Any]:
    """Return how a model scores rows: its chances of the classes, or itself where it is a function."""
    held = getattr(model, "content", model)
    found = getattr(held, "predict_proba", None) or (held if callable(held) else None)
    if found is None:
        raise TacitError(
            "bad-parameter",
            "the model does not predict probabilities of the classes",
            why="accuracy, AUC and calibration are computed from them",
            fix="pass a model with predict_proba, or a function of the features that returns probabilities",
        )
    return found  # type: ignore[no-any-return]


def model_digest(model: Any) -> str:
    """Return a digest of a model: equal for equal models, so that the same evaluation is not paid twice."""
    held = getattr(model, "release_", model)
    held = getattr(held, "content", held)
    if hasattr(held, "to_json"):
        return sha256(json.dumps(held.to_json(), sort_keys=True).encode()).hexdigest()
    try:
        from joblib import hash as digest_of  # type: ignore[import-untyped]

        return str(digest_of(model))
    except Exception:  # noqa: BLE001 - whatever a model raises when it is written
        raise TacitError(
            "bad-parameter",
            "the model cannot be recognised again, so its evaluation needs a name",
            why="repeating the same evaluation is free, so Tacit must recognise the model",
            fix=Set(name="model 1"),
        ) from None


def score_rows(
    score: Callable[[Any], Any], features: NDArray[Any], classes: int, size: int = 1
) -> NDArray[np.float64]:
    """Return the chances of the classes for each row; NaN for a row that the model cannot score.

    A row that is scored alone has one score to the last bit, whoever else is there. Blocks are quicker.

    Examples
    --------
    >>> score_rows(lambda rows: 1 / rows[:, 0], np.array([[2.0], [0.5], [4.0]]), 2).tolist()
    [[0.5, 0.5], [nan, nan], [0.75, 0.25]]
    """
    found = np.full((len(features), classes), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would say something about one row
        _fill(found, score, features, size)
    bad = ~np.isfinite(found).all(axis=1) | (found < 0).any(axis=1) | (found > 1).any(axis=1)
    found[bad] = np.nan
    return found


def _fill(found: NDArray[np.float64], score: Callable[[Any], Any], features: NDArray[Any], size: int) -> None:
    """Write the chances of each row, block by block."""
    classes = found.shape[1]
    for start in range(0, len(features), size):
        block = features[start : start + size]
        padded = np.concatenate([block, np.zeros((size - len(block), *block.shape[1:]), block.dtype)])
        scores = _scores(score, padded, classes)
        if scores is None and size == 1:
            continue
        if scores is None:  # again without the refused rows: alone, the others could round differently
            refused = [_scores(score, block[i : i + 1], classes) is None for i in range(len(block))]
            padded[: len(block)][refused] = np.zeros((), block.dtype)
            scores = _scores(score, padded, classes)
            scores = np.full((size, classes), np.nan) if scores is None else scores.copy()
            scores[: len(block)][refused] = np.nan
        found[start : start + len(block)] = scores[: len(block)]


def _scores(score: Callable[[Any], Any], rows: NDArray[Any], classes: int) -> NDArray[np.float64] | None:
    """Return the chances for some rows, or None where the model raises or returns something else."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning, too, could show which row caused it
            found = np.asarray(score(rows), np.float64)
    except Exception:  # noqa: BLE001 - an error must not show which row caused it
        return None
    if found.shape == (len(rows),) and classes == 2:
        found = np.stack([1 - found, found], axis=1)
    return found if found.shape == (len(rows), classes) else None
