"""Tacit: learn from sensitive data without exposing anyone in it.

Rooms are imported when first used, so that ``import tacit`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit import (
        accounting,
        audit,
        genomes,
        graphs,
        inference,
        learn,
        ledger,
        maps,
        mechanisms,
        noise,
        surveys,
        synth,
    )
    from tacit.accounting import Budget, Cost
    from tacit.client import connect
    from tacit.core import Certificate, Dataset, Limits, Plan, Release, Run, Unit, batch, budget_plan
    from tacit.explain import explain
    from tacit.genomes import genotypes
    from tacit.graphs import graph
    from tacit.ledger import Blocks, Ledger
    from tacit.maps import points
    from tacit.streams import stream
    from tacit.surveys import survey
    from tacit.tables import (
        best,
        col,
        consortium,
        correlation,
        count,
        count_distinct,
        count_units,
        covariance,
        histogram,
        intercept,
        max,
        mean,
        median,
        min,
        most_common,
        protect,
        quantile,
        quantiles,
        r_squared,
        slope,
        start,
        std,
        sum,
        variance,
        when,
    )

__version__ = "0.1.0.dev0"

__all__ = [
    "Blocks",
    "Budget",
    "Cost",
    "Ledger",
    "TacitError",
    "__version__",
    "accounting",
    "audit",
    "explain",
    "learn",
    "ledger",
    "mechanisms",
    "noise",
]
__all__ += ["Certificate", "Limits", "Plan", "Release", "Run", "Unit"]
__all__ += [
    "Dataset",
    "batch",
    "budget_plan",
    "col",
    "connect",
    "consortium",
    "protect",
    "start",
    "stream",
    "when",
]
__all__ += [
    "count",
    "count_distinct",
    "count_units",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "most_common",
]
__all__ += ["quantile", "quantiles", "std", "sum", "variance"]
__all__ += ["survey", "surveys", "synth", "tables"]
__all__ += ["genomes", "genotypes", "graph", "graphs", "inference", "maps", "points"]
__all__ += ["best", "correlation", "covariance", "intercept", "r_squared", "slope"]

#: Public name -> module that holds it; a name equal to its module's last part is the module itself.
_LAZY = {
    "Blocks": "tacit.ledger",
    "Budget": "tacit.accounting",
    "Cost": "tacit.accounting",
    "Ledger": "tacit.ledger",
    "accounting": "tacit.accounting",
    "audit": "tacit.audit",
    "connect": "tacit.client",
    "explain": "tacit.explain",
    "graph": "tacit.graphs",
    "graphs": "tacit.graphs",
    "inference": "tacit.inference",
    "learn": "tacit.learn",
    "ledger": "tacit.ledger",
    "maps": "tacit.maps",
    "mechanisms": "tacit.mechanisms",
    "noise": "tacit.noise",
    "points": "tacit.maps",
    "stream": "tacit.streams",
    "survey": "tacit.surveys",
    "surveys": "tacit.surveys",
    "synth": "tacit.synth",
    "tables": "tacit.tables",
}
_LAZY |= {"genomes": "tacit.genomes", "genotypes": "tacit.genomes"}
_LAZY |= dict.fromkeys(("Certificate", "Dataset", "Limits", "Plan", "Release", "Run", "Unit"), "tacit.core")
_LAZY |= dict.fromkeys(("batch", "budget_plan"), "tacit.core")
_LAZY |= dict.fromkeys(("col", "consortium", "protect", "start", "when"), "tacit.tables")
_LAZY |= dict.fromkeys(
    ("count", "count_distinct", "count_units", "histogram", "max", "mean", "median", "min", "most_common"),
    "tacit.tables",
)
_LAZY |= dict.fromkeys(("quantile", "quantiles", "std", "sum", "variance"), "tacit.tables")
_LAZY |= dict.fromkeys(
    ("best", "correlation", "covariance", "intercept", "r_squared", "slope"), "tacit.tables"
)


def __getattr__(name: str) -> object:
    try:
        home = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}") from None
    module = import_module(home)
    value = module if home == f"tacit.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
