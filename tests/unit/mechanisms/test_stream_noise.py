"""The mechanisms of streams: coefficients, sensitivity, agreement of rows, and predicted errors."""

import itertools
import json

import numpy as np
import pytest

from tacit import TacitError
from tacit.mechanisms import ToeplitzNoise, TreeNoise
from tacit.strategies import column_norm_squared, dial_coefficients, inverse_series


def dense(coefficients, days):
    c = list(coefficients) + [0] * days
    return np.array([[c[t - j] if t >= j else 0 for j in range(days)] for t in range(days)], dtype=object)


def blocks_of(tree, days):
    rows = [tree.sums([int(i == j) for i in range(days)], None)[0] for j in range(days)]
    return np.array(rows, dtype=object).T


def unit(days, **given):
    return ToeplitzNoise(days=days, rho=0.5, sensitivity_squared=1, **given)


LAYOUTS = [
    {"power": 0},
    {"power": 0.35},
    {"power": 0.5},
    {"power": 0.5, "bands": 5},
    {"power": 0.5, "inverse_bands": 4},
    {"power": 0.2, "inverse_bands": 9},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(("most", "apart"), [(1, 1), (2, 1), (2, 3), (3, 2), (4, 1), (12, 1)])
def test_no_choice_of_days_moves_the_rows_further_than_the_sensitivity(layout, most, apart):
    days = 9
    noise = unit(days, most_days=most, apart=apart, **layout)
    matrix = dense(noise.coefficients, days)
    largest = 0
    for k in range(1, most + 1):
        for chosen in itertools.combinations(range(days), k):
            if all(b - a >= apart for a, b in itertools.pairwise(chosen)):
                largest = max(largest, int((matrix[:, chosen].sum(axis=1) ** 2).sum()))
    assert noise.noise.sensitivity_squared == largest


def test_a_day_that_moves_by_less_or_in_the_other_direction_is_covered():
    rng, days = np.random.default_rng(5), 12
    noise = unit(days, power=0.5, most_days=3, apart=2)
    matrix = dense(noise.coefficients, days).astype(float)
    for _ in range(500):
        change, chosen = np.zeros((days, 3)), rng.permutation([0, 2, 4, 6, 8, 10])[:3]
        change[chosen] = rng.normal(size=(3, 3))
        change /= max(1.0, np.sqrt((change**2).sum(axis=1)).max())
        assert ((matrix @ change) ** 2).sum() <= noise.noise.sensitivity_squared * (1 + 1e-12)


@pytest.mark.parametrize(("days", "branching"), [(9, 2), (9, 3), (20, 4), (7, 8)])
@pytest.mark.parametrize("most", [1, 3])
def test_no_choice_of_days_moves_a_tree_further_than_its_sensitivity(days, branching, most):
    tree = TreeNoise(days=days, branching=branching, epsilon=1, sensitivity=2, most_days=most)
    columns = 2 * np.abs(blocks_of(tree, days)).sum(axis=0)
    assert max(columns) * most <= tree.noise.sensitivity
    assert tree.noise.sensitivity == 2 * most * tree.levels


@pytest.mark.parametrize("days", [30, 102, 365, 1000])
@pytest.mark.parametrize("power", [0, 0.1, 0.35, 0.5, 1])
def test_coefficients_are_whole_never_negative_and_never_rise(days, power):
    for bands in (None, (None, days // 4), (days // 4, None)):
        c = dial_coefficients(days, power, 256, *(bands or (None, None)))
        assert all(type(one) is int for one in c)
        assert c[0] == 256
        assert min(c) > 0
        assert list(c) == sorted(c, reverse=True)


@pytest.mark.parametrize(("days", "bands", "most"), [(102, 28, 2.35), (365, 97, 2.76), (1000, 282, 3.08)])
def test_running_totals_are_as_exact_as_promised(days, bands, most):
    assert unit(days, power=0.5, inverse_bands=bands).spread(None) <= most


def test_the_dial_balances_days_weeks_and_totals():
    found = [unit(365, power=0.35).spread(window) for window in (1, 7, None)]
    assert found == pytest.approx([1.30, 2.12, 3.25], abs=0.006)


@pytest.mark.parametrize(
    ("most", "apart", "layout", "error"),
    [
        (2, 1, {"power": 0.5}, 5.25),
        (4, 90, {"power": 0.5, "bands": 90}, 5.84),
        (12, 30, {"power": 0.5, "bands": 30}, 12.7),
        (52, 7, {"power": 0.5, "bands": 14}, 42.5),
        (30, 1, {"power": 0.3}, 52.1),
    ],
)
def test_people_who_come_back_cost_what_the_literature_says(most, apart, layout, error):
    assert unit(365, most_days=most, apart=apart, **layout).spread(None) == pytest.approx(error, rel=0.005)


@pytest.mark.parametrize(
    "noise",
    [
        unit(20, power=0.5),
        unit(20, power=0.3, bands=4),
        unit(20, power=0),
        TreeNoise(days=20, branching=3, epsilon=5, sensitivity=1),
    ],
    ids=["dense", "banded", "days", "tree"],
)
def test_rows_drawn_day_by_day_are_the_rows_drawn_at_once(noise, monkeypatch):
    monkeypatch.setattr(type(noise.noise), "release", lambda self, value: np.asarray(value))
    value = np.random.default_rng(3).integers(0, 50, (20, 2, 3))
    memory, drawn = b"", []
    for new in np.split(value, [1, 2, 5, 5, 12, 19]):
        rows, memory = noise.release_next(new.tolist(), memory)
        drawn += rows
    assert np.array_equal(np.array(drawn), noise.release(value))
    assert len(drawn) == noise.rows(20)
    assert np.allclose(noise.estimate(np.array(drawn, dtype=float)), value)
    assert json.loads(memory)["days"] == 20
    with pytest.raises(TacitError, match="days that are left"):
        noise.release_next([[[1, 1, 1]] * 2], memory)


def test_a_banded_dial_remembers_no_more_days_than_it_has_bands():
    noise = unit(50, power=0.5, bands=4)
    _, memory = noise.release_next([[n] for n in range(40)], b"")
    assert json.loads(memory)["past"] == [[37], [38], [39]]


def test_sums_beyond_64_bits_are_exact(monkeypatch):
    noise = ToeplitzNoise(days=3, power=0.5, rho=1, sensitivity_squared=1)
    monkeypatch.setattr(type(noise.noise), "release", lambda self, value: np.asarray(value))
    rows, _ = noise.release_next([[2**62], [2**62]], b"")
    assert rows == [[256 * 2**62], [(256 + 128) * 2**62]]


@pytest.mark.parametrize(
    "noise",
    [
        unit(40, power=0.35),
        unit(40, power=0.5, inverse_bands=8),
        TreeNoise(days=40, branching=4, epsilon=1, sensitivity=1),
    ],
    ids=["dial", "inverse", "tree"],
)
def test_predicted_errors_are_those_of_draws(noise):
    runs = 4000
    drawn = noise.release_many([[0]] * 40, runs)[..., 0]
    days = noise.estimate(np.moveaxis(drawn, 0, 1).astype(float))
    totals = np.cumsum(days, axis=0)
    for window, found in ((1, days), (7, np.vstack([totals[:7], totals[7:] - totals[:-7]])), (None, totals)):
        spread = np.sqrt((found**2).mean(axis=1))
        laws = [noise.noise_on(window, day, 40) for day in (1, 8, 29, 40)]
        stated = [np.sqrt(law.normal**2 + 2 * sum(one**2 for one in law.laplace)) for law in laws]
        assert spread[[0, 7, 28, 39]] == pytest.approx(stated, rel=0.08)
        measured = np.sqrt((found**2).mean())
        if isinstance(noise, ToeplitzNoise):
            assert measured == pytest.approx(noise.spread(window), rel=0.05)
        else:  # later blocks improve the estimates of days that were released before
            assert measured <= 1.05 * noise.spread(window)


def test_the_inverse_undoes_the_dial():
    c = dial_coefficients(60, 0.4, 256, None, None)
    both = np.convolve(c, inverse_series(c, 60))[:60]
    assert both == pytest.approx([1] + [0] * 59, abs=1e-12)


def test_equal_mechanisms_have_equal_documents_and_the_cost_is_within_what_was_asked():
    one, two = (unit(30, power=0.5, most_days=2, apart=k) for k in (3, 4))
    assert one.to_json() == unit(30, power=0.5, most_days=2, apart=3).to_json()
    assert one.to_json() != two.to_json()
    assert one.cost.rho <= 0.5
    tree = TreeNoise(days=30, branching=5, epsilon=0.7, sensitivity=3)
    assert tree.cost.epsilon(delta=0) <= 0.7


@pytest.mark.parametrize(
    "wrong",
    [
        {"days": 0, "power": 0.5},
        {"days": 10, "power": 2},
        {"days": 10, "power": -1},
        {"days": 10, "power": 0.5, "most_days": 0},
        {"days": 10, "power": 0.5, "apart": 0},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(TacitError) as refusal:
        unit(**wrong)
    assert refusal.value.code == "bad-parameter"


def test_coefficients_that_rise_are_refused_where_people_come_back():
    with pytest.raises(TacitError, match="never rise"):
        column_norm_squared((1, 2), 5, 2, 1)
    assert column_norm_squared((1, 2), 5, 1, 1) == 5


def test_the_chance_to_find_one_person_at_the_level_of_events_is_much_larger():
    """The trap: thirty days of one person under a sensitivity that covers one day."""
    event, person = unit(365, power=0.5), unit(365, power=0.5, most_days=30)
    ratio = person.noise.sensitivity_squared / event.noise.sensitivity_squared
    assert ratio**0.5 == pytest.approx(39.1 / 1.72, rel=0.05)


@pytest.mark.parametrize(
    ("short", "long", "most"),
    [
        ({"power": 0.5, "inverse_bands": 99}, {"power": 0.5, "inverse_bands": 986}, 1.11),
        ({"power": 0.35}, {"power": 0.35}, 1.03),
    ],
)
def test_a_horizon_that_is_ten_times_too_long_costs_little(short, long, most):
    def error_of_the_first_year(noise):
        series = np.cumsum(inverse_series(noise.coefficients, noise.days))
        return float(noise.scale) * np.sqrt(np.cumsum(series**2)[:365].mean())

    errors = [error_of_the_first_year(unit(days, **how)) for days, how in ((365, short), (3650, long))]
    assert errors[0] < errors[1] < most * errors[0]


@pytest.mark.parametrize(
    ("days", "branching", "levels"), [(30, 3, 3), (100, 2, 4), (50, 7, 2), (365, 8, 3), (5, 3, 1)]
)
@pytest.mark.parametrize("window", [1, 7, 13, None])
def test_the_stated_error_of_a_tree_is_that_of_its_weights(days, branching, levels, window):
    noise = TreeNoise(days=days, branching=branching, levels=levels, epsilon=1, sensitivity=1)
    squares = [(noise.weights(window, day, day) ** 2).sum() for day in range(1, days + 1)]
    assert noise.spread(window) == pytest.approx(noise._deviation() * np.mean(squares) ** 0.5, rel=1e-9)
