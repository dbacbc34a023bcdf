"""How a graph is declared by a service: on its source, and on a stand-in without edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget
from tacit.core import Argument, DatasetKind, budget_of
from tacit.errors import TacitError
from tacit.graphs._declaration import graph
from tacit.graphs._questions import QUESTIONS
from tacit.parameters import Anything, ColumnName, Flag, Integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.graphs._graph import Graph
    from tacit.ledger import Ledger


def _declare(
    source: object, *, name: str, policy: Mapping[str, Any], facts: Mapping[str, Any], ledger: Ledger
) -> Graph:
    """Declare a graph, whose neighbours differ by one edge or one node more or less."""
    if policy.get("adjacency", "add/remove") != "add/remove" or policy.get("limits"):
        raise TacitError(
            "not-allowed",
            "a graph hides whether one edge or one node is added or removed, and it has no limits on rows",
            fix="choose add/remove, leave the limits out, and declare degree_bound if everybody knows one",
        )
    return graph(
        source, name=name, unit=policy["unit"], budget=budget_of(policy), nodes=facts.get("nodes"),
        degree_bound=facts.get("degree_bound"), directed=facts.get("directed", False),
        source_column=facts["source_column"], target_column=facts["target_column"],
        version=int(policy.get("version", 1)), ledger=ledger,
    )  # fmt: skip


def _stand_in(facts: Mapping[str, Any]) -> object:
    """Return a table without rows that has the two columns of an edge list."""
    from tacit.engines import empty_table

    return empty_table({facts["source_column"]: "VARCHAR", facts["target_column"]: "VARCHAR"})


def _trial() -> Graph:
    """Return a few invented edges, with budget for one question of each kind."""
    invented = [("a", "b"), ("b", "c"), ("a", "c")]
    return graph(invented, unit="edge", nodes=4, degree_bound=3, budget=Budget(epsilon=100))


GRAPH = DatasetKind(
    name="graph",
    label="a graph",
    questions=QUESTIONS,
    facts=(
        Argument("source_column", ColumnName(), needed=True, words="the column of the first node"),
        Argument("target_column", ColumnName(), needed=True, words="the column of the second node"),
        Argument("degree_bound", Integer(1), words="the largest number of edges of a node"),
        Argument("directed", Flag(), words="whether edges have a direction"),
        Argument("nodes", Anything("the number of nodes, or their names"), served=Integer(1)),
    ),
    declare=_declare,
    stand_in=_stand_in,
    trial=_trial,
)
