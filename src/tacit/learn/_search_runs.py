"""The runs of a search: each fits a candidate and scores it with noise; the best one is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tacit.accounting import Cost
from tacit.core import Draft, Step, Task
from tacit.learn._fit_noise import check_fit_goal, share_of_noise, smallest_noise
from tacit.learn._fitted_numbers import FittedNumbers
from tacit.learn._folds import unit_folds
from tacit.learn._prepaid import gaussian_share
from tacit.learn._scorer import predictions_of, whole_scores
from tacit.learn._whole_features import FEATURE_STEPS
from tacit.mechanisms import BestRun, RoundedGaussian

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.core import Goal, Noisy
    from tacit.learn._estimator import PrivateEstimator
    from tacit.learn._examples import Examples
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

    def run(self, place: int) -> tuple[int, str]:
        """Fit one candidate with fresh noise; return its noisy score, and what it learned."""
        model = self.clone(self.candidates[place])
        model.n_features_in_ = self.candidates[place].n_features_in_
        task = model._checked_steps(self.train, self.noise).task(model.kind, "")  # noqa: SLF001 - of this room
        fitted = task.reading(task.draw(), Fraction(95, 100))
        model._learned(fitted)  # noqa: SLF001
        places = self.test.units().ravel()
        features, target = (np.asarray(one)[places[places >= 0]] for one in self.test._arrays)  # noqa: SLF001
        bounds = model._score_bounds()  # noqa: SLF001
        scores = whole_scores(self.measure, predictions_of(model, features), target, bounds)
        moved = self.test.per_unit * FEATURE_STEPS
        noise = RoundedGaussian(sigma=share_of_noise(self.noise, 1, moved), sensitivity=moved)
        score = int(noise.release(int(scores.sum())))
        return score, json.dumps(fitted.to_json())


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
        place, text = noisy[0]
        fitted = FittedNumbers.from_json(json.loads(text))
        return replace(fitted, settings={**fitted.settings, "candidate": int(place)})

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
