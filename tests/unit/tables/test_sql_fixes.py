"""A refused query comes with a fix in the words of SQL, made from data, not from the text of a message."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tacit as tc
from tacit import TacitError
from tacit.fixes import FROM_PUBLIC_KNOWLEDGE, Choose, Declare, Do, Either, Say, Set
from tacit.tables.sql._select import SqlAdvice

COLUMNS = ("Patient ID", "Ward", "LOS", "Cost (EUR)", "pid")


@pytest.fixture(scope="module")
def data():
    table = pa.table(
        {"Patient ID": [1], "Ward": ["A"], "LOS": [1.0], "Cost (EUR)": [2.0], "pid": [1], "größe": [3]}
    )
    types = {"Ward": "text", "LOS": "number", "Cost (EUR)": "number", "größe": "number"}
    return tc.protect(
        {"my visits": table}, unit="pid", types=types, name="h", budget=tc.Budget(epsilon=9, delta=0.1)
    )


def refusal(data, sql: str) -> TacitError:
    with pytest.raises(TacitError) as refused:
        data.sql(sql.replace("FROM t", 'FROM "my visits"')).plan(epsilon=1, delta=1e-6)
    return refused.value


def test_a_name_that_is_a_word_of_sql_needs_double_quotes():
    columns = ("id", "group", "select", "from")
    data = tc.protect(
        {"t": pa.table({name: ["1"] for name in columns})}, name="t", unit="id", limits={"rows": 1},
        keys={"group": ["1"]}, bounds={"select": (0, 1), "from": (0, 1)}, budget=tc.Budget(epsilon=9),
    )  # fmt: skip
    for question, names in (
        ("SELECT group, AVG(select) FROM t GROUP BY group", '"select"'),
        ("SELECT COUNT(*) FROM t WHERE from > 0", '"from"'),
    ):
        with pytest.raises(TacitError, match="in double quotes: " + names):
            data.sql(question)
    with pytest.raises(TacitError) as refused:
        data.sql("SELECT id FROM t")
    assert "double quotes" not in str(refused.value)
    data.sql('SELECT "group", AVG("select") FROM t GROUP BY "group"').plan(epsilon=1)


def test_an_unknown_column_offers_names_as_sql_writes_them(data):
    fix = refusal(data, "SELECT AVG(LOSS) FROM t").fix
    assert fix == Choose(
        ('"Cost (EUR)"', "LOS", '"Patient ID"', "Ward", '"größe"', "pid"), given="LOSS", close="LOS"
    )
    fix = refusal(data, 'SELECT AVG("patient i") FROM t').fix
    assert isinstance(fix, Choose)
    assert fix.close == '"Patient ID"'


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Wardd, COUNT(*) FROM t GROUP BY Ward",
        "SELECT Ward, COUNT(*) FROM t GROUP BY Ward ORDER BY Wardd",
        "SELECT Ward, COUNT(*) FROM t GROUP BY Ward HAVING Wardd = 'A'",
    ],
)
def test_a_mistyped_group_is_an_unknown_column_and_not_one_to_group_by(data, sql):
    refused = refusal(data, sql)
    assert refused.code == "unknown-column"
    assert refused.fix.close == "Ward"
    assert refusal(data, sql.replace("Wardd", "LOS")).code == "not-allowed"  # it exists, and is not grouped


@pytest.mark.parametrize("text", ["los", "Cost (EUR)", "LOS"])
def test_a_column_in_single_quotes_is_named_without_them(data, text):
    written = '"Cost (EUR)"' if "Cost" in text else "LOS"
    meant = Say(f"write a column name without single quotes: {written}")
    assert refusal(data, f"SELECT AVG('{text}') FROM t").fix == meant
    assert refusal(data, f"SELECT COUNT(*) FROM t WHERE '{text}' > 3").fix == meant


def test_text_that_is_not_a_column_is_converted(data):
    cast = Do("convert-in-question", expression="'7'", type="DOUBLE", text="7")
    assert refusal(data, "SELECT AVG('7') FROM t").fix == cast
    assert str(cast) == "CAST('7' AS DOUBLE)"


def test_a_column_to_convert_is_quoted_where_it_needs_to_be(data):
    assert (
        str(refusal(data, 'SELECT COUNT(*) FROM t WHERE "Cost (EUR)"').fix) == 'CAST("Cost (EUR)" AS BOOLEAN)'
    )
    nested = refusal(data, 'SELECT COUNT(*) FROM t WHERE "Cost (EUR)" + 1')
    assert str(nested.fix) == 'CAST("Cost (EUR)" + 1 AS BOOLEAN)'


def test_text_in_double_quotes_is_shown_in_single_ones(data):
    fix = refusal(data, 'SELECT COUNT(*) FROM t WHERE Ward = "ICU"').fix
    assert fix == Say("write text in single quotes: 'ICU'")
    assert isinstance(refusal(data, "SELECT COUNT(*) FROM t WHERE Ward = ICU").fix, Choose)
    close = refusal(data, 'SELECT AVG("LOSS") FROM t').fix
    assert isinstance(close, Choose), "a close name is more likely than text"


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("SELECT COUNT(*) FROM t WHERE Patient ID = 3", '"Patient ID"'),
        ("SELECT COUNT(*) FROM t WHERE patient   id = 3", '"Patient ID"'),
        ("SELECT AVG(cost (eur)) FROM t", '"Cost (EUR)"'),
    ],
)
def test_a_name_with_spaces_or_signs_needs_double_quotes(data, sql, column):
    assert refusal(data, sql).fix == Say(
        f"write a name with spaces or special characters in double quotes: {column}"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(* FROM t WHERE 'Patient ID' = 3",
        'SELECT COUNT(* FROM t WHERE "Patient ID" = 3',
        "SELECT COUNT(* FROM t WHERE Patient = ID",
        "SELECT COUNT(* FROM t WHERE größe = 3",
        "SELECT COUNT('Patient ID FROM t",
        "SELEC",
    ],
)
def test_without_a_likely_slip_the_table_is_named(data, sql):
    assert refusal(data, sql).fix == Do("ask-a-count", table='"my visits"')


def test_a_star_is_answered_with_the_count_of_the_table(data):
    error = refusal(data, "SELECT * FROM t")
    assert str(error.fix) == 'SELECT COUNT(*) FROM "my visits"'
    assert error.why == "Tacit never shows rows, only noisy aggregates"


def test_an_unknown_table_names_the_one_there_is(data):
    assert refusal(data, "SELECT COUNT(*) FROM nowhere").fix == Say('FROM "my visits"')
    assert refusal(data, "SELECT AVG(v.LOS) FROM t AS w").fix == Choose(("w",), given="v")


def reworded(code, fix, **expressions):
    return SqlAdvice("SELECT 1", COLUMNS, expressions).reworded(TacitError(code, "no", fix=fix)).fix


def test_missing_bounds_of_an_expression_are_a_clip_in_the_question():
    clip = Do("bound-aggregate", expression="LOS / 2", low=0, high=30)
    wanted = Do("clip-in-question", expression="LOS/2", low="LOW", high="HIGH")
    assert reworded("missing-bounds", clip, **{"LOS / 2": "LOS/2"}) == wanted
    assert reworded("missing-bounds", Either(Set(bounds=(0, 30)), clip), **{"LOS / 2": "LOS/2"}) == wanted
    assert str(wanted) == f"LEAST(GREATEST(LOS/2, LOW), HIGH){FROM_PUBLIC_KNOWLEDGE}"


def test_bounds_of_a_declared_column_are_declared():
    declare = Declare("bounds", (0, 30), column="LOS")
    assert reworded("missing-bounds", declare) == declare


def test_bounds_of_a_column_that_a_subquery_made_are_a_clip():
    inside = Declare("bounds", (0, 30), column="how many")
    wanted = Do("clip-in-question", expression='"how many"', low="LOW", high="HIGH")
    assert reworded("missing-bounds", inside) == wanted


def test_aggregates_have_their_sql_names():
    known = Choose(("count", "sum", "mean", "count_distinct"), given="std")
    assert reworded("not-allowed", known) == Choose(
        ("COUNT", "SUM", "AVG", "COUNT(DISTINCT ...)"), given="std"
    )
    parts = Choose(("year", "month"), given="century")
    assert reworded("bad-expression", parts) == parts


def test_what_needs_no_other_words_is_the_same_error():
    error = TacitError("not-allowed", "no", fix=Either(Set(epsilon=1), Say("wait")))
    assert SqlAdvice("SELECT 1", COLUMNS).reworded(error) is error


@pytest.mark.parametrize("thing", [None, 5, b"SELECT", ["SELECT"]])
def test_what_is_not_text_is_refused_with_a_query(data, thing):
    with pytest.raises(TacitError) as refused:
        data.sql(thing)
    assert refused.value.code == "bad-sql"
    assert refused.value.fix == Do("ask-a-count", table='"my visits"')


def test_a_condition_that_cannot_be_read_is_answered_with_one(data):
    with pytest.raises(TacitError) as refused:
        data.where("LOS >")
    assert refused.value.fix == Say("a condition such as age >= 65")


def test_a_refused_plan_keeps_its_signature(data):
    answer = data.sql('SELECT COUNT(*) FROM "my visits"')
    assert "epsilon" in type(answer).plan.__doc__
    with pytest.raises(TacitError, match="plan has no argument 'nothing'"):
        answer.plan(nothing=1)


def test_a_histogram_without_edges_is_shown_with_the_own_column(data):
    assert str(refusal(data, "SELECT HISTOGRAM(LOS, 10) FROM t").fix) == "HISTOGRAM(LOS, 0, 10, 20, 30)"
