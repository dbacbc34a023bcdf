"""Memoised answers: one report has its epsilon, and all reports together have theirs."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError

Memo = tc.mechanisms.Memo


@pytest.mark.parametrize(
    ("epsilon", "wanted"),
    [(2, {1: 1, 2: 1.6417, 5: 1.9937, 10: 1.99999}), (4, {1: 1, 2: 1.953, 5: 3.742, 10: 3.998})],
)
def test_what_a_sequence_of_reports_gives_away(epsilon, wanted):
    memo = Memo(epsilon=epsilon, once=1)
    for reports, loss in wanted.items():
        assert memo.loss_after(reports) == pytest.approx(loss, abs=6e-5 if epsilon == 2 else 6e-4)


def law_of_sequences(memo, t, truth):
    """The exact law of t reports, by summing over the permanent answer."""
    answers = range(memo.size)
    lost = (1 - memo.kept) / (memo.size - 1)
    other = (1 - memo.repeated) / (memo.size - 1)
    law = {}
    for sequence in product(answers, repeat=t):
        law[sequence] = sum(
            (memo.kept if b == truth else lost)
            * math.prod((memo.repeated if one == b else other) for one in sequence)
            for b in answers
        )
    return law


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("t", [1, 2, 3, 4])
def test_the_loss_is_the_largest_over_all_sequences(size, t):
    memo = Memo(epsilon=2, once=1, size=size)
    first, second = law_of_sequences(memo, t, 0), law_of_sequences(memo, t, 1)
    assert sum(first.values()) == 1
    largest = max(first[s] / second[s] for s in first)
    assert memo.loss_after(t) == pytest.approx(math.log(largest), rel=1e-12)
    assert memo.loss_after(t) <= float(memo.epsilon)


@pytest.mark.parametrize("size", [2, 5])
def test_one_report_has_exactly_the_odds_of_a_fresh_coin(size):
    memo = Memo(epsilon=2, once=1, size=size)
    law = law_of_sequences(memo, 1, 0)
    assert law[(0,)] == memo.randomizer.p
    assert law[(1,)] == memo.randomizer.q
    assert memo.probability(0, truth=0) == memo.randomizer.p
    assert memo.once_cost.epsilon(delta=0) == pytest.approx(1)
    assert memo.cost.epsilon(delta=0) == pytest.approx(2)
    assert memo.loss_after(1) == pytest.approx(1, abs=1e-9)


def test_losses_grow_with_reports_and_never_pass_the_permanent_coin():
    memo = Memo(epsilon=2, once=0.1)
    losses = [memo.loss_after(t) for t in (0, 1, 2, 5, 20, 100, 500, 501, 10**9)]
    assert losses == sorted(losses)
    assert losses[0] == 0
    assert losses[-1] == float(memo.epsilon) <= 2
    assert all(loss <= t * 0.1 + 1e-9 for loss, t in zip(losses, (0, 1, 2, 5, 20), strict=False))


def chance_of(memo, truths, sequence):
    """The exact probability of reports behind answers that may change: one permanent coin for each answer."""
    lost, other = ((1 - one) / (memo.size - 1) for one in (memo.kept, memo.repeated))
    chance = Fraction(1)
    for truth in set(truths):
        own = [report for report, one in zip(sequence, truths, strict=True) if one == truth]
        chance *= sum(
            (memo.kept if b == truth else lost)
            * math.prod((memo.repeated if report == b else other) for report in own)
            for b in range(memo.size)
        )
    return chance


@pytest.mark.parametrize(
    ("epsilon", "once", "size", "t"),
    [(2, 1, 2, 2), (2, 1, 2, 5), (0.3, 0.29, 2, 2), (0.3, 0.29, 2, 4), (1, 0.9, 3, 3), (0.5, 0.1, 3, 2)],
)
def test_the_loss_covers_a_sequence_that_changes_against_one_that_does_not(epsilon, once, size, t):
    memo = Memo(epsilon=epsilon, once=once, size=size)
    for different in range(1, t + 1):
        truths = [one for one in product(range(size), repeat=t) if len(set(one)) <= different]
        most, least = {}, {}
        for sequence in product(range(size), repeat=t):
            chances = [chance_of(memo, one, sequence) for one in truths]
            most[sequence], least[sequence] = max(chances), min(chances)
        largest = math.log(max(most[one] / least[one] for one in most))
        assert memo.loss_after(t, different=different) >= largest * (1 - 1e-12)
        assert memo.loss_after(t, different=different) <= largest * 1.6 + 0.8


def test_the_loss_of_changes_grows_with_every_report_and_is_that_of_one_answer_for_one_report():
    memo = Memo(epsilon=2, once=1)
    assert memo.loss_after(1, different=3) == memo.loss_after(1)
    assert memo.loss_after(0, different=3) == 0
    losses = [memo.loss_after(t, different=2) for t in (2, 12, 100, 10**6)]
    assert losses == sorted(losses)
    assert losses[-1] > 10**5


def test_a_memo_does_not_hide_that_an_answer_changed():
    shown = [Memo(epsilon=e, once=0.5).change_shown for e in (1, 2, 4)]
    assert shown == pytest.approx([0.61, 0.79, 0.96], abs=5e-3)
    three = Memo(epsilon=2, once=0.5, size=3)
    other = (1 - three.kept) / 2
    rows = [(three.kept, other, other), (other, three.kept, other)]
    same = sum(a * b for a, b in zip(*rows, strict=True))
    assert three.change_shown == pytest.approx(float(1 - same))


def test_the_permanent_answer_and_the_reports_follow_their_laws():
    memo, n = Memo(epsilon=2, once=1, size=3), 60_000
    kept = memo.permanent(np.zeros(n, int))
    assert np.mean(kept == 0) == pytest.approx(float(memo.kept), abs=0.013)
    again = memo.report(kept)
    assert np.mean(again == kept) == pytest.approx(float(memo.repeated), abs=0.013)
    assert np.mean(again == 0) == pytest.approx(float(memo.randomizer.p), abs=0.013)
    found = memo.randomizer.shares(memo.randomizer.supports(again), n)
    assert found == pytest.approx([1, 0, 0], abs=0.06)


def test_one_answer_and_many_are_reported():
    memo = Memo(epsilon=2, once=1)
    assert memo.report(memo.permanent(True)) in (0, 1)
    assert memo.release([0, 1, 1]).shape == (3,)
    assert memo.release([]).shape == (0,)
    assert isinstance(memo.repeated, Fraction)
    for bad in ([2], [None], ["yes"], 5):
        with pytest.raises(TacitError) as refused:
            memo.permanent(bad)
        assert refused.value.code == "unknown-category"
