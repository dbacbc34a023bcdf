"""The law of a weighted sum of independent noises, as in every statistic that is linear in noisy integers.

X = N(0, s^2) + sum a_i L_i with L_i Laplace of scale 1. Up to four Laplace terms have a closed form: by
partial fractions of the characteristic function, P(|X| > t) = sum c_i P(|N + a_i L| > t) with c_i the product
over j != i of a_i^2 / (a_i^2 - a_j^2). Weights that are nearly equal are moved apart by at most a part in
1,000 first. More terms are inverted numerically (Gil-Pelaez 1951, midpoint rule).

Integer noise has no more spread than the continuous noise of the same scale, so these tails serve it too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.fixes import Set
from tacit.mechanisms._input_values import wrong_input
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

_CLOSED = 4  # Laplace terms with a closed form
_APART = (0.0, 0.0, 1e-6, 1e-4, 1e-3)  # how far apart weights must lie, for so many of them
_FLAT = 0.02  # a Laplace term below this part of the normal's spread joins the normal
_NODES = 192  # of the midpoint rule
_FARTHEST = 10.0  # standard deviations up to which the rule looks
_NEGLIGIBLE = 1e-9  # a characteristic function that has fallen below this ends the rule
_AT_ONCE = 2**17  # numbers in one block of the rule
_SMALLEST = 1e-300
_SLACK = 2e-6  # the error of the rule, added to its tails
_FAILING = RealNumber(above=0, below=1, instead=0.05)


@dataclass(frozen=True, slots=True)
class LinearNoise:
    """The independent noise on each of several numbers, and the law of every weighted sum of them.

    Parameters
    ----------
    laplace
        The scales of the Laplace noises that are added to each number, one for each member that added noise.
    normal
        The standard deviation of the Gaussian noise on each number.

    Examples
    --------
    >>> both = LinearNoise(laplace=(2.0, 2.0))
    >>> both.half_width(0.05, [1.0, 0.0]).round(3).item(), both.tail(8.226, [1.0, 0.0]).round(3).item()
    (8.226, 0.05)
    """

    laplace: tuple[float, ...] = ()
    normal: float = 0.0

    @property
    def scale(self) -> float:
        """The scale of one Laplace noise with the same variance as the noise on each number."""
        return math.sqrt(self.normal**2 / 2 + sum(one**2 for one in self.laplace))

    @property
    def variance(self) -> float:
        """The variance of the noise on each number."""
        return 2 * self.scale**2

    def over(self, unit: float) -> LinearNoise:
        """Return the noise on the same numbers in units of ``unit``."""
        return LinearNoise(tuple(one / unit for one in self.laplace), self.normal / unit)

    def tail(self, at: ArrayLike, weights: ArrayLike, normal: ArrayLike = 0.0) -> NDArray[np.float64]:
        """Return ``P(|N(0, normal^2) + sum_i weights_i noise_i| > at)``; weights run along the last axis."""
        each, deviations = self._terms(weights)
        return linear_tail(at, each, np.hypot(deviations, normal))

    def half_width(
        self, failing: float, weights: ArrayLike, times: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return the t with ``P(|sum_i weights_i noise_i| > t)`` = ``failing``.

        ``times`` says how many numbers have each weight; without it, one.
        """
        w = np.asarray(weights, dtype=np.float64)
        if times is None:
            return linear_half_width(failing, *self._terms(w))
        n = np.broadcast_to(np.asarray(times, dtype=np.float64), w.shape)
        each, normal = self._terms(w, n)
        copies = np.broadcast_to(n[..., None], (*n.shape, len(self.laplace))).reshape(each.shape)
        return linear_half_width(failing, each, normal, copies)

    def _terms(
        self, weights: ArrayLike, times: NDArray[np.float64] | float = 1.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        w = np.asarray(weights, dtype=np.float64)
        each = w[..., None] * np.array(self.laplace)
        return each.reshape(*w.shape[:-1], -1), self.normal * np.sqrt((times * w**2).sum(axis=-1))


def _weights(weights: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(weights, dtype=np.float64)
    if not array.ndim:
        raise wrong_input("a list of numbers", weights, name="weights", fix=Set(weights=[0.5, 0.5]))
    return array


def linear_tail(
    at: ArrayLike, weights: ArrayLike, normal: ArrayLike = 0.0, times: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return P(|N(0, normal^2) + sum_i weights_i L_i| > at), L_i independent Laplace noises of scale 1.

    Guarantee: within 10^-5 of the true probability; for more than four weights never below it.

    Parameters
    ----------
    at
        Where to look, of any shape; its sign does not matter.
    weights
        The shape of `at` and one more axis, the last: the scale of each Laplace term, of any sign.
    normal
        The standard deviation of the normal term, in the shape of `at`.
    times
        How many Laplace terms have each weight, in the shape of the weights; without it, one.

    Examples
    --------
    >>> linear_tail([2, 3], [[0.5, 0.5], [1, 0]]).round(6).tolist()
    [0.054947, 0.049787]
    >>> linear_tail(1.96, [], normal=1.0).round(3).item()
    0.05
    """
    t, s = np.asarray(at, dtype=np.float64), np.asarray(normal, dtype=np.float64)
    return _tail(np.abs(t), np.abs(_weights(weights)), s, times)


def _tail(
    t: NDArray[np.float64], a: NDArray[np.float64], s: NDArray[np.float64], times: ArrayLike | None
) -> NDArray[np.float64]:
    """Return `linear_tail` of numbers that were read, none of them negative."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if 0 < a.shape[-1] <= _CLOSED and times is None and not s.any():
            a = _apart(a)
            p = (_shares(a) * np.exp(-t[..., None] / a)).sum(axis=-1)
            return np.where(a[..., 0] > 0, np.clip(p, 0.0, 1.0), np.where(t > 0, 0.0, 1.0))
        shape = np.broadcast_shapes(t.shape, a.shape[:-1], s.shape)
        a = np.broadcast_to(a, (*shape, a.shape[-1]))
        n = np.broadcast_to(1.0 if times is None else np.asarray(times, dtype=np.float64), a.shape)
        spread = np.sqrt(s**2 + 2 * (n * a**2).sum(axis=-1))
        unit = np.where(spread > 0, spread, 1.0)
        t, s, a = t / unit, np.broadcast_to(s, shape) / unit, a / unit[..., None]
        closed = a.shape[-1] <= _CLOSED and times is None
        p = _with_normal(t, a, s) if closed else _inverted(t, a, s, n)
    return np.where(spread > 0, np.clip(p, 0.0, 1.0), np.where(t > 0, 0.0, 1.0))


def linear_half_width(
    failing: float, weights: ArrayLike, normal: ArrayLike = 0.0, times: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the t with P(|N(0, normal^2) + sum_i weights_i L_i| > t) = `failing`.

    Examples
    --------
    >>> linear_half_width(0.05, [[1.0, 0.0], [0.5, 0.5]]).round(4).tolist()
    [2.9957, 2.0565]
    """
    a, s = np.abs(_weights(weights)), np.asarray(normal, dtype=np.float64)
    _FAILING.read("failing", failing)
    n = np.asarray(1.0 if times is None else times, dtype=np.float64)
    spread = np.sqrt(s**2 + 2 * (n * a**2).sum(axis=-1))
    failed = math.log(failing)

    def level(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log(np.maximum(_tail(np.abs(t), a, s, times), _SMALLEST)) - failed)

    ends = np.zeros_like(spread), np.asarray(spread * max(1.0, 1.5 * math.log(2 / failing)))
    return root_between(level, ends, (np.full_like(spread, -failed), level(ends[1])), steps=12)


def root_between(
    f: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    levels: tuple[NDArray[np.float64], NDArray[np.float64]],
    *,
    steps: int,
) -> NDArray[np.float64]:
    """Find roots of f, which is not negative at the first ends and negative at the second.

    By false position (Illinois): for the logarithm of a tail, which is nearly straight, a few steps suffice.
    Where f is not negative at the second end either, that end is returned.
    """
    (a, b), (fa, fb) = ends, levels
    x, side = a, np.zeros_like(a)
    beyond = fb >= 0
    for _ in range(steps):
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where(fa > fb, b - fb * (b - a) / (fb - fa), a)
        fx = f(x)
        inside = fx >= 0
        fb = np.where(inside & (side == 1), fb / 2, fb)
        fa = np.where(~inside & (side == -1), fa / 2, fa)
        a, fa = np.where(inside, x, a), np.where(inside, fx, fa)
        b, fb = np.where(inside, b, x), np.where(inside, fb, fx)
        side = np.where(inside, 1.0, -1.0)
    return np.where(beyond, ends[1], x)


def _apart(a: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights in falling order, none of them zero; those that nearly agree are moved apart.

    A cluster keeps its mean, so the law changes by the square of the distance only.
    """
    k = a.shape[-1]
    if k < 2:
        return a
    distance = _APART[k]
    a = -np.sort(-a, axis=-1)
    a = np.maximum(a, 1e-6 * a[..., :1] * (1 - 0.1 * np.arange(k)))
    tight = a[..., 1:] > a[..., :-1] * (1 - 3 * distance)
    if not tight.any():
        return a
    rank = np.zeros_like(a)  # within a cluster of weights that nearly agree, and that of its last one
    for j in range(1, k):
        rank[..., j] = np.where(tight[..., j - 1], rank[..., j - 1] + 1, 0)
    group = rank.copy()
    for j in range(k - 2, -1, -1):
        group[..., j] = np.where(tight[..., j], group[..., j + 1], rank[..., j])
    return np.asarray(a * (1 + distance * (group / 2 - rank)))


def _shares(a: NDArray[np.float64], used: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return c_i, the product over j != i of a_i^2 / (a_i^2 - a_j^2); terms not `used` count as zeros."""
    squares = a**2 if used is None else np.where(used, a**2, 0.0)
    c = np.ones_like(a)
    for i in range(a.shape[-1]):
        for j in range(a.shape[-1]):
            if i != j:
                c[..., i] *= squares[..., i] / (squares[..., i] - squares[..., j])
    return c if used is None else np.where(used, c, 0.0)


def _with_normal(
    t: NDArray[np.float64], a: NDArray[np.float64], s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Add up the closed terms P(|N + a L| > t), in logarithms; small Laplace terms join the normal."""
    from scipy.special import log_ndtr, ndtr

    flat = a < _FLAT * s[..., None]
    s = np.sqrt(s**2 + 2 * np.where(flat, a**2, 0.0).sum(axis=-1))
    a = _apart(np.where(flat, 0.0, a))
    used = a > np.maximum(_FLAT * s[..., None] / 2, 1e-5 * a[..., :1])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rate, steep = t[..., None] / a, s[..., None] / a
        ahead = np.where(s > 0, t / s, np.inf)[..., None]
        down = np.exp(steep**2 / 2 - rate + log_ndtr(ahead - steep))
        up = np.exp(steep**2 / 2 + rate + log_ndtr(-ahead - steep))
        laplace = np.where(used, _shares(a, used) * (down - np.where(np.isfinite(up), up, 0.0)), 0.0)
    return np.asarray(2 * ndtr(-ahead[..., 0]) + laplace.sum(axis=-1))


def _inverted(
    t: NDArray[np.float64], a: NDArray[np.float64], s: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return 1 - (2/pi) times the integral of sin(wt)/w times the characteristic function, and the slack.

    In units of the standard deviation. With step h the midpoint rule errs by at most P(|X| > 2 pi/h - t),
    here below 10^-6 up to t = 10; beyond, the tail at 10 stands for all.
    """
    t = np.minimum(t, _FARTHEST)[..., None]
    p = np.ones(t.shape[:-1])
    step = np.pi / _FARTHEST
    block = max(1, min(_NODES, _AT_ONCE // max(a.size, 1)))
    plain = bool((times == 1).all())
    for start in range(0, _NODES, block):
        w = (np.arange(start, min(start + block, _NODES)) + 0.5) * step
        falls = np.exp(-((s[..., None] * w) ** 2) / 2)
        for j in range(a.shape[-1]):  # one weight at a time stays in the processor's cache
            each = 1 + (a[..., j, None] * w) ** 2
            falls /= each if plain else each ** times[..., j, None]
        p -= (2 / np.pi * step * np.sin(w * t) / w * falls).sum(axis=-1)
        if falls[..., -1].max(initial=0.0) < _NEGLIGIBLE:
            break
    return p + _SLACK
