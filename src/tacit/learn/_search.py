"""Search in learning: a private choice of parameters, a random number of fits, one charge, one model."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from tacit.accounting import Cost
from tacit.core import Plan, adopted
from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Code, Set
from tacit.learn._examples import Examples
from tacit.learn._fit_noise import read_fit_goal, share_of_noise, smallest_noise
from tacit.learn._fit_task import FitTask
from tacit.learn._fitted_numbers import FittedNumbers
from tacit.learn._folds import unit_folds
from tacit.learn._prepaid import gaussian_share
from tacit.learn._scorer import predictions_of, whole_scores
from tacit.learn._whole_features import FEATURE_STEPS
from tacit.mechanisms import BestRun, RoundedGaussian

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from tacit.core import JSON
    from tacit.learn._estimator import PrivateEstimator
    from tacit.ledger import Ledger

__all__ = ["search"]

E = TypeVar("E", bound="PrivateEstimator")

#: Parameters that say who is protected and who pays; they are not searched.
_FIXED = frozenset(
    {"budget", "dataset", "delta", "epsilon", "ledger", "per_unit", "prepaid", "size", "unit", "version"}
)
_PARTS = 5  # one unit in so many is held out for the score


@dataclass(frozen=True, eq=False)
class SearchRuns:
    """Runs of candidates: fit on most units, score on the others; a unit is in one of the two only."""

    candidates: Sequence[PrivateEstimator]
    measure: str
    noise: Fraction
    train: Examples
    test: Examples

    def run(self, place: int) -> tuple[int, str]:
        """Fit one candidate with fresh noise; return its noisy score, and what it learned."""
        model = clone(self.candidates[place])
        model.n_features_in_ = self.candidates[place].n_features_in_
        task = FitTask(model.kind, model._checked_steps(self.train, self.noise), "")  # noqa: SLF001 - of this room
        noisy = adopted(task).draw()
        fitted = task.read(noisy, Fraction(95, 100))
        model._learned(fitted)  # noqa: SLF001
        places = self.test.units().ravel()
        features, target = (np.asarray(one)[places[places >= 0]] for one in self.test._arrays)  # noqa: SLF001
        bounds = model._score_bounds()  # noqa: SLF001
        scores = whole_scores(self.measure, predictions_of(model, features), target, bounds)
        moved = self.test.per_unit * FEATURE_STEPS
        noise = RoundedGaussian(sigma=share_of_noise(self.noise, 1, moved), sensitivity=moved)
        score = int(noise.release(int(scores.sum())))
        return score, json.dumps(fitted.to_json())


@dataclass(frozen=True, eq=False)
class SearchTask:
    """A search: a `tacit.core.Task` with one mechanism, the best of a random number of runs."""

    candidates: Sequence[PrivateEstimator]
    settings: Sequence[Mapping[str, JSON]]
    measure: str
    noise: Fraction
    best: BestRun
    data: Examples
    digest: str

    @property
    def question(self) -> JSON:
        """The settings of all candidates, the score, and the keyed digest of the data."""
        return {
            "search": self.candidates[0].kind,
            "candidates": [dict(one) for one in self.settings],
            "score": self.measure,
            "data": self.digest,
        }

    @property
    def mechanisms(self) -> Sequence[BestRun]:
        """The best of a random number of runs."""
        return [self.best]

    @property
    def labels(self) -> Sequence[Mapping[str, JSON]]:
        """What the certificate says beside the mechanism."""
        return [
            {"statistic": f"fits of {self.candidates[0].kind}, chosen by {self.measure} on held-out units"}
        ]

    def integers(self) -> Generator[Any, Any, None]:
        """Divide the units, and yield what can run each candidate."""
        train, test = divided(self.data)
        yield SearchRuns(self.candidates, self.measure, self.noise, train, test)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> FittedNumbers:
        """Read the model that was chosen, and which candidate it is."""
        del confidence
        place, text = noisy[0]
        fitted = FittedNumbers.from_json(json.loads(text))
        return replace(fitted, settings={**fitted.settings, "candidate": int(place)})


def divided(data: Examples) -> tuple[Examples, Examples]:
    """Divide the units by a keyed hash of each: most to train on, the others to score.

    The declared sizes are the expected shares of the declared size.
    """
    arrays, owners = [np.asarray(one) for one in data._arrays], data._owners  # noqa: SLF001
    folds = unit_folds(cast("Ledger", data._ledger), _PARTS, arrays[0], arrays[1], owners)  # noqa: SLF001

    def part(chosen: Any, size: int) -> Examples:
        kept = tuple(one[chosen] for one in arrays)
        mine = None if owners is None else np.asarray(owners)[chosen]
        return replace(data, size=max(1, size), _arrays=kept, _owners=mine)

    return part(folds != 0, data.size * (_PARTS - 1) // _PARTS), part(folds == 0, data.size // _PARTS)


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
    points = _read_grid(grid)
    goal, _ = read_fit_goal(epsilon=epsilon, delta=delta, size=_size(estimator, X))
    assert goal.epsilon is not None  # noqa: S101 - read checks it
    mean = rational("runs", runs)
    noise = _noise_of_one(goal.epsilon, goal.delta, mean)
    base = clone(estimator).set_params(epsilon=epsilon, delta=delta)
    data, digest = base._declared(X, y, owners)  # noqa: SLF001 - of this room
    try:
        candidates = [clone(base).set_params(**point) for point in points]
        settings = []
        for one in candidates:
            one.n_features_in_ = base.n_features_in_
            steps = one._checked_steps(data, noise)  # noqa: SLF001
            if gaussian_share(steps.mechanisms) * noise**2 > 1:
                raise AssertionError("a candidate costs more than one run")
            settings.append(steps.settings)
        best = BestRun(Cost.gaussian(sigma=noise, sensitivity=1), candidates=len(points), runs=mean)
        task = SearchTask(candidates, settings, _checked_score(score, base), noise, best, data, digest)
        plan: Plan[FittedNumbers] = Plan.of(
            data, task, promised=goal.promised, confidence=float(goal.confidence),
            asked=f"a search for parameters of {base.kind}",
        )  # fmt: skip
        release = plan.release()
    finally:
        if not isinstance(X, Examples) and base.ledger is not None:
            data._ledger.close()  # noqa: SLF001 - opened for this search
    chosen: E = candidates[int(release.content.settings["candidate"])]
    chosen._take(release)  # noqa: SLF001
    if hasattr(base, "feature_names_in_"):
        chosen.feature_names_in_ = base.feature_names_in_
    return chosen


@lru_cache(maxsize=64)
def _noise_of_one(epsilon: Fraction, delta: Fraction, runs: Fraction) -> Fraction:
    """Return the noise multiplier of one try, with which the whole search keeps its promise."""
    return smallest_noise(
        lambda sigma: Cost.best_of(Cost.gaussian(sigma=sigma, sensitivity=1), runs=runs), epsilon, delta
    )


def _size(estimator: PrivateEstimator, X: Any) -> int | None:
    return X.size if isinstance(X, Examples) else estimator.size


def _check_estimator(estimator: object) -> None:
    """Refuse what is not a single private estimator, such as a pipeline."""
    from tacit.learn._estimator import PrivateEstimator

    if not isinstance(estimator, PrivateEstimator):
        raise bad_parameter(
            "estimator", "a private estimator of Tacit", type(estimator).__name__,
            why="the search fits and scores each candidate in one step, so a pipeline does not fit in",
            fix=Code("with tc.learn.prepaid(search, fits=7, epsilon=1, delta=1e-6): search.fit(X, y)"),
        )  # fmt: skip


def _read_grid(grid: Any) -> list[dict[str, Any]]:
    """Return all points of a grid, or refuse parameters that are not searched."""
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
    known = "accuracy" if estimator._score_bounds() is None else "neg_mean_squared_error"  # noqa: SLF001
    if score != known:
        raise bad_parameter("score", known, score, fix=Set(score=known))
    return score
