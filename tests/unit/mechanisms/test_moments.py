"""Count, sum, mean and variance from noisy parts: the truth lies within the stated ends."""

import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.mechanisms import Moments

W = 16


def parts_of(steps, size):
    if size == 2:
        return [sum(W - y for y in steps), sum(steps)]
    return [sum((W - y) ** 2 for y in steps), sum(2 * y * (W - y) for y in steps), sum(y * y for y in steps)]


@given(data=st.data(), steps=st.lists(st.integers(0, W), max_size=30), size=st.sampled_from([2, 3]))
def test_every_reading_covers_what_the_exact_parts_give(data, steps, size):
    low, high = Fraction(data.draw(st.integers(-9, 9))), 0
    high = low + data.draw(st.integers(1, 9))
    weight = W if size == 2 else W * W
    half = data.draw(st.integers(0, 3 * weight))
    noisy = [part + data.draw(st.integers(-half, half)) for part in parts_of(steps, size)]
    moments = Moments(noisy, half, low, high, weight)
    values = [float(low) + float(high - low) * y / W for y in steps]

    def covers(ends, truth):
        value, least, most = ends
        assert least <= value <= most
        slack = 1e-9 * max(1.0, abs(truth))
        assert least - slack <= truth <= most + slack

    covers(moments.count(), len(steps))
    covers(moments.sum(), sum(values))
    if values:
        covers(moments.mean(), statistics.fmean(values))
    if size == 3 and values:
        covers(moments.variance(), statistics.pvariance(values))
    if size == 3 and len(values) > 1:
        covers(moments.variance(sample=True), statistics.variance(values))
        covers(moments.std(sample=True), statistics.stdev(values))


def test_exact_parts_give_exact_readings():
    steps = [0, 4, 16, 16]
    two, three = Moments(parts_of(steps, 2), 0, 0, 8, W), Moments(parts_of(steps, 3), 0, 0, 8, W * W)
    values = [0, 2, 8, 8]
    for moments in (two, three):
        assert moments.count() == (4, 4, 4)
        assert moments.sum() == (18, 18, 18)
        assert moments.mean() == pytest.approx((4.5, 4.5, 4.5))
    assert three.variance() == pytest.approx((statistics.pvariance(values),) * 3)
    assert three.variance(sample=True)[0] == pytest.approx(statistics.variance(values))


def test_parts_of_nobody_stay_within_the_bounds():
    for noisy in ([-5, 2], [0, 0], [-3, -3]):
        value, low, high = Moments(noisy, 7, -1, 3, W).mean()
        assert -1 <= low <= value <= high <= 3
    for noisy in ([-5, 2, 1], [0, 0, 0], [-3, -3, -9]):
        value, low, high = Moments(noisy, 7, -1, 3, W * W).variance(sample=True)
        assert 0 <= low <= value <= high <= 8  # at most 16/4, times n/(n-1)
