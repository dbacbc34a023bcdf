"""The hottest cells: the k cells of a grid that most units visit, picked with noise, without counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast, Step
from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.maps._map_draft import map_draft
from tacit.maps._regions import GridRegions
from tacit.mechanisms import TopK
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Draft, Goal
    from tacit.maps._point_map import PointMap
    from tacit.maps._point_source import OwnedPoints

_MOST_CELLS = 2**22


def draft_hottest(point_map: PointMap, goal: Goal, k: int, cells: tuple[int, int]) -> Draft[AnswerTable]:
    """Draft the choice of cells by how many different units have a point in them.

    A unit raises the score of any number of cells by 0 or 1 each, so scores are monotone with sensitivity 1,
    however many cells a unit visits (docs/proofs/map_trees.md, "The hottest cells").
    """
    rows, columns = cells
    candidates = rows * columns
    if candidates > _MOST_CELLS:
        raise bad_parameter("cells", f"at most {_MOST_CELLS:,} in all", cells, fix=Set(cells=(64, 64)))
    Integer(1, candidates, f"there are {candidates:,} cells", instead=min(5, candidates)).read("k", k)
    assert goal.epsilon is not None  # noqa: S101 - the only total that choices take
    top = TopK(
        goal.epsilon, k=k, sensitivity=1, monotone=point_map.adjacency == "add/remove",
        adjacency=point_map.adjacency, grid=1,
    )  # fmt: skip
    regions = GridRegions(point_map.box, rows, columns)
    counted = "points" if point_map.unit.is_row else "visitors"

    def scores(owned: OwnedPoints) -> NDArray[np.int64]:
        within = point_map.box.cells(owned.lat, owned.lon, rows=rows, columns=columns)
        if owned.owner is not None:
            within = np.unique(owned.owner * candidates + within) % candidates
        return np.bincount(within, minlength=candidates).astype(np.int64)

    def reading(noisy: Sequence[Any], level: Fraction) -> AnswerTable:
        chosen = [int(one) for one in noisy[0]]
        sides = regions.boxes[chosen].T.tolist()
        behind = top.half_width(level, candidates=candidates)
        note = (
            f"the place in the order of the picks; with {float(level) * 100:g} % confidence, every "
            f"picked cell has at most {behind:,} {counted} fewer than the best cell left"
        )
        ranks = tuple(range(1, len(chosen) + 1))
        empty = (None,) * len(chosen)
        return AnswerTable(
            dict(zip(("south", "west", "north", "east"), map(tuple, sides), strict=True)),
            {"place": Cells(ranks, empty, empty)},
            float(level),
            notes={"place": note},
        )

    behind = top.half_width(goal.confidence, candidates=candidates)
    return map_draft(
        point_map, asked={"hottest": k, "cells": [rows, columns]},
        words=f"the {k} hottest of {rows} x {columns} cells",
        counted=scores, steps=[Step(top, lambda found, _: found)], reading=reading,
        forecast=[
            Forecast(
                "place", f"the {k} cells with most {counted}", top.describe(), None,
                note=f"each pick has at most {behind:,} {counted} fewer than the best cell left",
            )
        ],
        facts=[("regions", f"{rows} x {columns} cells, all of them candidates")],
    )  # fmt: skip
