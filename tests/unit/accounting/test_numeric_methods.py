"""The methods behind the certified bounds: decay, quadrature, cuts, transforms, finite pairs, formulae."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest

from support.losses import F, gauss, lap, sampled
from tacit.accounting._laws import (
    DiscreteLaplaceLoss,
    canonical,
)
from tacit.accounting.numeric import epsilon_bounds
from tacit.accounting.numeric._atoms import Atoms, connect_dots
from tacit.accounting.numeric._bounds import _PROPER, _epsilon, delta_of, mirrored_upper
from tacit.accounting.numeric._curve import closed_curve, curve
from tacit.accounting.numeric._factors import factors_of
from tacit.accounting.numeric._fourier import FourierInversion, evaluate
from tacit.accounting.numeric._gaussian import CommonPartMgf, SampledGaussianMgf, gaussian_delta
from tacit.accounting.numeric._mgf import LossSum
from tacit.accounting.numeric._quadrature import _spread_transform, dot, transform
from tacit.accounting.numeric._rare_losses import choose_cut, difference, visible_cuts

# --- bounds inside the engines ------------------------------------------------------------


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("q", "mu", "c"), [(0.01, 1.0, 6.0), (0.001, 1.6, 3.0), (0.3, 0.5, 2.0), (0.9, 3.0, 0.4)]
)
def test_decay_of_a_sampled_gaussian_is_never_overstated(q, mu, c, add):
    factor = SampledGaussianMgf(q, mu, add)
    h, nodes = 0.37, 1500
    line = factor.line(c, h, nodes)
    heights = np.log(np.abs(line.phi) + 1e-300)
    ahead = np.maximum.accumulate(heights[::-1])[::-1]  # the largest at or beyond each node
    bound = factor.decay(c)
    for j in (1, 5, 20, 100, 400, 1000):
        assert bound(j * h) >= ahead[j] - 1e-9
        assert bound(j * h) <= bound((j - 1) * h)


@pytest.mark.parametrize("add", [False, True])
def test_moments_of_a_sampled_gaussian_against_quadrature(add):
    q, mu = mp.mpf("0.05"), mp.mpf("1.3")
    for c, t in ((0.7, 0.0), (4.0, 0.0), (4.0, 3.0), (4.0, 40.0), (11.0, 9.0)):
        z = mp.mpc(c, t)
        p = -z if add else z + 1
        cuts = [-14, *[i * 0.5 for i in range(-14, 36)], 34]
        truth = mp.quad(
            lambda x, p=p: mp.npdf(x) * mp.exp(p * mp.log(1 - q + q * mp.exp(mu * x - mu**2 / 2))), cuts
        )
        line = SampledGaussianMgf(0.05, 1.3, add).line(c, t, 1)
        got = line.phi[1] * math.exp(line.log_norm) if t else math.exp(line.log_norm)
        size = math.exp(line.log_norm)
        error = (np.max(line.phi_error) + line.norm_error) * size
        assert abs(complex(truth) - got) <= error + 1e-13 * size
        assert error <= 1e-11 * size


@pytest.mark.parametrize(
    ("q", "sigma", "k", "e"),
    [
        ("0.001", "1.14", 200, 0.432),
        ("0.001", 1, 1000, 0.8),
        ("0.001", "1.4425", 30, 0.075),
        ("0.05", 2, 40, 0.8),
    ],
)
def test_taking_common_losses_out_of_the_sum_leaves_delta_where_it_was(q, sigma, k, e):
    loss_sum = factors_of(canonical([(sampled(q, gauss(sigma)), k)]), add=False).loss_sum
    whole = FourierInversion(loss_sum)
    plain = whole._line(whole._key(e))
    assert plain.cut is None
    one = plain.delta(e)
    cut = choose_cut(loss_sum.factors, e, plain.choice.c, plain.choice.period, math.log(one.upper))
    assert cut is not None
    two = evaluate(loss_sum, plain.choice, cut).delta(e)
    assert one.lower <= two.upper
    assert two.lower <= one.upper
    final = whole.delta(e)
    assert one.lower <= final.upper <= one.upper * (1 + 1e-9)
    assert final.lower <= final.upper <= final.lower * (1 + 2e-4)


@pytest.mark.parametrize(
    ("q", "sigma", "k", "e"),
    [("0.002", "1.3108", 1000, 0.448), ("0.001", 1, 1000, 0.8), ("0.001", "1.4425", 30, 0.075)],
)
def test_common_losses_on_a_line_of_their_own_leave_delta_where_it_was(q, sigma, k, e):
    loss_sum = factors_of(canonical([(sampled(q, gauss(sigma)), k)]), add=False).loss_sum
    whole = FourierInversion(loss_sum)
    plain, (law, _) = whole._line(whole._key(e)), loss_sum.factors[0]
    choice = whole._choose_line(whole._near(whole._key(e)[0]), e, plain.log_delta(e) - 3)
    one, found = plain.delta(e), []
    for cut in visible_cuts(loss_sum.factors, e, choice.c, choice.period):
        beside = FourierInversion(LossSum(((law.common(cut.level), k),)), whole=False)
        found.append(evaluate(loss_sum, choice, cut, beside).delta(e))
    assert len(found) >= 3
    assert max(one.lower, *(two.lower for two in found)) <= min(one.upper, *(two.upper for two in found))
    final = whole.delta(e)
    assert final.lower <= final.upper <= final.lower * (1 + 1e-5)
    assert all(final.lower <= two.upper and two.lower <= final.upper for two in (one, *found))


def test_what_no_single_line_shows_is_read_to_six_digits():
    parts = canonical([(sampled("0.002", gauss("1.3147150553582865")), 1000)])
    found = epsilon_bounds(parts, 1e-12)
    assert found.upper <= found.lower * (1 + 1e-6)


def test_the_common_part_of_a_sampled_gaussian_against_quadrature():
    mp.mp.dps = 20
    q, mu, level = mp.mpf("0.002"), mp.mpf("0.76"), 0.2
    factor = CommonPartMgf(SampledGaussianMgf(0.002, 0.76, False), level)
    x0, w = factor.whole.cut(level), mp.mpf("0.06")
    cuts = [-12, -4, 0, 2, x0 - 0.6, x0 - 0.2, x0, x0 + 0.2, x0 + 0.6, x0 + 2]

    def moment(z: mp.mpc) -> mp.mpc:
        return mp.quad(
            lambda x: (
                mp.npdf(x) * mp.ncdf((x0 - x) / w) * (1 - q + q * mp.exp(mu * x - mu**2 / 2)) ** (z + 1)
            ),
            cuts,
        )

    for c in (0.3, 12.0, 70.0):
        norm = moment(mp.mpf(c))
        for t in (0.0, 25.0):
            line = factor.line(c, t, 1 if t else 0)
            assert abs(float(mp.log(norm)) - line.log_norm) <= line.norm_error
            assert abs(complex(moment(mp.mpc(c, t)) / norm) - line.phi[-1]) <= float(np.max(line.phi_error))
            assert float(np.max(line.phi_error)) < 1e-10


@pytest.mark.parametrize(("q", "mu", "c", "level"), [(0.002, 0.76, 70.0, 0.2), (0.01, 1.5, 4.0, 1.0)])
def test_decay_of_a_common_part_is_never_overstated(q, mu, c, level):
    factor = CommonPartMgf(SampledGaussianMgf(q, mu, False), level)
    h, nodes = 0.9 / level, 1500
    ahead = np.maximum.accumulate(np.log(np.abs(factor.line(c, h, nodes).phi) + 1e-300)[::-1])[::-1]
    bound = factor.decay(c)
    for j in (1, 5, 20, 100, 400, 1000):
        assert bound(j * h) >= ahead[j] - 1e-9
        assert bound(j * h) <= bound((j - 1) * h)


def test_bulk_and_rest_of_a_sampled_gaussian_against_quadrature():
    mp.mp.dps = 20
    q, mu, c, level = mp.mpf("0.01"), mp.mpf("0.9"), 7.0, 0.1
    factor = SampledGaussianMgf(0.01, 0.9, False)
    x0, w = factor.cut(level), mp.mpf("0.06")
    cuts = [-12, -4, 0, 2, x0 - 0.5, x0, x0 + 0.5, 7, 12, 20]

    def moment(z: mp.mpc, side: int) -> mp.mpc:
        return mp.quad(
            lambda x: (
                mp.npdf(x)
                * mp.ncdf(side * (x - x0) / w)
                * (1 - q + q * mp.exp(mu * x - mu**2 / 2)) ** (z + 1)
            ),
            cuts,
        )

    for t in (0.0, 12.0):
        parts = factor.split(c, t, 1 if t else 0, level)
        size = math.exp(parts.log_norm)
        for side, phi, error in ((-1, parts.bulk, parts.bulk_error), (1, parts.rest, parts.rest_error)):
            truth = complex(moment(mp.mpc(c, t), side)) / size
            assert abs(truth - phi[-1]) <= float(np.max(error)) + 1e-13 * abs(truth)
    bulk = float(mp.log(moment(mp.mpc(30.0), -1).real))
    assert bulk <= factor.log_bulk(30.0, level) <= bulk + 1e-6


def test_powers_differ_without_cancellation():
    bulk, rest = (
        np.array([0.9 + 0.1j, 1 - 1e-9 + 0j, 1e-160 + 0j, 0.3j]),
        np.array([1e-9 + 2e-9j, 1e-9 + 0j, 0.5, 0.2]),
    )
    for b, r, got in zip(bulk, rest, difference(bulk, rest, 40), strict=True):
        truth = complex((mp.mpc(b) + mp.mpc(r)) ** 40 - mp.mpc(b) ** 40)
        assert abs(got - truth) <= 1e-12 * abs(truth)


def test_large_transforms_stay_within_their_error():
    generator = np.random.default_rng(3)
    losses, weights = generator.normal(size=3000) ** 3, generator.random(3000) ** 6
    weights /= weights.sum()
    slow, _ = transform(losses, weights, 0.02, 300)
    fast, error = _spread_transform(losses, weights, 0.02, 300)
    phases = 12e-16 * 0.02 * np.arange(301) * float(weights @ np.abs(losses))
    assert np.all(np.abs(slow - fast) <= error + phases + 4e-13)
    assert np.max(error) < 1e-9


def test_dots_lie_above_the_curve_and_touch_it():
    whole = closed_curve(lap("0.8"))
    grid = np.linspace(-0.8, 0.8 * (1 + 1e-12), 41)
    pair = connect_dots(whole, grid)
    for e in np.linspace(-1.2, 1.0, 301):
        value = pair.infinite + float(pair.masses @ np.maximum(0.0, -np.expm1(e - pair.losses)))
        truth = float(whole.upper(np.array([e]))[0])
        assert value >= truth * (1 - 1e-13)
        assert value <= truth + 1e-4
    assert pair.infinite == 0.0


def test_a_finite_law_is_its_own_dots():
    law = sampled("0.1", DiscreteLaplaceLoss(F(3), F(4)))
    whole = curve(law, add=False)
    ((factor, _),) = factors_of(canonical([(law, 2)]), add=False).loss_sum.factors
    assert isinstance(factor, Atoms)
    assert len(factor.losses) == 5
    for e in (0.0, 0.05, 0.1, 0.2):
        truth = float(whole.upper(np.array([e]))[0])
        assert float(factor.masses @ np.maximum(0, -np.expm1(e - factor.losses))) == pytest.approx(
            truth, rel=1e-9, abs=1e-15
        )


@pytest.mark.parametrize("mu", [1e-9, 1e-6, 9e-5, 1.1e-4, 0.01, 0.3, 1, 4, 30])
def test_gaussian_closed_form_holds_from_tiny_to_large_mu(mu):
    mp.mp.dps = 60
    generator = random.Random(int(mu * 1e10))
    for _ in range(40):
        e = mu * generator.uniform(0, 11) + generator.choice([0, mu * mu / 2])
        x, y = mp.mpf(e), mp.mpf(mu)
        truth = mp.ncdf(-x / y + y / 2) - mp.exp(x) * mp.ncdf(-x / y - y / 2)
        found = gaussian_delta(mu, e)
        assert found.lower <= truth <= found.upper
        assert found.upper <= truth * (1 + 1e-5)


def test_special_functions_err_no_more_than_granted():
    from scipy.special import erfcx, log_ndtr

    mp.mp.dps = 40
    generator = random.Random(11)
    for _ in range(1500):
        x = mp.mpf(generator.uniform(-4, 30))
        truth = mp.exp(x * x) * mp.erfc(x)
        assert abs(float(erfcx(float(x))) / truth - 1) < 2.0**-47
        y = mp.mpf(generator.uniform(-38, 6))
        truth = mp.log(mp.ncdf(y))
        assert abs(float(log_ndtr(float(y))) / truth - 1) < 2.0**-45


# --- one direction from the line of the other ---------------------------------------------


@pytest.mark.parametrize(
    ("parts", "delta", "close"),
    [
        ([(sampled("0.01", gauss(2)), 1000)], 1e-2, True),
        ([(sampled("0.05", gauss(1)), 100), (gauss(10), 3)], 1e-1, True),
        ([(sampled("0.01", lap(1)), 10**4)], 2e-1, True),
        ([(sampled("0.01", gauss(1)), 1000)], 1e-6, False),
    ],
)
def test_the_line_of_a_removed_unit_bounds_delta_of_an_added_one(parts, delta, close):
    factors_of.cache_clear()
    parts = canonical(parts)
    assert mirrored_upper(parts, 1.0) == math.inf  # nothing was read yet
    e = _epsilon(parts, delta, add=0, lower=False).upper
    truth, upper = delta_of(parts, e, add=1), mirrored_upper(parts, e)
    assert truth.lower <= upper
    assert (upper <= truth.upper * (1 + 1e-3)) == close


def test_a_line_says_nothing_about_the_other_direction_if_its_law_only_dominates():
    factors_of.cache_clear()
    parts = canonical(
        [(sampled("0.1", gauss(1), gauss(2)), 10), (sampled("0.2", DiscreteLaplaceLoss(F(2), F(3))), 40)]
    )
    epsilon_bounds(parts, 1e-3)
    assert not all(isinstance(law, _PROPER) for law, _ in factors_of(parts, add=0).loss_sum.factors)
    assert mirrored_upper(parts, 0.1) == math.inf


def test_long_scalar_products_agree_with_short_ones():
    one, other = np.random.default_rng(1).random((2, 20_000))
    assert dot(one, other) == pytest.approx(math.fsum(one * other), rel=1e-13)
    assert dot(one[:100], other[:100]) == pytest.approx(math.fsum(one[:100] * other[:100]), rel=1e-13)
