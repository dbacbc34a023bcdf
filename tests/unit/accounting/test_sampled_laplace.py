"""Sampled Laplace noise: its moments against quadrature, its readings against convolution."""

import math

import mpmath as mp
import numpy as np
import pytest

from tacit.accounting import Cost
from tacit.accounting.numeric._sampled_laplace import SampledLaplaceMgf

LAWS = [
    (1e-3, 1.0, False, 300.0, 4e3),
    (1e-3, 1.0, True, 300.0, 4e3),
    (0.3, 5.0, False, 3.0, 60.0),
    (0.3, 5.0, True, 3.0, 60.0),
    (0.02, 0.1, False, 200.0, 9e3),
]


@pytest.mark.parametrize(("q", "e", "add", "c", "t"), LAWS)
def test_moments_against_quadrature(q, e, add, c, t):
    mp.mp.dps = 20
    rate, top = mp.mpf(q), mp.mpf(e)

    def moment(z: mp.mpc) -> mp.mpc:
        power = -z if add else z + 1
        ends = ((-top, mp.mpf(1) / 2), (top, mp.exp(-top) / 2))
        atoms = sum(mass * (1 - rate + rate * mp.exp(x)) ** power for x, mass in ends)
        return atoms + mp.quad(
            lambda x: mp.exp(-(x + top) / 2) / 4 * (1 - rate + rate * mp.exp(x)) ** power,
            mp.linspace(-top, top, 40),
        )

    line = SampledLaplaceMgf(q, e, add).line(c, t, 1)
    norm = moment(mp.mpf(c))
    assert abs(float(mp.log(norm)) - line.log_norm) <= line.norm_error < 1e-10
    assert abs(complex(moment(mp.mpc(c, t)) / norm) - line.phi[1]) <= line.phi_error[1] < 1e-9


@pytest.mark.parametrize(("q", "e", "add", "c", "t"), LAWS)
def test_decay_is_never_overstated(q, e, add, c, t):
    factor = SampledLaplaceMgf(q, e, add)
    h, nodes = t / 60, 60
    ahead = np.maximum.accumulate(np.log(np.abs(factor.line(c, h, nodes).phi) + 1e-300)[::-1])[::-1]
    bound = factor.decay(c)
    for j in (1, 3, 10, 30, 50):
        assert bound(j * h) >= ahead[j] - 1e-9
        assert bound(j * h) <= bound((j - 1) * h)


def convolved(q: float, e: float, times: int, at: float, *, add: bool, points: int = 1 << 20) -> float:
    """Return delta by one FFT over losses that are split to a fine lattice."""
    inner = (np.arange(20_000) + 0.5) / 20_000 * 2 * e - e
    x = np.concatenate([[-e], inner, [e]])
    mass = np.concatenate([[0.5], np.exp(-(inner + e) / 2) / 4 * (2 * e / 20_000), [math.exp(-e) / 2]])
    loss = np.log1p(q * np.expm1(x))
    mass, loss = (mass, -loss) if add else (mass * np.exp(loss), loss)
    g = 2 * (at + 30 * math.sqrt(times * float(mass @ loss**2))) / points
    place = np.floor(loss / g)
    above = loss / g - place
    where = place.astype(np.int64)
    grid = np.bincount(where % points, mass * (1 - above), points)
    grid += np.bincount((where + 1) % points, mass * above, points)
    total = np.fft.irfft(np.fft.rfft(grid) ** times, points)
    losses = g * np.where(np.arange(points) < points // 2, np.arange(points), np.arange(points) - points)
    return float((total * np.maximum(0, -np.expm1(at - losses))).sum())


@pytest.mark.parametrize(("q", "e", "times"), [(1e-3, 1.0, 1000), (0.01, 0.5, 200), (0.1, 2.0, 100)])
def test_readings_against_convolution(q, e, times):
    cost = times * Cost.laplace(scale=1, sensitivity=e).sampled(q)
    found = cost.bounds(delta=1e-5)
    assert found.upper <= found.lower * (1 + 1e-8)
    worst = max(convolved(q, e, times, found.upper, add=add) for add in (False, True))
    assert worst == pytest.approx(1e-5, rel=1e-4)
