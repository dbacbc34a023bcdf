"""Numeric parameters are read exactly, in one place."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.exact import count, rational
from tacit.fixes import Code, Set

HOSTILE = [
    math.nan, math.inf, -math.inf, -1, -0.5, 0, 0.0, -0.0, True, False, None, "1", "1e400", b"1", 1j, [1],
    {}, object(), 5e-324, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e-5000"),
    Decimal("1e999999999"), 10**400, Fraction(1, 10**400), Fraction(3**4000, 3**4000 + 1), np.int8(5),
    np.uint8(5), np.int32(5), np.float32(0.5), np.float16(0.5), np.bool_(True), np.float64("nan"),
    np.longdouble(1), np.array(1.0), np.array([1.0]),
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=lambda v: f"{type(v).__name__}-{str(v)[:12]}")
def test_hostile_numbers_are_refused(value):
    with pytest.raises(TacitError) as refusal:
        rational("epsilon", value)
    assert refusal.value.code == "bad-parameter"
    assert refusal.value.what.startswith("epsilon must be ")
    assert str(refusal.value.fix)


@pytest.mark.parametrize(
    ("read", "value", "fix"),
    [
        (rational, -1, Set(epsilon=0.5)),
        (rational, 5e-324, Set(epsilon=0.5)),
        (rational, np.float32(0.5), Code("epsilon=float(...)")),
        (count, 1.5, Set(epsilon=10)),
    ],
)
def test_a_refusal_carries_a_working_value_for_the_same_parameter(read, value, fix):
    with pytest.raises(TacitError) as refusal:
        read("epsilon", value)
    assert refusal.value.fix == fix


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (1, Fraction(1)),
        (np.int64(7), Fraction(7)),
        (np.uint64(2**63), Fraction(2**63)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.25"), Fraction(1, 4)),
        (1e300, Fraction(10**300)),
    ],
)
def test_a_number_is_read_as_written(value, exact):
    assert rational("x", value) == exact


@given(st.floats(min_value=2.3e-308, max_value=8e307, allow_nan=False))
def test_the_decimal_reading_rounds_back_to_the_float(x):
    assert float(rational("x", x)) == x


def test_zero_and_negatives_only_where_allowed():
    assert rational("x", 0, zero=True) == 0
    assert rational("x", -2.5, zero=True, negative=True) == Fraction(-5, 2)
    with pytest.raises(TacitError):
        rational("x", -2.5, zero=True)


@pytest.mark.parametrize("value", [True, np.bool_(True), -1, 1.0, "3", None, np.float64(3)])
def test_hostile_counts_are_refused(value):
    with pytest.raises(TacitError):
        count("size", value)


def test_counts_read_numpy_integers():
    assert count("size", np.int8(5)) == 5
    assert count("size", 0) == 0
    with pytest.raises(TacitError):
        count("size", 0, zero=False)


@pytest.mark.parametrize(
    "value", [math.nan, "1", True, 5e-324, Fraction(3**4000, 3**4000 + 1), np.float32(1)]
)
def test_a_number_of_several_has_the_fix_of_its_parameter(value):
    fix = Set(bounds=(0, 30))
    for read in (rational, count):
        with pytest.raises(TacitError) as refusal:
            read("the lower bound", value, fix=fix)
        assert refusal.value.fix == fix
