"""The share of a table's rows that lie beyond a limit: its statistic, its reading and its aggregate.

Let n be the number of a unit's rows, L the limit and C a public cap above it. The unit adds the two integers
(min(n, L), min(n, C) - min(n, L)): the rows that the limit keeps, and those that it cuts. They are
non-negative with a sum of at most C, so one row of the relation, which is one unit, weighs C. The share of
the second in the sum of both is tested like a mean of zeros and ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from tacit.algebra import CutSums, Scope, ValueGrid, resolve
from tacit.exact import count
from tacit.fixes import Set
from tacit.mechanisms import mean_sets
from tacit.parameters import Integer
from tacit.tables._aggregates import Aggregate, LoweringContext
from tacit.tables._python_expressions import Expr, as_node
from tacit.tables._readings import Cell, Reading
from tacit.tables._steps import AddNoise, MeasuredStep

if TYPE_CHECKING:
    from tacit.algebra import Node
    from tacit.tables._readings import StepNoise

_MOST_CAP = 10**6


@dataclass(frozen=True, slots=True)
class PartsShare(Reading):
    """The part of the total that is cut."""

    divided: ClassVar[bool] = True
    unknown: ClassVar[str] = "depends on the number of rows: give a size to estimate it"

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the shares: r is tested with cut - r (kept + cut), which is linear in the noisy integers."""
        parts = np.array(lines, dtype=np.float64).reshape(-1, 2)
        sets = mean_sets(parts, noise.linear, float(1 - confidence))
        return [Cell(*ends) for ends in np.stack(sets, axis=-1).tolist()]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width to expect at most with about ``size`` rows: with a share of 0 or 1."""
        if size is None:
            return None
        return min(float(noise.linear.half_width(float(1 - confidence), [0.0, 1.0])) / size, 1.0)


@dataclass(frozen=True, slots=True)
class ShareBeyond(Aggregate):
    """The share of a total that lies beyond a limit for each row, with rows clipped at a public cap."""

    argument: Node
    limit: int
    cap: int
    word: ClassVar[str] = "share_beyond"

    def resolved(self, facts: Scope) -> Self:
        """Read the argument as a number."""
        return replace(self, argument=resolve(self.argument, facts, "number"))

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Sum what is kept and what is cut."""
        del context
        grid = ValueGrid(Fraction(0), Fraction(self.cap), Fraction(1), 0, self.cap)
        return [(name, MeasuredStep(CutSums(self.argument, self.limit, grid), AddNoise()), PartsShare())]


def share_beyond(column: str | Expr, limit: int, cap: int) -> Aggregate:
    """Estimate which share of the sum of a column lies beyond ``limit`` in each row, up to a public ``cap``.

    Values are rounded to whole numbers in [0, cap].

    Examples
    --------
    >>> share_beyond("rows", 5, 50).word
    'share_beyond'
    """
    low = count("limit", limit, zero=False, fix=Set(limit=5))
    high = Integer(low + 1, _MOST_CAP, "the cap must be above the limit", instead=10 * low).read("cap", cap)
    return ShareBeyond(as_node(column), low, high)
