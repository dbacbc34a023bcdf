"""Functions of released values: the value is SQL's, and the interval holds what its parts may be."""

from __future__ import annotations

import itertools
import math

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from tacit.algebra._expressions import OPERATORS, Call, Column, lit
from tacit.tables.reading._postprocessing import _COMPUTABLE, PostProcessing, evaluate
from tacit.tables.reading._release_functions import OVER, with_totals

A = Column("a")
numbers = st.floats(-50, 50)
intervals = st.tuples(numbers, numbers).map(sorted)
SQL = {
    "floor": "floor(a)", "ceil": "ceil(a)", "trunc": "trunc(a)", "sign": "sign(a)", "exp": "exp(a)",
    "sqrt": "CASE WHEN a >= 0 THEN sqrt(a) END", "ln": "CASE WHEN a > 0 THEN ln(a) END",
    "log2": "CASE WHEN a > 0 THEN log2(a) END", "log10": "CASE WHEN a > 0 THEN log10(a) END",
    "to_whole": "CAST(a AS BIGINT)",
}  # fmt: skip
NODES = {op: Call(op, (A,)) for op in SQL} | {
    f"power {n}": Call("power", (A, lit(n))) for n in (2, 3, 0.5, -1, -2, 0)
} | {
    "round": Call("round", (A, lit(1))), "least": Call("least", (A, lit(3))),
    "greatest": Call("greatest", (A, lit(3))),
    "clip": Call("clip", (A, lit(-2), lit(7))),
    "case": Call("case", (Call("gt", (A, lit(5))), Call("mul", (A, lit(2))), lit(-1))),
    "between": Call("case", (Call("and", (Call("ge", (A, lit(-5))), Call("lt", (A, lit(5))))), A, lit(9))),
    "nullif": Call("case", (Call("eq", (A, lit(0))), lit(None), A)),
    "coalesce": Call("coalesce", (A, lit(0))),
}  # fmt: skip


@given(intervals, st.floats(0, 1), st.floats(0, 1), st.sampled_from(sorted(NODES)))
def test_an_interval_holds_what_its_parts_may_be(ends, shown, true, op):
    low, high = ends
    value, other = (low + share * (high - low) for share in (shown, true))
    _, made_low, made_high = evaluate(NODES[op], {"a": (value, low, high)})
    truth = evaluate(NODES[op], {"a": (other, other, other)})[0]
    if made_low is None or truth is None:
        return
    slack = 1e-9 * max(1.0, abs(made_low), abs(made_high))
    assert made_low - slack <= truth <= made_high + slack


@pytest.mark.parametrize("op", sorted(NODES))
def test_most_functions_keep_an_interval(op):
    _, low, high = evaluate(NODES[op], {"a": (10.0, 9.0, 11.0)})
    assert low is not None
    assert low <= high


@pytest.mark.parametrize("a", [-2.5, -0.4, 0.0, 0.5, 1.5, 2.0, 7.25])
def test_the_value_is_that_of_sql(a):
    con = duckdb.connect()
    for op, sql in SQL.items():
        expected = con.execute(f"SELECT {sql} FROM (SELECT ?::DOUBLE AS a)", [a]).fetchone()[0]
        found = evaluate(NODES[op], {"a": (a, None, None)})[0]
        assert (found is None and expected is None) or math.isclose(found, expected), (op, found, expected)
    assert (
        evaluate(Call("round", (A, lit(0))), {"a": (a, a, a)})[0]
        == con.execute("SELECT round(?::DOUBLE)", [a]).fetchone()[0]
    )


def test_a_choice_has_no_interval_where_a_possible_branch_has_none():
    size = Call("case", (Call("gt", (A, lit(5))), lit("large"), lit("small")))
    assert evaluate(size, {"a": (9.0, 1.0, 12.0)}) == ("large", None, None)
    halved = Call("case", (Call("eq", (A, lit(0))), lit(None), A))
    assert evaluate(halved, {"a": (2.0, -1.0, 5.0)}) == (2.0, None, None)
    assert evaluate(halved, {"a": (2.0, 1.0, 5.0)}) == (2.0, 1.0, 5.0)


def test_a_caption_does_not_deny_the_intervals_beside_it():
    data = tc.protect(
        tc.tables.example_visits(), name="visits", unit="patient_id", budget=tc.Budget(epsilon=99),
        keys={"hospital": tc.tables.EXAMPLE_HOSPITALS},
    )  # fmt: skip
    asked = (
        "SELECT hospital, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY hospital) AS change FROM visits GROUP BY 1"
    )
    release = data.sql(asked).plan(epsilon=1).release()
    assert release["change"].low[0] is None
    assert None not in release["change"].low[1:]
    caption = str(release).partition("└")[2]
    assert "intervals for the noise" in caption
    assert "no interval" not in caption


def test_a_computed_column_without_an_interval_says_why():
    data = tc.protect(
        tc.tables.example_visits(), name="visits", unit="patient_id", bounds={"length_of_stay": (0, 30)},
        keys={"hospital": tc.tables.EXAMPLE_HOSPITALS}, budget=tc.Budget(epsilon=99),
    )  # fmt: skip
    release = data.sql("SELECT COUNT(*) % 7 AS m, COUNT(*) + 1 AS n FROM visits").plan(epsilon=1).release()
    assert "no interval" in release.content.notes["m"]
    assert "n" not in release.content.notes
    assert "how close together" not in str(release)
    share = data.sql("SELECT hospital, COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM visits GROUP BY 1").plan(
        epsilon=1
    )
    assert share.release().content.notes["s"] == "computed from the lines of this answer"


NASTY = [0.0, -1.5, 3.0, 1e308, -1e308, math.inf, -math.inf, math.nan, True, "a", "", "7", None]


@pytest.mark.parametrize("op", sorted(op for op in OPERATORS if op in _COMPUTABLE))
def test_no_value_makes_a_function_fail_after_the_charge(op):
    rule = OPERATORS[op]
    size = 3 if op == "case" else len(rule.takes)
    for values in itertools.product(NASTY, repeat=size):
        line = {str(i): (v, None, None) for i, v in enumerate(values)}
        evaluate(Call(op, tuple(Column(str(i)) for i in range(size))), line)
        line = {
            str(i): (v, *((v, v) if isinstance(v, float) else (None, None))) for i, v in enumerate(values)
        }
        evaluate(Call(op, tuple(Column(str(i)) for i in range(size))), line)


@pytest.mark.parametrize("op", sorted(OVER))
def test_no_line_makes_a_total_fail_after_the_charge(op):
    node = Call("div", (A, Call(op, (A, Column("b")))))
    given = [{"a": (a, None, None), "b": (b, None, None)} for a in NASTY for b in NASTY]
    given += [{"a": (a, a, a), "b": (1.0, None, None)} for a in NASTY if isinstance(a, float)]
    for line in with_totals(given, [node], 0.95, evaluate):
        evaluate(node, line)


def test_totals_of_totals_and_conditions_on_totals_are_refused_before_the_charge():
    total = Call("over_sum", (A,))
    for post in ([("x", Call("over_sum", (total,)))], None), ([("x", A)], Call("gt", (total, lit(1)))):
        with pytest.raises(tc.TacitError) as refused:
            PostProcessing(tuple(post[0]), post[1], (), None)
        assert refused.value.code == "not-allowed"
