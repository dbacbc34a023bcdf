"""Numbers within a unit: exact functions of its own rows; what would need noise there is refused."""

from __future__ import annotations

import pandas as pd
import pytest

import tacit as tc
from asking import HUGE
from tacit import TacitError

STAYS = pd.DataFrame(
    {
        "pid": [1] * 4 + [2] * 3 + [3],
        "stay": [2.0, 3.0, 5.0, 29.0, 7.0, 11.0, 13.0, 17.0],
    }
)
EXACT = {"least": 2 + 7 + 17, "most": 29 + 13 + 17, "total": 39 + 31 + 17, "rows": 4 + 3 + 1}


@pytest.fixture(scope="module")
def data():
    return tc.protect(STAYS, unit="pid", bounds={"stay": (0, 30)}, budget=HUGE, name="visits")


def total_of(data, **measure):
    [name] = measure
    asked = data.per_unit(**measure).agg(s=tc.sum(name, bounds=(0, 300)))
    return asked.plan(epsilon=10**7).release().value


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        (tc.min("stay"), EXACT["least"]),
        (tc.max("stay"), EXACT["most"]),
        (tc.sum("stay"), EXACT["total"]),
        (tc.count("stay"), EXACT["rows"]),
        (tc.count_distinct("stay"), EXACT["rows"]),
    ],
    ids=lambda given: getattr(given, "word", None),
)
def test_numbers_within_a_unit_are_exact(data, measure, value):
    assert total_of(data, q=measure) == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize(
    "measure",
    [
        tc.quantile("stay", 0.01),
        tc.quantile("stay", 0.99),
        tc.quantile("stay", 0.5),
        tc.quantiles("stay", [0.01, 0.99]),
        tc.median("stay"),
        tc.variance("stay"),
        tc.std("stay"),
        tc.histogram("stay", [0, 15, 30]),
        tc.most_common("stay", 1, [2, 7]),
    ],
    ids=lambda given: f"{given.word}-{'-'.join(str(float(q)) for q in getattr(given, 'levels', ()))}",
)
def test_a_quantile_never_passes_for_the_minimum_or_the_maximum(data, measure):
    with pytest.raises(TacitError, match="not available within a unit") as refused:
        data.per_unit(q=measure)
    assert refused.value.code == "not-allowed"
    assert measure.word in refused.value.what
    assert {"min", "max"} <= set(refused.value.fix.names)


@pytest.mark.parametrize("lowest", [0.01, 0.02, 0.98, 0.99])
def test_sql_refuses_a_quantile_within_a_unit_too(data, lowest):
    inner = f"SELECT pid, QUANTILE_CONT(stay, {lowest}) AS q FROM visits GROUP BY pid"
    with pytest.raises(TacitError, match="not available within a unit"):
        data.sql(f"SELECT AVG(q) FROM ({inner})")


@pytest.mark.parametrize(("function", "value"), [("MIN", EXACT["least"]), ("MAX", EXACT["most"])])
def test_sql_takes_the_true_extremes_within_a_unit(data, function, value):
    inner = f"SELECT pid, {function}(stay) AS q FROM visits GROUP BY pid"
    release = data.sql(f"SELECT SUM(q) AS s FROM ({inner})").plan(epsilon=10**7).release()
    assert release.value == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize(("extreme", "level"), [(tc.min, 0.01), (tc.max, 0.99)])
def test_an_extreme_of_all_rows_is_a_quantile_and_its_note_says_so(data, extreme, level):
    """Released, an extreme is the quantile of the same level; the note is what tells them apart."""
    one = data.agg(q=extreme("stay")).plan(epsilon=1)
    two = data.agg(q=tc.quantile("stay", level)).plan(epsilon=1)
    assert one.cost == two.cost
    assert "would reveal one person" in one.forecast[0].caution
    assert two.forecast[0].caution == ""
