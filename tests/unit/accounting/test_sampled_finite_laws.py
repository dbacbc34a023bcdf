"""Samples of bounded laws: their Renyi divergences, and their sums at tiny deltas, against exact moments."""

from fractions import Fraction

import mpmath
import pytest
from mpmath import mp, mpf

from tacit.accounting import Cost


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(30):
        yield


def laplace_moment(e, g):
    """The mean under Q of a function of the loss of Laplace noise: two atoms and a density between them."""
    inside = mp.quad(lambda loss: g(loss) * mp.exp(-(loss + e) / 2) / 4, [-e, 0, e])
    return g(e) * mp.exp(-e) / 2 + g(-e) / 2 + inside


def coin_moment(e, g):
    yes = 1 / (1 + mp.exp(-e))
    return g(e) * (1 - yes) + g(-e) * yes


def discrete_moment(scale, s, g):
    r = mp.exp(-1 / mpf(scale))
    weights = {x: (1 - r) / (1 + r) * r ** abs(x - s) for x in range(1, s)}
    weights |= {0: r**s / (1 + r), s: 1 / (1 + r)}  # everything at or beyond the two centres
    return mp.fsum(w * g(mpf(s - 2 * x) / scale) for x, w in weights.items())


LAWS = {
    "laplace": (Cost.laplace(scale=1, sensitivity=1), lambda g: laplace_moment(mpf(1), g)),
    "pure": (Cost.pure(1), lambda g: coin_moment(mpf(1), g)),
    "coin": (Cost.randomized_response(2), lambda g: coin_moment(mpf(2), g)),
    "discrete laplace": (
        Cost.discrete_laplace(scale=4, sensitivity=6),
        lambda g: discrete_moment(4, 6, g),
    ),
}


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("q", ["0.3", "0.01", "0.001"])
def test_renyi_divergences_of_samples_are_finite_and_tight(kind, q):
    cost, moment = LAWS[kind]
    rate = mpf(q)
    for order in (1.5, 2, 3, 8, 64):
        grown = moment(lambda loss, a=order: (1 - rate + rate * mp.exp(loss)) ** a)
        shrunk = moment(lambda loss, a=order: (1 - rate + rate * mp.exp(loss)) ** (1 - a))
        truth = max(mp.log(grown), mp.log(shrunk)) / (order - 1)
        found = cost.sampled(float(q)).renyi_divergence(order)
        assert truth <= found <= truth * (1 + mpf("2e-5")), (kind, q, order)
        assert (7 * cost.sampled(float(q))).renyi_divergence(order) == pytest.approx(7 * found, rel=1e-9)


def test_many_samples_of_laplace_noise_stay_tight_at_tiny_deltas():
    """By inversion of the exact moments in 40 digits, delta(2.0163) = 1.001865e-12."""
    steps = 50_000 * Cost.laplace(scale=1, sensitivity=1.417).sampled(0.001)
    assert 2.0163 < steps.epsilon(delta=1e-12) < 2.0165
    assert 1.6872 < steps.epsilon(delta=1e-9) < 1.6874
    assert steps.delta(epsilon=2.0163) >= 1.00186506e-12


@pytest.mark.parametrize(("q", "sigma", "k", "delta"), [(1e-6, 0.8, 10**5, 1e-7), (1e-5, 1.2, 10, 1e-9)])
def test_rarely_sampled_gaussians_need_few_readings(q, sigma, k, delta, monkeypatch):
    from tacit.accounting import _worst_case

    asked = []
    read = _worst_case.numeric.delta_bounds
    monkeypatch.setattr(
        _worst_case.numeric, "delta_bounds", lambda parts, e: asked.append(e) or read(parts, e)
    )
    cost = k * Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)
    found = _worst_case.epsilon_bounds.__wrapped__(cost.parts, Fraction(repr(delta)))
    assert len(asked) <= 8  # it was 23
    assert read(cost.parts, found.upper).upper <= delta
