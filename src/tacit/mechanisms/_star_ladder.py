"""The ladder mechanism for stars of a graph: pure epsilon, with noise that follows the largest degree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tacit import noise
from tacit.errors import bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Set
from tacit.mechanisms._grid_noise import SMALLEST_SCALE, out_of_range
from tacit.mechanisms._ladder_law import RATE_SLACK, RungLaw, decimal, digits_for, search_rate
from tacit.mechanisms._ladder_noise import LadderNoise
from tacit.mechanisms._mechanism import figure, read_adjacency, show
from tacit.mechanisms._noise_laws import check_width
from tacit.mechanisms._width_noise import WidthNoise
from tacit.parameters import Integer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency
    from tacit.exact import Number

_STEPS = 100  # of the search for the largest ratio of normalisers


@dataclass(frozen=True, slots=True)
class StarLadderLaw(RungLaw):
    """The law of a ladder whose rung j holds 2 C(width + j - 1, power) integers on each side.

    Examples
    --------
    >>> from fractions import Fraction
    >>> law = StarLadderLaw(Fraction(1), 3, 2)
    >>> law.rung(6), law.rung(7), law.rung(18), law.half_width(Fraction(1, 2))
    (1, 2, 2, 10)
    """

    rate: Fraction
    width: int
    power: int

    def draw(self) -> int:
        """Draw one number exactly."""
        return noise.star_ladder(self.rate, self.width, self.power)

    def draws(self, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw an array exactly."""
        return noise.star_ladder(self.rate, self.width, self.power, size=shape)

    def end(self, rung: int) -> int:
        """Return the largest number of a rung: the sum of all widths up to it."""
        low, high = (math.comb(self.width + j, self.power + 1) for j in (0, rung))
        return 2 * (high - low)

    def _one_side(self, rung: int) -> Decimal:
        return 2 * _sum_of_binomials(self.rate, self.width + rung, self.power)

    def _context(self) -> Context:
        return _digits(self.rate, self.width, self.power)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class StarLadder(WidthNoise):
    """Add noise to the number of k-stars of a graph that follows its largest degree.

    Guarantee: epsilon, pure, for pairs (f, D) of a whole number and a largest degree. Neighbours move D by at
    most 1, and f by at most 2 C(D, k - 1) for the smaller of their two largest degrees. This holds for the
    k-stars of graphs that differ by one edge: a node of degree d has C(d, k) of them.

    Argument: the ladder of `LadderNoise` with the widths 2 C(A + j - 1, k - 1), A = max(D, floor). Rung j + 1
    of A - 1 is as wide as rung j of A, so an integer moves by at most one rung, and epsilon is the rate plus
    the largest logarithm of Z(A + 1) / Z(A). The proof is in docs/proofs/graphs.md.

    Parameters
    ----------
    epsilon
        The promise for the number. The largest degree is used, but not released.
    stars
        k, at least 2: how many edges a star has.
    floor
        A public whole number, at least k - 1: smaller degrees count as this one. It must not come from the
        data. By default about 10 (k - 1) / sqrt(epsilon), and at most `most`.
    most
        The largest degree that a node can have without the edge in question, if it is public: n - 2 for n
        nodes. Larger degrees count as this one.
    adjacency
        The neighbours that the statement is made for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> stars = tc.mechanisms.StarLadder(1, stars=3, most=998)
    >>> stars.floor, stars.half_width(0.95, width=98), stars.median_error(98)
    (20, 34129, 8102)
    >>> isinstance(stars.release((1_500_000, 98)), int)
    True
    """

    epsilon: Fraction
    stars: int
    floor: int
    most: int | None
    adjacency: Adjacency
    rate: Fraction

    def __init__(
        self,
        epsilon: Number,
        *,
        stars: int,
        floor: int | None = None,
        most: int | None = None,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        spent, edges = rational("epsilon", epsilon), Integer(2, instead=3).read("stars", stars)
        last = None if most is None else count("most", most, zero=False)
        usual = (edges - 1) * LadderNoise.default_floor(spent)
        first = count("floor", min(usual, last or usual) if floor is None else floor)
        if first < edges - 1 or (last is not None and first > last):
            top = "" if last is None else f" and at most {last}"
            raise bad_parameter("floor", f"at least {edges - 1}{top}", first, fix=Set(floor=last or usual))
        check_width(2 / spent, power=56)  # a rate is at least half of epsilon
        if spent * SMALLEST_SCALE > 1:
            raise out_of_range(1 / spent)
        for name, value in (
            ("epsilon", spent),
            ("stars", edges),
            ("floor", first),
            ("most", last),
            ("adjacency", read_adjacency(adjacency)),
            ("rate", _largest_rate(spent, first, edges - 1, last)),
        ):
            object.__setattr__(self, name, value)

    @property
    def scale(self) -> Fraction:
        """The noise at the floor in whole steps: width / rate."""
        return 2 * math.comb(self.floor, self.stars - 1) / self.rate

    def law(self, width: int) -> StarLadderLaw:
        """Return the law of the noise where the largest degree is `width`; on private ones it is private."""
        at = max(width, self.floor)
        return StarLadderLaw(self.rate, at if self.most is None else min(at, self.most), self.stars - 1)

    @property
    def worst_pair(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """A pair at the floor, and a neighbour as far away as this degree allows, with the next degree."""
        return (0, self.floor), (2 * math.comb(self.floor, self.stars - 1), self.floor + 1)

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact rate and scale, the floor, the largest degree and the cost."""
        return {
            "mechanism": "star-ladder",
            "stars": self.stars,
            "rate": str(self.rate),
            "scale": str(self.scale),
            "floor": self.floor,
            "most": self.most,
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the law in a few words."""
        least = figure(2 * math.comb(self.floor, self.stars - 1) * unit)
        return f"ladder of steps of at least {least}, rate {float(self.rate):.4g}"

    def __repr__(self) -> str:
        cap = "" if self.most is None else f", most={self.most}"
        return f"StarLadder(epsilon={show(self.epsilon)}, stars={self.stars}, floor={self.floor}{cap})"


def _sum_of_binomials(rate: Fraction, width: int, power: int) -> Decimal:
    """Return the sum over j >= 1 of q^j C(width + j - 1, power): that of C(width, power - i) u^(i + 1)."""
    q = (-decimal(rate)).exp()
    u = q / (1 - q)
    total = Decimal(0)
    for i in range(power + 1):
        total += math.comb(width, power - i) * u ** (i + 1)
    return total


def _digits(rate: Fraction, width: int, power: int) -> Context:
    return digits_for(rate, (power + 1) * math.comb(width, power))


@lru_cache(maxsize=1024)
def _largest_rate(epsilon: Fraction, floor: int, power: int, most: int | None) -> Fraction:
    """Return the largest rate on a fine grid whose cost, rounded up, is within epsilon."""
    if floor == most:
        return epsilon
    return search_rate(epsilon, lambda rate: _spent(rate, floor, power, most))


def _spent(rate: Fraction, floor: int, power: int, most: int | None) -> Fraction:
    """Return r + ln of the largest Z(A + 1) / Z(A) over A from the floor on, rounded up.

    With S(p) for the sums above, Z(A + 1) / Z(A) = 1 + 4 S(p-1) / (1 + 4 S(p)) <= 1 + S(p-1) / S(p), and this
    bound falls in A. So the search ends where the bound is no larger than the largest ratio so far; after
    100 steps the bound itself is taken, for all later A.
    """
    with localcontext(_digits(rate, floor, power)):
        largest, width = Decimal(0), floor
        while most is None or width < most:
            above, own = (_sum_of_binomials(rate, width, p) for p in (power - 1, power))
            if above <= largest * own:
                break
            last = width == floor + _STEPS
            largest = max(largest, above / own if last else 4 * above / (1 + 4 * own))
            width += 1
        return rate + Fraction((1 + largest).ln() + RATE_SLACK * decimal(rate))
