"""Priced evaluation: accuracy, AUC and calibration of a model on held-out units, from a noisy histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import plannable
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.learn._cells import refuse_unknown_labels
from tacit.learn.estimators._declared_bounds import declared_classes
from tacit.learn.evaluation._score_histogram import ScoredModel, model_digest, scoring_function

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import Question
    from tacit.learn._examples import Examples
    from tacit.learn.evaluation._evaluation import Evaluation


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

    held = _read_classes(model, classes)
    refuse_unknown_labels((data._types or ((), ()))[-1], held.tolist(), spelled=True)  # noqa: SLF001
    digest = model_digest(model) if name is None else f"name {name}"
    return EVALUATE.ask(
        data,
        model=ScoredModel(scoring_function(model), digest),
        classes=held,
        bins=_read_edges(bins),
        smaller_class=smaller_class,
        block=block,
    )


def _read_classes(model: Any, classes: Any) -> NDArray[Any]:
    """Return the classes in the order of the model's chances: given, or those of the model."""
    known = getattr(getattr(model, "content", model), "classes_", None) if classes is None else classes
    known = getattr(getattr(model, "content", model), "classes", None) if known is None else known
    return np.asarray(declared_classes(known))


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
