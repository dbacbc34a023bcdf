"""Gaussians in small samples: rare losses in closed form, common ones by Fourier inversion."""

import math

import mpmath as mp
import numpy as np
import pytest

from tacit.accounting import Cost
from tacit.accounting.numeric._arithmetic import NotConverged
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._gaussian import SampledGaussianMgf
from tacit.accounting.numeric._mgf import LossSum
from tacit.accounting.numeric._quadrature import gauss_rule
from tacit.accounting.numeric._small_samples import Reach, SmallSampleAccountant, TruncatedGaussianMgf

CUTS = [
    (1e-6, 1.0, False, 6.0, 2e4, 1.7e5),
    (1e-6, 1.0, True, 6.3, 2e4, 1.7e5),
    (1e-4, 1.6, False, 5.5, 60.0, 700.0),
    (1e-3, 0.5, False, 7.0, 400.0, 1300.0),
    (1e-3, 0.5, True, 7.0, 400.0, 1300.0),
]


@pytest.mark.parametrize(("q", "mu", "add", "cut", "c", "t"), CUTS)
def test_the_part_below_a_cut_against_quadrature(q, mu, add, cut, c, t):
    mp.mp.dps = 20
    rate, move = mp.mpf(q), mp.mpf(mu)

    def moment(z: mp.mpc) -> mp.mpc:
        power = -z if add else z + 1
        return mp.quad(
            lambda x: mp.npdf(x) * (1 - rate + rate * mp.exp(move * x - move**2 / 2)) ** power,
            mp.linspace(-12, cut, 40),
        )

    norm = moment(mp.mpf(c))
    truth = complex(moment(mp.mpc(c, t)) / norm)
    alone = TruncatedGaussianMgf(SampledGaussianMgf(q, mu, add), cut)
    shared = TruncatedGaussianMgf(SampledGaussianMgf(q, mu, not add), cut, Reach(c, 3 * c, t))
    shared.line(c, t, 1)
    for factor in (alone, shared.mirrored()):
        line = factor.line(c, t, 1)
        assert abs(float(mp.log(norm)) - line.log_norm) <= line.norm_error < 1e-11
        assert abs(truth - line.phi[1]) <= line.phi_error[1] < 1e-11
    assert shared.mirrored().kept is shared.kept


@pytest.mark.parametrize(("q", "mu", "add", "cut", "c", "t"), CUTS)
def test_decay_below_a_cut_is_never_overstated(q, mu, add, cut, c, t):
    factor = TruncatedGaussianMgf(SampledGaussianMgf(q, mu, add), cut)
    h, nodes = t / 10, 300
    ahead = np.maximum.accumulate(np.log(np.abs(factor.line(c, h, nodes).phi) + 1e-300)[::-1])[::-1]
    bound = factor.decay(c)
    for j in (1, 3, 10, 30, 100):
        assert bound(j * h) >= ahead[j] - 1e-9
        assert bound(j * h) <= bound((j - 1) * h)


def test_the_rule_of_gauss_has_the_nodes_of_the_legendre_polynomial():
    x, weights = gauss_rule(np.array([-1.0, 1.0]))
    there, masses = np.polynomial.legendre.leggauss(16)
    assert np.abs(x - there).max() < 1e-14
    assert np.abs(weights - masses).max() < 1e-14


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("q", "sigma", "times"),
    [(1e-3, 1.0, 100), (1e-3, 2.0, 1000), (1e-3, 0.7, 1000), (1e-4, 0.7, 1000), (1e-4, 2.0, 30_000)],
)
def test_it_agrees_with_fourier_inversion_of_the_whole_law(q, sigma, times, add):
    law = SampledGaussianMgf(q, 1 / sigma, add)
    whole, cut = FourierInversion(LossSum(((law, times),))), SmallSampleAccountant(law, times)
    for delta in (1e-4, 1e-6, 1e-8):
        one, other = whole.epsilon(delta), cut.epsilon(delta)
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)
        assert other.upper <= other.lower * (1 + 1e-5)
        assert cut.delta(other.upper).upper <= delta <= cut.delta(other.lower).lower
        here, there = whole.delta(other.upper), cut.delta(other.upper)
        assert max(here.lower, there.lower) <= min(here.upper, there.upper)


def convolved(q: float, mu: float, times: int, at: float, *, add: bool, points: int = 1 << 20) -> float:
    """Return delta by one FFT over losses that are split to a fine lattice, without any cut."""
    x, weights = gauss_rule(np.linspace(-9.0, 7.5, 2001))  # what lies beyond has a mass below 1e-12
    mass = weights * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    loss = np.log1p(q * np.expm1(mu * x - mu * mu / 2))
    mass, loss = (mass, -loss) if add else (mass * np.exp(loss), loss)
    g = 2 * (at + float(np.abs(loss).max()) + 30 * math.sqrt(times * float(mass @ loss**2))) / points
    place = np.floor(loss / g)
    above = loss / g - place
    where = place.astype(np.int64)
    grid = np.bincount(where % points, mass * (1 - above), points)
    grid += np.bincount((where + 1) % points, mass * above, points)
    total = np.fft.irfft(np.fft.rfft(grid) ** times, points)
    losses = g * np.where(np.arange(points) < points // 2, np.arange(points), np.arange(points) - points)
    return float((total * np.maximum(0, -np.expm1(at - losses))).sum())


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("q", "mu", "times"), [(1e-3, 0.8, 300), (1e-5, 0.6, 500), (1e-6, 1.0, 1000)])
def test_readings_against_convolution(q, mu, times, add):
    found = SmallSampleAccountant(SampledGaussianMgf(q, mu, add), times).epsilon(1e-6)
    assert found.upper <= found.lower * (1 + 1e-7)
    assert convolved(q, mu, times, found.upper, add=add) == pytest.approx(1e-6, rel=3e-5)


@pytest.mark.parametrize(
    ("q", "sigma", "times", "low", "high"),
    [
        (1e-6, 1.0, 1000, 1.57174257e-5, 1.57174260e-5),  # was 1.57236e-5
        (1e-6, 1.0, 10**5, 6.610622e-4, 6.610623e-4),  # was 6.61740e-4
        (1e-5, 0.6, 1000, 4.4700316e-3, 4.4700317e-3),  # was 4.47018e-3
        (1e-6, 0.6, 10**5, 2.7254449e-3, 2.7254455e-3),  # was 2.73390e-3
    ],
)
def test_tiny_samples_are_read_to_seven_digits(q, sigma, times, low, high):
    found = (times * Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)).bounds(delta=1e-5)
    assert low < found.lower <= found.upper < high
    assert found.upper <= found.lower * (1 + 2e-7)


def test_delta_at_epsilon_is_at_most_delta():
    for q, sigma, times in ((1e-6, 1.0, 1000), (1e-4, 0.7, 500), (1e-3, 2.0, 300)):
        cost = times * Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)
        for delta in (1e-4, 1e-6, 1e-9):
            assert cost.delta(epsilon=cost.epsilon(delta=delta)) <= delta


@pytest.mark.parametrize(
    ("q", "mu", "times", "delta"),
    [(1e-6, 1.0, 1000, 1e-5), (1e-5, 1.0, 10**5, 1e-5), (1e-4, 0.8, 3000, 1e-4), (1e-3, 0.5, 200, 1e-3)],
)
def test_the_line_of_one_direction_bounds_the_other_direction(q, mu, times, delta):
    removed, added = (
        SmallSampleAccountant(SampledGaussianMgf(q, mu, add=add), times) for add in (False, True)
    )
    e = removed.epsilon(delta).upper
    truth, upper = added.delta(e), removed.mirrored(e)
    assert truth.lower <= upper <= truth.upper * (1 + 1e-3)
    with pytest.raises(NotConverged):
        added.mirrored(e)
