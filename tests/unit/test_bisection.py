"""Bisection finds the first number at which a condition holds, and asks no more than it must."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.bisection import first_integer, first_number, halved


@given(st.integers(-50, 50), st.integers(1, 10**6), st.integers(0, 10**6))
def test_the_first_integer_is_found_between_its_ends(low, width, offset):
    first = low + 1 + offset % width
    assert first_integer(lambda n: n >= first, low, low + width) == first


@given(st.integers(0, 10**30), st.sampled_from([-1, 0]))
def test_a_growing_end_reaches_every_integer(first, low):
    first = max(first, low + 1)
    assert first_integer(lambda n: n >= first, low, 1, growing=True) == first


def test_neither_end_is_asked():
    asked = []

    def holds(n):
        asked.append(n)
        return n >= 10

    assert first_integer(holds, 0, 1000) == 10
    assert not {0, 1000} & set(asked)
    assert len(asked) == math.ceil(math.log2(1000))


@pytest.mark.parametrize("ratio", [2, 1.01, 1 + 1e-9])
@given(first=st.floats(1e-9, 1e9))
def test_the_first_number_is_found_to_the_ratio_and_never_below(first, ratio):
    found = first_number(lambda x: x >= first, 1e-10, 1e10, ratio=ratio)
    assert first <= found <= first * ratio * (1 + 1e-12)


@given(st.floats(0, 1e9), st.floats(1e-9, 1e9), st.floats(0, 1), st.integers(0, 60))
def test_halving_is_the_plain_loop_to_the_last_bit(low, width, share, times):
    high = low + width
    first = low + share * width
    below, above = low, high
    for _ in range(times):
        middle = (below + above) / 2
        if middle >= first:
            above = middle
        else:
            below = middle
    assert halved(lambda x: x >= first, low, high, times=times) == (below, above)


@given(st.fractions(0, 1), st.integers(0, 40))
def test_fractions_are_halved_where_a_caller_wants(first, times):
    def short(low, high):
        return Fraction(float((low + high) / 2))

    below, above = halved(lambda x: x >= first, Fraction(-1), Fraction(2), times=times, middle=short)
    assert below < first <= above
    assert above - below == Fraction(3, 2**times)


def test_the_ends_of_a_halved_interval_are_not_asked():
    asked = []

    def holds(x):
        asked.append(x)
        return x >= 0.3

    assert halved(holds, 0.0, 1.0, times=2) == (0.25, 0.5)
    assert asked == [0.5, 0.25]
