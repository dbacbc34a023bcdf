"""The questions about points and trips on a map, each declared once, and their forms in a plan's document."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core import ANY_TOTAL, Argument, Goal, QuestionKind, WireForm
from tacit.exact import read_fraction
from tacit.maps._adaptive_regions import draft_adaptive_grid, draft_tree
from tacit.maps._flows import draft_flows, read_zones
from tacit.maps._public_regions import regions_of_request
from tacit.maps._region_counts import draft_districts, draft_grid, draft_h3, draft_hottest
from tacit.maps._regions import GridShape
from tacit.parameters import Anything, Integer, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import JSON, Question

_PURE: frozenset[str] = frozenset()
_SIDE = {"accepts": Integer(1), "needed": True, "served": Integer(1, 256)}


def _named_by(
    key: str, write_request: Callable[[Mapping[str, Any]], dict[str, JSON]],
    read_arguments: Callable[[Any, Mapping[str, Any]], dict[str, Any]], takes: frozenset[str] = ANY_TOTAL,
) -> WireForm:  # fmt: skip
    """Return the form of a question that a key of its own names, with the goal beside it.

    Parameters
    ----------
    write_request, read_arguments
        Makes the request of the arguments, and the arguments of a dataset and a request.
    """

    def written(question: Question[Any], goal: Goal) -> JSON:
        return {**write_request(question.arguments), "goal": goal.to_json()}

    def rebuilt(dataset: Any, request: Mapping[str, Any]) -> tuple[dict[str, Any], Goal] | None:
        if key not in request:
            return None
        return read_arguments(dataset, request), Goal.from_json(request["goal"], takes)

    return WireForm(written, rebuilt)


def _pair(names: tuple[str, str], numbers: Any) -> dict[str, Any]:
    return dict(zip(names, numbers, strict=True))


def _h3_levels(arguments: Mapping[str, Any]) -> JSON:
    level = arguments["resolution"]
    return [level, level if arguments["coarsest"] is None else arguments["coarsest"]]


GRID = QuestionKind(
    name="grid", words="Count points in the cells of a grid", draft=draft_grid,
    arguments=(
        Argument("rows", words="rows of the grid, from south to north", **_SIDE),  # type: ignore[arg-type]
        Argument("columns", words="columns of the grid, from west to east", **_SIDE),  # type: ignore[arg-type]
    ),
    wire=_named_by(
        "grid", lambda arguments: {"grid": [arguments["rows"], arguments["columns"]]},
        lambda _, request: _pair(("rows", "columns"), request["grid"]),
    ),
)  # fmt: skip
DISTRICTS = QuestionKind(
    name="districts", words="Count points in public polygons", draft=draft_districts,
    arguments=(
        Argument("districts", Anything("public polygons, as they were read", shown=True), needed=True),
    ),
    served=False,
    wire=_named_by(
        "districts",
        lambda arguments: {
            "districts": arguments["districts"].to_json(), "levels": list(arguments["districts"].larger)
        },
        lambda points, request: {"districts": regions_of_request(request, points.box)},
    ),
)  # fmt: skip
H3 = QuestionKind(
    name="h3", words="Count points in H3 cells", draft=draft_h3,
    arguments=(
        Argument("resolution", Integer(0, 15), needed=True, words="of the cells"),
        Argument("coarsest", Integer(0, 15), words="the coarsest resolution of a hierarchy above the cells"),
    ),
    served=False,
    wire=_named_by(
        "h3", lambda arguments: {"h3": _h3_levels(arguments)},
        lambda _, request: _pair(("resolution", "coarsest"), request["h3"]),
    ),
)  # fmt: skip
TREE = QuestionKind(
    name="tree", words="Count points in regions that are smaller where there are more points",
    draft=draft_tree, takes=_PURE,
    arguments=(
        Argument("depth", Integer(1, 12), default=8, words="the deepest level of the tree"),
        Argument("share", RealNumber(), default=Fraction(1, 2), words="the share of epsilon for the tree"),
    ),
    wire=_named_by(
        "tree", lambda arguments: {"tree": arguments["depth"], "share": str(arguments["share"])},
        lambda _, request: {"depth": request["tree"], "share": read_fraction(request["share"])}, _PURE,
    ),
)  # fmt: skip
ADAPTIVE_GRID = QuestionKind(
    name="adaptive_grid", words="Count points in a coarse grid whose cells are divided by their counts",
    draft=draft_adaptive_grid, takes=_PURE, served=False,
    arguments=(
        Argument("points", Integer(), words="about how many points there are, if that is public"),
        Argument("cells", Integer(1, 4096), default=256, words="rows and columns of the finest grid"),
    ),
    wire=_named_by(
        "adaptive_grid",
        lambda arguments: {"adaptive_grid": arguments["cells"], "points": arguments["points"]},
        lambda _, request: {"cells": request["adaptive_grid"], "points": request["points"]}, _PURE,
    ),
)  # fmt: skip
HOTTEST = QuestionKind(
    name="hottest", words="Name the cells with the most units", draft=draft_hottest, takes=_PURE,
    arguments=(
        Argument("k", Integer(1), needed=True, words="how many cells", served=Integer(1, 50)),
        Argument("cells", GridShape(), default=(64, 64), words="rows and columns of the grid, such as 64x64",
                 served=GridShape(256)),
    ),
    wire=_named_by(
        "hottest", lambda arguments: {"hottest": arguments["k"], "cells": list(arguments["cells"])},
        lambda _, request: {"k": request["hottest"], "cells": request["cells"]}, _PURE,
    ),
)  # fmt: skip


def _flows_read(trips: Any, request: Mapping[str, Any]) -> tuple[dict[str, Any], Goal] | None:
    """Read a question about trips: the zones and the goal are in one document."""
    if "flows" not in request:
        return None
    zones = request["flows"]["zones"]
    arguments = {"zones": read_zones(tuple(zones), trips.box)}
    return arguments, Goal.from_json(request["flows"])


FLOWS = QuestionKind(
    name="flows", words="Count trips from each zone to each zone", draft=draft_flows, served=False,
    arguments=(Argument("zones", Anything("public zones, as they were read", shown=True), needed=True),),
    wire=WireForm(
        lambda question, goal: {"flows": {"zones": question.arguments["zones"].to_json(), **goal.to_json()}},
        _flows_read,
    ),
)  # fmt: skip

QUESTIONS = (GRID, DISTRICTS, H3, TREE, ADAPTIVE_GRID, HOTTEST)
