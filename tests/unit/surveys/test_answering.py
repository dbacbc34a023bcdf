"""At the respondent: what is shown, what is sent, and that nothing else leaves."""

import json

import numpy as np
import pytest
from scipy.stats import chisquare

import tacit as tc
from tacit.errors import TacitError

POLL = tc.survey("smoking", ["no", "yes"], epsilon=1)
BIG = tc.survey("words", 5000, epsilon=1)


def test_a_plan_says_in_odds_what_it_gives_away():
    text = " ".join(str(POLL.answer("yes")).split())
    for words in (
        "the true one with probability 73.1 %, the other one with 26.9 %",
        "changes the odds between any two answers by at most a factor of 2.72",
        "no ledger is charged",
        "of one respondent",
    ):
        assert words in text
    assert "being in the data" not in text  # that somebody answered is not hidden


def test_a_plan_does_not_depend_on_the_answer():
    yes, no = POLL.answer("yes"), POLL.answer("no")
    assert yes.hash == no.hash
    assert str(yes) == str(no)
    assert yes.question == no.question
    assert yes.is_local


def test_a_report_is_all_that_is_sent():
    release = POLL.answer("yes", invitation=17, public={"region": "north"}).release()
    document = json.loads(json.dumps(release.content.to_json()))
    assert set(document) == {"schema", "survey", "epsilon", "invitation", "answers", "public"}
    assert document["survey"] == POLL.digest
    assert document["answers"]["answer"] in ([0], [1])
    assert release.certificate.is_local
    assert tc.surveys.SurveyReport.from_json(document) == release.content
    shown = str(release)
    assert "answer: yes" in shown or "answer: no" in shown
    assert "region: north (public, not randomized)" in shown


def test_a_release_is_saved_and_read(tmp_path):
    release = BIG.answer(77).release()
    release.save(tmp_path / "report.json")
    again = tc.Release.load(tmp_path / "report.json")
    assert again.content == release.content
    assert BIG.collect([again]).respondents == 1


def test_reports_follow_the_stated_law():
    """3,000 reports through plans at a level of one in ten million."""
    reports = [POLL.answer("yes").release().answers["answer"][0] for _ in range(3000)]
    p = float(POLL.questions[0].randomizer.p)
    counts = np.bincount(reports, minlength=2)
    assert chisquare(counts, 3000 * np.array([1 - p, p])).pvalue > 1e-7


def test_one_of_several_questions_is_drawn():
    poll = tc.survey("three", {"a": ["x", "y"], "b": (0, 1), "c": 3000}, epsilon=1, strategy="one")
    seen = [poll.answer({"a": "x", "b": 0.5, "c": 9}).release().answers for _ in range(300)]
    assert {len(one) for one in seen} == {1}
    names = [next(iter(one)) for one in seen]
    assert chisquare([names.count(name) for name in "abc"]).pvalue > 1e-7


def test_every_question_is_answered_if_epsilon_is_split():
    poll = tc.survey("two", {"a": ["x", "y"], "b": (0, 1)}, epsilon=1, strategy="split")
    assert set(poll.answer({"a": "x", "b": 0.5}).release().answers) == {"a", "b"}


def test_the_seed_of_an_invitation_is_the_collectors():
    one, other = (BIG.answer(77, invitation="A-1").release().answers["answer"]["seed"] for _ in range(2))
    assert one == other
    assert one != BIG.answer(77, invitation="A-2").release().answers["answer"]["seed"]


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"a": "z", "b": 1}, "unknown-category"),
        ({"a": None, "b": 1}, "unknown-category"),
        ({"a": ["x"], "b": 1}, "unknown-category"),
        ({"a": "x"}, "unknown-category"),
        ({"a": "x", "b": "many"}, "not-finite"),
        ({"a": "x", "b": float("nan")}, "not-finite"),
    ],
)
def test_unknown_answers_are_refused_without_showing_them(answers, code):
    poll = tc.survey("two", {"a": ["x", "y"], "b": (0, 1)}, epsilon=1)
    with pytest.raises(TacitError) as refusal:
        poll.answer(answers)
    assert refusal.value.code == code
    assert "'z'" not in str(refusal.value)


def test_a_number_is_clipped_and_put_on_the_grid():
    question = tc.survey("ages", (18, 90), epsilon=1).questions[0]
    steps = question.randomizer.steps
    assert question.encode({"answer": [18, 54, 90, 17, 200]}).tolist() == [-steps, 0, steps, -steps, steps]
    whole = question.encode({"answer": list(range(18, 91))})
    assert (np.diff(whole) == steps // 36).all()  # every whole number is on the grid


def test_a_scale_goes_from_one_end_to_the_other():
    for points in (4, 5):
        question = tc.survey("scale", range(1, points + 1), epsilon=1).questions[0]
        found = question.encode({"answer": list(range(1, points + 1))})
        assert (found[0], found[-1]) == (-question.randomizer.steps, question.randomizer.steps)
        assert len(set(np.diff(found))) == 1
