"""Digits of released numbers: the noise decides how many mean anything, and intervals only grow."""

import math

from hypothesis import given
from hypothesis import strategies as st

from tacit.core import Cells
from tacit.core._shown_digits import meaningful

finite = st.floats(-1e12, 1e12)


@given(finite, st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_rounded_intervals_contain_the_exact_ones_and_are_hardly_wider(value, below, above):
    low, high = value - below, value + above
    (shown,), (down,), (up,) = meaningful(Cells((value,), (low,), (high,)))
    assert down <= low
    assert up >= high
    unit = max((high - low) / 2 / 100, math.ulp(abs(value)) * 4, 1e-11)
    assert abs(shown - value) <= unit
    assert low - down <= unit
    assert up - high <= unit


def test_digits_follow_the_narrowest_interval_of_the_column():
    cells = Cells((1.23456789, 1000.123456), (1.13456789, 0.0), (1.33456789, 2000.0))
    assert meaningful(cells)[0] == [1.2346, 1000.1235]
    wide = Cells((123456.789,), (100000.0,), (150000.0,))
    assert meaningful(wide) == ([123457], [100000], [150000])


def test_whole_numbers_texts_and_missing_ends_stay():
    assert meaningful(Cells((7, "I10", None), (1, None, None), (9, None, None))) == (
        [7, "I10", None],
        [1, None, None],
        [9, None, None],
    )
    assert meaningful(Cells((0.1 + 0.2,), (None,), (None,)))[0] == [0.3]
