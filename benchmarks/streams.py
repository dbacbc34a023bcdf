"""Streams: a year of a million rows, and errors of days, 7-day sums and totals against theory and a peer.

Run: python benchmarks/streams.py [rows]     (default 1e6 rows over 365 days)
Errors are root mean squares over the days of the horizon, in rows, for counts at event level. The tree of
OpenDP is released once, at the end, when all days are known; Tacit releases each day as it comes in.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tacit as tc
from peers import ask_peer, peer_python
from tacit.core import members_of

DAYS = 365
RUNS = 400
PEER = f"""
import json, time
import numpy as np
import opendp.prelude as dp
dp.enable_features("contrib")
DAYS, RUNS = {DAYS}, {RUNS // 4}
b = dp.t.choose_branching_factor(DAYS)
space = dp.vector_domain(dp.atom_domain(T=int), size=DAYS), dp.l1_distance(T=int)
tree = dp.t.make_b_ary_tree(*space, leaf_count=DAYS, branching_factor=b)
made = lambda scale: tree >> dp.m.then_laplace(scale)
scale = dp.binary_search_param(made, d_in=1, d_out=1.0)
release, days = made(scale), dp.t.make_consistent_b_ary_tree(b)
found = np.array([days(release([0] * DAYS))[:DAYS] for _ in range(RUNS)], dtype=float)
totals = np.cumsum(found, axis=1)
weeks = totals - np.concatenate([np.zeros((RUNS, 7)), totals[:, :-7]], axis=1)
rms = lambda x: float(np.sqrt((x**2).mean()))
print(json.dumps({{"day": rms(found), "week": rms(weeks), "total": rms(totals), "branching": b}}))
"""


def year(rows: int) -> None:
    """Append and release every day of a year."""
    rng = np.random.default_rng(1)
    each = rows // DAYS
    with tempfile.TemporaryDirectory() as home:
        flu = tc.stream(
            Path(home) / "flu", name="flu", level="event", start="2026-01-01", days=DAYS,
            keys={"region": ["north", "south"]}, budget=tc.Budget(epsilon=1, delta=1e-6),
            ledger=Path(home) / "ledger",
        )  # fmt: skip
        flu.begin(flu.daily(cases=tc.count(), by="region").plan(epsilon=1, delta=1e-6))
        frames = [
            pd.DataFrame({"region": rng.choice(["north", "south"], each), "age": rng.integers(0, 90, each)})
            for _ in range(DAYS)
        ]
        wall, cpu = time.perf_counter(), time.process_time()
        for number, frame in enumerate(frames, 1):
            flu.append(flu.horizon.name(number), frame)
            last = flu.release(flu.horizon.name(number))
        first = time.perf_counter() - wall, time.process_time() - cpu
        series = last.to_pandas()
        both = time.perf_counter() - wall, time.process_time() - cpu
    assert len(series) == 2 * DAYS
    print(
        f"{DAYS} days of {each * DAYS:,} rows appended and released: {first[1]:.1f} CPU s, {first[0]:.1f} s"
    )
    print(f"and all days read with their intervals: {both[1]:.1f} CPU s, {both[0]:.1f} s (wanted: 120 s)")


def errors(focus: Any = "balanced", **goal: Any) -> tuple[dict[str, float], dict[str, float], str]:
    """Return the errors that a plan predicts, those of simulated noise, and the noise in words."""
    flu = tc.stream(
        None, name="flu", level="event", start="2026-01-01", days=DAYS,
        budget=tc.Budget(epsilon=1, delta=1e-6),
    )  # fmt: skip
    noise = members_of(flu.daily(cases=tc.count(), focus=focus).plan(**goal))[0].task.subject.noises[0]
    theory = {"day": noise.spread(1), "week": noise.spread(7), "total": noise.spread(None)}
    rows = noise.release_many([0] * DAYS, RUNS).astype(np.float64)
    found: dict[str, float] = {}
    for name, window in (("day", 1), ("week", 7), ("total", None)):
        squares = []
        for day in range(1, DAYS + 1):
            weights = noise.weights(window, day, day)
            squares.append(((rows[:, : len(weights)] @ weights) ** 2).mean())
        found[name] = float(np.sqrt(np.mean(squares)))
    return theory, found, noise.describe()


def compare() -> None:
    """Print errors and their ratios."""
    try:
        peer = ask_peer(peer_python("opendp==0.16.0", "numpy"), PEER, seconds=600)
    except Exception as problem:  # a benchmark without its peer is still one
        print(f"no peer: {problem}")
        peer = {}
    print(f"\n{'plan':36}{'':10}{'day':>8}{'7 days':>8}{'total':>8}")
    for goal in (
        {"epsilon": 1, "focus": "day"},
        {"epsilon": 1},
        {"epsilon": 1, "focus": "total"},
        {"epsilon": 1, "delta": 1e-6},
        {"epsilon": 1, "delta": 1e-6, "focus": "total"},
    ):
        theory, found, words = errors(**goal)
        name = ", ".join(f"{key} {value}" for key, value in goal.items())
        print(f"{name:36}{'found':10}" + "".join(f"{found[k]:8.2f}" for k in theory) + f"   {words}")
        print(f"{'':36}{'/theory':10}" + "".join(f"{found[k] / theory[k]:8.3f}" for k in theory))
        if peer:
            print(f"{'':36}{'/OpenDP':10}" + "".join(f"{found[k] / peer[k]:8.3f}" for k in theory))
    if peer:
        tree = "".join(f"{peer[k]:8.2f}" for k in ("day", "week", "total"))
        print(f"{'OpenDP, epsilon 1':36}{'found':10}{tree}   tree of {peer['branching']:g}, all days at once")


if __name__ == "__main__":
    year(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000)
    compare()
