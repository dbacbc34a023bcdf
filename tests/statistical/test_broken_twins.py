"""The auditor catches every broken twin, at the confidence with which it passes the correct mechanisms."""

import pytest

import tacit as tc
from tacit.accounting import Cost
from tacit.audit import audit, neighbours
from twins import broken

ONE = Cost.pure(1)

#: 17 of 20 rows at the first of 30 candidates that lie below the 0.9 quantile, and many candidates above it.
FEW = [17, *[0] * 29, 3, *[0] * 299]
TWINS = {
    "float laplace": (broken.float_laplace, 0, 1, 20_000),
    "half noise": (broken.half_noise, 0, 1, 20_000),
    "wrong sensitivity": (broken.wrong_sensitivity, [1, 0], [0, 1], 20_000),
    "no factor two": (broken.no_factor_two, [0, 3], [-1, 4], 100_000),
    "raw after clipping": (broken.raw_after_clipping, [5.0], [5.0, 100.0], 20_000),
    "noisy max with its value": (broken.max_with_value, [0, 0, 0], [1, 1, 1], 100_000),
    "sparse vector 3": (broken.sparse_vector_3, [0] * 12 + [1], [1] * 12 + [0], 200_000),
    "sparse vector 4": (broken.sparse_vector_4, [0] * 6 + [1] * 6, [1] * 6 + [0] * 6, 100_000),
    "sparse vector 5": (broken.sparse_vector_5, [0, 1], [1, 0], 20_000),
    "sparse vector 6": (broken.sparse_vector_6, [0] * 5 + [1] * 5, [1] * 5 + [0] * 5, 100_000),
    "a quantile for one row": (broken.quantile_of_one_row, [4, 0], [8, 0], 100_000),
    "a quantile without weight": (broken.quantile_without_weight, [*FEW, 0], [*FEW, 1], 100_000),
    "paid per group": (broken.paid_per_group, [[0, 0]] * 3, [[-1, 1]] * 3, 100_000),
    "leaks everything with probability 1 in 100": (broken.leaks_everything(0.01), 0, 1, 200_000),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_broken_twin_is_caught(name):
    twin, a, b, samples = TWINS[name]
    found = audit(twin, a, b, samples=samples, claimed=ONE)
    assert found.at(1 - 1e-9).epsilon_lower > 1, found
    assert found.holds is False
    assert "BROKEN" in repr(found)


@pytest.mark.parametrize(
    ("twin", "a", "b"),
    [
        (broken.early_keys, 1, 0),
        (broken.short_keys, 1, 0),
        (broken.cut_keys, 20, 19),
        (broken.keys_for_one, [1, 1, 1], [0, 0, 0]),
        (broken.floored_keys, 3, 2),
    ],
    ids=["early", "short", "cut", "for one", "floored"],
)
def test_a_key_that_appears_too_early_is_caught(twin, a, b):
    claimed = Cost.approximate(1, 0.01)
    found = audit(twin, a, b, samples=200_000, delta=0.01, claimed=claimed)
    assert found.holds is False
    assert found.at(1 - 1e-9).delta_lower(1) > 0.01


def test_keys_by_size_that_are_not_chosen_evenly_are_caught():
    """The person in question has a key of one unit, whose name comes first among sixty such keys."""
    claimed = Cost.approximate(1, 0.01)
    found = audit(broken.first_keys, range(60), range(1, 60), samples=4_000, delta=0.01, claimed=claimed)
    assert found.holds is False
    assert found.at(1 - 1e-9).delta_lower(1) > 0.01


def test_the_float_twin_is_caught_by_its_bits():
    found = audit(broken.float_laplace, 0, 1, samples=20_000)
    assert "bit" in found.witness.event or "learned" in found.witness.event
    assert found.epsilon_lower > 3


def test_tacits_own_laplace_hides_the_bits_that_betray_the_float_twin():
    found = audit(tc.mechanisms.Laplace(epsilon=1, sensitivity=1), 0, 1, samples=100_000)
    assert found.holds


def test_a_pure_promise_does_not_survive_a_rare_leak_but_an_approximate_one_does():
    leaks = broken.leaks_everything(0.01)
    found = audit(leaks, 0, 1, samples=100_000, claimed=ONE)
    assert found.epsilon_lower > 3
    assert audit(leaks, 0, 1, samples=100_000, delta=0.0101, claimed=Cost.approximate(1, 0.0101)).holds


def test_permute_and_flip_charged_as_bounded_range_is_caught_along_its_curve():
    twin = broken.FlipChargedAsRange(epsilon=1, sensitivity=1)
    found = audit(twin, samples=100_000)
    assert found.at(1 - 1e-9).epsilon_lower <= 1  # pure epsilon alone does not show it
    assert found.holds is False
    assert found.at(1 - 1e-9).delta_lower(0.75) > Cost.exponential(1).delta(epsilon=0.75)


def test_permute_and_flip_charged_as_bounded_range_is_caught_over_many_runs():
    twin = broken.FlipChargedAsRange(epsilon=0.5, sensitivity=1)
    found = audit(twin, samples=100_000, repeat=16, delta=1e-3)
    assert found.holds is False


def test_permute_and_flip_charged_as_pure_passes_alone_and_over_many_runs():
    correct = tc.mechanisms.PermuteAndFlip(epsilon=1, sensitivity=1)
    assert audit(correct, samples=100_000).holds
    assert audit(
        tc.mechanisms.PermuteAndFlip(epsilon=0.5, sensitivity=1), samples=50_000, repeat=16, delta=1e-3
    ).holds


def test_the_neighbour_search_finds_the_unclipped_column():
    pairs = [([x], [x, y]) for x in (0.0, 5.0) for y in (1.0, 9.0, 11.0)]
    found = neighbours(broken.clip_and_forget, pairs, 10)
    assert not found.holds
    assert found.largest == 11
    correct = tc.mechanisms.Sum(epsilon=1, bounds=(0, 10))
    assert neighbours(correct.exact, pairs, correct.sensitivity).holds


def test_the_neighbour_search_finds_half_even_rounding():
    pairs = [([n / 2], [n / 2, 1.0]) for n in range(6)]
    assert not neighbours(broken.half_even, pairs, 1).holds
