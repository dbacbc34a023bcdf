"""The aggregates of two columns of a table together: covariance, correlation, line of least squares."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from tacit.algebra import PRODUCT_BITS, ProductSums, Scope, bounds_of, document, grid_for, resolve, words_of
from tacit.tables._aggregates import Aggregate, LoweringContext, bounds_missing
from tacit.tables._product_readings import (
    PairCorrelation,
    PairCovariance,
    PairDetermination,
    PairIntercept,
    PairSlope,
)
from tacit.tables._steps import AddNoise, MeasuredStep

if TYPE_CHECKING:
    from tacit.algebra import Node
    from tacit.tables._aggregates import Range
    from tacit.tables._readings import Reading


@dataclass(frozen=True, slots=True)
class PairOf(Aggregate):
    """A quantity of two columns, of the rows in which both have a value, clipped to public bounds.

    ``argument`` is the column that comes first in SQL; where a line is fitted, it is the one that the
    ``other`` explains. All quantities of two columns are read off one statistic.
    """

    argument: Node
    other: Node
    bounds: Range | None = None
    other_bounds: Range | None = None
    word: ClassVar[str] = ""

    @property
    def arguments(self) -> tuple[Node, ...]:
        """Both columns."""
        return self.argument, self.other

    def resolved(self, facts: Scope) -> Self:
        """Read both columns as numbers, with the bounds that their form and the facts show."""
        made = []
        for given, own in ((self.argument, self.bounds), (self.other, self.other_bounds)):
            node = resolve(given, facts, "number")
            found = own or bounds_of(node, facts)
            made.append((node, found if found is not None and found[0] < found[1] else None))
        (argument, bounds), (other, other_bounds) = made
        return replace(self, argument=argument, other=other, bounds=bounds, other_bounds=other_bounds)

    def reading(self, *, x_first: bool) -> Reading:
        """Return how the quantity is read; ``x_first``: the column that explains comes first."""
        raise NotImplementedError

    def stands_for(self, reading: Reading) -> str:
        """Say when there is no value."""
        del reading
        return "missing if the noise is too large to see the spread of the values"

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Read the answer off the products of both columns, whichever of them was named first."""
        del context
        sides = []
        for node, bounds in ((self.argument, self.bounds), (self.other, self.other_bounds)):
            if bounds is None:
                raise bounds_missing(self.word, node)
            sides.append((node, grid_for(bounds, PRODUCT_BITS)))
        ordered = sorted(sides, key=lambda side: json.dumps(document(side), sort_keys=True))
        (first, grid), (second, other_grid) = ordered
        statistic = ProductSums(first, grid, second, other_grid)
        return [(name, MeasuredStep(statistic, AddNoise()), self.reading(x_first=ordered[0] == sides[1]))]


@dataclass(frozen=True, slots=True)
class CorrelationOf(PairOf):
    """Pearson's correlation."""

    word: ClassVar[str] = "correlation"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products; the order of the columns does not matter."""
        del x_first
        return PairCorrelation()


@dataclass(frozen=True, slots=True)
class CovarianceOf(PairOf):
    """The covariance: of a sample, or of the rows themselves (``population``)."""

    population: bool = False
    word: ClassVar[str] = "covariance"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products; the order of the columns does not matter."""
        del x_first
        return PairCovariance(sample=not self.population)

    def stands_for(self, reading: Reading) -> str:
        """Say nothing: there is always a value."""
        del reading
        return ""


@dataclass(frozen=True, slots=True)
class SlopeOf(PairOf):
    """The slope of the line of least squares."""

    word: ClassVar[str] = "slope"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products."""
        return PairSlope(x_first)

    def stands_for(self, reading: Reading) -> str:
        """Say which column explains which."""
        del reading
        return f"the change of {words_of(self.argument)} when {words_of(self.other)} grows by 1"


@dataclass(frozen=True, slots=True)
class InterceptOf(PairOf):
    """The height of the line of least squares where the column that explains is 0."""

    word: ClassVar[str] = "intercept"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products."""
        return PairIntercept(x_first)

    def stands_for(self, reading: Reading) -> str:
        """Say which column explains which."""
        del reading
        return f"{words_of(self.argument)} at {words_of(self.other)} = 0 on the fitted straight line"


@dataclass(frozen=True, slots=True)
class DeterminationOf(PairOf):
    """R squared, the part of the variance that a straight line explains."""

    word: ClassVar[str] = "r_squared"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products; the order of the columns does not matter."""
        del x_first
        return PairDetermination()
