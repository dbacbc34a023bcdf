"""The attack on floating-point noise (Mironov 2012, Haney 2022): the reachable doubles reveal the input."""

from fractions import Fraction

import numpy as np
import pytest

from tacit import noise

DRAWS = 400_000
EVENT = "output is not a multiple of 2^-53"


def event_rate(outputs):
    """How often the event happens; scaling a double by 2^53 is exact."""
    scaled = outputs * 2.0**53
    return float((scaled != np.floor(scaled)).mean())


@pytest.mark.parametrize("law", ["laplace", "normal"])
def test_textbook_noise_separates_zero_from_one(law):
    draw = getattr(np.random.default_rng(), law)
    at_zero, at_one = (event_rate(x + draw(size=DRAWS)) for x in (0.0, 1.0))
    assert at_zero > 0.2
    assert at_one == 0


def release(x, draw, grid, scale):
    """Law 1 in one line: quantise, add integer noise, convert once."""
    return noise.from_grid(noise.quantise(x, grid) + draw(scale / grid, DRAWS), grid)


@pytest.mark.parametrize("draw", [noise.discrete_laplace, noise.discrete_gaussian])
@pytest.mark.parametrize("grid", [Fraction(1, 2**10), Fraction(1, 2**53), Fraction(1, 100)])
def test_exact_noise_on_a_grid_reaches_the_same_numbers(draw, grid):
    """All outputs are multiples of the grid (as doubles), whatever the input."""
    for x in (0.0, 1.0):
        outputs = release(x, draw, grid, scale=Fraction(1))
        multiples = np.round(outputs / float(grid))
        if grid.denominator < 2**53:
            assert (noise.from_grid(multiples.astype(np.int64), grid) == outputs).all()
        if (2**53 * grid).denominator == 1:
            assert event_rate(outputs) == 0


def test_a_grid_finer_than_the_event_hides_behind_epsilon():
    """On a grid of 2^-55 the event happens, at rates within exp(epsilon): epsilon = 1 here."""
    grid = Fraction(1, 2**55)
    at_zero, at_one = (event_rate(release(x, noise.discrete_laplace, grid, Fraction(1))) for x in (0.0, 1.0))
    assert at_one > 0.02
    slack = 6.2 * np.sqrt(0.25 / DRAWS) * (1 + np.e)  # significance below 1e-9
    assert at_zero <= np.e * at_one + slack
    assert at_one <= np.e * at_zero + slack
