"""Designs of social scientists: the worked case, their epsilon, and none where an answer proves something."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.accounting import Cost
from tacit.errors import TacitError

Design = tc.mechanisms.Design

WORKED = {
    "warner": (Design.warner("3/4"), 0.324, 0.0311447, 3),
    "mirrored": (Design.mirrored(0.75), 0.324, 0.0311447, 3),
    "crosswise": (Design.crosswise(0.75), 0.324, 0.0311447, 3),
    "forced": (Design.forced(truth="2/3", yes="1/6", no="1/6"), 0.368, 0.0233585, 5),
    "forced, uneven": (Design.forced(truth="3/4", yes="1/6", no="1/12"), 0.327111, 0.0207632, 10),
    "unrelated": (Design.unrelated(asked="2/3", prevalence="1/4"), 0.493, 0.0233585, 9),
    "kuk": (Design.kuk(0.8, 0.2), 0.353333, 0.0259539, 4),
}
NO_EPSILON = [
    Design.mangat(0.7),
    Design.triangular(0.25),
    Design.lie_detector("1/6", "5/6"),
    Design.unrelated_unknown(0.7, 0.3),
    Design.forced(truth="3/4", yes="1/4", no=0),
]


@pytest.mark.parametrize("name", WORKED)
def test_the_worked_case_of_a_thousand_answers(name):
    design, value, error, odds = WORKED[name]
    found = design.estimate(yes=412, of=1000)
    assert found.value == pytest.approx(value, abs=5e-7)
    assert found.standard_error == pytest.approx(error, abs=5e-8)
    assert float(design.epsilon) == pytest.approx(math.log(odds), rel=1e-12)
    assert design.cost.epsilon(delta=0) == pytest.approx(math.log(odds), rel=1e-12)
    assert design.cost.adjacency == "replace"
    assert found.low < found.value < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.01)


def test_a_symmetric_design_is_charged_as_warners_coin():
    assert WORKED["forced"][0].cost == Cost.randomized_response(
        WORKED["forced"][0].epsilon, adjacency="replace"
    )
    for name in ("forced, uneven", "unrelated"):
        assert WORKED[name][0].cost == Cost.pure(WORKED[name][0].epsilon, adjacency="replace")


def test_three_cards_per_person():
    design = Design.kuk(0.8, 0.2, draws=3)
    found = design.estimate(yes=1236, of=1000)
    assert found.value == pytest.approx(0.353333, abs=5e-7)
    assert found.standard_error == pytest.approx(0.0194130, abs=5e-8)
    assert float(design.epsilon) == pytest.approx(3 * math.log(4), rel=1e-12)


def test_an_unrelated_question_of_unknown_prevalence():
    found = Design.unrelated_unknown(0.7, 0.3).estimate(yes=(190, 240), of=(500, 500))
    assert found.value == pytest.approx(0.305, abs=1e-12)
    assert found.standard_error == pytest.approx(0.0415609, abs=5e-8)
    assert found.other == pytest.approx(0.555, abs=1e-12)  # .38 = .7 * .305 + .3 * .555


def test_the_lie_detector_of_the_published_case():
    found = Design.lie_detector("1/6", "5/6").estimate(yes=(373, 398), of=(564, 692))
    assert found.value == pytest.approx(0.870695, abs=5e-7)
    assert found.standard_error == pytest.approx(0.041118, abs=5e-7)
    assert found.other == pytest.approx(0.635806, abs=5e-7)


def test_mangat_and_the_triangular_design_are_read_by_their_formulae():
    assert Design.mangat(0.7).estimate(yes=500, of=1000).value == pytest.approx((0.5 - 0.3) / 0.7)
    assert Design.triangular(0.25).estimate(yes=500, of=1000).value == pytest.approx((0.5 - 0.25) / 0.75)


@pytest.mark.parametrize("design", NO_EPSILON, ids=lambda d: d.name)
def test_a_design_in_which_an_answer_proves_something_has_no_epsilon(design):
    for ask in (lambda: design.epsilon, lambda: design.cost, lambda: design.release([0, 1])):
        if isinstance(design, tc.mechanisms.TwoGroupDesign) and ask.__code__.co_names[-1:] == ("release",):
            continue
        with pytest.raises(TacitError, match="has no epsilon") as refused:
            ask()
        assert refused.value.code == "no-guarantee"


def test_a_design_without_an_epsilon_can_be_shown_and_stored():
    assert repr(Design.mangat(0.7)) == "Design(mangat, no epsilon)"
    assert Design.mangat(0.7).to_json()["cost"] is None
    assert Design.mangat(0.7).private is False


def test_the_epsilon_of_any_matrix_is_its_largest_loss():
    design = Design(no=["1/2", "1/4", "1/4"], yes=["1/8", "3/8", "1/2"])
    assert float(design.epsilon) == pytest.approx(math.log(4), rel=1e-12)
    assert design.privacy_loss(0, 0, 1) == pytest.approx(math.log(4))
    with pytest.raises(TacitError, match="two answers"):
        design.estimate(yes=1, of=2)
    impossible = Design(no=["1/2", "1/2", 0], yes=["1/4", "3/4", 0])  # an answer that nobody can give
    assert float(impossible.epsilon) == pytest.approx(math.log(2), rel=1e-12)


@pytest.mark.parametrize("name", WORKED)
def test_answers_are_drawn_with_the_stated_probabilities(name):
    design, n = WORKED[name][0], 40_000
    for truth, p in ((0, float(design.q)), (1, float(design.p))):
        hits = int(design.release(np.full(n, truth)).sum())
        assert abs(hits - n * p) < 6.2 * math.sqrt(n * p * (1 - p))


def test_cards_are_drawn_with_the_stated_probabilities():
    from scipy.stats import chi2

    design, n = Design.kuk(0.8, 0.2, draws=3), 40_000
    for truth in (0, 1):
        found = np.bincount(design.release(np.full(n, truth)), minlength=4)
        wanted = n * np.array([float(design.probability(r, truth=truth)) for r in range(4)])
        assert ((found - wanted) ** 2 / wanted).sum() < chi2.isf(1e-9, 3)


def test_the_predicted_variance_is_the_square_of_the_standard_error():
    for design, value, error, _ in WORKED.values():
        assert design.variance(round(value, 6), 999, sampling=True) == pytest.approx(error**2, rel=1e-4)
    three = Design.kuk(0.8, 0.2, draws=3)
    assert three.variance(0.353333, 1000, sampling=True) == pytest.approx(0.0194130**2, rel=2e-3)
    coins = three.variance(0.353333, 1000, sampling=False)
    assert three.variance(0.353333, 1000, sampling=True) == pytest.approx(coins + 0.353333 * 0.646667 / 1000)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Design.warner(0.5),
        lambda: Design.warner(1),
        lambda: Design.warner(0),
        lambda: Design.warner("1/0"),
        lambda: Design.warner("x"),
        lambda: Design.warner(math.nan),
        lambda: Design.kuk(0.5, 0.5),
        lambda: Design.kuk(0.8, 0.2, draws=0),
        lambda: Design.kuk(0.8, 0.2, draws=101),
        lambda: Design.forced(truth=0.5, yes=0.5, no=0.5),
        lambda: Design.forced(truth=0, yes=0.5, no=0.5),
        lambda: Design.unrelated(asked=0.7, prevalence=0),
        lambda: Design.lie_detector(0.3, 0.3),
        lambda: Design(no=[1], yes=[1]),
        lambda: Design(no=[0.5, 0.5], yes=[0.5, 0.25, 0.25]),
        lambda: Design(no=[0.5, 0.4], yes=[0.5, 0.5]),
        lambda: Design.warner(0.75).estimate(yes=3, of=2),
        lambda: Design.warner(0.75).estimate(yes=1, of=1),
        lambda: Design.warner(0.75).estimate(yes=-1, of=10),
        lambda: Design.warner(0.75).estimate(yes=1.5, of=10),
        lambda: Design.warner(0.75).estimate(yes=1, of=10, confidence=1),
        lambda: Design.warner(0.75).variance(2, 10, sampling=True),
        lambda: Design.lie_detector(0.2, 0.8).estimate(yes=(3, 3), of=(2, 5)),
    ],
)
def test_parameters_without_a_meaning_are_refused(make):
    with pytest.raises(TacitError) as refused:
        make()
    assert refused.value.code == "bad-parameter"
    assert str(refused.value.fix)


def test_answers_go_in_and_out_in_every_form():
    design = Design.warner(0.75)
    assert design.release(True) in (0, 1)
    assert len(design.release(pd.Series([True, False, True]))) == 3
    assert design.release([]).shape == (0,)
    assert design.read_reports([True, False]).tolist() == [1, 0]
    for bad in ([2], [math.nan], [None], ["yes"], 7):
        with pytest.raises(TacitError) as refused:
            design.release(bad)
        assert refused.value.code == "unknown-category"
        with pytest.raises(TacitError) as refused:
            design.read_reports(bad)
        assert refused.value.code == "bad-report"


def test_probabilities_written_as_decimals_and_fractions_are_exact():
    assert Design.forced(truth="2/3", yes="1/6", no="1/6").p == Fraction(5, 6)
    assert Design.kuk(0.8, 0.2) == Design.kuk("4/5", Fraction(1, 5))
