"""The task of one fit: an estimator's steps as the four parts that a plan needs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.learn._fitted_numbers import FittedNumbers

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, Measurement

__all__ = ["FitSteps", "FitTask"]

_LONG = 80


@dataclass(frozen=True)
class FitSteps:
    """What an estimator does with noise that is given: its mechanisms, exact integers, and how to read them.

    Parameters
    ----------
    settings
        The public facts that decide what is computed, as JSON.
    mechanisms
        The mechanisms; together they cost at most the Gaussian with the given noise multiplier.
    integers
        Yields the exact integers for each mechanism in turn, and receives the noisy ones.
    read
        Turns noisy numbers, at a confidence, into arrays by name: post-processing.
    labels
        What the certificate says beside each mechanism.
    content
        The class of the release's content, where it shows itself better than `FittedNumbers` does.
    """

    settings: Mapping[str, Any]
    mechanisms: Sequence[Measurement]
    integers: Callable[[], Generator[Any, Any, None]]
    read: Callable[[Sequence[Any], Fraction], Mapping[str, NDArray[Any]]]
    labels: Sequence[Mapping[str, JSON]]
    content: type[FittedNumbers] = FittedNumbers

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


@dataclass(frozen=True)
class FitTask:
    """One fit of an estimator: a `tacit.core.Task`.

    Parameters
    ----------
    estimator
        The kind of estimator.
    steps
        What it does.
    data
        What identifies the data beside the declared name and version: a digest that is keyed with the
        ledger's key, or nothing where the data was declared with `tacit.learn.examples`.
    """

    estimator: str
    steps: FitSteps
    data: str

    @property
    def question(self) -> JSON:
        """The kind, the settings, and the keyed digest; the certificate has only a digest of all of it."""
        return {"fit": self.estimator, "settings": dict(self.steps.settings), "data": self.data}

    @property
    def identity(self) -> str:
        """The digest of the question: equal for the same fit of the same data."""
        text = json.dumps(self.question, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def mechanisms(self) -> Sequence[Measurement]:
        """The mechanisms of the fit."""
        return self.steps.mechanisms

    @property
    def labels(self) -> Sequence[Mapping[str, JSON]]:
        """What the certificate says beside each mechanism."""
        return self.steps.labels

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the exact integers: the only part that reads the data."""
        return self.steps.integers()

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> FittedNumbers:
        """Read what was learned off the noisy numbers."""
        numbers = self.steps.read(noisy, confidence)
        return self.steps.content(self.estimator, numbers, self.steps.settings)
