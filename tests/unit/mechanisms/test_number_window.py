"""The number window: an exact law on whole numbers, exactly unbiased, flat in the number."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.mechanisms.local._local_randomizer import UNIT_ODDS, log_up

m = tc.mechanisms

WINDOWS = {
    "mixed": m.NumberWindow(epsilon=1, steps=5, expected="any"),
    "usual": m.NumberWindow(epsilon=1, steps=5),
    "window alone": m.NumberWindow(epsilon=1, steps=3, duchi=False),
    "coin alone": m.NumberWindow(epsilon=0.5, steps=4),
    "narrowest": m.NumberWindow(epsilon=4, steps=2, expected="any"),
    "one step": m.NumberWindow(epsilon=2, steps=1, expected="any"),
    "own width": m.NumberWindow(epsilon=1.5, steps=4, half_width=3),
    "typical": m.NumberWindow(epsilon=1, steps=6, expected=0.1),
}


@pytest.fixture(params=WINDOWS)
def window(request):
    return WINDOWS[request.param]


def reports_of(window):
    """Every report that can be drawn, with its exact value on the scale -1 .. 1."""
    chance = window.window_chance
    found = {y: y * window.window_factor for y in range(-window.reach, window.reach + 1)} if chance else {}
    if chance < 1:
        found |= {side * (window.reach + 1): side * window.coin_value for side in (-1, 1)}
    return found


def test_the_cases_are_what_their_names_say():
    chances = {name: float(window.window_chance) for name, window in WINDOWS.items()}
    assert 0 < chances["mixed"] < 1
    assert 0 < chances["own width"] < 1
    assert chances["window alone"] == 1
    assert chances["coin alone"] == 0
    assert chances["usual"] == 1
    assert WINDOWS["narrowest"].half_width == 0


def test_the_law_adds_up_and_its_largest_ratio_is_that_of_the_odds(window):
    numbers = range(-window.steps, window.steps + 1)
    reports = reports_of(window)
    laws = {j: [window.probability(y, truth=j) for y in reports] for j in numbers}
    assert all(sum(law) == 1 for law in laws.values())
    ratios = [a / b for one in laws.values() for two in laws.values() for a, b in zip(one, two, strict=True)]
    assert max(ratios) == Fraction(window.odds, UNIT_ODDS)
    assert window.epsilon == log_up(Fraction(window.odds, UNIT_ODDS)) <= window.asked


def test_the_estimate_is_exactly_unbiased_and_has_the_stated_variance(window):
    values = reports_of(window)
    for j in range(-window.steps, window.steps + 1):
        x = Fraction(j, window.steps)
        law = {y: window.probability(y, truth=j) for y in values}
        assert sum(law[y] * values[y] for y in values) == x
        variance = sum(law[y] * values[y] ** 2 for y in values) - x * x
        assert window.variance(x) == pytest.approx(float(variance), rel=1e-12)


def test_the_mixture_has_the_same_variance_everywhere():
    for name in ("mixed", "narrowest", "own width"):
        window = WINDOWS[name]
        assert {window.variance(Fraction(j, 7)) for j in range(-7, 8)} == {window.variance(0)}


def test_estimates_are_the_exact_values_as_floats(window):
    values = reports_of(window)
    found = window.unbiased(list(values))
    assert found == pytest.approx([float(value) for value in values.values()], rel=1e-15)


def test_draws_follow_the_stated_law(window):
    from scipy.stats import chi2

    n = 60_000
    for j in (-window.steps, 0, 1):
        drawn = window.release(np.full(n, j))
        cells = [(float(window.probability(y, truth=j)), int((drawn == y).sum())) for y in reports_of(window)]
        assert sum(hits for _, hits in cells) == n
        square = sum((hits - n * p) ** 2 / (n * p) for p, hits in cells)
        assert square < chi2.isf(1e-9, len(cells) - 1)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 30])
@pytest.mark.parametrize("epsilon", [0.3, 1, 2, 4, 8])
def test_no_other_half_width_is_better(steps, epsilon):
    def worst(window):
        return max(window.variance(0), window.variance(1))

    every = [m.NumberWindow(epsilon=epsilon, steps=steps, half_width=h) for h in range(steps + 1)]
    best = m.NumberWindow(epsilon=epsilon, steps=steps, expected="any")
    coin = ((best.odds + UNIT_ODDS) / (best.odds - UNIT_ODDS)) ** 2
    assert worst(best) == pytest.approx(min(coin, *map(worst, every)), rel=1e-12)
    alone = [
        m.NumberWindow(epsilon=epsilon, steps=steps, half_width=h, duchi=False) for h in range(steps + 1)
    ]
    lone = m.NumberWindow(epsilon=epsilon, steps=steps, duchi=False, expected="any")
    assert worst(lone) == min(map(worst, alone))
    for typical in (0, 0.4, 1):
        chosen = m.NumberWindow(epsilon=epsilon, steps=steps, expected=typical).variance(typical)
        assert chosen == pytest.approx(
            min(coin - typical**2, *(one.variance(typical) for one in alone)), rel=1e-12
        )


# -- the table of the literature


def piecewise(epsilon, x):
    r = math.exp(epsilon / 2)
    return x * x / (r - 1) + (r + 3) / (3 * (r - 1) ** 2)


def duchi(epsilon, x):
    e = math.exp(epsilon)
    return ((e + 1) / (e - 1)) ** 2 - x * x


def hybrid(epsilon, x):
    """Wang et al. 2019: piecewise with probability 1 - exp(-epsilon/2) above 0.61, else Duchi's coin."""
    share = 1 - math.exp(-epsilon / 2) if epsilon > 0.61 else 0
    return share * piecewise(epsilon, x) + (1 - share) * duchi(epsilon, x)


@pytest.mark.parametrize(
    ("epsilon", "mixed", "width", "alone"),
    [
        (0.5, 16.671, None, 21.058),
        (1, 4.2671, 0.708, 5.0657),
        (2, 0.9817, 0.558, 1.0922),
        (4, 0.1557, 0.317, 0.1618),
        (6, 0.0344, 0.168, 0.0348),
    ],
)
def test_the_worst_variances_are_those_of_the_formulae(epsilon, mixed, width, alone):
    window = m.NumberWindow(epsilon=epsilon, steps=100_000, expected="any")
    assert max(window.variance(0), window.variance(1)) == pytest.approx(mixed, abs=6e-5, rel=3e-5)
    if width is None:
        assert window.half_width is None
    else:
        assert window.half_width / window.steps == pytest.approx(width, abs=1e-3)
    lone = m.NumberWindow(epsilon=epsilon, steps=100_000, duchi=False, expected="any")
    assert lone.variance(1) == pytest.approx(alone, abs=6e-5, rel=3e-5)


def test_the_integer_window_has_the_stated_variances():
    window = m.NumberWindow(epsilon=1, steps=1000, half_width=607, duchi=False)
    assert window.variance(0) == pytest.approx(3.6816, abs=5e-5)
    assert window.variance(1) == pytest.approx(5.2216, abs=5e-5)
    small = m.NumberWindow(epsilon=1, steps=2, half_width=1, duchi=False)
    assert small.variance(0) == pytest.approx(3.595, abs=5e-4)
    assert small.variance(1) == pytest.approx(4.953, abs=5e-4)


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 0.61, 0.7, 1, 1.5, 2, 3, 4, 6])
def test_the_worst_variance_is_below_those_of_duchi_piecewise_and_hybrid(epsilon):
    window = m.NumberWindow(epsilon=epsilon, steps=1000, expected="any")
    worst = max(window.variance(0), window.variance(1))
    for other in (duchi, piecewise, hybrid):
        assert worst <= max(other(epsilon, 0), other(epsilon, 1)) * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1, 2, 4, 6])
@pytest.mark.parametrize("x", [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1])
def test_where_a_typical_number_is_known_no_number_is_worse_than_the_better_of_duchi_and_piecewise(
    epsilon, x
):
    window = m.NumberWindow(epsilon=epsilon, steps=1000, expected=x)
    assert window.variance(x) <= min(duchi(epsilon, x), piecewise(epsilon, x)) * 1.001


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.6, 0.7, 0.75, 0.8, 0.82, 0.84, 0.9, 1, 1.2, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("steps", [30, 1000])
def test_a_mean_of_usual_numbers_is_within_a_twentieth_of_the_better_of_duchi_and_piecewise(epsilon, steps):
    """The standard error of a mean, for any numbers with a mean square up to 1/2 (spread evenly: 1/3)."""
    window = m.NumberWindow(epsilon=epsilon, steps=steps)
    for square in np.linspace(0, 0.5, 26):
        x = math.sqrt(square)
        better = min(duchi(epsilon, x), piecewise(epsilon, x))
        assert math.sqrt(window.variance(x) / better) <= 1.05


@pytest.mark.parametrize(("epsilon", "kind"), [(0.5, "coin"), (0.8, "mixed"), (1, "window"), (4, "window")])
def test_the_usual_choice_goes_from_the_coin_over_the_mixture_to_the_window(epsilon, kind):
    chance = m.NumberWindow(epsilon=epsilon, steps=1000).window_chance
    assert {"coin": chance == 0, "mixed": 0 < chance < 1, "window": chance == 1}[kind]


# -- input


@pytest.mark.parametrize(
    "values",
    [[-5, 5], (0, 1), np.array([1.0, -2.0]), pd.Series([3, 4]), np.array([3], np.int8), range(-5, 6)],
)
def test_numbers_of_every_container_are_read(values):
    assert len(WINDOWS["mixed"].release(values)) == len(values)
    assert WINDOWS["mixed"].release(values).dtype == np.int64


@pytest.mark.parametrize(
    "values",
    [[6], [-6], [0.5], [math.nan], [None], ["1"], [True], np.ma.array([1, 2], mask=[0, 1]), 6, None, [[1]]],
    ids=repr,
)
def test_a_number_outside_the_grid_is_refused_without_showing_it(values):
    with pytest.raises(TacitError) as refused:
        WINDOWS["mixed"].release(values)
    assert refused.value.code == "unknown-category"
    assert "6" not in str(refused.value)


@pytest.mark.parametrize(
    "reports", [[99], [-99], [0.5], [None], ["1"], [[1]], np.ma.array([1], mask=[1])], ids=repr
)
def test_a_report_that_cannot_be_drawn_is_not_counted(reports):
    for window in WINDOWS.values():
        with pytest.raises(TacitError) as refused:
            window.unbiased(reports)
        assert refused.value.code == "bad-report"
    with pytest.raises(TacitError):
        WINDOWS["coin alone"].unbiased([0])
    with pytest.raises(TacitError):
        WINDOWS["window alone"].unbiased([WINDOWS["window alone"].reach + 1])


def test_one_number_gives_one_report_and_nobody_gives_none(window):
    assert type(window.release(1)) is int
    assert window.release([]).shape == (0,)
    assert window.unbiased([]).shape == (0,)
    assert window.unbiased(window.release(np.array([], int))).shape == (0,)
