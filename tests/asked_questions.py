"""Every declared question whose plan can be rebuilt, asked of small data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import tacit as tc
from tacit.tables import EXAMPLE_HOSPITALS, example_visits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import Dataset, Question

__all__ = ["DATASETS", "QUESTIONS", "asked"]

_BUDGET = tc.Budget(epsilon=10**6, delta=1e-2)


def _table(ledger: Any) -> Dataset:
    visits = pd.read_parquet(example_visits()).groupby("patient_id").head(1)
    return tc.protect(
        visits, name="visits", unit="patient_id", budget=_BUDGET, ledger=ledger, limits={"rows": 1},
        bounds={"length_of_stay": (0, 30), "age": (0, 100)}, keys={"hospital": EXAMPLE_HOSPITALS},
    )  # fmt: skip


def _graph(ledger: Any) -> Dataset:
    rows = pd.DataFrame(
        {"a": ["ana", "ben", "eva", "tom"], "b": ["ben", "eva", "ana", "ana"], "w": [1, 2, 3, 4]}
    )
    club = {"ana": "x", "ben": "x", "eva": "y", "tom": "y"}
    return tc.graph(
        rows, name="friends", unit="edge", nodes=list(club), groups={"club": club}, weight=("w", (0, 5)),
        budget=_BUDGET, ledger=ledger,
    )  # fmt: skip


def _points(ledger: Any) -> Dataset:
    return tc.points(
        tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites", box=tc.maps.EXAMPLE_BOX,
        budget=_BUDGET, ledger=ledger,
    )  # fmt: skip


def _trips(ledger: Any) -> Dataset:
    rows = pd.DataFrame({"p": [1, 2, 3], "home": ["A", "A", "B"], "work": ["B", "B", "A"]})
    return tc.maps.trips(
        rows,
        origin="home",
        destination="work",
        unit="p",
        name="trips",
        limits={"rows": 1},
        budget=_BUDGET,
        ledger=ledger,
    )


def _cohort(ledger: Any) -> Dataset:
    calls = np.random.default_rng(3).integers(0, 3, (40, 12))
    return tc.genotypes(calls, unit="person", name="cohort", people=40, budget=_BUDGET, ledger=ledger)


def _stream(ledger: Any) -> Dataset:
    days = tc.stream(
        None, name="flu", level="event", start="2026-01-01", days=7, budget=_BUDGET, ledger=ledger
    )
    days.append("2026-01-01", pd.DataFrame({"ill": [1, 0, 1]}))
    return days


#: How a dataset of each kind is declared, on a ledger.
DATASETS: Mapping[str, Callable[[Any], Dataset]] = {
    "table": _table, "graph": _graph, "points": _points, "trips": _trips, "cohort": _cohort,
    "stream": _stream,
}  # fmt: skip

_PURE: dict[str, Any] = {"epsilon": 1}
_BOTH: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
_TREE = {"city": EXAMPLE_HOSPITALS[:2], "land": EXAMPLE_HOSPITALS[2:]}

#: The question and a goal, by kind of dataset and name.
QUESTIONS: Mapping[tuple[str, str], tuple[Callable[[Any], Question[Any]], Mapping[str, Any]]] = {
    ("table", "agg"): (lambda d: d.group_by("hospital").agg(n=tc.count(), m=tc.mean("age")), _PURE),
    ("table", "suggest_limits"): (lambda d: d.suggest_limits(), _PURE),
    ("table", "measure_cut"): (lambda d: d.measure_cut(column="age"), _PURE),
    ("table", "crosstabs"): (lambda d: d.crosstabs(["hospital", "age"], bins={"age": 3}), _BOTH),
    ("table", "ranges"): (lambda d: d.ranges("age", bins=8), _PURE),
    ("table", "prefixes"): (lambda d: d.prefixes("age", bins=8), _PURE),
    ("table", "hierarchy"): (lambda d: d.hierarchy(["place", "hospital"], tree=_TREE), _PURE),
    ("table", "regress"): (lambda d: d.regress("length_of_stay", on=["age"]), _BOTH),
    ("table", "survival"): (
        lambda d: d.with_columns(gone="age > 50").survival(
            time="length_of_stay", event="gone", bins=[0, 5, 10]
        ),
        _PURE,
    ),
    ("table", "synthesize"): (lambda d: d.synthesize(["hospital", "age"], bins={"age": 3}), _BOTH),
    ("graph", "edges"): (lambda d: d.edges(), _PURE),
    ("graph", "degrees"): (lambda d: d.degrees(), _PURE),
    ("graph", "degree_histogram"): (lambda d: d.degree_histogram(largest=3), _PURE),
    ("graph", "triangles"): (lambda d: d.triangles(), _PURE),
    ("graph", "wedges"): (lambda d: d.wedges(), _PURE),
    ("graph", "clustering"): (lambda d: d.clustering(), _PURE),
    ("graph", "stars"): (lambda d: d.stars(3), _PURE),
    ("graph", "mixing"): (lambda d: d.mixing("club"), _PURE),
    ("graph", "degrees_by"): (lambda d: d.degrees_by("club", largest=2), _PURE),
    ("graph", "densest"): (lambda d: d.densest("club"), _PURE),
    ("graph", "weights"): (lambda d: d.weights(), {"rho": 1}),
    ("points", "grid"): (lambda d: d.grid(4, 5), {"rho": 1}),
    ("points", "districts"): (lambda d: d.districts(tc.maps.example_districts(), parents="region"), _PURE),
    ("points", "h3"): (lambda d: d.h3(3), _PURE),
    ("points", "tree"): (lambda d: d.tree(depth=3), _PURE),
    ("points", "adaptive_grid"): (lambda d: d.adaptive_grid(), _PURE),
    ("points", "hottest"): (lambda d: d.hottest(2), _PURE),
    ("trips", "flows"): (lambda d: d.flows(["A", "B"]), _PURE),
    ("cohort", "frequencies"): (lambda d: d.frequencies(), {"rho": 1}),
    ("cohort", "hardy_weinberg"): (lambda d: d.hardy_weinberg(), {"rho": 1}),
    ("cohort", "missingness"): (lambda d: d.missingness(), {"rho": 1}),
    ("cohort", "components"): (lambda d: d.components(2), {"rho": 1}),
    ("stream", "daily"): (lambda d: d.daily(cases=tc.count()), _PURE),
}  # fmt: skip
#: Declared questions that need other data than these, and where they are tested.
ELSEWHERE = {
    ("graph", "reciprocity"): "tests/unit/graphs/test_questions.py, on a graph with directions",
    ("cohort", "top_snps"): "tests/unit/genomes, on a cohort of phenotypes",
    ("cohort", "summary_statistics"): "tests/unit/genomes, on a cohort of phenotypes",
    ("stream", "silent_alarm"): "tests/unit/streams/test_alarms.py",
    ("stream", "series"): "tests/unit/service/drawer/test_streams.py, as services ask it",
}


def asked(kind: str, name: str, data: Any) -> tuple[Question[Any], Mapping[str, Any]]:
    """Ask a question of a dataset of its kind; return it with a goal."""
    ask, goal = QUESTIONS[kind, name]
    return ask(data), goal
