"""The page "What SQL Tacit reads" lists exactly what the code reads."""

import re
from pathlib import Path

import pytest
from sqlglot import exp

import tacit as tc
from tacit.tables.sql._expressions import _READERS
from tacit.tables.sql._select_list import _NAMED, _PAIRS, _QUANTILES, _SIMPLE

PAGE = (Path(__file__).parents[3] / "docs/reference/sql.md").read_text()

#: Readers that the page shows by a sign, a keyword or another common name.
SHOWN_AS = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.Neg: "-",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "AND", exp.Or: "OR", exp.Not: "NOT", exp.Between: "BETWEEN", exp.In: "IN", exp.Is: "IS NULL",
    exp.Case: "CASE", exp.DPipe: "||", exp.Like: "LIKE", exp.ILike: "ILIKE",
    exp.DayOfWeek: "DAYOFWEEK", exp.TimestampTrunc: "DATE_TRUNC", exp.DateDiff: "DATE_DIFF",
    exp.IntDiv: "//", exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.StrPosition: "STRPOS", exp.DayOfWeekIso: "ISODOW", exp.WeekOfYear: "WEEKOFYEAR",
    exp.DayOfYear: "DAYOFYEAR", exp.TimeToStr: "STRFTIME", exp.VariancePop: "VAR_POP",
    exp.CountIf: "COUNT_IF",
}  # fmt: skip
#: Readers of columns, constants and brackets, which have no name.
NAMELESS = {exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Anonymous}


def listed(heading: str) -> set[str]:
    """Return what a section of the page lists: the code in its list, or in its first paragraph."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0].strip()
    lines = [line for line in section.splitlines() if line.startswith("- ")] or section.split("\n\n")[:1]
    return {name for line in lines for name in re.findall(r"`([^`]+)`", line.partition(" (to ")[0])}


def shown(kind: type[exp.Expr]) -> str:
    return SHOWN_AS[kind] if kind in SHOWN_AS else kind.sql_names()[0]


def test_the_page_lists_every_operator_and_function_and_no_other():
    read = {shown(kind) for kind in _READERS if kind not in {*NAMELESS, exp.StrToTime}}
    by_name = {"INTERVAL", "IS TRUE", "STRPTIME", "TRY_STRPTIME"}
    assert listed("Operators") | listed("Functions") == read | by_name


def test_the_page_lists_every_aggregate_and_no_other():
    assert listed("Aggregates") == {
        *(shown(kind) for kind in (exp.Count, *_SIMPLE, *_PAIRS, *_QUANTILES)),
        *(name.upper() for name in _NAMED),
    }


EXAMPLES = [line.split("| `")[1].rstrip("` |") for line in PAGE.splitlines() if "| `SELECT" in line]


@pytest.mark.parametrize("sql", EXAMPLES)
def test_every_example_of_the_page_is_answered(visits, sql):
    release = visits.sql(sql).plan(epsilon=1).release()
    assert len(release.content) > 0


def test_the_page_has_examples():
    assert len(EXAMPLES) >= 20


@pytest.fixture(scope="module")
def visits():
    return tc.protect(
        tc.tables.example_visits(),
        name="visits",
        unit="patient_id",
        budget=tc.Budget(epsilon=100),
        types={"age": "number", "hospital": "text", "admitted": "date"},
        bounds={"length_of_stay": (0, 30)},
        keys={"hospital": tc.tables.EXAMPLE_HOSPITALS},
    )


def refusal(visits, sql: str) -> tc.TacitError:
    with pytest.raises(tc.TacitError) as refused:
        visits.sql(sql)
    return refused.value


def test_an_unknown_function_is_shown_as_written_and_names_the_page(visits):
    error = refusal(visits, "SELECT FOO(age) FROM visits")
    assert error.what == "'FOO(age)' is not on the list of allowed SQL"
    assert "docs/reference/sql.md" in str(error.fix)


@pytest.mark.parametrize("item", ["FOO(COUNT(*))", "MD5(COUNT(*))", "REGEXP_MATCHES(COUNT(*), '1')"])
def test_a_refusal_over_aggregates_shows_the_text_of_the_author(visits, item):
    what = refusal(visits, f"SELECT {item} FROM visits").what
    assert "COUNT(*)" in what
    assert "x01" not in what


def test_a_refusal_names_the_columns_and_the_table_of_the_author(visits):
    window = refusal(visits, "SELECT SUM(age) OVER (PARTITION BY hospital) FROM visits")
    assert str(window.fix) == "SELECT patient_id, MAX(age) AS age FROM visits GROUP BY patient_id"


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("DELETE FROM visits", "this is not a SELECT"),
        ("", "this is not a SELECT"),
        ("SELECT COUNT(*) FROM visits UNION SELECT 1", "UNION, INTERSECT and EXCEPT are not allowed"),
        ("SELECT COUNT(*) FROM visits; SELECT 1", "this is more than one statement"),
    ],
)
def test_what_is_not_one_select_is_named(visits, sql, what):
    error = refusal(visits, sql)
    assert (error.code, error.what) == ("not-allowed", what)


@pytest.mark.parametrize(
    ("sql", "where"),
    [
        ("SELECT COUNT(*) FROM visits WHERE", "something is missing near 'WHERE' (line 1, column 33)"),
        ("SELECT COUNT(*) FROM", "something is missing near 'FROM' (line 1, column 20)"),
        ("SELECT COUNT(* FROM visits", ") is missing near 'FROM' (line 1, column 19)"),
        ("SELECT COUNT(*) c d FROM visits", "'d' (line 1, column 19) is not expected there"),
        ("SELECT 'abc", "a quotation mark may be missing"),
    ],
)
def test_text_that_is_not_sql_is_refused_at_its_place(visits, sql, where):
    error = refusal(visits, sql)
    assert (error.code, error.what, error.why) == ("bad-sql", f"this SQL cannot be read: {where}", "")


def test_the_place_in_a_condition_is_counted_from_its_start(visits):
    with pytest.raises(tc.TacitError, match=r"near '>' \(line 1, column 5\)"):
        visits.where("age >")
