"""Intervals cover what they say they cover: the answer without noise, at least as often as stated.

2,000 draws per column; with true coverage 95 % fewer than 1,840 hits have probability below 1e-9.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from asking import draws_of

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
    hits = 0
    for columns in draws_of(data.agg(a=asked).plan(**target), DRAWS):
        cells = next(iter(columns.values()))
        low, high = cells.low[0], cells.high[0]
        slack = 0.51 if name == "q" else 1e-3 * abs(truth)  # candidates lie 1 apart; values on a grid
        hits += low - slack <= truth <= high + slack
    assert hits >= LEAST
