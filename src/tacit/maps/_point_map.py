"""The dataset of a map: points in a public box, and the questions about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core import Dataset, Forecast, Limits, Plan, Goal
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Say, Set
from tacit.maps._adaptive_questions import AdaptiveQuestions
from tacit.maps._limits import contribution_of, limits_in_words
from tacit.maps._polygon_regions import H3Locator, PolygonLocator, PolygonRegions
from tacit.maps._public_regions import cells_over, codes_of, digest_of_regions, parents_of, read_districts
from tacit.maps._regions import GridRegions
from tacit.maps._task import RegionTask
from tacit.mechanisms import MeasurementNoise

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.exact import Number
    from tacit.maps._box import Box
    from tacit.maps._point_source import OwnedPoints, PointSource
    from tacit.maps._surface import Surface
    from tacit.maps._task import Locator
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace
    from tacit.tables import Contribution

__all__ = ["GridLocator", "PointMap"]

_MOST = 2**22  # regions of one surface


@dataclass(frozen=True, slots=True)
class GridLocator:
    """The cells of a grid, found by arithmetic."""

    regions: GridRegions

    def locate(self, points: OwnedPoints) -> NDArray[np.int64]:
        """Return the cell of each point."""
        return self.regions.box.cells(
            points.lat, points.lon, rows=self.regions.rows, columns=self.regions.columns
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PointMap(AdaptiveQuestions, Dataset):
    """Points on a map: who is protected, the public box, and what one unit may add. Made by `points`.

    Points outside the box, and those with a missing coordinate, do not count. Every question is a method
    that returns a plan; nothing is read before the plan is charged.
    """

    box: Box
    limits: Limits
    _source: PointSource

    def prepare(self) -> None:
        """Read the points now; by default the first release reads them.

        Guarantee: nothing is released. The points are read before anything is charged and stay inside this
        dataset, so whoever calls this must not let others see how long it takes. A service calls it before
        it takes questions.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> sites.prepare()
        >>> sites.remaining
        epsilon 1 of 1
        """
        self._source.load()

    def grid(
        self, rows: int, columns: int, *, epsilon: Number | None = None, delta: Number = 0,
        rho: Number | None = None, confidence: Number = Fraction(95, 100),
    ) -> Plan[Surface]:  # fmt: skip
        """Plan a surface of rows x columns cells over the box; every cell gets a count, empty ones too.

        Guarantee: the cost is that of one unit with all of its points that count. For single points one cell
        moves by 1, however fine the grid is (docs/proofs/maps.md, sections 1 and 2).

        Parameters
        ----------
        rows, columns
            The size of the grid, from south to north and from west to east.
        epsilon, delta, rho
            The total cost.
        confidence
            How often each interval covers.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> plan = sites.grid(16, 16, epsilon=0.5)
        >>> len(plan.release())
        256
        """
        goal = Goal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        size = count("rows", rows, zero=False), count("columns", columns, zero=False)
        if size[0] * size[1] > _MOST:
            raise TacitError(
                "question-too-large", f"the grid has {size[0] * size[1]:,} cells",
                why=f"a surface has at most {_MOST:,} regions", fix=Say("a coarser grid"),
            )  # fmt: skip
        return self._plan(
            GridLocator(GridRegions(self.box, *size)), goal, {"grid": list(size)},
            f"points in a grid of {size[0]} x {size[1]} cells",
        )  # fmt: skip

    def districts(
        self, districts: object, *, name: str = "name", parents: str | Sequence[str] | None = None,
        epsilon: Number | None = None, delta: Number = 0, rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[Surface]:  # fmt: skip
        """Plan a surface of public polygons (extra ``maps``), consistent with the larger regions above them.

        A point on a border counts in the first polygon, in the order in which they are given; a point in no
        polygon does not count. Polygons that overlap are refused. With ``parents``, each level gets an equal
        part of the cost, and the counts are the least-squares estimates in which districts add up to
        regions (docs/proofs/maps.md, sections 3 and 4).

        Parameters
        ----------
        districts
            A GeoJSON feature collection: a path, or the document.
        name
            The property that names a polygon.
        parents
            The property, or the properties from small to large, that names the larger region of a polygon.
        epsilon, delta, rho, confidence
            As in `grid`.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> plan = sites.districts(tc.maps.example_districts(), parents="region", epsilon=1)
        >>> surface = plan.release()
        >>> [len(surface), len(surface.level("region"))]
        [12, 3]
        """
        goal = Goal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        regions = read_districts(districts, name, parents, self.box)
        asked: dict[str, JSON] = {
            "districts": digest_of_regions(regions), "names": list(regions.names),
            "levels": list(regions.larger),
        }  # fmt: skip
        return self._plan(
            PolygonLocator(regions, self.box.crosses), goal, asked, f"points in {regions.words}",
            request={"districts": regions.to_json(), "levels": list(regions.larger)}, above=regions,
            notes=("points in no polygon are not counted",),
        )  # fmt: skip

    def h3(
        self, resolution: int, *, coarsest: int | None = None, epsilon: Number | None = None,
        delta: Number = 0, rho: Number | None = None, confidence: Number = Fraction(95, 100),
    ) -> Plan[Surface]:  # fmt: skip
        """Plan a surface of the H3 cells that touch the box (extra ``maps``).

        Parameters
        ----------
        resolution
            Of the cells, from 0 (4 million square kilometres) to 15 (less than 1 square metre).
        coarsest
            The coarsest resolution of a hierarchy above the cells, made by their parents; None for no
            hierarchy. Parents are not exactly the cells of the coarser resolution: a point near a border can
            lie in another one.
        epsilon, delta, rho, confidence
            As in `grid`.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> surface = sites.h3(4, epsilon=1).release()
        >>> surface.radius(-23.6, 133.4, km=40).value > 0
        True
        """
        goal = Goal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        level = count("resolution", resolution)
        least = level if coarsest is None else count("coarsest", coarsest)
        if level > 15 or least > level:
            raise bad_parameter(
                "resolution", "at most 15, and coarsest at most the resolution", (resolution, coarsest),
                fix=Set(resolution=7, coarsest=5),
            )  # fmt: skip
        regions = cells_over(self.box, level, least)
        return self._plan(
            H3Locator(regions, level), goal, {"h3": [level, least]},
            f"points in H3 cells of resolution {level}", above=regions,
        )  # fmt: skip

    def _public(self) -> dict[str, JSON]:
        """Return the columns, the box and the limits, which belong to every question."""
        return {
            "columns": list(self._source.names),
            "box": self.box.to_json(),
            "limits": {
                "rows": self.limits.rows, "groups": self.limits.groups, "per_group": self.limits.per_group,
            },
        }  # fmt: skip

    def _facts(self) -> list[tuple[str, str]]:
        """Return the facts that every plan states."""
        (south, west), (north, east) = self.box.corners
        return [
            ("limits", limits_in_words(self.limits, self.unit)),
            ("box", (f"latitude {south:g} to {north:g}, longitude {west:g} to {east:g}; points outside it, "
                    "or with a missing coordinate, do not count")),
        ]  # fmt: skip

    def _plan(
        self, locator: Locator, goal: Goal, asked: dict[str, JSON], words: str,
        *, request: dict[str, JSON] | None = None, above: PolygonRegions | None = None,
        notes: tuple[str, ...] = (),
    ) -> Plan[Surface]:  # fmt: skip
        """Plan the counts of one set of regions, and of the larger regions above them."""
        codes = () if above is None else codes_of(above)
        part = goal.part(Fraction(1, 1 + len(codes)))
        noises = tuple(self._noise(part, who) for who in self._contributions(locator, codes))
        task = RegionTask(
            self._source, locator, self.limits, asked | self._public(), noises, codes,
            parents_of(len(locator.regions), codes), notes,
        )  # fmt: skip
        levels = ["regions", *(above.larger if above is not None else ())]
        facts = [("regions", f"{locator.regions.words}, all of them, empty ones too"), *self._facts()]
        if codes:
            facts.insert(1, ("levels", f"{', '.join(levels)}; each gets an equal part of the cost"))
        return Plan.of(
            self, task, promised=goal.promised, facts=facts,
            forecast=lambda: _forecasts(task, goal, locator.regions.words),
            confidence=float(goal.confidence), asked=words,
            request=lambda: {**(asked if request is None else request), "goal": goal.to_json()},
        )  # fmt: skip

    def _contributions(self, locator: Locator, codes: Sequence[NDArray[np.int64]]) -> list[Contribution]:
        """Bound what one unit adds on each level; in a larger region all of its points may meet."""
        own = contribution_of(self.limits, self.adjacency, len(locator.regions))
        larger = replace(own, per_group=own.total)
        return [own, *(larger for _ in codes)]

    def _noise(self, goal: Goal, who: Contribution) -> DiscreteLaplace | DiscreteGaussian:
        return goal.noise(l1=who.l1(1), l2_squared=who.l2_squared(1), adjacency=self.adjacency)

    def _rebuild(self, request: Any) -> Plan[Any]:
        goal = Goal.from_json(request["goal"])
        given: dict[str, Any] = {
            "epsilon": goal.epsilon, "delta": goal.delta, "rho": goal.rho, "confidence": goal.confidence,
        }  # fmt: skip
        match request:
            case {"grid": [rows, columns]}:
                return self.grid(rows, columns, **given)
            case {"districts": dict(found)}:
                return self._districts_again(found, request.get("levels"), given)
            case {"h3": [level, least]}:
                return self.h3(level, coarsest=least, **given)
            case _:
                return self._rebuild_adaptive(request, goal)

    def _districts_again(self, document: dict[str, Any], order: Any, given: dict[str, Any]) -> Plan[Surface]:
        """Make the plan of districts from the polygons in its request."""
        regions = PolygonRegions.read_document(document)
        levels = tuple(map(str, order or regions.larger))  # a document may lose the order of its keys
        own = next(iter(regions.keys))  # a word that no level has
        features = [
            {"properties": {own: name, **{level: regions.larger[level][i] for level in levels}},
             "geometry": regions.polygons[i]}
            for i, name in enumerate(regions.names)
        ]  # fmt: skip
        return self.districts({"features": features}, name=own, parents=levels, **given)


def _forecasts(task: RegionTask, goal: Goal, words: str) -> list[Forecast]:
    """Say what to expect of each level; least squares only make it better."""
    found = [
        Forecast("n", f"points in each of {words}", task.noises[0].describe(),
                 float(task.noises[0].half_width(goal.confidence)))
    ]  # fmt: skip
    if task.above:
        law = MeasurementNoise.of(list(zip(task.noises, level_sizes(task), strict=True)), task.parents)
        wide = float(law.half_widths([[0]], 1 - float(goal.confidence))[0])
        found = [replace(found[0], error=wide, note="of the first region, once the levels agree")]
    return found


def level_sizes(task: RegionTask) -> list[int]:
    """Return how many regions each level has."""
    return [len(task.locator.regions), *(int(code.max()) + 1 for code in task.above)]
