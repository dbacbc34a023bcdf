"""Intervals of cells and of sums of cells: exact half-widths, and an error that is shared out soundly."""

from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit.synth._facts import covering, half_width, interval_level


def law_of_sum(sigma, cells):
    """The probabilities of a sum of discrete Gaussians, by convolution."""
    reach = int(12 * sigma) + 12
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    made = one = one / one.sum()
    for _ in range(cells - 1):
        made = np.convolve(made, one)
    return np.abs(np.arange(made.size) - made.size // 2), made


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("cells", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("sigma", [0.4, 0.5, 0.7, 1.0, 1.12, 1.7, 4.0, 20.0])
def test_half_widths_of_sums_cover_by_the_exact_law_and_are_the_smallest_but_for_tiny_noise(
    sigma, cells, level
):
    far, chances = law_of_sum(sigma, cells)
    wide = half_width(sigma, cells, level)
    covers = chances[far <= wide].sum()
    assert covers >= level - 1e-12
    assert covering(sigma, cells, level) <= covers + 1e-9
    if sigma >= 1:
        assert chances[far <= wide - 1].sum() < level + 3e-5
        assert covering(sigma, cells, level) == pytest.approx(covers, abs=3e-4)


def test_intervals_of_one_table_hold_together():
    """The errors of all measurements of a table add up to at most what is allowed, whichever is the last."""
    errors = [1 - interval_level("aim", 0.9, i) for i in range(1, 200)]
    assert sum(errors) < Fraction(1, 10)
    for last in (1, 2, 3, 20):
        rest = 1 - interval_level("aim", 0.9, last, final=True)
        assert sum(errors[: last - 1]) + rest == Fraction(1, 10)
    assert all(interval_level(one, 0.9, 3) == Fraction(9, 10) for one in ("mst", "tables"))


def test_an_adversary_who_shows_the_interval_that_misses_wins_as_often_as_allowed():
    """Three measurements, the third in the last round; false alarms below 1e-6 (5 standard errors)."""
    draws, sigma = 400_000, 30.0
    law = tc.mechanisms.DiscreteGaussian(sigma=sigma, sensitivity=1)
    levels = [interval_level("aim", 0.95, i, final=i == 3) for i in (1, 2, 3)]
    noise = np.abs(law.release_many(0, 3 * draws).reshape(3, draws))
    widths = np.array([half_width(sigma, 1, level) for level in levels])
    missed = (noise > widths[:, None]).any(axis=0).mean()
    margin = 5 * np.sqrt(0.05 * 0.95 / draws)
    assert 0.045 - margin < missed < 0.05 + margin
    naive = np.array([half_width(sigma, 1, 0.95)] * 3)  # what would be wrong: the full level each time
    assert (noise > naive[:, None]).any(axis=0).mean() > 0.13
