"""Regression on randomized answers: figures of the reference case, which needs no random generator."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, ndtri

from tacit.errors import TacitError
from tacit.surveys._regression import fit_linear, fit_logistic, fit_unbiased

I = np.arange(2000)
X = (I % 41 - 20) / 10
U, V, W = ((I * c) % 1 for c in (0.6180339887498949, 0.7548776662466927, 0.5698402909980532))
NOISE = ndtri((1999 * W + 0.5) / 2000)
ONE_X = np.column_stack([np.ones(2000), X])
COIN = {"p": 0.75, "q": 0.25}


def case(truth):
    answer = np.where(V < 0.75, truth, 1 - truth)
    return answer, 1 + 2 * truth + 0.5 * X + NOISE


TRUTH = (expit(-0.5 + 0.8 * X) > U).astype(int)
ANSWER, OUTCOME = case(TRUTH)


def close(found, digits, *expected):
    assert [round(v, digits) for v in found] == pytest.approx(expected, abs=10.0**-digits)


def test_the_case_is_the_published_one():
    assert (TRUTH.sum(), ANSWER.sum()) == (798, 895)


def test_logistic_regression_sees_through_the_coin():
    fit = fit_logistic(ANSWER, ONE_X, **COIN, names=["one", "x"])
    close(fit.values, 5, -0.51706, 0.81771)
    close(fit.errors, 5, 0.11471, 0.11109)
    assert fit.log_likelihood == pytest.approx(-1333.22853, abs=6e-6)
    assert fit.interval("x")[0] < 0.8 < fit.interval("x")[1]


def test_a_coin_that_is_ignored_halves_the_coefficients():
    plain = {"p": 1, "q": 0, "names": ["one", "x"]}
    close(fit_logistic(TRUTH, ONE_X, **plain).values, 5, -0.48929, 0.79774)
    close(fit_logistic(ANSWER, ONE_X, **plain).values, 5, -0.21725, 0.35325)


def test_the_joint_likelihood_finds_the_coefficients():
    fit = fit_linear(OUTCOME, ANSWER, ONE_X, **COIN, names=["one", "x", "s"])
    close(fit.values, 5, 0.99985, 0.51104, 1.99823)
    close(fit.errors, 5, 0.04138, 0.02964, 0.06733)
    assert fit.log_likelihood == pytest.approx(-4622.60708, abs=6e-6)


def test_taking_the_answer_as_independent_is_biased_where_it_is_not():
    fit = fit_linear(OUTCOME, ANSWER, ONE_X, **COIN, names=["one", "x", "s"], independent=True)
    close(fit.values, 4, 1.0772, 0.7260, 1.8016)


def test_independence_holds_in_its_own_case():
    answer, outcome = case((U < 0.4).astype(int))
    fit = fit_linear(outcome, answer, ONE_X, **COIN, names=["one", "x", "s"], independent=True)
    close(fit.values, 5, 0.99426, 0.49456, 2.01932)
    assert fit.error("x") == pytest.approx(0.02356, abs=1e-5)


def test_numbers_with_noise_of_mean_zero_keep_the_line():
    fit = fit_unbiased(1 + 2 * X + 3 * NOISE, ONE_X, names=["one", "x"])
    assert fit.interval("x")[0] < 2 < fit.interval("x")[1]
    assert fit.error("x") == pytest.approx(3 / np.sqrt(2000) / X.std(), rel=0.05)


def test_predictors_that_repeat_each_other_are_refused():
    twice = np.column_stack([ONE_X, X])
    for fit in (
        lambda: fit_logistic(ANSWER, twice, **COIN, names=["one", "x", "x2"]),
        lambda: fit_unbiased(OUTCOME, twice, names=["one", "x", "x2"]),
    ):
        with pytest.raises(TacitError) as refused:
            fit()
        assert refused.value.code == "no-guarantee"


def test_an_unknown_predictor_is_named():
    fit = fit_logistic(ANSWER, ONE_X, **COIN, names=["one", "x"])
    with pytest.raises(TacitError, match="no predictor 'age'"):
        fit["age"]
    assert "95 % interval" in str(fit)
    assert "<table>" in fit._repr_html_()


MINARETS = os.environ.get("TACIT_MINARETS", "")


@pytest.mark.skipif(
    not Path(MINARETS).is_file(), reason="set TACIT_MINARETS to a CSV of RRreg's minarets data"
)
def test_the_published_minarets_case():
    """Heck and Moshagen 2018, JSS 85(2). The data are under the GPL, so they are read and not shipped."""
    rows = np.genfromtxt(MINARETS, delimiter=",", names=True, deletechars="")
    rows = rows[rows["RRdesign"] == 1]
    assert len(rows) == 1256
    yes, q = rows["rrt"], np.where(rows["condition"] == 1, 5 / 6, 1 / 6)
    one, age, left = np.ones(len(rows)), rows["age.c"], rows["leftRight.c"]
    lies = {"p": 0.7, "q": q, "estimate_honesty": True}
    alone = fit_logistic(yes, one[:, None], **lies, names=["one"])
    assert expit(alone["one"]) == pytest.approx(0.870695, abs=1e-6)
    assert alone.honesty[0] == pytest.approx(0.635806, abs=1e-6)
    x = np.column_stack([one, age, left, age * left])
    fit = fit_logistic(yes, x, **lies, names=["one", "age", "left", "both"])
    assert fit.values == pytest.approx((1.89659, 0.01364, 0.62442, -0.02039), abs=3e-4)
    assert fit.errors == pytest.approx((0.3812, 0.0608, 0.1568, 0.0116), abs=3e-4)
    assert fit.log_likelihood == pytest.approx(-821.0840, abs=1e-4)
    x = np.column_stack([one, rows["age"]])
    line = fit_linear(
        rows["leftRight"], yes, x, p=0.635806, q=q, names=["one", "age", "rrt"], independent=True
    )
    assert line.values == pytest.approx((-1.58191, -0.00150, 1.36379), abs=3e-4)
    assert line.sigma == pytest.approx(1.7547, abs=3e-4)
