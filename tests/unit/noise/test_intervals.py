"""Certified intervals hold the true value at every precision; comparisons are those of infinite digits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.noise import _bits, _floats
from tacit.noise._intervals import below, exp_minus, logistic, minus_log, scaled

rationals = st.fractions(min_value=0, max_value=200, max_denominator=10**9)
chances = st.integers(1, 2**80).flatmap(lambda d: st.builds(Fraction, st.integers(1, d), st.just(d)))
precisions = st.integers(0, 300)


def contains(interval, bits, value):
    """Whether low <= 2^bits value <= high, with value an mpmath number of 200 spare bits."""
    low, high = interval
    return mpmath.mpf(low) <= mpmath.ldexp(value, bits) <= mpmath.mpf(high)


def precise(bits):
    return mpmath.workprec(bits + 300)


def number(x):
    return mpmath.mpf(x.numerator) / x.denominator


@given(rationals, precisions)
def test_exp_minus_is_certain_and_tight(x, bits):
    interval = exp_minus(x, bits)
    with precise(bits):
        slack = mpmath.ldexp(1, -bits - 200) if x else 0  # mpmath's own rounding
        low, high = interval
        value = mpmath.exp(-number(x))
        assert mpmath.ldexp(low, -bits) <= value + slack
        assert mpmath.ldexp(high, -bits) >= value - slack
    assert 0 <= interval[1] - interval[0] <= 2


@given(rationals, precisions)
def test_logistic_is_certain_and_tight(x, bits):
    interval = logistic(x, bits)
    with precise(bits):
        assert contains(interval, bits, 1 / (1 + mpmath.exp(number(x))))
    assert interval[1] - interval[0] <= 2


@given(chances, precisions)
def test_minus_log_is_certain_and_tight(x, bits):
    low, high = minus_log(x, bits)
    with precise(bits):
        value = -mpmath.log(number(x))
        slack = mpmath.ldexp(1, -bits - 200)
        assert mpmath.ldexp(low, -bits) <= value + slack
        assert mpmath.ldexp(high, -bits) >= value - slack
    assert 0 <= high - low <= 3


def test_exp_minus_of_huge_arguments_is_quick_and_positive():
    assert exp_minus(Fraction(2**1000), 500) == (0, 1)
    assert exp_minus(Fraction(0), 5) == (32, 32)


@given(st.fractions(min_value=0, max_value=1, max_denominator=50), st.integers(0, 12))
def test_scaled_is_floor_and_ceiling(x, bits):
    low, high = scaled(x, bits)
    assert low <= x * 2**bits <= high
    assert high - low == (0 if (x * 2**bits).denominator == 1 else 1)


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(5, 8)])
@pytest.mark.parametrize("bits", [1, 4, 8])
def test_every_prefix_decides_as_the_infinite_comparison(p, bits):
    """Feed every prefix: those wholly below p say yes, wholly above no, and the one astride asks for more."""
    yes = no = astride = 0
    for digits in range(2**bits):
        with _bits.feed(b"") as _:
            try:
                answer = below(digits, bits, lambda b: scaled(p, b))
            except _bits.ExhaustedError:
                astride += 1
                assert Fraction(digits, 2**bits) < p < Fraction(digits + 1, 2**bits)
                continue
        yes, no = yes + answer, no + (not answer)
    assert Fraction(yes, 2**bits) <= p <= Fraction(yes + astride, 2**bits)
    assert astride == ((p * 2**bits).denominator != 1)
    assert yes + no + astride == 2**bits


def test_an_astride_prefix_is_settled_by_the_next_word():
    third = (2**64 - 1) // 3  # the next 64 binary digits of 1/3
    for word, answer in [(third - 1, True), (third + 1, False)]:
        with _bits.feed(word.to_bytes(8, "little")):
            assert below(0x5555, 16, lambda b: scaled(Fraction(1, 3), b)) is answer
    with _bits.feed(third.to_bytes(8, "little") + (0).to_bytes(8, "little")) as used:
        assert below(0x5555, 16, lambda b: scaled(Fraction(1, 3), b)) is True
        assert used() == 16


def hard_points():
    rng = np.random.default_rng(1)
    edges = np.arange(0, 65 * 32) / 32
    near = np.concatenate([np.nextafter(edges, 100), np.maximum(np.nextafter(edges, -1), 0), edges])
    return np.concatenate(
        [near, rng.uniform(0, 64, 2000), 2.0 ** rng.uniform(-1074, 6, 2000), [1e9, 1e308, 64.0]]
    )


def test_the_quick_exponential_keeps_a_sixteenth_of_its_stated_error():
    """The bound used everywhere is 2^-46 relative and 2^-91 absolute; a sixteenth of it is found here."""
    points = hard_points()
    found = _floats.exp_minus(points)
    assert found.tolist() == [_floats.exp_minus_one(float(x)) for x in points]
    with mpmath.workprec(300):
        for x, y in zip(points, found, strict=True):
            value = mpmath.exp(-mpmath.mpf(float(x)))
            assert abs(mpmath.mpf(float(y)) - value) <= value * mpmath.ldexp(1, -50) + mpmath.ldexp(1, -91)


def test_the_quick_logarithm_keeps_its_stated_error():
    rng = np.random.default_rng(2)
    pieces = np.arange(64, 129) / 128
    points = np.concatenate(
        [2.0 ** rng.uniform(-80, 80, 3000), pieces, np.nextafter(pieces, 0), 1 + rng.normal(size=500) / 2**20]
    )
    with mpmath.workprec(300):
        for x, y in zip(points, _floats.log(points), strict=True):
            assert abs(mpmath.mpf(float(y)) - mpmath.log(mpmath.mpf(float(x)))) <= mpmath.ldexp(1, -45)


def test_the_quick_waiting_time_keeps_its_stated_error():
    rng = np.random.default_rng(3)
    points = rng.integers(0, 2**64, 2000, dtype=np.uint64)
    shifts = rng.integers(0, 64, 2000, dtype=np.uint64)
    points = np.concatenate(
        [points, points >> shifts, ~(points >> shifts), [np.uint64(2**64 - 2**58 + k) for k in (-1, 0, 1)]]
    )
    points = points[(points > 3) & (points < 2**64 - 4)]
    with mpmath.workprec(300):
        for u, y in zip(points.tolist(), _floats.minus_log_uniform(points), strict=True):
            for end in (u, u + 1):
                value = -mpmath.log(mpmath.ldexp(end, -64))
                error = value * (mpmath.ldexp(1, -37) + mpmath.mpf(2) / min(u, 2**64 - 1 - u))
                assert abs(mpmath.mpf(float(y)) - value) <= error
