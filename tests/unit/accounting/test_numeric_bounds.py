"""Certified bounds attacked: by brute force, by other accountants and by hostile sizes."""

from __future__ import annotations

import itertools
import math
import random

import mpmath as mp
import numpy as np
import pytest

from support.losses import F, coin, gauss, lap, sampled
from tacit.accounting._laws import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GDPLoss,
    PureLoss,
    RenyiLoss,
    SampledLoss,
    ShuffledLoss,
    ZCDPLoss,
    canonical,
)
from tacit.accounting.numeric import Bracket, delta_bounds, epsilon_bounds, loss_exceeds, renyi_divergence
from tacit.accounting.numeric._accountants import DitheredAccountant
from tacit.accounting.numeric._arithmetic import NotConverged, settle
from tacit.accounting.numeric._atoms import connect_dots
from tacit.accounting.numeric._curve import closed_curve
from tacit.accounting.numeric._factors import factors_of
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._gaussian import gaussian_delta, gaussian_epsilon
from tacit.accounting.numeric._lattice import lattice_accountant
from tacit.accounting.numeric._sum_facts import split_infinite_loss

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
    rest, least, most, good = split_infinite_loss(parts, add=False)
    assert rest == canonical([(sampled("0.25", sampled("0.5", PureLoss(F("0.5")), coin(1)), lap(1)), 2)])
    assert least <= 1 - 0.9 * (1 - 0.25 * 0.5 * 0.01) ** 2 <= most
    assert most - least < 1e-12
    assert good == pytest.approx(0.9 * 0.99**2, rel=1e-12)
    assert split_infinite_loss(parts, add=True).least == pytest.approx(
        0.1, rel=1e-12
    )  # added, a sample leaks nothing


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
        connect_dots(closed_curve(lap(1500)), np.linspace(-1500.0, 1500.0, 301))
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
            tight = FourierInversion(factors_of(parts, add=add).loss_sum)
            values = [tight.delta(e) for e in (0.2, 0.8)]
        except NotConverged:
            continue
        rough = DitheredAccountant(factors_of(parts, add=add, finite=True).loss_sum)
        for e, value in zip((0.2, 0.8), values, strict=True):
            other = rough.delta(e)
            assert value.lower <= other.upper
            assert other.upper <= value.upper * 1.001


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

    factors_of.cache_clear()
    monkeypatch.setattr(FourierInversion, "epsilon", refuse)
    monkeypatch.setattr(FourierInversion, "delta", refuse)
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
    loss_sum = factors_of(parts, add=False).loss_sum
    heads = [1 / (1 + math.exp(-e)) for e in (0.123457, 0.07919)]
    assert len(loss_sum.factors) == 3
    assert 0 < found.lower < found.upper <= found.lower * 1.01
    # an independent estimate: exact binomials against Gaussian tails of the discrete Gaussian sum
    lattice = lattice_accountant(canonical([(DiscreteGaussianLoss(F("7.3"), F(1)), 20)]))
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


@pytest.mark.parametrize(
    "parts",
    [
        [(ZCDPLoss(F(1, 50)), 3)],
        [(ZCDPLoss(F(1, 50)), 1), (PureLoss(F(1, 4)), 2), (ApproximateLoss(F(1, 5), F(1, 10**9)), 1)],
        [(RenyiLoss(((F(4), F(1, 5)), (F(16), F(4, 5)))), 1)],
        [(BoundedRangeLoss(F(1, 5)), 10)],
        [(BoundedRangeLoss(F(1, 5)), 2), (ZCDPLoss(F(1, 50)), 1)],
        [(gauss(3), 5)],
    ],
    ids=["zCDP", "zCDP, pure and delta", "Renyi", "bounded range", "range and zCDP", "Gaussian"],
)
def test_upper_values_do_not_depend_on_whether_the_lower_ones_are_asked_for(parts):
    parts = canonical(parts)
    for e in (0.1, 0.5, 2.0):
        with_lower, without = delta_bounds(parts, e), delta_bounds(parts, e, lower=False)
        assert without.upper == with_lower.upper
        assert without.lower <= with_lower.lower
    for delta in (1e-9, 1e-5, 0.01):
        assert epsilon_bounds(parts, delta, lower=False).upper == epsilon_bounds(parts, delta).upper
