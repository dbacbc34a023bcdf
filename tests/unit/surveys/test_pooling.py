"""Surveys that differ in epsilon, estimated together."""

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError

CAREFUL, OPEN = (tc.survey("smoking", ["no", "yes"], epsilon=e) for e in (0.5, 2))


def test_pooling_is_better_than_either():
    truth = ["yes"] * 300 + ["no"] * 700
    one, other = CAREFUL.randomize(truth * 4), OPEN.randomize(truth)
    both = tc.surveys.pool(one, other)
    widths = [row.high - row.low for row in (both["yes"], one.estimate()["yes"], other.estimate()["yes"])]
    assert widths[0] < min(widths[1:])
    assert both["yes"].respondents == 5000
    assert "Pooled from surveys with epsilon 0.5, 2" in str(both)


def test_weights_follow_the_predicted_variance():
    one, other = CAREFUL.randomize(["no"] * 1000), OPEN.randomize(["no"] * 1000)
    values = [r.estimate()["yes"].value for r in (one, other)]
    inverse = [1 / survey.questions[0].variance() for survey in (CAREFUL, OPEN)]
    expected = np.dot(inverse, values) / sum(inverse)
    assert tc.surveys.pool(one, other)["yes"].value == pytest.approx(expected)


def test_means_are_pooled_too():
    ages = [tc.survey("ages", (18, 90), epsilon=e).randomize([54] * 5000) for e in (1, 4)]
    table = tc.surveys.pool(*ages, confidence=0.9999999)
    assert table.low < 54 < table.high
    assert (
        table.high - table.low
        < ages[0].mean(confidence=0.9999999).high - ages[0].mean(confidence=0.9999999).low
    )


def test_different_questions_are_not_pooled():
    other = tc.survey("other", ["no", "maybe"], epsilon=1).randomize(["no"] * 5)
    with pytest.raises(TacitError) as refusal:
        tc.surveys.pool(CAREFUL.randomize(["no"] * 5), other)
    assert refusal.value.code == "other-survey"
    with pytest.raises(TacitError, match="at least 2 in each"):
        tc.surveys.pool(CAREFUL.randomize(["no"]), OPEN.randomize(["no"]))


def test_estimates_are_not_reports():
    table = CAREFUL.randomize(["no"] * 5).estimate()
    with pytest.raises(TacitError) as refusal:
        tc.surveys.pool(table, OPEN.randomize(["no"] * 5))
    assert refusal.value.code == "bad-parameter"
    assert "ShareTable" in refusal.value.what
