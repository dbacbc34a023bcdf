"""The noise laws of mechanisms with integer noise, exactly: draws, tails, half-widths, variances.

Everything that a mechanism states about its error comes from the law that is sampled, never from a
continuous law like it. Square roots, as in the deviation for a rho, are rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit import noise
from tacit.bisection import first_integer
from tacit.errors import TacitError

if TYPE_CHECKING:
    from numpy.typing import NDArray


_DIGITS = 60  # of the decimal arithmetic behind Laplace tails
_SUM_UP_TO = 512  # sigmas up to here are summed term by term, larger ones by Euler and Maclaurin
_SLACK = 1e-11  # the relative error of the Gaussian tail sums, always added to them


@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """P(k) proportional to exp(-|k| / scale) on the integers: discrete Laplace noise, exactly.

    Examples
    --------
    >>> from fractions import Fraction
    >>> law = LaplaceLaw(Fraction(2))
    >>> law.half_width(Fraction(95, 100)), round(law.exceeds(6), 4)
    (6, 0.0376)
    """

    scale: Fraction

    def __post_init__(self) -> None:
        check_width(self.scale)

    def draw(self) -> int:
        """Draw one number exactly."""
        return noise.discrete_laplace(self.scale)

    def draws(self, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw an array exactly."""
        return noise.discrete_laplace(self.scale, shape)

    def _tail(self, steps: int) -> Decimal:
        """Return P(|k| > steps) = 2 a^(steps+1) / (1+a), a = exp(-1/scale), to 60 digits."""
        with localcontext() as context:
            context.prec = _DIGITS
            per_step = Decimal(self.scale.denominator) / Decimal(self.scale.numerator)
            return 2 * (-(steps + 1) * per_step).exp() / (1 + (-per_step).exp())

    def exceeds(self, steps: int) -> float:
        """Return P(|k| > steps)."""
        return float(self._tail(steps)) if steps >= 0 else 1.0

    def half_width(self, confidence: Fraction) -> int:
        """Return the smallest m with P(|k| <= m) >= confidence."""
        with localcontext() as context:
            context.prec = _DIGITS
            allowed = Decimal((1 - confidence).numerator) / Decimal((1 - confidence).denominator)
            scale = Decimal(self.scale.numerator) / Decimal(self.scale.denominator)
            guess = scale * (2 / (allowed * (1 + (-1 / scale).exp()))).ln()
            steps = max(0, int(guess) - 1)
            while steps > 0 and self._tail(steps - 1) <= allowed:
                steps -= 1
            while self._tail(steps) > allowed:
                steps += 1
        return steps

    @property
    def variance(self) -> float:
        """2a / (1-a)^2, written as 1 / (2 sinh(1/(2 scale))^2)."""
        half = 1 / (2 * float(self.scale))
        return 1 / (2 * math.sinh(half) ** 2) if half < 350 else 2 * math.exp(-2 * half)

    def loss(self, from_a: float, from_b: float) -> float:
        """Return ln P(output | a) / P(output | b) for an output that lies this many steps from each."""
        return (abs(from_b) - abs(from_a)) / float(self.scale)


@dataclass(frozen=True, slots=True)
class TruncatedLaplaceLaw:
    """P(k) proportional to exp(-|k| / scale) on the integers from -reach to reach, exactly.

    Examples
    --------
    >>> from fractions import Fraction
    >>> law = TruncatedLaplaceLaw(Fraction(2), 5)
    >>> law.half_width(Fraction(95, 100)), law.exceeds(5), max(abs(law.draw()) for _ in range(99)) <= 5
    (4, 0.0, True)
    """

    scale: Fraction
    reach: int

    def __post_init__(self) -> None:
        check_width(self.scale)

    def draw(self) -> int:
        """Draw one number exactly."""
        return int(self.draws(1)[0])

    def draws(self, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw an array exactly, by rejection: draws that the law excludes are drawn again.

        A short reach is drawn uniformly and kept with chance exp(-|k| / scale), at least 1/e; a long one is
        drawn from the whole law, of which more than half lies within. Nothing depends on private numbers.
        """
        draws = np.empty(shape, dtype=np.int64)
        flat = draws.reshape(-1)
        missing = np.arange(flat.size)
        while missing.size:
            if self.reach < self.scale:
                tried = noise.uniform_below(2 * self.reach + 1, missing.size) - self.reach
                coins = [abs(int(k)) / self.scale for k in tried]
                accepted = np.asarray(noise.bernoulli_exp(coins, missing.size))
            else:
                tried = noise.discrete_laplace(self.scale, missing.size)
                accepted = np.abs(tried) <= self.reach
            flat[missing] = tried
            missing = missing[~accepted]
        return draws

    def exceedances(self, count: int, least: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw `count` numbers exactly; return positions and values of those from `least` >= 1 on."""
        return noise.laplace_exceedances(self.scale, count, least, reach=self.reach)

    def _outside(self, steps: int) -> Decimal:
        """Return P(|k| > steps) for 0 <= steps <= reach, to 40 digits."""
        with localcontext() as context:
            context.prec = _DIGITS
            per_step = Decimal(self.scale.denominator) / Decimal(self.scale.numerator)
            a = (-per_step).exp()
            cut = 2 * (-per_step * (self.reach + 1)).exp()
            return (2 * (-per_step * (steps + 1)).exp() - cut) / (1 + a - cut)

    def exceeds(self, steps: int) -> float:
        """Return P(|k| > steps)."""
        if steps < 0:
            return 1.0
        return float(self._outside(steps)) if steps < self.reach else 0.0

    def half_width(self, confidence: Fraction) -> int:
        """Return the smallest m with P(|k| <= m) >= confidence."""
        with localcontext() as context:
            context.prec = _DIGITS
            allowed = Decimal((1 - confidence).numerator) / Decimal((1 - confidence).denominator)
            per_step = Decimal(self.scale.denominator) / Decimal(self.scale.numerator)
            cut = 2 * (-per_step * (self.reach + 1)).exp()
            ends = allowed * (1 + (-per_step).exp() - cut) + cut  # 2 a^(m+1) must not exceed it
            steps = min(self.reach, max(0, int((2 / ends).ln() / per_step) - 1))
            while steps > 0 and self._outside(steps - 1) <= allowed:
                steps -= 1
            while self._outside(steps) > allowed:
                steps += 1
        return steps

    def loss(self, from_a: float, from_b: float) -> float:
        """Return ln P(output | a) / P(output | b) for an output that lies this many steps from each."""
        if abs(from_b) > self.reach:
            return math.inf
        return -math.inf if abs(from_a) > self.reach else (abs(from_b) - abs(from_a)) / float(self.scale)


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """P(k) proportional to exp(-k^2 / (2 sigma^2)) on the integers: discrete Gaussian noise, exactly.

    Examples
    --------
    >>> from fractions import Fraction
    >>> GaussianLaw(Fraction(2)).half_width(Fraction(95, 100))
    4
    """

    sigma: Fraction

    def __post_init__(self) -> None:
        check_width(self.sigma)

    def draw(self) -> int:
        """Draw one number exactly."""
        return noise.discrete_gaussian(self.sigma)

    def draws(self, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw an array exactly."""
        return noise.discrete_gaussian(self.sigma, shape)

    def exceedances(self, count: int, least: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw `count` numbers exactly; return positions and values of those from `least` >= 1 on."""
        return noise.gaussian_exceedances(self.sigma, count, least)

    def exceeds(self, steps: int) -> float:
        """Return P(|k| > steps), an upper value within a part in 10^10."""
        if steps < 0:
            return 1.0
        return min(1.0, 2 * self._upper(steps + 1) / self._mass() * (1 + _SLACK))

    @lru_cache(maxsize=1024)  # noqa: B019 - a law is two words, and there are few
    def _mass(self) -> float:
        """Return the sum of exp(-k^2 / (2 sigma^2)) over all integers."""
        sigma = float(self.sigma)
        if sigma > _SUM_UP_TO:  # Poisson summation: the next term is exp(-2 pi^2 sigma^2)
            return sigma * math.sqrt(2 * math.pi)
        return 1 + 2 * self._upper(1)

    def _upper(self, start: int) -> float:
        """Return the sum over k >= first >= 1."""
        sigma = float(self.sigma)
        if sigma <= _SUM_UP_TO:
            k = np.arange(start, start + int(40 * sigma) + 40, dtype=np.float64)
            return float(np.exp(-(k**2) / (2 * sigma**2)).sum())  # all positive: within a part in 10^14
        x = start / sigma
        integral = sigma * math.sqrt(math.pi / 2) * math.erfc(x / math.sqrt(2))
        first_term = math.exp(-(x**2) / 2)  # Euler-Maclaurin with f' and f''' at the lower end
        return integral + first_term * (0.5 + x / (12 * sigma) + (3 * x - x**3) / (720 * sigma**3))

    def half_width(self, confidence: Fraction) -> int:
        """Return the smallest m with P(|k| <= m) >= confidence (by the upper value of the tail)."""
        return self.reaches(1 - confidence)

    def reaches(self, chance: Fraction) -> int:
        """Return the smallest m with P(|k| > m) at most `chance`, by the upper value of the tail.

        The search starts at the quantile of the normal law and widens in both directions.
        """
        from statistics import NormalDist

        allowed = float(chance)
        normal = -NormalDist().inv_cdf(allowed / 2) if allowed > 1e-300 else 37.0
        low = high = max(0, math.ceil(float(self.sigma) * normal) - 1)
        step = 1
        while self.exceeds(high) > allowed:
            low, high, step = high, high + step, 2 * step
        while low == high or self.exceeds(low) <= allowed:
            if low < 0:
                return 0
            low, high, step = max(-1, low - step), low, 2 * step
        return first_integer(lambda m: self.exceeds(m) <= allowed, low, high)

    @property
    def variance(self) -> float:
        """Sigma squared; for small sigmas, where the lattice matters, the exact sum."""
        sigma = float(self.sigma)
        if sigma > 4:  # differs from sigma^2 by less than exp(-300)
            return sigma**2
        k = np.arange(1, 400, dtype=np.float64)
        return float(2 * np.sum(k**2 * np.exp(-(k**2) / (2 * sigma**2))) / self._mass())

    def loss(self, from_a: float, from_b: float) -> float:
        """Return ln P(output | a) / P(output | b) for an output that lies this many steps from each."""
        return (from_b**2 - from_a**2) / (2 * float(self.sigma) ** 2)


def check_width(scale: Fraction, *, power: int = 57) -> None:
    """Refuse a scale above 2^power steps; up to 2^57 a draw leaves 64 bits with a chance below exp(-64)."""
    if scale > 2**power:
        raise TacitError(
            "bad-parameter",
            f"the noise would be larger than 2^{power} grid steps",
            why="integers of 64 bits could not hold it",
            fix="use a larger epsilon, smaller limits or narrower bounds",
        )


NoiseLaw = LaplaceLaw | GaussianLaw


def square_root_up(x: Fraction) -> Fraction:
    """Return a short rational at or just above the square root (within a relative 2^-50).

    Examples
    --------
    >>> square_root_up(Fraction(9, 4))
    Fraction(3, 2)
    """
    shift = max(0, 102 - (x.numerator.bit_length() - x.denominator.bit_length())) // 2 + 1
    scaled = -(-(x.numerator << 2 * shift) // x.denominator)
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << shift)
