"""Expressions have a limit on their size and depth, so that none is planned that cannot be drawn."""

import sys

import pyarrow as pa
import pytest

import tacit as tc
from tacit.algebra import MOST_CALLS, MOST_LEVELS, Call, Column, Literal, document
from tacit.errors import TacitError


@pytest.fixture
def visits():
    rows = {"visits": pa.table({"patient": [1, 2, 3], "age": [20, 30, 40]})}
    return tc.protect(
        rows, name="visits", unit="patient", budget=tc.Budget(epsilon=9), ledger=tc.Ledger.memory()
    )


def summed(number):
    return f"SELECT COUNT(*) AS n FROM visits WHERE {' + '.join(['age'] * number)} > 5"


def below(frames, do):
    """Do something under so many more frames."""
    return do() if frames == 0 else below(frames - 1, do)


def test_the_deepest_expression_that_is_planned_is_drawn_where_the_stack_is_higher(visits):
    deepest = visits.sql(summed(MOST_LEVELS)).plan(epsilon=1)
    room = sys.getrecursionlimit() - 1000  # what this test has beyond Python's usual limit
    assert below(200 + room, deepest.release).columns
    with pytest.raises(TacitError, match=f"at most {MOST_LEVELS} deep"):
        visits.sql(summed(MOST_LEVELS + 1))
    assert float(visits.remaining.epsilon) == 8


def test_an_expression_counts_a_part_as_often_as_it_is_written_out():
    node = Call("neg", (Column("x"),))
    with pytest.raises(TacitError, match=f"at most {MOST_CALLS:,} operators"):
        for _ in range(MOST_LEVELS - 1):
            node = Call("add", (node, node))
    assert node.calls <= MOST_CALLS < 2 * node.calls + 1


def test_the_size_is_no_part_of_a_plan():
    once = Call("add", (Column("x"), Literal(1.0, "number")))
    assert set(document(once)) == {"node", "op", "args"}
    assert repr(once) == repr(Call("add", (Column("x"), Literal(1.0, "number"))))
