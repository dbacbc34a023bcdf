"""Designs of social scientists as questions of a survey."""

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.mechanisms import Design

FORCED = Design.forced(truth="2/3", yes="1/6", no="1/6")


def poll(design, epsilon=5):
    return tc.survey(
        "design", {"used": tc.surveys.question(["no", "yes"], randomizer=design)}, epsilon=epsilon
    )


@pytest.mark.parametrize(
    ("design", "value"),
    [
        (Design.warner("3/4"), 0.324),
        (FORCED, 0.368),
        (Design.forced(truth="3/4", yes="1/6", no="1/12"), 0.327111),
        (Design.unrelated(asked="2/3", prevalence="1/4"), 0.493),
        (Design.kuk("4/5", "1/5"), 0.353333),
    ],
)
def test_412_of_1000_reports_give_the_published_estimate(design, value):
    reports = poll(design).collect({"used": [1] * 412 + [0] * 588})
    table = reports.estimate()
    assert table["yes"].value == pytest.approx(value, abs=1e-6)
    assert table["no"].value == pytest.approx(1 - value, abs=1e-6)
    old = design.estimate(yes=412, of=1000)
    assert (table["yes"].low, table["yes"].high) == pytest.approx((old.low, old.high), abs=1e-9)


def test_several_draws_of_a_card():
    design = Design.kuk("4/5", "1/5", draws=3)
    reports = poll(design).collect({"used": [1] * 764 + [2] * 236})
    table = reports.estimate()
    assert table["yes"].value == pytest.approx(0.353333, abs=1e-6)
    half = (table["yes"].high - table["yes"].low) / 2
    assert half == pytest.approx(1.96 * 0.0194130, rel=0.01)


def test_a_respondent_reads_what_is_sent():
    text = " ".join(str(poll(FORCED).answer("yes")).split())
    assert "yes or no: yes with probability 83.3 % if that is true, and with 16.7 % if it is not" in text
    assert poll(FORCED).answer("yes").release().answers["used"] in (0, 1)
    assert "used: yes" in (shown := str(poll(FORCED).answer("yes").release())) or "used: no" in shown
    cards = poll(Design.kuk("4/5", "1/5", draws=3))
    assert "from a deck with 80.0 % red cards if yes is true" in " ".join(str(cards.answer("no")).split())
    assert "of 3 cards are red" in str(cards.answer("no").release())


def test_a_design_survives_document_and_files(tmp_path):
    survey = poll(FORCED)
    assert tc.surveys.Survey.from_document(survey.document()) == survey
    reports = survey.randomize({"used": ["yes"] * 30 + ["no"] * 70})
    for suffix in ("csv", "jsonl"):
        reports.save(tmp_path / f"r.{suffix}")
        assert survey.collect(tmp_path / f"r.{suffix}").estimate().rows == reports.estimate().rows


def test_epsilon_of_a_design_must_fit():
    assert poll(FORCED, epsilon=1.61).cost.epsilon(delta=0) == pytest.approx(np.log(5))
    with pytest.raises(TacitError, match="has epsilon 1"):
        poll(FORCED, epsilon=1)


@pytest.mark.parametrize("design", [Design.mangat("3/4"), Design.triangular("1/4")])
def test_designs_without_an_epsilon_are_refused(design):
    with pytest.raises(TacitError) as refusal:
        poll(design)
    assert refusal.value.code == "no-guarantee"


def test_liars_are_bounded_whichever_way_the_coin_leans():
    for p in ("3/4", "1/4"):
        assert poll(Design.warner(p)).predict().liars[0] == pytest.approx(0.015)


def test_regression_uses_the_designs_chances():
    rng = np.random.default_rng(8)
    x = rng.integers(0, 2, 20_000)
    truth = np.where(rng.random(len(x)) < np.where(x == 1, 0.6, 0.3), "yes", "no")
    reports = poll(FORCED).randomize({"used": truth, "x": x}, public=["x"])
    fit = reports.logistic("used", on=["x"], confidence=0.9999999)
    expected = np.log(0.6 / 0.4) - np.log(0.3 / 0.7)
    assert fit.interval("x")[0] < expected < fit.interval("x")[1]
    turned = reports.logistic("used", on=["x"], answer="no")
    assert turned["x"] == pytest.approx(-fit["x"], abs=1e-6)
