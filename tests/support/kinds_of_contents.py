"""One release of every kind of content, for tests of what they show. None of them needs much computation."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import tacit as tc
from tacit.core import AnswerBatch, AnswerTable, BatchAnswer, Cells, Certificate, Content
from tacit.maps._flows import flow_table

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(4)
BUDGET = tc.Budget(rho=10**6, delta=1e-6)
#: Kinds that are sent to somebody who computes with them, and hold no number to look at.
WITHOUT_FIGURE = {
    "federated-round": "the masked or noisy sums of one hospital",
    "survey-report": "the randomized answers of one respondent",
}


def answer(
    groups: int = 5, kind: type[AnswerTable] = AnswerTable, key: str = "ward", **more: Any
) -> AnswerTable:
    value = tuple(float(20 * np.sin(i) + 30) for i in range(groups))
    cells = Cells(value, tuple(v - 9 for v in value), tuple(v + 9 for v in value))
    names = more.pop("names", tuple(f"ward {chr(65 + i)}" for i in range(groups)))
    return kind({key: names}, {"n": cells}, 0.95, **more)


def visits() -> Any:
    return tc.protect(tc.tables.example_visits(), unit="patient_id", budget=BUDGET, name="visits")


@cache
def certificate() -> Certificate:
    """Return a certificate that binds no values, as older versions wrote it."""
    fields = visits().agg(n=tc.count()).plan(epsilon=0.5).release().certificate.fields
    return Certificate({name: one for name, one in fields.items() if name not in {"values", "binds"}})


def people() -> Any:
    many = 400
    table = pa.table(
        {
            "age": RNG.integers(18, 90, many).astype(float), "sex": RNG.choice(["F", "M"], many),
            "weeks": RNG.integers(1, 50, many).astype(float), "died": RNG.integers(0, 2, many).astype(float),
        }
    )  # fmt: skip
    return tc.protect(
        table, unit=tc.Unit.row(), name="people", keys={"sex": ["F", "M"]}, budget=BUDGET,
        bounds={"age": (0, 100), "weeks": (0, 52), "died": (0, 1)},
    )  # fmt: skip


def surface() -> Any:
    sites = tc.points(
        tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites", box=tc.maps.EXAMPLE_BOX,
        budget=tc.Budget(epsilon=5),
    )  # fmt: skip
    return sites.tree(depth=3).plan(epsilon=1).release().content


def difference() -> Content:
    sites = tc.points(
        tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites", box=tc.maps.EXAMPLE_BOX,
        budget=tc.Budget(epsilon=5),
    )  # fmt: skip
    one, two = (sites.grid(8, 8).plan(epsilon=e).release().content for e in (1, 2))
    return one.minus(two)


def series() -> Content:
    days = tuple(f"2026-01-{day:02}" for day in range(1, 29))
    table = answer(28, key="day", names=days, dates=("day",)).to_json()
    return tc.streams.Series.from_json({"days": 28, "tables": dict.fromkeys(("day", "week", "total"), table)})


def alarm() -> Content:
    from tacit.streams._alarm import WatchedDay

    days = [WatchedDay(f"2026-01-{day:02}", (), day in {9, 10}, 10.0 + day % 7) for day in range(1, 15)]
    return tc.streams.AlarmDays(days, 0.05, "a day is far above the baseline")


def frequencies() -> Content:
    cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
    return cohort.frequencies(by="cluster").plan(rho=0.1).release().content


def summary_statistics() -> Content:
    many = 60
    sites = {
        "chromosome": tuple("1" if i < 40 else "X" for i in range(many)),
        "position": tuple(range(10, 610, 10)),
        "effect_allele": ("G",) * many, "other_allele": ("A",) * many,
        "name": tuple(f"rs{i}" for i in range(many)),
    }  # fmt: skip
    z = RNG.normal(size=many)
    z[7] = 6.5
    return tc.genomes.SummaryStatistics(sites, z, np.full(many, 0.1), None, "height", 3000, 0.5, 0.95)


def components() -> Content:
    from dataclasses import replace

    made = answer(6, tc.genomes.PrincipalComponents, "variant")
    return replace(made, shares=(0.2,), agreement=(0.9,))


def evaluation() -> Content:
    from tacit.learn.evaluation._measures import MeasuredShare

    share = MeasuredShare(0.8, 0.75, 0.85, 0.01)
    bins = tuple(MeasuredShare(at, at - 0.1, at + 0.1, 0.02) for at in (0.1, 0.35, 0.6, 0.85))
    counts = np.array([[40.0, 30, 20, 10], [10.0, 20, 30, 40]])
    return tc.learn.Evaluation(share, share, share, bins, np.linspace(0, 1, 5), counts, ("no", "yes"), 0.95)


def shapes() -> Content:
    settings = {
        "classes": ["no", "yes"], "names": ["age", "smoker"], "cuts": [list(range(20, 80, 5)), [0.5]],
        "categories": {"smoker": ["no", "yes"]},
    }  # fmt: skip
    bins = 14 + 3
    found = {"intercept": np.array(0.1), "values": np.sin(np.arange(bins) / 3), "error": np.full(bins, 0.2),
             "share": np.full(bins, 0.1)}  # fmt: skip
    return tc.learn.ShapeFunctions("explainable boosting", found, settings)


def synthetic() -> Content:
    asked = people().synthesize(["sex", "died"], bins={"died": 2})
    return asked.plan(rho=5).release().content


def regression() -> Content:
    return people().regress("weeks", on=["age", "sex"]).plan(epsilon=100).release().content


def curves() -> Content:
    asked = people().survival(time="weeks", event="died", bins=[0, 10, 20, 30, 40, 52], by="sex")
    return asked.plan(epsilon=100).release().content


def hierarchy() -> Content:
    tree = {"AT": {"west": ["Ahorn"], "east": ["Birke"]}, "DE": {"south": ["Eiche"]}}
    asked = visits().hierarchy(["country", "region", "hospital"], tree=tree)
    return asked.plan(rho=1).release().content


def batch() -> Content:
    parts = [BatchAnswer("wards", answer()), BatchAnswer("days", series()), BatchAnswer("map", surface())]
    return AnswerBatch(tuple(parts))


def fitted() -> Content:
    numbers = {"coef": np.array([0.5, -0.2]), "low": np.array([0.1, -0.6]), "high": np.array([0.9, 0.2])}
    return tc.learn.FittedNumbers("ridge", numbers, {})


def labels() -> Content:
    return tc.learn.NoisyLabels(("no", "yes"), ("no", "yes", None, "yes"), {}, 3, 20, "0" * 64)


def trained() -> Content:
    return tc.learn.TrainedModel({"w": np.zeros(2)}, {"watched": [[1, 0.9], [2, 0.7], [3, 0.6]]})


MADE: dict[str, Callable[[], Content]] = {
    "alarm": alarm,
    "allele-frequencies": frequencies,
    "answer-table": answer,
    "batch": batch,
    "client-model": lambda: tc.learn.federated.ClientModel([np.zeros(2)], [1.0, 0.9, 0.7], 4),
    "cross-tables": lambda: people().crosstabs(["age", "sex"], bins={"age": 5}).plan(rho=1).release().content,
    "degree-table": lambda: answer(12, tc.graphs.DegreeTable, "degree", names=tuple(range(12))),
    "evaluation": evaluation,
    "federated-model": lambda: tc.learn.federated.FederatedModel(
        None, {"name": "study", "model": {"kind": "own"}}, np.zeros(3), (("a", "b"), (), ("a", "b", "c"))
    ),
    "fitted-numbers": fitted,
    "flow-table": lambda: flow_table(("N", "E", "S"), [9, 40, 5, 8, 0, -2, 12, 30, 1], 6, 0.95),
    "gwas-summary-statistics": summary_statistics,
    "hierarchy-counts": hierarchy,
    "mixing-table": lambda: tc.graphs.MixingTable(
        {"club": ("a", "a", "b"), "club (2)": ("a", "b", "b")},
        {"edges": Cells((30.0, 2.0, 25.0), (24.0, -4.0, 19.0), (36.0, 8.0, 31.0))}, 0.95,
    ),
    "noisy-labels": labels,
    "ordered-counts": lambda: people().prefixes("age", bins=20).plan(rho=1).release().content,
    "principal-components": components,
    "regression": regression,
    "series": series,
    "shape-functions": shapes,
    "surface": surface,
    "surface-difference": difference,
    "survival-curves": curves,
    "synthetic-table": synthetic,
    "trained-model": trained,
}  # fmt: skip
