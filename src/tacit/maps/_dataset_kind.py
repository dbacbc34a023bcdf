"""How points on a map are declared by a service: on their source, and on a stand-in without rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting import Budget
from tacit.core import Argument, DatasetKind, Unit, budget_of
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Say
from tacit.maps._declaration import points
from tacit.maps._questions import FLOWS, QUESTIONS
from tacit.parameters import ColumnName, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.ledger import Ledger
    from tacit.maps._point_map import PointMap

_DEGREES = re.compile(r"-?[0-9]{1,6}(\.[0-9]{1,20})?|-?[0-9]{1,12}/[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Corners(Text):
    """The public box of a map.

    Examples
    --------
    >>> Corners().from_text("box", "46.5 7 47 9.5") == Corners().read("box", [["46.5", "7"], [47, 9.5]])
    True
    """

    words: str = "two corners in degrees: south, west, north and east"

    def read(self, name: str, value: Any) -> Any:
        """Return the corners; a huge exponent is refused before it becomes a huge number."""
        try:
            texts = [] if isinstance(value, str) else [str(side) for corner in value for side in corner]
        except TypeError:
            texts = []
        if len(texts) != 4 or not all(map(_DEGREES.fullmatch, texts)):
            raise bad_parameter(name, self.words, value, fix=Say("give four numbers, such as 46.5 7 47 9.5"))
        south, west, north, east = map(Fraction, texts)
        return (south, west), (north, east)

    def from_text(self, name: str, text: str) -> Any:
        """Read what somebody typed: four numbers."""
        sides = text.split()
        return self.read(name, (sides[:2], sides[2:]) if len(sides) == 4 else text)


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
    return points(
        source, facts["lat"], facts["lon"], unit=unit, box=facts["box"], budget=budget_of(policy), name=name,
        version=int(policy.get("version", 1)), limits=policy.get("limits") or None,
        adjacency=policy.get("adjacency", "add/remove"), ledger=ledger,
    )  # fmt: skip


def _stand_in(facts: Mapping[str, Any]) -> object:
    """Return a table without rows that has the columns of the points."""
    from tacit.engines import empty_table

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
    facts=(
        Argument("box", Corners(), needed=True),
        Argument("lat", ColumnName(), needed=True, words="the column of latitudes"),
        Argument("lon", ColumnName(), needed=True, words="the column of longitudes"),
    ),
    declare=_declare,
    stand_in=_stand_in,
    trial=_trial,
)
TRIPS = DatasetKind(name="trips", label="trips between zones", questions=(FLOWS,))
