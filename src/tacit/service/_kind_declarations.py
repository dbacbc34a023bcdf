"""How points and graphs are declared in a service: on their source, and on a stand-in without rows."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import Dataset
    from tacit.ledger import Ledger

__all__ = [
    "declare_graph",
    "declare_points",
    "graph_without_edges",
    "points_without_rows",
    "try_graph",
    "try_points",
]

_DEGREES: Final = re.compile(r"-?[0-9]{1,6}(\.[0-9]{1,20})?|-?[0-9]{1,12}/[0-9]{1,12}", re.ASCII)


def _budget(policy: Mapping[str, Any]) -> Any:
    from tacit.accounting import Budget

    parts = {name: Fraction(str(value)) for name, value in policy["budget"].items() if value is not None}
    return Budget(**{name: value for name, value in parts.items() if value or name != "delta"})


def _degrees(given: object) -> Fraction:
    """Read a coordinate of the box; a huge exponent is refused before it becomes a huge number."""
    text = str(given)
    if not _DEGREES.fullmatch(text):
        raise bad_parameter("box", "two corners of degrees, such as -23.5", "another text")
    return Fraction(text)


def _empty(columns: Mapping[str, str]) -> object:
    """Return a table without rows."""
    import duckdb

    from tacit.engines import quote

    database = duckdb.connect(config={"threads": 1})
    typed = ", ".join(f"{quote(name)} {kind}" for name, kind in columns.items())
    database.execute(f"CREATE TABLE empty ({typed})")
    return (database, "empty")


def declare_points(
    place: object, *, name: str, policy: Mapping[str, Any], facts: Mapping[str, Any], ledger: Ledger
) -> Dataset:
    """Declare points on a map."""
    from tacit.core import Unit
    from tacit.maps import points

    unit = Unit.from_text(policy["unit"])
    if unit.per:
        raise TacitError(
            "not-allowed",
            "points belong to the people in one column, or each point is protected by itself",
            fix="choose one column, or single rows",
        )
    box = tuple((_degrees(a), _degrees(b)) for a, b in facts["box"])
    return points(
        place, facts["lat"], facts["lon"], unit=unit,
        box=box, budget=_budget(policy), name=name,  # type: ignore[arg-type]
        version=int(policy.get("version", 1)), limits=policy.get("limits") or None,
        adjacency=policy.get("adjacency", "add/remove"), ledger=ledger,
    )  # fmt: skip


def points_without_rows(facts: Mapping[str, Any]) -> object:
    """Return a table without rows that has the columns of the points."""
    columns = {facts["lat"]: "DOUBLE", facts["lon"]: "DOUBLE"}
    return _empty(columns if facts["unit"] == "row" else {**columns, facts["unit"]: "VARCHAR"})


def declare_graph(
    place: object, *, name: str, policy: Mapping[str, Any], facts: Mapping[str, Any], ledger: Ledger
) -> Dataset:
    """Declare a graph, whose neighbours differ by one edge or one node more or less."""
    from tacit.graphs import graph

    if policy.get("adjacency", "add/remove") != "add/remove" or policy.get("limits"):
        raise TacitError(
            "not-allowed",
            "a graph hides whether one edge or one node is added or removed, and it has no limits on rows",
            fix="choose add/remove, leave the limits out, and declare degree_bound if everybody knows one",
        )

    return graph(
        place, name=name, unit=policy["unit"], budget=_budget(policy), nodes=facts.get("nodes"),
        degree_bound=facts.get("degree_bound"), directed=facts.get("directed", False),
        source_column=facts["source_column"], target_column=facts["target_column"],
        version=int(policy.get("version", 1)), ledger=ledger,
    )  # fmt: skip


def graph_without_edges(facts: Mapping[str, Any]) -> object:
    """Return a table without rows that has the two columns of an edge list."""
    return _empty({facts["source_column"]: "VARCHAR", facts["target_column"]: "VARCHAR"})


def try_points() -> Dataset:
    """Return a few invented points, with budget for one question of each kind."""
    import numpy as np

    from tacit.accounting import Budget
    from tacit.core import Unit
    from tacit.maps import points

    invented = np.array([[0.5, 0.5], [0.2, 0.7]])
    return points(invented, unit=Unit.row(), box=((0, 0), (1, 1)), budget=Budget(epsilon=100))


def try_graph() -> Dataset:
    """Return a few invented edges, with budget for one question of each kind."""
    from tacit.accounting import Budget
    from tacit.graphs import graph

    invented = [("a", "b"), ("b", "c"), ("a", "c")]
    return graph(invented, unit="edge", nodes=4, degree_bound=3, budget=Budget(epsilon=100))
