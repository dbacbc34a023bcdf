"""Priced scorers in learning: how good a model is on held-out units, with noise and a charge."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells, Draft, Goal, Step, Task, Unit, is_hidden, without_hidden
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Code, Either, Set
from tacit.learn._cells import cells, column_cells
from tacit.learn._examples import examples
from tacit.learn.estimators._declared_bounds import read_target_bounds
from tacit.learn.estimators._identity import data_digest, needs_names, open_for_fit, private_parts
from tacit.learn.estimators._whole_features import FEATURE_STEPS, as_numbers, whole_classes
from tacit.mechanisms import DiscreteLaplace
from tacit.parameters import Choice
from tacit.report import with_article

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Noisy
    from tacit.learn._examples import Examples
    from tacit.learn.estimators._estimator import PrivateEstimator


_MEASURES = ("accuracy", "neg_mean_squared_error")


def predictions_of(estimator: Any, X: Any) -> NDArray[Any]:
    """Return the prediction of each row, row by row, so that no row's prediction depends on others.

    A row that the estimator cannot read has the prediction None, which is never right.
    """
    rows = X.iloc if hasattr(X, "iloc") else np.asarray(cells(X))

    def predicted(index: int) -> Any:
        try:
            return estimator.predict(rows[index : index + 1].copy())[0]
        except TacitError:  # a refusal: it does not depend on the row
            raise
        except Exception:  # noqa: BLE001 - an error must not show which row caused it
            return None

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a warning would say something about one row
        return column_cells([predicted(place) for place in range(len(X))])


def whole_scores(measure: str, predicted: NDArray[Any], y: Any, target_bounds: Any) -> NDArray[np.int64]:
    """Return the score of each row as a whole number from 0 to FEATURE_STEPS; higher is better.

    Examples
    --------
    >>> whole_scores("accuracy", np.array([1, 0]), [1, 1], None).tolist()
    [4096, 0]
    >>> whole_scores("neg_mean_squared_error", np.array([1.0, 9.0]), [1.0, 4.0], (0, 10)).tolist()
    [4096, 3072]
    """
    if measure == "accuracy":
        pairs = zip(predicted.tolist(), column_cells(y).tolist(), strict=True)
        right = [_same(a, b) for a, b in pairs]
        return np.array(right, dtype=np.int64) * FEATURE_STEPS
    low, high = read_target_bounds(target_bounds)
    error = (np.clip(as_numbers(predicted), low, high) - np.clip(as_numbers(y), low, high)) / (high - low)
    missed = np.floor(np.nan_to_num(np.square(error), nan=1.0) * FEATURE_STEPS)
    return np.asarray(FEATURE_STEPS - missed, dtype=np.int64)


def _same(predicted: Any, label: Any) -> bool:
    """Return whether a label is the class that was predicted, read as in a fit."""
    classes = np.empty(1, dtype=object)
    classes[0] = predicted
    return predicted is not None and bool(whole_classes([label], classes)[0] == 0)


def draft_score(
    data: Examples, goal: Goal, *, measure: str, digest: str, scores: Callable[[], NDArray[np.int64]]
) -> Draft[AnswerTable]:
    """Draft one score: the sum of scores, and the sum of what is missing to full ones, in whole numbers."""
    if not data.unit.is_row:
        raise _several_rows(str(data.unit))
    assert goal.epsilon is not None  # noqa: S101 - a score takes nothing else
    noise = DiscreteLaplace(epsilon=goal.epsilon, sensitivity=FEATURE_STEPS)

    def reading(noisy: Sequence[Noisy], confidence: Fraction) -> AnswerTable:
        reached, missed = (max(0, int(one)) for one in noisy[0])
        width = noise.half_width(1 - (1 - confidence) / 2)  # the interval covers the noise of both sums
        total = max(1, reached + missed)
        share, low, high = (
            min(1.0, max(0.0, one / total)) for one in (reached, reached - width, reached + width)
        )
        hidden = is_hidden(sum(int(one) for one in noisy[0]), 2 * 2 * noise.scale**2)
        cells = without_hidden(Cells((share,), (low,), (high,)), [hidden])
        return AnswerTable({}, {"score": cells}, float(confidence))

    task = Task(
        document={"score": measure, "data": digest},
        open=lambda _: np.clip(scores(), 0, FEATURE_STEPS),
        steps=(
            Step(
                noise,
                lambda scores, _: [int(scores.sum()), int((FEATURE_STEPS - scores).sum())],
                {"statistic": f"sums of {measure}"},
            ),
        ),
        reading=reading,
    )
    return Draft(task=task, asked=f"a score, {measure}", goal=goal)


def _several_rows(unit: str) -> TacitError:
    """Refuse a score of units with several rows."""
    return bad_parameter(
        "unit", "a row for a priced score", unit,
        why=f"{with_article(unit)} with several rows would move the score by more than one row",
        fix=Either(
            Code("tc.learn.search(model, grid, X, y, owners=ids, epsilon=1, delta=1e-6)"),
            Code("tc.learn.evaluate(model, held_out, smaller_class=500).plan(epsilon=1, delta=1e-6)"),
        ),
    )  # fmt: skip


def own_measure(name: str, measure: str, estimator: PrivateEstimator) -> str:
    """Return the measure that an estimator is scored with, or refuse another one."""
    own_name = "accuracy" if estimator._score_bounds() is None else "neg_mean_squared_error"  # noqa: SLF001
    if measure != own_name:
        raise bad_parameter(name, own_name, measure, fix=Set(**{name: own_name}))
    return measure


@dataclass(frozen=True)
class PricedScorer:
    """A scorer for ``scoring=`` of scikit-learn that pays for each score; made by `scorer`."""

    measure: str
    epsilon: Fraction

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the noisy score of a fitted estimator on these rows, and charge its dataset."""
        from tacit.learn._questions import SCORE

        part = private_parts(estimator)[-1]
        needs_names(part)
        if part.unit != "row":
            raise _several_rows(part.unit)
        own_measure("measure", self.measure, part)
        bounds = part._score_bounds()  # noqa: SLF001 - of this room
        _check_shapes(estimator, X, y)
        ledger = open_for_fit(part.ledger)
        try:
            data = examples(
                column_cells(y), unit=Unit.row(), size=part.size, budget=part.budget,
                name=part.dataset, version=part.version, ledger=ledger,
            )  # fmt: skip
            models = [one.release_.certificate.plan for one in private_parts(estimator)]
            question = SCORE.ask(
                data,
                measure=self.measure,
                digest=data_digest(ledger, X, y, [repr(estimator), *models]),
                scores=lambda: whole_scores(self.measure, predictions_of(estimator, X), y, bounds),
            )
            [value] = question.plan(epsilon=self.epsilon).release()["score"].value
            share = math.nan if value is None else float(value)  # scikit-learn knows NaN as "no score"
        finally:
            if part.ledger is not None:
                ledger.close()
        return share if bounds is None else (share - 1) * (bounds[1] - bounds[0]) ** 2


def _check_shapes(estimator: Any, X: Any, y: Any) -> None:
    """Refuse rows that cannot be scored, by their shape alone."""
    if len(X) != len(y):
        raise ValueError("X and y have different numbers of rows")
    columns, n_features = getattr(X, "shape", ())[1:], getattr(estimator, "n_features_in_", None)
    if columns and n_features is not None and columns != (n_features,):
        raise ValueError(f"X has {columns[0]} features, but the estimator was fitted with {n_features}")


def scorer(measure: str, *, epsilon: Number) -> PricedScorer:
    """Return a scorer that charges epsilon for each score, for ``scoring=`` of scikit-learn.

    Guarantee: each score is (epsilon, 0)-private for one row of the held-out data, and is charged to the
    estimator's dataset before it is computed. scikit-learn's own scores are exact; Tacit refuses them while a
    cross-validation or a search tests on patients.

    Parameters
    ----------
    measure
        ``"accuracy"``, or ``"neg_mean_squared_error"`` for estimators with target bounds.
    epsilon
        The price of one score; a search with 3 candidates and 5 folds takes 15 scores.

    Examples
    --------
    >>> scorer("accuracy", epsilon=0.1)
    PricedScorer(measure='accuracy', epsilon=Fraction(1, 10))
    """
    Choice(_MEASURES).read("measure", measure)
    return PricedScorer(measure, rational("epsilon", epsilon))
