"""WORKED EXAMPLES 1-9, 12-22, 27, 28 and 38, through the public API."""

import math
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from support.repeatable_noise import rng
from tacit.audit import audit, lab, neighbours

m = tc.mechanisms


def test_1_the_two_coin_survey():
    survey = m.RandomizedResponse.coins()
    assert survey.probability(True, truth=True) == Fraction(3, 4)
    assert survey.probability(True, truth=False) == Fraction(1, 4)
    assert survey.cost.epsilon(delta=0) == pytest.approx(math.log(3), rel=1e-15)
    assert survey.cost.epsilon(delta=0) >= math.log(3)


def test_2_the_most_that_odds_can_move():
    assert m.Laplace(epsilon=0.01, sensitivity=1).cost.odds == pytest.approx(1.01005, abs=1e-5)


def test_3_bits_about_one_person():
    assert m.Laplace(epsilon=0.1, sensitivity=1).cost.bits == pytest.approx(0.1443, abs=1e-4)


def test_4_divergence_of_the_laplace_mechanism():
    for epsilon in (0.1, 1, 3):
        textbook = m.Laplace(epsilon=epsilon, sensitivity=1).textbook
        assert textbook.kl == pytest.approx(epsilon + math.exp(-epsilon) - 1)
        assert m.Laplace(epsilon=epsilon, sensitivity=1).cost.kl == pytest.approx(textbook.kl, rel=1e-3)
    small = m.Laplace(epsilon=1e-3, sensitivity=1).textbook
    assert small.kl * small.variance == pytest.approx(1, abs=1e-3)


def test_5_realised_privacy_loss():
    laplace = m.Laplace(epsilon=0.5, sensitivity=1)
    assert laplace.privacy_loss(38.2, 38, 39) == pytest.approx(0.3, abs=1e-12)
    assert laplace.textbook.privacy_loss(38.2, 38, 39) == pytest.approx(0.3, abs=1e-12)
    for y in np.linspace(30, 50, 81):
        assert abs(laplace.privacy_loss(float(y), 38, 39)) <= 0.5 + 1e-12


def test_6_posterior_odds_move_by_at_most_exp_epsilon():
    survey = m.RandomizedResponse.coins()
    for prior in (0.01, 0.5, 0.9):
        odds = prior / (1 - prior)
        for answer in (True, False):
            bayes = odds * math.exp(survey.privacy_loss(answer, True, False))
            assert odds / survey.cost.odds <= bayes * (1 + 1e-12)
            assert bayes <= odds * survey.cost.odds * (1 + 1e-12)


def test_7_a_leak_with_probability_p_is_no_pure_privacy():

    def leaks(value, size):
        return np.where(rng.random(size) < 0.01, value, 99)

    leaky = tc.Cost.approximate(1, 0.01)
    with pytest.raises(tc.TacitError):
        leaky.epsilon(delta=0)
    assert leaky.epsilon(delta=0.01) == pytest.approx(1)
    found = audit(leaks, 0, 1, samples=200_000)
    assert found.epsilon_lower > 4
    assert audit(leaks, 0, 1, samples=200_000, delta=0.0105).epsilon_lower < 1


def test_8_a_count_has_sensitivity_1():
    count = m.Count(epsilon=1)
    assert count.sensitivity == 1
    assert neighbours(count.exact, [([1, 2], [1, 2, 3])], count.sensitivity).largest == 1


def test_9_the_mean_of_500_volunteers():
    hours = m.Mean(epsilon=0.12, bounds=(0, 8), n=500)
    assert float(hours.sensitivity) == 0.016
    assert float(hours.noise.scale) == pytest.approx(0.1333, abs=1e-4)


def test_12_mean_systolic_pressure():
    pressure = m.Mean(epsilon=0.5, delta=1e-6, bounds=(80, 200), n=5000)
    assert float(pressure.sensitivity) == 0.024
    assert isinstance(pressure.noise, m.Gaussian)


def test_13_a_salary_without_bounds_is_an_error_that_asks_for_them():
    with pytest.raises(tc.TacitError) as refused:
        m.Sum(epsilon=1)
    assert refused.value.code == "missing-bounds"
    assert "infinite" in refused.value.why
    assert "bounds=" in str(refused.value.fix)


def test_14_triangles_when_one_friendship_is_added_or_removed():
    networkx = pytest.importorskip("networkx")
    attack = lab.friendship(40, epsilons=[0.5], trials=5000)
    assert attack.after[1] - attack.before[1] == attack.common <= attack.local_sensitivity
    assert attack.global_sensitivity == 38
    assert attack.triangles[0].within_bound
    assert not attack.scaled_by_data[0].within_bound  # the local sensitivity is never a noise scale
    club = networkx.karate_club_graph()
    friends = tc.graph(club, unit="edge", nodes=list(club), degree_bound=33, budget=tc.Budget(epsilon=1000))
    release = friends.triangles().plan(epsilon=1000).release()
    assert (release.value, release.low, release.high) == (45, 45, 45)

    def pair():
        graph = networkx.gnp_random_graph(8, 0.7)
        other = graph.copy()
        one, two = rng.choice(8, 2, replace=False).tolist()
        (other.remove_edge if other.has_edge(one, two) else other.add_edge)(one, two)
        return graph, other

    def triangles(graph):
        return sum(networkx.triangles(graph).values()) // 3

    full = networkx.complete_graph(8)
    broken = full.copy()
    broken.remove_edge(0, 1)
    assert neighbours(triangles, pair, 6, tries=500).holds
    assert neighbours(triangles, [(full, broken)], 6).largest == 6  # n - 2 is reached


def test_15_sites_in_the_cells_of_a_map():
    cells = [(row, column) for row in range(4) for column in range(4)]
    sites = m.Histogram(epsilon=1, categories=cells)
    assert sites.noise.sensitivity == 1  # over the whole map
    some = [(0, 1), (2, 2), (2, 2)]
    assert neighbours(sites.exact, [(some, [*some, cell]) for cell in cells], 1).largest == 1
    spots = [(row + 0.5, column + 0.5) for row, column in some]
    box, budget = ((0, 0), (4, 4)), tc.Budget(epsilon=1)
    plan = tc.points(np.array(spots), unit=tc.Unit.row(), box=box, budget=budget).grid(4, 4).plan(epsilon=1)
    [noise] = plan.mechanisms
    assert noise["sensitivity"] == 1  # the map itself: the same noise, however many cells it has
    assert float(plan.cost.epsilon(delta=0)) == 1
    assert len(plan.release()) == 16  # empty cells too
    [point] = lab.heat_map(5, rounds=1, epsilons=[1], trials=2000).curve
    assert point.within_bound


def test_16_the_laplace_mechanism():
    laplace = m.Laplace(epsilon=0.5, sensitivity=3)
    assert laplace.scale == 6
    assert laplace.textbook.scale == laplace.textbook.mean_absolute_error == 6
    assert laplace.textbook.variance == 72
    assert laplace.variance == pytest.approx(72, rel=1e-6)


def test_17_daily_positive_tests():
    assert m.Laplace(epsilon=0.8, sensitivity=1).scale == Fraction(5, 4)


def test_18_mean_squared_error_of_a_count():
    for epsilon in (0.1, 0.5, 1):
        assert m.Laplace(epsilon=epsilon, sensitivity=1).textbook.variance == pytest.approx(2 / epsilon**2)
    whole, half = (m.Laplace(epsilon=e, sensitivity=1).textbook.variance for e in (1, 0.5))
    assert half == 4 * whole


def test_19_classic_gaussian():
    pressure = {"epsilon": 0.5, "delta": 1e-6, "sensitivity": 0.024}
    assert float(m.Gaussian(**pressure, calibration="classic").sigma) == pytest.approx(0.2543, abs=5e-5)


def test_20_analytic_gaussian_needs_less_and_works_above_1():
    pressure = {"epsilon": 0.5, "delta": 1e-6, "sensitivity": 0.024}
    assert m.Gaussian(**pressure).sigma < 0.85 * m.Gaussian(**pressure, calibration="classic").sigma
    above = m.Gaussian(epsilon=3, delta=1e-6, sensitivity=0.024)
    assert above.cost.delta(epsilon=3) <= 1e-6


def test_21_the_exponential_mechanism():
    votes = {"Aquila": 12, "Cygnus": 11, "Lyra": 8, "Orion": 3}
    chooser = m.Exponential(1, sensitivity=1)
    weights = {name: math.exp(n / 2) for name, n in votes.items()}
    assert chooser.probabilities(votes) == pytest.approx(
        {k: w / sum(weights.values()) for k, w in weights.items()}
    )
    codes = {"I10": 300, "E11": 120, "J45": 80}
    assert chooser.release(codes) == "I10"


def test_22_two_people():
    ages = m.Laplace(epsilon=0.5, sensitivity=100)
    assert ages.textbook.exceeds(100) == pytest.approx(0.6065, abs=5e-5)
    assert ages.exceeds(100) == pytest.approx(0.6065, abs=5e-5)


def test_27_sampling():
    sampled = m.Subsampled(m.Count(epsilon=1), q=0.05)
    assert sampled.cost.epsilon(delta=0) == pytest.approx(0.0824, abs=5e-5)


def test_28_post_processing_is_free():
    laplace = m.Laplace(epsilon=1, sensitivity=1)

    def tidy(value, size):
        return m.fold(m.truncate(laplace.release_many(value, size), -3, 3), -1, 1)

    assert audit(tidy, 0, 1, samples=50_000, claimed=laplace.cost).holds


def test_38_a_few_dozen_markers():
    markers = lab.singling_out(epsilons=[1], trials=2000)
    assert markers.crowds[-1] == 1_000_000
    assert markers.one["0.5"][-1] == 17
    assert markers.one["0.05 to 0.5"][-1] <= 24
    study = lab.genome_membership(100, snps=[1000], epsilons=[1], trials=2000)
    assert study.exact[1000] > 0.85
    assert study.insider[0].bound == pytest.approx(0.0705, abs=5e-4)
    assert study.homer[0].within_bound
    assert study.insider[0].within_bound
