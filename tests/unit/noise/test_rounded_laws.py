"""The law of rounded Gaussian noise, followed exactly: its cover, its decisions, its rounding."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import noise
from tacit.noise import _bits, _bulk, _coins, _gaussian, _geometric
from tacit.noise._bulk import strips
from tacit.noise._intervals import Place, exp_minus, exp_minus_between

FINE = 2**48
SIGMAS = [Fraction(64), Fraction(100), Fraction(1000, 7), Fraction(10**6), Fraction(2**57) + Fraction(1, 3)]


def cover(sigma):
    """The table of floor(Y) for a real Gaussian Y."""
    spread = 2 * sigma**2
    return strips(spread.numerator, spread.denominator, 2, signed=True, real=True)


def weight(table, x, bits=300):
    low, high = exp_minus(table.rate * Fraction(x) ** 2, bits)
    return Fraction(low, 2**bits), Fraction(high, 2**bits)


def fed(*parts):
    """Bytes for `feed`: (value, number of bytes) pairs."""
    return b"".join(int(value).to_bytes(size, "little") for value, size in parts)


@pytest.mark.parametrize("sigma", [*SIGMAS, Fraction(2**61)], ids=str)
def test_rectangles_lie_under_the_weights_and_boxes_over_them(sigma):
    """The inequalities of Theorem 3 for real numbers, in exact arithmetic (docs/proofs/noise.md)."""
    table = cover(sigma)
    unit = table.per_weight * table.width
    boxes = np.diff(table.edges).tolist()
    columns = (table.base.tolist(), table.inner.tolist(), table.cells.tolist(), boxes)
    for base, inner, cells, box in zip(*columns, strict=False):
        assert inner == (base if base >= 0 else ~base)  # |x| begins there, on both sides
        assert cells <= unit * weight(table, inner + table.width)[0] or cells == 0
        assert cells + Fraction(box, FINE) >= unit * weight(table, inner)[1]
    step = table.rate * (2 * table.reach + 1)
    least = table.per_weight * weight(table, table.reach, 400)[1]
    least /= 1 - Fraction(exp_minus(step, 400)[1], 2**400)
    assert all(Fraction(box, FINE) >= least for box in boxes[table.base.size :])
    assert len(boxes) == table.base.size + 2
    assert sum(boxes) <= (2**16 - table.fast) * FINE
    assert table.fast == table.cells.sum()


@given(st.fractions(min_value=Fraction(1, 1000), max_value=2**58, max_denominator=10**6))
def test_a_cover_exists_for_every_sigma_and_seldom_leaves_its_rectangles(sigma):
    assert 1 - cover(sigma * 2 ** _gaussian._shift(sigma, 7)).fast / 2**16 < 0.03


@pytest.mark.parametrize("sigma", [Fraction(64), Fraction(1000)], ids=str)
def test_points_of_boxes_are_accepted_exactly_under_the_weight_of_the_real_number(sigma):
    """With the fraction's first word given, the decision flips at the weight there, and near it exactly."""
    table = cover(sigma)
    rng = np.random.default_rng(5)
    for h in rng.permutation(table.base.size)[:150].tolist():
        low, digits = int(rng.integers(table.width)), int(rng.integers(2**53))
        x = int(table.base[h]) ^ low
        real = int(table.inner[h]) + low + Fraction(digits, 2**53)
        start, end = table.edges[h : h + 2].tolist()
        unit = table.per_weight * table.width
        edge = math.floor((weight(table, real)[0] * unit - int(table.cells[h])) * FINE)
        assert 0 <= edge <= end - start
        for point in {p for p in (0, edge - 2, edge + 2, end - start - 1) if 0 <= p < end - start}:
            cell, rest = divmod(start + point, FINE)
            first = [(table.fast + cell, 2)] + ([(low, 1)] if table.width > 1 else [])
            bits = fed(*first, (rest << 16, 8), (digits << 11, 8), *[(2**64 - 1, 8)] * 2)
            with _bits.feed(bits):
                if point < edge - 1:
                    assert table.draw(1, "noise").tolist() == [x]
                elif point > edge:
                    with pytest.raises(_bits.ExhaustedError):  # it asks for another point
                        table.draw(1, "noise")


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_the_far_tail_is_decided_by_the_real_number(steps):
    table = cover(Fraction(64))
    step = table.rate * (2 * table.reach + 1)
    half = Fraction(1, 2)
    w = weight(table, table.reach + steps + half, 400)[0]
    height = table.per_weight * w * Fraction(2**400, exp_minus(steps * step, 400)[0])
    height /= 1 - Fraction(exp_minus(step, 400)[0], 2**400)
    edge = math.floor(height * FINE)
    digits = len(_geometric.thresholds(step.denominator, step.numerator))
    proposal = [(2**64 - 1, 8)] + [(0 if steps >> i & 1 else 2**64 - 1, 8) for i in range(digits)]
    for side in range(2):
        start, end = table.edges[table.base.size + side :][:2].tolist()
        for point in {p for p in (0, edge - 1, edge + 1) if 0 <= p < end - start and p != edge}:
            cell, rest = divmod(start + point, FINE)
            low = [] if table.width == 1 else [(0, 1)]
            bits = fed((table.fast + cell, 2), *low, (rest << 16, 8), *proposal, (2**63, 8))
            x = table.reach + steps
            with _bits.feed(bits + bytes(400)):  # further digits of the fraction, or another point
                accepted = table.draw(1, "noise").tolist() == [~x if side else x]
            assert accepted == (point < edge)


def same_with_exact_decisions(monkeypatch, module, constant, draw):
    """Draw twice from the same bits; the second time a wide margin leaves all to exact arithmetic."""
    bits = np.random.default_rng(11).bytes(4_000_000)
    with _bits.feed(bits):
        quick = draw()
    with monkeypatch.context() as wide, _bits.feed(bits):
        wide.setattr(module, constant, 4.0)
        slow = draw()
    assert np.array_equal(quick, slow)


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_boxes_decide_in_doubles_as_in_exact_arithmetic(sigma):
    """The quick decision of a box equals the exact one for the same digits."""
    table = cover(sigma)
    rng = np.random.default_rng(7)
    strip = rng.integers(table.base.size, size=400)
    low = rng.integers(table.width, size=400)
    boxes = np.diff(table.edges)[strip]
    above = (rng.random(400) * boxes).astype(np.int64)
    digits = rng.integers(2**53, size=400)
    out = low.copy()
    with _bits.feed(fed(*[(int(d) << 11, 8) for d in digits])):
        quick = table._accept(out, np.arange(400), strip, above)
    for i in range(400):
        real = int(table.inner[strip[i]]) + int(low[i]) + Fraction(int(digits[i]), 2**53)
        lowest, highest = weight(table, real + Fraction(1, 2**53))[0], weight(table, real)[1]
        unit = table.per_weight * table.width
        point = int(table.cells[strip[i]]) + Fraction(int(above[i]), FINE)
        if point + Fraction(1, FINE) <= unit * lowest:
            assert quick[i]
        elif point >= unit * highest:
            assert not quick[i]
    assert 40 < quick.sum() < 390


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(5), Fraction(10**9)], ids=str)
def test_coins_decide_in_doubles_as_in_exact_arithmetic(monkeypatch, sigma):
    """Draws one at a time and one scale each: the same bits give the same numbers when doubles never decide.

    The exact decision has the words that the quick one had, and asks for more only where they do not decide.
    """
    for draw in (
        lambda: [noise.rounded_gaussian(sigma) for _ in range(300)],
        lambda: noise.rounded_gaussian([sigma, 2 * sigma] * 300),
    ):
        same_with_exact_decisions(monkeypatch, _coins, "_MARGIN", draw)


def test_a_place_keeps_the_digits_it_has_drawn():
    place = Place(5, 3, 2)
    with _bits.feed(fed((1, 8))):
        low, high = place.ends(60)
    assert low == 5 + Fraction(3, 4) + Fraction(1, 2**66)
    assert high - low == Fraction(1, 2**66)
    assert place.ends(10) == (low, high)  # no digit is drawn twice
    assert Place(7).ends(100) == (7, 7)
    least, most = exp_minus_between((low, high), 60)
    assert least <= exp_minus(high, 60)[0] <= exp_minus(low, 60)[1] <= most


@pytest.mark.parametrize(
    "sigma", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(40), Fraction(2**40)]
)
def test_the_bulk_draw_rounds_the_floor_of_the_wide_number_to_the_nearest(monkeypatch, sigma):
    """round(Y / 2^s) of floor(Y) is exact: an integer floor never lies across a half."""
    s = _gaussian._shift(sigma, 7)
    floors = np.array([k * 2 ** min(s - 1, 50) + d for k in range(-9, 10) for d in (-1, 0, 1)], np.int64)
    monkeypatch.setattr(_bulk.Strips, "draw", lambda _self, _count, _name: floors.copy())
    drawn = _gaussian._strips_rounded(sigma, floors.size)
    for floor, out in zip(floors.tolist(), drawn.tolist(), strict=True):
        for y in (Fraction(floor) + Fraction(1, 1000), floor + Fraction(999, 1000)):
            assert out == math.floor(y / 2**s + Fraction(1, 2))


def test_the_largest_floors_do_not_overflow(monkeypatch):
    ends = np.array([2**63 - 1, -(2**63)], np.int64)
    monkeypatch.setattr(_bulk.Strips, "draw", lambda _self, _count, _name: ends.copy())
    assert _gaussian._strips_rounded(Fraction(2**59), 2).tolist() == [2**62, -(2**62)]
