"""Sampled steps: the sample is drawn from the object that is charged, and every step is taken with noise."""

from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit import Cost, TacitError

m = tc.mechanisms


class Counting:
    """Sums that record what they are asked for."""

    def __init__(self, units, width=1):
        self.units = units
        self.width = width
        self.samples = []
        self.seen = []

    def sums(self, sample):
        self.samples.append(sample)
        return np.full(self.width, len(sample))

    def update(self, noisy):
        self.seen.append(np.asarray(noisy))

    def result(self):
        return "done"


def test_the_cost_is_that_of_the_sample_that_is_drawn():
    steps = m.SampledSteps(sigma=2, sensitivity=1, rate=0.05, steps=200)
    assert steps.cost == 200 * Cost.gaussian(sigma=2, sensitivity=1).sampled(Fraction(1, 20))
    work = Counting(2000)
    assert steps.release(work) == "done"
    sizes = [len(sample) for sample in work.samples]
    assert len(sizes) == len(work.seen) == 200
    assert abs(sum(sizes) - 20_000) < 6 * np.sqrt(20_000)
    assert len(set(sizes)) > 5  # no fixed size
    assert all(np.all(np.diff(sample) > 0) for sample in work.samples)  # nobody twice
    members = np.concatenate(work.samples)
    assert members.min() < 100
    assert members.max() >= 1900


def test_an_empty_sample_takes_a_step_with_noise():
    work = Counting(0, width=1000)
    m.SampledSteps(sigma=5, sensitivity=1, rate=0.5, steps=3).release(work)
    assert [len(sample) for sample in work.samples] == [0, 0, 0]
    assert all(np.count_nonzero(noisy) > 700 for noisy in work.seen)
    assert not np.array_equal(work.seen[0], work.seen[1])  # fresh noise for each step


def test_every_unit_is_taken_at_rate_one():
    work = Counting(7)
    m.SampledSteps(sigma=1, sensitivity=1, rate=1, steps=2).release(work)
    assert [sample.tolist() for sample in work.samples] == [list(range(7))] * 2


def test_unsigned_sums_beyond_64_bits_stay_near_their_neighbours():
    """2^63 and 2^63 - 1 are neighbours; a sum that wrapped around would be at the other end."""
    steps = tc.mechanisms.SampledSteps(sigma=1, sensitivity=1, rate=1, steps=1)
    made = steps.noisy(np.array([2**63 - 1, 2**63, 2**64 - 1], np.uint64))
    assert made.min() > 2**63 - 100


def test_sums_in_floats_are_refused_and_sums_beyond_64_bits_stop_at_the_end():
    steps = m.SampledSteps(sigma=1000, sensitivity=1, rate=1, steps=1)
    with pytest.raises(TypeError, match="whole numbers"):
        steps.noisy(np.zeros(3))
    top = 2**63 - 1
    noisy = steps.noisy(np.full(500, top))
    assert noisy.max() == top
    assert noisy.min() > top - 10**5  # nothing wrapped around


@pytest.mark.parametrize(
    ("rate", "steps", "epsilon"),
    [(0.02, 200, 0.5732), (0.05, 200, 1.5606), (0.1, 200, 3.3597), (0.2, 200, 7.3723)],
)
def test_costs_of_a_training_run(rate, steps, epsilon):
    made = m.SampledSteps(sigma=2, sensitivity=1, rate=rate, steps=steps)
    assert made.cost.epsilon(delta=1e-5) == pytest.approx(epsilon, abs=6e-5)


@pytest.mark.parametrize("sensitivity", [1, 2**20])
def test_calibrated_steps_keep_the_promise_and_waste_little(sensitivity):
    promise = {"epsilon": 2, "delta": 1e-6}
    made = m.SampledSteps.calibrated(**promise, sensitivity=sensitivity, rate=0.02, steps=300)
    assert made.cost.epsilon(delta=1e-6) <= 2
    less = m.SampledSteps(
        sigma=made.sigma * Fraction(9999, 10_000), sensitivity=sensitivity, rate=0.02, steps=300
    )
    assert less.cost.epsilon(delta=1e-6) > 2
    full = m.SampledSteps.calibrated(rho=0.5, sensitivity=sensitivity, rate=1, steps=100)
    assert float(full.sigma) == pytest.approx(10 * sensitivity, rel=1e-5)
    assert full.cost.rho <= 0.5


def test_bad_parameters_are_refused():
    for bad in ({"rate": 1.5}, {"rate": 0}, {"steps": 0}, {"sigma": 0}, {"sigma": 2**57}):
        with pytest.raises(TacitError) as refused:
            m.SampledSteps(**({"sigma": 1, "sensitivity": 1, "rate": 0.5, "steps": 2} | bad))
        assert refused.value.code == "bad-parameter"
    with pytest.raises(TacitError, match="exactly one of"):
        m.SampledSteps.calibrated(sensitivity=1, rate=0.5, steps=2)
    with pytest.raises(TacitError, match="delta"):
        m.SampledSteps.calibrated(epsilon=1, sensitivity=1, rate=0.5, steps=2)
