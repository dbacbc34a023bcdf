"""The dataset of a map: points in a public box, and the questions about them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core import Dataset, Forecast, Limits, Plan, PlanGoal
from tacit.errors import TacitError
from tacit.exact import count
from tacit.fixes import Say
from tacit.maps._adaptive_questions import AdaptiveQuestions
from tacit.maps._limits import contribution_of, limits_in_words
from tacit.maps._regions import GridRegions
from tacit.maps._task import RegionTask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.exact import Number
    from tacit.maps._box import Box
    from tacit.maps._point_source import OwnedPoints, PointSource
    from tacit.maps._surface import Surface
    from tacit.maps._task import Locator

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
        goal = PlanGoal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
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

    def _public(self) -> dict[str, JSON]:
        """Return the box and the limits, which belong to every question."""
        return {
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
        self, locator: Locator, goal: PlanGoal, asked: dict[str, JSON], words: str,
        *, request: dict[str, JSON] | None = None, facts: tuple[tuple[str, str], ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Plan[Surface]:  # fmt: skip
        """Plan the counts of one set of regions."""
        who = contribution_of(self.limits, self.adjacency, len(locator.regions))
        noise = goal.noise(l1=who.l1(1), l2_squared=who.l2_squared(1), adjacency=self.adjacency)
        task = RegionTask(self._source, locator, self.limits, asked | self._public(), (noise,), notes=notes)
        wide = float(noise.half_width(goal.confidence))
        meaning = f"points in each of {locator.regions.words}"
        return Plan.of(
            self, task, promised=goal.promised,
            forecast=[Forecast("n", meaning, noise.describe(), wide)],
            facts=[("regions", f"{locator.regions.words}, all of them, empty ones too"), *facts,
                   *self._facts()],
            confidence=float(goal.confidence), asked=words,
            request=lambda: {**(asked if request is None else request), "goal": goal.to_json()},
        )  # fmt: skip

    def _rebuild(self, request: Any) -> Plan[Any]:
        goal = PlanGoal.from_json(request["goal"])
        given: dict[str, Any] = {
            "epsilon": goal.epsilon, "delta": goal.delta, "rho": goal.rho, "confidence": goal.confidence,
        }  # fmt: skip
        match request:
            case {"grid": [rows, columns]}:
                return self.grid(rows, columns, **given)
            case _:
                return self._rebuild_adaptive(request, goal)
