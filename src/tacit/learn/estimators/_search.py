"""Search: a private choice of parameters, a random number of fits, one charge, one model.

Each run of a search fits a candidate and scores it with noise; the best one is shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from tacit.accounting import Cost
from tacit.core import Draft, Question, Step, Task
from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Code
from tacit.learn._examples import Examples
from tacit.learn.estimators._fits import check_fit_goal, read_fit_goal, share_of_noise, smallest_noise
from tacit.learn.estimators._fitted_numbers import FittedNumbers
from tacit.learn.estimators._prepaid import gaussian_share, unit_folds
from tacit.learn.estimators._whole_features import FEATURE_STEPS
from tacit.learn.evaluation._scorer import own_measure, predictions_of, whole_scores
from tacit.mechanisms import BestRun, RoundedGaussian
from tacit.parameters import Instance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.core import Goal, Noisy, Release
    from tacit.learn.estimators._estimator import PrivateEstimator
    from tacit.ledger import Ledger


_PARTS = 5  # one unit in so many is held out for the score


@dataclass(frozen=True, eq=False)
class SearchRuns:
    """Runs of candidates: fit on most units, score on the others; a unit is in one of the two only."""

    candidates: Sequence[PrivateEstimator]
    measure: str
    noise: Fraction
    train: Examples
    test: Examples
    clone: Callable[[PrivateEstimator], PrivateEstimator]

    def run(self, index: int) -> tuple[int, str]:
        """Fit one candidate with fresh noise; return its noisy score, and what it learned."""
        model = self.clone(self.candidates[index])
        model.n_features_in_ = self.candidates[index].n_features_in_
        task = model._checked_steps(self.train, self.noise).task(model.kind, "")  # noqa: SLF001 - of this room
        fitted = task.reading(task.draw(), Fraction(95, 100))
        model._learned(fitted)  # noqa: SLF001
        places = self.test.units().ravel()
        features, target = (np.asarray(one)[places[places >= 0]] for one in self.test._arrays)  # noqa: SLF001
        bounds = model._score_bounds()  # noqa: SLF001
        scores = whole_scores(self.measure, predictions_of(model, features), target, bounds)
        sensitivity = self.test.per_unit * FEATURE_STEPS
        noise = RoundedGaussian(sigma=share_of_noise(self.noise, 1, sensitivity), sensitivity=sensitivity)
        score = int(noise.release(int(scores.sum())))
        return score, json.dumps(fitted.to_json())


def divided(data: Examples) -> tuple[Examples, Examples]:
    """Divide the units by a keyed hash of each: most to train on, the others to score.

    The declared sizes are the expected shares of the declared size.
    """
    arrays, owners = [np.asarray(one) for one in data._arrays], data._owners  # noqa: SLF001
    folds = unit_folds(cast("Ledger", data._ledger), _PARTS, arrays[0], arrays[1], owners)  # noqa: SLF001

    def part(chosen: Any, size: int) -> Examples:
        arrays_of_part = tuple(one[chosen] for one in arrays)
        mine = None if owners is None else np.asarray(owners)[chosen]
        return replace(data, size=max(1, size), _arrays=arrays_of_part, _owners=mine)

    return part(folds != 0, data.size * (_PARTS - 1) // _PARTS), part(folds == 0, data.size // _PARTS)


def draft_search(
    data: Examples,
    goal: Goal,
    *,
    candidates: Sequence[PrivateEstimator],
    score: str,
    runs: Fraction,
    digest: str,
) -> Draft[FittedNumbers]:
    """Draft a search: one mechanism, the best of a random number of runs."""
    from sklearn.base import clone  # before the charge

    check_fit_goal(goal, data.size)
    assert goal.epsilon is not None  # noqa: S101 - a search takes nothing else
    noise = _noise_of_one(goal.epsilon, goal.delta, runs)
    fits = [one._checked_steps(data, noise) for one in candidates]  # noqa: SLF001
    if any(gaussian_share(fit.mechanisms) * noise**2 > 1 for fit in fits):
        raise AssertionError("a candidate costs more than one run")
    best = BestRun(Cost.gaussian(sigma=noise, sensitivity=1), candidates=len(candidates), runs=runs)
    kind = candidates[0].kind

    def reading(noisy: Sequence[Noisy], _: Fraction) -> FittedNumbers:
        index, text = noisy[0]
        fitted = FittedNumbers.from_json(json.loads(text))
        return replace(fitted, settings={**fitted.settings, "candidate": int(index)})

    task = Task(
        document={
            "search": kind, "candidates": [dict(fit.settings) for fit in fits], "score": score, "data": digest
        },
        open=lambda _: SearchRuns(candidates, score, noise, *divided(data), clone),
        steps=(
            Step(best, lambda tries, _: tries,
                 {"statistic": f"fits of {kind}, chosen by {score} on held-out units"}),
        ),
        reading=reading,
    )  # fmt: skip
    return Draft(task=task, asked=f"a search for parameters of {kind}", goal=goal)


@lru_cache(maxsize=64)
def _noise_of_one(epsilon: Fraction, delta: Fraction, runs: Fraction) -> Fraction:
    """Return the noise multiplier of one try, with which the whole search keeps its promise."""
    return smallest_noise(
        lambda sigma: Cost.best_of(Cost.gaussian(sigma=sigma, sensitivity=1), runs=runs), epsilon, delta
    )


E = TypeVar("E", bound="PrivateEstimator")

#: Parameters that say who is protected and who pays; they are not searched.
_FIXED = frozenset(
    {"budget", "dataset", "delta", "epsilon", "ledger", "per_unit", "prepaid", "size", "unit", "version"}
)


def search(
    estimator: E,
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: Any = None,
    *,
    epsilon: Number,
    delta: Number,
    runs: Number = 10,
    score: str = "accuracy",
    owners: Any = None,
) -> E:
    """Choose parameters and fit, for one price: try candidates a random number of times, show the best.

    Guarantee: (epsilon, delta) for everything together, charged before the first fit, by `Cost.best_of`. Each
    try draws a candidate from the grid, fits it on about four fifths of the units, and scores it with noise
    on the others. A unit is on one side only, so a try costs as much as its fit. Only the best model is
    released; how many tries there were is not.

    Parameters
    ----------
    estimator
        A private estimator with its declared facts; its own ``epsilon`` and ``delta`` are not used.
    grid
        The values to try for some of its parameters, by name.
    X, y, owners
        As in `PrivateEstimator.fit`.
    epsilon, delta
        What the search costs.
    runs
        How many tries on average.
    score
        ``"accuracy"``, or ``"neg_mean_squared_error"`` for estimators with target bounds.

    Returns
    -------
    The estimator
        A copy of the estimator with the chosen parameters, fitted.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.repeat([[0.0], [1.0]], 2000, axis=0) + np.linspace(0, 0.1, 4000)[:, None]
    >>> y = np.repeat([0, 1], 2000)
    >>> model = tc.learn.LogisticRegression(
    ...     classes=[0, 1], bounds=(0, 1), size=4000,
    ...     dataset="doctest of searches", budget=tc.Budget(epsilon=12, delta=1e-5),
    ... )
    >>> found = tc.learn.search(model, {"steps": [20, 40]}, X, y, epsilon=4, delta=1e-6)
    >>> found.steps in {20, 40}, found.predict([[0.0], [1.0]]).tolist()
    (True, [0, 1])
    """
    _check_estimator(estimator)
    read_fit_goal(epsilon=epsilon, delta=delta, size=_size(estimator, X))
    question = search_question(estimator, grid, X, y, runs=runs, score=score, owners=owners)
    try:
        fitted: E = question.fitted(question.plan(epsilon=epsilon, delta=delta).release())
    finally:
        if not isinstance(X, Examples) and estimator.ledger is not None:
            question.dataset._ledger.close()  # type: ignore[attr-defined]  # noqa: SLF001 - opened for it
    fitted.set_params(epsilon=epsilon, delta=delta)
    return fitted


class SearchQuestion(Question[FittedNumbers]):
    """A search that was asked for; made by `search_question`."""

    def fitted(self, release: Release[FittedNumbers]) -> Any:
        """Return the estimator with the chosen parameters, fitted, as a release of this question has it.

        Parameters
        ----------
        release
            A release of a plan of this question.
        """
        from sklearn.base import clone

        original = self.arguments["candidates"][0]
        chosen = clone(self.arguments["candidates"][int(release.content.settings["candidate"])])
        chosen.from_release(release)
        if hasattr(original, "feature_names_in_"):
            chosen.feature_names_in_ = original.feature_names_in_
        return chosen


def search_question(
    estimator: PrivateEstimator,
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: Any = None,
    *,
    runs: Number = 10,
    score: str = "accuracy",
    owners: Any = None,
) -> SearchQuestion:
    """Ask for a search whose price is named later: to plan it, to put it in a batch, to price it for a year.

    Guarantee: that of `search`, for the epsilon and delta with which the question is planned.

    Parameters
    ----------
    estimator, grid, X, y, runs, score, owners
        As in `search`.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> people = tc.learn.examples(
    ...     np.zeros((100, 1)), np.zeros(100), unit=tc.Unit.row(), size=100,
    ...     budget=tc.Budget(epsilon=2, delta=1e-5),
    ... )
    >>> model = tc.learn.LogisticRegression(classes=[0, 1], bounds=(0, 1))
    >>> question = search_question(model, {"steps": [2, 3]}, people)
    >>> plan = question.plan(epsilon=2, delta=1e-6)
    >>> question.fitted(plan.release()).steps in {2, 3}
    True
    """
    from sklearn.base import clone

    from tacit.learn._questions import SEARCH

    _check_estimator(estimator)
    points, mean = _read_grid(grid), rational("runs", runs)
    base = clone(estimator)
    data, digest = base._declared(X, y, owners, priced=False)  # noqa: SLF001 - of this room
    candidates = [clone(base).set_params(**point) for point in points]
    for candidate in candidates:
        candidate.n_features_in_ = base.n_features_in_
        if hasattr(base, "feature_names_in_"):
            candidate.feature_names_in_ = base.feature_names_in_
    arguments = {
        "candidates": candidates,
        "score": _checked_score(score, base),
        "runs": mean,
        "digest": digest,
    }
    return SearchQuestion(data, SEARCH, SEARCH.read(arguments))


def _size(estimator: PrivateEstimator, X: Any) -> int | None:
    return X.size if isinstance(X, Examples) else estimator.size


def _check_estimator(estimator: object) -> None:
    """Refuse what is not a single private estimator, such as a pipeline."""
    from tacit.learn.estimators._estimator import PrivateEstimator

    example = "with tc.learn.prepaid(search, fits=7, epsilon=1, delta=1e-6): search.fit(X, y)"
    why = "the search fits and scores each candidate in one step, so a pipeline does not fit in"
    Instance(PrivateEstimator, example, "a private estimator of Tacit", why).read("estimator", estimator)


def _read_grid(grid: Any) -> list[dict[str, Any]]:
    """Return all points of a grid, or refuse parameters that are not searched."""
    from sklearn.model_selection import ParameterGrid

    points = [dict(one) for one in ParameterGrid(grid)]
    fixed = sorted({name for point in points for name in point} & _FIXED)
    if fixed or not points:
        raise bad_parameter(
            "grid", "values of parameters that decide how a model is fitted", ", ".join(fixed) or grid,
            why="who is protected and who pays is declared, and the search sets epsilon itself",
            fix=Code('{"steps": [20, 40]}'),
        )  # fmt: skip
    return points


def _checked_score(score: str, estimator: PrivateEstimator) -> str:
    """Return the score, or refuse one that this estimator does not have."""
    if not estimator.__sklearn_tags__().target_tags.required:
        raise bad_parameter(
            "estimator", "one that predicts a target", type(estimator).__name__,
            why="candidates are compared by how well they predict",
            fix=Code("tc.learn.LogisticRegression(...)"),
        )  # fmt: skip
    return own_measure("score", score, estimator)
