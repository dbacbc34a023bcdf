"""Amplification by mixing is claimed only for reports that do not name their sender."""

import numpy as np
import pytest

import tacit as tc
from tacit import TacitError
from tacit.mechanisms import LinearHashing
from tacit.surveys._answering import seed_label

PEOPLE = 40
LONG = 100_000
SURVEYS = {
    "hash": (tc.survey("words", LONG, epsilon=1), 77),
    "hash among others": (
        tc.survey("mixed", {"word": LONG, "smokes": ["no", "yes"]}, epsilon=2, strategy="split"),
        {"word": 5, "smokes": "no"},
    ),
    "hash or another": (
        tc.survey("drawn", {"word": LONG, "smokes": ["no", "yes"]}, epsilon=2, strategy="one"),
        {"word": 5, "smokes": "no"},
    ),
    "choice": (tc.survey("smoking", ["no", "yes"], epsilon=1), "yes"),
    "list": (tc.survey("states", 51, epsilon=1), 3),
    "number": (tc.survey("age", (18, 90), epsilon=1), 40),
    "pair": (
        tc.survey("pair", {"a": ["x", "y"], "b": ["x", "y"]}, epsilon=1, pairs=[("a", "b")]),
        {"a": "x", "b": "y"},
    ),
    "repeated": (tc.survey("monthly", ["no", "yes"], epsilon=2, once=1), "no"),
}


def mixed(survey, truth, *, invited=True):
    """Return the answers of all reports, without order, invitation and public facts, as the guide says."""
    reports = [
        survey.answer(
            truth,
            invitation=f"A-{person}" if invited else None,
            public={"age": person},
            memory=tc.surveys.Memory(survey.digest) if survey.is_repeated else None,
        ).release()
        for person in range(PEOPLE)
    ]
    order = np.random.default_rng(3).permutation(PEOPLE)
    return [dict(reports[place].content.answers) for place in order], order


def linked(survey, answers):
    """Return the person that each mixed report names by something made from the invitation; else None."""
    senders = {}
    for question in survey.questions:
        if isinstance(question.randomizer, LinearHashing):
            label = seed_label(survey.digest, question.name)
            seeds = question.randomizer.seeds_for([f"A-{i}" for i in range(PEOPLE)], label=label)
            senders |= {(question.name, *seed.tolist()): i for i, seed in enumerate(seeds)}
    found = []
    for report in answers:
        keys = [(name, *value["seed"]) for name, value in report.items() if isinstance(value, dict)]
        found.append(next((senders[key] for key in keys if key in senders), None))
    return found


def claims_too_much(survey, truth):
    """Whether amplification is claimed although a mixed report names its sender."""
    answers, order = mixed(survey, truth)
    found = linked(survey, answers)
    assert all(one in {None, person} for one, person in zip(found, order.tolist(), strict=True))
    try:
        claimed = survey.shuffled_cost(10_000).epsilon(delta=1e-6)
    except TacitError as refusal:
        assert "mixing does not hide who sent a report" in str(refusal)
        assert refusal.code == "not-allowed"
        return False
    assert claimed < survey.epsilon / 2
    return any(one is not None for one in found)


@pytest.mark.parametrize("kind", SURVEYS)
def test_no_amplification_is_claimed_for_reports_that_can_be_linked(kind):
    assert not claims_too_much(*SURVEYS[kind])


@pytest.mark.parametrize("kind", [kind for kind in SURVEYS if not kind.startswith("hash")])
def test_amplification_is_claimed_for_reports_that_name_nobody(kind):
    survey, _ = SURVEYS[kind]
    assert survey.shuffled_cost(10_000).epsilon(delta=1e-6) < survey.epsilon / 2


@pytest.mark.parametrize("kind", [kind for kind in SURVEYS if kind.startswith("hash")])
def test_a_claim_as_if_no_seed_named_its_sender_is_caught(kind, monkeypatch):
    """The broken twin is the claim as it was before."""
    twin = lambda survey, people: survey.cost.shuffled(people)  # noqa: E731
    monkeypatch.setattr(tc.surveys.Survey, "shuffled_cost", twin)
    assert claims_too_much(*SURVEYS[kind])


def test_every_report_about_a_long_list_is_linked_by_its_invitation_and_none_without():
    """A seed of 34 bits meets one of 40 others by chance in 1600 of 2^34 surveys."""
    survey, truth = SURVEYS["hash"]
    answers, order = mixed(survey, truth)
    assert linked(survey, answers) == order.tolist()
    alone, _ = mixed(survey, truth, invited=False)
    assert linked(survey, alone) == [None] * PEOPLE
    assert survey.shuffled_cost(10_000, invitations=False).epsilon(delta=1e-6) < 0.1


def test_the_mixer_is_told_to_drop_public_facts():
    """Public facts are in the report as they are; the survey does not know them, so only words can help."""
    survey, truth = SURVEYS["choice"]
    document = survey.answer(truth, public={"age": 41}).release().content.to_json()
    assert document["public"] == {"age": 41}
    assert "all public facts" in tc.surveys.Survey.shuffled_cost.__doc__
