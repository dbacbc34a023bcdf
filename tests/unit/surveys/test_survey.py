"""Declaring a survey: kinds of questions, strategies, documents, and what is predicted beforehand."""

import math
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError

STATES = [f"state {i}" for i in range(51)]
FOUR = {"smokes": ["no", "yes"], "state": STATES, "age": (18, 90), "rating": range(1, 6)}


def refused(code, call, *words, **named):
    with pytest.raises(TacitError) as refusal:
        call(*words, **named)
    assert refusal.value.code == code
    return refusal.value


def test_a_printed_survey_has_no_names_of_mechanisms():
    survey = tc.survey("s", {"a": [str(i) for i in range(40)], "b": ["no", "yes"], "c": (0, 10)}, epsilon=2)
    text = str(survey)
    assert not any(word in text for word in ("hashing", "Duchi", "digest", "/n"))
    assert "the true one with probability 88.1 %" in text
    assert survey.digest[:16] in text


def test_answers_say_what_kind_a_question_is():
    poll = tc.survey("four", FOUR, epsilon=2)
    assert [question.kind for question in poll.questions] == ["choice", "choice", "number", "scale"]
    assert [question.gives_shares for question in poll.questions] == [True, True, False, False]
    assert poll["state"].randomizer == tc.mechanisms.choose_randomizer(2, 51)


def test_a_single_question_needs_no_name():
    [question] = tc.survey("one", ["no", "yes"], epsilon=1).questions
    assert (question.name, question.answers, question.share) == ("answer", ("no", "yes"), 1)


def test_a_scale_gives_shares_if_these_are_wanted():
    wanted = tc.surveys.question(range(1, 6), wants="shares")
    assert tc.survey("scale", {"rating": wanted}, epsilon=1)["rating"].gives_shares


@pytest.mark.parametrize(
    "answers",
    [["yes"], ["a", "a"], "yes", 1, True, (5, 5), (9, 3), [1.5, 2.5], ["a", 2], {"a", "b"}, None, ["", "x"]],
)
def test_answers_that_cannot_be_a_question_are_refused(answers):
    refused("bad-parameter", tc.survey, "bad", {"q": answers}, epsilon=1)


def test_the_choice_of_a_window_is_explained():
    why = tc.survey("ages", (18, 90), epsilon=1).questions[0].why
    assert "mixed with Duchi's coin: 4.267/n to 4.267/n" in why
    assert "Duchi's coin: 4.683/n to 3.683/n" in why


def test_names_that_reports_use_are_refused():
    for name in ("survey", "invitation", "", "a\nb"):
        refused("bad-parameter", tc.survey, "bad", {name: ["a", "b"]}, epsilon=1)
    refused("bad-parameter", tc.survey, "bad", {}, epsilon=1)
    refused("bad-parameter", tc.survey, "bad", ["a", "b"], epsilon=0)
    refused("bad-parameter", tc.survey, "bad", ["a", "b"], epsilon=1, strategy="both")


@pytest.mark.parametrize(("m", "threshold"), [(2, 3.06), (3, 3.71), (5, 4.71)])
def test_several_yes_or_no_questions_are_split_only_above_the_known_epsilon(m, threshold):
    questions = {f"q{i}": ["no", "yes"] for i in range(m)}
    below, above = (tc.survey("many", questions, epsilon=threshold + d) for d in (-0.02, 0.02))
    assert (below.strategy, above.strategy) == ("one", "split")
    assert "times as wide" in below.why
    assert {q.share for q in below.questions} == {Fraction(1, m)}
    assert {q.share for q in above.questions} == {1}


@pytest.mark.parametrize("strategy", ["one", "split"])
def test_the_cost_is_within_the_promise(strategy):
    poll = tc.survey("four", FOUR, epsilon=2, strategy=strategy)
    assert 1.999 < poll.cost.epsilon(delta=0) <= 2
    assert poll.cost.adjacency == "replace"
    plan = poll.answer({"smokes": "yes", "state": STATES[3], "age": 40, "rating": 5})
    assert plan.cost == poll.cost


def test_a_declared_randomizer_is_used_if_it_fits():
    coin = tc.mechanisms.SubsetSelection(epsilon=1, size=51, subset=1)
    kept = tc.survey("krr", {"state": tc.surveys.question(STATES, randomizer=coin)}, epsilon=1)
    assert kept["state"].randomizer == coin
    refused(
        "bad-parameter", tc.survey, "x", {"s": tc.surveys.question(STATES[:3], randomizer=coin)}, epsilon=1
    )
    refused("bad-parameter", tc.survey, "x", {"s": tc.surveys.question(STATES, randomizer=coin)}, epsilon=0.5)


def test_a_declared_randomizer_may_need_the_whole_epsilon():
    coin = tc.mechanisms.SubsetSelection(epsilon=8, size=2)
    asked = {"a": tc.surveys.question(["x", "y"], randomizer=coin), "b": ["x", "y"]}
    assert tc.survey("two", asked, epsilon=8).strategy == "one"
    assert tc.survey("two", {"a": ["x", "y"], "b": ["x", "y"]}, epsilon=8).strategy == "split"
    refused("bad-parameter", tc.survey, "two", asked, epsilon=8, strategy="split")


def test_a_long_list_of_numbers_is_written_as_their_number():
    poll = tc.survey("many", 100_000, epsilon=1)
    assert poll.document()["questions"][0]["answers"] == 100_000
    assert tc.surveys.Survey.from_document(poll.document()) == poll


def test_pairs_are_asked_together():
    asked = {"a": ["x", "y"], "b": range(3), "c": (0, 1)}
    poll = tc.survey("pair", asked, epsilon=1, pairs=[("a", "b")])
    assert [question.name for question in poll.questions] == ["a and b", "c"]
    assert len(poll["a and b"].answers) == 6
    for pairs in ([("a", "c")], [("a", "a")], [("a", "z")], [("a", "b"), ("b", "a")], [("a",)]):
        refused("bad-parameter", tc.survey, "pair", asked, epsilon=1, pairs=pairs)


def test_a_survey_survives_its_document(tmp_path):
    poll = tc.survey("four", FOUR | {"sex": ["f", "m"]}, epsilon=2, pairs=[("smokes", "sex")])
    poll.save(tmp_path / "poll.json")
    again = tc.surveys.load(tmp_path / "poll.json")
    assert again == poll
    assert again.document() == poll.document()
    assert hash(again) == hash(poll)
    assert again.questions[0].of == poll.questions[0].of


def test_the_digest_follows_every_public_fact():
    base = {"questions": ["no", "yes"], "epsilon": 1}
    digests = {
        tc.survey("a", **base).digest,
        tc.survey("b", **base).digest,
        tc.survey("a", ["yes", "no"], epsilon=1).digest,
        tc.survey("a", ["no", "yes"], epsilon=2).digest,
        tc.survey("a", {"answer": tc.surveys.question(["no", "yes"], text="Well?")}, epsilon=1).digest,
    }
    assert len(digests) == 5


def test_a_damaged_document_is_refused(tmp_path):
    poll = tc.survey("four", FOUR, epsilon=2)
    good = poll.document()
    for change in (
        {"schema": "other"}, {"strategy": "none"}, {"questions": []}, {"epsilon": "1/2"}, {"epsilon": "x"},
        {"questions": [{"name": "a"}]},
        {"questions": ["a"]},
        {"name": None},
        {"questions": [{**good["questions"][0], "kind": "scale"}]},
        {"questions": [{**good["questions"][0], "text": 5}]},
        {"questions": [{**good["questions"][0], "answers": ["a", "b", "c"]}]},
        {"questions": [{**good["questions"][0], "randomizer": {"mechanism": "none"}}]},
 {"questions": good["questions"] * 2},
    ):  # fmt: skip
        refused("bad-survey", tc.surveys.Survey.from_document, good | change)
    (tmp_path / "poll.json").write_text("{")
    refused("bad-survey", tc.surveys.load, tmp_path / "poll.json")
    refused("bad-survey", tc.surveys.load, tmp_path / "none.json")


def test_respondents_are_predicted_before_the_survey():
    assert tc.survey("one", ["no", "yes"], epsilon=1).respondents_for(half_width=0.03) == 4_997
    poll = tc.survey("four", FOUR, epsilon=2)
    people = poll.respondents_for(half_width=0.03, question="smokes")
    assert people == 4 * 1_840
    assert poll.predict(people)["smokes"] == pytest.approx(0.03, abs=1e-4)
    lists = tc.survey("two", {name: FOUR[name] for name in ("smokes", "state")}, epsilon=2)
    each = [lists.respondents_for(half_width=0.03, question=name) for name in ("smokes", "state")]
    assert lists.respondents_for(half_width=0.03) == max(each)
    refused("unknown-column", poll.predict(10).__getitem__, "none")
    refused("unknown-column", poll.respondents_for, half_width=0.1, question="none")
    refused("bad-parameter", poll.respondents_for, half_width=0.1, question="age", share=2)


def test_a_prediction_for_a_number_comes_true():
    poll = tc.survey("ages", (18, 90), epsilon=1)
    rng = np.random.default_rng(5)
    predicted = poll.predict(2000)["answer"]
    table = poll.randomize(rng.uniform(18, 90, 2000)).mean()
    assert (table.high - table.low) / 2 == pytest.approx(predicted, rel=0.1)


def test_liars_are_bounded_before_the_survey():
    coin = tc.survey("one", ["no", "yes"], epsilon=1).predict()
    assert coin.liars[0] == pytest.approx(0.0158, abs=1e-4)
    assert "1 % liars move it by" in str(coin)


def test_shuffling_needs_respondents():
    poll = tc.survey("one", ["no", "yes"], epsilon=1)
    assert poll.shuffled_cost(10_000).epsilon(delta=1e-6) < 0.1
    refused("bad-parameter", poll.shuffled_cost, 0)


def test_the_page_of_a_survey_says_what_is_sent():
    text = str(tc.survey("four", FOUR, epsilon=2))
    for words in ("picked at random", "6 of the 51 answers", "18 to 90", "by at most a factor of 7.39"):
        assert words in text
    assert math.isclose(float(tc.survey("x", ["a", "b"], epsilon=0.1).epsilon), 0.1)


def test_a_list_of_two_numbers_is_not_a_number_between_them(tmp_path):
    for given in ([18, 90], [90, 18]):
        with pytest.raises(TacitError, match="'age'") as refusal:
            tc.survey("poll", {"age": given}, epsilon=1)
        assert "(18, 90)" in str(refusal.value.fix)
    assert tc.survey("poll", {"age": [0, 1]}, epsilon=1)["age"].kind == "choice"


def test_a_survey_file_that_does_not_exist_is_said_to_be_missing(tmp_path):
    with pytest.raises(TacitError, match="does not exist"):
        tc.surveys.load(tmp_path / "none.json")
    poll = tc.survey("poll", ["no", "yes"], epsilon=1)
    poll.save(tmp_path / "poll.json")
    text = (tmp_path / "poll.json").read_text()
    (tmp_path / "poll.json").write_text("\ufeff" + text, encoding="utf-8")
    assert tc.surveys.load(tmp_path / "poll.json") == poll
