"""True answers in place of reports: the figures are wrong, and the tables say so."""

import numpy as np
import pytest

import tacit as tc
from tacit.surveys._estimates import caution

AGE = {"age": (18, 90)}


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_true_ages_are_noticed(epsilon):
    poll = tc.survey("poll", AGE, epsilon=epsilon)
    ages = np.random.default_rng(1).integers(18, 90, 2000)
    found = poll.collect({"age": ages, "region": ["a", "b"] * 1000})
    assert found.mean().caution.startswith("Caution: these reports do not fit")
    assert "Caution" in str(found.mean(by="region"))


@pytest.mark.parametrize("epsilon", [0.3, 1, 2, 4, 8])
@pytest.mark.parametrize("age", [18, 54, 90])
def test_true_reports_of_numbers_fit(epsilon, age):
    poll = tc.survey("poll", AGE, epsilon=epsilon)
    for people in (2, 30, 3000):
        assert poll.randomize([age] * people).mean().caution == ""


def test_thirty_of_thirty_yes_do_not_fit_a_coin():
    coin = tc.survey("coin", ["no", "yes"], epsilon=1)
    odd = coin.collect({"answer": [1] * 30}).estimate()
    assert "do not fit the randomizer" in str(odd)
    assert "due to the coins" not in str(odd)
    assert coin.collect({"answer": [1] * 22 + [0] * 8}).estimate().caution == ""


def test_true_answers_of_a_long_list_are_noticed_in_shares_pairs_and_scales():
    many = tc.survey(
        "many",
        list(map(str, range(9))),
        epsilon=2,
    )
    listed = [[0]] * 3000 if many["answer"].randomizer.subset == 1 else None
    assert listed is not None
    assert "Caution" in str(many.collect({"answer": listed}).estimate())
    pair = tc.survey("pair", {"a": ["n", "y"], "b": ["n", "y"]}, pairs=[("a", "b")], epsilon=2)
    cells = pair.collect({pair.questions[0].name: [0] * 3000})
    assert "Caution" in str(cells.crosstab("a", "b"))
    assert "Caution" in str(cells.estimate("a"))
    dice = tc.surveys.question(["no", "yes"], randomizer=tc.mechanisms.Design.warner("3/4"))
    paper = tc.survey("dice", {"used": dice}, epsilon=2)
    assert "Caution" in str(paper.collect({"used": [0] * 300}).estimate())


@pytest.mark.parametrize("answers", [2, 9, 40, 3000])
def test_true_reports_of_lists_fit(answers):
    poll = tc.survey("poll", answers, epsilon=1)
    for truth in ([0] * 500, list(range(2)) * 250):
        found = [caution(poll["answer"], poll.randomize(truth).answered["answer"].reports) for _ in range(3)]
        assert "" in found  # each is a false alarm with chance 1 in 1,000 at most


def test_a_cell_outside_the_possible_shares_has_the_note():
    pair = tc.survey("pair", {"a": ["n", "y"], "b": ["n", "y"]}, pairs=[("a", "b")], epsilon=1)
    name = pair.questions[0].name
    q = float(pair.questions[0].support.q)
    few = int(1000 * q) - 5
    third = (1000 - few) // 3
    sent = [0] * few + [1] * third + [2] * third + [3] * (1000 - few - 2 * third)
    table = pair.collect({name: sent}).crosstab("a", "b")
    assert table["n", "n"].value < 0
    assert "due to the coins" in str(table)


def test_one_respondent_is_one_respondent():
    coin = tc.survey("coin", ["no", "yes"], epsilon=1)
    assert "1 respondent\n" in str(coin.collect({"answer": [1]}))


def test_nothing_has_no_sign():
    from tacit.surveys._results import _points

    assert [_points(share) for share in (-0.0003, 0.0003, -0.002)] == ["0.0 %", "0.0 %", "-0.2 %"]
