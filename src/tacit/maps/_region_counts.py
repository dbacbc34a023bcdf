"""Questions about public regions: how many points are in each of them, and which cells are the hottest.

Regions are cells of a grid, polygons or H3 cells. Polygons and H3 cells may have levels of larger regions,
which are counted too. The hottest cells are the k cells of a grid that most units visit. They are picked with
noise, and their counts are not shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast, Step
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Say, Set
from tacit.maps._map_draft import contribution_of, count_regions, map_draft
from tacit.maps._public_regions import cells_over, codes_of, digest_of_regions, parents_of
from tacit.maps._regions import GridRegions, H3Locator, PolygonLocator, PolygonRegions
from tacit.maps._surface import Surface
from tacit.mechanisms import MeasurementNoise, TopK
from tacit.parameters import Integer
from tacit.report import short_percent
from tacit.strategies import consistent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Draft, Goal
    from tacit.maps._point_map import PointMap
    from tacit.maps._point_source import OwnedPoints
    from tacit.maps._regions import Regions
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace


_MAX_REGIONS = 2**22  # regions of one surface, and cells among which the hottest are picked


class Locator(Protocol):
    """Public regions that know which of them holds a point."""

    @property
    def regions(self) -> Regions:
        """The regions."""

    def locate(self, points: OwnedPoints) -> NDArray[np.int64]:
        """Return the region of each point, -1 for none: a function of the point alone."""


@dataclass(frozen=True, slots=True)
class GridLocator:
    """The cells of a grid, found by arithmetic."""

    regions: GridRegions

    def locate(self, points: OwnedPoints) -> NDArray[np.int64]:
        """Return the cell of each point."""
        return self.regions.box.cells(
            points.lat, points.lon, rows=self.regions.rows, columns=self.regions.columns
        )


def draft_grid(point_map: PointMap, goal: Goal, rows: int, columns: int) -> Draft[Surface]:
    """Draft the counts of the cells of a grid."""
    if rows * columns > _MAX_REGIONS:
        raise TacitError(
            "question-too-large", f"the grid has {rows * columns:,} cells",
            why=f"a surface has at most {_MAX_REGIONS:,} regions", fix=Say("a coarser grid"),
        )  # fmt: skip
    return _draft_regions(
        point_map, goal, GridLocator(GridRegions(point_map.box, rows, columns)), {"grid": [rows, columns]},
        f"points in a grid of {rows} x {columns} cells",
    )  # fmt: skip


def draft_districts(point_map: PointMap, goal: Goal, districts: PolygonRegions) -> Draft[Surface]:
    """Draft the counts of public polygons."""
    request: dict[str, JSON] = {
        "districts": digest_of_regions(districts), "names": list(districts.names),
        "levels": list(districts.larger),
    }  # fmt: skip
    return _draft_regions(
        point_map, goal, PolygonLocator(districts, point_map.box.crosses), request,
        f"points in {districts.words}", with_levels=districts,
        notes=("points in no polygon are not counted",),
    )  # fmt: skip


def draft_h3(point_map: PointMap, goal: Goal, resolution: int, coarsest: int | None) -> Draft[Surface]:
    """Draft the counts of the H3 cells that touch the box."""
    coarsest_level = resolution if coarsest is None else coarsest
    why = f"the cells have the resolution {resolution}"
    Integer(0, resolution, why, instead=max(0, resolution - 2)).read("coarsest", coarsest_level)
    regions = cells_over(point_map.box, resolution, coarsest_level)
    return _draft_regions(
        point_map, goal, H3Locator(regions, resolution), {"h3": [resolution, coarsest_level]},
        f"points in H3 cells of resolution {resolution}", with_levels=regions,
    )  # fmt: skip


def _draft_regions(
    point_map: PointMap, goal: Goal, locator: Locator, request: Mapping[str, JSON], words: str,
    *, with_levels: PolygonRegions | None = None, notes: tuple[str, ...] = (),
) -> Draft[Surface]:  # fmt: skip
    """Draft the counts of one set of regions, and of the larger regions of each level.

    Parameters
    ----------
    with_levels
        The same regions, if they can have levels of larger regions.
    notes
        What the surface leaves out.
    """
    regions, codes = locator.regions, () if with_levels is None else codes_of(with_levels)
    sizes = [len(regions), *(int(code.max()) + 1 for code in codes)]
    parents = parents_of(len(regions), codes)
    noises = _noises(point_map, goal, len(regions), len(codes))
    measured_levels = list(zip(noises, sizes, strict=True))

    def counted(owned: OwnedPoints) -> NDArray[np.int64]:
        return count_regions(owned, locator.locate(owned), len(regions), point_map.limits)

    def reading(noisy: Sequence[Any], confidence: Fraction) -> Surface:
        law = MeasurementNoise.of(measured_levels, parents)
        raw = np.concatenate([np.array(one, dtype=np.float64) for one in noisy])
        counts = raw if parents is None else consistent(raw, parents, law.variances)
        return Surface(regions, counts[: len(regions)], law, float(confidence), notes)

    def forecast() -> list[Forecast]:
        each_region = Forecast("n", f"points in each of {regions.words}", noises[0].describe(),
                       float(noises[0].half_width(goal.confidence)))  # fmt: skip
        if not codes:
            return [each_region]
        law = MeasurementNoise.of(measured_levels, parents)
        half = float(law.half_widths([[0]], 1 - float(goal.confidence))[0])
        return [replace(each_region, error=half, note="of the first region, once the levels agree")]

    facts = [("regions", f"{regions.words}, all of them, empty ones too")]
    if with_levels is not None and codes:
        levels = ", ".join(["regions", *with_levels.larger])
        facts.append(("levels", f"{levels}; each gets an equal part of the cost"))
    return map_draft(
        point_map, question=request, words=words, counts=counted, reading=reading, forecast=forecast,
        facts=facts,
        steps=[
            Step(noises[0], lambda counts, _: counts),
            *(_level_step(noise, code) for noise, code in zip(noises[1:], codes, strict=True)),
        ],
    )  # fmt: skip


def _noises(
    point_map: PointMap, goal: Goal, regions: int, levels: int
) -> list[DiscreteLaplace | DiscreteGaussian]:
    """Return the noise of each level; in a larger region all points of a unit may meet."""
    contribution = contribution_of(point_map.limits, point_map.adjacency, regions)
    in_larger = replace(contribution, per_group=contribution.total)
    part = goal.part(Fraction(1, 1 + levels))
    return [
        part.noise(l1=each.l1(1), l2_squared=each.l2_squared(1), adjacency=point_map.adjacency)
        for each in (contribution, *[in_larger] * levels)
    ]


def _level_step(
    noise: DiscreteLaplace | DiscreteGaussian, larger: NDArray[np.int64]
) -> Step[NDArray[np.int64]]:
    """Return the step of one level: the sums of the counts in its larger regions.

    Parameters
    ----------
    larger
        The number of the larger region of each region.
    """
    size = int(larger.max()) + 1
    return Step(
        noise,
        lambda counts, _: np.bincount(larger, weights=counts, minlength=size).round().astype(np.int64),
    )


def draft_hottest(point_map: PointMap, goal: Goal, k: int, cells: tuple[int, int]) -> Draft[AnswerTable]:
    """Draft the choice of cells by how many different units have a point in them.

    A unit raises the score of any number of cells by 0 or 1 each, so scores are monotone with sensitivity 1,
    however many cells a unit visits (docs/proofs/map_trees.md, "The hottest cells").
    """
    rows, columns = cells
    candidates = rows * columns
    if candidates > _MAX_REGIONS:
        raise bad_parameter("cells", f"at most {_MAX_REGIONS:,} in all", cells, fix=Set(cells=(64, 64)))
    Integer(1, candidates, f"the number of cells is {candidates:,}", instead=min(5, candidates)).read("k", k)
    assert goal.epsilon is not None  # noqa: S101 - the only total that choices take
    top = TopK(
        goal.epsilon, k=k, sensitivity=1, monotone=point_map.adjacency == "add/remove",
        adjacency=point_map.adjacency, grid=1,
    )  # fmt: skip
    regions = GridRegions(point_map.box, rows, columns)
    noun = "points" if point_map.unit.is_row else "visitors"

    def scores(owned: OwnedPoints) -> NDArray[np.int64]:
        within = point_map.box.cells(owned.lat, owned.lon, rows=rows, columns=columns)
        if owned.owner is not None:
            within = np.unique(owned.owner * candidates + within) % candidates
        return np.bincount(within, minlength=candidates).astype(np.int64)

    def distance(confidence: Fraction) -> str:
        fewer = top.half_width(confidence, candidates=candidates)
        return f"has at most {fewer:,} {noun} fewer than the best cell left"

    def reading(noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        chosen = [int(one) for one in noisy[0]]
        sides = regions.boxes[chosen].T.tolist()
        note = (
            f"the place in the order of the picks; with {short_percent(float(confidence))} confidence, every "
            f"picked cell {distance(confidence)}"
        )
        ranks = tuple(range(1, len(chosen) + 1))
        empty = (None,) * len(chosen)
        return AnswerTable(
            dict(zip(("south", "west", "north", "east"), map(tuple, sides), strict=True)),
            {"place": Cells(ranks, empty, empty)},
            float(confidence),
            notes={"place": note},
        )

    return map_draft(
        point_map, question={"hottest": k, "cells": [rows, columns]},
        words=f"the {k} hottest of {rows} x {columns} cells",
        counts=scores, steps=[Step(top, lambda counts, _: counts)], reading=reading,
        forecast=[
            Forecast(
                "place", f"the {k} cells with most {noun}", top.describe(), None,
                note=f"each pick {distance(goal.confidence)}",
            )
        ],
        facts=[("regions", f"{rows} x {columns} cells, all of them candidates")],
    )  # fmt: skip
