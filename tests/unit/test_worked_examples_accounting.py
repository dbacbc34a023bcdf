"""Worked examples 2-4, 6, 7, 23-27, 29 and 30, each through the public API."""

import math

import pytest

import tacit as tc
from tacit import Budget, Cost
from tacit.accounting import Filter, textbook


def test_2_odds_at_epsilon_one_hundredth():
    assert Cost.pure(0.01).odds == pytest.approx(1.01005, abs=5e-6)


def test_3_bits_that_an_adversary_can_gain():
    assert Cost.pure(0.1).bits == pytest.approx(0.1443, abs=5e-5)
    assert Cost.pure(math.log(2)).bits == pytest.approx(1, rel=1e-12)


def test_4_kl_of_laplace_noise_at_full_sensitivity():
    for epsilon in (0.1, 0.5, 1, 3):
        scale = textbook.laplace_scale(epsilon, sensitivity=1)
        kl = Cost.laplace(scale=scale, sensitivity=1).kl
        assert kl == pytest.approx(epsilon + math.exp(-epsilon) - 1, rel=1e-12)
    small = 1e-4
    scale = textbook.laplace_scale(small, sensitivity=1)
    mean_squared_error = 2 * scale**2
    assert Cost.laplace(scale=scale, sensitivity=1).kl * mean_squared_error == pytest.approx(1, rel=1e-4)


def test_6_posterior_odds_are_prior_odds_times_at_most_exp_epsilon():
    cost = Cost.pure(0.5)
    assert cost.odds == pytest.approx(math.exp(0.5), rel=1e-12)
    for prior in (0.001, 0.3, 0.9):
        prior_odds = prior / (1 - prior)
        # the answer that speaks most for "in": randomized response's truth
        truth = 1 / (1 + 1 / Cost.randomized_response(0.5).odds)
        posterior_odds = prior_odds * truth / (1 - truth)
        assert posterior_odds <= prior_odds * cost.odds * (1 + 1e-12)


def test_7_a_mechanism_that_leaks_everything_with_probability_p():
    p = 1e-3
    leak = Cost.approximate(0, p)
    with pytest.raises(tc.TacitError):
        leak.epsilon(delta=0)  # not epsilon-DP for any epsilon
    with pytest.raises(tc.TacitError):
        leak.epsilon(delta=p / 2)
    assert leak.epsilon(delta=p) == 0
    for epsilon in (0, 1, 10):
        assert leak.delta(epsilon=epsilon) == pytest.approx(p, rel=1e-12)


def test_23_three_queries_on_the_same_data_add_up():
    queries = [Cost.pure(0.1), Cost.laplace(scale=5, sensitivity=1), Cost.pure(0.3)]
    assert sum(queries).epsilon(delta=0) == 0.6
    spent = Filter.start(Budget(epsilon=1))
    for query in queries:
        spent = spent.after(query.spend)
    assert float(spent.spent.epsilon) == 0.6


def test_24_ten_hospitals_with_disjoint_patients():
    hospitals = [Cost.pure(n / 10) for n in range(1, 11)]
    assert Cost.parallel(*hospitals).epsilon(delta=0) == 1.0


def test_25_a_group_of_k_people():
    assert Cost.pure(0.2).group(5).epsilon(delta=0) == 1.0
    assert Cost.laplace(scale=5, sensitivity=1).group(5).epsilon(delta=0) == 1.0
    assert textbook.group(0.2, 5)[0] == 1.0


def test_26_five_queries_on_one_data_set_against_five_disjoint_parts():
    one = Cost.pure(0.3)
    together = (5 * one).epsilon(delta=0)
    apart = Cost.parallel(*[one] * 5).epsilon(delta=0)
    assert (together, apart) == (1.5, 0.3)


def test_27_sampling_first():
    assert Cost.pure(1).sampled(0.05).epsilon(delta=0) == pytest.approx(0.0824, abs=5e-5)
    assert Cost.pure(1).sampled(0.05).epsilon(delta=0) == pytest.approx(
        textbook.sampled(1, 0.05)[0], rel=1e-12
    )


def test_29_renyi_to_epsilon_delta_is_tighter_than_the_textbook_and_says_so():
    plain = textbook.renyi_epsilon(10, 0.5, delta=1e-5)
    assert plain == pytest.approx(0.5 + math.log(1e5) / 9)
    cost = Cost.renyi({10: 0.5})
    assert cost.epsilon(delta=1e-5) < plain
    assert cost.epsilon(delta=1e-5) == pytest.approx(
        0.5 + math.log(9 / 10) - (math.log(1e-5) + math.log(10)) / 9, rel=1e-9
    )
    assert cost.bounds(delta=1e-5).method  # the engine that certifies it


def test_30_eight_hundred_gaussian_queries():
    query = Cost.gaussian(sigma=25, sensitivity=1)
    each = textbook.gaussian_epsilon(sigma=25, delta=1e-7 / 800, sensitivity=1)
    assert textbook.basic(each, 800)[0] == pytest.approx(217.156494, rel=1e-8)
    assert 800 * query.epsilon(delta=1e-7 / 800) == pytest.approx(176.827, rel=1e-5)
    assert textbook.zcdp_epsilon((800 * query).rho, delta=1e-7) == pytest.approx(7.063576, rel=1e-7)
    assert Cost.zcdp((800 * query).rho).epsilon(delta=1e-7) == pytest.approx(6.513957, rel=1e-6)
    assert (800 * query).epsilon(delta=1e-7) == pytest.approx(6.148799, rel=1e-6)
