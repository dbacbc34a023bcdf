"""Priced evaluation: accuracy, AUC and calibration of a model on held-out units, from a noisy histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Forecast, Plan
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Either, Set
from tacit.learn._counted_rows import counted_rows
from tacit.learn._evaluation_reading import HistogramReader
from tacit.learn._evaluation_table import Evaluation
from tacit.learn._fit_noise import fit_noise, read_fit_goal, share_of_noise
from tacit.learn._model_scores import model_digest, score_rows, scoring_function
from tacit.learn._possible_values import refuse_unknown_labels
from tacit.learn._whole_features import whole_classes
from tacit.mechanisms import RoundedGaussian

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.learn._examples import Examples

__all__ = ["EvaluationTask", "evaluate"]

_STAND_OUT = 5  # a class must have so many sigmas times the root of the number of bins
_ALONE = "the model scores each row by itself"


@dataclass(frozen=True)
class EvaluationTask:
    """One noisy histogram: score bins by class, or by whether the likeliest class is right.

    One row is in one cell, so a unit moves the histogram by at most ``per_unit``, in L2.
    """

    data: Examples
    score: Callable[[Any], Any]
    digest: str
    classes: NDArray[Any]
    edges: NDArray[np.float64]
    noise: RoundedGaussian
    block: int

    @property
    def question(self) -> JSON:
        """The model's digest, the classes and the bins."""
        return {
            "learn": "evaluation", "model": self.digest, "classes": self.classes.tolist(),
            "edges": self.edges.tolist(), "per_unit": self.data.per_unit,
            "block": self.block,
        }  # fmt: skip

    @property
    def mechanisms(self) -> Sequence[Any]:
        """The noise of the histogram."""
        return [self.noise]

    @property
    def labels(self) -> Sequence[Mapping[str, JSON]]:
        """What the certificate says beside the mechanism."""
        return [{"statistic": "rows by score and class", "assumes": _ALONE}]

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the histogram: two lines, one number for each bin of the score."""
        features, targets = counted_rows(self.data)[:2]
        codes = whole_classes(targets, self.classes)
        chances = score_rows(self.score, features, len(self.classes), self.block)
        kept = (codes >= 0) & np.isfinite(chances).all(axis=1)
        codes, chances = codes[kept], chances[kept]
        if len(self.classes) == 2:
            line, score = codes, chances[:, 1]
        else:
            likeliest = chances.argmax(axis=1)
            line, score = (likeliest == codes).astype(np.int64), chances.max(axis=1, initial=0.0)
        bins = len(self.edges) - 1
        place = np.clip(np.searchsorted(self.edges, score, side="right") - 1, 0, bins - 1)
        yield np.bincount(line * bins + place, minlength=2 * bins).reshape(2, bins).astype(np.int64)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> Evaluation:
        """Read all measures off the noisy histogram."""
        counts = np.asarray(noisy[0], np.float64)
        reader = HistogramReader(self.edges, counts, float(self.noise.sigma), self.data.per_unit, confidence)
        two, middles = len(self.classes) == 2, reader.middles
        called = (middles >= 0.5).astype(np.float64)
        right = (
            np.stack([1 - called, called])
            if two
            else np.stack([np.zeros_like(middles), np.ones_like(middles)])
        )
        return Evaluation(
            accuracy=reader.share(right),
            auc=reader.auc() if two else None,
            calibration=reader.share(np.stack([-middles, 1 - middles]), -1.0, 1.0),
            outcomes=reader.outcomes(),
            edges=self.edges,
            counts=counts,
            classes=tuple(self.classes.tolist()),
            confidence=float(confidence),
        )  # fmt: skip


def evaluate(
    model: Any,
    data: Examples,
    *,
    epsilon: Number,
    delta: Number,
    smaller_class: int | None = None,
    classes: Sequence[Any] | None = None,
    bins: int | Sequence[float] = 20,
    confidence: float = 0.95,
    block: int = 1,
    name: str | None = None,
) -> Plan[Evaluation]:
    """Plan the evaluation of a model on held-out units: accuracy, AUC and calibration, with intervals.

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
    epsilon, delta
        The promise.
    smaller_class
        About how many units the smaller of two classes has: public knowledge. With too few of them no AUC
        can be estimated, and the plan is refused.
    classes
        The classes, where the model has no ``classes_``.
    bins
        How many bins the scores have, an even number; or their edges from 0 to 1, with 0.5 among them.
    confidence
        How often intervals cover.
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
    >>> plan = tc.learn.evaluate(
    ...     lambda rows: rows[:, 0], patients, epsilon=2, delta=1e-6, smaller_class=4_000,
    ...     classes=[False, True], name="age alone",
    ... )
    >>> found = plan.release()
    >>> 0.7 < found.accuracy.value < 0.8, abs(found.calibration.value) < 0.05
    (True, True)
    """
    goal, size = read_fit_goal(epsilon=epsilon, delta=delta, size=data.size)
    read = _read_classes(model, classes)
    refuse_unknown_labels((data._types or ((), ()))[-1], read.tolist(), spelled=True)  # noqa: SLF001
    edges = _read_edges(bins)
    moved = data.per_unit
    noise = RoundedGaussian(sigma=share_of_noise(fit_noise(goal), 1, moved), sensitivity=moved)
    _check_size(size, smaller_class, len(read), len(edges) - 1, float(noise.sigma))
    score = scoring_function(model)
    digest = model_digest(model) if name is None else f"name {name}"
    task = EvaluationTask(data, score, digest, read, edges, noise, count("block", block, zero=False))
    return Plan.of(
        data,
        task,
        promised=goal.promised,
        confidence=float(confidence),
        forecast=lambda: _forecast(task, smaller_class),
        facts=[
            ("classes", ", ".join(map(str, read.tolist())) + "; rows with another class are dropped"),
            ("bins", f"{len(edges) - 1} public bins of the score"),
            ("assumes", _ALONE),
        ],
        asked=f"an evaluation of a model on {len(read)} classes",
    )


def _read_classes(model: Any, classes: Any) -> NDArray[Any]:
    """Return the classes in the order of the model's chances: given, or those of the model."""
    known = getattr(getattr(model, "content", model), "classes_", None) if classes is None else classes
    known = getattr(getattr(model, "content", model), "classes", None) if known is None else known
    listed = [] if known is None else list(known)
    if len(set(listed)) < 2 or len(set(listed)) < len(listed):
        raise TacitError(
            "bad-parameter",
            "an evaluation needs all classes, at least two, each once",
            why="which labels occur in the data is not public",
            fix=Set(classes=["healthy", "ill"]),
        )
    return np.asarray(listed)


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


def _check_size(size: int, smaller: int | None, classes: int, bins: int, sigma: float) -> None:
    """Refuse an evaluation whose classes would not stand out from the noise: public facts decide."""
    if classes == 2 and smaller is None:
        raise bad_parameter(
            "smaller_class", "about how many units the smaller class has, from public knowledge", smaller,
            why="with too few units of a class the AUC cannot be estimated", fix=Set(smaller_class=500),
        )  # fmt: skip
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


def _forecast(task: EvaluationTask, smaller: int | None) -> list[Forecast]:
    """Say how wide the intervals will be, from the declared sizes alone."""
    sigma, size, cells = float(task.noise.sigma), task.data.size, 2 * (len(task.edges) - 1)
    noise, sample = sigma**2 * cells / 4, task.data.per_unit * size / 4
    half = 1.96 * math.sqrt(noise + sample) / size
    lines = [
        Forecast(
            "accuracy", "share of right answers", task.noise.describe(), half, "at most, noise and sampling"
        )
    ]
    if smaller is not None:
        noise = sigma**2 * (len(task.edges) - 1) / 12 / smaller**2
        sample = task.data.per_unit / (12 * smaller)
        lines.append(
            Forecast("auc", "chance that the second class scores higher", task.noise.describe(),
                     1.96 * math.sqrt(noise + sample), "about, noise and sampling")
        )  # fmt: skip
    return lines
