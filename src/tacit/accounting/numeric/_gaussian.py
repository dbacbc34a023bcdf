"""Numeric accounting of Gaussian costs, in closed form (Balle and Wang 2018, theorem 5).

With a = epsilon/mu - mu/2 and b = epsilon/mu + mu/2, ``delta = Phi(-a) - exp(epsilon) Phi(-b) = exp(-a^2/2)
(erfcx(a/sqrt 2) - erfcx(b/sqrt 2)) / 2``, because epsilon - b^2/2 = -a^2/2. The second form has no large
factors. The error of its difference is the error of its two terms. If mu is so small that they nearly agree,
the difference is the integral of a convex function, which lies between the midpoint rule and the trapezoid
rule. The error bounds are proved in docs/proofs/accounting.md, section 2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.accounting.numeric._bracket import Bracket, U, down, settle, up

if TYPE_CHECKING:
    from tacit.accounting.numeric._mgf import Reals

_ROOT2, _SLOPE0 = math.sqrt(2), 2 / math.sqrt(math.pi)
_SPECIAL = 2.0**-44  # granted relative error of scipy's erfcx and log_ndtr; observed 2^-49 and 2^-46
_NARROW = 1e-4  # below this mu: the convex integral


def gaussian_delta(mu: float, epsilon: float) -> Bracket:
    """Return bounds on delta at epsilon for N(mu, 1) against N(0, 1); mu may have a relative error of 4u."""
    from scipy.special import erfcx, log_ndtr

    if mu == 0:
        exact = max(0.0, -math.expm1(epsilon))
        return Bracket(max(0.0, down(exact)), up(exact) if exact else 0.0, "closed form")
    if not math.isfinite(epsilon / mu):
        return Bracket(0.0, 5e-324, "closed form") if epsilon > 0 else Bracket(1 - 2 * U, 1.0, "closed form")
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    slip = 8 * U * (abs(epsilon / mu) + mu)  # of a and of b, from mu and from rounding
    if a < -5:  # delta is close to one
        first, log_second = math.exp(log_ndtr(-a)), min(0.0, epsilon + float(log_ndtr(-b)))
        second = math.exp(log_second)
        error = first * (_SPECIAL + slip) + second * (_SPECIAL + 4 * U) * (1 + abs(epsilon) + abs(log_second))
        error += second * slip * (abs(b) + 1)
        return Bracket(max(0.0, first - second - error), min(1.0, first - second + error), "closed form")
    if a > 37.5:  # exp(-a^2/2) is below the normal doubles, and delta <= Phi(-a) is smaller still
        return Bracket(0.0, 1e-305, "closed form")
    scale, x, y = 0.5 * math.exp(-a * a / 2), a / _ROOT2, b / _ROOT2
    common = abs(a) * slip + U * (a * a + 8)  # relative, of the factor that multiplies the difference
    if mu < _NARROW:
        width, noise = mu / _ROOT2, 2 * _SLOPE0 * (_SPECIAL + 8 * U + slip * (1 + abs(x)))
        lower, upper = _slope((x + y) / 2) - noise, (_slope(x) + _slope(y)) / 2 + noise
        common += 8 * U
        return Bracket(
            max(0.0, scale * width * lower * (1 - common)),
            scale * width * upper * (1 + common),
            "closed form",
        )
    first, second = float(erfcx(x)), float(erfcx(y))
    value = scale * (first - second)
    error = scale * ((first + second) * _SPECIAL + 2 * slip * (_SLOPE0 + 2 * abs(min(x, 0.0)) * first))
    error += value * common
    return Bracket(max(0.0, value - error), min(1.0, value + error), "closed form")


def gaussian_curve(mu: float, e: Reals, sign: float) -> Reals:
    """Return upper (sign 1) or lower (sign -1) values of delta at many epsilons, mu >= 1e-4."""
    import numpy as np
    from scipy.special import erfcx, log_ndtr

    a, b = e / mu - mu / 2, e / mu + mu / 2
    slip = 8 * U * (np.abs(e / mu) + mu)
    x, y = np.maximum(a, -5.0) / _ROOT2, np.maximum(b, -5.0) / _ROOT2
    scale, first, second = 0.5 * np.exp(-np.minimum(a * a, 1400.0) / 2), erfcx(x), erfcx(y)
    value = scale * (first - second)
    steep = _SLOPE0 + 2 * np.abs(np.minimum(x, 0)) * first
    error = scale * ((first + second) * _SPECIAL + 2 * slip * steep)
    error += value * (np.abs(a) * slip + U * (a * a + 8))
    one, log_two = np.exp(log_ndtr(-a)), np.minimum(0.0, e + log_ndtr(-b))
    two = np.exp(log_two)
    rough = one * (_SPECIAL + slip) + two * (_SPECIAL + 4 * U) * (1 + np.abs(e) + np.abs(log_two))
    rough += two * slip * (np.abs(b) + 1)
    far = np.where(a < -5, one - two + sign * rough, value + sign * error)
    found: Reals = np.clip(np.where(a > 37, max(0.0, sign) * 1e-297, far), 0.0, 1.0)
    return found


def _slope(x: float) -> float:
    """Return minus the derivative of erfcx at x: positive, decreasing and convex."""
    from scipy.special import erfcx

    return float(_SLOPE0 - 2 * x * erfcx(x))


def gaussian_epsilon(mu: float, delta: float) -> Bracket:
    """Return bounds on the smallest epsilon >= 0 with delta(epsilon) <= delta, by Newton's method."""
    from scipy.special import log_ndtr, ndtri

    if gaussian_delta(mu, 0.0).upper <= delta:
        return Bracket(0.0, 0.0, "closed form")
    if delta <= 0:
        return Bracket(math.inf, math.inf, "closed form")
    # delta <= Phi(-a), so the root lies below mu (mu/2 - ndtri(delta)).
    start = max(0.0, mu * (mu / 2 - float(ndtri(delta))))
    epsilon, target = start, math.log(delta)
    for _ in range(60):
        bounds = gaussian_delta(mu, epsilon)
        if not bounds.lower > 0:
            epsilon *= 0.9
            continue
        value = (bounds.lower + bounds.upper) / 2
        slope = math.exp(epsilon + float(log_ndtr(-epsilon / mu - mu / 2))) / value
        step = (math.log(value) - target) / slope if slope else 0.0
        epsilon = max(0.0, epsilon + step)
        if abs(step) <= 1e-14 * epsilon:
            break
    return settle(lambda e: gaussian_delta(mu, e), epsilon, delta)


def gaussian_tail(mu: float, t: float) -> float:
    """Return an upper value of P(L > t), L ~ N(mu^2/2, mu^2)."""
    from scipy.special import log_ndtr

    if mu == 0:
        return float(t < 0)
    at = mu / 2 - t / mu
    if not math.isfinite(at):
        return 5e-324 if t > 0 else 1.0
    log = float(log_ndtr(at))
    slip = 8 * U * (abs(t / mu) + mu) * (1 + max(0.0, -at))
    return min(1.0, math.exp(log) * (1 + _SPECIAL * (1 + abs(log)) + slip) + 5e-324)
