"""Every declared question whose plan can be rebuilt, asked of small data."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import tacit as tc
from tacit.tables import EXAMPLE_HOSPITALS, example_visits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import Dataset, Question

__all__ = ["BUDGET", "DATASETS", "QUESTIONS", "asked", "data_for"]

#: The budget of every dataset.
BUDGET = tc.Budget(epsilon=10**6, delta=1e-2)


def _facts(ledger: Any, name: str, shared: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    """Return what a dataset is declared with, where it does not share the account of another one."""
    return {"name": name, "budget": BUDGET, "ledger": ledger, **own, **shared}


def _table(ledger: Any, source: Any = None, **shared: Any) -> Dataset:
    facts = _facts(ledger, "visits", shared, unit="patient_id", limits={"rows": 1})
    if source is None:
        visits = pd.read_parquet(example_visits()).groupby("patient_id").head(1)
        source = visits.rename(columns={"patient_id": str(facts["unit"])})
    return tc.protect(
        source, bounds={"length_of_stay": (0, 30), "age": (0, 100)}, keys={"hospital": EXAMPLE_HOSPITALS},
        **facts,
    )  # fmt: skip


def _graph(ledger: Any, source: Any = None, *, directed: bool = False, **shared: Any) -> Dataset:
    rows = {"a": ["ana", "ben", "eva", "tom"], "b": ["ben", "eva", "ana", "ana"], "w": [1, 2, 3, 4]}
    club = {"ana": "x", "ben": "x", "eva": "y", "tom": "y"}
    return tc.graph(
        pd.DataFrame(rows) if source is None else source, nodes=list(club), groups={"club": club},
        weight=("w", (0, 5)), directed=directed, **_facts(ledger, "friends", shared, unit="edge"),
    )  # fmt: skip


def _points(ledger: Any, source: Any = None, **shared: Any) -> Dataset:
    facts = _facts(ledger, "sites", shared, unit="finder", limits={"rows": 1})
    if source is None:
        source = pd.DataFrame(tc.maps.example_sites(), columns=["lat", "lon"])
        source[str(facts["unit"])] = range(len(source))
    return tc.points(source, "lat", "lon", box=tc.maps.EXAMPLE_BOX, **facts)


def _trips(ledger: Any, source: Any = None, **shared: Any) -> Dataset:
    facts = _facts(ledger, "trips", shared, unit="rider", limits={"rows": 1})
    if source is None:
        rows = {str(facts["unit"]): [1, 2, 3], "home": ["A", "A", "B"], "work": ["B", "B", "A"]}
        source = pd.DataFrame(rows)
    return tc.maps.trips(source, origin="home", destination="work", **facts)


_CALLS = np.random.default_rng(3).integers(0, 3, (40, 12))


def _cohort(ledger: Any, source: Any = _CALLS, **shared: Any) -> Dataset:
    return tc.genotypes(source, **_facts(ledger, "cohort", shared, unit="person"))


def _patients(ledger: Any, source: Any = _CALLS, **shared: Any) -> Dataset:
    facts = _facts(ledger, "patients", shared, people=40, status="public")
    return tc.genotypes(source, phenotype=np.arange(40) % 2, **facts)


def _phenotypes(ledger: Any, source: Any = (0, 1) * 20, **shared: Any) -> Dataset:
    return tc.genotypes(_CALLS, phenotype=source, **_facts(ledger, "disease", shared, unit="phenotype"))


def _stream(ledger: Any, source: Any = None, **shared: Any) -> Dataset:
    facts = _facts(ledger, "flu", {"level": "event", **shared})
    stream = tc.stream(None, start="2026-01-01", days=7, types={"ill": "number"}, **facts)
    who = {} if facts["level"] == "event" else {facts["unit"]: [1, 2, 3]}
    for day, rows in enumerate([{"ill": [1, 0, 1], **who}] if source is None else source, 1):
        stream.append(f"2026-01-0{day}", pd.DataFrame(rows))
    return stream


#: How datasets are declared on a ledger, by kind; some questions need another one of their kind.
DATASETS: Mapping[str, Callable[..., Dataset]] = {
    "table": _table, "graph": _graph, "points": _points, "trips": _trips, "cohort": _cohort,
    "stream": _stream, "directed graph": partial(_graph, directed=True), "patients": _patients,
    "phenotypes": _phenotypes,
}  # fmt: skip
_OTHER = {
    ("graph", "reciprocity"): "directed graph",
    ("cohort", "top_snps"): "patients",
    ("cohort", "summary_statistics"): "phenotypes",
}

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
    ("graph", "reciprocity"): (lambda d: d.reciprocity(), _PURE),
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
    ("cohort", "top_snps"): (lambda d: d.top_snps(1, threshold=0.05), _PURE),
    ("cohort", "summary_statistics"): (lambda d: d.summary_statistics(), _PURE),
    ("stream", "daily"): (lambda d: d.daily(cases=tc.count()), _PURE),
    ("stream", "silent_alarm"): (lambda d: d.silent_alarm(baseline=5), _PURE),
    ("stream", "series"): (lambda d: d.series(measure="count", where="ill = 1"), _PURE),
}  # fmt: skip


def data_for(kind: str, name: str) -> str:
    """Return the name of the dataset that is asked a question."""
    return _OTHER.get((kind, name), kind)


def asked(kind: str, name: str, data: Any) -> tuple[Question[Any], Mapping[str, Any]]:
    """Ask a question of its dataset; return it with a goal."""
    ask, goal = QUESTIONS[kind, name]
    return ask(data), goal
