"""Rates of a surface: noisy counts over public denominators, with the intervals of the counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells
from tacit.errors import bad_parameter
from tacit.exact import rational
from tacit.fixes import Code, Set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.exact import Number
    from tacit.maps._regions import Regions


class SurfaceRates:
    """What divides a surface by public numbers; `Surface` inherits it."""

    __slots__ = ()

    if TYPE_CHECKING:
        regions: Regions
        counts: Any
        confidence: float
        notes: tuple[str, ...]

        def _intervals(self) -> tuple[Any, Any]: ...

    def rate(self, denominators: Mapping[str, float] | Sequence[float], *, per: Number = 1) -> AnswerTable:
        """Return the count of each region over a public number, such as inhabitants or square kilometres.

        The denominators are public, so each interval is that of the count, divided. A region whose
        denominator is 0 has no rate. Free post-processing.

        Parameters
        ----------
        denominators
            By the name of each region, or one number for each region in their order.
        per
            What the rate is stated for: 1,000 inhabitants.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(),
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> surface = sites.grid(2, 2).plan(epsilon=1).release()
        >>> rates = surface.rate([100, 250, 0, 400], per=1000)
        >>> rates["rate"].value[2] is None, rates["rate"].low[0] <= rates["rate"].value[0]
        (True, True)
        """
        below = self._denominators(denominators)
        factor = float(rational("per", per))
        low, high = self._intervals()
        parts = [
            tuple(float(n) * factor / d if d else None for n, d in zip(part, below, strict=True))
            for part in (self.counts, low, high)
        ]
        note = f"noisy points per {factor:g} of a public number; a region without one has no rate"
        return AnswerTable(
            self.regions.keys, {"rate": Cells(*parts)}, self.confidence, notes={"rate": note},
            left_out=self.notes,
        )  # fmt: skip

    def _denominators(self, given: Mapping[str, float] | Sequence[float]) -> list[float]:
        """Read one finite number of at least 0 for each region."""
        if isinstance(given, Mapping):
            sides = {"south", "west", "north", "east"}
            names = next((values for key, values in self.regions.keys.items() if key not in sides), ())
            missing = next((name for name in names if str(name) not in given), None)
            if not names or missing is not None:
                raise bad_parameter(
                    "denominators", "a number for each region", f"none for {missing!r}",
                    why="regions have names" if names else "the regions of this surface have no names",
                    fix=Code("surface.rate([...], per=1000) with one number for each region, in their order"),
                )  # fmt: skip
            given = [given[str(name)] for name in names]
        try:
            numbers = np.array(given, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if len(numbers) != len(self.regions) or not np.isfinite(numbers).all() or (numbers < 0).any():
            raise bad_parameter(
                "denominators", f"{len(self.regions):,} finite numbers of at least 0", f"{len(numbers):,}",
                fix=Set(denominators=[1200, 800]),
            )  # fmt: skip
        return [float(number) for number in numbers]
