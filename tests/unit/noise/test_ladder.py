"""Ladder noise: the digits that decide a draw are certified, and nonsense is refused."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import noise
from tacit.errors import TacitError
from tacit.noise import _bits, _ladders


@given(
    st.fractions(Fraction(1, 1000), Fraction(60)),
    st.integers(0, 50),
    st.one_of(st.none(), st.integers(0, 30)),
    st.sampled_from([16, 64, 80, 144]),
)
def test_the_certified_digits_hold_the_chances_of_the_mixture(rate, width, growth, bits):
    if width == 0 and growth == 0:
        return
    with localcontext() as context:
        context.prec = 120
        q = (-Decimal(rate.numerator) / Decimal(rate.denominator)).exp()
        grown = 1 if growth is None else 1 - q**growth
        zero, inner, outer = (1 - q) ** 2, 2 * width * q * (1 - q), 2 * q**2 * grown
        for found, chance in (
            (_ladders._zero_chance(rate, width, growth, bits), zero / (zero + inner + outer)),
            (_ladders._inner_chance(rate, width, growth, bits), inner / (inner + outer)),
        ):
            slack = Decimal(10) ** -80
            assert found[0] - slack <= chance * 2**bits <= found[1] + slack
            assert found[1] - found[0] <= 2


@pytest.mark.parametrize("bad", [{"rate": 0}, {"rate": 2.0**-70}, {"width": -1}, {"most": 3}, {"most": 0}])
def test_nonsense_parameters_of_the_draws_are_refused(bad):
    with pytest.raises(TacitError) as refused:
        noise.ladder(**{"rate": 1, "width": 4, **bad})
    assert refused.value.code == "bad-parameter"


def test_an_array_of_draws_that_do_not_fit_is_refused():
    with pytest.raises(TacitError) as refused:
        noise.ladder(2.0**-50, 3, size=5)
    assert refused.value.code == "does-not-fit"
    assert isinstance(noise.ladder(2.0**-50, 3), int)
    assert noise.ladder(1, 3, size=(0, 2)).shape == (0, 2)


def end_by_counting(rung, width, most):
    return sum(width + j if most is None else min(width + j, most) for j in range(rung))


@given(st.integers(0, 60), st.integers(0, 20), st.one_of(st.none(), st.integers(0, 25)))
def test_rungs_end_where_the_widths_add_up(rung, width, growth):
    most = None if growth is None else width + growth
    assert _ladders._end(rung, width, growth) == end_by_counting(rung, width, most)


@pytest.mark.parametrize(("width", "growth"), [(3, None), (0, None), (3, 4), (5, 0), (0, 2)])
def test_zero_words_and_the_digits_around_the_chance_of_zero_are_decided_exactly(width, growth):
    """A uniform number just below the chance of zero gives zero, and one just above it does not."""
    rate = Fraction(1, 2)
    low, high = _ladders._zero_chance(rate, width, growth, 64)
    for first, zero in ((low - 1, True), (high, False)):
        with _bits.feed(first.to_bytes(8, "little") + bytes(range(1, 256)) * 40):
            assert (_ladders._one(rate, width, growth) == 0) is zero


@pytest.mark.parametrize(("width", "most"), [(4, None), (0, None), (2, 5), (3, 3), (0, 1)])
def test_draws_of_a_high_rate_lie_in_the_first_rungs(width, most):
    first = width or 1
    drawn = noise.ladder(60, width, most, size=1000)
    assert (np.abs(drawn) <= first).all()
    assert all(abs(noise.ladder(60, width, most)) <= first for _ in range(100))
