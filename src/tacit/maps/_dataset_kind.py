"""How points on a map are declared by a service: on their source, and on a stand-in without rows."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting import Budget
from tacit.core import DatasetKind, Unit, budget_of
from tacit.engines import empty_table
from tacit.errors import TacitError, bad_parameter
from tacit.maps._declaration import points
from tacit.maps._questions import FLOWS, QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.ledger import Ledger
    from tacit.maps._point_map import PointMap

_DEGREES = re.compile(r"-?[0-9]{1,6}(\.[0-9]{1,20})?|-?[0-9]{1,12}/[0-9]{1,12}", re.ASCII)


def _degrees(given: object) -> Fraction:
    """Read a coordinate of the box; a huge exponent is refused before it becomes a huge number."""
    text = str(given)
    if not _DEGREES.fullmatch(text):
        raise bad_parameter("box", "two corners of degrees, such as -23.5", "another text")
    return Fraction(text)


def _declare(
    source: object, *, name: str, policy: Mapping[str, Any], facts: Mapping[str, Any], ledger: Ledger
) -> PointMap:
    """Declare points that belong to the people in one column, or that are each protected by itself."""
    unit = Unit.from_text(policy["unit"])
    if unit.per:
        raise TacitError(
            "not-allowed",
            "points belong to the people in one column, or each point is protected by itself",
            fix="choose one column, or single rows",
        )
    box: Any = tuple((_degrees(a), _degrees(b)) for a, b in facts["box"])
    return points(
        source, facts["lat"], facts["lon"], unit=unit, box=box, budget=budget_of(policy), name=name,
        version=int(policy.get("version", 1)), limits=policy.get("limits") or None,
        adjacency=policy.get("adjacency", "add/remove"), ledger=ledger,
    )  # fmt: skip


def _stand_in(facts: Mapping[str, Any]) -> object:
    """Return a table without rows that has the columns of the points."""
    columns = {facts["lat"]: "DOUBLE", facts["lon"]: "DOUBLE"}
    return empty_table(columns if facts["unit"] == "row" else {**columns, facts["unit"]: "VARCHAR"})


def _trial() -> PointMap:
    """Return a few invented points, with budget for one question of each kind."""
    invented = np.array([[0.5, 0.5], [0.2, 0.7]])
    return points(invented, unit=Unit.row(), box=((0, 0), (1, 1)), budget=Budget(epsilon=100))


POINTS = DatasetKind(
    name="points",
    label="points on a map",
    questions=QUESTIONS,
    needed=frozenset({"box", "lat", "lon"}),
    declare=_declare,
    stand_in=_stand_in,
    trial=_trial,
)
TRIPS = DatasetKind(name="trips", label="trips between zones", questions=(FLOWS,))
