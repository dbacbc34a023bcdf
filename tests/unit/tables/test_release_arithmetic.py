"""Arithmetic on released values: its intervals hold where the intervals it is made of hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import TacitError
from tacit.algebra._expressions import OPERATORS, Call, Column, lit
from tacit.core import swamped
from tacit.fixes import Do
from tacit.tables.reading._postprocessing import check_computable, evaluate

A, B = Column("a"), Column("b")
numbers = st.floats(-1e6, 1e6)
intervals = st.tuples(numbers, numbers).map(sorted)
inside = st.floats(0, 1)


@given(
    intervals, intervals, inside, inside, st.sampled_from(["add", "sub", "mul", "div", "neg", "abs", "round"])
)
def test_an_interval_holds_what_its_parts_may_be(a, b, s, t, op):
    x, y = (low + share * (high - low) for (low, high), share in ((a, s), (b, t)))
    args = (A,) if op in {"neg", "abs"} else (A, lit(1)) if op == "round" else (A, B)
    line = {"a": (x, *a), "b": (y, *b)}
    value, low, high = evaluate(Call(op, args), line)
    if low is None:
        assert op == "div"
        assert b[0] <= 0 <= b[1]
        return
    slack = 1e-9 * max(1.0, abs(low), abs(high))
    if value is None:  # the divisor may be noise alone
        assert op == "div"
        assert swamped(abs(y), (b[1] - b[0]) / 2, 0.95)
        value = x / y
    assert low - slack <= value <= high + slack


def test_an_interval_that_is_missing_stays_missing():
    assert evaluate(Call("add", (A, B)), {"a": (1.0, 0.0, 2.0), "b": (1.0, None, None)}) == (2.0, None, None)


@pytest.mark.parametrize("missing", [None, "text"])
def test_arithmetic_without_a_number_is_null(missing):
    line = {"a": (missing, None, None), "b": (1.0, 0.0, 2.0)}
    assert evaluate(Call("add", (A, B)), line) == (None, None, None)
    assert evaluate(Call("lt", (A, B)), line) == (False, None, None)


def test_division_by_zero_is_null_and_minus_zero_is_zero():
    line = {"a": (1.0, 1.0, 1.0), "b": (0.0, 0.0, 0.0)}
    assert evaluate(Call("div", (A, B)), line) == (None, None, None)
    assert math.copysign(1, evaluate(Call("add", (lit(-0.0), lit(-0.0))), line)[0]) == 1


def test_conditions():
    line = {"a": (1.0, None, None), "b": (2.0, None, None)}
    less, more = Call("lt", (A, B)), Call("gt", (A, B))
    assert evaluate(Call("and", (less, more)), line)[0] is False
    assert evaluate(Call("or", (less, more)), line)[0] is True
    assert evaluate(Call("not", (more,)), line)[0] is True
    assert evaluate(Call("in", (A, lit(1), lit(3))), line)[0] is True
    assert evaluate(Call("is_null", (A,)), line)[0] is False


@pytest.mark.parametrize(
    ("choice", "result"),
    [
        (Call("coalesce", (A, lit(-1))), (-1.0, -1.0, 10.0)),
        (Call("coalesce", (A, B, lit(-1))), (2.0, 0.0, 10.0)),
        (Call("coalesce", (A,)), (None, None, None)),
        (Call("case", (Call("ge", (A, lit(0))), lit(5), lit(7))), (5.0, 5.0, 5.0)),
        (Call("case", (Call("gt", (A, lit(4))), lit(5), lit(7))), (7.0, 5.0, 7.0)),
        (Call("case", (Call("is_null", (A,)), lit(5), lit(7))), (5.0, 5.0, 7.0)),
    ],
)
def test_a_choice_by_a_hidden_value_leaves_open_what_its_interval_leaves_open(choice, result):
    line = {"a": (None, 0.0, 10.0), "b": (2.0, 1.0, 3.0)}  # NULL, but with an interval: hidden
    assert evaluate(choice, line) == result


def test_what_cannot_be_computed_is_refused_before_the_charge():
    refused = 0
    for op, rule in OPERATORS.items():
        node = Call("add", (lit(1), Call(op, (A,) * len(rule.takes))))
        try:
            check_computable(node)
        except TacitError as error:
            assert error.code == "not-allowed"
            assert error.fix == Do("export-release")
            refused += 1
        else:
            evaluate(node, {"a": (1.0, 1.0, 1.0)})
    assert 0 < refused < len(OPERATORS)
