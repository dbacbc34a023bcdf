"""The ladder mechanism: noise as wide as the data at hand needs, without paying to learn how wide that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.exact import count, rational
from tacit.mechanisms._grid_noise import SMALLEST_SCALE, out_of_range
from tacit.mechanisms._ladder_law import LadderLaw, largest_rate
from tacit.mechanisms._mechanism import figure, read_adjacency, show
from tacit.mechanisms._noise_laws import check_width
from tacit.mechanisms._width_noise import WidthNoise
from tacit.parameters import Integer

if TYPE_CHECKING:
    from tacit.accounting import Adjacency
    from tacit.exact import Number


@dataclass(frozen=True, init=False, repr=False, slots=True)
class LadderNoise(WidthNoise):
    """Add noise that follows the local sensitivity of a whole number, such as the triangles of a graph.

    Guarantee: epsilon, pure, for pairs (f, a) of a whole number and a width with two properties. Neighbours
    move f by at most the smaller of their two widths (and by at most `most`, where it is given), and they
    move the width by at most 1. For the edges of a graph: f is the number of triangles, and a is the largest
    number of common neighbours over all pairs of nodes, adjacent or not; or f is the number of wedges (paths
    of two edges), and a is the largest sum of two degrees, minus 2 where the two nodes are adjacent.

    Argument: let A = max(a, floor). Rung j holds the next min(A + j - 1, most) integers on each side of f,
    and each integer of rung j has a probability proportional to exp(-rate j). From one neighbour to the
    other, an integer moves by at most one rung. The normaliser Z(A) moves by at most the ratio
    Z(floor + 1) / Z(floor), because this ratio falls in A. So epsilon = rate + ln(Z(floor + 1) / Z(floor)).
    The proof is in docs/proofs/graphs.md.

    Parameters
    ----------
    epsilon
        The promise for the number. The width is used, but not released.
    floor
        A public whole number: smaller widths count as this one. It must not come from the data. A larger
        floor gives a larger rate. By default about 10 / sqrt(epsilon), see `default_floor`.
    most
        The largest possible width, if it is public: n - 2 for the triangles of a graph with n nodes, and
        2 (n - 2) for wedges. Larger widths count as this one.
    adjacency
        The neighbours that the two properties are stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> triangles = tc.mechanisms.LadderNoise(epsilon=1, floor=10, most=75)
    >>> round(float(triangles.rate), 4), triangles.half_width(0.95, width=16), triangles.median_error(16)
    (0.916, 62, 14)
    >>> isinstance(triangles.release((467, 16)), int)
    True
    """

    epsilon: Fraction
    floor: int
    most: int | None
    adjacency: Adjacency
    rate: Fraction

    def __init__(
        self,
        epsilon: Number,
        *,
        floor: int | None = None,
        most: int | None = None,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        spent = rational("epsilon", epsilon)
        last = None if most is None else count("most", most, zero=False)
        first = self.default_floor(spent, last) if floor is None else count("floor", floor)
        if last is not None:
            Integer(0, last, f"the largest width is {last:,}", instead=last).read("floor", first)
        check_width(2 / spent, power=56)  # a rate is at least half of epsilon
        if spent * SMALLEST_SCALE > 1:
            raise out_of_range(1 / spent)
        for name, value in (
            ("epsilon", spent),
            ("floor", first),
            ("most", last),
            ("adjacency", read_adjacency(adjacency)),
            ("rate", largest_rate(spent, first, last)),
        ):
            object.__setattr__(self, name, value)

    @staticmethod
    def default_floor(epsilon: Number, most: int | None = None) -> int:
        """Return the floor that suits most graphs: 10 / sqrt(epsilon), rounded up, and at most `most`.

        Examples
        --------
        >>> LadderNoise.default_floor(1), LadderNoise.default_floor(0.1), LadderNoise.default_floor(0.1, 20)
        (10, 32, 20)
        """
        spent = rational("epsilon", epsilon)
        least = math.isqrt(100 * spent.denominator // spent.numerator)
        wanted = least if least * least * spent >= 100 else least + 1
        return wanted if most is None else min(wanted, count("most", most, zero=False))

    @property
    def scale(self) -> Fraction:
        """The noise at the floor in whole steps: width / rate."""
        return max(self.floor, 1) / self.rate

    def law(self, width: int) -> LadderLaw:
        """Return the law of the noise where the width is `width`; on a private width the law is private."""
        at = max(width, self.floor)
        return LadderLaw(self.rate, at if self.most is None else min(at, self.most), self.most)

    @property
    def worst_pair(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """A pair at the floor, and a neighbour as far away as this width allows, with the next width."""
        wider = self.floor + 1 if self.most is None else min(self.floor + 1, self.most)
        return (0, self.floor), (self.floor, wider)

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact rate and scale, the floor, the largest width and the cost."""
        return {
            "mechanism": "ladder-noise",
            "rate": str(self.rate),
            "scale": str(self.scale),
            "floor": self.floor,
            "most": self.most,
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the law in a few words.

        Examples
        --------
        >>> LadderNoise(1, floor=10).describe()
        'ladder of steps of at least 10, rate 0.916'
        """
        return f"ladder of steps of at least {figure(self.floor * unit)}, rate {float(self.rate):.4g}"

    def __repr__(self) -> str:
        cap = "" if self.most is None else f", most={self.most}"
        return f"LadderNoise(epsilon={show(self.epsilon)}, floor={self.floor}{cap})"
