"""The Renyi curves that costs charge: never below the truth, and close to it, for both directions."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import binom

from tacit.accounting import Budget, Cost, Filter
from tacit.accounting._renyi_curve import divergence_of_sum
from tacit.accounting._zcdp import bounded_range_divergence

F = Fraction


def value(cost, order):
    """Return what the cost charges at an order."""
    return cost.spend_at((F(order),)).curve[0][1]


def divergence(p, q, order):
    """Return the Renyi divergence of two finite laws, to 30 digits."""
    with mpmath.workdps(40):
        total = sum(x**order * y ** (1 - order) for x, y in zip(p, q, strict=True) if x)
        return mpmath.log(total) / (order - 1)


def mixed(p, q, rate):
    return [(1 - rate) * y + rate * x for x, y in zip(p, q, strict=True)]


def lattice(law, move, width):
    """Return a law on the whole numbers and the same law moved, both on one window."""
    with mpmath.workdps(40):
        masses = {x: law(abs(x)) for x in range(-width, width + move + 1)}
        total = sum(law(abs(x)) for x in range(-width - move, width + move + 1))
        points = range(-width, width + move + 1)
        return [masses[x] / total for x in points], [law(abs(x - move)) / total for x in points]


def response(epsilon):
    with mpmath.workdps(40):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        return [p, 1 - p], [1 - p, p]


def check(mine, truth, near):
    """Check that the value is at least the truth, and at most the truth times 1 + near."""
    with mpmath.workdps(40):
        mine = mpmath.mpf(mine.numerator) / mine.denominator
        assert mine >= truth * (1 - mpmath.mpf(10) ** -25)
        assert mine <= truth * (1 + mpmath.mpf(near))


ORDERS = [F(3, 2), 2, F(7, 2), 6, 24]


@pytest.mark.parametrize("order", ORDERS)
def test_closed_forms_are_the_divergences_of_their_laws(order):
    with mpmath.workdps(40):
        at = mpmath.mpf(F(order).numerator) / F(order).denominator
        e = mpmath.mpf(1) / 2
        laplace = at * mpmath.exp((at - 1) * e) + (at - 1) * mpmath.exp(-at * e)
        truth = mpmath.log(laplace / (2 * at - 1)) / (at - 1)
    check(value(Cost.laplace(scale=2, sensitivity=1), order), truth, 1e-20)
    check(value(Cost.randomized_response(1), order), divergence(*response(1), at), 1e-20)
    check(value(Cost.pure(1), order), divergence(*response(1), at), 1e-20)
    pair = lattice(lambda x: mpmath.exp(-mpmath.mpf(x) / 3), 5, 400)
    check(value(Cost.discrete_laplace(scale=3, sensitivity=5), order), divergence(*pair, at), 1e-20)
    assert value(Cost.gaussian(sigma=2, sensitivity=1), order) == F(order) / 8
    assert value(Cost.gdp(0.5), order) == F(order) / 8
    assert value(Cost.zcdp(0.125), order) == F(order) / 8
    pair = lattice(lambda x: mpmath.exp(-(mpmath.mpf(x) ** 2) / 8), 1, 60)
    check(value(Cost.discrete_gaussian(sigma=2, sensitivity=1), order), divergence(*pair, at), 1e-2)


@pytest.mark.parametrize("order", [2, 3, 6, 12])
@pytest.mark.parametrize("rate", [F(1, 100), F(1, 2)])
@pytest.mark.parametrize(
    ("cost", "pair"),
    [
        (Cost.randomized_response(1), response(1)),
        (Cost.pure(0.1), response("0.1")),
        (
            Cost.discrete_laplace(scale=2, sensitivity=3),
            lattice(lambda x: mpmath.exp(-mpmath.mpf(x) / 2), 3, 300),
        ),
        (
            Cost.discrete_gaussian(sigma=1, sensitivity=1),
            lattice(lambda x: mpmath.exp(-(mpmath.mpf(x) ** 2) / 2), 1, 60),
        ),
        (
            Cost.discrete_gaussian(sigma=2, sensitivity=3),
            lattice(lambda x: mpmath.exp(-(mpmath.mpf(x) ** 2) / 8), 3, 100),
        ),
    ],
)
def test_a_sample_charges_the_larger_of_both_directions_at_whole_orders(cost, pair, rate, order):
    p, q = pair
    with mpmath.workdps(40):
        mixture = mixed(p, q, mpmath.mpf(rate.numerator) / rate.denominator)
        removed, added = divergence(mixture, q, order), divergence(q, mixture, order)
    assert added <= removed * (1 + mpmath.mpf(10) ** -25)
    check(value(cost.sampled(rate), order), removed, 1e-15)


def test_a_sampled_gaussian_agrees_with_the_published_values():
    # checked by summation elsewhere: q 0.1, sigma 2, order 8; q 0.05, sigma 0.7, order 4
    one = Cost.gaussian(sigma=2, sensitivity=1).sampled(0.1)
    two = Cost.discrete_gaussian(sigma=F(7, 10), sensitivity=1).sampled(0.05)
    assert float(value(one, 8)) == pytest.approx(0.01372543010322, abs=1e-14)
    assert float(value(two, 4)) == pytest.approx(0.31930470910557, abs=1e-14)


@given(
    losses=st.lists(st.floats(min_value=0.01, max_value=5), min_size=1, max_size=4),
    masses=st.lists(st.floats(min_value=0.01, max_value=1), min_size=5, max_size=5),
    rate=st.floats(min_value=0.001, max_value=0.999),
    order=st.floats(min_value=1.01, max_value=30),
)
def test_for_pairs_that_a_reflection_exchanges_adding_a_unit_is_no_worse(losses, masses, rate, order):
    with mpmath.workdps(40):
        p, q = [mpmath.mpf(masses[-1])], [mpmath.mpf(masses[-1])]
        for loss, mass in zip(losses, masses, strict=False):
            p += [mass * mpmath.exp(loss), mpmath.mpf(mass)]
            q += [mpmath.mpf(mass), mass * mpmath.exp(loss)]
        total = sum(p)
        p, q = [x / total for x in p], [x / total for x in q]
        mixture = mixed(p, q, mpmath.mpf(rate))
        order = mpmath.mpf(order)
        removed, added = divergence(mixture, q, order), divergence(q, mixture, order)
        assert added <= removed + mpmath.mpf(10) ** -30


@given(
    masses=st.lists(st.floats(min_value=0.01, max_value=1), min_size=4, max_size=4),
    others=st.lists(st.floats(min_value=0.01, max_value=1), min_size=4, max_size=4),
    rate=st.fractions(min_value=F(1, 1000), max_value=F(9, 10), max_denominator=1000),
    order=st.integers(min_value=2, max_value=20),
)
def test_pairs_without_a_reflection_get_a_bound_for_both_directions(masses, others, rate, order):
    p, q = (np.array(one) / sum(one) for one in (masses, others))
    losses = np.log(p / q)
    epsilon = F(float(losses.max() - losses.min())) + F(1, 10**9)
    if epsilon == F(1, 10**9):
        return
    charged = value(Cost.exponential(epsilon).sampled(rate), order)
    mixture = (1 - float(rate)) * q + float(rate) * p
    for one, two in ((mixture, q), (q, mixture)):
        truth = logsumexp(order * np.log(one) + (1 - order) * np.log(two)) / (order - 1)
        assert float(charged) >= truth * (1 - 1e-9) - 1e-15


@pytest.mark.parametrize("order", [F(3, 2), 2, 5, 30])
@pytest.mark.parametrize("epsilon", [F(1, 10), 1, 6])
def test_bounded_range_is_the_worst_pair_of_two_losses(order, epsilon):
    e, a = float(epsilon), float(order)
    u = np.linspace(1e-9, e - 1e-9, 20001)
    top = (np.exp(-u) - math.exp(-e)) / -math.expm1(-e)
    worst = np.log(top * np.exp(a * u) + (1 - top) * np.exp(a * (u - e))).max() / (a - 1)
    mine = float(bounded_range_divergence(F(epsilon), F(order)))
    assert worst * (1 - 1e-9) - 1e-14 <= mine <= worst * (1 + 1e-6)


def clones(n, e0, order):
    """Return the divergence of n shuffled reports, by adding up the whole law."""
    p, share = 1 / (1 + math.exp(-e0)), math.exp(-e0)
    terms = []
    for c in range(n):
        x = np.arange(c + 2)
        z = (2 * x - (c + 1)) / (c + 1) * (2 * p - 1)
        inner = logsumexp(binom.logpmf(x, c + 1, 0.5) + order * np.log1p(z) + (1 - order) * np.log1p(-z))
        terms.append(binom.logpmf(c, n - 1, share) + inner)
    return logsumexp(terms) / (order - 1)


@pytest.mark.parametrize(
    ("n", "e0", "order", "near"),
    [
        (2, 1, 3, 0.2),
        (50, 1, 4, 0.2),
        (400, 1, 6, 0.02),
        (400, 2, 6, 0.2),
        (400, 0.5, 24, 0.05),
        (400, 3, 20, 2),
    ],
)
def test_shuffled_reports_charge_their_own_amplified_curve(n, e0, order, near):
    truth = clones(n, e0, order)
    mine = float(value(Cost.randomized_response(e0).shuffled(n), order))
    assert truth * (1 - 1e-9) <= mine <= truth * (1 + near)
    assert mine <= float(value(Cost.pure(e0), order))


def test_a_group_of_a_sample_charges_less_than_without_the_sample():
    step = Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
    for m, order in ((2, 2), (3, F(3, 2)), (4, F(3, 2))):
        assert value(step, order) < value(step.group(m), order) < value(step, order) * 100
        assert value(step.group(m), order) < F(order) * m * m / 2
    # against the truth for two units that are drawn independently
    grid = np.linspace(-40, 60, 400_001)
    log_q = -(grid**2) / 2
    log_p = logsumexp([log_q + k * grid - k * k / 2 + binom.logpmf(k, 2, 0.01) for k in range(3)], axis=0)
    for one, two in ((log_p, log_q), (log_q, log_p)):
        moment = logsumexp(2 * one - two) + math.log(grid[1] - grid[0]) - math.log(2 * math.pi) / 2
        assert moment <= float(value(step.group(2), 2)) + 1e-9


def test_parallel_branches_charge_the_largest_at_each_order():
    laplace, gaussian = Cost.pure(1), Cost.gaussian(sigma=2, sensitivity=1)
    both = Cost.parallel(laplace, gaussian)
    for order in (2, 24):
        assert value(both, order) == max(value(laplace, order), value(gaussian, order))
    sampled = Cost.parallel(laplace, gaussian).sampled(0.1)
    assert value(sampled, 6) >= max(value(one.sampled(0.1), 6) for one in (laplace, gaussian))


def test_stated_costs_charge_randomized_response_and_their_delta():
    spend = Cost.approximate(0.1, 1e-7).spend_at((F(8),))
    assert spend.delta == F(1, 10**7)
    assert spend.curve == Cost.pure(0.1).spend_at((F(8),)).curve
    leak = Cost.approximate(0, 1e-7).spend_at((F(8),))
    assert leak.curve == ((F(8), F(0)),)
    sampled = Cost.approximate(1, 1e-7).sampled(0.01).spend_at((F(8),))
    assert sampled.delta == F(1, 10**9)
    assert sampled.curve == Cost.pure(1).sampled(0.01).spend_at((F(8),)).curve


def test_a_stated_renyi_curve_is_read_on_its_chords_and_no_further():
    stated = Cost.renyi({2: 0.1, 8: 0.4})
    assert value(stated, F(3, 2)) == F(1, 10)
    assert value(stated, 2) == F(1, 10)
    assert value(stated, 5) == (F(1, 2) * F(1, 10) + F(1, 2) * 7 * F(4, 10)) / 4
    assert value(stated, 9) is None
    filter_ = Filter.start(Budget(epsilon=8, delta=1e-6))
    assert filter_.admits(filter_.spend_of(stated))
    assert not filter_.admits(filter_.spend_of(Cost.renyi({2: 0.1})))


def test_sums_add_their_curves():
    one, two = Cost.pure(0.5), Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
    assert value(3 * one + two, 6) == 3 * value(one, 6) + value(two, 6)
    assert divergence_of_sum((), F(2)) == 0


@pytest.mark.parametrize("order", [F(5, 2), F(33, 4)])
def test_between_whole_orders_a_sample_is_above_the_truth(order):
    cost = Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
    truth = cost.renyi_divergence(order)
    assert truth * (1 - 1e-9) <= float(value(cost, order)) <= truth * 1.2


def test_absurd_parameters_charge_something_that_is_never_too_small():
    for cost in (
        Cost.gaussian(sigma=F(1, 10**9), sensitivity=1).sampled(0.5),
        Cost.laplace(scale=F(1, 10**6), sensitivity=1).sampled(0.5),
        Cost.randomized_response(500).shuffled(10),
        Cost.exponential(5000),
        Cost.pure(F(1, 10**40)),
        Cost.discrete_laplace(scale=10**45, sensitivity=7),
        Cost.gaussian(sigma=10**30, sensitivity=1).sampled(F(1, 10**30)),
        Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01).group(100),
    ):
        for order in (F(11, 10), F(6), F(5000)):
            charged = value(cost, order)
            assert charged is not None
            assert charged > 0


def test_a_sampled_vector_of_discrete_gaussians_has_the_values_of_the_continuous_law():
    vector = Cost.discrete_gaussian(sigma=4, sensitivity=math.sqrt(5), dimension=20)
    smooth = Cost.gaussian(sigma=4, sensitivity=F(repr(math.sqrt(5))))
    assert vector.rho == 5 / 32
    for order in (2, 7, 24):
        assert float(value(vector.sampled(0.01), order)) == pytest.approx(
            float(value(smooth.sampled(0.01), order)), rel=1e-9
        )
    # two numbers that move, by summation: both directions, and moves that are not along one axis
    p, q = (np.exp(-((np.arange(-40, 41) - m) ** 2) / 32.0) for m in (1, 0))
    far = np.exp(-((np.arange(-40, 41) - 2) ** 2) / 32.0)
    one, two = np.outer(p, far).ravel(), np.outer(q, q).ravel()
    one, two = one / one.sum(), two / two.sum()
    mixture = 0.99 * two + 0.01 * one
    for order in (2, 7, 12):
        charged = float(value(vector.sampled(0.01), order))
        for a, b in ((mixture, two), (two, mixture)):
            truth = logsumexp(order * np.log(a) + (1 - order) * np.log(b)) / (order - 1)
            assert truth <= charged * (1 + 1e-9)


def test_a_sampled_vector_is_read_charged_stored_and_shown():
    vector = Cost.discrete_gaussian(sigma=4, sensitivity=2**0.5, dimension=20)
    step = vector.sampled(0.01)
    assert Cost.from_json(step.to_json()) == step
    assert eval(repr(step), {"Cost": Cost}) == step
    assert vector.group(2).rho == 4 * vector.rho
    smooth = Cost.gaussian(sigma=4, sensitivity=F(repr(2**0.5))).sampled(0.01)
    run, like = (1000 * one for one in (step, smooth))
    assert like.epsilon(delta=1e-6) < run.epsilon(delta=1e-6) < 1.6 * like.epsilon(delta=1e-6)
    filter_ = Filter.start(Budget(3, 1e-6))
    assert filter_.how_many(step) == filter_.how_many(smooth)
    both = Cost.parallel(vector, Cost.pure(0.1)).sampled(0.1) + Cost.pure(0.1)
    assert both.epsilon(delta=1e-6) < 0.6
    leaky = (vector + Cost.approximate(0, 1e-8)).sampled(0.1)
    assert leaky.delta(epsilon=1) >= 1e-9


@pytest.mark.parametrize("categories", [2, 3, 5, 100])
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("order", [1.5, 4, 30])
def test_randomized_response_with_several_categories_has_its_own_curve(categories, epsilon, order):
    cost = Cost.randomized_response(epsilon=epsilon, categories=categories)
    ((_, value),) = cost.spend_at((Fraction(order),)).curve
    odds, step = math.exp(epsilon), order - 1
    moment = (odds * math.exp(step * epsilon) + math.exp(-step * epsilon) + categories - 2) / (
        odds + categories - 1
    )
    true = math.log(moment) / step
    assert true - 1e-12 <= value <= true + 1e-9


def test_shuffled_reports_with_several_categories_have_a_curve():
    cost = Cost.randomized_response(epsilon=1, categories=4, adjacency="replace").shuffled(1000)
    assert cost.spend_at((Fraction(4),)).curve[0][1] < Fraction(1, 10)
