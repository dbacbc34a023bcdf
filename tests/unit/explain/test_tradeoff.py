"""Questions, the epsilon that an error needs, and what a budget buys."""

import math

import pytest

import tacit as tc
from tacit.explain import ExplainedQuestion, rate_distortion, small_crowd, tradeoff, what_a_budget_buys
from tacit.show import draw_curve


def test_a_salary_without_bounds_asks_for_them():  # WORKED_EXAMPLES 13
    with pytest.raises(tc.TacitError, match="needs bounds") as refusal:
        ExplainedQuestion("sum", n=100)
    assert "bounds=" in str(refusal.value.fix)


def test_sensitivities():  # WORKED_EXAMPLES 8, 9, 12
    assert ExplainedQuestion("count").sensitivity == 1
    assert float(ExplainedQuestion("mean", n=500, bounds=(0, 8)).sensitivity) == 0.016
    assert float(ExplainedQuestion("mean", n=5000, bounds=(80, 200)).sensitivity) == 0.024
    assert ExplainedQuestion("sum", bounds=(-40, 30)).sensitivity == 40


def test_which_epsilon_do_i_need():
    answer = tradeoff("mean", n=5000, bounds=(80, 200), error=1)
    assert answer.epsilon == pytest.approx(0.024 * math.log(20), rel=1e-4)
    assert answer.textbook == pytest.approx(0.024 * math.log(20), rel=1e-12)
    again = tc.mechanisms.Laplace(epsilon=answer.epsilon, sensitivity=answer.question.sensitivity)
    assert again.error(0.95) <= 1
    assert "X" in answer.chart()


def test_the_count_needs_whole_noise():
    answer = tradeoff("count", error=5)
    counted = tc.mechanisms.DiscreteLaplace(epsilon=answer.epsilon, sensitivity=1)
    assert counted.error(0.95) <= 5
    slightly_less = tc.mechanisms.DiscreteLaplace(epsilon=answer.epsilon * (1 - 1e-4), sensitivity=1)
    assert slightly_less.error(0.95) > 5


def test_error_falls_with_epsilon_and_n():
    answer = tradeoff("mean", n=5000, bounds=(80, 200), error=1)
    assert [error for _, error in answer.curve] == sorted((error for _, error in answer.curve), reverse=True)
    by_n = dict(answer.crowd)
    assert by_n[2500] == pytest.approx(2 * by_n[5000], rel=1e-3)


def test_a_wanted_error_says_that_it_counts_one_row_per_person():
    mean = str(tradeoff("mean", n=5000, bounds=(0, 30), error=1))
    assert "One row per person is assumed." in mean
    assert "tacit plan SQL --within 1 --size 5000" in mean.replace("\n", " ")
    assert "--size" not in str(tradeoff("count", error=1))


def test_halving_epsilon_quadruples_the_squared_error():  # WORKED_EXAMPLES 18
    half, whole = rate_distortion([0.05, 0.1]).points
    assert half.textbook_mse / whole.textbook_mse == pytest.approx(4)
    assert whole.textbook_mse == pytest.approx(2 / 0.1**2)
    assert half.mse / whole.mse == pytest.approx(4, rel=2e-3)


def test_kl_times_mse_tends_to_one():  # WORKED_EXAMPLES 4
    (point,) = rate_distortion([0.001]).points
    assert point.textbook_kl == pytest.approx(0.001 + math.expm1(-0.001), rel=1e-6)
    assert point.textbook_kl * point.textbook_mse == pytest.approx(1, abs=1e-3)
    assert point.kl * point.mse == pytest.approx(1, abs=1e-3)


def test_two_people_are_too_small_a_crowd():  # WORKED_EXAMPLES 22
    crowd = small_crowd(truth=100, bound=100, epsilon=0.5)
    assert crowd.useless_textbook == pytest.approx(math.exp(-0.5))
    assert crowd.useless == pytest.approx(math.exp(-0.5), abs=1e-5)
    enough = small_crowd(truth=100, bound=100, epsilon=crowd.needed)
    assert enough.useless <= 0.05


def test_a_budget_is_divided_so_that_the_next_cent_is_worth_the_same_everywhere():
    questions = {
        "all": ExplainedQuestion("count", 20_000),
        "rare": ExplainedQuestion("count", 300),
        "sum": ExplainedQuestion("sum", 50, (0, 9)),
    }
    best = what_a_budget_buys(questions, epsilon=2, weights={"rare": 3})
    assert sum(one.epsilon for one in best.purchases) == pytest.approx(2)
    assert best.total < best.equal_split
    weights = {"all": 1, "rare": 3, "sum": 1}
    prices = [weights[one.name] * one.relative / one.epsilon for one in best.purchases]
    assert prices == pytest.approx([best.price] * 3)
    assert sum(weights[one.name] * one.relative for one in best.purchases) == pytest.approx(best.total)


def test_a_flat_curve_can_be_drawn():
    assert "*" in draw_curve([1, 2], [3, 3], xlabel="x", ylabel="y")
