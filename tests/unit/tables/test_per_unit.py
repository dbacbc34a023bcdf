"""Numbers within a unit: exact functions of its own rows; what would need noise there is refused."""

from __future__ import annotations

import pandas as pd
import pytest

import tacit as tc
from support.asking import HUGE
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


BUSY = pd.DataFrame(
    {
        "pid": [1] * 40 + [2] * 12 + [3],
        "x": [*range(40), *range(12), 7],
        "h": ["A"] * 30 + ["B"] * 10 + ["A"] * 12 + ["B"],
    }
)


@pytest.mark.parametrize(
    ("sql", "exact"),
    [
        ("SELECT SUM(LEAST(n, 100)) AS v FROM (SELECT pid, COUNT(*) AS n FROM t GROUP BY pid)", 53),
        (
            "SELECT SUM(LEAST(n, 99)) AS v FROM (SELECT pid, COUNT(*) AS n FROM t WHERE x > 28 GROUP BY pid)",
            11,
        ),
        (
            "SELECT SUM(LEAST(GREATEST(n, 0), 99)) AS v FROM (SELECT pid, COUNT(*) AS n FROM t GROUP BY pid)",
            53,
        ),
        (
            "SELECT SUM(n) AS v FROM (SELECT pid, LEAST(COUNT(*), 99) AS n FROM t GROUP BY pid)",
            53,
        ),
        ("SELECT SUM(m) AS v FROM (SELECT pid, MAX(x) AS m FROM t GROUP BY pid)", 39 + 11 + 7),
        ("SELECT SUM(n) AS v FROM (SELECT pid, COUNT(*) AS n FROM t GROUP BY pid)", 2 + 2 + 1),
        ("SELECT COUNT(*) AS v FROM (SELECT pid, COUNT(*) AS n FROM t GROUP BY pid) WHERE n > 20", 1),
        (
            """SELECT COUNT(*) AS v FROM (SELECT pid, COUNT(*) AS k FROM
            (SELECT pid, h FROM t GROUP BY pid, h) GROUP BY pid) WHERE k = 2""",
            1,
        ),
    ],
)
def test_one_row_of_each_unit_is_made_from_all_its_rows(sql, exact):
    data = tc.protect(
        BUSY,
        name="t",
        unit="pid",
        bounds={"x": (0, 50)},
        limits={"rows": 2},
        budget=HUGE,
        types={"x": "number"},
    )
    plan = data.sql(sql).plan(epsilon=10**7)
    assert plan.release().value == pytest.approx(exact, abs=1e-3)
    assert data.plan_from(plan.to_json()) == plan
    assert "rows beyond" not in " ".join(plan.release().left_out)


def test_several_rows_of_a_unit_stay_limited():
    data = tc.protect(BUSY, name="t", unit="pid", limits={"rows": 2}, budget=HUGE)
    rows = data.per_unit(["x"], n=tc.count()).agg(v=tc.count())
    assert rows.plan(epsilon=10**7).release().value == 5
    both = tc.protect({"t": BUSY, "u": BUSY[["pid"]]}, unit="pid", limits={"rows": 2}, budget=HUGE)
    joined = both["t"].join(both["u"]).per_unit(n=tc.count()).agg(v=tc.sum("n", bounds=(0, 1000)))
    release = joined.plan(epsilon=10**7).release()
    assert release.value == pytest.approx(4 + 4 + 1, abs=1e-2)
    assert "Tacit reads at most 2 of a pid's rows in each table" in " ".join(release.left_out)


def test_no_document_can_read_all_rows_where_several_are_left(data):
    plan = data.per_unit(["stay"], n=tc.count()).agg(v=tc.count()).plan(epsilon=1)
    document = plan.to_json()
    document["request"]["question"]["input"]["input"]["rows"] = None
    with pytest.raises(TacitError):
        data.plan_from(document)
    flat = data.agg(v=tc.count()).plan(epsilon=1).to_json()
    flat["request"]["question"]["input"]["rows"] = None
    with pytest.raises(TacitError):
        data.plan_from(flat)


def test_a_count_without_a_bound_says_where_it_is_clipped():
    data = tc.protect(BUSY, name="t", unit="pid", budget=HUGE)
    asked = "SELECT SUM({}) AS v FROM (SELECT pid, COUNT(*) AS n FROM t GROUP BY pid)"
    clipped = data.sql(asked.format("n")).plan(epsilon=1).release()
    assert "n above 10 (default), the limit on rows, counts as 10" in clipped.left_out
    bounded = data.sql(asked.format("LEAST(n, 99)")).plan(epsilon=1).release()
    assert "above" not in " ".join(bounded.left_out)
