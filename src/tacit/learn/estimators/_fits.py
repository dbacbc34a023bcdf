"""Fits: one Gaussian for the whole promise, shared among the steps of a fit by exact composition.

A fit of an estimator is a task: its steps with noise that is given, and how it is planned.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tacit.accounting import Budget, Cost, calibrate
from tacit.core import Draft, Forecast, Goal, Task
from tacit.learn.estimators._fitted_numbers import FittedNumbers
from tacit.parameters import Integer, Needed, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import Measurement, Noisy, Step
    from tacit.learn._examples import Examples
    from tacit.learn.estimators._estimator import PrivateEstimator


_FINE = 2**20
#: A promise that fits every size: it stands in where a question is asked before its price is known.
ANY_FIT_GOAL = (1, Fraction(1, 10**30))


def read_fit_goal(*, epsilon: object, delta: object, size: object) -> tuple[Goal, int]:
    """Read the promise of a fit and the declared number of units, or refuse with what is missing."""
    why = (
        "the model is scaled by about how many people (or other units) the data has, from public knowledge; "
        "the true number is private, so Tacit does not count it"
    )
    about: Needed[object] = Needed(1000, why=why)
    promise: Needed[object] = Needed(1, why="it has no default")
    units = Integer(1, instead=1000).read("size", about.read("size", size))
    promise.read("epsilon", epsilon)
    read_delta(delta, units)
    goal = Goal.read(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
    check_fit_goal(goal, units)
    return goal, units


def check_fit_goal(goal: Goal, size: int) -> None:
    """Refuse a promise whose delta is 0, or above 1 / size."""
    read_delta(goal.delta, size)


def read_delta(delta: object, size: int) -> Fraction:
    """Return a delta above 0 and at most 1 / size, the declared number of units, or refuse it."""
    why = (
        f"Gaussian noise needs a delta; above 1 / {size:,}, which is 1 / size, a release that shows all data "
        "of one unit would keep the promise"
    )
    parameter = RealNumber(above=0, most=Fraction(1, size), why=why, instead=_small_delta(size))
    return parameter.read("delta", 0 if delta is None else delta)


def _small_delta(units: int) -> float:
    return float(f"1e-{len(str(units)) + 1}")


def fit_noise(goal: Goal) -> Fraction:
    """Return the noise multiplier: sigma over sensitivity of one Gaussian that has this promise.

    Examples
    --------
    >>> round(float(fit_noise(Goal.read(epsilon=1, delta=1e-5))), 3)
    3.731
    """
    assert goal.epsilon is not None  # noqa: S101 - fits read epsilon and delta
    return _calibrated(goal.epsilon, goal.delta)


@lru_cache(maxsize=64)
def _calibrated(epsilon: Fraction, delta: Fraction) -> Fraction:
    return smallest_noise(lambda sigma: Cost.gaussian(sigma=sigma, sensitivity=1), epsilon, delta)


def smallest_noise(cost: Callable[[float], Cost], epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the least noise multiplier whose cost keeps the promise, as a short fraction, rounded up."""
    multiplier = calibrate(cost, Budget(epsilon=epsilon, delta=delta))
    return Fraction(math.ceil(Fraction(multiplier) * _FINE) + 1, _FINE)


def share_of_noise(noise: Fraction, share: Fraction | float, sensitivity: Fraction | int = 1) -> Fraction:
    """Return the sigma of a step that gets a share of the promise.

    Guarantee: Gaussian steps whose shares add up to at most 1 cost together at most the Gaussian with this
    noise multiplier, because squared sensitivities over variances add up. Rounded up.

    Examples
    --------
    >>> share_of_noise(Fraction(2), Fraction(1, 4), 10)
    Fraction(40, 1)
    """
    exact = (Fraction(noise) * Fraction(sensitivity)) ** 2 / Fraction(share) * _FINE**2
    root = math.isqrt(math.ceil(exact))
    return Fraction(root if root * root >= exact else root + 1, _FINE)


D = TypeVar("D")
_LONG = 80


@dataclass(frozen=True, eq=False)
class FitSteps(Generic[D]):
    """What an estimator does with noise that is given: what it reads, its steps, and how to read them.

    Parameters
    ----------
    settings
        The public facts that decide what is computed, as JSON.
    load
        Reads what the steps share; called after the charge alone.
    steps
        The steps; together their mechanisms cost at most the Gaussian with the given noise multiplier.
    reading
        Turns noisy numbers, at a confidence, into arrays by name: post-processing.
    content
        The class of the release's content, where it shows itself better than `FittedNumbers` does.
    """

    settings: Mapping[str, Any]
    load: Callable[[], D]
    steps: tuple[Step[D], ...]
    reading: Callable[[Sequence[Noisy], Fraction], Mapping[str, NDArray[Any]]]
    content: type[FittedNumbers] = FittedNumbers

    @property
    def mechanisms(self) -> tuple[Measurement, ...]:
        """The mechanisms of the steps."""
        return tuple(step.mechanism for step in self.steps)

    def task(self, estimator: str, digest: str) -> Task[D, FittedNumbers]:
        """Return the fit as a task.

        Parameters
        ----------
        estimator
            The kind of estimator.
        digest
            What identifies the data beside the declared name and version: it is keyed with the ledger's key,
            or empty where the data was declared with `tacit.learn.examples`.
        """

        def reading(noisy: Sequence[Noisy], confidence: Fraction) -> FittedNumbers:
            return self.content(estimator, self.reading(noisy, confidence), self.settings)

        return Task(
            document={"fit": estimator, "settings": dict(self.settings), "data": digest},
            open=lambda _: self.load(),
            steps=self.steps,
            reading=reading,
        )

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The settings, as lines of a plan."""
        settings = {
            name: one for name, one in self.settings.items() if name != "size" and one not in ([], {})
        }
        return [
            (name.replace("_", " "), _ranges(one) if name == "bounds" else _shortened(_shown(one)))
            for name, one in settings.items()
        ]


def _ranges(bounds: object) -> str:
    """Write bounds as ranges, one for each feature where they differ."""
    match bounds:
        case [[*low], [*high]]:
            pairs = zip(low, high, strict=True)
            return _shortened(", ".join(f"{_shown(a)} to {_shown(b)}" for a, b in pairs))
        case [low, high]:
            return f"{_shown(low)} to {_shown(high)}"
    return _shortened(_shown(bounds))


def _shown(setting: object) -> str:
    """Write a setting in words: lists without brackets, numbers with six digits."""
    match setting:
        case bool():
            return "yes" if setting else "no"
        case float():
            return f"{setting:.6g}"
        case dict():
            return "; ".join(f"{name}: {_shown(one)}" for name, one in setting.items())
        case [[*_], *_]:
            return "; ".join(map(_shown, setting))
        case [*_]:
            return ", ".join(map(_shown, setting))
    return str(setting)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG].rpartition(',')[0] or text[:_LONG]} ..."


def digest_of_fit(task: Task[Any, FittedNumbers]) -> str:
    """Return the digest of a fit's question: equal for the same fit of the same data."""
    return hashlib.sha256(json.dumps(task.question, sort_keys=True).encode()).hexdigest()


def draft_fit(
    data: Examples, goal: Goal, *, estimator: PrivateEstimator, digest: str
) -> Draft[FittedNumbers]:
    """Draft one fit, whose steps share the whole promise."""
    check_fit_goal(goal, data.size)
    noise = fit_noise(goal)
    fit = estimator._checked_steps(data, noise)  # noqa: SLF001 - of this room
    return Draft(
        task=fit.task(estimator.kind, digest),
        asked=f"a fit of {estimator.kind}",
        forecast=[
            Forecast(estimator.kind, "what the model learned", f"noise multiplier {float(noise):.4g}", None)
        ],
        facts=[("size", f"about {data.size:,}, declared"), *fit.facts],
        goal=goal,
    )
