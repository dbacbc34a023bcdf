"""Sampled steps and rounded noise are attacked on their worst pair; broken copies of the steps are caught."""

import pytest

import tacit as tc
from tacit.audit import audit
from twins import learn_steps

m = tc.mechanisms
CLAIMED = m.SampledSteps(
    sigma=learn_steps.SIGMA, sensitivity=1, rate=learn_steps.RATE, steps=learn_steps.STEPS
).cost
TWINS = [
    learn_steps.one_sample_for_all_steps,
    learn_steps.empty_batches_skipped,
    learn_steps.noise_once,
    learn_steps.half_the_noise,
    learn_steps.noise_on_the_mean_of_the_sample,
    learn_steps.larger_rate,
    learn_steps.clipped_after_the_sum,
]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_a_broken_copy_of_sampled_steps_is_caught(twin):
    found = audit(twin, 0, 1, samples=100_000, delta=0.01, claimed=CLAIMED)
    assert found.at(1 - 1e-7).epsilon_lower > CLAIMED.epsilon(delta=0.01), found


def test_the_right_copy_is_not_caught():
    found = audit(learn_steps.right, 0, 1, samples=100_000, delta=0.01, claimed=CLAIMED)
    assert found.holds, found
    assert found.epsilon_lower > 0.6 * CLAIMED.epsilon(delta=0.01), found  # the attack has power


@pytest.mark.parametrize("rate", [1, 0.5])
def test_no_attack_on_sampled_steps_exceeds_their_cost(rate):
    steps = m.SampledSteps(sigma=16, sensitivity=16, rate=rate, steps=3)
    found = audit(steps, samples=4_000, delta=0.01)
    assert found.holds, found
    assert found.epsilon_lower > 0.3, found


@pytest.mark.long
@pytest.mark.parametrize("rate", [1, 0.5, 0.1])
def test_no_long_attack_on_sampled_steps_exceeds_their_cost(rate):
    assert audit(
        m.SampledSteps(sigma=16, sensitivity=16, rate=rate, steps=3), samples=60_000, delta=0.01
    ).holds


@pytest.mark.parametrize("sigma", [0.4, 1, 30])
def test_no_attack_on_rounded_noise_exceeds_its_cost(sigma):
    """At sigma 0.4 the rounding hides most of what continuous noise would show; it must not show more."""
    made = m.RoundedGaussian(sigma=sigma, sensitivity=1)
    found = audit(made, samples=200_000, delta=1e-3)
    assert found.holds, found


def test_the_attack_on_rounded_noise_has_power():
    made = m.RoundedGaussian(sigma=16, sensitivity=16)
    found = audit(made, samples=200_000, delta=1e-3)
    assert found.holds
    assert found.epsilon_lower > 0.6 * made.cost.epsilon(delta=1e-3), found
    broken = audit(made, 0, 32, samples=200_000, delta=1e-3, claimed=made.cost)  # moved by twice as much
    assert not broken.holds
