"""The engines attacked: brute force, other roads, other engines, hostile sizes."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from tacit.accounting._laws import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GDPLoss,
    LaplaceLoss,
    PureLoss,
    RandomizedResponseLoss,
    RenyiLoss,
    SampledLoss,
    ShuffledLoss,
    ZCDPLoss,
    canonical,
)
from tacit.accounting.numeric import _choice
from tacit.accounting.numeric._bounds import (
    Bracket,
    _apart,
    delta_bounds,
    epsilon_bounds,
    loss_exceeds,
    renyi_divergence,
)
from tacit.accounting.numeric._bracket import NotConverged, settle
from tacit.accounting.numeric._curve import closed_curve, dots
from tacit.accounting.numeric._factors import content, curve
from tacit.accounting.numeric._fourier import Inversion
from tacit.accounting.numeric._fourier_line import evaluate
from tacit.accounting.numeric._gaussian import gaussian_delta, gaussian_epsilon
from tacit.accounting.numeric._lattice import lattice_cost
from tacit.accounting.numeric._loss_sum import Mix
from tacit.accounting.numeric._mgf import Atoms
from tacit.accounting.numeric._rare_losses import choose_cut, difference, visible_cuts
from tacit.accounting.numeric._sampled_gaussian import CommonPart, SampledGaussian
from tacit.accounting.numeric._transform import _spread_transform, transform

F = Fraction


def gauss(sigma: object) -> GaussianLoss:
    return GaussianLoss(F(str(sigma)), F(1))


def lap(e: object) -> LaplaceLoss:
    return LaplaceLoss(F(1), F(str(e)))


def coin(e: object) -> RandomizedResponseLoss:
    return RandomizedResponseLoss(F(str(e)))


def sampled(q: object, *parts: object) -> SampledLoss:
    return SampledLoss(F(str(q)), tuple((law, 1) for law in parts))


MIXED = canonical(
    [(lap("0.1"), 50), (gauss(10), 50), (coin("0.2"), 20), (DiscreteGaussianLoss(F(8), F(1)), 30)]
)


# --- known values ------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "delta", "truth"),
    [
        ([(gauss(25), 800)], 1e-7, 6.148799),
        ([(ZCDPLoss(F(800, 1250)), 1)], 1e-7, 6.513957),
        ([(gauss(5), 100)], 1e-5, 9.997256),
        ([(ZCDPLoss(F(2)), 1)], 1e-5, 10.72482),
        ([(gauss(10), 1)], 1e-5, 0.340669),
        ([(lap("0.1"), 100)], 1e-5, 4.220347),
        ([(lap("0.5"), 100)], 1e-5, 28.501646),
        ([(lap(1), 1000)], 1e-5, 474.302447),
        ([(sampled("0.01", gauss(1)), 1000)], 1e-5, 1.82824),
        ([(sampled("0.01", gauss(1)), 1000)], 1e-6, 2.12452),
        ([(sampled("0.001", gauss("0.8")), 100000)], 1e-5, 2.57496),
        (MIXED, 1e-6, 7.671279),
    ],
)
def test_check_values_come_out_within_a_hundred_thousandth(parts, delta, truth):
    assert epsilon_bounds(canonical(parts), delta).upper == pytest.approx(truth, rel=1e-5)


@pytest.mark.parametrize("delta", [1e-15, 1e-20, 1e-30])
@pytest.mark.parametrize(
    "parts",
    [
        [(gauss(5), 100)],
        [(lap("0.1"), 100)],
        [(lap("0.5"), 100)],
        [(coin("0.1"), 100)],
        [(sampled("0.01", gauss(1)), 1000)],
        [(DiscreteGaussianLoss(F(8), F(1)), 30)],
        MIXED,
    ],
)
def test_tiny_deltas_give_tight_brackets(parts, delta):
    found = epsilon_bounds(canonical(parts), delta)
    assert 0 < found.lower <= found.upper < math.inf
    assert found.upper <= found.lower * (1 + 1e-5)


# --- brute force ------------------------------------------------------------


def hockey(pairs: list[tuple[float, float]], e: float) -> float:
    """Return delta of a finite pair given as (P-mass, Q-mass)."""
    return math.fsum(max(0.0, p - math.exp(e) * q) for p, q in pairs)


def product(pairs: list[tuple[float, float]], k: int) -> list[tuple[float, float]]:
    total = [(1.0, 1.0)]
    for _ in range(k):
        total = [(p * r, q * s) for (p, q), (r, s) in itertools.product(total, pairs)]
    return total


@pytest.mark.parametrize("e", [0.0, 0.05, 0.2, 0.5])
def test_sampled_coins_are_enumerated(e):
    heads, q = 1 / (1 + math.exp(-1.0)), 0.3
    inner = [(heads, 1 - heads), (1 - heads, heads)]
    remove = [((1 - q) * s + q * p, s) for p, s in inner]
    add = [(s, p) for p, s in remove]
    truth = max(hockey(product(remove, 6), e), hockey(product(add, 6), e))
    found = delta_bounds(canonical([(sampled(q, PureLoss(F(1))), 6)]), e)
    assert found.lower <= truth * (1 + 1e-9)
    assert truth <= found.upper * (1 + 1e-12)
    assert found.upper <= truth * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("e", [0.0, 0.1, 0.4])
def test_a_sample_of_a_sum_draws_once_for_all_its_parts(e):
    q, heads, tails = 0.25, 1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(-0.8))
    one = [(heads, 1 - heads), (1 - heads, heads)]
    two = [(tails, 1 - tails), (1 - tails, tails)]
    inner = [(p * r, s * t) for (p, s), (r, t) in itertools.product(one, two)]
    remove = [((1 - q) * s + q * p, s) for p, s in inner]
    add = [(s, p) for p, s in remove]
    law = sampled(q, coin("0.5"), coin("0.8"))
    once = max(hockey(remove, e), hockey(add, e))
    assert delta_bounds(canonical([(law, 1)]), e).upper == pytest.approx(once, rel=1e-9, abs=1e-15)
    thrice = max(hockey(product(remove, 3), e), hockey(product(add, 3), e))
    found = delta_bounds(canonical([(law, 3)]), e)
    assert thrice <= found.upper * (1 + 1e-12)
    assert found.upper <= thrice * (1 + 1e-4)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("e0", ["0.3", "1", "2.5"])
def test_shuffled_reports_are_enumerated(n, e0):
    hide, p = math.exp(-float(e0)), 1 / (1 + math.exp(-float(e0)))
    pairs: dict[tuple[int, int], list[float]] = {}
    for c in range(n):
        for a in range(c + 1):
            chance = math.comb(n - 1, c) * hide**c * (1 - hide) ** (n - 1 - c) * math.comb(c, a) * 0.5**c
            for d, weight in ((1, p), (0, 1 - p)):
                pairs.setdefault((a + d, c - a + 1 - d), [0.0, 0.0])[0] += chance * weight
                pairs.setdefault((a + 1 - d, c - a + d), [0.0, 0.0])[1] += chance * weight
    found = [(x, y) for x, y in pairs.values()]
    for e in (0.0, 0.1, 0.5, 1.0, 2.0):
        truth = hockey(found, e)
        bounds = delta_bounds(canonical([(ShuffledLoss(n, F(e0)), 1)]), e)
        assert bounds.lower <= truth + 1e-15
        assert truth <= bounds.upper + 1e-15
        assert bounds.upper <= truth * (1 + 1e-8) + 1e-15


def test_bounded_range_covers_adaptive_choices_of_the_range():
    """Each step's losses are t or t - 1, and t may depend on what was seen."""
    e0, random_ = 1.0, random.Random(5)

    def step(t: float) -> list[tuple[float, float]]:
        p = (math.exp(e0) - math.exp(t)) / (math.exp(e0) - 1)
        return [(p, p * math.exp(-t)), (1 - p, (1 - p) * math.exp(e0 - t))]

    def adaptive(depth: int) -> list[tuple[float, float]]:
        if depth == 0:
            return [(1.0, 1.0)]
        return [(p * r, q * s) for p, q in step(random_.uniform(0.01, 0.99)) for r, s in adaptive(depth - 1)]

    bounds = {e: delta_bounds(canonical([(BoundedRangeLoss(F(1)), 4)]), e) for e in (0.0, 0.5, 1.0, 2.0, 3.0)}
    for _ in range(300):
        pairs = adaptive(4)
        for e, found in bounds.items():
            assert hockey(pairs, e) <= found.upper
    for e, found in bounds.items():
        assert found.lower <= max(hockey(product(step(0.5), 4), e), 1e-300) * (1 + 1e-9)


def test_approximate_parts_are_enumerated():
    d, e0 = 0.01, 0.5
    heads = 1 / (1 + math.exp(-e0))
    pair = [
        (d, 0.0),
        ((1 - d) * heads, (1 - d) * (1 - heads)),
        ((1 - d) * (1 - heads), (1 - d) * heads),
        (0.0, d),
    ]
    for e in (0.0, 0.3, 1.0, 1.5):
        found = delta_bounds(canonical([(ApproximateLoss(F("0.5"), F("0.01")), 3)]), e)
        truth = hockey(product(pair, 3), e)
        assert found.lower <= truth <= found.upper * (1 + 1e-14)
        assert found.upper == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("also", ["", "a coin", pytest.param("a sample", marks=pytest.mark.long)])
def test_infinite_loss_inside_a_sample_is_enumerated(k, also):
    q, d, e0 = 0.25, 0.01, 0.5

    def coins(e: float) -> list[tuple[float, float]]:
        heads = 1 / (1 + math.exp(-e))
        return [(heads, 1 - heads), (1 - heads, heads)]

    def mixed(pairs: list[tuple[float, float]], q: float) -> list[tuple[float, float]]:
        return [((1 - q) * s + q * p, s) for p, s in pairs]

    inner = [(d, 0.0), *(((1 - d) * p, (1 - d) * s) for p, s in coins(e0)), (0.0, d)]
    laws = [ApproximateLoss(F("0.5"), F("0.01"))]
    if also == "a coin":
        inner = [(p * r, s * t) for (p, s), (r, t) in itertools.product(inner, coins(0.8))]
        laws.append(coin("0.8"))
    if also == "a sample":  # in a sum, so that the two samples do not become one
        inner = [(p * r, s * t) for (p, s), (r, t) in itertools.product(mixed(inner, 0.5), coins(0.8))]
        laws = [sampled("0.5", *laws), coin("0.8")]
    remove = product(mixed(inner, q), k)
    add = [(s, p) for p, s in remove]
    parts = canonical([(sampled(q, *laws), k)])
    leak = 1 - (1 - q * d * (0.5 if also == "a sample" else 1)) ** k
    for e in (0.0, 0.05, 0.2, 0.6, 2.0, 20.0):
        found, truth = delta_bounds(parts, e), max(hockey(remove, e), hockey(add, e))
        assert found.lower <= truth * (1 + 1e-9)
        assert truth <= found.upper * (1 + 1e-12)
        assert found.upper <= (truth * (1 + k * d) + leak) * (
            1 + 1e-4
        )  # the pair that dominates is that close
    assert epsilon_bounds(parts, 0.99 * leak) == Bracket(math.inf, math.inf, "closed form")
    assert epsilon_bounds(parts, 1.1 * leak).upper < math.inf
    assert renyi_divergence(parts, 2.0) == math.inf


def test_infinite_loss_is_split_off_through_samples_of_samples():
    inner = sampled("0.5", ApproximateLoss(F("0.5"), F("0.01")), coin(1))
    parts = canonical([(sampled("0.25", inner, lap(1)), 2), (ApproximateLoss(F(0), F("0.1")), 1)])
    rest, least, most, good = _apart(parts, add=False)
    assert rest == canonical([(sampled("0.25", sampled("0.5", PureLoss(F("0.5")), coin(1)), lap(1)), 2)])
    assert least <= 1 - 0.9 * (1 - 0.25 * 0.5 * 0.01) ** 2 <= most
    assert most - least < 1e-12
    assert good == pytest.approx(0.9 * 0.99**2, rel=1e-12)
    assert _apart(parts, add=True).least == pytest.approx(0.1, rel=1e-12)  # added, a sample leaks nothing


@pytest.mark.parametrize("mu", [35, 60, 2000])
@pytest.mark.parametrize("with_", [(), (gauss(1),), (coin("0.5"), lap("0.3"))])
def test_a_sample_that_shows_all_it_draws_is_never_read_as_nothing(mu, with_):
    q, k = 0.1, 2
    parts = canonical([(sampled(q, GDPLoss(F(mu))), k), *((law, 1) for law in with_)])
    least = (1 - (1 - q) ** k) * (1 - 1e-6)  # drawn once, a unit is seen
    assert delta_bounds(parts, 4.75).upper >= least
    assert epsilon_bounds(parts, 0.9 * least).upper > 20


def test_losses_beyond_the_doubles_are_not_discounted_twice():
    far = SampledLoss(F("0.8421"), ((DiscreteGaussianLoss(F("0.2512"), F(9)), 1),))
    for e in (0.1, 0.5245, 1.5):
        alone = delta_bounds(canonical([(far, 1)]), e)
        whole = delta_bounds(canonical([(far, 1), (lap("0.0003"), 2)]), e)
        assert alone.lower <= whole.upper


@pytest.mark.parametrize(
    "parts",
    [
        [(GDPLoss(F("0.007991")), 1), (sampled("0.08305", PureLoss(F("0.6098"))), 1)],
        [(GDPLoss(F("393.8")), 10**4), (sampled("0.00000199", GDPLoss(F("12.7"))), 1)],
        [
            (BoundedRangeLoss(F("0.01746")), 1),
            (sampled("0.0001438", DiscreteGaussianLoss(F("16.56"), F(7))), 1),
        ],
        [(BoundedRangeLoss(F("0.000957")), 10), (sampled("0.00002148", GDPLoss(F("0.1037"))), 1)],
        [(BoundedRangeLoss(F("72.07")), 1), (sampled("0.01056", BoundedRangeLoss(F("6.531"))), 1)],
    ],
)
def test_what_an_engine_cannot_split_is_left_to_the_next(parts):
    parts = canonical(parts)
    for e in (0.05, 3.5, 40.0):
        found = delta_bounds(parts, e)
        assert max(delta_bounds(canonical([part]), e).lower for part in parts) <= found.upper <= 1
    for delta in (1e-2, 1.5e-7, 1e-12):
        low, high, _ = epsilon_bounds(parts, delta)
        assert 0 <= low <= high


def test_losses_whose_exponential_overflows_are_not_dropped():
    with pytest.raises(NotConverged):
        dots(closed_curve(lap(1500)), np.linspace(-1500.0, 1500.0, 301))
    parts = canonical([(lap("1541.9"), 1), (DiscreteLaplaceLoss(F("42.4"), F(17)), 1)])
    for e in (0.03586, 5.0, 900.0):
        assert delta_bounds(canonical([(lap("1541.9"), 1)]), e).lower <= delta_bounds(parts, e).upper


def test_a_value_that_is_not_a_number_proves_nothing():
    found = settle(lambda e: Bracket(math.nan, math.nan if e < 3 else 0.0, ""), 1.0, 1e-6)
    assert found.upper >= 3
    assert found.lower == 0


@pytest.mark.parametrize("k", [2, 7, 40])
def test_few_sampled_steps_agree_between_engines(k):
    parts = canonical([(sampled("0.2", gauss("1.5")), k)])
    for add in (False, True):
        tight = None
        try:
            tight = Inversion(content(parts, add=add).mix)
            values = [tight.delta(e) for e in (0.2, 0.8)]
        except NotConverged:
            continue
        rough = _choice._Dithered(content(parts, add=add, finite=True).mix)
        for e, value in zip((0.2, 0.8), values, strict=True):
            other = rough.delta(e)
            assert value.lower <= other.upper
            assert other.upper <= value.upper * 1.001


# --- bounds inside the engines ------------------------------------------------------------


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("q", "mu", "c"), [(0.01, 1.0, 6.0), (0.001, 1.6, 3.0), (0.3, 0.5, 2.0), (0.9, 3.0, 0.4)]
)
def test_decay_of_a_sampled_gaussian_is_never_overstated(q, mu, c, add):
    factor = SampledGaussian(q, mu, add)
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
        line = SampledGaussian(0.05, 1.3, add).line(c, t, 1)
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
    mix = content(canonical([(sampled(q, gauss(sigma)), k)]), add=False).mix
    whole = Inversion(mix)
    plain = whole._line(whole._key(e))
    assert plain.cut is None
    one = plain.delta(e)
    cut = choose_cut(mix.factors, e, plain.plan.c, plain.plan.period, math.log(one.upper))
    assert cut is not None
    two = evaluate(mix, plain.plan, cut).delta(e)
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
    mix = content(canonical([(sampled(q, gauss(sigma)), k)]), add=False).mix
    whole = Inversion(mix)
    plain, (law, _) = whole._line(whole._key(e)), mix.factors[0]
    plan = whole._plan(whole._near(whole._key(e)[0]), e, plain.log_delta(e) - 3)
    one, found = plain.delta(e), []
    for cut in visible_cuts(mix.factors, e, plan.c, plan.period):
        beside = Inversion(Mix(((law.common(cut.level), k),)), whole=False)
        found.append(evaluate(mix, plan, cut, beside).delta(e))
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
    factor = CommonPart(SampledGaussian(0.002, 0.76, False), level)
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
    factor = CommonPart(SampledGaussian(q, mu, False), level)
    h, nodes = 0.9 / level, 1500
    ahead = np.maximum.accumulate(np.log(np.abs(factor.line(c, h, nodes).phi) + 1e-300)[::-1])[::-1]
    bound = factor.decay(c)
    for j in (1, 5, 20, 100, 400, 1000):
        assert bound(j * h) >= ahead[j] - 1e-9
        assert bound(j * h) <= bound((j - 1) * h)


def test_bulk_and_rest_of_a_sampled_gaussian_against_quadrature():
    mp.mp.dps = 20
    q, mu, c, level = mp.mpf("0.01"), mp.mpf("0.9"), 7.0, 0.1
    factor = SampledGaussian(0.01, 0.9, False)
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
    pair = dots(whole, grid)
    for e in np.linspace(-1.2, 1.0, 301):
        value = pair.infinite + float(pair.masses @ np.maximum(0.0, -np.expm1(e - pair.losses)))
        truth = float(whole.upper(np.array([e]))[0])
        assert value >= truth * (1 - 1e-13)
        assert value <= truth + 1e-4
    assert pair.infinite == 0.0


def test_a_finite_law_is_its_own_dots():
    law = sampled("0.1", DiscreteLaplaceLoss(F(3), F(4)))
    whole = curve(law, add=False)
    ((factor, _),) = content(canonical([(law, 2)]), add=False).mix.factors
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


# --- Renyi, tails, fallbacks ------------------------------------------------------------


@pytest.mark.parametrize("order", [1.5, 2, 8, 40.5])
def test_renyi_divergences_against_quadrature(order):
    mp.mp.dps = 30
    a = mp.mpf(order)
    e = mp.mpf("0.7")
    laplace = mp.log((a / (2 * a - 1)) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (
        a - 1
    )
    found = renyi_divergence(canonical([(lap("0.7"), 3)]), order)
    assert 3 * laplace <= found <= 3 * laplace * (1 + 1e-9)
    found = renyi_divergence(canonical([(gauss(2), 4), (ZCDPLoss(F(1, 10)), 2)]), order)
    assert a * (mp.mpf("0.5") + mp.mpf("0.2")) <= found <= a * mp.mpf("0.7") * (1 + 1e-9)
    q, mu = mp.mpf("0.05"), mp.mpf("0.5")
    cuts = [*range(-14, 36)]
    moment = mp.quad(lambda x: mp.npdf(x) * (1 - q + q * mp.exp(mu * x - mu**2 / 2)) ** a, cuts)
    found = renyi_divergence(canonical([(sampled("0.05", gauss(2)), 7)]), order)
    assert 7 * mp.log(moment) / (a - 1) <= found <= 7 * mp.log(moment) / (a - 1) * (1 + 1e-9)


def test_a_renyi_curve_is_used_between_its_orders_by_chords_only():
    law = RenyiLoss(((F(2), F("0.1")), (F(8), F("0.5"))))
    assert renyi_divergence(canonical([(law, 1)]), 2) == pytest.approx(0.1, rel=1e-12)
    assert renyi_divergence(canonical([(law, 1)]), 5) == pytest.approx((0.5 * (0.1 + 3.5)) / 4, rel=1e-12)
    assert renyi_divergence(canonical([(law, 1)]), 9) == math.inf
    best = min(
        d + math.log((a - 1) / a) - (math.log(1e-6) + math.log(a)) / (a - 1) for a, d in ((2, 0.1), (8, 0.5))
    )
    found = epsilon_bounds(canonical([(law, 1)]), 1e-6)
    assert found.method == "renyi"
    assert found.upper <= best * (1 + 1e-9)


def test_loss_beyond_t_is_not_delta():
    mu = 0.3
    parts = canonical([(GDPLoss(F("0.3")), 1)])
    t = gaussian_epsilon(mu, 1e-5).upper
    truth = float(mp.ncdf(mu / 2 - t / mp.mpf(mu)))
    assert truth <= loss_exceeds(parts, t) <= truth * (1 + 1e-9)
    assert truth > 10e-5
    assert loss_exceeds(canonical([(coin(1), 1)]), 1.0) == 0.0
    assert loss_exceeds(canonical([(coin(1), 1)]), 0.5) == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-12)
    two = canonical([(coin(1), 2)])
    assert loss_exceeds(two, 0.5) == pytest.approx(1 / (1 + math.exp(-1)) ** 2, rel=1e-12)


def test_loss_beyond_t_of_a_mixture_against_integration():
    parts = canonical([(coin("0.5"), 3), (gauss(2), 1)])
    heads, mu = 1 / (1 + mp.exp(mp.mpf("-0.5"))), mp.mpf("0.5")
    for t in (0.1, 0.9, 2.0):
        truth = mp.fsum(
            mp.binomial(3, j)
            * heads**j
            * (1 - heads) ** (3 - j)
            * mp.ncdf(mu / 2 - (t - (2 * j - 3) * 0.5) / mu)
            for j in range(4)
        )
        found = loss_exceeds(parts, t)
        assert truth <= found <= truth * (1 + 1e-3)


def test_what_does_not_converge_gets_a_larger_number_and_says_so(monkeypatch):
    parts = canonical([(sampled("0.01", gauss(1)), 1000)])
    tight = epsilon_bounds(parts, 1e-5)

    def refuse(*_: object, **__: object) -> Bracket:
        raise NotConverged

    content.cache_clear()
    monkeypatch.setattr(Inversion, "epsilon", refuse)
    monkeypatch.setattr(Inversion, "delta", refuse)
    safe = epsilon_bounds(parts, 1e-5)
    assert (tight.method, safe.method) == ("spectral", "renyi")
    assert tight.upper < safe.upper < 1.3 * tight.upper
    assert safe.lower <= tight.lower
    assert delta_bounds(parts, 2.0).method == "renyi"


def test_losses_without_a_common_lattice_are_dithered_and_still_above():
    parts = canonical(
        [(coin("0.123457"), 30), (DiscreteGaussianLoss(F("7.3"), F(1)), 20), (coin("0.07919"), 25)]
    )
    found = epsilon_bounds(parts, 1e-6)
    assert found.method == "dithered"
    mix = content(parts, add=False).mix
    heads = [1 / (1 + math.exp(-e)) for e in (0.123457, 0.07919)]
    assert len(mix.factors) == 3
    assert 0 < found.lower < found.upper <= found.lower * 1.01
    # an independent estimate: exact binomials against Gaussian tails of the discrete Gaussian sum
    lattice = lattice_cost(canonical([(DiscreteGaussianLoss(F("7.3"), F(1)), 20)]))
    e = found.upper
    value = 0.0
    for i, j in itertools.product(range(31), range(26)):
        p = math.comb(30, i) * heads[0] ** i * (1 - heads[0]) ** (30 - i)
        p *= math.comb(25, j) * heads[1] ** j * (1 - heads[1]) ** (25 - j)
        rest = e - (2 * i - 30) * 0.123457 - (2 * j - 25) * 0.07919
        if rest >= 0:
            value += p * lattice.delta(rest).upper
        else:
            value += p * (-math.expm1(rest) + math.exp(rest) * lattice.delta(-rest).upper)
    assert value <= 1e-6
    assert value >= 1e-6 * (1 - 1e-3)


@pytest.mark.parametrize(
    "parts",
    [
        [(gauss("1e-3"), 1)],
        [(gauss("1e9"), 3)],
        [(lap("1e-9"), 10)],
        [(lap(300), 2)],
        [(coin("1e-12"), 7)],
        [(coin(50), 7)],
        [(sampled("1e-6", gauss("0.5")), 1000)],
        [(sampled("0.999", gauss(1)), 20)],
        [(sampled("0.5", gauss(50)), 200)],
        [(sampled("0.1", gauss("0.2")), 30)],
        [(DiscreteGaussianLoss(F("0.2"), F(1)), 3)],
        [(DiscreteGaussianLoss(F(3000), F(7)), 1000)],
        [(DiscreteLaplaceLoss(F(10**6), F(10**5)), 10)],
        [(ApproximateLoss(F(0), F(1, 10**9)), 100), (gauss(3), 1)],
        [(ApproximateLoss(F(1), F(1, 3)), 2)],
        [(sampled("0.3", ApproximateLoss(F(1), F(1, 100))), 3)],
        [(ShuffledLoss(50, F(3)), 2)],
    ],
)
def test_hostile_sizes_stay_in_order(parts):
    parts = canonical(parts)
    last = math.inf
    for delta in (1e-12, 1e-6, 1e-2, 0.3):
        found = epsilon_bounds(parts, delta)
        assert 0 <= found.lower <= found.upper <= last
        last = found.upper
        if found.upper < math.inf:
            assert delta_bounds(parts, found.upper).upper <= delta * (1 + 1e-9)
    values = [delta_bounds(parts, e) for e in (0.0, 0.1, 1.0, 10.0)]
    for before, after in itertools.pairwise(values):
        assert before.lower <= before.upper <= 1
        assert after.lower <= before.upper


def test_both_directions_are_taken():
    parts = canonical([(sampled("0.3", gauss("0.6")), 1)])
    for e in (0.01, 0.2, 0.35):
        remove = 0.3 * gaussian_delta(1 / 0.6, math.log1p(math.expm1(e) / 0.3)).upper
        weight = 1 - 0.7 * math.exp(e)
        add = (
            weight * gaussian_delta(1 / 0.6, math.log(0.3 * math.exp(e) / weight)).upper
            if weight > 0
            else 0.0
        )
        assert delta_bounds(parts, e).upper == pytest.approx(max(remove, add), rel=1e-9)


def test_random_sums_keep_lower_below_upper_and_order_of_inclusion():
    generator = random.Random(17)
    laws = [
        lambda: gauss(round(generator.uniform(0.5, 20), 2)),
        lambda: lap(round(generator.uniform(0.01, 1), 2)),
        lambda: coin(round(generator.uniform(0.01, 1), 2)),
        lambda: DiscreteGaussianLoss(F(generator.randint(1, 20)), F(generator.randint(1, 2))),
        lambda: DiscreteLaplaceLoss(F(generator.randint(2, 30)), F(generator.randint(1, 4))),
        lambda: sampled(round(generator.uniform(0.001, 0.5), 3), gauss(round(generator.uniform(0.6, 4), 2))),
    ]
    for _ in range(60):
        some = [(generator.choice(laws)(), generator.randint(1, 60)) for _ in range(generator.randint(1, 3))]
        more = [*some, (generator.choice(laws)(), generator.randint(1, 10))]
        delta = 10 ** generator.uniform(-12, -2)
        small, large = epsilon_bounds(canonical(some), delta), epsilon_bounds(canonical(more), delta)
        assert small.lower <= small.upper
        assert small.lower <= large.upper
        for parts, found in ((some, small), (more, large)):
            assert delta_bounds(canonical(parts), found.upper).upper <= delta
