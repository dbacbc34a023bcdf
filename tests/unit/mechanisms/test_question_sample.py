"""One of several questions is drawn, and its answer alone is reported."""

import numpy as np
import pytest
from scipy.stats import chisquare

import tacit as tc
from tacit.errors import TacitError

m = tc.mechanisms
COIN, STATES = m.SubsetSelection(epsilon=1, size=2), m.SubsetSelection(epsilon=1, size=51)
NUMBER = m.NumberWindow(epsilon=0.5, steps=10)


def test_every_question_is_drawn_alike():
    drawn = m.QuestionSample([COIN, STATES, NUMBER]).draw(30_000)
    assert chisquare(np.bincount(drawn, minlength=3)).pvalue > 1e-7


def test_the_report_belongs_to_the_question():
    made = m.QuestionSample([COIN, STATES, NUMBER])
    for _ in range(100):
        which, report = made.release([1, 50, -3])
        assert made.parts[which].read_reports([report]).shape[0] == 1


def test_it_costs_what_the_dearest_question_costs():
    assert m.QuestionSample([COIN, NUMBER]).cost.epsilon(delta=0) == COIN.cost.epsilon(delta=0)
    assert m.QuestionSample([NUMBER, COIN]).cost.adjacency == "replace"
    assert m.QuestionSample([COIN, COIN]).cost == COIN.cost
    assert m.QuestionSample([COIN, NUMBER]).to_json()["parts"] == [COIN.to_json(), NUMBER.to_json()]


def test_the_odds_of_every_report_stay_within_epsilon():
    """Exactly: a report has chance 1/2 of its question times that of the randomizer."""
    made = m.QuestionSample([COIN, COIN])
    worst = 0.0
    for which in range(2):
        for report in ([0], [1]):
            chances = {COIN.probability(report, truth=(a, b)[which]) / 2 for a in range(2) for b in range(2)}
            worst = max(worst, max(chances) / min(chances))
    assert np.log(float(worst)) <= float(COIN.epsilon) + 1e-12
    assert made.worst_pair == ((0, 0), (1, 1))


@pytest.mark.parametrize("parts", [[], [1], [COIN, "coin"]])
def test_parts_are_randomizers(parts):
    with pytest.raises(TacitError, match=r"a list of (one or more )?local randomizers"):
        m.QuestionSample(parts)


def test_every_question_needs_an_answer():
    with pytest.raises(TacitError, match="2 answers"):
        m.QuestionSample([COIN, COIN]).release([1])
