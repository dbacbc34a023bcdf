"""Intervals cover what they say they cover: the answer without noise, at least as often as stated.

2,000 draws per column; with true coverage 95 % fewer than 1,840 hits have probability below 1e-8. Of 4,000
draws, fewer than 93 % or more than 97 % have probability below 2e-8.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.asking import cells_of
from tacit.mechanisms import linear_half_width

DRAWS, LEAST = 2_000, 1_840
RNG = np.random.default_rng(8)
FRAME = pd.DataFrame({"pid": np.arange(400), "x": RNG.gamma(2, 3, 400).clip(0, 30).round(2)})
ASKED = {
    "n": (tc.count(), 400),
    "s": (tc.sum("x"), FRAME["x"].sum()),
    "m": (tc.mean("x"), FRAME["x"].mean()),
    "v": (tc.variance("x"), FRAME["x"].var()),
    "sd": (tc.std("x"), FRAME["x"].std()),
    "h": (tc.histogram("x", [0, 5, 30]), None),
    "q": (tc.quantiles("x", [0.5], candidates=range(31)), None),
}


@pytest.mark.parametrize("target", [{"epsilon": 0.5}, {"rho": 0.02}])
@pytest.mark.parametrize("name", ASKED)
def test_intervals_cover_the_noise(name, target):
    asked, truth = ASKED[name]
    data = tc.protect(
        FRAME, unit="pid", bounds={"x": (0, 30)}, limits={"rows": 1}, budget=tc.Budget(epsilon=1)
    )
    if name == "h":
        truth = int((FRAME["x"] < 5).sum())
    if name == "q":
        truth = float(FRAME["x"].quantile(0.5, interpolation="lower"))
    cells = next(iter(cells_of(data.agg(a=asked).plan(**target), DRAWS).values()))
    slack = 0 if name == "q" else 1e-3 * abs(truth)  # sums are of values on a grid
    assert sum(c.low - slack <= truth <= c.high + slack for c in cells) >= LEAST


# -- how often and how narrow: the law of the tested statistic is known for every number of rows

#: Values in [0, 1] of n rows.
LAWS = {
    "beta": lambda rng, n: rng.beta(2, 5, n),
    "skewed": lambda rng, n: rng.exponential(0.05, n).clip(0, 1),
    "two points": lambda rng, n: (rng.random(n) < 0.1).astype(float),
    "at a bound": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
    "half and half": lambda rng, n: (np.arange(n) % 2).astype(float),
    "one value": lambda rng, n: np.full(n, 0.3),
}
MANY = 4_000


def asked_of(values, **target):
    frame = pd.DataFrame({"pid": np.arange(len(values)), "x": values})
    data = tc.protect(
        frame, unit="pid", bounds={"x": (0, 1)}, limits={"rows": 1}, budget=tc.Budget(epsilon=10**6)
    )
    alone = cells_of(data.agg(m=tc.mean("x", spread=False)).plan(**target), MANY)["m"]
    usual = cells_of(data.agg(m=tc.mean("x")).plan(**target), MANY)["m"]
    return alone, usual, cells_of(data.agg(m=tc.mean("x"), sd=tc.std("x")).plan(**target), MANY)


def covered(cells, truth):
    return np.mean([c.low - 1e-9 <= truth <= c.high + 1e-9 for c in cells])


def on_grid(values, bits):
    """Return values as a statistic sees them, on its public grid."""
    return np.floor(values * 2**bits + 0.5) / 2**bits


def check_mean_and_std(law, n, target, noise):
    """Check coverage and width; ``noise`` is the scale of the Laplace noise, or its match in variance."""
    values = LAWS[law](np.random.default_rng(n), n)
    alone, usual, both = asked_of(values, **target)
    mean, coarse = on_grid(values, 30).mean(), on_grid(values, 16)
    # a mean at a bound fails on one side only: 97.5 %; where noise swamps the rows, sets may be whole
    most = 1 if n / noise < 20 else 0.985 if mean in {0, 1} or n / noise < 200 else 0.97
    for cells, truth in ((alone, mean), (usual, coarse.mean()), (both["m"], coarse.mean())):
        assert all(0 <= c.low <= c.value <= c.high <= 1 for c in cells)
        assert 0.93 <= covered(cells, truth) <= most
    assert all(0 <= c.low <= c.value <= c.high <= 0.75 for c in both["sd"])
    assert 0.925 <= covered(both["sd"], coarse.std(ddof=1)) <= (0.995 if n / noise >= 20 else 1)
    if n / noise >= 200 and mean > 0.05:
        # two parts hold a mean; three hold its spread too
        for cells, parts in ((alone, [mean, 1 - mean]), (usual, [mean, abs(0.5 - mean), 1 - mean])):
            widths = [(c.high - c.low) / 2 for c in cells]
            assert np.median(widths) == pytest.approx(width_of(np.array(parts) * noise, target) / n, rel=0.03)


def width_of(weights, target):
    """Return the half-width of a weighted sum of noises."""
    if "epsilon" in target:
        return linear_half_width(0.05, weights)
    return 1.96 * np.sqrt(2) * np.sqrt((weights**2).sum())


@pytest.mark.parametrize("law", LAWS)
def test_means_and_spreads_cover_as_often_as_they_say(law):
    check_mean_and_std(law, 400, {"epsilon": 0.5}, 2.0)


def test_gaussian_noise_is_covered_as_often_too():
    check_mean_and_std("beta", 400, {"rho": 0.125}, np.sqrt(2))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
@pytest.mark.parametrize("n", [5, 20, 50, 200, 2_000, 100_000])
@pytest.mark.parametrize("law", LAWS)
def test_means_and_spreads_cover_at_every_size(law, n, epsilon):
    check_mean_and_std(law, n, {"epsilon": epsilon}, 1 / epsilon)


@pytest.mark.long
@pytest.mark.parametrize("n", [5, 50, 2_000])
@pytest.mark.parametrize("law", LAWS)
def test_gaussian_noise_is_covered_at_every_size(law, n):
    check_mean_and_std(law, n, {"rho": 0.125}, np.sqrt(2))


def test_nobody_gets_the_whole_range_and_nothing_beyond_it():
    data = tc.protect(
        FRAME, unit="pid", bounds={"x": (0, 30)}, limits={"rows": 1}, budget=tc.Budget(epsilon=10**6)
    )
    plan = data.where("x < 0").agg(m=tc.mean("x"), sd=tc.std("x")).plan(epsilon=1)
    cells = cells_of(plan, MANY)
    for name, most in (("m", 30), ("sd", 30 * np.sqrt(0.5))):
        assert all(-1e-9 <= c.low <= c.value <= c.high <= most + 1e-9 for c in cells[name])
        assert all(c.high > c.low for c in cells[name])  # noise alone is never shown as certainty


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("law", ["spread", "gap", "ties"])
def test_quantiles_from_counts_are_tested_one_candidate_at_a_time(law, level):
    n = 2_000
    rng = np.random.default_rng(4)
    x = {
        "spread": rng.integers(0, 200, n),
        "gap": np.where(np.arange(n) < n // 2, rng.integers(10, 30, n), rng.integers(150, 170, n)),
        "ties": np.where(np.arange(n) < 0.6 * n, 20, 150),
    }[law].astype(float)
    data = tc.protect(
        pd.DataFrame({"pid": np.arange(n), "x": x}),
        unit="pid",
        limits={"rows": 1},
        budget=tc.Budget(epsilon=9),
    )
    asked = tc.quantiles("x", [level], candidates=range(200))
    (cells,) = cells_of(data.agg(q=asked).plan(epsilon=1), MANY).values()
    truth = np.quantile(x, level, method="inverted_cdf")
    assert covered(cells, truth) >= 0.93
    if law == "spread":  # the noise in half of 200 counts: 1.96 sqrt(200 0.25 2) = 20 rows, or 2 candidates
        assert np.mean([c.high - c.low for c in cells]) <= 8


@pytest.mark.parametrize("n", [0, 30, 2_000])
def test_two_picks_enclose_a_quantile(n):
    rng = np.random.default_rng(5)
    x = np.where(np.arange(n) % 2, rng.integers(0, 20, n), rng.integers(180, 200, n)).astype(float)
    frame = pd.DataFrame({"pid": np.arange(n + 1), "x": np.append(x, 500.0)})
    data = tc.protect(frame, unit="pid", limits={"rows": 1}, budget=tc.Budget(epsilon=9))
    asked = tc.median("x", candidates=range(200), interval=True)
    cells = cells_of(data.where("x < 400").agg(q=asked).plan(epsilon=1), MANY)["q"]
    truth = np.quantile(x, 0.5, method="inverted_cdf") if n else 100
    assert covered(cells, truth) >= 0.93


def test_a_single_pick_states_its_rank_and_not_an_interval():
    data = tc.protect(
        FRAME, unit="pid", bounds={"x": (0, 30)}, limits={"rows": 1}, budget=tc.Budget(epsilon=9)
    )
    plan = data.agg(q=tc.median("x", candidates=range(31))).plan(epsilon=1)
    release = plan.release()
    assert release.content.columns["q"].low == (None,)
    assert "rows from the exact position" in release.content.notes["q"]
