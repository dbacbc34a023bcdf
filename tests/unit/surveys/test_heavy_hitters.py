"""Heavy hitters: over a public list by one transform, and over unknown strings by growing prefixes."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import tacit as tc
from tacit.errors import TacitError
from tacit.surveys import StringHashing, find_heavy
from tacit.surveys._heavy_hitters import _continued, least_support

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789"))


def zipf(rng, n, d):
    weights = 1 / np.arange(1, d + 1) ** 1.1
    return rng.choice(d, n, p=weights / weights.sum())


def strings(rng, d):
    return ["".join(row) for row in rng.choice(LETTERS, (d, 6))]


@pytest.mark.parametrize("make", [tc.mechanisms.LinearHashing, tc.mechanisms.SubsetSelection])
def test_a_public_list(make):
    rng = np.random.default_rng(3)
    randomizer = make(epsilon=2, size=300)
    truths = np.concatenate([np.repeat([5, 250], [4000, 2500]), rng.integers(0, 300, 13_500)])
    labels = [f"item {i}" for i in range(300)]
    found = find_heavy(randomizer.release(truths), randomizer, 0.9999999, labels=labels)
    assert found.answers[:2] == ["item 5", "item 250"]
    for row in found.rows[:2]:
        true = np.mean(truths == int(row.answer.split()[1]))
        assert row.low < true < row.high
        assert row.share >= found.least
    assert found.candidates == 300
    assert "item 5" in str(found)
    assert found.to_pandas().shape == (len(found), 4)


def test_the_cut_is_the_exact_tail_of_the_coins():
    randomizer = tc.mechanisms.LinearHashing(epsilon=1, size=10**6)
    for n in (1, 50, 1000, 10**6):
        k = least_support(n, randomizer, 0.95, 10**6)
        q = float(randomizer.q)
        assert binom.sf(k - 1, n, q) <= 0.05 / 10**6
        assert k == n + 1 or binom.sf(k - 2, n, q) > 0.05 / 10**6 * (1 - 1e-5)
    assert least_support(10**6, randomizer, 0.95, 10**6) == pytest.approx(
        250_000 + 5.33 * math.sqrt(10**6 * 3 / 16), rel=1e-4
    )


def test_answers_of_nobody_are_rarely_reported():
    """All answers are in the first half; over 400 surveys at 80 %, far fewer than 20 % report another."""
    rng = np.random.default_rng(8)
    randomizer = tc.mechanisms.LinearHashing(epsilon=1, size=200)
    wrong = 0
    for _ in range(400):
        found = find_heavy(randomizer.release(rng.integers(0, 100, 500)), randomizer, 0.8)
        wrong += any(answer >= 100 for answer in found.answers)
    assert wrong <= 400 * 0.2 + 3.5 * math.sqrt(400 * 0.16)


def test_a_cut_for_one_answer_in_place_of_all_is_caught():
    """The twin that forgets how many answers there are reports answers of nobody in nearly every survey."""
    rng = np.random.default_rng(8)
    randomizer = tc.mechanisms.LinearHashing(epsilon=1, size=200)
    cut = least_support(500, randomizer, 0.8, 1)
    wrong = sum(
        bool((randomizer.supports(randomizer.release(rng.integers(0, 100, 500)))[100:] >= cut).any())
        for _ in range(50)
    )
    assert wrong > 40


def test_continuations_are_counted_exactly():
    """Folding the prefix into the sign gives the number that counting report by report gives."""
    randomizer = tc.mechanisms.LinearHashing(epsilon=2, size=2**12 - 1, bits=3)
    reports = randomizer.release(np.random.default_rng(2).integers(0, 2**12 - 1, 700))
    kept = np.array([0, 3, 14], np.uint64)
    codes, counts = _continued(randomizer, reports, kept, 8)
    assert len(codes) == 3 * 256 - 1
    for code, number in list(zip(codes.tolist(), counts.tolist(), strict=True))[::37]:
        assert number == randomizer.supported(reports, code - 1).sum()


@pytest.mark.parametrize("steps", [None, (12, 12, 12, 12), (18, 10, 10, 10)])
def test_unknown_strings_are_found(steps):
    rng = np.random.default_rng(5)
    names = strings(rng, 2000)
    truths = zipf(rng, 40_000, 2000)
    plan = StringHashing(epsilon=4, steps=steps)
    # at 95 %, 1 of 20 runs has a stranger
    found = plan.find(plan.release([names[i] for i in truths]), 0.9999999)
    real = [answer.removesuffix("…") for answer in found.answers]
    assert set(names[:3]) <= set(real)
    assert set(real) <= set(names)
    for row, answer in zip(found.rows, real, strict=True):
        assert row.low <= np.mean(truths == names.index(answer)) <= row.high


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "least"), [(1, 0.25), (2, 0.6), (4, 0.85)])
def test_recall_among_a_million_reports(epsilon, least):
    rng = np.random.default_rng(11)
    names = strings(rng, 10**5)
    plan = StringHashing(epsilon=epsilon)
    found = plan.find(plan.release([names[i] for i in zipf(rng, 10**6, 10**5)]))
    real = {answer.removesuffix("…") for answer in found.answers}
    assert np.mean([name in real for name in names[:16]]) >= least
    assert np.mean([name in set(names) for name in real]) >= 0.9


def test_strings_that_only_look_alike_are_not_reported():
    """Everybody has another text: nothing stands out, in at least 95 % of surveys."""
    rng = np.random.default_rng(1)
    reported = 0
    for _ in range(30):
        plan = StringHashing(epsilon=1, length=2, steps=(8, 8))
        texts = ["".join(pair) for pair in rng.choice(LETTERS, (3000, 2))]
        reported += len(plan.find(plan.release(texts))) > 0
    assert reported <= 10  # more happen with a chance of 1.1e-7


def test_the_group_follows_from_the_invitation_alone():
    plan = StringHashing(epsilon=1)
    one = plan.release(["aaaaaa"] * 200, invitations=range(200))
    other = plan.release(["zebra"] * 200, invitations=range(200))
    assert (one["group"] == other["group"]).all()
    assert (np.bincount(one["group"]) > 40).all()
    assert (plan.groups_for(range(50)) != plan.groups_for(range(50), label="b")).any()


def test_one_report_is_one_linear_hash_of_a_prefix():
    plan = StringHashing(epsilon=1)
    assert plan.cost == plan.randomizers[-1].cost
    assert [r.words for r in plan.randomizers] == [16, 32, 48]
    assert len({r.odds for r in plan.randomizers}) == 1


def test_texts_are_cut_and_filled():
    plan = StringHashing(epsilon=8, length=3, steps=(8, 16))
    found = plan.find(plan.release(["é"] * 500 + ["abcdef"] * 500 + ["abcxyz"] * 500))
    assert found.answers[:2] == ["abc…", "é"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: StringHashing(epsilon=1, length=8),
        lambda: StringHashing(epsilon=1, length=2, steps=(8, 9)),
        lambda: StringHashing(epsilon=1, steps=(4, 20, 24)),
        lambda: StringHashing(epsilon=1).release([""]),
        lambda: StringHashing(epsilon=1).release(["\0a"]),
        lambda: StringHashing(epsilon=1).release(["a", "b"], invitations=[1]),
        lambda: StringHashing(epsilon=1).find(StringHashing(epsilon=2).release(["a"])),
        lambda: StringHashing(epsilon=1).find([1, 2]),
        lambda: find_heavy([1], tc.mechanisms.LinearHashing(epsilon=1, size=9), 1.5),
        lambda: find_heavy([], tc.mechanisms.LinearHashing(epsilon=1, size=9)),
        lambda: find_heavy([1], "k-RR"),
        lambda: find_heavy([1], tc.mechanisms.LinearHashing(epsilon=1, size=9), labels=["a"]),
    ],
)
def test_bad_input_is_refused(make):
    with pytest.raises(TacitError):
        make()


def test_no_report_gives_away_more_than_epsilon():
    """Two texts that differ early, late or not at all within a group: the odds of every report, exactly."""
    plan = StringHashing(epsilon=1, length=4)
    reports = plan.release(["aspirin"] * 60 + ["aspen"] * 60)
    largest = 0.0
    for a, b in (("aspirin", "aspen"), ("aspirin", "zink"), ("a", "ab")):
        codes = plan._code(a), plan._code(b)
        for report in reports:
            randomizer = plan.randomizers[report["group"]]
            one, other = (int(code >> (8 * plan.length - randomizer.words)) - 1 for code in codes)
            sent = {"seed": report["seed"].tolist(), "answer": int(report["answer"])}
            largest = max(largest, abs(randomizer.privacy_loss(sent, one, other)))
    assert 0.999 < largest <= float(plan.cost.epsilon(delta=0))


def test_half_a_letter_is_refused():
    for texts in ("\ud800", ["a\udfff"]):
        with pytest.raises(TacitError, match="incomplete character"):
            StringHashing(epsilon=4).release(texts)
