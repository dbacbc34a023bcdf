"""The law of ladder noise: its draws, chances and half-widths, and the rate that a promise allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit import noise

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

_DIGITS = 60  # of the decimal arithmetic, besides those that a small rate loses
_RATE_BITS = 64  # of a rate, after its leading zeros
RATE_SLACK = Decimal(10) ** -40  # far above the error of the decimal arithmetic, far below a step of the rate


class RungLaw(ABC):
    """P(k) proportional to exp(-rate j) for k in rung j; the widths of the rungs grow."""

    __slots__ = ()

    rate: Fraction

    @abstractmethod
    def draw(self) -> int:
        """Draw one number exactly."""

    @abstractmethod
    def draws(self, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw an array exactly."""

    @abstractmethod
    def end(self, rung: int) -> int:
        """Return the largest number of a rung: the sum of all widths up to it."""

    @abstractmethod
    def _one_side(self, rung: int) -> Decimal:
        """Return the sum over i >= 1 of q^i times the width of rung `rung` + i."""

    @abstractmethod
    def _context(self) -> Context:
        """Return a decimal context with enough digits."""

    def rung(self, k: int) -> int:
        """Return the rung of an integer."""
        far = abs(k)
        low, high = -1, 1
        while self.end(high) < far:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.end(middle) >= far else (middle, high)
        return high

    def probability(self, k: int) -> float:
        """Return P(k)."""
        with localcontext(self._context()):
            return float((-decimal(self.rate) * self.rung(k)).exp() / self._mass())

    def exceeds(self, steps: int) -> float:
        """Return P(|k| > steps)."""
        if steps < 0:
            return 1.0
        with localcontext(self._context()):
            return float(self._beyond(steps) / self._mass())

    def half_width(self, confidence: Fraction) -> int:
        """Return the smallest m with P(|k| <= m) >= confidence."""
        with localcontext(self._context()) as context:
            allowed = decimal(1 - confidence) * self._mass()
            if self._above(0) <= allowed:
                return 0
            low, high = 0, 1  # the weight above rung `low` is too large
            while self._above(high) > allowed:
                low, high = high, 2 * high
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if self._above(middle) <= allowed else (middle, high)
            each = 2 * (-decimal(self.rate) * high).exp()
            context.rounding = ROUND_CEILING
            return self.end(low) + int(((self._above(low) - allowed) / each).to_integral_value())

    def _mass(self) -> Decimal:
        """Return Z, the sum of all weights, where zero has the weight 1."""
        return 1 + self._above(0)

    def _above(self, rung: int) -> Decimal:
        """Return the weight above a rung: a ladder again, that begins `rung` steps wider."""
        return 2 * (-decimal(self.rate) * rung).exp() * self._one_side(rung)

    def _beyond(self, steps: int) -> Decimal:
        """Return the weight of all integers farther than `steps` from zero."""
        rung = self.rung(steps)
        left = self.end(rung) - steps
        return self._above(rung) + 2 * left * (-decimal(self.rate) * rung).exp()


@dataclass(frozen=True, slots=True)
class LadderLaw(RungLaw):
    """The law of a ladder whose rung j holds min(width + j - 1, most) integers on each side.

    Examples
    --------
    >>> from fractions import Fraction
    >>> law = LadderLaw(Fraction(1), 2, None)
    >>> law.rung(-2), law.rung(3), law.half_width(Fraction(95, 100)), round(law.probability(0), 4)
    (1, 2, 13, 0.2497)
    """

    rate: Fraction
    width: int
    most: int | None

    def draw(self) -> int:
        """Draw one number exactly."""
        return noise.ladder(self.rate, self.width, self.most)

    def draws(self, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw an array exactly."""
        return noise.ladder(self.rate, self.width, self.most, size=shape)

    def end(self, rung: int) -> int:
        """Return the largest number of a rung: the sum of all widths up to it."""
        growing = rung if self.most is None else min(rung, self.most - self.width + 1)
        flat = 0 if self.most is None else (rung - growing) * self.most
        return growing * self.width + growing * (growing - 1) // 2 + flat

    def _one_side(self, rung: int) -> Decimal:
        width = self.width + rung if self.most is None else min(self.width + rung, self.most)
        return _one_side(self.rate, width, self.most)

    def _context(self) -> Context:
        return digits_for(self.rate, self.width)


def _one_side(rate: Fraction, width: int, most: int | None) -> Decimal:
    """Return sum over j >= 1 of q^j min(width + j - 1, most) = u (width + u (1 - q^(most - width)))."""
    q = (-decimal(rate)).exp()
    u = q / (1 - q)
    cut = Decimal(0) if most is None else (-decimal(rate) * (most - width)).exp()
    return u * (width + u * (1 - cut))


@lru_cache(maxsize=1024)
def largest_rate(epsilon: Fraction, floor: int, most: int | None) -> Fraction:
    """Return the largest rate r on a fine grid with r + ln(Z(floor + 1) / Z(floor)) <= epsilon, certified.

    Half of epsilon always holds (docs/proofs/graphs.md), so the search starts there. Where all widths are
    `most`, the normaliser does not move, and the rate is epsilon.

    Examples
    --------
    >>> from fractions import Fraction
    >>> [round(float(largest_rate(Fraction(1), floor, None)), 6) for floor in (0, 10, 100)]
    [0.545944, 0.916034, 0.99019]
    >>> largest_rate(Fraction(1, 3), 7, 7)
    Fraction(1, 3)
    """
    if floor == most:
        return epsilon
    return search_rate(epsilon, lambda rate: _spent(rate, floor, most))


def search_rate(epsilon: Fraction, spent: Callable[[Fraction], Fraction]) -> Fraction:
    """Return a rate r from epsilon/2 on, to 64 bits, with spent(r) <= epsilon; epsilon/2 must hold."""
    shift = _RATE_BITS + max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    high = (epsilon.numerator << shift) // epsilon.denominator + 1  # more than epsilon
    low = (high - 1) // 2
    while high - low > 1:
        middle = (low + high) // 2
        good = spent(Fraction(middle, 1 << shift)) <= epsilon
        low, high = (middle, high) if good else (low, middle)
    return Fraction(low, 1 << shift)


def _spent(rate: Fraction, floor: int, most: int | None) -> Fraction:
    """Return r + ln(Z(floor + 1) / Z(floor)), rounded up: the epsilon of a rate.

    The decimal operations are correctly rounded, and 1 - q, which loses digits, has its own in reserve. The
    slack covers all of them many times over.
    """
    with localcontext(digits_for(rate, floor)):
        ratio = (1 + 2 * _one_side(rate, floor + 1, most)) / (1 + 2 * _one_side(rate, floor, most))
        return rate + Fraction(ratio.ln() + RATE_SLACK * decimal(rate))


def digits_for(rate: Fraction, width: int) -> Context:
    """Return the decimal context that leaves 60 digits after the loss in 1 - exp(-rate)."""
    small = max(0, rate.denominator.bit_length() - rate.numerator.bit_length())
    return Context(prec=_DIGITS + small + width.bit_length(), Emin=MIN_EMIN)


def decimal(number: Fraction) -> Decimal:
    """Return a rational number in the digits of the current context."""
    return Decimal(number.numerator) / Decimal(number.denominator)
