"""Regressions as people read them: agreement with exact fits, sentences, refusals, correlation, sets."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from tacit.inference._linear_regression import LinearFit, MeasuredColumn, coefficient_sets, part_moments
from tacit.inference._logistic_regression import LogisticColumn, LogisticFit
from tacit.mechanisms import LinearNoise

N = 3000


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(5)
    age = rng.integers(18, 81, N).astype(float)
    bmi = np.clip(rng.normal(27, 5, N), 15, 60)
    sex = rng.choice(["F", "M"], N)
    sbp = np.clip(80 + 0.5 * age + 0.3 * bmi + 3 * (sex == "M") + rng.normal(0, 15, N), 80, 220)
    ill = rng.random(N) < 1 / (1 + np.exp(4 - 0.05 * age - 0.5 * (sex == "M")))
    return {"id": np.arange(N), "age": age, "bmi": bmi, "sex": sex, "sbp": sbp, "ill": ill}


@pytest.fixture
def people(columns):
    return tc.protect(
        pa.table(columns), name="d", unit="id", limits={"rows": 1}, types={"ill": "boolean"},
        keys={"sex": ["F", "M"]},
        bounds={"age": (18, 80), "bmi": (15, 60), "sbp": (80, 220)},
        budget=tc.Budget(epsilon=10**9, delta=0.5),
        ledger=tc.Ledger.memory(),
    )  # fmt: skip


def test_without_noise_the_coefficients_are_those_of_least_squares(people, columns):
    release = people.regress("sbp", on=["age", "bmi", "sex"]).plan(epsilon=10**7).release()
    x = np.column_stack([np.ones(N), columns["age"], columns["bmi"], columns["sex"] == "M"])
    b, rest, *_ = np.linalg.lstsq(x, columns["sbp"], rcond=None)
    s2 = float(rest[0]) / (N - 4)
    errors = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * s2)
    found = [release.intercept, release["age"], release["bmi"], release["sex M"]]
    for one, exact, error in zip(found, b, errors, strict=True):
        assert one.value == pytest.approx(exact, abs=0.1 * error)  # values are rounded to a grid
        assert (one.high - one.low) / 2 == pytest.approx(1.9608 * error, rel=0.01)
        assert one.covers == "noise and sampling"
    assert release.residual_spread.value == pytest.approx(math.sqrt(s2), rel=0.01)
    assert release.r_squared.value == pytest.approx(1 - rest[0] / np.var(columns["sbp"]) / N, abs=0.01)
    at = release.predict(age=50, bmi=27, sex="M")
    assert at.value == pytest.approx(b @ [1, 50, 27, 1], abs=0.1)
    assert tc.inference.correlation(release, "age", "sbp").value == pytest.approx(
        np.corrcoef(columns["age"], columns["sbp"])[0, 1], abs=0.005
    )


def test_a_clinician_reads_a_sentence(people):
    release = people.regress("sbp", on=["age", "sex"]).plan(epsilon=100).release()
    said = release["age"].sentence
    assert said.startswith("sbp was 0.")
    assert "higher for each unit of age, with sex held equal (95 % confidence interval" in said
    assert said.endswith("for privacy noise and chance in who was included).")
    assert "for M than for F" in release["sex M"].sentence
    assert "Linear regression of sbp" in repr(release)


def test_what_the_noise_hides_is_said_with_what_would_do(people):
    release = people.regress("sbp", on=["age", "bmi"]).plan(epsilon=0.0005).release()
    one = release["age"]
    assert (one.value, one.low, one.high, one.p_value) == (None, None, None, None)
    assert "The noise hides" in one.sentence
    assert "times the epsilon" in one.sentence
    assert "hidden by the noise" in repr(release)
    assert release.plot() is not None
    assert release.predict(age=50, bmi=20).value is None
    assert tc.inference.correlation(release, "age", "sbp").value is None


def test_logistic_regression_without_noise_solves_the_score_equations(people, columns):
    plan = people.regress("ill", on=["age", "sex"], kind="logistic", bins={"age": 6}).plan(epsilon=10**6)
    release = plan.release()
    cuts = np.linspace(18, 80, 7)
    middle = (cuts[:-1] + cuts[1:]) / 2
    age = middle[np.clip(np.searchsorted(cuts, columns["age"], side="right") - 1, 0, 5)]
    x = np.column_stack([np.ones(N), age, columns["sex"] == "M"]).astype(float)
    b = np.array([release.intercept.value, release["age"].value, release["sex M"].value])
    p = 1 / (1 + np.exp(-x @ b))
    assert np.abs(x.T @ (columns["ill"] - p)) == pytest.approx(0, abs=1e-3)
    errors = np.sqrt(np.diag(np.linalg.inv(x.T @ (x * (p * (1 - p))[:, None]))))
    assert (release["age"].high - release["age"].low) / 2 == pytest.approx(1.96 * errors[1], rel=1e-3)
    assert release.odds_ratios["age"].value == pytest.approx(math.exp(b[1]))
    assert "times as high where sex is M as where it is F" in release["sex M"].sentence


def test_a_logistic_regression_that_the_noise_hides_says_what_would_do(people):
    asked = people.regress("ill", on=["age", "sex"], kind="logistic", bins={"age": 6})
    release = asked.plan(epsilon=0.001).release()
    assert release["age"].value is None
    assert "times the epsilon, would give an answer" in release["age"].sentence


def test_a_released_correlation_gets_its_sampling_error(people, columns):
    release = people.agg(r=tc.correlation("age", "sbp"), n=tc.count()).plan(epsilon=10).release()
    found = tc.inference.correlation(release, "r", "n")
    (line,) = release.content
    assert found.low < line["r"] < found.high
    z = 1.96 / math.sqrt(N - 3)
    exact = math.atanh(np.corrcoef(columns["age"], columns["sbp"])[0, 1])
    assert math.atanh(found.high) - math.atanh(found.low) > 2 * z
    assert math.tanh(exact - 5 * z) < found.value < math.tanh(exact + 5 * z)
    with pytest.raises(tc.TacitError, match="a column must be"):
        tc.inference.correlation(release, "rr", "n")


def test_a_set_holds_exactly_the_slopes_that_are_not_rejected():
    """The interval and the p-value are one test: at an end, T is its half-width from zero."""
    cells = np.array([[30.0, 20, 5, 18, 60, 22, 4, 25, 40]])
    noise = LinearNoise((1.0,))
    found = coefficient_sets(part_moments((3, 3)), cells, noise, 1, 0.05)
    for end in (found.low[0], found.high[0]):
        m = part_moments((3, 3))
        shift = np.eye(3)
        shift[2, 1] = -end  # y less the end times x: then the slope 0 is just not rejected
        moved = np.einsum("ab,bck,dc->adk", shift, m, shift)
        p = coefficient_sets(moved, cells, noise, 1, 0.05).p_value[0]
        assert p == pytest.approx(0.05, abs=0.004)


def test_stored_documents_are_checked():
    fit = LinearFit(
        (MeasuredColumn("x", 0, 1), MeasuredColumn("y", 0, 1)),
        (3, 3),
        16,
        (1,) * 9,
        LinearNoise((1.0,)),
        0.95,
    )
    assert LinearFit.from_json(fit.to_json()).to_json() == fit.to_json()
    with pytest.raises(ValueError, match="not a regression"):
        LinearFit.from_json({**fit.to_json(), "integers": ["1"]})
    table = LogisticFit(
        "y", (LogisticColumn("x", ("x",), ((0.0,), (1.0,)), ("",)),), (9, 4, 3, 8), LinearNoise((1.0,)), 0.9
    )
    with pytest.raises(ValueError, match="not a regression"):
        LogisticFit.from_json({**table.to_json(), "integers": [1]})


def test_the_table_of_a_linear_regression_names_the_assumption_of_equal_errors(people):
    linear = people.regress("sbp", on=["age"]).plan(epsilon=100).release()
    assert "assume that the outcome varies equally around the fit everywhere" in " ".join(str(linear).split())
    assert "varies equally" in linear.content.html()
    assert "errors of equal variance" in linear["age"].method
    logistic = people.regress("ill", on=["sex"], kind="logistic").plan(epsilon=100).release()
    assert "varies equally" not in str(logistic)


@pytest.mark.parametrize(
    ("values", "fix"),
    [
        ([False, True], {"ins": [False, True]}),
        ([0, 1], {"ins": [0, 1]}),
        (["no", "yes"], {"ins": ["no", "yes"]}),
    ],
)
def test_an_outcome_without_public_values_is_refused_with_a_fix_that_works(columns, values, fix):
    table = columns | {"ins": np.array(values, dtype=object)[columns["ill"].astype(int)].tolist()}
    people = tc.protect(pa.table(table), unit="id", limits={"rows": 1}, budget=tc.Budget(epsilon=10))
    with pytest.raises(tc.TacitError, match="the two values of the outcome ins are not public") as refused:
        people.regress("ins", on=["sex"], kind="logistic", keys={"sex": ["F", "M"]})
    assert json.dumps(fix).replace("false", "False").replace("true", "True") in str(refused.value)
    question = people.regress("ins", on=["sex"], kind="logistic", keys={"sex": ["F", "M"], **fix})
    assert "ins" in str(question.plan(epsilon=1).release())


def test_an_outcome_that_does_not_exist_is_refused(people):
    with pytest.raises(tc.TacitError, match="no column 'nothing'"):
        people.regress("nothing", on=["sex"], kind="logistic")
