"""The meaning of a cost, as accounting computes it: odds, bits, advantage, the chance of a large loss."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting import _worst_case
from tacit.accounting.numeric import exp_up, float_up, log_down
from tacit.exact import Number, rational
from tacit.parameters import Probability

if TYPE_CHECKING:
    from tacit.accounting._laws import Parts


class Meaning:
    """The readings of a cost in terms of people rather than parameters; `Cost` inherits them."""

    __slots__ = ()

    if TYPE_CHECKING:
        parts: Parts

        @property
        def rho(self) -> float: ...

        def _pure(self, asked: str) -> Fraction: ...

    @property
    def odds(self) -> float:
        """The largest factor by which the odds about one unit can move, whatever else is known: exp(epsilon).

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> round(Cost.pure(0.01).odds, 5)
        1.01005
        """
        try:
            return float_up(exp_up(self._pure("the largest change of odds")))
        except OverflowError:
            return math.inf

    @property
    def bits(self) -> float:
        """The most that anyone can learn about one unit, in bits: epsilon / ln 2.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> round(Cost.pure(0.1).bits, 4)
        0.1443
        """
        return float_up(self._pure("the information in bits") / log_down(Fraction(2)))

    @property
    def kl(self) -> float:
        """The largest Kullback-Leibler divergence between neighbours' answers, in nats, rounded up.

        It is at most rho, because it is the limit of the Renyi divergences at order 1. It equals rho for
        Laplace noise, randomized response and Gaussian noise.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> round(Cost.laplace(scale=1, sensitivity=1).kl, 6)
        0.367879
        """
        return self.rho

    @property
    def advantage(self) -> float:
        """The most by which an attacker who guesses "in" or "out" beats a coin: delta at epsilon 0.

        It bounds P(says "in" when in) - P(says "in" when out).

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> round(Cost.pure(1).advantage, 6)
        0.462117
        """
        return _worst_case.delta_bounds(self.parts, Fraction(0)).upper

    def loss_exceeds(self, t: Number) -> float:
        """Return the probability that the privacy loss exceeds t, rounded up: odds move by more than exp(t).

        It is not delta; it is larger than delta at the same epsilon. For noise with a stated law, it is the
        probability for a unit that moves the answer by the full sensitivity. For costs known only by a bound
        (pure, zCDP, ...), it is the most that the bound allows.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Cost.pure(1).loss_exceeds(1)
        0.0
        """
        exact = rational("t", t, zero=True)
        return _worst_case.loss_exceeds(self.parts, exact)

    def tradeoff(self, fpr: Number) -> float:
        """Return the smallest miss rate of any attacker whose false-alarm rate is at most fpr, rounded down.

        A blind guess has the miss rate 1 - fpr. The closer the result is to that, the less an attack can do.
        It is computed from (epsilon, delta) at several epsilons: 1 - delta - e^epsilon fpr and
        e^-epsilon (1 - delta - fpr) are both bounds (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath
        2015).

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> round(Cost.pure(1).tradeoff(0.1), 4)
        0.7282
        """
        rate = Probability(instead=0.05, why="it is a probability").read("fpr", fpr)
        alpha, best = float_up(rate), 0.0
        for epsilon in _epsilons(self.parts):
            room = 1 - _worst_case.delta_bounds(self.parts, Fraction(repr(epsilon))).upper
            best = max(best, room - math.exp(epsilon) * alpha, math.exp(-epsilon) * (room - alpha))
        return max(0.0, best - 1e-13)


def _epsilons(parts: Parts) -> list[float]:
    """Return epsilons at which to read the curve: up to the pure epsilon, or until delta is negligible."""
    from tacit.accounting._charge import charge

    whole = charge(parts)
    if whole.epsilon is not None:
        most = float_up(whole.epsilon)
    else:
        most = _worst_case.epsilon_bounds(parts, max(Fraction(1, 10**9), 2 * whole.delta)).upper
    most = min(most, 700.0)
    return [most * step / 32 for step in range(33)]
