"""The choice of a stream's mechanism, by the error that it predicts over the horizon, and the readings.

Everything follows from public facts. Candidates for Gaussian noise are Toeplitz matrices with several
exponents, dense and banded; for Laplace noise, plain days and trees. A candidate's loss is the weighted
geometric mean of the root mean square errors of a day, of a 7-day sum and of the running total. So a choice
does not depend on the units, and all columns of a question share it.

Readings are days, 7-day sums and running totals, by least squares, with intervals. All three are sums of the
same estimated days, so they agree. This is free post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from tacit.accounting import rho_within
from tacit.core import AnswerTable, Cells
from tacit.mechanisms import LinearNoise, ToeplitzNoise, TreeNoise
from tacit.tables import StepNoise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import Value
    from tacit.mechanisms import StreamNoise
    from tacit.streams._horizon import Horizon
    from tacit.tables import TableSubject


Focus = Literal["balanced", "day", "week", "total"]
#: What is read off the rows: a day, the sum of 7 days, the running total.
WINDOWS: dict[str, int | None] = {"day": 1, "week": 7, "total": None}
_WEIGHTS: dict[str, tuple[float, float, float]] = {
    "balanced": (1 / 3, 1 / 3, 1 / 3),
    "day": (1.0, 0.0, 0.0),
    "week": (0.0, 1.0, 0.0),
    "total": (0.0, 0.0, 1.0),
}
#: Which error the noise may be chosen for.
FOCUSES = tuple(_WEIGHTS)
_POWERS = tuple(Fraction(n, 20) for n in range(11))  # 0 to 1/2


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How the rows of a stream are made from its days: a Toeplitz matrix or a tree."""

    words: str
    power: Fraction = Fraction(0)
    bands: int | None = None
    inverse_bands: int | None = None
    branching: int | None = None
    levels: int | None = None

    def noise(self, days: int, most_days: int, apart: int, price: StepPrice) -> StreamNoise:
        """Return the mechanism with this layout for what one step may cost."""
        if self.branching is not None:
            return TreeNoise(
                days=days, branching=self.branching, levels=self.levels, most_days=most_days, apart=apart,
                epsilon=price.amount, sensitivity=price.moved,
            )  # fmt: skip
        return ToeplitzNoise(
            days=days, power=self.power, bands=self.bands, inverse_bands=self.inverse_bands,
            most_days=most_days, apart=apart,
            rho=price.amount if price.gaussian else None,
            epsilon=None if price.gaussian else price.amount,
            sensitivity=None if price.gaussian else price.moved,
            sensitivity_squared=price.moved if price.gaussian else None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StepPrice:
    """What one step may cost, in rho or in epsilon, and how far one unit moves one day of it."""

    gaussian: bool
    amount: Fraction
    moved: int


@dataclass(frozen=True, slots=True)
class StreamChoice:
    """The mechanisms of a plan, one for each step, and what the alternatives would have given.

    ``alternatives`` has for each candidate its words and its root mean square errors of a day, a 7-day sum
    and the running total, for the first step; the one that was taken comes first.
    """

    mechanisms: tuple[StreamNoise, ...]
    alternatives: tuple[tuple[str, tuple[float, float, float]], ...]


def choose_noise(
    moves: Sequence[tuple[int, int]],
    *,
    days: int,
    most_days: int,
    apart: int,
    focus: Focus,
    epsilon: Fraction | None,
    delta: Fraction,
    rho: Fraction | None,
) -> StreamChoice:
    """Choose the mechanisms of a plan within its total cost, which all steps share equally.

    Parameters
    ----------
    moves
        For each step, how far one unit moves one day: in L1, and the square of L2.
    days, most_days, apart
        The horizon, and in how many days one unit can be, at least so far apart.
    focus
        Which error counts.
    epsilon, delta, rho
        The total: epsilon, (epsilon, delta), or rho.
    """
    steps = len(moves)
    families: list[tuple[str, list[StepPrice]]] = []
    if epsilon is not None:
        families.append(
            ("laplace", [StepPrice(amount=epsilon / steps, moved=l1, gaussian=False) for l1, _ in moves])
        )
    if rho is None and delta:
        rho = rho_within(epsilon or Fraction(0), delta)
    if rho is not None:
        families.append(
            ("gaussian", [StepPrice(gaussian=True, amount=rho / steps, moved=l2) for _, l2 in moves])
        )
    layouts: list[tuple[float, RowLayout, list[StepPrice]]] = []
    alternatives: dict[str, tuple[float, float, float]] = {}
    for family, prices in families:
        best, others = best_layout(days, most_days, apart, focus, gaussian=family == "gaussian")
        noises = [best.noise(days, most_days, apart, price) for price in prices]
        loss = sum(_loss(one, focus) for one in noises)
        layouts.append((loss, best, prices))
        for layout in (best, *others):
            alternatives[f"{layout.words}, {family.capitalize()} noise"] = _errors(
                layout.noise(days, most_days, apart, prices[0])
            )
    _, layout, prices = min(layouts, key=lambda one: one[0])
    mechanisms = tuple(layout.noise(days, most_days, apart, price) for price in prices)
    chosen = f"{layout.words}, {'Gaussian' if prices[0].gaussian else 'Laplace'} noise"
    preferred = (chosen, alternatives.pop(chosen))
    return StreamChoice(mechanisms, (preferred, *alternatives.items()))


@lru_cache(maxsize=256)
def best_layout(
    days: int, most_days: int, apart: int, focus: Focus, *, gaussian: bool
) -> tuple[RowLayout, tuple[RowLayout, ...]]:
    """Return the layout with the smallest loss at unit price, and some others to compare it with."""
    price = StepPrice(gaussian=gaussian, amount=Fraction(1, 2) if gaussian else Fraction(1), moved=1)
    plain = RowLayout("noise on each day")

    def loss(layout: RowLayout) -> float:
        return _loss(layout.noise(days, most_days, apart, price), focus)

    if not gaussian:
        trees = _trees(days)
        best = min([plain, *trees], key=loss)
        compared = [plain, *([min(trees, key=loss)] if trees else [])]
    else:
        dense = [plain, *(_toeplitz(power) for power in _POWERS[1:])]
        coarse_best = min(dense, key=loss)
        nearby = {coarse_best.power, Fraction(1, 2)} | {coarse_best.power + Fraction(n, 20) for n in (-1, 1)}
        powers = [power for power in sorted(nearby) if 0 < power <= Fraction(1, 2)]
        best = min([coarse_best, *_banded(days, most_days, apart, powers)], key=loss)
        compared = [plain, _toeplitz(Fraction(7, 20)), _toeplitz(Fraction(1, 2))]
    return best, tuple(one for one in compared if one != best)


def _toeplitz(power: Fraction, bands: int | None = None, inverse_bands: int | None = None) -> RowLayout:
    words = f"dial {float(power):g}"
    if bands is not None:
        words += f" with {bands} bands"
    if inverse_bands is not None:
        words += f" with {inverse_bands} bands of the inverse"
    return RowLayout(words, power, bands, inverse_bands)


def _banded(days: int, most_days: int, apart: int, powers: list[Fraction]) -> list[RowLayout]:
    """Return banded matrices: of the inverse, and where units come back, of as many days as lie between."""
    widths = sorted({max(2, min(days, round(days * share))) for share in (0.08, 0.14, 0.2, 0.27, 0.35, 0.5)})
    layouts = [_toeplitz(power, None, width) for power in powers for width in widths]
    if most_days > 1:
        widths_of_tree = sorted({min(days, times * apart) for times in (1, 2, 4)} - {1})
        layouts += [_toeplitz(power, width) for power in _POWERS[2:] for width in widths_of_tree]
    return layouts


def _trees(days: int) -> list[RowLayout]:
    """Return trees with all levels that fit, and with fewer."""
    layouts = []
    for branching in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 64):
        height = 1 + int(math.log(days, branching) + 1e-9) if days > 1 else 1
        for levels in range(2, min(height, 5) + 1):
            words = f"tree of {levels} levels, {branching} a block"
            layouts.append(RowLayout(words, branching=branching, levels=levels))
    return layouts


def _errors(noise: StreamNoise) -> tuple[float, float, float]:
    day, week, total = (noise.spread(window) for window in WINDOWS.values())
    return day, week, total


def _loss(noise: StreamNoise, focus: Focus) -> float:
    """Return the logarithm of the weighted geometric mean of the errors."""
    weights = zip(WINDOWS.values(), _WEIGHTS[focus], strict=True)
    return sum(weight * math.log(max(noise.spread(window), 1e-300)) for window, weight in weights if weight)


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
    steps: list[StepNoise] = []
    for step, noise in zip(table.steps, noises, strict=True):
        if (window == 1 or day == 1) and getattr(noise, "coefficients", ()) == (1,):
            steps.append(StepNoise(step.statistic, (noise.noise,)))
        else:
            steps.append(WindowNoise(step.statistic, (), noise.noise_on(window, day, through)))
    return tuple(steps)


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
    tables: dict[str, AnswerTable] = {}
    for name, window in WINDOWS.items():
        answers = []
        for day in range(1, through + 1):
            start = 0 if window is None else max(0, day - window)
            numbers = [
                d[day - 1] if window == 1 else s[day] - s[start] for d, s in zip(days, sums, strict=True)
            ]
            laws = window_noise(table, noises, window, day, through)
            with np.errstate(divide="ignore", invalid="ignore"):  # a tail of a normal law may be 0
                answer = replace(table, noises=laws).read([_plain(one) for one in numbers], confidence)
            answers.append(answer)
        tables[name] = _joined(answers, [horizon.name(day) for day in range(1, through + 1)])
    return tables


def _plain(numbers: NDArray[np.float64]) -> list[list[float]]:
    """Return whole numbers as such: days that were released one by one are whole."""
    return [[int(x) if x == int(x) else x for x in line] for line in numbers.tolist()]


def _joined(answers: list[AnswerTable], days: list[str]) -> AnswerTable:
    """Put the answers of several days below each other, with the day as the first key.

    The integers that one day's question would have drawn are left out: the noise of days is not independent.
    """
    head = answers[0]
    groups = len(head)
    keys: dict[str, tuple[Value, ...]] = {"day": tuple(day for day in days for _ in range(groups))}
    keys |= {name: values * len(days) for name, values in head.keys.items()}
    columns = {
        name: Cells(*(
            tuple(x for answer in answers for x in getattr(answer.columns[name], end))
            for end in ("value", "low", "high")
        ))
        for name in head.columns
    }  # fmt: skip
    return replace(head, keys=keys, columns=columns, dates=("day", *head.dates), measured=())
