"""Calibration of inference: coverage of intervals and type I error of tests at 5 %, on untuned designs.

    python benchmarks/inference.py [runs] [part of a suite's name]

Suites called "fresh" and "second" were written down before anything was run on them; on the others, constants
were chosen. One line for each design; columns are n = 200, 2,000, 20,000, each at epsilon 0.1 / 1 / 10.
"refused" stands where most releases are refused with the n or the epsilon that would do.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import fresh_inference_designs as fresh
from support.inference_designs import EPSILONS, SIZES, SUITES


def main(runs: int, chosen: str) -> None:
    for name, judge, designs in SUITES + fresh.SUITES:
        if chosen not in name:
            continue
        for label, design in designs.items():
            rng, start, cells = np.random.default_rng(20261116), time.perf_counter(), []
            for n in SIZES:
                drawn = "fresh" not in name and "second" not in name and ("mean" in name or "ANOVA" in name)
                few = min(runs, max(200, 40_000_000 // n)) if drawn else runs  # row by row
                few = min(few, 1_000) if any(one in name for one in ("rank", "ANOVA", "indep", "G,")) else few
                found = [judge(rng, design, n, epsilon, few) for epsilon in EPSILONS]
                cells.append(" / ".join("refused" if x is None else f"{100 * x:.1f}" for x in found))
            spent = time.perf_counter() - start
            print(f"{name:30s} {label:34s} {'; '.join(cells)}   ({spent:.0f} s)", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000, sys.argv[2] if len(sys.argv) > 2 else "")
