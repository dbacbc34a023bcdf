"""The readings of a stream: days, 7-day sums and running totals, by least squares, with intervals.

All three are sums of the same estimated days, so they agree. This is free post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.core import AnswerTable, Cells
from tacit.mechanisms import LinearNoise
from tacit.streams._choice import WINDOWS
from tacit.tables import StepNoise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Value
    from tacit.mechanisms import StreamNoise
    from tacit.streams._horizon import Horizon
    from tacit.tables import TableSubject


@dataclass(frozen=True, slots=True)
class WindowNoise(StepNoise):
    """The noise on a sum over a window of days, as it is estimated from the rows."""

    law: LinearNoise = field(default_factory=LinearNoise)

    def half_width(self, confidence: Fraction) -> float:  # type: ignore[override]
        """Return the t with P(|noise| > t) = 1 - confidence."""
        return _half_width(self.law, float(1 - confidence))

    @property
    def linear(self) -> LinearNoise:
        """The law of the noise."""
        return self.law

    @property
    def variance(self) -> float:
        """The variance of the noise in the sum of a line's numbers."""
        return self.statistic.size * self.law.variance


@lru_cache(maxsize=8192)
def _half_width(law: LinearNoise, failing: float) -> float:
    return float(law.half_width(failing, [1.0]))


def window_noise(
    table: TableSubject, noises: Sequence[StreamNoise], window: int | None, day: int, through: int
) -> tuple[StepNoise, ...]:
    """Return the noise of each step on the sum over a window of days."""
    found: list[StepNoise] = []
    for step, noise in zip(table.steps, noises, strict=True):
        if (window == 1 or day == 1) and getattr(noise, "coefficients", ()) == (1,):
            found.append(StepNoise(step.statistic, (noise.noise,)))
        else:
            found.append(WindowNoise(step.statistic, (), noise.noise_on(window, day, through)))
    return tuple(found)


def read_windows(
    table: TableSubject,
    noises: Sequence[StreamNoise],
    rows: Sequence[NDArray[np.float64]],
    horizon: Horizon,
    confidence: Fraction,
) -> dict[str, AnswerTable]:
    """Read days, 7-day sums and running totals of all days so far, one line for each day and group.

    Parameters
    ----------
    table
        The question of one day: how columns are read off the whole numbers of its steps.
    noises, rows
        The mechanism of each step, and the noisy rows that it has released: row, group, number.
    """
    days = [noise.estimate(own) for noise, own in zip(noises, rows, strict=True)]
    through = len(days[0])
    sums = [np.concatenate([np.zeros((1, *one.shape[1:])), np.cumsum(one, axis=0)]) for one in days]
    found: dict[str, AnswerTable] = {}
    for name, window in WINDOWS.items():
        answers = []
        for day in range(1, through + 1):
            first = 0 if window is None else max(0, day - window)
            numbers = [
                d[day - 1] if window == 1 else s[day] - s[first] for d, s in zip(days, sums, strict=True)
            ]
            laws = window_noise(table, noises, window, day, through)
            with np.errstate(divide="ignore", invalid="ignore"):  # a tail of a normal law may be 0
                answer = replace(table, noises=laws).read([_plain(one) for one in numbers], confidence)
            answers.append(answer)
        found[name] = _joined(answers, [horizon.name(day) for day in range(1, through + 1)])
    return found


def _plain(numbers: NDArray[np.float64]) -> list[list[float]]:
    """Return whole numbers as such: days that were released one by one are whole."""
    return [[int(x) if x == int(x) else x for x in line] for line in numbers.tolist()]


def _joined(answers: list[AnswerTable], days: list[str]) -> AnswerTable:
    """Put the answers of several days below each other, with the day as the first key.

    The integers that one day's question would have drawn are left out: the noise of days is not independent.
    """
    first = answers[0]
    groups = len(first)
    keys: dict[str, tuple[Value, ...]] = {"day": tuple(day for day in days for _ in range(groups))}
    keys |= {name: values * len(days) for name, values in first.keys.items()}
    columns = {
        name: Cells(*(
            tuple(x for answer in answers for x in getattr(answer.columns[name], end))
            for end in ("value", "low", "high")
        ))
        for name in first.columns
    }  # fmt: skip
    return replace(first, keys=keys, columns=columns, dates=("day", *first.dates), measured=())
