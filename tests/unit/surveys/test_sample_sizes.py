"""How many respondents, and one question or all: the reference figures."""

import math

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.surveys._forecasts import choose_strategy, share_half_width, worst_share


def coin(epsilon):
    e = math.exp(epsilon)
    return e / (e + 1), 1 / (e + 1)


@pytest.mark.parametrize(
    ("epsilon", "people"), [(0.5, 17_789), (1, 4_997), (math.log(3), 4_269), (2, 1_840), (4, 1_149)]
)
def test_three_points_need_so_many_people(epsilon, people):
    assert share_half_width(*coin(epsilon), people) <= 0.03 < share_half_width(*coin(epsilon), people - 1)


def test_an_expected_share_needs_fewer_people():
    assert share_half_width(*coin(4), 499, share=0.05) < 0.03


def test_the_hardest_share_lies_between_none_and_all():
    assert worst_share(0.5, 0.27) == 1.0
    assert worst_share(0.9, 0.6) == 0.0


@pytest.mark.parametrize(("m", "epsilon"), [(2, 3.06), (3, 3.71), (5, 4.71), (10, 6.53)])
def test_splitting_wins_only_for_a_large_epsilon(m, epsilon):
    def chosen(eps):
        def variance(e):
            return math.exp(e) / (math.exp(e) - 1) ** 2 + 1 / 4

        return choose_strategy([m * variance(eps)] * m, [variance(eps / m)] * m)

    assert (chosen(epsilon - 0.01).name, chosen(epsilon + 0.01).name) == ("one", "split")
    assert "times as wide" in chosen(1).why


def test_a_half_width_of_nothing_is_refused():
    with pytest.raises(TacitError, match="half_width must be a positive finite number"):
        MIXED.respondents_for(half_width=0)


MIXED = tc.survey("mixed", {"smokes": ["no", "yes"], "age": (18, 90)}, epsilon=2)


def test_one_half_width_does_not_serve_a_share_and_an_age():
    with pytest.raises(TacitError) as refusal:
        MIXED.respondents_for(half_width=0.03)
    assert "smokes (a share from 0 to 1), age (a number from 18 to 90)" in refusal.value.what
    assert 'question="smokes"' in str(refusal.value.fix)
    assert MIXED.respondents_for(half_width=2, question="age") > 100
    shares = tc.survey("two", {"a": ["n", "y"], "b": ["n", "y"]}, epsilon=2)
    assert shares.respondents_for(half_width=0.03) == shares.respondents_for(half_width=0.03, question="a")


def test_half_a_share_is_not_a_half_width():
    for survey, name in ((MIXED, "smokes"), (tc.survey("coin", ["no", "yes"], epsilon=1), None)):
        with pytest.raises(TacitError, match=r"below 0\.5 for a share"):
            survey.respondents_for(half_width=3, question=name)


@pytest.mark.parametrize("epsilon", [0.5, 2, 5])
def test_a_side_of_a_pair_has_its_own_figure(epsilon):
    answers = {"used": ["no", "yes"], "place": list("abcdef")}
    poll = tc.survey("pair", answers, pairs=[("used", "place")], epsilon=epsilon)
    forecast = poll.predict(4000)
    assert set(forecast.names) == {poll.questions[0].name, "used", "place"}
    truth = {"used": ["no", "yes"] * 2000, "place": list("ab") * 2000}
    found = poll.randomize(truth)
    for side in ("used", "place"):
        row = found.estimate(side)[{"used": "yes", "place": "a"}[side]]
        half = (row.high - row.low) / 2
        n = poll.respondents_for(half_width=half, question=side, share=0.5)
        assert n == pytest.approx(4000, rel=0.15)
    needed = poll.respondents_for(half_width=0.03, question="used")
    assert poll.predict(needed)["used"] == pytest.approx(0.03, rel=0.01)


def test_the_name_of_a_question_is_asked_for():
    found = MIXED.randomize({"smokes": ["no"] * 9, "age": np.arange(20, 29)})
    with pytest.raises(TacitError, match="has several questions") as refusal:
        found.estimate()
    assert "smokes, age" in str(refusal.value.fix)
