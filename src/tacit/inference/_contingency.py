"""Tests of noisy tables of counts: independence, fit, and G by the bootstrap of the mechanism.

tau^2 is the variance of the noise on a cell. z is linear in the cells (up to plugged-in shares), so its
covariance is that of sampling plus that of the noise (Kifer and Rogers 2017, without a public n).

P-values without a closed form use fixed public draws, the same for everyone. They are post-processing of a
release and add no randomness to it, so a public seed is right: whoever repeats the test gets the same
p-value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.inference._sampling_intervals import Floats
    from tacit.mechanisms import LinearNoise


#: How many draws a p-value takes: its own error is below 0.35 points near 5 %.
DRAWS = 4000
_SEED = 20261116
#: Rows per tau and cell below which independence is tested by the bootstrap of G.
ENOUGH = 10.0
_BOOTSTRAP = 999
_FOUR = 4  # cells of the smallest table: its z is one number with a known law
_HARDLY = 0.01  # a part of the variance that is noise up to which the chi-square law serves


def generator(*key: int) -> np.random.Generator:
    """Return a generator with a fixed public seed for each key."""
    return np.random.default_rng([_SEED, *key])


def draws_of_noise(
    draw: np.random.Generator, noise: LinearNoise, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return draws from the continuous law of the noise on one released number."""
    draws = noise.normal * draw.standard_normal(shape) if noise.normal else np.zeros(shape)
    for scale in noise.laplace:
        draws += draw.laplace(0.0, scale, shape)
    return draws


def coupled_noise(
    draw: np.random.Generator, noise: LinearNoise, shape: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return draws of the noise, and normal draws of the same variance that rise and fall with them."""
    from scipy.special import ndtri

    gauss = noise.normal * draw.standard_normal(shape) if noise.normal else np.zeros(shape)
    laplace, normal = gauss.copy(), gauss.copy()
    for scale in noise.laplace:
        u = draw.random(shape)
        laplace -= scale * np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5))
        normal += np.sqrt(2.0) * scale * ndtri(u)
    return laplace, normal


def share_above(observed: NDArray[np.float64], simulated: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the p-value of each statistic, given draws along the last axis; the statistic counts as one."""
    return np.asarray((1 + (simulated >= observed[..., None]).sum(axis=-1)) / (1 + simulated.shape[-1]))


def corrected(
    p: NDArray[np.float64],
    observed: NDArray[np.float64],
    simulated: NDArray[np.float64],
    normal: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Correct the p-value of a normal law by draws of the true law and coupled draws of the normal one.

    The two shares of draws above the statistic have nearly the same error, which cancels. A correction never
    takes a p-value below half of the normal law's, since draws say little about far tails.
    """
    at = observed[..., None]
    shift = (simulated >= at).mean(axis=-1) - (normal >= at).mean(axis=-1)
    return np.asarray(np.clip(p + shift, p / 2, 1.0))


def _helmert(size: int) -> Floats:
    """Return size - 1 orthonormal rows, each of which adds up to 0."""
    rows = np.zeros((size - 1, size))
    for i in range(1, size):
        rows[i - 1, :i] = 1.0
        rows[i - 1, i] = -i
        rows[i - 1] /= np.sqrt(i * (i + 1))
    return rows


def _shares(sums: Floats, cells: int, noise: LinearNoise) -> Floats:
    """Return the shares of noisy sums of so many cells; sums that noise hides are lifted first."""
    floor = np.sqrt(noise.variance * cells) / 2 + 0.5
    lifted = np.maximum(sums, floor)
    return np.asarray(lifted / lifted.sum(axis=-1, keepdims=True))


def _null(a: Floats) -> tuple[Floats, Floats]:
    """Return H D_a H' and H P_a for shares a: the covariance of sampling, and what noise does to z."""
    h = _helmert(a.shape[-1])
    spread = np.einsum("ki,bi,li->bkl", h, a, h) - (a @ h.T)[:, :, None] * (a @ h.T)[:, None, :]
    through = h[None, :, :] - (a @ h.T)[:, :, None]
    return spread, through


def _kron(a: Floats, second: Floats) -> Floats:
    product = np.einsum("bij,bkl->bikjl", a, second)
    return np.asarray(product).reshape(len(a), a.shape[1] * second.shape[1], a.shape[2] * second.shape[2])


def _independence(tables: Floats, noise: LinearNoise) -> tuple[Floats, Floats, Floats]:
    """Return z, the covariance of sampling, and the matrix that takes the noise of the cells to z."""
    _, r, c = tables.shape
    n = np.maximum(tables.sum(axis=(1, 2)), np.sqrt(noise.variance * r * c) / 2 + 0.5)
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    rest = tables - rows[:, :, None] * columns[:, None, :] / n[:, None, None]
    z = (_helmert(r) @ rest @ _helmert(c).T).reshape(len(tables), -1)
    spread_a, through_a = _null(_shares(rows, c, noise))
    spread_b, through_b = _null(_shares(columns, r, noise))
    return z, n[:, None, None] * _kron(spread_a, spread_b), _kron(through_a, through_b)


def _fit(counts: Floats, expected: Floats, noise: LinearNoise) -> tuple[Floats, Floats, Floats]:
    n = np.maximum(counts.sum(axis=-1), np.sqrt(noise.variance * counts.shape[-1]) / 2 + 0.5)
    spread, through = _null(np.broadcast_to(expected, counts.shape))
    z = (counts - n[:, None] * expected) @ _helmert(counts.shape[-1]).T
    return z, n[:, None, None] * spread, through


def chi_square_p(z: Floats, sampling: Floats, through: Floats, noise: LinearNoise) -> tuple[Floats, Floats]:
    """Return z' cov^-1 z and its p-value by the chi-square law."""
    from scipy.special import chdtrc

    cov = sampling + noise.variance * through @ through.transpose(0, 2, 1)
    q = (z * np.linalg.solve(cov, z[..., None])[..., 0]).sum(axis=-1)
    return q, np.asarray(chdtrc(z.shape[-1], q))


def _drawn_p(
    z: Floats, sampling: Floats, through: Floats, noise: LinearNoise, draws: int
) -> tuple[Floats, Floats]:
    """Return the statistic and the p-value: chi-square, corrected by draws where Laplace noise has a part.

    One number has its exact law in place of draws; there the larger of the two p-values counts.
    """
    q, p = chi_square_p(z, sampling, through, noise)
    noisy = noise.variance * (through**2).sum(axis=(1, 2))
    part = noisy / (noisy + np.trace(sampling, axis1=1, axis2=2))
    if not noise.laplace:
        return q, p
    if z.shape[-1] == 1:
        exact = noise.tail(z[:, 0], through[:, 0, :], np.sqrt(sampling[:, 0, 0]))
        return q, np.maximum(p, exact)
    draw = generator(2, z.shape[-1], through.shape[-1])
    normal = draw.standard_normal((draws, z.shape[-1]))
    noises = coupled_noise(draw, noise, (draws, through.shape[-1]))
    for i in np.flatnonzero(part > _HARDLY):
        cov = sampling[i] + noise.variance * through[i] @ through[i].T
        root = np.linalg.cholesky(sampling[i] + 1e-12 * np.trace(sampling[i]) * np.eye(len(sampling[i])))
        simulated = [normal @ root.T + one @ through[i].T for one in noises]
        lengths = [(one * np.linalg.solve(cov, one.T).T).sum(axis=-1) for one in simulated]
        p[i] = corrected(p[i], q[i], *lengths)
    return q, p


def independence_p(tables: Floats, noise: LinearNoise, draws: int = DRAWS) -> tuple[Floats, Floats]:
    """Return the statistic and the p-value of independence, for tables of the shape (tests, rows, columns).

    Below 10 rows per tau and cell, G and the bootstrap of the mechanism decide; above, z.
    """
    q, p = _drawn_p(*_independence(tables, noise), noise, draws)
    few = tables.sum(axis=(1, 2)) < ENOUGH * np.sqrt(noise.variance) * tables[0].size
    if few.any() and tables[0].size > _FOUR:
        q[few], p[few] = g_p(tables[few], noise)
    return q, p


def fit_p(counts: Floats, expected: Floats, noise: LinearNoise, draws: int = DRAWS) -> tuple[Floats, Floats]:
    """Return the statistic and the p-value that counts (tests, cells) follow the expected shares."""
    return _drawn_p(*_fit(counts, expected, noise), noise, draws)


def g_p(tables: Floats, noise: LinearNoise, draws: int = _BOOTSTRAP) -> tuple[Floats, Floats]:
    """Return G and its p-value by the bootstrap of the mechanism (Gaboardi and others 2016).

    Tables are drawn with the fitted shares and the noisy number of rows, get noise of the same law, and G is
    computed again, exactly as for the released table. In a table of four cells G and z order tables alike,
    and the law of z is known, while drawn tables would have shares that noise may hide: z gives the p-value.
    """
    _, r, c = tables.shape
    observed, p = _g(tables, noise), np.empty(len(tables))
    if r * c == _FOUR:
        return observed, _drawn_p(*_independence(tables, noise), noise, draws)[1]
    a, b = _shares(tables.sum(axis=2), c, noise), _shares(tables.sum(axis=1), r, noise)
    rows = np.maximum(np.round(tables.sum(axis=(1, 2))), 1).astype(np.int64)
    for i in range(len(tables)):
        draw = generator(3, r, c)
        cells = (a[i][:, None] * b[i][None, :]).ravel()
        exact = draw.multinomial(rows[i], cells / cells.sum(), size=draws)
        again = (exact + draws_of_noise(draw, noise, exact.shape)).reshape(draws, r, c)
        p[i] = share_above(observed[i : i + 1], _g(again, noise)[None, :])[0]
    return observed, p


def _g(tables: Floats, noise: LinearNoise) -> Floats:
    """Return 2 sum x ln(x / expected), with cells lifted to half a deviation of the noise."""
    lifted = np.maximum(tables, np.sqrt(noise.variance) / 2 + 0.5)
    n = lifted.sum(axis=(1, 2), keepdims=True)
    expected = lifted.sum(axis=2, keepdims=True) * lifted.sum(axis=1, keepdims=True) / n
    return np.asarray(2 * (lifted * np.log(lifted / expected)).sum(axis=(1, 2)))
