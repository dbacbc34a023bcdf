"""Priced evaluation: accuracy, AUC and calibration of a model on held-out units, from a noisy histogram.

The model scores rows one by one or in blocks, without errors that depend on a row. The histogram counts rows
by score and class, and all measures are read from it.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Draft, Forecast, Step, Task, plannable
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Either, Set
from tacit.learn._cells import refuse_unknown_labels
from tacit.learn.estimators._declared_bounds import declared_classes
from tacit.learn.estimators._fits import check_fit_goal, fit_noise, share_of_noise
from tacit.learn.estimators._whole_features import counted_rows, whole_classes
from tacit.learn.evaluation._measures import Evaluation, HistogramReader
from tacit.mechanisms import RoundedGaussian
from tacit.parameters import Needed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Goal, Noisy, Question
    from tacit.learn._examples import Examples


_STAND_OUT = 5  # a class must have so many sigmas times the root of the number of bins
_ALONE = "the model scores each row by itself"


@dataclass(frozen=True, slots=True)
class ScoredModel:
    """A model that is evaluated: how it scores rows, and what identifies it."""

    score: Callable[[Any], Any]
    digest: str


def scoring_function(model: Any) -> Callable[[Any], Any]:
    """Return how a model scores rows: its chances of the classes, or itself where it is a function."""
    content = getattr(model, "content", model)
    predict = getattr(content, "predict_proba", None) or (content if callable(content) else None)
    if predict is None:
        raise TacitError(
            "bad-parameter",
            "the model does not predict probabilities of the classes",
            why="accuracy, AUC and calibration are computed from them",
            fix="pass a model with predict_proba, or a function of the features that returns probabilities",
        )
    return predict  # type: ignore[no-any-return]


def model_digest(model: Any) -> str:
    """Return a digest of a model: equal for equal models, so that the same evaluation is not paid twice."""
    content = getattr(model, "release_", model)
    content = getattr(content, "content", content)
    if hasattr(content, "to_json"):
        return sha256(json.dumps(content.to_json(), sort_keys=True).encode()).hexdigest()
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
    chances = np.full((len(features), classes), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would say something about one row
        _fill(chances, score, features, size)
    bad = ~np.isfinite(chances).all(axis=1) | (chances < 0).any(axis=1) | (chances > 1).any(axis=1)
    chances[bad] = np.nan
    return chances


def _fill(
    chances: NDArray[np.float64], score: Callable[[Any], Any], features: NDArray[Any], size: int
) -> None:
    """Write the chances of each row, block by block."""
    classes = chances.shape[1]
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
        chances[start : start + len(block)] = scores[: len(block)]


def _scores(score: Callable[[Any], Any], rows: NDArray[Any], classes: int) -> NDArray[np.float64] | None:
    """Return the chances for some rows, or None where the model raises or returns something else."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning, too, could show which row caused it
            chances = np.asarray(score(rows), np.float64)
    except Exception:  # noqa: BLE001 - an error must not show which row caused it
        return None
    if chances.shape == (len(rows),) and classes == 2:
        chances = np.stack([1 - chances, chances], axis=1)
    return chances if chances.shape == (len(rows), classes) else None


def draft_evaluation(
    data: Examples,
    goal: Goal,
    *,
    model: ScoredModel,
    classes: NDArray[Any],
    bins: NDArray[np.float64],
    smaller_class: int | None,
    block: int,
) -> Draft[Evaluation]:
    """Draft an evaluation: one noisy histogram, score bins by class, or by whether the likeliest is right.

    One row is in one cell, so a unit moves the histogram by at most ``per_unit``, in L2.
    """
    check_fit_goal(goal, data.size)
    sensitivity, n_bins = data.per_unit, len(bins) - 1
    noise = RoundedGaussian(sigma=share_of_noise(fit_noise(goal), 1, sensitivity), sensitivity=sensitivity)
    _check_size(data.size, smaller_class, len(classes), n_bins, float(noise.sigma))

    def histogram(rows: list[NDArray[Any]], _: Sequence[Noisy]) -> NDArray[np.int64]:
        features, targets = rows[:2]
        codes = whole_classes(targets, classes)
        chances = score_rows(model.score, features, len(classes), block)
        counting = (codes >= 0) & np.isfinite(chances).all(axis=1)
        codes, chances = codes[counting], chances[counting]
        if len(classes) == 2:
            line, score = codes, chances[:, 1]
        else:
            likeliest = chances.argmax(axis=1)
            line, score = (likeliest == codes).astype(np.int64), chances.max(axis=1, initial=0.0)
        index = np.clip(np.searchsorted(bins, score, side="right") - 1, 0, n_bins - 1)
        return np.bincount(line * n_bins + index, minlength=2 * n_bins).reshape(2, n_bins).astype(np.int64)

    def reading(noisy: Sequence[Noisy], confidence: Fraction) -> Evaluation:
        counts = np.asarray(noisy[0], np.float64)
        reader = HistogramReader(bins, counts, float(noise.sigma), data.per_unit, confidence)
        return _measures(reader, tuple(classes.tolist()))

    task = Task(
        document={
            "learn": "evaluation", "model": model.digest, "classes": classes.tolist(),
            "edges": bins.tolist(), "per_unit": data.per_unit, "block": block,
        },
        open=lambda _: counted_rows(data),
        steps=(Step(noise, histogram, {"statistic": "rows by score and class", "assumes": _ALONE}),),
        reading=reading,
    )  # fmt: skip
    return Draft(
        task=task,
        asked=f"an evaluation of a model on {len(classes)} classes",
        forecast=lambda: _forecast(data, noise, n_bins, smaller_class),
        facts=[
            ("classes", ", ".join(map(str, classes.tolist())) + "; rows with another class are dropped"),
            ("bins", f"{n_bins} public bins of the score"),
            ("assumes", _ALONE),
        ],
        goal=goal,
    )


def _measures(reader: HistogramReader, classes: tuple[Any, ...]) -> Evaluation:
    """Read all measures off the noisy histogram."""
    two, middles = len(classes) == 2, reader.middles
    predicted = (middles >= 0.5).astype(np.float64)
    lines = [1 - predicted, predicted] if two else [np.zeros_like(middles), np.ones_like(middles)]
    return Evaluation(
        accuracy=reader.share(np.stack(lines)),
        auc=reader.auc() if two else None,
        calibration=reader.share(np.stack([-middles, 1 - middles]), -1.0, 1.0),
        outcomes=reader.outcomes(),
        edges=reader.edges,
        counts=reader.counts,
        classes=classes,
        confidence=float(reader.confidence),
    )


def _check_size(size: int, smaller: int | None, classes: int, bins: int, sigma: float) -> None:
    """Refuse an evaluation whose classes would not stand out from the noise: public facts decide."""
    if classes == 2:
        why = (
            "about how many units the smaller class has, from public knowledge: with too few units of "
            "a class the AUC cannot be estimated"
        )
        about: Needed[int] = Needed(500, "for two classes", why)
        about.read("smaller_class", smaller)
    units = size if smaller is None else min(count("smaller_class", smaller, zero=False), size)
    needed = math.ceil(_STAND_OUT * sigma * math.sqrt(bins if classes == 2 else 2 * bins))
    if units < needed:
        raise TacitError(
            "bad-parameter",
            f"{units:,} units are too few for this evaluation: it needs {needed:,}"
            + (" of the smaller class" if classes == 2 else ""),
            why="the noisy number of units would be near zero, and dividing by it could give any result",
            fix=Either(Set(bins=max(10, bins // 2)), Set(epsilon=4)),
        )


def _forecast(data: Examples, noise: RoundedGaussian, bins: int, smaller: int | None) -> list[Forecast]:
    """Say how wide the intervals will be, from the declared sizes alone."""
    variance, size = float(noise.sigma) ** 2, data.size
    half = 1.96 * math.sqrt(variance * (2 * bins) / 4 + data.per_unit * size / 4) / size
    law = noise.describe()
    lines = [Forecast("accuracy", "share of right answers", law, half, "at most, noise and sampling")]
    if smaller is not None:
        half = 1.96 * math.sqrt(variance * bins / 12 / smaller**2 + data.per_unit / (12 * smaller))
        lines.append(
            Forecast("auc", "chance that the second class scores higher", law, half,
                     "about, noise and sampling")
        )  # fmt: skip
    return lines


@plannable
def evaluate(
    model: Any,
    data: Examples,
    *,
    smaller_class: int | None = None,
    classes: Sequence[Any] | None = None,
    bins: int | Sequence[float] = 20,
    block: int = 1,
    name: str | None = None,
) -> Question[Evaluation]:
    """Ask for the evaluation of a model on held-out units: accuracy, AUC and calibration, with intervals.

    Guarantee: one histogram of the scores by class is released with Gaussian noise; one unit moves it by at
    most its number of rows. All measures are read off it, for free. Intervals cover the noise and the
    sampling of units, to first order. A row that the model cannot score, or whose class is not declared, is
    dropped without a word.

    Parameters
    ----------
    model
        A model with ``predict_proba``, such as a fitted estimator or a release, or a function that returns
        chances. It must score each row by itself, and it must not have seen the held-out units.
    data
        The held-out units, declared with `tacit.learn.examples`.
    smaller_class
        About how many units the smaller of two classes has: public knowledge. With too few of them no AUC
        can be estimated, and the plan is refused.
    classes
        The classes, where the model has no ``classes_``.
    bins
        How many bins the scores have, an even number; or their edges from 0 to 1, with 0.5 among them.
    block
        How many rows the model scores at once. More is quicker; the guarantee then needs that the score of a
        row does not depend on the rows beside it, to the last bit.
    name
        A name for the model, where it cannot be recognised by its content.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> age = np.linspace(0, 1, 10_000)
    >>> ill = (age * 7919) % 1 < age                   # about as often as the score says
    >>> patients = tc.learn.examples(
    ...     age[:, None], ill, unit=tc.Unit.row(), size=10_000, budget=tc.Budget(epsilon=3, delta=1e-6)
    ... )
    >>> question = tc.learn.evaluate(
    ...     lambda rows: rows[:, 0], patients, smaller_class=4_000, classes=[False, True], name="age alone"
    ... )
    >>> found = question.plan(epsilon=2, delta=1e-6).release()
    >>> 0.7 < found.accuracy.value < 0.8, abs(found.calibration.value) < 0.05
    (True, True)
    """
    from tacit.learn._questions import EVALUATE

    labels = _read_classes(model, classes)
    refuse_unknown_labels((data._types or ((), ()))[-1], labels.tolist(), spelled=True)  # noqa: SLF001
    digest = model_digest(model) if name is None else f"name {name}"
    return EVALUATE.ask(
        data,
        model=ScoredModel(scoring_function(model), digest),
        classes=labels,
        bins=_read_edges(bins),
        smaller_class=smaller_class,
        block=block,
    )


def _read_classes(model: Any, classes: Any) -> NDArray[Any]:
    """Return the classes in the order of the model's chances: given, or those of the model."""
    declared = getattr(getattr(model, "content", model), "classes_", None) if classes is None else classes
    declared = getattr(getattr(model, "content", model), "classes", None) if declared is None else declared
    return np.asarray(declared_classes(declared))


def _read_edges(bins: Any) -> NDArray[np.float64]:
    """Return the edges of the score's bins; 0.5 is one of them, so that the accuracy can be read off."""
    if not isinstance(bins, str) and np.ndim(bins) == 1:
        edges = np.asarray(bins, np.float64)
    else:
        number = count("bins", bins, zero=False)
        edges = np.arange(number + 1) / number
    fine = len(edges) > 2 and bool(np.isfinite(edges).all() and (np.diff(edges) > 0).all())
    if not fine or edges[0] != 0 or edges[-1] != 1 or 0.5 not in edges or len(edges) > 1001:
        raise bad_parameter(
            "bins", "an even number up to 1,000, or increasing edges from 0 to 1 with 0.5 among them", bins,
            why="0.5 separates the two answers of the model", fix=Set(bins=20),
        )  # fmt: skip
    return edges
