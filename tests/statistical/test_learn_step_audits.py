"""Steps of training and rounded noise are attacked on their worst pair; broken copies are caught."""

import pytest

import tacit as tc
from tacit import Cost
from tacit.audit import audit
from twins import learn_steps

m = tc.mechanisms
CLAIMED = m.SampledSteps(
    sigma=learn_steps.SIGMA, sensitivity=1, rate=learn_steps.RATE, steps=learn_steps.STEPS
).cost
TWINS = [
    pytest.param(learn_steps.one_sample_for_all_steps, marks=pytest.mark.long),
    learn_steps.empty_batches_skipped,
    pytest.param(learn_steps.noise_once, marks=pytest.mark.long),
    pytest.param(learn_steps.half_the_noise, marks=pytest.mark.long),
    learn_steps.noise_on_the_mean_of_the_sample,
    learn_steps.larger_rate,
    pytest.param(learn_steps.clipped_after_the_sum, marks=pytest.mark.long),
]
#: What the copies of banded steps claim: two rounds, each on a sample of half the group.
BANDS = learn_steps.ROUNDS * Cost.gaussian(sigma=learn_steps.SIGMA, sensitivity=1).sampled(
    learn_steps.GROUP_RATE
)
BANDED_TWINS = [
    learn_steps.no_groups,
    pytest.param(learn_steps.norm_forgotten, marks=pytest.mark.long),
    learn_steps.groups_dealt_out,
    learn_steps.memory_shown,
    pytest.param(learn_steps.noise_of_the_past_shown, marks=pytest.mark.long),
]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_a_broken_copy_of_sampled_steps_is_caught(twin):
    found = audit(twin, 0, 1, samples=60_000, delta=0.01, claimed=CLAIMED)
    assert found.holds is False, found  # on the whole curve, where the twins are far off


def test_the_right_copy_is_not_caught():
    found = audit(learn_steps.right, 0, 1, samples=100_000, delta=0.01, claimed=CLAIMED)
    assert found.holds, found
    assert found.epsilon_lower > 0.35 * CLAIMED.epsilon(delta=0.01), found  # 1.18, deviation 0.06


@pytest.mark.parametrize("twin", BANDED_TWINS, ids=lambda twin: twin.__name__)
def test_a_broken_copy_of_banded_steps_is_caught(twin):
    found = audit(twin, 0, 1, samples=60_000, delta=0.01, claimed=BANDS)
    assert found.holds is False, found


def test_the_right_copy_of_banded_steps_is_not_caught():
    found = audit(learn_steps.right_bands, 0, 1, samples=60_000, delta=0.01, claimed=BANDS)
    assert found.holds, found
    assert found.epsilon_lower > 0.35 * BANDS.epsilon(delta=0.01), found  # 1.30, deviation 0.05


def banded(rate, epsilon):
    """Two bands in two groups, with a sample of half of each group (rate 1/4) or without a sample (1/2)."""
    return m.BandedSteps.calibrated(epsilon=epsilon, delta=0.01, sensitivity=16, rate=rate, steps=4, bands=2)


@pytest.mark.parametrize("rate", [pytest.param(0.5, marks=pytest.mark.long), 0.25])
def test_no_attack_on_banded_steps_exceeds_their_cost(rate):
    found = audit(banded(rate, 8), samples=2_000, delta=0.01)
    assert found.holds, found
    assert found.epsilon_lower > 0.5, found


@pytest.mark.long
def test_no_long_attack_on_banded_steps_exceeds_their_cost():
    assert audit(banded(0.25, 2), samples=40_000, delta=0.01).holds


@pytest.mark.parametrize("rate", [pytest.param(1, marks=pytest.mark.long), 0.5])
def test_no_attack_on_sampled_steps_exceeds_their_cost(rate):
    steps = m.SampledSteps(sigma=16, sensitivity=16, rate=rate, steps=3)
    found = audit(steps, samples=2_000, delta=0.01)
    assert found.holds, found
    assert found.epsilon_lower > 0.1, found


@pytest.mark.long
@pytest.mark.parametrize("rate", [1, 0.5, 0.1])
def test_no_long_attack_on_sampled_steps_exceeds_their_cost(rate):
    assert audit(
        m.SampledSteps(sigma=16, sensitivity=16, rate=rate, steps=3), samples=60_000, delta=0.01
    ).holds


@pytest.mark.parametrize("sigma", [0.4, pytest.param(1, marks=pytest.mark.long)])
def test_no_attack_on_rounded_noise_exceeds_its_cost(sigma):
    """At sigma 0.4 the rounding hides most of what continuous noise would show; it must not show more."""
    made = m.RoundedGaussian(sigma=sigma, sensitivity=1)
    found = audit(made, samples=60_000, delta=1e-3)
    assert found.holds, found


def test_the_attack_on_rounded_noise_has_power():
    made = m.RoundedGaussian(sigma=16, sensitivity=16)
    found = audit(made, samples=60_000, delta=1e-3)
    assert found.holds
    assert found.epsilon_lower > 0.4 * made.cost.epsilon(delta=1e-3), found
    broken = audit(made, 0, 32, samples=60_000, delta=1e-3, claimed=made.cost)  # moved by twice as much
    assert not broken.holds
