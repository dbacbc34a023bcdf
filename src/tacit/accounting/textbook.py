"""Accounting formulae of the textbooks, by name: for teaching and comparison, never for charging.

Each is a valid bound in its own range, rounded to the nearest double. `Cost` computes the same quantities
tightly and with certified rounding; the difference is what tight accounting saves.

Examples
--------
>>> each = gaussian_epsilon(sigma=25, delta=1e-7 / 800, sensitivity=1)
>>> round(basic(each, 800)[0], 3)
217.156
>>> round(zcdp_epsilon(0.64, delta=1e-7), 4)
7.0636
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, SupportsIndex

from tacit.bisection import halved
from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.parameters import RealNumber, Share

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "advanced",
    "basic",
    "gaussian_epsilon",
    "gaussian_sigma",
    "group",
    "laplace_scale",
    "optimal",
    "optimal_delta",
    "renyi_epsilon",
    "sampled",
    "zcdp_epsilon",
]


def basic(epsilon: Number, k: SupportsIndex, delta: Number = 0) -> tuple[float, float]:
    """Add up: k answers, each (epsilon, delta)-DP, are (k epsilon, k delta)-DP together.

    Examples
    --------
    >>> basic(0.5, 100)
    (50.0, 0.0)
    """
    times = count("k", k)
    return times * _positive("epsilon", epsilon), times * _delta("delta", delta)


def advanced(epsilon: Number, k: SupportsIndex, *, slack: Number, delta: Number = 0) -> tuple[float, float]:
    """Compose by the advanced theorem: epsilon sqrt(2 k ln(1/slack)) + k epsilon (e^epsilon - 1).

    The delta is k delta + slack. Dwork, Rothblum and Vadhan 2010.

    Examples
    --------
    >>> round(advanced(0.1, 100, slack=1e-5)[0], 3)
    5.85
    """
    e, times, room = _positive("epsilon", epsilon), count("k", k), _probability("slack", slack)
    total = e * math.sqrt(2 * times * math.log(1 / room)) + times * e * math.expm1(e)
    return total, times * _delta("delta", delta) + room


def optimal_delta(total: Number, epsilon: Number, k: SupportsIndex, delta: Number = 0) -> float:
    """Return the smallest delta at which k answers, each (epsilon, delta)-DP, are (total, .)-DP.

    Kairouz, Oh and Viswanath 2015, Theorem 3.3, as a sum over the number of true answers among k coins. It is
    in double precision, so values below 1e-12 are lost (`Cost.delta` has no such limit).

    Examples
    --------
    >>> round(optimal_delta(0, 1, 1), 6)
    0.462117
    """
    e, times, at = _positive("epsilon", epsilon), count("k", k), float(rational("total", total, zero=True))
    log_norm = times * math.log1p(math.exp(e)) if e < 700 else times * e
    bad = 0.0
    for lies in range(times + 1):
        loss = (times - 2 * lies) * e
        if loss <= at:
            break
        log_p = math.lgamma(times + 1) - math.lgamma(lies + 1) - math.lgamma(times - lies + 1)
        bad += math.exp(log_p + (times - lies) * e - log_norm) * -math.expm1(at - loss)
    return 1 - (1 - _delta("delta", delta)) ** times * (1 - bad)


def optimal(epsilon: Number, k: SupportsIndex, *, delta_total: Number, delta: Number = 0) -> float:
    """Return the smallest epsilon at delta_total of k answers, each (epsilon, delta)-DP, by `optimal_delta`.

    Examples
    --------
    >>> round(optimal(0.1, 100, delta_total=1e-5), 3)
    4.307
    """
    target = _probability("delta_total", delta_total)
    highest = basic(epsilon, k)[0]
    if optimal_delta(highest, epsilon, k, delta) > target:
        raise bad_parameter(
            "delta_total",
            "at least 1 - (1 - delta)^k",
            delta_total,
            why="the deltas of the answers alone add up to more",
            fix="use a larger delta_total or a smaller delta",
        )
    return _smallest(lambda x: optimal_delta(x, epsilon, k, delta) <= target, highest)


def zcdp_epsilon(rho: Number, *, delta: Number) -> float:
    """Return rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016); `Cost.zcdp` reads 4 to 29 % less."""
    r = _positive("rho", rho)
    return r + 2 * math.sqrt(r * math.log(1 / _probability("delta", delta)))


def renyi_epsilon(order: Number, divergence: Number, *, delta: Number) -> float:
    """Return divergence + ln(1/delta) / (order - 1) (Mironov 2017); `Cost.renyi` uses a tighter conversion.

    Examples
    --------
    >>> round(renyi_epsilon(10, 0.5, delta=1e-5), 4)
    1.7792
    """
    a = RealNumber(above=1, instead=2).read("order", order)
    return _positive("divergence", divergence) + math.log(1 / _probability("delta", delta)) / float(a - 1)


def gaussian_sigma(epsilon: Number, *, delta: Number, sensitivity: Number) -> float:
    """Return sensitivity sqrt(2 ln(1.25/delta)) / epsilon, for epsilon at most 1 (Dwork and Roth 2014).

    Examples
    --------
    >>> round(gaussian_sigma(0.5, delta=1e-6, sensitivity=0.024), 4)
    0.2543
    """
    why = "above 1 the classic formula's noise is too small; tacit.accounting.sigma_for serves every epsilon"
    e = float(Share(why=why).read("epsilon", epsilon))
    return (
        _positive("sensitivity", sensitivity)
        * math.sqrt(2 * math.log(1.25 / _probability("delta", delta)))
        / e
    )


def gaussian_epsilon(*, sigma: Number, delta: Number, sensitivity: Number) -> float:
    """Return the classic sensitivity sqrt(2 ln(1.25/delta)) / sigma; valid if it is at most 1."""
    spread = math.sqrt(2 * math.log(1.25 / _probability("delta", delta)))
    return _positive("sensitivity", sensitivity) * spread / _positive("sigma", sigma)


def laplace_scale(epsilon: Number, *, sensitivity: Number) -> float:
    """Return sensitivity / epsilon: the scale, and the expected absolute error, of Laplace noise.

    Examples
    --------
    >>> laplace_scale(0.8, sensitivity=1)
    1.25
    """
    return float(rational("sensitivity", sensitivity) / rational("epsilon", epsilon))


def group(epsilon: Number, m: SupportsIndex, delta: Number = 0) -> tuple[float, float]:
    """Return (m epsilon, delta (e^(m epsilon) - 1) / (e^epsilon - 1)): (epsilon, delta) for m units together.

    Examples
    --------
    >>> group(0.1, 5)
    (0.5, 0.0)
    """
    e, size, mass = _positive("epsilon", epsilon), count("m", m, zero=False), _delta("delta", delta)
    return size * e, mass * math.expm1(size * e) / math.expm1(e) if mass else 0.0


def sampled(epsilon: Number, q: Number, delta: Number = 0) -> tuple[float, float]:
    """Return (ln(1 + q (e^epsilon - 1)), q delta): each unit takes part with probability q.

    Examples
    --------
    >>> round(sampled(1, 0.05)[0], 4)
    0.0824
    """
    rate = float(Share(instead=0.01).read("q", q))
    return math.log1p(rate * math.expm1(_positive("epsilon", epsilon))), rate * _delta("delta", delta)


def _positive(name: str, value: Number) -> float:
    return float(rational(name, value))


def _delta(name: str, value: Number) -> float:
    exact = RealNumber(least=0, below=1, instead=1e-6).read(name, value)
    return float(exact)


def _probability(name: str, value: Number) -> float:
    exact = RealNumber(above=0, below=1, instead=1e-6).read(name, value)
    return float(exact)


def _smallest(holds: Callable[[float], bool], highest: float) -> float:
    return halved(holds, 0.0, highest, times=100)[1]
