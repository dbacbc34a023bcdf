"""Banded steps: groups, rows that never overlap, the same sums at less error, and a memory that is secret."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit import Cost, TacitError
from tacit.strategies import band_coefficients, column_norm_squared, totals_error
from tacit.strategies._toeplitz import _loss

m = tc.mechanisms


class Recorded:
    """Sums of one-hot vectors: which unit was in which step."""

    def __init__(self, units, width=None):
        self.units = units
        self.width = width or units
        self.samples = []
        self.seen = []

    def sums(self, sample):
        self.samples.append(sample)
        made = np.zeros(self.width, np.int64)
        made[sample] = 1000
        return made

    def update(self, noisy):
        self.seen.append(np.asarray(noisy))

    def result(self):
        return len(self.seen)


def dense(coefficients, steps):
    """The whole matrix C."""
    made = np.zeros((steps, steps))
    for j, c in enumerate(coefficients[:steps]):
        made += np.diag(np.full(steps - j, c), -j)
    return made


# -- the coefficients --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "bands", "norm", "rows"),
    [
        (1024, 1, 1, 22.6385),
        (1024, 16, 2.1141, 3.0002),
        (1024, 64, 1.9582, 2.0763),
        (2048, 16, 2.3247, 3.7110),
        (2048, 128, 2.0360, 2.1042),
    ],
)
def test_optimised_bands_reach_the_known_figures(steps, bands, norm, rows):
    c = band_coefficients(steps, bands)
    assert math.sqrt(column_norm_squared(c)) / c[0] == pytest.approx(norm, rel=1e-3)
    assert totals_error(c, steps) * c[0] == pytest.approx(rows, rel=1e-3)
    assert math.sqrt(column_norm_squared(c)) * totals_error(c, steps) <= norm * rows * (1 + 5e-5)


@pytest.mark.parametrize(("steps", "bands"), [(2, 2), (5, 3), (40, 8), (64, 64), (300, 2), (10, 99)])
def test_bands_beat_independent_noise_and_never_rise(steps, bands):
    c = band_coefficients(steps, bands)
    assert len(c) <= min(bands, steps)
    assert all(0 < later <= earlier for earlier, later in itertools.pairwise(c))
    exact = np.tril(np.ones((steps, steps))) @ np.linalg.inv(dense(c, steps))
    assert totals_error(c, steps) == pytest.approx(math.sqrt((exact**2).sum(axis=1).mean()), rel=1e-9)
    assert math.sqrt(column_norm_squared(c)) * totals_error(c, steps) < totals_error((1,), steps)


def test_the_search_follows_the_true_gradient():
    ratios = np.random.default_rng(3).uniform(0.3, 0.95, 6)
    _, gradient = _loss(ratios, 50)
    for i, step in itertools.product(range(6), [1e-6]):
        moved = ratios.copy()
        moved[i] += step
        back = ratios.copy()
        back[i] -= step
        slope = (_loss(moved, 50)[0] - _loss(back, 50)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=1e-5)


# -- what a unit can change --------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "bands", "groups"), [(7, 3, 3), (8, 2, 4), (6, 1, 2), (9, 4, 4)])
def test_the_samples_of_one_unit_reach_rows_that_never_overlap(steps, bands, groups):
    """By brute force: every group, every pattern of coins, every sign of the unit's part."""
    c = band_coefficients(steps, bands)
    matrix = dense(c, steps)
    squared = sum(one * one for one in c)
    for group in range(groups):
        places = list(range(group, steps, groups))
        assert len(places) <= -(-steps // groups)
        blocks = [np.flatnonzero(matrix[:, t]) for t in places]
        assert len(np.concatenate(blocks)) == len(set(np.concatenate(blocks).tolist()))
        for pattern in itertools.product((-1, 0, 1), repeat=len(places)):
            moved = matrix[:, places] @ np.array(pattern)
            assert (moved**2).sum() <= squared * sum(abs(one) for one in pattern)


def test_two_samples_closer_than_the_bands_would_move_more():
    """Why there are at least as many groups as bands: neighbouring columns add up."""
    c = band_coefficients(8, 3)
    together = dense(c, 8)[:, [0, 1]].sum(axis=1)
    assert (together**2).sum() > 2 * sum(one * one for one in c)
    with pytest.raises(TacitError, match="a whole number of at least 3"):
        m.BandedSteps(sigma=1, sensitivity=1, rate=0.1, steps=8, bands=3, groups=2)
    with pytest.raises(TacitError, match="at most 1 / rate"):
        m.BandedSteps(sigma=1, sensitivity=1, rate=0.5, steps=8, bands=3)


def test_the_cost_is_one_sampled_gaussian_for_each_round_of_the_groups():
    made = m.BandedSteps(sigma=10**6, sensitivity=64, rate=0.01, steps=50, bands=8)
    norm = math.sqrt(sum(c * c for c in made.coefficients))
    assert float(made.moved) == pytest.approx(64 * norm)
    assert made.moved**2 >= 64**2 * sum(c * c for c in made.coefficients)
    assert made.cost == 7 * Cost.gaussian(sigma=10**6, sensitivity=made.moved).sampled(Fraction(8, 100))
    one = m.BandedSteps(sigma=3, sensitivity=1, rate=0.01, steps=50, bands=1)
    assert one.cost == m.SampledSteps(sigma=3, sensitivity=1, rate=0.01, steps=50).cost
    unsampled = m.BandedSteps(sigma=10**6, sensitivity=1, rate=0.1, steps=40, bands=4, groups=10)
    assert unsampled.cost == 4 * Cost.gaussian(sigma=10**6, sensitivity=unsampled.moved)


# -- the run -----------------------------------------------------------------------------------------------


def test_a_unit_is_only_sampled_in_the_steps_of_its_group():
    made = m.BandedSteps(sigma=1, sensitivity=1, rate=0.1, steps=40, bands=4)
    work = Recorded(2000)
    assert made.release(work) == 40
    groups = [set() for _ in range(4)]
    for t, sample in enumerate(work.samples):
        groups[t % 4] |= set(sample.tolist())
    assert all(not one & other for one, other in itertools.combinations(groups, 2))
    sizes = [len(sample) for sample in work.samples]
    assert sum(sizes) == pytest.approx(40 * 200, abs=6 * math.sqrt(8000))


def test_groups_are_drawn_for_each_unit_independently():
    """The number in a group is binomial: an equal split would make one unit's group depend on the others."""
    run = m.BandedSteps(sigma=1, sensitivity=1, rate=0.25, steps=8, bands=4).start(10**6)
    sizes = np.bincount(run.group_of, minlength=4)
    assert np.abs(sizes - 250_000).max() < 6 * math.sqrt(10**6 * 3 / 16)
    assert np.abs(sizes - 250_000).max() > 0


def test_noisy_sums_are_the_sums_with_correlated_noise():
    """With next to no noise the sums come back; with noise, C times the errors is the noise of the rows."""
    quiet = m.BandedSteps(sigma=Fraction(1, 1000), sensitivity=1, rate=0.25, steps=30, bands=4)
    work = Recorded(50)
    quiet.release(work)
    for sample, seen in zip(work.samples, work.seen, strict=True):
        expected = np.zeros(50)
        expected[sample] = 1000
        assert np.abs(seen - expected).max() < 1e-6
    loud = m.BandedSteps(sigma=10**6, sensitivity=1, rate=0.25, steps=200, bands=4)
    work = Recorded(400)
    loud.release(work)
    exact = np.zeros((200, 400))
    for t, sample in enumerate(work.samples):
        exact[t, sample] = 1000
    fresh = dense(loud.coefficients, 200) @ (np.array(work.seen) - exact)
    assert np.abs(fresh - np.rint(fresh)).max() < 1e-3  # whole numbers: the noise of the rows
    assert fresh.std() == pytest.approx(10**6, rel=6 / math.sqrt(2 * fresh.size))
    assert abs((fresh[1:] * fresh[:-1]).mean()) < 6 * 10**12 / math.sqrt(fresh.size)
    totals = np.cumsum(np.array(work.seen) - exact, axis=0)
    assert math.sqrt((totals**2).mean()) == pytest.approx(loud.spread, rel=0.2)


@pytest.mark.parametrize("parts", [1, 3, 7, 10])
def test_instalments_continue_the_run_from_its_memory(parts):
    """The instalments take all steps; groups stay, and the rows continue where the last instalment ended."""
    made = m.BandedSteps(sigma=Fraction(1, 1000), sensitivity=1, rate=0.2, steps=10, bands=3, parts=parts)
    work, memory, counts = Recorded(60), b"", []
    for _ in range(parts):
        before = len(work.seen)
        _, memory = made.release_next(work, memory)
        counts.append(len(work.seen) - before)
    assert sum(counts) == 10
    assert min(counts) >= 1
    assert max(counts) - min(counts) <= 1
    groups = [set() for _ in range(3)]
    for t, (sample, seen) in enumerate(zip(work.samples, work.seen, strict=True)):
        groups[t % 3] |= set(sample.tolist())
        expected = np.zeros(60)
        expected[sample] = 1000
        assert np.abs(seen - expected).max() < 1e-6  # fails if the past were forgotten
    assert not groups[0] & groups[1]
    _, after = made.release_next(work, memory)
    assert len(work.seen) == 10  # nothing is left to take
    assert after == memory


def test_steps_of_a_lost_instalment_are_never_drawn_again():
    """Otherwise whoever sees it fail gets as many draws of one step as there are instalments."""
    made = m.BandedSteps(sigma=Fraction(1, 1000), sensitivity=1, rate=0.25, steps=12, bands=3, parts=6)
    work = Recorded(60)
    work.part = 1
    _, memory = made.release_next(work, b"")
    groups = made.start(60, memory).group_of
    for lost in (2, 3):
        work.part = lost
        made.release_next(work, memory)  # stopped before it was stored
    work.part = 4
    _, memory = made.release_next(work, memory)
    assert made.start(60, memory).taken == 8
    steps = [0, 1, 2, 3, 4, 5, 6, 7]  # each once
    for t, sample, seen in zip(steps, work.samples, work.seen, strict=True):
        assert {int(groups[i]) for i in sample} <= {t % 3}
        if t not in (4, 5):  # of which the lost steps before them are not known
            assert np.abs(seen - 1000 * np.isin(np.arange(60), sample)).max() < 1e-6


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_no_unit_is_in_more_steps_than_paid_for_if_the_first_instalments_are_lost(lost):
    made = m.BandedSteps(sigma=1, sensitivity=1, rate=0.5, steps=10, bands=2, parts=5)  # all of a group
    for _ in range(30):
        often = np.zeros(40, int)
        memory = b""
        for part in range(1, 6):
            work = Recorded(40)
            work.part = part
            _, left = made.release_next(work, memory)
            memory = left if part > lost else b""
            for sample in work.samples:
                often[sample] += 1
        assert often.max() <= 5  # ceil(10 / 2), which is charged


def test_units_that_come_and_go_move_no_other_unit_to_another_group():
    made = m.BandedSteps(sigma=1, sensitivity=1, rate=0.2, steps=9, bands=3, parts=3)
    names = [f"patient {i}".encode() for i in range(60)]
    work = Recorded(60)
    work.names = names
    _, memory = made.release_next(work, b"")
    before = dict(zip(names, made.start(60, memory, names).group_of.tolist(), strict=True))
    later = [b"new patient", *names[1:30], b"another", *names[30:]]
    after = dict(zip(later, made.start(61, memory, later).group_of.tolist(), strict=True))
    assert all(after[name] == before[name] for name in names[1:])
    many = made.start(30_000, memory, [b"%d" % i for i in range(30_000)]).group_of
    assert np.abs(np.bincount(many) - 10_000).max() < 6 * math.sqrt(30_000 * 2 / 9)
    other = made.start(30_000, b"", [b"%d" % i for i in range(30_000)]).group_of
    assert (many == other).mean() < 0.4  # each run draws its own


def test_the_memory_of_another_number_of_units_reaches_no_unit_that_is_not_there():
    made = m.BandedSteps(sigma=1, sensitivity=1, rate=0.5, steps=4, bands=2, parts=2)
    _, memory = made.release_next(Recorded(100), b"")
    work = Recorded(5, width=100)
    made.release_next(work, memory)
    assert all(sample.max(initial=0) < 5 for sample in work.samples)


def test_noise_for_floats_has_the_same_correlation():
    made = m.BandedSteps(sigma=8192, sensitivity=1, rate=0.25, steps=20, bands=4)
    run = made.start(3)
    rng = np.random.default_rng(1)
    fresh = [rng.normal(0, 2, (1, 5)) for _ in range(20)]
    mixed = np.concatenate([run.correlated([one])[0] for one in fresh])
    c = np.array(made.coefficients) / made.coefficients[0]
    assert dense(c, 20) @ mixed == pytest.approx(np.concatenate(fresh))
    assert run.taken == 20
    assert made.start(3, run.memory()).past[0][0] == pytest.approx(mixed[-1:])


def test_rows_beyond_64_bits_wrap_around_and_floats_are_refused():
    run = m.BandedSteps(sigma=1, sensitivity=1, rate=0.5, steps=4, bands=2).start(1)
    assert np.isfinite(run.noisy(np.array([2**62]))).all()
    with pytest.raises(TypeError, match="whole numbers"):
        run.noisy(np.array([0.5]))


# -- the choice --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "epochs", "epsilon", "ratio", "unsampled"),
    [(512, 1, 1, 0.51, 0.99), (512, 1, 3, 0.40, 0.47), (1024, 4, 0.5, 0.90, 1.80), (1024, 4, 8, 0.37, 0.37)],
)
def test_the_choice_reaches_the_known_ratios(steps, epochs, epsilon, ratio, unsampled):
    promise = {"epsilon": epsilon, "delta": 1e-6, "rate": Fraction(epochs, steps), "steps": steps}
    found = m.choose_bands(**promise)
    assert found.ratio == pytest.approx(ratio, rel=0.02, abs=0.006)
    assert found.groups == found.bands > 1
    alone = m.choose_bands(**promise, sampled=False)
    assert alone.ratio == pytest.approx(unsampled, rel=0.02, abs=0.006)
    assert alone.groups == steps // epochs


def test_many_epochs_and_a_small_epsilon_keep_independent_noise():
    found = m.choose_bands(epsilon=0.5, delta=1e-6, rate=Fraction(64, 2048), steps=2048)
    assert (found.bands, found.groups, found.ratio) == (1, 1, 1)


def test_the_choice_and_the_mechanism_agree():
    found = m.choose_bands(epsilon=2, delta=1e-6, rate=0.01, steps=300)
    made = m.BandedSteps.calibrated(
        epsilon=2, delta=1e-6, sensitivity=64, rate=0.01, steps=300, bands=found.bands, groups=found.groups
    )
    assert made.cost.epsilon(delta=1e-6) <= 2
    assert made.spread / 64 == pytest.approx(found.error, rel=1e-6)
    few = m.choose_bands(epsilon=2, delta=1e-6, rate=0.01, steps=300, most_bands=4)
    assert few.bands <= 4 < found.bands
    assert found.error < few.error


# -- the theorem, by integration ---------------------------------------------------------------------------


def divergences(shifts, chances, sigma, epsilon):
    """The hockey-stick divergences, both ways, of a mixture of shifted laws and the unshifted one."""
    line = np.linspace(-9 * sigma, 9 * sigma, 721)
    cell = (line[1] - line[0]) ** 2 / (2 * math.pi * sigma**2)

    def density(shift):
        one, other = (np.exp(-((line - s) ** 2) / (2 * sigma**2)) for s in shift)
        return np.outer(one, other) * cell

    without = density((0, 0))
    mixed = sum(chance * density(shift) for shift, chance in zip(shifts, chances, strict=True))
    bound = math.exp(epsilon)
    return (
        np.maximum(mixed - bound * without, 0).sum(),
        np.maximum(without - bound * mixed, 0).sum(),
    )


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0])
def test_two_steps_with_two_bands_stay_within_their_cost(rate, epsilon):
    """Both groups and both coins, integrated over both rows: the cost is that of the worse group."""
    steps = m.BandedSteps(sigma=4000, sensitivity=1, rate=rate, steps=2, bands=2)
    first, second = (c / 4000 for c in steps.coefficients)
    shifts, chances = [(0, 0), (first, second), (0, first)], [1 - 2 * rate, rate, rate]
    found = divergences(shifts, chances, 1.0, epsilon)
    assert max(found) <= steps.cost.delta(epsilon=epsilon) * (1 + 1e-6) + 1e-12
    worse = divergences(shifts[:2], [1 - 2 * rate, 2 * rate], 1.0, epsilon)  # known to be in the first group
    assert max(worse) == pytest.approx(float(steps.cost.delta(epsilon=epsilon)), rel=1e-4, abs=1e-9)
    overlapping = divergences([(0, 0), (first, first + second)], [1 - 2 * rate, 2 * rate], 1.0, epsilon)
    assert max(overlapping) > steps.cost.delta(epsilon=epsilon) * 1.1  # a unit in both steps would break it
