"""Shares, totals and ranks over the lines of a release: right values, and intervals that hold."""

from __future__ import annotations

import math
import random

import pytest

from tacit.algebra._expressions import Call, Column, lit
from tacit.tables.reading._postprocessing import evaluate
from tacit.tables.reading._release_functions import with_totals

X, G = Column("x"), Column("g")
TOTAL = Call("over_sum", (X,))
SHARE = Call("div", (Call("mul", (X, lit(100))), TOTAL))


def lines(values, widths, groups=None):
    return [
        {"x": (v, v - h, v + h), "g": ((groups or ["a"] * len(values))[i], None, None)}
        for i, (v, h) in enumerate(zip(values, widths, strict=True))
    ]


def computed(node, given, confidence=0.95):
    return [evaluate(node, line) for line in with_totals(given, [node], confidence, evaluate)]


def test_a_share_is_the_part_of_the_total():
    found = computed(SHARE, lines([10.0, 30.0, 60.0], [1, 1, 1]))
    assert [round(v, 9) for v, _, _ in found] == [10, 30, 60]
    assert all(low < value < high for value, low, high in found)


def test_shares_of_parts_are_of_their_own_total():
    node = Call("div", (X, Call("over_sum", (X, G))))
    found = computed(node, lines([10.0, 30.0, 60.0], [1, 1, 1], ["a", "a", "b"]))
    assert [v for v, _, _ in found] == [0.25, 0.75, 1.0]
    assert found[2][1:] == (1.0, 1.0), "a part that is alone is the whole, whatever the noise"


def test_running_totals_and_ranks():
    given = lines([10.0, 30.0, 20.0], [3, 4, 12], ["a", "b", "c"])
    assert computed(Call("running_sum", (X, G)), given) == [(10, 7, 13), (40, 35, 45), (60, 47, 73)]
    assert [v for v, _, _ in computed(Call("rank_down", (X,)), given)] == [3, 1, 2]
    assert [v for v, _, _ in computed(Call("rank_up", (X,)), given)] == [1, 3, 2]
    assert computed(Call("over_mean", (X,)), given)[0] == pytest.approx((20, 20 - 13 / 3, 20 + 13 / 3))
    assert computed(Call("over_max", (X,)), given)[0] == (30, 26, 34)


def test_below_95_percent_half_widths_are_added():
    assert computed(TOTAL, lines([10.0, 30.0], [3, 4]), 0.9)[0] == (40, 33, 47)
    low, high = computed(SHARE, lines([10.0, 30.0], [3, 4]), 0.9)[0][1:]
    assert (low, high) == pytest.approx((100 * 7 / (7 + 34), 100 * 13 / (13 + 26)))


def test_a_total_without_intervals_or_numbers_has_none():
    assert computed(TOTAL, [{"x": (1.0, None, None)}, {"x": (2.0, 1.0, 3.0)}])[0] == (3.0, None, None)
    assert computed(TOTAL, [{"x": (None, None, None)}, {"x": (2.0, 1.0, 3.0)}])[0] == (None, None, None)
    assert computed(SHARE, lines([0.0, 0.0], [1, 1]))[0] == (None, None, None)
    assert computed(SHARE, lines([2.0, 1.0], [5, 5]))[0][1:] == (None, None), "the total may be zero"


@pytest.mark.parametrize("law", ["laplace", "gauss"])
@pytest.mark.parametrize("truth", [[200.0, 50.0, 10.0], [40.0] * 25, [5000.0, 3.0]])
def test_intervals_cover_as_often_as_stated(law, truth):
    rng, times = random.Random(f"{law}{truth}"), 4000
    scale = 3.0
    half = scale * (-math.log(0.05) if law == "laplace" else 1.959964)

    def draw():
        return rng.choice((-1, 1)) * rng.expovariate(1 / scale) if law == "laplace" else rng.gauss(0, scale)

    shares, totals = 0, 0
    for _ in range(times):
        given = lines([t + draw() for t in truth], [half] * len(truth))
        value = computed(SHARE, given)[0]
        shares += value[1] is None or value[1] <= 100 * truth[0] / sum(truth) <= value[2]
        _, low, high = computed(TOTAL, given)[0]
        totals += low <= sum(truth) <= high
    assert 0.935 < shares / times < 0.985
    assert 0.935 < totals / times < 0.985


@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_sums_of_laplace_noise_stay_within_the_root_of_the_squares(confidence):
    """For different scales the tail of the sum is known: the sum of c_i exp(-t/b_i), by partial fractions."""
    rng = random.Random(7)
    for _ in range(500):
        scales = sorted({round(rng.uniform(0.05, 1), 4) for _ in range(rng.randint(2, 6))})
        t = -math.log(1 - confidence) * math.hypot(*scales)
        shares = [math.prod(b * b / (b * b - c * c) for c in scales if c != b) for b in scales]
        if max(map(abs, shares)) > 1e6:
            continue  # scales that are almost equal: floats cannot subtract these terms
        tail = sum(share * math.exp(-t / b) for share, b in zip(shares, scales, strict=True))
        assert tail <= 1 - confidence + 1e-6
