"""What analysts ask of real tables: small habits of SQL are read, and refusals name what works."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tacit as tc
from tacit import TacitError
from tacit.algebra._expressions import Call, Column, Literal
from tacit.algebra._kinds import Scope
from tacit.algebra._questions import whole_numbers
from tacit.core import Fact
from tacit.fixes import Declare, Either, Set

FLIGHTS = pa.table(
    {
        "plane": ["a", "a", "b", "c", "c", "d"],
        "carrier": ["X", "X", "Y", "X", "X", "Z"],
        "delay": [1.0, 12.0, 25.0, 3.0, None, 38.0],
    }
)
AIRLINES = pa.table({"carrier": ["X", "Y", "Z"], "name": ["Ex", "Why", "Zed"], "fleet": [9, 10, 100]})


@pytest.fixture
def flights():
    return tc.protect(
        {"flights": FLIGHTS},
        name="air",
        unit="plane",
        limits={"rows": 2},
        bounds={"delay": (0, 39)},
        public={"airlines": (AIRLINES, "carrier")},
        budget=tc.Budget(epsilon=10**8, delta=0.1),
    )


def exact(data, sql: str, **keys):
    return data.sql(sql, **keys).plan(epsilon=10**6).release()


def refusal(data, sql: str, **goal: float) -> TacitError:
    with pytest.raises(TacitError) as refused:
        data.sql(sql).plan(**({"epsilon": 10**6} | goal))
    return refused.value


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("SUM(1)", 6),
        ("SUM(CASE WHEN delay > 10 THEN 1 ELSE 0 END)", 3),
        ("SUM(CASE WHEN delay > 10 THEN 1 END)", 3),
        ("SUM(1) FILTER (WHERE carrier = 'X')", 4),
    ],
)
def test_a_sum_of_ones_is_a_whole_number(flights, item, value):
    release = exact(flights, f"SELECT {item} FROM flights")
    assert release.value == value
    assert isinstance(release.value, int)
    assert list(release.columns) == ["sum"]


def test_a_constant_that_is_not_one_can_be_added_up(flights):
    assert exact(flights, "SELECT SUM(2) AS x FROM flights").value == pytest.approx(12, abs=0.01)


@pytest.mark.parametrize(
    ("subquery", "count"),
    [("SELECT AVG(fleet) FROM airlines", 5), ("SELECT MAX(fleet) FROM airlines", 5),
     ("SELECT MIN(fleet) FROM airlines", 0), ("SELECT SUM(fleet) FROM airlines", 6)],
)  # fmt: skip
def test_a_public_subquery_reads_numbers_as_numbers(flights, subquery, count):
    # as text, the largest of 9, 10 and 100 would be 9
    sql = f"SELECT COUNT(*) FROM flights JOIN airlines USING (carrier) WHERE fleet < ({subquery})"
    assert exact(flights, sql).value == count


def test_the_largest_public_text_is_a_text(flights):
    last = "(SELECT MAX(name) FROM airlines)"
    sql = f"SELECT COUNT(*) FROM flights JOIN airlines USING (carrier) WHERE name = {last}"
    assert exact(flights, sql).value == 1


@pytest.mark.parametrize(
    ("written", "meant"),
    [("AVERAGE(delay)", "AVG(delay)"), ("VARP(delay)", "VAR_POP(delay)"), ("MEDIAAN(delay)", "MEDIAN(delay)"),
     ("QUANTIL(delay, 0.9)", "QUANTILE(delay, 0.9)"), ("COUNTD(carrier)", "COUNT(DISTINCT carrier)")],
)  # fmt: skip
def test_a_misspelt_function_names_the_one_that_is_meant(flights, written, meant):
    assert str(refusal(flights, f"SELECT {written} FROM flights").fix) == meant
    assert len(exact(flights, f"SELECT {meant} FROM flights")) == 1


def test_several_levels_of_a_quantile_become_columns(flights):
    fix = str(refusal(flights, "SELECT QUANTILE_CONT(delay, [0.25, 0.5]) FROM flights").fix)
    assert fix == "QUANTILE(delay, 0.25), QUANTILE(delay, 0.5)"
    assert len(exact(flights, f"SELECT {fix} FROM flights").columns) == 2


def test_a_misspelt_table_names_the_one_that_is_meant(flights):
    fix = refusal(flights, "SELECT COUNT(*) FROM flight").fix
    assert str(fix) == "FROM flights"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT plane, COUNT(*) AS n FROM flights GROUP BY plane",
        "SELECT plane, ROW_NUMBER() OVER (PARTITION BY plane ORDER BY delay) AS nth FROM flights",
    ],
)
def test_one_line_for_each_unit_becomes_a_mean_over_units(flights, sql):
    fix = str(refusal(flights, sql).fix)
    assert fix == "SELECT AVG(n) AS n FROM (SELECT plane, COUNT(*) AS n FROM flights GROUP BY plane)"
    assert exact(flights, fix).value == pytest.approx(1.5, abs=0.01)


def test_units_as_groups_are_answered_with_a_delta(flights):
    assert (
        len(
            flights.sql("SELECT plane, COUNT(*) AS n FROM flights GROUP BY plane")
            .plan(epsilon=1, delta=1e-6)
            .release()
        )
        == 0
    )


def test_missing_keys_of_a_public_column_name_its_table(flights):
    sql = "SELECT name, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY name"
    fix = refusal(flights, sql).fix
    assert isinstance(fix, Either)
    assert fix.fixes == (Declare("keys", "airlines.name", column="name", example=False), Set(delta=1e-7))
    assert exact(flights, sql, keys={"name": "airlines.name"})["n"].value == (4, 1, 1)


def test_missing_keys_of_an_expression_are_given_with_the_question(flights):
    sql = "SELECT FLOOR(delay / 10) AS tens, COUNT(*) AS n FROM flights GROUP BY tens"
    fix = refusal(flights, sql).fix
    assert isinstance(fix, Either)
    assert fix.fixes[0] == Set(keys={"tens": range(4)})
    assert str(fix.fixes[0]) == 'keys={"tens": range(0, 4)}'
    assert exact(flights, sql, keys={"tens": range(4)})["n"].value == (2, 1, 1, 1)


def test_a_total_is_called_a_total(flights):
    sql = "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY ROLLUP (carrier)"
    release = exact(flights, sql, keys={"carrier": ["X", "Y", "Z"]})
    assert "(all)" in str(release)
    assert "(missing)" not in str(release)
    again = tc.Release.from_json(release.to_json())
    assert str(again) == str(release)
    assert release.to_dict()["carrier"] == ["X", "Y", "Z", None]


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("CASE WHEN delay > 10 THEN 'late' ELSE 'fine' END", ""),
        ("delay > 10", "and rows whose g is missing, if"),
        ("COALESCE(carrier, 'none')", "not among the keys"),
    ],
)
def test_the_caption_names_only_rows_that_can_be_dropped(flights, group, said):
    keys = {"g": ["X", "none"]} if "COALESCE" in group else None
    caption = " ".join(
        exact(flights, f"SELECT {group} AS g, COUNT(*) AS n FROM flights GROUP BY g", keys=keys).left_out
    )
    assert said in caption
    assert ("not among the keys" in caption) == (said == "not among the keys")


def test_a_missing_group_is_called_missing(flights):
    release = exact(
        flights, "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY 1", keys={"carrier": ["X", None]}
    )
    assert "(missing)" in str(release)


def number(value: float) -> Literal:
    return Literal(value, "number")


def test_whole_numbers_follow_from_bounds():
    facts = Scope({"x": Fact(bounds=(-5, 25)), "y": Fact()})
    x, y = Column("x", "number"), Column("y", "number")
    tens = Call("floor", (Call("div", (x, number(10.0))),))
    assert whole_numbers(tens, facts) == range(-1, 3)
    assert whole_numbers(Call("mul", (tens, number(10.0))), facts) == range(-10, 21, 10)
    assert whole_numbers(Call("to_whole", (tens,)), facts) == range(-1, 3)
    assert whole_numbers(Call("mul", (tens, number(0.5))), facts) is None
    assert whole_numbers(Call("floor", (y,)), facts) is None
    assert whole_numbers(x, facts) is None
