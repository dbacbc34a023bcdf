"""Questions whose regions follow the points: a tree, an adaptive grid, and the hottest cells."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core import Forecast, Plan, Goal
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Declare, Set
from tacit.maps._adaptive_task import AdaptiveTask
from tacit.maps._hottest_task import HottestTask
from tacit.maps._limits import contribution_of
from tacit.maps._regions import GridRegions
from tacit.maps._tree_task import TreeTask
from tacit.mechanisms import DiscreteLaplace, SplittingTree, TopK

if TYPE_CHECKING:
    from tacit.accounting import Adjacency
    from tacit.core import JSON, AnswerTable, Limits, Unit
    from tacit.exact import Number
    from tacit.maps._box import Box
    from tacit.maps._point_source import PointSource
    from tacit.maps._surface import Surface

__all__ = ["AdaptiveQuestions"]

_HALF = Fraction(1, 2)
_FOR_THE_TOTAL = Fraction(2, 100)
_MOST_CELLS = 2**22
_FINEST = 4096


class AdaptiveQuestions:
    """The questions about a map whose regions follow the points; `PointMap` inherits them."""

    __slots__ = ()

    if TYPE_CHECKING:
        box: Box
        limits: Limits
        _source: PointSource

        @property
        def adjacency(self) -> Adjacency: ...
        @property
        def unit(self) -> Unit: ...
        def _public(self) -> dict[str, JSON]: ...
        def _facts(self) -> list[tuple[str, str]]: ...

    def tree(
        self, *, epsilon: Number, depth: int = 8, share: Number = _HALF,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[Surface]:  # fmt: skip
        """Plan a surface whose regions are the leaves of a tree: small where many points are.

        Guarantee: pure epsilon. A share of it grows the tree (`tacit.mechanisms.SplittingTree`), and the rest
        pays for fresh noise on the count of each leaf, so intervals hold given the tree
        (docs/proofs/map_trees.md, "The splitting tree").

        Parameters
        ----------
        epsilon
            The total cost.
        depth
            The deepest level: the finest leaves are those of a grid of 2^depth x 2^depth cells.
        share
            The share of epsilon that may go to the tree. What its exact price leaves goes to the counts.
        confidence
            How often each interval covers.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(),
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> plan = sites.tree(epsilon=1, depth=6)
        >>> float(plan.cost.epsilon(delta=0))
        1.0
        >>> surface = plan.release()
        >>> answer = surface.rectangle((-24, 133), (-23, 134))
        >>> answer.low <= answer.value <= answer.high
        True
        """
        goal = Goal.read(epsilon=epsilon, confidence=confidence)
        assert goal.epsilon is not None  # noqa: S101 - read checks it
        part = _read_share(share)
        levels = count("depth", depth, zero=False)
        moved = contribution_of(self.limits, self.adjacency, 4 ** min(levels, 12)).l1(1)
        tree = SplittingTree(
            epsilon=goal.epsilon * part, depth=depth, sensitivity=moved, adjacency=self.adjacency
        )
        rest = goal.epsilon - tree.price
        noise = DiscreteLaplace(epsilon=rest, sensitivity=moved, adjacency=self.adjacency)
        asked: dict[str, JSON] = {"tree": levels}
        task = TreeTask(self._source, self.box, self.limits, asked | self._public(), tree, noise)
        return Plan.of(
            self,  # type: ignore[arg-type]
            task,
            promised=goal.promised,
            forecast=[
                Forecast(
                    "n", "points in each leaf", noise.describe(), float(noise.half_width(goal.confidence))
                )
            ],
            facts=[
                ("regions", f"leaves of a tree with at most {levels} levels; noise decides where it splits"),
                ("split", f"epsilon {float(tree.price):.4g} for the tree, {float(rest):.4g} for the counts"),
                *self._facts(),
            ],
            confidence=float(goal.confidence),
            asked=f"points in a tree of {levels} levels",
            request=lambda: {**asked, "share": str(part), "goal": goal.to_json()},
        )  # fmt: skip

    def adaptive_grid(
        self, *, epsilon: Number, points: int | None = None, cells: int = 256,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[Surface]:  # fmt: skip
        """Plan a surface from two grids: a coarse one, whose cells are divided by their noisy counts.

        Guarantee: pure epsilon: half of it for each grid, and 2 % for the number of points unless it is
        declared. The two grids are merged by least squares (docs/proofs/map_trees.md, "The adaptive grid").

        Parameters
        ----------
        epsilon
            The total cost.
        points
            The number of points, if it is public or guessed from public knowledge; it decides the size of
            the coarse grid only.
        cells
            Rows and columns of the finest grid: all regions end at its borders, so a question along them is
            answered exactly up to the noise wherever the regions are as small.
        confidence
            How often each interval covers.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(),
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> surface = sites.adaptive_grid(epsilon=1).release()
        >>> len(surface) >= 100
        True
        """
        goal = Goal.read(epsilon=epsilon, confidence=confidence)
        assert goal.epsilon is not None  # noqa: S101 - read checks it
        known = None if points is None else count("points", points)
        first = Fraction(0) if known is not None else _FOR_THE_TOTAL
        finest = count("cells", cells, zero=False)
        if finest > _FINEST:
            raise bad_parameter("cells", f"at most {_FINEST:,}", cells, fix=Set(cells=256))
        moved = _points_moved(self.limits, self.adjacency)

        def noise(part: Fraction) -> DiscreteLaplace:
            return DiscreteLaplace(
                epsilon=goal.epsilon * part, sensitivity=moved, adjacency=self.adjacency  # type: ignore[operator]
            )  # fmt: skip

        each = noise((1 - first) / 2)
        asked: dict[str, JSON] = {"adaptive_grid": finest, "points": known}
        task = AdaptiveTask(
            self._source, self.box, asked | self._public(), noise(first) if first else None, known, finest,
            each, each,
        )  # fmt: skip
        return Plan.of(
            self,  # type: ignore[arg-type]
            task,
            promised=goal.promised,
            forecast=[
                Forecast(
                    "n", "points in each region", each.describe(), float(each.half_width(goal.confidence))
                )
            ],
            facts=[
                ("regions", "a coarse grid; the noisy count of a cell decides how finely it is divided"),
                ("points", "2 % of epsilon is spent to estimate their number" if known is None else
                 f"about {known:,}, as declared"),
                *self._facts(),
            ],
            confidence=float(goal.confidence),
            asked="points in an adaptive grid",
            request=lambda: {**asked, "goal": goal.to_json()},
        )  # fmt: skip

    def hottest(
        self, k: int, *, cells: tuple[int, int] = (64, 64), epsilon: Number,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[AnswerTable]:  # fmt: skip
        """Plan the k cells of a grid in which most units have a point, best first, without counts.

        Guarantee: epsilon / k for each pick. A unit counts once in each cell, so it moves every score by at
        most 1, however many cells it is in (docs/proofs/map_trees.md, "The hottest cells").

        Parameters
        ----------
        k
            How many cells.
        cells
            Rows and columns of the grid over the box.
        epsilon
            The total cost.
        confidence
            How often the stated distance to the best cell holds.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(),
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> len(sites.hottest(3, cells=(8, 8), epsilon=1).release())
        3
        """
        goal = Goal.read(epsilon=epsilon, confidence=confidence)
        assert goal.epsilon is not None  # noqa: S101 - read checks it
        try:
            size = tuple(count("cells", side, zero=False) for side in cells)
            rows, columns = size
        except (TypeError, ValueError):
            raise bad_parameter(
                "cells", "rows and columns of a grid", cells, fix=Set(cells=(64, 64))
            ) from None
        most = count("k", k, zero=False)
        if rows * columns > _MOST_CELLS or most > rows * columns:
            raise bad_parameter("k", f"at most the number of cells, {rows * columns:,}", k, fix=Set(k=5))
        top = TopK(
            goal.epsilon, k=most, sensitivity=1, monotone=self.adjacency == "add/remove",
            adjacency=self.adjacency, grid=1,
        )  # fmt: skip
        asked: dict[str, JSON] = {"hottest": most, "cells": [rows, columns]}
        counted = "points" if self.unit.is_row else "visitors"
        regions = GridRegions(self.box, rows, columns)
        task = HottestTask(self._source, regions, asked | self._public(), top, counted)
        behind = top.half_width(goal.confidence, candidates=rows * columns)
        return Plan.of(
            self,  # type: ignore[arg-type]
            task,
            promised=goal.promised,
            forecast=[
                Forecast(
                    "place", f"the {most} cells with most {counted}", top.describe(), None,
                    note=f"each pick has at most {behind:,} {counted} fewer than the best cell left",
                )
            ],
            facts=[("regions", f"{rows} x {columns} cells, all of them candidates"), *self._facts()],
            confidence=float(goal.confidence),
            asked=f"the {most} hottest of {rows} x {columns} cells",
            request=lambda: {**asked, "goal": goal.to_json()},
        )  # fmt: skip

    def _rebuild_adaptive(self, request: Any, goal: Goal) -> Plan[Any]:
        """Make a plan of these questions again, or raise ``ValueError``."""
        given: dict[str, Any] = {"epsilon": goal.epsilon, "confidence": goal.confidence}
        match request:
            case {"tree": depth, "share": share}:
                return self.tree(depth=depth, share=Fraction(share), **given)
            case {"adaptive_grid": cells, "points": points}:
                return self.adaptive_grid(points=points, cells=cells, **given)
            case {"hottest": k, "cells": [rows, columns]}:
                return self.hottest(k, cells=(rows, columns), **given)
            case _:
                raise ValueError("not a question about a map")


def _read_share(share: Number) -> Fraction:
    part = rational("share", share)
    if part >= 1:
        raise bad_parameter("share", "between 0 and 1", share, fix=Set(share=0.5))
    return part


def _points_moved(limits: Limits, adjacency: Adjacency) -> int:
    """Return how many points one unit adds or removes; only the limit on rows bounds an adaptive grid."""
    if limits.rows is None:
        raise TacitError(
            "missing-limit",
            "nothing bounds how many points one unit can add",
            why="the regions of an adaptive grid change with the noise, so only a limit on all points of a "
            "unit bounds what it moves",
            fix=Declare("limits", 10, column="rows", function="tc.points"),
        )
    return limits.rows * (2 if adjacency == "replace" else 1)
