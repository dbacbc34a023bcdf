"""Each rule of the algebra against the pair of distributions it speaks of, computed from first principles."""

import math
import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.integrate import quad
from scipy.stats import norm

from tacit.accounting import Cost
from tacit.accounting._zcdp import discrete_laplace_rho, laplace_rho, pure_rho, rho_cap
from tacit.accounting.numeric._arithmetic import exp_down, exp_up, log_down, log_up
from tacit.errors import TacitError

F = Fraction

ORDERS = [1.0001, 1.01, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1000]


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(40):
        yield


def real(x: F) -> mpf:
    return mpf(x.numerator) / x.denominator


def lattice_pair(weights, move, reach):
    """Return P and Q: noise with the given weights on the whole numbers, and the same moved."""
    noise = {x: weights(x) for x in range(-reach - move, reach + move + 1)}
    total = mp.fsum(noise.values())
    p = {x: noise[x] / total for x in range(-reach, reach + move + 1)}
    q = {x: noise[x - move] / total for x in range(-reach, reach + move + 1)}
    return p, q


def renyi(p, q, a):
    return mp.log(mp.fsum(p[x] ** a * q[x] ** (1 - a) for x in p)) / (a - 1)


def delta(p, q, e):
    return mp.fsum(max(mpf(0), p[x] - mp.exp(e) * q[x]) for x in p)


def times(one, other):
    return {(x, y): one[x] * other[y] for x, y in product(one, other)}


def response(e):
    yes = 1 / (1 + mp.exp(-mpf(e)))
    return {1: yes, 0: 1 - yes}, {1: 1 - yes, 0: yes}


# -- rho


@pytest.mark.parametrize("epsilon", [F(1, 1000), F(1, 10), F(1), F(3), F(10)])
def test_rho_of_randomized_response_is_the_supremum_over_orders(epsilon):
    p, q = response(real(epsilon))
    rho = real(pure_rho(epsilon))
    assert all(renyi(p, q, mpf(a)) <= a * rho for a in ORDERS)
    assert renyi(p, q, mpf("1.0000000001")) / rho > 1 - mpf(10) ** -8


@pytest.mark.parametrize("epsilon", [F(1, 100), F(1, 2), F(1), F(4), F(12)])
def test_rho_of_laplace_noise_is_the_supremum_over_orders(epsilon):
    e, rho = real(epsilon), real(laplace_rho(epsilon))
    for a in [*ORDERS, 1 + mpf(10) ** -12]:
        z = mpf(a) - 1
        log_moment = z * e + mp.log(((z + 1) + z * mp.exp(-(2 * z + 1) * e)) / (2 * z + 1))
        assert log_moment / z <= a * rho
    assert log_moment / z / rho > 1 - mpf(10) ** -9


@pytest.mark.parametrize(
    ("scale", "move"), [(F(1), 1), (F(2), 1), (F(1), 2), (F(3), 5), (F(5), 20), (F(1, 3), 4)]
)
def test_rho_of_discrete_laplace_noise_is_the_supremum_over_orders(scale, move):
    t = real(scale)
    p, q = lattice_pair(lambda x: mp.exp(-abs(x) / t), move, int(100 * scale) + 5)
    rho = real(discrete_laplace_rho(scale, F(move)))
    for a in ORDERS:
        assert renyi(p, q, mpf(a)) <= a * rho
        assert renyi(q, p, mpf(a)) <= a * rho
    assert renyi(p, q, 1 + mpf(10) ** -9) / rho > 1 - mpf(10) ** -6


def test_a_count_with_discrete_laplace_noise_is_randomized_response():
    assert discrete_laplace_rho(F(1), F(1)) == pure_rho(F(1))
    assert Cost.discrete_laplace(scale=1, sensitivity=1).rho == pytest.approx(math.tanh(0.5), rel=1e-15)
    assert Cost.discrete_laplace(scale=1, sensitivity=1).rho > Cost.laplace(scale=1, sensitivity=1).rho


@pytest.mark.parametrize(("sigma", "move"), [(F(1, 2), 1), (F(1), 1), (F(1), 3), (F(3), 2)])
def test_rho_of_discrete_gaussian_noise_covers_every_order(sigma, move):
    s = real(sigma)
    p, q = lattice_pair(lambda x: mp.exp(-(mpf(x) ** 2) / (2 * s**2)), move, int(40 * sigma) + 3)
    rho = mpf(Cost.discrete_gaussian(sigma=sigma, sensitivity=move).rho)
    for a in [1.01, 1.5, 2, 3, 7]:
        assert renyi(p, q, mpf(a)) <= a * rho * (1 + mpf(10) ** -14)


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(4), F(7), F(20)])
def test_rho_of_a_bounded_range_covers_every_pair_and_order(epsilon):
    e, rho = real(epsilon), mpf(Cost.exponential(epsilon).rho)
    for share in range(1, 20):
        t = e * share / 20  # losses t and t - epsilon
        yes = (mp.exp(e) - mp.exp(t)) / (mp.exp(e) - 1)
        p = {1: yes, 0: 1 - yes}
        q = {1: yes * mp.exp(-t), 0: (1 - yes) * mp.exp(e - t)}
        assert abs(q[0] + q[1] - 1) < mpf(10) ** -30
        assert all(renyi(p, q, mpf(a)) <= a * rho * (1 + mpf(10) ** -14) for a in ORDERS)


def test_certified_exponentials_and_logarithms_bracket_the_truth():
    for x in [F(-700), F(-1, 3), F(1, 10**70), F(-1, 10**70), F(1, 7), F(5, 2), F(2999)]:
        with mpmath.workdps(120):
            assert real(exp_down(x)) <= mp.exp(real(x)) <= real(exp_up(x))
    for x in [F(1, 10**300), F(1, 3), 1 - F(1, 10**70), F(1), 1 + F(1, 10**70), F(2), F(10) ** 200]:
        with mpmath.workdps(120):
            assert real(log_down(x)) <= mp.log(real(x)) <= real(log_up(x))


# -- moves


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_full_move_of_one_number_dominates_smaller_moves(kind):
    scale = mpf("1.3")
    weights = {
        "laplace": lambda x: mp.exp(-abs(x) / scale),
        "gaussian": lambda x: mp.exp(-(mpf(x) ** 2) / (2 * scale**2)),
    }[kind]
    make = {
        "laplace": lambda s: Cost.discrete_laplace(scale=1.3, sensitivity=s),
        "gaussian": lambda s: Cost.discrete_gaussian(sigma=1.3, sensitivity=s),
    }[kind]
    for e in [0, 0.1, 0.5, 1, 2, 3]:
        deltas = [delta(*lattice_pair(weights, move, 40), mpf(e)) for move in (1, 2, 3, 4)]
        assert deltas == sorted(deltas)
        for move, truth in zip((1, 2, 3, 4), deltas, strict=True):
            stated = make(move).delta(epsilon=e)
            assert truth <= stated * (1 + 1e-12) + 1e-25
            assert stated <= truth * (1 + 1e-6) + mpf(10) ** -20


def test_a_discrete_gaussian_vector_is_not_the_scalar_curve_and_its_cost_covers_it():
    sigma = 0.5
    p, q = lattice_pair(lambda x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2)), 1, 12)
    both = times(p, p), times(q, q)  # two numbers move by 1: L2 sensitivity sqrt(2)
    vector = Cost.discrete_gaussian(sigma=sigma, sensitivity=2**0.5, dimension=2)
    for e in [0.5, 1, 2, 4, 6]:
        assert delta(*both, mpf(e)) <= vector.delta(epsilon=e)
    assert vector.rho == 4.0
    with pytest.raises(Exception, match="cannot be sampled"):
        Cost.zcdp(4).sampled(0.1)
    mixture = {x: mpf("0.9") * mass + mpf("0.1") * both[0][x] for x, mass in both[1].items()}
    for e in [0.5, 1, 2, 4]:
        truth = max(delta(mixture, both[1], mpf(e)), delta(both[1], mixture, mpf(e)))
        assert truth <= vector.sampled(0.1).delta(epsilon=e)


def test_a_float_root_stands_for_the_whole_square():
    for squared in range(1, 200):
        cost = Cost.discrete_gaussian(sigma=1, sensitivity=math.sqrt(squared), dimension=300)
        assert cost.rho == squared / 2
    for written in (1.7320508, 1.732, 1.733 - 0.001):
        assert Cost.discrete_gaussian(sigma=1, sensitivity=written, dimension=3).rho == 1.5


def test_a_laplace_vector_is_known_as_epsilon_dp_and_covers_its_moves():
    p, q = lattice_pair(lambda x: mp.exp(-abs(x) / mpf(2)), 1, 120)
    both = times(p, p), times(q, q)
    cost = Cost.discrete_laplace(scale=2, sensitivity=2, dimension=5)
    assert cost == Cost.pure(1)
    for e in [0, 0.2, 0.7, 0.99]:
        assert delta(*both, mpf(e)) <= cost.delta(epsilon=e) * (1 + 1e-12)


# -- sampling, groups, branches


@pytest.mark.parametrize(("epsilon", "q"), [(1, 0.05), (0.1, 0.5), (5, 0.01), (30, 0.001)])
def test_sampled_randomized_response_both_directions(epsilon, q):
    p, r = response(str(epsilon))
    mixed = {x: (1 - mpf(str(q))) * r[x] + mpf(str(q)) * p[x] for x in p}
    cost = Cost.randomized_response(epsilon).sampled(q)
    for share in [0, 0.3, 0.9]:
        e = share * cost.epsilon(delta=0)
        truth = max(delta(mixed, r, mpf(e)), delta(r, mixed, mpf(e)))
        assert truth <= cost.delta(epsilon=e) <= truth * (1 + mpf(10) ** -6) + mpf(10) ** -18
    log_ratio = max(abs(mp.log(mixed[x] / r[x])) for x in p)
    assert log_ratio <= cost.epsilon(delta=0) <= log_ratio * (1 + mpf(10) ** -12)


def test_the_ledger_charge_of_a_sample_covers_the_sampled_pair():
    for epsilon, q in [(1, 0.05), (2, 0.5), (0.3, 0.9)]:
        p, r = response(str(epsilon))
        mixed = {x: (1 - mpf(str(q))) * r[x] + mpf(str(q)) * p[x] for x in p}
        rho = real(Cost.randomized_response(epsilon).sampled(q).spend.rho)
        for a in ORDERS:
            assert renyi(mixed, r, mpf(a)) <= a * rho
            assert renyi(r, mixed, mpf(a)) <= a * rho


def test_a_group_of_an_approximate_cost_covers_the_walk_from_neighbour_to_neighbour():
    """Each of three steps leaks with probability delta and else multiplies the odds by e^epsilon."""
    epsilon, mass, m = 0.2, 1e-3, 3
    cost = Cost.approximate(epsilon, mass).group(m)
    assert cost.spend.epsilon == F(6, 10)
    assert float(cost.spend.delta) == pytest.approx(
        mass * math.expm1(m * epsilon) / math.expm1(epsilon), rel=1e-12
    )
    assert cost.delta(epsilon=m * epsilon) == pytest.approx(float(cost.spend.delta), rel=1e-9)


def test_a_group_on_sampled_noise_is_covered():
    """Two people, each sampled with probability q, each moving a Gaussian count by 1: a mixture of three."""
    q, sigma = 0.1, 2.0
    cost = Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q).group(2)
    chances = [(1 - q) ** 2, 2 * q * (1 - q), q * q]

    def mixture(x):
        return sum(c * norm.pdf(x, k, sigma) for k, c in enumerate(chances))

    for e in [0.05, 0.2, 0.5, 1.0]:
        truth = quad(
            lambda x, e=e: max(0.0, mixture(x) - math.exp(e) * norm.pdf(x, 0, sigma)), -20, 30, limit=400
        )[0]
        back = quad(
            lambda x, e=e: max(0.0, norm.pdf(x, 0, sigma) - math.exp(e) * mixture(x)), -20, 30, limit=400
        )[0]
        assert max(truth, back) <= cost.delta(epsilon=e) + 1e-9


def test_branches_are_read_as_the_worst_unit_at_every_epsilon():
    a, b = Cost.gaussian(sigma=2, sensitivity=1), Cost.randomized_response(1)
    c = Cost.laplace(scale=3, sensitivity=1)
    crossing = 0
    for e in np.linspace(0, 3, 13):
        one, other = (a + c).delta(epsilon=e), (b + c).delta(epsilon=e)
        crossing |= 1 if one > other else 2
        assert (Cost.parallel(a, b) + c).delta(epsilon=e) == max(one, other)
        twice = max((2 * a).delta(epsilon=e), (2 * b).delta(epsilon=e), (a + b).delta(epsilon=e))
        assert (2 * Cost.parallel(a, b)).delta(epsilon=e) == twice
    assert crossing == 3  # the curves cross, so a largest epsilon at one delta would be wrong at another


def test_many_branches_get_a_bound_that_covers_each_of_them():
    branches = [Cost.gaussian(sigma=2 + i / 10, sensitivity=1) + Cost.pure(F(i, 10)) for i in range(1, 15)]
    together = 5 * Cost.parallel(*branches)
    for e in [1, 5, 10]:
        assert together.delta(epsilon=e) >= max((5 * branch).delta(epsilon=e) for branch in branches)
        assert together.bounds(epsilon=e).lower <= together.bounds(epsilon=e).upper


def test_sampling_reaches_into_branches():
    a, b = Cost.gaussian(sigma=2, sensitivity=1), Cost.randomized_response(1)
    both = Cost.parallel(a, b).sampled(0.1)
    for e in [0.01, 0.1, 0.3]:
        assert both.delta(epsilon=e) == max(a.sampled(0.1).delta(epsilon=e), b.sampled(0.1).delta(epsilon=e))


# -- the chance of a large loss


def test_loss_exceeds_is_the_pairs_own_figure_and_not_delta():
    cost = Cost.gaussian(sigma=10, sensitivity=3)  # mu = 0.3
    for t in [0.0, 0.2, 0.5, 1.0]:
        truth = norm.cdf(-t / 0.3 + 0.15)
        assert truth <= cost.loss_exceeds(t) <= truth * (1 + 1e-6)
    e = cost.epsilon(delta=1e-6)
    assert 12 < cost.loss_exceeds(e) / 1e-6 < 20  # sixteen times delta


def test_loss_exceeds_of_a_pure_cost_covers_every_mechanism_that_is_epsilon_dp():
    epsilon, t = mpf(1), mpf("0.1")
    # nearly all mass has a loss just above t: allowed by epsilon-DP, far above randomized response's figure
    p = (1 - mp.exp(-epsilon)) / (1 - mp.exp(-t - epsilon))
    q = p * mp.exp(-t)
    assert mp.log((1 - q) / (1 - p)) <= epsilon + mpf(10) ** -20
    assert p <= Cost.pure(1).loss_exceeds(0.1) <= p * (1 + mpf(10) ** -6)
    assert p > Cost.randomized_response(1).loss_exceeds(0.1)


def test_loss_exceeds_looks_at_every_branch_because_domination_does_not_order_it():
    wild, tame = Cost.pure(0.9), Cost.randomized_response(1)
    assert all(wild.delta(epsilon=e) <= tame.delta(epsilon=e) for e in (0, 0.3, 0.6, 1))
    assert wild.loss_exceeds(0.01) > tame.loss_exceeds(0.01)
    assert Cost.parallel(wild, tame).loss_exceeds(0.01) == wild.loss_exceeds(0.01)


# -- what the proofs say


@pytest.mark.parametrize("page", ["accounting.md", "costs.md", "filters.md"])
def test_a_proof_names_code_and_tests_that_exist(page):
    root = Path(__file__).parents[3]
    text = (root / "docs/proofs" / page).read_text()
    code = re.findall(r"`((?:numeric/)?_?[a-z_]+\.py)`", text)
    assert code
    assert all((root / "src/tacit/accounting" / name).exists() for name in code), code
    tests = re.findall(r"`(tests/unit/[\w/]+\.py)`", text)
    assert tests
    assert all((root / name).exists() for name in tests), tests


def test_the_rho_branch_alone_is_not_epsilon_half_delta_dp():
    """The adversary of docs/proofs/filters.md: rho where the loss is already large, delta elsewhere."""
    half, epsilon, rho = F(1, 10**5), F(1072482, 10**5), 2.0
    assert float(rho_cap(epsilon, half)) == pytest.approx(rho, rel=1e-5)
    first, last = math.sqrt(2 * 0.7 * rho), math.sqrt(2 * 0.3 * rho)
    leak_left = half - F(1, 10**7)
    assert rho_cap(epsilon, half - leak_left) > F(14, 10)  # the leak is admitted after the first 70 %

    def tail(loss):
        e = float(epsilon) - loss
        inside = norm.cdf(-e / last + last / 2) - math.exp(e) * norm.cdf(-e / last - last / 2)
        return norm.pdf(loss, 0.7 * rho, first) * inside

    threshold = 5.75
    leaked = float(leak_left) * norm.cdf((threshold - 0.7 * rho) / first)
    total = leaked + quad(tail, threshold, 20, points=[float(epsilon)])[0]
    assert 1.15 < total / float(half) < 1.25
    assert total < 2 * float(half)  # the whole budget holds


def test_parallel_branches_are_refused_under_replace_also_where_they_are_equal():
    """A replaced unit can leave one branch for another: two counts that each promise 0.3 change by 0.6."""
    one, other = Cost.pure(0.3, adjacency="replace"), Cost.pure(0.2, adjacency="replace")
    for branches in ((one, one), (one, other), (one, one, Cost.zero("replace"))):
        with pytest.raises(TacitError) as refused:
            Cost.parallel(*branches)
        assert refused.value.code == "no-guarantee"
    assert Cost.parallel(one) == one
