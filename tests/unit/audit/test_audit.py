"""The auditor's bounds are proofs: right as often as they say, and readable at any confidence."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import tacit as tc
from tacit.accounting import Cost
from tacit.audit import audit
from tacit.audit._outputs import as_labels, clopper_pearson, lowest_bit, repeated_outputs
from tacit.errors import TacitError
from tacit.fixes import Code, Set

rng = np.random.default_rng()


@pytest.fixture(autouse=True)
def the_same_coins_in_every_run(monkeypatch):
    """Bounds are read at confidence 0.999 and below here: by chance they would exceed the truth at times."""
    monkeypatch.setitem(globals(), "rng", np.random.default_rng(11))


def coin(value, size):
    """Randomized response with epsilon ln 3, as numbers."""
    return np.where(rng.random(size) < 0.75, value, 1 - value)


def test_clopper_pearson_bounds_are_exact_binomial_tails():
    for hits in (0, 1, 7, 500, 999, 1000):
        low, high = clopper_pearson(hits, 1000, 1e-6)
        if hits:
            assert binom.sf(hits - 1, 1000, float(low)) <= 1e-6
            assert binom.sf(hits - 1, 1000, float(low) * 1.0001) > 0.9e-6
        else:
            assert low == 0
        if hits < 1000:
            assert binom.cdf(hits, 1000, float(high)) <= 1e-6 * (1 + 1e-6)
            assert binom.cdf(hits, 1000, float(high) * 0.9999) > 0.9e-6
        else:
            assert high == 1


def test_the_bound_is_wrong_no_more_often_than_stated():
    """At confidence 0.5 the bound exceeds the truth in at most half of the runs (and is not idle)."""
    wrong = sum(
        audit(coin, 0, 1, samples=2000, confidence=0.5).epsilon_lower > math.log(3) for _ in range(60)
    )
    assert wrong <= 30 + 3 * 4
    assert np.mean([audit(coin, 0, 1, samples=2000).epsilon_lower for _ in range(10)]) > 0.6


def test_identical_inputs_prove_nothing():
    found = audit(coin, 1, 1, samples=20_000)
    assert found.epsilon_lower == 0
    assert found.delta_lower(0) == 0


def test_the_witness_explains_the_bound():
    found = audit(coin, 0, 1, samples=50_000)
    witness = found.witness
    assert found.epsilon_lower == pytest.approx(math.log(witness.at_least / witness.at_most))
    assert witness.likelier_on in {"a", "b"}
    assert "probability at least" in str(witness)
    assert found.epsilon_lower in [one.epsilon_lower for one in found.witnesses]


def test_more_confidence_means_a_smaller_bound_from_the_same_counts():
    found = audit(coin, 0, 1, samples=50_000)
    bounds = [found.at(c).epsilon_lower for c in (0.9, 0.999, 1 - 1e-9)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] > 0.8


def test_the_curve_is_a_lower_bound_at_every_epsilon():
    found = audit(coin, 0, 1, samples=100_000)
    for epsilon in (0, 0.2, 0.5, 1, 1.2):
        true = max(0, 0.75 - math.exp(epsilon) * 0.25)
        assert found.delta_lower(epsilon) <= true + 1e-12
    assert found.delta_lower(0) > 0.45


def test_outputs_may_be_numbers_arrays_or_labels():
    def labels(value, size):
        return [("yes", 1) if x else "no" for x in coin(value, size)]

    def ragged(value, size):
        return [[1] * int(x + 1) for x in coin(value, size)]

    def one_at_a_time(value):
        return bool(coin(value, 1)[0])

    def sometimes_none(value, size):
        return [None if x else 0.5 for x in coin(value, size)]

    def matrices(value, size):
        return np.repeat(coin(value, size), 6).reshape(size, 2, 3)

    def not_numbers(value, size):
        return np.where(coin(value, size) == 1, np.nan, np.inf)

    for target in (labels, ragged, one_at_a_time, sometimes_none, matrices, not_numbers):
        found = audit(target, 0, 1, samples=20_000)
        assert 0.8 < found.epsilon_lower <= 1.2, target


def test_a_late_label_among_numbers_does_not_stop_the_audit():
    calls = iter(range(10**9))

    def late(value, size):
        rows = [float(x) for x in coin(value, size)]
        if next(calls) > 1:
            rows[0] = "error"
        return rows

    assert audit(late, 0, 1, samples=20_000).epsilon_lower > 0.8


def test_events_in_far_columns_and_sums_are_found():
    def wide(value, size):
        return rng.normal(size=(size, 100)) + value

    assert audit(wide, 0, 0.3, samples=20_000).epsilon_lower > 2

    def last(value, size):
        out = rng.integers(0, 2, (size, 12))
        out[:, -1] = coin(value, size)
        return out

    assert audit(last, 0, 1, samples=20_000).epsilon_lower > 0.8


def test_mechanisms_bring_their_own_pair_and_claim():
    found = audit(tc.mechanisms.RandomizedResponse.coins(), samples=50_000)
    assert found.claimed.epsilon(delta=0) >= math.log(3)
    assert found.holds is True
    assert "holds" in repr(found)
    assert audit(coin, 0, 1, samples=1000).holds is None


def test_a_claim_of_less_is_refuted():
    found = audit(coin, 0, 1, samples=100_000, claimed=Cost.pure(0.9))
    assert found.holds is False
    assert found.broken_at is not None


def test_delta_is_taken_off():
    found = audit(coin, 0, 1, samples=100_000, delta=0.2)
    assert found.epsilon_lower <= math.log((0.75 - 0.2) / 0.25)
    assert found.epsilon_lower > 0.6


def test_the_plot_shows_curve_and_events():
    figure = audit(tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1), samples=2000).plot()
    assert len(figure.axes) == 2
    assert len(figure.axes[0].lines) == 2
    assert audit(tc.mechanisms.Gaussian(sigma=1, sensitivity=1), samples=2000).plot().axes


@pytest.mark.parametrize(
    "call",
    [
        lambda: audit(3, 0, 1),
        lambda: audit(coin),
        lambda: audit(coin, 0, 1, samples=10),
        lambda: audit(coin, 0, 1, samples=2.5),
        lambda: audit(coin, 0, 1, confidence=1),
        lambda: audit(coin, 0, 1, confidence=0),
        lambda: audit(coin, 0, 1, delta=1.5),
        lambda: audit(coin, 0, 1, repeat=0),
        lambda: audit(lambda value, size: [value], 0, 1, samples=1000),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(TacitError) as refused:
        call()
    assert refused.value.code == "bad-parameter"


def test_fixes_are_data():
    fixes = []
    for call in (
        lambda: audit(coin),
        lambda: audit(coin, 0, 1, samples=10),
        lambda: audit(coin, 0, 1, confidence=1),
        lambda: audit(coin, 0, 1, delta=1.5),
    ):
        with pytest.raises(TacitError) as refused:
            call()
        fixes.append(refused.value.fix)
    assert fixes == [
        Code("audit(target, a, b)"), Set(samples=1_000_000), Set(confidence=0.999), Set(delta=1e-6),
    ]  # fmt: skip


def test_the_lowest_set_bit():
    x = np.array([1.0, 0.5, 3.0, 0.75, 0.1, 0.0, -2.0, 2.0**-1074])
    assert lowest_bit(x).tolist() == [0, -1, 0, -2, -55, 2000, 1, -1074]


# what a batched function can hide


def test_a_seed_that_is_set_inside_a_batched_function_is_found():
    def seeded(value, size):
        rng = np.random.default_rng(7)
        p = 1 - np.exp(-1.0)
        return value + rng.geometric(p, size) - rng.geometric(p, size)

    assert audit(seeded, 0, 1, samples=20_000, claimed=tc.Cost.pure(1)).holds is False


def test_the_second_argument_of_a_function_is_the_number_of_outputs_whatever_its_name():
    rng = np.random.default_rng(1)
    sizes = []

    def honest(value, n):
        sizes.append(n)
        p = 1 - np.exp(-1.0)
        return value + rng.geometric(p, n) - rng.geometric(p, n)

    assert audit(honest, 0, 1, samples=20_000, claimed=tc.Cost.pure(1)).holds
    assert max(sizes) > 1_000


@pytest.mark.parametrize(
    ("share", "samples"), [(1e-3, 40_000), pytest.param(1e-4, 400_000, marks=pytest.mark.long)]
)
def test_a_rare_leak_is_found(share, samples):
    rng = np.random.default_rng(2)

    def leaks(value, size):
        p = 1 - np.exp(-1.0)
        noisy = value + rng.geometric(p, size) - rng.geometric(p, size)
        return np.where(rng.random(size) < share, 1_000 + value, noisy)

    found = audit(leaks, 0, 1, samples=samples, claimed=tc.Cost.pure(1))
    assert found.holds is False
    assert "100" in found.witness.event


def test_rows_of_numbers_and_their_labels_are_looked_up_alike():
    one = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0], [2.0, 3.0], [4.0, 5.0]])
    for shown in (one, as_labels(one)):
        score, hits = repeated_outputs(shown, one[2:3])
        assert hits == 2
        assert score.members(bool) == [(0.0, 1.0)]
        for rows in (one, as_labels(one)):
            assert score.of(rows).tolist() == [1, 1, 0, 0, 0]
