"""Linear regression from noisy moments: estimates, and sets of slopes that noise and sampling allow.

The columns are scaled to u in [-1, 1]. The moments of z = (1, x_1 .. x_p, y) are linear in the noisy
integers, so every combination w'Mv of them is, and the law of its noise is known for every n.

For the coefficient of column j, let the others be the best ones given b_j = b. Then T(b) = w'M v(b), with
w = x_j less its regression on the others and v(b) = y less what is fitted, has mean 0 at the true b, up to
products of two errors. The set holds every b at which T(b) is within its own noise and sampling error
(Fieller 1954); both are quadratic in b, so the set is an interval, or unbounded where the noise hides the
spread of x_j (docs/proofs/regression.md). Errors are taken to have one variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from tacit.mechanisms import linear_half_width, linear_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.mechanisms import LinearNoise

    _Array = NDArray[np.float64]

_PARTS = {
    2: np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, 1.0]]),
    3: np.array([[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 1.0]]),
}  # 1, u and u^2 on the parts of a column
_CLEAR = 1.5  # the least eigenvalue of the others' moments, in standard deviations of a moment's noise
_SEEN = 3.0  # what is left of x_j, in standard deviations of its noise: less is not shown as an interval
_LEAST_ROWS = 1.0


@dataclass(frozen=True, slots=True)
class CoefficientSets:
    """A coefficient in many releases: its value, interval and p-value."""

    value: _Array
    low: _Array
    high: _Array
    p_value: _Array

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """Where the noise leaves an interval."""
        return np.isfinite(self.low) & np.isfinite(self.high)


def part_moments(shape: Sequence[int]) -> _Array:
    """Return the moments of (1, columns) as combinations of the products of parts.

    Examples
    --------
    >>> m = part_moments((2, 3))  # a yes/no column and a number: six integers
    >>> m.shape, m[1, 2].tolist()
    ((3, 3, 6), [1.0, -0.0, -1.0, -1.0, 0.0, 1.0])
    """
    q = len(shape) + 1
    made = np.empty((q, q, int(np.prod(shape))))
    for a in range(q):
        for b in range(q):
            powers = [(place == a) + (place == b) for place in range(1, q)]
            made[a, b] = reduce(np.kron, [_PARTS[n][power] for n, power in zip(shape, powers, strict=True)])
    return made


def product_moments(q: int) -> _Array:
    """Return the moments of q variables as combinations of their q(q+1)/2 sums of products.

    Examples
    --------
    >>> product_moments(2)[0, 1].tolist()
    [0.0, 1.0, 0.0]
    """
    made = np.zeros((q, q, q * (q + 1) // 2))
    for k, (a, b) in enumerate(combinations_with_replacement(range(q), 2)):
        made[a, b, k] = made[b, a, k] = 1.0
    return made


def moments_of(combinations: _Array, numbers: _Array) -> _Array:
    """Return the moment matrix of each line of noisy numbers, which are in rows."""
    return np.asarray(np.einsum("abk,rk->rab", combinations, numbers, optimize=True))


def coefficient_sets(
    combinations: _Array, numbers: _Array, noise: LinearNoise, index: int, failing: float
) -> CoefficientSets:
    """Return one coefficient of the last variable on all others, for each line of noisy numbers.

    Guarantee: free post-processing. The interval covers the coefficient in the population with about
    1 - failing, for noise and sampling together; it is unbounded where the noise hides the answer.

    Parameters
    ----------
    combinations
        The moments of the variables as combinations of the numbers: of `part_moments` or `product_moments`,
        or of these after a linear change of the variables.
    numbers
        The noisy numbers, in rows; one line for each release.
    noise
        The noise on each of them, in rows.
    index
        Which variable's coefficient.
    failing
        How often the interval may miss.
    """
    m = moments_of(combinations, numbers)
    q = m.shape[-1]
    others = [a for a in range(q - 1) if a != index]
    w, v0, clear = _directions(m, others, index, noise, combinations)
    t0, h = _form(w, m, v0), _form(w, m, w)
    usable = clear & (h > 0)
    h = np.where(usable, h, 1.0)
    value = t0 / h
    rows = np.maximum(m[:, 0, 0], _LEAST_ROWS)
    free = np.maximum(rows - (q - 1), _LEAST_ROWS)
    rest = np.maximum(_form(v0, m, v0) - t0 * value, 0.0)
    g0, g1 = (np.einsum("ra,abk,rb->rk", w, combinations, v, optimize=True) for v in (v0, w))
    law = _Spread(noise, free, h, rest)
    factor, spread = law.critical(g0 - value[:, None] * g1, failing)
    k2, tau2 = (factor / spread) ** 2, 2 * noise.scale**2
    a = h * h - k2 * (h * h / free + tau2 * (g1**2).sum(axis=1))
    c = h * t0 - k2 * (h * t0 / free + tau2 * (g0 * g1).sum(axis=1))
    d = t0**2 - k2 * (h * (rest + t0 * value) / free + tau2 * (g0**2).sum(axis=1))
    seen = h > _SEEN * np.sqrt(tau2 * (g1**2).sum(axis=1))
    bounded = usable & seen & (a > 0)
    root = np.sqrt(np.maximum(c * c - a * d, 0.0))
    safe = np.where(bounded, a, 1.0)
    p = linear_tail(t0, *law.terms(g0, rest + t0 * value))
    return CoefficientSets(
        np.where(usable, value, np.nan),
        np.where(bounded, (c - root) / safe, -np.inf),
        np.where(bounded, (c + root) / safe, np.inf),
        np.where(usable, p, 1.0),
    )


@dataclass(frozen=True, slots=True)
class _Spread:
    """The law of T: normal sampling error and the noise of the numbers with their weights."""

    noise: LinearNoise
    free: _Array
    h: _Array
    rest: _Array

    def terms(self, g: _Array, rest: _Array) -> tuple[_Array, _Array]:
        """Return the Laplace weights and the normal spread of T, where so much of y is left."""
        laplace = (g[:, :, None] * np.array(self.noise.laplace)).reshape(len(g), -1)
        normal = self.noise.normal**2 * (g**2).sum(axis=1) + self.h * rest / self.free
        return laplace, np.sqrt(normal)

    def critical(self, g: _Array, failing: float) -> tuple[_Array, _Array]:
        """Return the half-width of T at the estimate, and its standard deviation.

        The part that is sampling error is widened to Student's t, because its variance is estimated.
        """
        from scipy.special import stdtrit

        laplace, normal = self.terms(g, self.rest)
        noise = 2 * self.noise.scale**2 * (g**2).sum(axis=1)
        sampled = self.h * self.rest / self.free
        spread = np.sqrt(np.maximum(noise + sampled, 1e-300))
        wider = stdtrit(self.free, 1 - failing / 2) / stdtrit(1e9, 1 - failing / 2)
        share = sampled / spread**2
        return linear_half_width(failing, laplace, normal) * (1 + share * (wider - 1)), spread


def _directions(
    m: _Array, others: list[int], index: int, noise: LinearNoise, combinations: _Array
) -> tuple[_Array, _Array, NDArray[np.bool_]]:
    """Return x_j less the others, y less the others, and where the others' moments are clear of the noise."""
    r, q = m.shape[:2]
    inner = m[:, others][:, :, others]
    tau = np.sqrt(2.0) * noise.scale
    blur = tau * np.sqrt((combinations[others][:, others] ** 2).sum(axis=-1).max(initial=0.0))
    clear = np.linalg.eigvalsh(inner)[:, 0] > _CLEAR * blur
    inner = np.where(clear[:, None, None], inner, np.eye(len(others)))
    sides = np.stack([m[:, others, index], m[:, others, q - 1]], axis=-1)
    solved = np.linalg.solve(inner, sides)
    w, v0 = np.zeros((r, q)), np.zeros((r, q))
    w[:, index], v0[:, q - 1] = 1.0, 1.0
    w[:, others], v0[:, others] = -solved[:, :, 0], -solved[:, :, 1]
    return w, v0, clear


def _form(a: _Array, m: _Array, b: _Array) -> _Array:
    return np.asarray(np.einsum("ra,rab,rb->r", a, m, b, optimize=True))
