"""The number window: a report of a number is likely to be near it, or is the side of a biased coin."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tacit import noise
from tacit.bisection import first_integer
from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Choose, Set
from tacit.mechanisms._mechanism import show
from tacit.mechanisms.local._local_randomizer import (
    UNIT_ODDS,
    LocalRandomizer,
    bad_report,
    read_answers,
    read_odds,
    several,
)
from tacit.parameters import Flag, Integer, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


_MAX_STEPS = 10**6
_USUAL = Fraction(1, 2)  # numbers spread evenly over the range have mean square 1/3
_MIDDLE = Fraction(1, 4)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class NumberWindow(LocalRandomizer):
    """Report a number on the grid -m .. m: near the truth by a window, or as the side of Duchi's coin.

    Depending on epsilon and on the numbers that are expected, the window is drawn always, never, or with a
    fixed probability.

    Guarantee: epsilon = ln(A/B), pure, for each respondent, whoever collects the reports. `unbiased` turns
    reports into estimates whose mean is exactly the true number.

    Argument: which of the two is drawn does not depend on the number. The window gives every whole number in
    -(m+h) .. m+h the weight A if it lies within h of the truth and B if not; the sum of the weights is
    constant. Duchi's coin (Duchi, Jordan, Wainwright 2018) has probabilities between B/(A+B) and A/(A+B).
    So every report has ratio at most A/B (docs/proofs/surveys.md).

    Parameters
    ----------
    epsilon, odds
        One of the two: the promise, or A exactly, with B = 2^32.
    steps
        m: the numbers are -m .. m, which stand for -1 .. 1. An ordered scale of 5 points has m = 2.
    half_width
        h, in steps; by default the one with the smallest variance, or the coin alone where that is better.
    duchi
        Whether the coin may be mixed in, or taken alone.
    expected
        Which numbers the error should be small for, from public knowledge. "usual": any numbers with a mean
        square of at most 1/2 on the scale -1 .. 1; the variance is then the nearest to the best one that a
        window or the coin could have. "any": also numbers that are all at the ends; the largest variance is
        made small, and is the same everywhere. Or the size of a typical number, from 0 to 1.

    Examples
    --------
    >>> import tacit as tc
    >>> age = tc.mechanisms.NumberWindow(epsilon=1, steps=1000)
    >>> round(age.variance(0), 3), round(age.variance(1), 3)
    (3.675, 5.105)
    >>> ends = tc.mechanisms.NumberWindow(epsilon=1, steps=1000, expected="any")
    >>> ends.half_width, round(ends.variance(0), 3), round(ends.variance(1), 3)
    (707, 4.267, 4.267)
    >>> reports = age.release([250] * 10_000)
    >>> bool(abs(age.unbiased(reports).mean() - 0.25) < 0.15)
    True
    """

    steps: int
    half_width: int | None
    duchi: bool
    odds: int
    epsilon: Fraction = field(compare=False)
    asked: Fraction = field(compare=False)

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        steps: int,
        half_width: int | None = None,
        duchi: bool = True,
        expected: Number | Literal["usual", "any"] = "usual",
        odds: int | None = None,
    ) -> None:
        favour, actual, request = read_odds(epsilon, odds)
        m = Integer(1, _MAX_STEPS, instead=1000).read("steps", steps)
        Flag().read("duchi", duchi)
        if half_width is None:
            h, mixed = _best(favour, m, expected, duchi=duchi)
        else:
            h, mixed = Integer(0, m, "it is at most steps").read("half_width", half_width), duchi
        for name, value in (
            ("steps", m),
            ("half_width", h),
            ("duchi", mixed),
            ("odds", favour),
            ("epsilon", actual),
            ("asked", request),
        ):
            object.__setattr__(self, name, value)

    def to_json(self) -> dict[str, Any]:
        """Return the law and its parameters, exactly; without a half-width, the coin alone is tossed."""
        return {
            "mechanism": "number-window",
            "steps": self.steps,
            "half_width": self.half_width,
            "duchi": self.duchi,
            "odds": str(self.odds),
            "cost": self.cost.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> NumberWindow:
        """Rebuild the randomizer that `to_json` describes."""
        odds, width = int(document["odds"]), document["half_width"]
        window = cls(odds=odds, steps=document["steps"], half_width=width or 0, duchi=document["duchi"])
        if width is None:
            object.__setattr__(window, "half_width", None)
        return window

    def describe(self) -> str:
        """Return a short phrase for people."""
        if self.half_width is None:
            return "Duchi's coin"
        window = f"window of half-width {self.half_width / self.steps:.3g}"
        return f"{window}, mixed with Duchi's coin" if self.duchi else window

    @property
    def reach(self) -> int:
        """The largest report of the window; with a coin, its sides are reported as +-(reach + 1)."""
        return 0 if self.half_width is None else self.steps + self.half_width

    @property
    def window_chance(self) -> Fraction:
        """The probability that the window is drawn, and not the coin."""
        if self.half_width is None:
            return Fraction(0)
        return self._near if self.duchi else Fraction(1)

    @property
    def _near(self) -> Fraction:
        """1/k: the part of the window's weight that moves with the truth."""
        return _near(self.odds, self.steps, self.half_width or 0)

    @property
    def window_factor(self) -> Fraction:
        """What a window's report, in steps, is multiplied with to be unbiased on the scale -1 .. 1."""
        return 1 / (self._near * self.steps)

    @property
    def coin_value(self) -> Fraction:
        """What a side of the coin stands for on the scale -1 .. 1: (A + B)/(A - B)."""
        return Fraction(self.odds + UNIT_ODDS, self.odds - UNIT_ODDS)

    def probability(self, report: object, *, truth: int) -> Fraction:
        """Return P(report given truth), exactly."""
        y = int(self.read_reports([report])[0])
        j = int(read_answers(truth, 2 * self.steps + 1, lowest=-self.steps)[0])
        if abs(y) > self.reach:
            tilt = Fraction(j if y > 0 else -j, self.steps) / self.coin_value
            return (1 - self.window_chance) * (1 + tilt) / 2
        h = self.half_width or 0
        weight = self.odds if abs(y - j) <= h else UNIT_ODDS
        return self.window_chance * weight / _weights(self.odds, self.steps, h)

    def release(self, value: object) -> Any:
        """Return one report, a whole number, or an array of reports for an array of numbers."""
        truths = read_answers(value, 2 * self.steps + 1, lowest=-self.steps)
        chance = self.window_chance
        reports = self._window(truths) if chance else np.empty(truths.size, np.int64)
        if chance < 1:
            coined = ~noise.bernoulli(chance, truths.size)
            reports[coined] = self._coin(truths[coined])
        return reports if several(value) else int(reports[0])

    def _window(self, truths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw from the part of the weight A - B around the truth, or else from the part B everywhere."""
        h = self.half_width or 0
        inside = noise.bernoulli(self._near, truths.size)
        around = truths - h + noise.uniform_below(2 * h + 1, truths.size)
        anywhere = noise.uniform_below(2 * self.reach + 1, truths.size) - self.reach
        return np.where(inside, around, anywhere)

    def _coin(self, truths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw the side of the coin: with chance (A-B)/(A+B) by the number itself, else by a fair coin."""
        telling = noise.bernoulli(1 / self.coin_value, truths.size)
        by_number = noise.uniform_below(2 * self.steps, truths.size) < truths + self.steps
        fair = noise.bernoulli(Fraction(1, 2), truths.size)
        return np.where(np.where(telling, by_number, fair), self.reach + 1, -self.reach - 1)

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent reports of one number: for auditors only."""
        [truth] = read_answers(value, 2 * self.steps + 1, lowest=-self.steps)
        return np.asarray(self.release(np.full(count, truth)))

    def read_reports(self, reports: object) -> NDArray[np.int64]:
        """Return reports as an array of whole numbers; refuse those that cannot have been drawn."""
        if isinstance(reports, np.ma.MaskedArray):
            raise bad_report("a report is missing")
        array = np.asarray(reports)
        if array.size == 0 and array.ndim == 1:
            return np.empty(0, np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise bad_report("a report of a number is not a whole number")
        largest = self.reach + (self.window_chance < 1)
        if array.min() < -largest or array.max() > largest or (self.half_width is None and not array.all()):
            raise bad_report("a report of a number lies outside what can be drawn")
        return array.astype(np.int64)

    def unbiased(self, reports: object) -> NDArray[np.float64]:
        """Return each report as an estimate on the scale -1 .. 1; the mean of an estimate is the truth."""
        array = self.read_reports(reports)
        side = np.sign(array) * float(self.coin_value)
        if self.half_width is None:
            return side
        return np.where(np.abs(array) > self.reach, side, array * float(self.window_factor))

    def variance(self, x: Number) -> float:
        """Return the variance of one unbiased report where the true number is x, from -1 to 1."""
        at = RealNumber(least=-1, most=1, instead=0).read("x", x)
        return float(_variance(self.odds, self.steps, self.half_width, self.window_chance, at * at))

    @property
    def worst_pair(self) -> tuple[int, int]:
        """The two ends."""
        return -self.steps, self.steps

    def __repr__(self) -> str:
        worst = max(self.variance(0), self.variance(1))
        return (
            f"NumberWindow(epsilon={show(self.epsilon)}, numbers -{self.steps:,} .. {self.steps:,}; "
            f"{self.describe()}; variance at most {worst:.4g})"
        )


def _weights(odds: int, m: int, h: int) -> int:
    """Return S, the sum of the window's weights: the same for every truth."""
    return (odds - UNIT_ODDS) * (2 * h + 1) + UNIT_ODDS * (2 * (m + h) + 1)


@lru_cache(maxsize=1024)
def _near(odds: int, m: int, h: int) -> Fraction:
    return Fraction((odds - UNIT_ODDS) * (2 * h + 1), _weights(odds, m, h))


def _window_at_zero(odds: int, m: int, h: int) -> Fraction:
    """Return the variance of the window's unbiased report at 0, on the scale -1 .. 1."""
    reach = m + h
    squares = (odds - UNIT_ODDS) * h * (h + 1) * (2 * h + 1) + UNIT_ODDS * reach * (reach + 1) * (
        2 * reach + 1
    )
    return Fraction(squares, 3 * _weights(odds, m, h)) / (_near(odds, m, h) * m) ** 2


def _variance(odds: int, m: int, h: int | None, chance: Fraction, square: Fraction) -> Fraction:
    """Return the variance of the mixture where x^2 = square."""
    coin = Fraction(odds + UNIT_ODDS, odds - UNIT_ODDS) ** 2 - square
    if h is None:
        return coin
    window = _window_at_zero(odds, m, h) + (1 / _near(odds, m, h) - 1) * square
    return chance * window + (1 - chance) * coin


def _best(
    odds: int, m: int, expected: Number | Literal["usual", "any"], *, duchi: bool
) -> tuple[int | None, bool]:
    """Return the half-width (None: the coin alone) and whether the coin is mixed in."""

    def window(square: Fraction) -> tuple[Fraction, int | None, bool]:
        h = _lowest(lambda h: _variance(odds, m, h, Fraction(1), square), m)
        return _variance(odds, m, h, Fraction(1), square), h, False

    def flat(h: int) -> Fraction:
        return _variance(odds, m, h, _near(odds, m, h), Fraction(0))

    def coin(square: Fraction) -> Fraction:
        return _variance(odds, m, None, Fraction(0), square)

    if expected not in ("usual", "any"):
        square = _read_expected(expected) ** 2
        single = window(square)
        return (None, True) if duchi and coin(square) <= single[0] else single[1:]
    if not duchi:
        return window(Fraction(1) if expected == "any" else _MIDDLE)[1:]
    mixed = _lowest(flat, m)
    if expected == "any":
        return (None if coin(Fraction(0)) <= flat(mixed) else mixed), True
    ends = [(square, min(coin(square), window(square)[0])) for square in (Fraction(0), _USUAL)]
    choices: list[tuple[int | None, bool]] = [(None, True), (mixed, True), window(_MIDDLE)[1:]]

    def regret(choice: tuple[int | None, bool]) -> Fraction:
        h, coined = choice
        chance = Fraction(0) if h is None else _near(odds, m, h) if coined else Fraction(1)
        return max(_variance(odds, m, h, chance, square) / least for square, least in ends)

    return min(choices, key=regret)


def _read_expected(expected: object) -> Fraction:
    must_be = '"usual", "any" or a size from 0 to 1'
    if isinstance(expected, str):
        raise bad_parameter("expected", must_be, expected, fix=Choose(("usual", "any"), given=expected))
    number: Any = expected  # what is no number is refused like one out of range
    size = rational("expected", number, zero=True, negative=True, must_be=must_be)
    if not 0 <= size <= 1:
        raise bad_parameter("expected", must_be, expected, fix=Set(expected=0.5))
    return size


def _lowest(of: Callable[[int], Fraction], high: int) -> int:
    """Return where a function of 0 .. most that falls and then rises is smallest."""
    return first_integer(lambda h: of(h) <= of(h + 1), -1, high)
