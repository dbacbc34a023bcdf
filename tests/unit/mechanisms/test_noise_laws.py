"""What mechanisms say about their error is the lattice law's, by summation term by term."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import tacit as tc
from tacit.mechanisms._grid import default_grid, fine_grid, to_steps
from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw

CONFIDENCES = [0.9, 0.95, 0.99]
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(10), Fraction(1000), Fraction(12345)]


def coverage(law, steps: int) -> mpmath.mpf:
    """P(|k| <= steps), summed with 40 digits."""
    with mpmath.workdps(40):
        if isinstance(law, LaplaceLaw):
            a = mpmath.exp(-mpmath.mpf(law.scale.denominator) / law.scale.numerator)
            return (1 - a) / (1 + a) * (1 + 2 * (a - a ** (steps + 1)) / (1 - a))
        sigma = mpmath.mpf(law.sigma.numerator) / law.sigma.denominator
        weight = lambda k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2))  # noqa: E731
        reach = int(14 * sigma) + 14
        total = 1 + 2 * mpmath.fsum(weight(k) for k in range(1, reach))
        return (1 + 2 * mpmath.fsum(weight(k) for k in range(1, steps + 1))) / total


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_laplace_half_width_is_the_smallest_that_covers(scale, confidence):
    law = LaplaceLaw(scale)
    m = law.half_width(Fraction(str(confidence)))
    assert coverage(law, m) >= confidence
    assert m == 0 or coverage(law, m - 1) < confidence
    assert float(1 - coverage(law, m)) == pytest.approx(law.exceeds(m), rel=1e-12)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(
    "sigma", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40), Fraction(600)], ids=str
)
def test_the_gaussian_half_width_is_the_smallest_that_covers(sigma, confidence):
    law = GaussianLaw(sigma)
    m = law.half_width(Fraction(str(confidence)))
    assert coverage(law, m) >= confidence
    assert m == 0 or coverage(law, m - 1) < confidence
    assert float(1 - coverage(law, m)) == pytest.approx(law.exceeds(m), rel=1e-9)


def test_both_ways_of_summing_a_gaussian_tail_agree(monkeypatch):
    import tacit.mechanisms._noise_laws as lattice

    law = GaussianLaw(Fraction(500))
    direct = [law.exceeds(m) for m in (0, 10, 500, 1500, 3000)]
    monkeypatch.setattr(lattice, "_SUM_UP_TO", 1)
    assert [law.exceeds(m) for m in (0, 10, 500, 1500, 3000)] == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_variances_are_those_of_the_lattice(scale):
    k = np.arange(-40 * max(1, int(scale)) - 60, 40 * max(1, int(scale)) + 61, dtype=np.float64)
    for law, weight in (
        (LaplaceLaw(scale), np.exp(-np.abs(k) / float(scale))),
        (GaussianLaw(scale), np.exp(-(k**2) / (2 * float(scale) ** 2))),
    ):
        assert law.variance == pytest.approx(float((k**2 * weight).sum() / weight.sum()), rel=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [
        tc.mechanisms.Laplace(epsilon=0.5, sensitivity=1),
        tc.mechanisms.Laplace(epsilon=3, sensitivity=0.016),
        tc.mechanisms.Laplace(epsilon=1, sensitivity=10, grid=0.25, size=1),
        tc.mechanisms.Laplace(scale=2, sensitivity=1, grid=1, size=1),
        tc.mechanisms.Gaussian(sigma=3, sensitivity=1),
        tc.mechanisms.Gaussian(sigma=3, sensitivity=1, grid=0.5, size=1),
        tc.mechanisms.DiscreteLaplace(epsilon=0.2, sensitivity=2),
        tc.mechanisms.DiscreteGaussian(sigma=4, sensitivity=1),
    ],
    ids=repr,
)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_coverage_by_draws_is_the_exact_coverage(mechanism, confidence):
    """100,000 draws on the grid and off it; significance 1e-9 two-sided, by the exact binomial law."""
    from scipy.stats import binom

    grid, law = mechanism.lattice()
    exact = 1 - law.exceeds(law.half_width(Fraction(str(confidence))))
    assert exact >= confidence - 1e-12
    whole = isinstance(mechanism, tc.mechanisms.DiscreteLaplace | tc.mechanisms.DiscreteGaussian)
    for value in (17,) if whole else (17.0, 17.0 + float(grid) * 0.3):
        low, high = mechanism.interval(mechanism.release_many(value, 100_000), confidence)
        inside = int(np.count_nonzero((low <= value) & (value <= high)))
        assert binom.cdf(inside, 100_000, exact) > 1e-9 / 2
        assert binom.sf(inside - 1, 100_000, exact) > 1e-9 / 2


def test_intervals_of_arrays_use_the_law_of_arrays():
    m = tc.mechanisms.Laplace(epsilon=1, sensitivity=1)
    many = m.release(np.zeros(1000))
    low, high = m.interval(many, 0.95)
    assert np.all(high - low >= 2 * m.error(0.95))
    assert m.error(0.95, size=1000) == pytest.approx(m.error(0.95), rel=1e-5)
    assert m.error(0.95, size=1000, together=True) > 2 * m.error(0.95)


# -- the grid ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivity", [1, 3, 0.016, 0.024, 1e-9, 1e9, 0.1 + 0.2, Fraction(1, 7)])
@pytest.mark.parametrize("scale", [1e-3, 1, 123.456, 1e7])
def test_the_default_grid_divides_the_sensitivity_and_is_fine(sensitivity, scale):
    from tacit.exact import rational

    s, b = rational("s", sensitivity), rational("b", scale)
    grid, steps = default_grid(s, b)
    assert grid * steps == s
    assert b / grid >= 2**20 or steps == 1
    if s.numerator <= 2**20:
        assert (1 / grid).denominator == 1  # whole numbers lie on the grid


def test_fine_grids_are_powers_of_two_and_fine_enough():
    for s in (Fraction(1), Fraction(1, 3), Fraction(10**9), Fraction(1, 10**9)):
        for size in (1, 7, 10**6):
            grid = fine_grid(s, size)
            assert s / grid >= 2**20 * size
            assert grid.numerator.bit_count() == grid.denominator.bit_count() == 1
            assert s / grid < 2**22 * size


def test_rounding_moves_by_no_more_steps_than_the_value_exhaustively():
    """floor(x/g + 1/2): every pair of eighths within 3 apart, grids 1 and 1/3."""
    for grid in (Fraction(1), Fraction(1, 3)):
        for a in range(-24, 25):
            for b in range(a, a + 25):
                x, y = Fraction(a, 8), Fraction(b, 8)
                assert to_steps(y, grid) - to_steps(x, grid) <= math.ceil((y - x) / grid)


def test_arrays_beyond_64_bits_stay_exact():
    m = tc.mechanisms.Laplace(epsilon=1, sensitivity=1)
    released = m.release(np.array([1e30, -1e300]))
    assert released[0] == pytest.approx(1e30)
    assert released[1] == pytest.approx(-1e300)
    assert tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1).release([2**80, 3])[0] > 2**79


def test_arrays_and_numbers_have_one_law():
    """Arrays get the scalar law up to a millionth: same support spacing rule, same cost, wider by a hair."""
    m = tc.mechanisms.Laplace(epsilon=0.5, sensitivity=1)
    grid1, law1 = m.lattice()
    for size in (2, 100, 10**6):
        grid, law = m.lattice(size)
        assert grid * law.scale >= grid1 * law1.scale
        assert grid * law.scale <= grid1 * law1.scale * Fraction(1_000_005, 1_000_000)
        assert 1 / grid + size <= law.scale * Fraction(1, 2)  # s/g + d <= N = scale * epsilon
