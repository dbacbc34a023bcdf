"""Risks: the noise is chosen first, then its own law is inverted; check values to six digits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from scipy.stats import norm

from tacit import TacitError
from tacit.accounting import Budget, Cost, Risk, cost_of_budget

#: The risk, the largest pure epsilon, the largest mu of Gaussian noise, its rho, its epsilon at 1e-6.
TABLE = [
    ({"advantage": 0.05}, 0.100083, 0.125414, 0.007864, 0.5056),
    ({"advantage": 0.25}, 0.510826, 0.637279, 0.203062, 2.9463),
    ({"attack": (0.01, 0.02)}, 0.693147, 0.272599, 0.037155, 1.1646),
    ({"attack": (0.05, 0.10)}, 0.693147, 0.363302, 0.065994, 1.5900),
    ({"attack": (0.001, 0.01)}, 2.302585, 0.763884, 0.291760, 3.6057),
    ({"belief": (0.01, 0.02)}, 0.703300, 0.145723, 0.010618, 0.5938),
    ({"belief": (0.5, 0.75)}, 1.098612, 0.225759, 0.025484, 0.9503),
]


def gaussian(mu):
    return Cost.gaussian(sigma=1 / Fraction(mu), sensitivity=1)


def largest_mu(risk):
    return risk.largest(lambda mu: risk.used(gaussian(mu)), risk.unknown_epsilon())


@pytest.mark.parametrize(("asked", "epsilon", "mu", "rho", "at_delta"), TABLE)
def test_the_laws_of_laplace_and_gaussian_noise_are_inverted_to_six_digits(asked, epsilon, mu, rho, at_delta):
    assert float(Budget.from_risk(**asked).epsilon) == pytest.approx(epsilon, abs=1.1e-6)
    risk = Risk.read(**asked, delta=1e-6)
    found = largest_mu(risk)
    assert float(found) == pytest.approx(mu, abs=1.1e-6)
    assert float(found**2 / 2) == pytest.approx(rho, abs=1.1e-6)
    assert gaussian(found).epsilon(delta=1e-6) == pytest.approx(at_delta, abs=6e-5)


@pytest.mark.parametrize("asked", [one[0] for one in TABLE])
def test_the_amount_is_on_the_safe_side_and_the_next_one_is_not(asked):
    risk = Risk.read(**asked, delta=1e-6)
    mu = largest_mu(risk)
    unit = Fraction(10) ** (math.floor(math.log10(risk.unknown_epsilon())) - 6)
    assert mu % unit == 0
    assert risk.is_met(gaussian(mu))
    assert not risk.is_met(gaussian(mu + unit))


@pytest.mark.parametrize("start", [0.001, 0.01, 0.05, 0.3])
def test_the_miss_rate_of_gaussian_noise_is_the_exact_one_to_six_digits(start):
    for mu in (0.1, 0.272599, 0.763884, 2.0):
        exact = norm.cdf(norm.ppf(1 - start) - mu)
        bound = gaussian(str(mu)).tradeoff(start)
        assert bound <= exact
        assert bound == pytest.approx(exact, rel=1e-6)


def test_gaussian_noise_reads_much_more_epsilon_at_the_same_advantage():
    risk = Risk.read(advantage=0.05)
    wrong = Budget.from_risk(advantage=0.05).epsilon  # what is known of unknown noise
    assert gaussian(largest_mu(risk)).epsilon(delta=1e-6) > 5 * wrong


def test_compositions_have_less_risk_than_the_sum_of_their_parts():
    for k, advantage in ((1, 0.3935), (4, 0.1842), (16, 0.0977)):
        parts = k * Cost.laplace(scale=k, sensitivity=1)
        assert parts.advantage == pytest.approx(advantage, abs=5e-5)
        assert Risk.read(advantage=advantage + 5e-5).is_met(parts)
    assert Cost.pure(1).advantage == pytest.approx(0.4621, abs=5e-5)
    assert Cost.zcdp(0.005).advantage == pytest.approx(0.05, abs=1e-10)


def test_a_delta_does_not_stand_for_the_chance_of_an_exception():
    """The twin: take the Gaussian noise that reads (logit q - logit p, delta)."""
    risk = Risk.read(belief=(0.01, 0.02), delta=1e-6)
    twin = gaussian("0.1706")
    assert twin.epsilon(delta=1e-6) == pytest.approx(0.7033, abs=1e-3)
    assert twin.loss_exceeds(risk.loss) == pytest.approx(2.7e-5, rel=0.03)
    assert not risk.is_met(twin)
    assert largest_mu(risk) < 0.1706


def test_a_belief_is_bounded_for_every_answer_only_by_pure_noise():
    risk = Risk.read(belief=(0.01, 0.02))
    assert risk.is_met(Cost.pure(0.7032))
    assert not risk.is_met(Cost.pure(0.7034))
    assert not risk.is_met(gaussian("0.001"))
    assert not risk.is_met(Cost.approximate(0.001, 1e-12))
    for wrong in ({"delta": 1e-6}, {"total": "rho"}):
        with pytest.raises(TacitError, match="every answer") as refused:
            Budget.from_risk(belief=(0.01, 0.02), **wrong)
        assert refused.value.code == "no-guarantee"
        assert "total='epsilon'" in str(refused.value.fix) or 'total="epsilon"' in str(refused.value.fix)


@pytest.mark.parametrize("asked", [{"advantage": 0.05}, {"attack": (0.01, 0.02)}, {"advantage": 0.9}])
@pytest.mark.parametrize("form", [{}, {"delta": 1e-6}, {"total": "rho"}, {"total": "rho", "delta": 1e-6}])
def test_a_budget_from_a_risk_keeps_it_in_each_of_the_four_forms(asked, form):
    budget = Budget.from_risk(**asked, **form)
    assert (budget.rho is None) == ("total" not in form)
    assert budget.delta == Fraction(str(form.get("delta", 0)))
    risk = Risk.read(**asked)
    assert risk.is_met(cost_of_budget(budget))
    larger = Budget(
        budget.epsilon and budget.epsilon * Fraction("1.00001"), budget.delta,
        rho=budget.rho and budget.rho * Fraction("1.00001"),
    )  # fmt: skip
    assert not risk.is_met(cost_of_budget(larger))


def test_the_closed_forms_of_unknown_noise_are_found_by_the_search():
    for asked in ({"advantage": 0.05}, {"attack": (0.01, 0.02)}, {"attack": (0.3, 0.9)}):
        for delta in (0, 1e-6, 1e-3):
            closed = Risk.read(**asked).unknown_epsilon(Fraction(str(delta)))
            assert float(Budget.from_risk(**asked, delta=delta).epsilon) == pytest.approx(closed, rel=2e-6)


def test_a_search_tries_larger_amounts_where_the_noise_changes_in_between():
    risk = Risk.read(advantage=0.05)

    def used(amount):
        fits = amount <= Fraction("0.1") or Fraction("0.21") <= amount <= Fraction("0.37")
        return 0.5 if fits else 2.0

    assert risk.largest(used, 0.1) == Fraction("0.1")
    assert risk.largest(used, 0.1, higher=True) == Fraction("0.37")
    assert risk.largest(lambda _: 2.0, 0.1) is None
    assert risk.largest(lambda _: 2.0, 0.1, higher=True) is None


def test_the_risk_that_is_used_grows_with_the_cost():
    for asked in ({"advantage": 0.2}, {"attack": (0.1, 0.3)}, {"belief": (0.1, 0.3)}):
        risk = Risk.read(**asked)
        used = [risk.used(Cost.pure(epsilon)) for epsilon in (0.01, 0.1, 0.3, 1, 3)]
        assert all(low < high for low, high in pairwise(used))


@pytest.mark.parametrize(
    "wrong",
    [
        {"advantage": 0}, {"advantage": 1}, {"advantage": -0.1}, {"advantage": float("nan")},
        {"advantage": True}, {"advantage": "5 %"}, {"attack": (0.02, 0.01)}, {"attack": (0.01, 0.01)},
        {"attack": (0, 0.5)}, {"attack": (0.5, 1)}, {"attack": 0.5}, {"attack": (0.1, 0.2, 0.3)},
        {"belief": (0.75, 0.5)}, {"belief": (0.5, 1)}, {"belief": "certain"}, {},
        {"advantage": 0.1, "belief": (0.1, 0.2)},
    ],
)  # fmt: skip
def test_a_wrong_risk_is_refused_with_one_that_works(wrong):
    with pytest.raises(TacitError) as refused:
        Budget.from_risk(**wrong)
    assert refused.value.code == "bad-parameter"
    assert str(refused.value.fix)


def test_the_words_are_rounded_so_that_they_hold():
    words = Risk.read(advantage=0.05).words(Cost.pure(1), "patient")
    assert "right at most 73.11 % of the time instead of 50 %" in words  # 73.1059
    words = Risk.read(advantage=0.05).words(Cost.pure(1), "patient", "replace")
    assert "the one of two values" in words
    words = Risk.read(attack=(0.01, 0.02)).words(Cost.pure(1), "patient")
    assert "wrong for at most 1 % of those of whom it is not true, finds at most 2.719 %" in words
    words = Risk.read(belief=(0.01, 0.02)).words(Cost.approximate(1, 1e-6), "patient")
    assert words.endswith("except with probability 2e-06")
    words = Risk.read(belief=(0.01, 0.02)).words(Cost.pure(1000), "patient")
    assert "becomes at most 100 %" in words


def test_tiny_risks_are_read_and_beliefs_round_down():
    assert Budget.from_risk(advantage=1e-140, total="rho").rho > 0
    with pytest.raises(TacitError, match="no amount of noise"):
        Budget.from_risk(advantage=1e-300, total="rho")
    for before, after in ((0.5, 0.5 + 1e-13), (0.01, 0.02), (0.3, 0.3 + 2**-50)):
        risk = Risk.read(belief=(before, after))
        odds = (risk.end / (1 - risk.end)) / (risk.start / (1 - risk.start))
        with mpmath.workdps(60):
            exact = mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator)
            assert 0 <= exact - mpmath.mpf(risk.loss) <= 1e-15 * exact
