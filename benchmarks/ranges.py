"""Ranges and running totals: error of the optimal whole-number sums beside cells, binary tree and Haar.

Run: python benchmarks/ranges.py [cells ...]

One run: for each number of cells the predicted root mean square error at rho 1/2 (sigma = sensitivity = 1 in
real numbers), the error seen in exact draws, and the CPU seconds of planning. Prints one JSON line for each.
"""

from __future__ import annotations

import json
import math
import sys
import time

import numpy as np

from tacit.mechanisms import StrategyNoise
from tacit.strategies import RangeStrategy, Workload, factored, factorise, tree_of_cells

DRAWS = 4000


def haar(cells):
    """The Haar wavelet in whole numbers: the total, and the differences of the halves of every block."""
    rows = [np.ones(cells, np.int64)]
    width = cells
    while width > 1:
        for first in range(0, cells, width):
            row = np.zeros(cells, np.int64)
            row[first : first + width // 2] = 1
            row[first + width // 2 : first + width] = -1
            rows.append(row)
        width //= 2
    return RangeStrategy(np.array(rows))


def seen(noise, work):
    """Return the root mean square error over draws, over at most 1,000 of the asked ranges."""
    asked = work.asked()
    some = asked[np.random.default_rng(1).permutation(len(asked))[:1000]]
    weights = noise.strategy.weights(some[:, 0], some[:, 1])
    x = np.zeros(work.cells, np.int64)
    drawn = noise.release_many(x, DRAWS).astype(float) @ weights.T
    return math.sqrt(float((drawn**2).mean()))


def measured(cells, kind):
    work = Workload(cells, kind)
    start = time.process_time()
    best = factored(work)
    planning = time.process_time() - start
    bounds = factorise(work.gram())
    strategies = {
        "optimal": best,
        "cells alone": tree_of_cells(cells, 2, 1),
        "binary tree": tree_of_cells(cells, 2, int(math.log2(cells)) + 1),
        "haar": haar(cells),
    }
    found = {}
    for name, strategy in strategies.items():
        noise = StrategyNoise(strategy, rho=0.5)
        found[name] = {"predicted": round(noise.spread(work), 4), "seen": round(seen(noise, work), 3)}
    return {
        "cells": cells,
        "asked": kind,
        "no linear measurements below": round(math.sqrt(bounds.lower / work.questions), 6),
        "lost to whole numbers": f"{best.lost * 100:.3f} %",
        "planning, CPU s": round(planning, 2),
        **found,
    }


def main() -> None:
    """Print the table."""
    sizes = [int(one) for one in sys.argv[1:]] or [16, 128, 256]
    for cells in sizes:
        for kind in ("prefixes", "ranges"):
            print(json.dumps(measured(cells, kind)), flush=True)


if __name__ == "__main__":
    main()
