"""Randomized response with several categories: its exact law, alone, composed, sampled and shuffled."""

import math
from itertools import product

import numpy as np
import pytest

import tacit as tc
from tacit.accounting import Cost
from tacit.errors import TacitError


def losses(epsilon, k):
    whole = math.exp(epsilon) + k - 1
    return {epsilon: math.exp(epsilon) / whole, 0.0: (k - 2) / whole, -epsilon: 1 / whole}


def exact_delta(law, times, e):
    """Return delta of the composition, by listing how often each loss occurs."""
    (a, p), (_, q), (_, r) = law.items()
    total = 0.0
    for i, j in product(range(times + 1), repeat=2):
        if i + j <= times:
            ways = math.comb(times, i) * math.comb(times - i, j)
            loss = (i - j) * a
            total += ways * p**i * r**j * q ** (times - i - j) * max(0.0, -math.expm1(e - loss))
    return total


@pytest.mark.parametrize("k", [2, 3, 7, 40])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("times", [1, 2, 9])
def test_compositions_are_exact(epsilon, k, times):
    cost = times * Cost.randomized_response(epsilon, categories=k)
    for e in (0.0, epsilon / 2, 0.999 * epsilon * times):
        low, high, _ = cost.bounds(epsilon=e)
        truth = exact_delta(losses(epsilon, k), times, e)
        assert low <= truth * (1 + 1e-11)
        assert truth * (1 - 1e-11) <= high <= truth * (1 + 1e-9) + 1e-299


def test_two_categories_are_one_bit():
    for e in (0.0, 0.4, 2.5):
        two, bit = 5 * Cost.randomized_response(0.7, categories=2), 5 * Cost.randomized_response(0.7)
        assert two.delta(epsilon=e) == pytest.approx(bit.delta(epsilon=e), rel=1e-12)
    assert two.rho == bit.rho


@pytest.mark.parametrize("k", [2, 3, 5, 6, 30, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0, 8.0])
def test_rho_is_the_largest_divergence_over_its_order(k, epsilon):
    orders = 1 + np.exp(np.linspace(math.log(1e-4), math.log(1e5), 4000)) / epsilon
    law = losses(epsilon, k)
    z = orders - 1
    gains = sum(p * np.expm1(np.minimum(z * loss, 600)) for loss, p in law.items() if p)
    ratios = np.log1p(gains)[z * epsilon < 600] / (z * orders)[z * epsilon < 600]
    rho = Cost.randomized_response(epsilon, categories=k).rho
    assert float(ratios.max()) * (1 - 1e-12) <= rho <= float(ratios.max()) * (1 + 1e-4)
    cost = Cost.randomized_response(epsilon, categories=k)
    assert cost.renyi_divergence(3) == pytest.approx(
        math.log(sum(p * math.exp(2 * loss) for loss, p in law.items())) / 2, rel=1e-9
    )


def test_sums_without_a_common_lattice_are_bracketed():
    cost = 2 * Cost.randomized_response(1, categories=4) + 3 * Cost.randomized_response(0.77, categories=9)
    one, other = losses(1.0, 4), losses(0.77, 9)
    for e in (0.0, 0.9, 2.4):
        truth = 0.0
        for picks in product(*[one.items()] * 2, *[other.items()] * 3):
            mass = math.prod(p for _, p in picks)
            truth += mass * max(0.0, -math.expm1(e - sum(loss for loss, _ in picks)))
        low, high, _ = cost.bounds(epsilon=e)
        assert low <= truth * (1 + 1e-9)
        assert truth * (1 - 1e-9) <= high <= truth * 1.01


def test_a_sample_is_exact():
    cost = Cost.randomized_response(1.5, categories=5).sampled(0.2)
    law = losses(1.5, 5)
    p = np.array(list(law.values()))
    r = p * np.exp(-np.array(list(law)))
    for e in (0.0, 0.1, 0.4):
        mix = 0.8 * r + 0.2 * p
        truth = max(
            float(np.maximum(mix - math.exp(e) * r, 0).sum()),
            float(np.maximum(r - math.exp(e) * mix, 0).sum()),
        )
        assert cost.delta(epsilon=e) == pytest.approx(truth, rel=1e-9, abs=1e-14)


def shuffled_law(values, epsilon, k):
    """Return the law of the sorted answers."""
    chance = {True: math.exp(epsilon) / (math.exp(epsilon) + k - 1), False: 1 / (math.exp(epsilon) + k - 1)}
    found: dict[object, float] = {}
    for answers in product(range(k), repeat=len(values)):
        mass = math.prod(chance[a == v] for a, v in zip(answers, values, strict=True))
        found[tuple(sorted(answers))] = found.get(tuple(sorted(answers)), 0.0) + mass
    return found


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 4, 5])
@pytest.mark.parametrize("epsilon", [0.5, 1.5, 3.0])
def test_shuffled_reports_are_covered_whatever_the_others_say(k, n, epsilon):
    cost = Cost.randomized_response(epsilon, categories=k).shuffled(n)
    twice = 2 * cost
    for others in {tuple(sorted(o)) for o in product(range(k), repeat=n - 1)}:
        p, q = shuffled_law((0, *others), epsilon, k), shuffled_law((1, *others), epsilon, k)
        for e in (0.0, 0.2, 0.8, 0.95 * epsilon):
            truth = sum(max(0.0, p[x] - math.exp(e) * q[x]) for x in p)
            assert cost.delta(epsilon=e) >= truth * (1 - 1e-9)
            if n < 4:
                both = sum(max(0.0, p[x] * p[y] - math.exp(e) * q[x] * q[y]) for x in p for y in p)
                assert twice.delta(epsilon=e) >= both * (1 - 1e-9)


def test_shuffled_reports_hide_better_than_any_local_report_would():
    general = Cost.randomized_response(1).shuffled(10_000)
    assert general == Cost.pure(1).shuffled(10_000)
    two = Cost.randomized_response(1, categories=2).shuffled(10_000)
    assert two.epsilon(delta=1e-6) < 0.82 * general.epsilon(delta=1e-6)
    many = Cost.randomized_response(1, categories=50)
    assert many.shuffled(100).epsilon(delta=1e-6) <= Cost.pure(1).shuffled(100).epsilon(delta=1e-6)
    assert many.shuffled(100).adjacency == "replace"


def test_the_mechanism_states_its_categories():
    four = tc.mechanisms.RandomizedResponse(epsilon=1, categories=4)
    assert four.cost == Cost.randomized_response(1, categories=4, adjacency="replace")
    assert (50 * four.cost).epsilon(delta=1e-6) < 0.8 * (50 * Cost.pure(1)).epsilon(delta=1e-6)
    assert tc.mechanisms.RandomizedResponse(epsilon=1).cost == Cost.randomized_response(
        1, adjacency="replace"
    )
    lies = tc.mechanisms.RandomizedResponse(p=0.1, categories=4)  # its lies hide less than its truths would
    assert lies.cost == Cost.randomized_response(lies.epsilon, adjacency="replace")


def test_it_is_stored_and_shown():
    cost = 3 * Cost.randomized_response(0.1, categories=5, adjacency="replace")
    cost = cost + Cost.randomized_response(1, categories=3).shuffled(7)
    assert Cost.from_json(cost.to_json()) == cost
    assert eval(repr(cost), {"Cost": Cost}) == cost
    for bad in (1, 0, 2.5, "3"):
        with pytest.raises(TacitError):
            Cost.randomized_response(1, categories=bad)


def test_more_categories_and_a_smaller_epsilon_are_dominated():
    big, small = Cost.randomized_response(1, categories=3), Cost.randomized_response(0.9, categories=4)
    assert Cost.parallel(big, small).bounds(epsilon=0.3) == big.bounds(epsilon=0.3)
    assert small.delta(epsilon=0.3) < big.delta(epsilon=0.3) < Cost.pure(1).delta(epsilon=0.3)
