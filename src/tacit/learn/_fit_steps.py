"""One fit of an estimator: its steps with noise that is given, as a task, and how it is planned."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tacit.core import Draft, Forecast, Task
from tacit.learn._fit_noise import check_fit_goal, fit_noise
from tacit.learn._fitted_numbers import FittedNumbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Goal, Measurement, Noisy, Step
    from tacit.learn._estimator import PrivateEstimator
    from tacit.learn._examples import Examples

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
        said = {name: one for name, one in self.settings.items() if name != "size" and one not in ([], {})}
        return [
            (name.replace("_", " "), _ranges(one) if name == "bounds" else _shortened(_shown(one)))
            for name, one in said.items()
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


def _shown(said: object) -> str:
    """Write a setting in words: lists without brackets, numbers with six digits."""
    match said:
        case bool():
            return "yes" if said else "no"
        case float():
            return f"{said:.6g}"
        case dict():
            return "; ".join(f"{name}: {_shown(one)}" for name, one in said.items())
        case [[*_], *_]:
            return "; ".join(map(_shown, said))
        case [*_]:
            return ", ".join(map(_shown, said))
    return str(said)


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
