"""The halving behind several quantiles: the middle one first, then those on either side of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

_FINE = 10**6  # levels with a larger denominator are rounded: public, and by less than a millionth


@dataclass(frozen=True, slots=True)
class Halving:
    """One share of a sorted list, its level among the rows that its parents leave it, and its children.

    Attributes
    ----------
    place
        Which of the shares it is.
    level
        The share of the rows below, among those between the two parents around it.
    depth
        How many parents it has.
    left, right
        The shares below and above it.
    """

    place: int
    level: Fraction
    depth: int
    left: Halving | None
    right: Halving | None

    def every(self) -> list[Halving]:
        """Return this share and all below and above it."""
        sides = [side.every() for side in (self.left, self.right) if side is not None]
        return [self, *(one for side in sides for one in side)]


def halve(
    shares: tuple[Fraction, ...],
    first: int = 0,
    low: Fraction = Fraction(0),
    high: Fraction = Fraction(1),
    depth: int = 0,
) -> Halving:
    """Halve increasing shares, at least one, between `low` and `high`; the first is number `first`.

    Examples
    --------
    >>> top = halve((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)))
    >>> [(one.place, str(one.level), one.depth) for one in top.every()]
    [(1, '1/2', 0), (0, '1/2', 1), (2, '1/2', 1)]
    """
    middle = len(shares) // 2
    share = shares[middle]
    exact = (share - low) / (high - low)
    level = exact.limit_denominator(_FINE)
    below, above = shares[:middle], shares[middle + 1 :]
    return Halving(
        first + middle,
        level if 0 < level < 1 else exact,
        depth,
        halve(below, first, low, share, depth + 1) if below else None,
        halve(above, first + middle + 1, share, high, depth + 1) if above else None,
    )
