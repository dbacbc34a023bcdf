"""The best of several runs: check values of Papernot and Steinke's bounds, and selections written out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.accounting import Budget, Cost, Filter, genuine
from tacit.errors import TacitError

ONE = Cost.gaussian(sigma=1 / math.sqrt(2 * 0.02801), sensitivity=1)  # epsilon 1 at delta 1e-6


@pytest.mark.parametrize(
    ("law", "values"),
    [
        ("logarithmic", (1.675, 1.799, 2.030)),
        ("geometric", (1.950, 2.150, 2.531)),
        ("poisson", (1.526, 1.926, 4.559)),
    ],
)
def test_the_best_of_several_gaussian_runs_has_the_published_epsilon(law, values):
    for runs, value in zip((5, 10, 50), values, strict=True):
        assert Cost.best_of(ONE, runs=runs, law=law).epsilon(delta=1e-6) == pytest.approx(value, abs=1e-3)


def best_law(law: np.ndarray, runs: str, parameter: float) -> np.ndarray:
    """Return the law of the best of K outcomes; outcome i is better than all before it, the first is none."""
    k = np.arange(1, 4000)
    match runs:
        case "logarithmic":
            weight, none = (1 - parameter) ** k / k / math.log(1 / parameter), 0.0
        case "geometric":
            weight, none = parameter * (1 - parameter) ** (k - 1), 0.0
        case _:
            logs = k * math.log(parameter) - parameter - np.array([math.lgamma(one + 1) for one in k])
            weight, none = np.exp(logs), math.exp(-parameter)
    upto = np.cumsum(law)
    at_most = np.array([float((weight * one**k).sum()) for one in upto])
    return np.concatenate([[none], np.diff(np.concatenate([[0.0], at_most]))])


@pytest.mark.parametrize(("runs", "mean"), [("logarithmic", 6), ("geometric", 4), ("poisson", 3)])
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_the_cost_of_the_best_run_covers_the_selection_itself(runs, mean, epsilon):
    cost = Cost.best_of(Cost.pure(epsilon), runs=mean, law=runs)
    parameter = float(cost.parts[0][0].parameter)
    rare, odds = 1e-3, math.exp(epsilon)
    # a rare good outcome, which the choice makes likely: the worst case of selection
    pairs = [
        (np.array([1 - rare, rare]), np.array([1 - rare * odds, rare * odds])),
        (np.array([1, odds]) / (1 + odds), np.array([odds, 1]) / (1 + odds)),
        (np.array([1, odds, 1]) / (2 + odds), np.array([odds, 1, 1]) / (2 + odds)),
    ]
    largest = 0.0
    for one, other in pairs:
        p, q = best_law(one, runs, parameter), best_law(other, runs, parameter)
        for a, b in ((p, q), (q, p)):
            keep = a > 1e-12
            largest = max(largest, float(np.log(a[keep] / b[keep]).max()))
            for order in (1.5, 4, 20):
                truth = math.log(float((a[keep] ** order * b[keep] ** (1 - order)).sum())) / (order - 1)
                assert truth <= cost.renyi_divergence(order) + 1e-9
            for e in (0, 0.2, 1):
                truth = float(np.maximum(a - math.exp(e) * b, 0).sum())
                assert truth <= cost.delta(epsilon=e) + 1e-9
    assert largest <= cost.epsilon(delta=0) + 1e-9
    assert largest > 1.2 * epsilon  # the selection does cost more than one run


def test_a_poisson_number_of_runs_counts_the_chance_of_none():
    """One run that reveals almost nothing: the moment holds exp(-1/2) for no run, and 1/2 for the others."""
    cost = Cost.best_of(Cost.gaussian(sigma=10**6, sensitivity=1), runs=0.5, law="poisson")
    ((_, value),) = cost.spend_at((Fraction(2),)).curve
    assert float(value) == pytest.approx(math.log(math.exp(-0.5) + 0.5), abs=1e-4)
    assert float(value) > 0.1


def test_candidates_cost_as_much_as_the_largest_of_them():
    small, large = Cost.gaussian(sigma=9, sensitivity=1), Cost.gaussian(sigma=5, sensitivity=1)
    both = Cost.best_of(small, large, small, runs=10)
    assert both.epsilon(delta=1e-6) == Cost.best_of(large, runs=10).epsilon(delta=1e-6)
    assert both == Cost.best_of(large, small, runs=10)


def test_a_training_run_is_selected_stored_charged_and_shown():
    training = 1000 * Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
    for law in ("logarithmic", "geometric", "poisson"):
        cost = Cost.best_of(training, Cost.pure(0.5), runs=10, law=law)
        assert Cost.from_json(cost.to_json()) == cost
        assert genuine(cost) == cost
        assert eval(repr(cost), {"Cost": Cost, "Fraction": Fraction}) == cost
        assert 1.82824 < cost.epsilon(delta=1e-5) < 6
        assert Filter.start(Budget(50, 1e-5)).how_many(cost) >= 1
        assert cost.group(2).renyi_divergence(2) > cost.renyi_divergence(2)
        with pytest.raises(TacitError, match="best of several"):
            _ = cost.mu


def test_a_filter_admits_selections_as_long_as_their_sum_fits():
    step = Cost.best_of(Cost.gaussian(sigma=60, sensitivity=1), runs=10)
    filter_ = Filter.start(Budget(8, 1e-6))
    times = filter_.how_many(step)
    assert times >= 5
    assert (times * step).epsilon(delta=1e-6) <= 8


def test_a_delta_of_the_candidates_counts_once_for_each_run():
    cost = Cost.best_of(Cost.approximate(0.5, 1e-8), runs=10, law="geometric")
    assert cost.spend.delta == Fraction(1, 10**7)
    assert cost.spend.epsilon == Fraction(3, 2)
    with pytest.raises(TacitError, match="without a delta"):
        Cost.best_of(Cost.approximate(0.5, 1e-8), runs=10, law="poisson")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cost.best_of(runs=10),
        lambda: Cost.best_of(ONE),
        lambda: Cost.best_of(ONE, runs=10, gamma=0.1),
        lambda: Cost.best_of(ONE, runs=1),
        lambda: Cost.best_of(ONE, gamma=1),
        lambda: Cost.best_of(ONE, gamma=0.1, law="poisson"),
        lambda: Cost.best_of(ONE, runs=10, law="fixed"),
        lambda: Cost.best_of(ONE, 3, runs=10),
    ],
)
def test_a_selection_without_a_proper_law_of_runs_is_refused(make):
    with pytest.raises(TacitError) as caught:
        make()
    assert caught.value.code == "bad-parameter"


def test_a_selection_is_neither_sampled_nor_a_local_report_of_samples():
    with pytest.raises(TacitError, match="best of"):
        Cost.best_of(ONE, runs=10).sampled(0.1)
    with pytest.raises(TacitError, match="local report"):
        Cost.best_of(Cost.pure(1).sampled(0.1), runs=10).shuffled(100)
    with pytest.raises(TacitError, match="replaced"):
        Cost.from_json({**Cost.best_of(ONE.sampled(0.1), runs=9).to_json(), "adjacency": "replace"})
    assert Cost.best_of(Cost.zero(), runs=10) == Cost.zero()


def test_a_law_of_runs_near_one_run_has_a_mean_of_about_one_run():
    """The logarithm of 1 / gamma is then 0 in the arithmetic, and the mean must not divide by it."""
    near = Fraction(10**60 - 1, 10**60)
    cost = Cost.best_of(ONE, gamma=near)
    assert cost.renyi_divergence(8) >= ONE.renyi_divergence(8)
    assert ONE.epsilon(delta=1e-6) <= cost.epsilon(delta=1e-6) < 1.2 * ONE.epsilon(delta=1e-6)


def test_runs_that_reveal_nothing_but_with_a_small_probability_have_a_reading():
    cost = Cost.best_of(Cost.approximate(0, 1e-8), runs=10)
    assert 1e-8 < cost.delta(epsilon=1) < 1.01e-7
    assert cost.epsilon(delta=1e-6) < 1e-6
    stored = Cost.best_of(ONE, runs=10).to_json()
    stored["parts"][0]["candidates"] = [[]]
    assert Cost.from_json(stored).delta(epsilon=0) == 0
