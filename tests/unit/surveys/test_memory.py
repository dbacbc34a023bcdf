"""Repeated surveys: permanent answers on the device, and what a sequence of reports gives away."""

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.surveys import Memory, change

POLL = tc.survey("each month", ["no", "yes"], epsilon=2, once=1)


@pytest.mark.parametrize(("reports", "epsilon"), [(1, 1), (2, 1.6417), (5, 1.9937), (10, 1.99999)])
def test_a_sequence_gives_away_less_than_fresh_coins(reports, epsilon):
    loss = POLL.sequence(reports)
    assert loss.epsilon == pytest.approx(epsilon, abs=1e-4)
    assert loss.fresh == pytest.approx(reports)
    assert "is not hidden" in str(loss)


def test_different_answers_give_away_that_they_differ():
    assert POLL.sequence(10, different=3).epsilon > 6  # three permanent coins, and the change itself
    fresh = tc.survey("once", ["no", "yes"], epsilon=1).sequence(3)
    assert fresh.epsilon == pytest.approx(3)
    assert "fresh coins" in str(fresh)


def test_the_plan_says_what_a_year_gives_away():
    plan = POLL.answer("yes", memory=Memory(POLL.digest))
    assert "12 reports of an unchanged answer give away at most epsilon 2 together" in " ".join(
        str(plan).split()
    )
    assert plan.cost.epsilon(delta=0) <= 2


def test_the_permanent_answer_stays():
    memory = Memory(POLL.digest)
    question = POLL.questions[0]
    assert {memory.permanent(question, 1) for _ in range(20)} <= {memory.permanent(question, 1)}
    certain = tc.survey("sure", ["no", "yes"], epsilon=40, once=30)
    own = Memory(certain.digest)
    own._kept["answer"] = {1: 0}  # the permanent answer differs from the true one
    answers = [certain.answer("yes", memory=own).release().answers["answer"] for _ in range(20)]
    assert answers == [[0]] * 20


def test_a_memory_is_kept_in_a_private_file(tmp_path):
    memory = Memory(POLL.digest)
    kept = memory.permanent(POLL.questions[0], 1)
    path = tmp_path / "memory.json"
    memory.save(path)
    assert path.stat().st_mode & 0o077 == 0
    assert Memory.load(path).permanent(POLL.questions[0], 1) == kept
    assert str(kept) not in repr(memory).replace(POLL.digest, "")
    path.write_text("{}")
    with pytest.raises(TacitError) as refusal:
        Memory.load(path)
    assert refusal.value.code == "bad-survey"


def test_a_permanent_answer_is_on_disk_before_it_is_reported(tmp_path):
    poll = tc.survey("list", 1000, epsilon=3, once=1)
    question, path = poll.questions[0], tmp_path / "memory.json"
    Memory(poll.digest).save(path)
    kept = [Memory.load(path).permanent(question, truth) for truth in (5, 6, 5, 6)]
    assert kept[:2] == kept[2:]
    assert [one.name for one in tmp_path.iterdir()] == ["memory.json"]


def test_a_memory_belongs_to_one_survey():
    with pytest.raises(TacitError, match="needs the respondent's memory"):
        POLL.answer("yes")
    for survey in (POLL, tc.survey("other", ["no", "yes"], epsilon=1)):
        with pytest.raises(TacitError) as refusal:
            survey.answer("yes", memory=Memory("0" * 64))
        assert refusal.value.code == "other-survey"


def test_reports_of_a_memo_are_estimated_like_those_of_one_coin(tmp_path):
    reports = POLL.randomize(["yes"] * 600 + ["no"] * 1400)
    row = reports.estimate(of="respondents", confidence=0.9999999)["yes"]
    assert row.low < 0.3 < row.high
    reports.save(tmp_path / "r.jsonl")
    assert POLL.collect(tmp_path / "r.jsonl").estimate().rows == reports.estimate().rows
    assert tc.surveys.Survey.from_document(POLL.document()) == POLL


def waves(people):
    """Return two waves of the same people, whose answers did not change, through plans."""
    memories = [Memory(POLL.digest) for _ in range(people)]
    return [
        POLL.collect(
            [POLL.answer("yes", invitation=i, memory=memory).release() for i, memory in enumerate(memories)]
        )
        for _ in range(2)
    ]


def test_a_change_is_estimated_person_by_person():
    found = change(*waves(2500), confidence=0.9999999)["second wave", "yes"]
    assert found.low < 0 < found.high
    fresh = tc.survey("fresh", ["no", "yes"], epsilon=1)
    both = [fresh.randomize(["yes"] * 2500, invitations=range(2500)) for _ in range(2)]
    other = change(*both, confidence=0.9999999)["second wave", "yes"]
    # At the same epsilon for one report; 2,500 people keep the widths six standard deviations apart.
    assert found.high - found.low < other.high - other.low


def test_a_memo_makes_changes_precise():
    """Epsilon 2 in all, 1 for a report: n Var of a change at most 1.84, with two fresh coins at 1/2 7.84."""
    people = 20_000
    first, second = tc.surveys.randomize_waves(POLL, [["no"] * people, ["no"] * people])
    row = change(first, second)["second wave", "yes"]
    assert people * ((row.high - row.low) / 2 / 1.96) ** 2 <= 1.84 * 1.05
    fresh = tc.survey("fresh", ["no", "yes"], epsilon=0.5)
    both = [fresh.randomize(["no"] * people, invitations=range(people)) for _ in range(2)]
    row = change(*both)["second wave", "yes"]
    assert people * ((row.high - row.low) / 2 / 1.96) ** 2 == pytest.approx(7.84, rel=0.05)


def test_waves_keep_permanent_answers():
    sure = tc.survey(
        "sure", ["no", "yes"], epsilon=40, once=30
    )  # the second coin hardly ever falls otherwise
    waves = tc.surveys.randomize_waves(sure, [["no"] * 50, ["yes"] * 50, ["no"] * 50])
    seen = [wave.answered["answer"].reports for wave in waves]
    assert (seen[0] == seen[2]).all()
    with pytest.raises(TacitError, match="the same respondents"):
        tc.surveys.randomize_waves(sure, [["no"] * 5, ["no"] * 4])
    with pytest.raises(TacitError, match="one that is repeated"):
        tc.surveys.randomize_waves(tc.survey("once", ["no", "yes"], epsilon=1), [["no"]])


def test_a_real_change_is_found():
    fresh = tc.survey("fresh", ["no", "yes"], epsilon=3)
    before = fresh.randomize(["no"] * 3000, invitations=range(3000))
    after = fresh.randomize(["no"] * 2000 + ["yes"] * 1000, invitations=range(3000))
    row = change(before, after, confidence=0.9999999)["second wave", "yes"]
    assert row.low < 1 / 3 < row.high
    assert row.low > 0.1


def test_waves_need_invitations_and_people_in_both():
    fresh = tc.survey("fresh", ["no", "yes"], epsilon=3)
    one = fresh.randomize(["no"] * 5, invitations=range(5))
    with pytest.raises(TacitError, match="invitations in both"):
        change(one, fresh.randomize(["no"] * 5))
    with pytest.raises(TacitError, match="fewer than 2"):
        change(one, fresh.randomize(["no"] * 5, invitations=range(10, 15)))


def test_what_cannot_be_repeated_is_refused():
    two = {"a": ["x", "y"], "b": ["x", "y"]}
    split = tc.survey("two", two, epsilon=2, once=1)
    assert split.strategy == "split"
    assert split.sequence(1).epsilon == pytest.approx(1)
    coin = tc.mechanisms.SubsetSelection(epsilon=1, size=2)
    for questions, named in (
        ((0, 1), {"once": 1}),
        (two, {"once": 1, "strategy": "one"}),
        (two, {"once": 3}),
        ({"a": tc.surveys.question(["x", "y"], randomizer=coin)}, {"once": 1}),
    ):
        with pytest.raises(TacitError) as refusal:
            tc.survey("bad", questions, epsilon=2, **named)
        assert refusal.value.code == "bad-parameter"
    mixed = split.document()
    mixed["questions"][0] = tc.survey("x", {"a": ["x", "y"]}, epsilon=0.5).document()["questions"][0]
    with pytest.raises(TacitError) as refusal:
        tc.surveys.Survey.from_document(mixed)
    assert refusal.value.code == "bad-survey"


def test_a_permanent_answer_follows_its_law():
    question = POLL.questions[0]
    drawn = [Memory(POLL.digest).permanent(question, 1) for _ in range(3000)]
    chance = float(question.randomizer.kept)
    assert abs(np.mean(drawn) - chance) < 6 * np.sqrt(chance * (1 - chance) / 3000)
