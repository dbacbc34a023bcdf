"""The ladder mechanism: noise as wide as the data at hand needs, without paying to learn how wide that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Code, Set
from tacit.mechanisms._grid_noise import SMALLEST_SCALE, out_of_range
from tacit.mechanisms._input_values import read_integers
from tacit.mechanisms._integer_mechanism import IntegerMechanism
from tacit.mechanisms._ladder_law import LadderLaw, largest_rate
from tacit.mechanisms._mechanism import Adjacency, confidence_level, figure, read_adjacency, show
from tacit.mechanisms._noise_laws import check_width

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.exact import Number

__all__ = ["LadderNoise", "read_pair"]


@dataclass(frozen=True, init=False, repr=False, slots=True)
class LadderNoise(IntegerMechanism):
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
        if last is not None and first > last:
            raise bad_parameter(
                "floor", f"at most the largest width, which is {last}", floor, fix=Set(floor=last)
            )
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

    @property
    def cost(self) -> Cost:
        """Pure epsilon: the rate was rounded down and its cost up, so that they stay within it."""
        from tacit.accounting import Cost

        return Cost.pure(self.epsilon, adjacency=self.adjacency)

    def law(self, width: int) -> LadderLaw:
        """Return the law of the noise where the width is `width`; on a private width the law is private."""
        at = max(width, self.floor)
        return LadderLaw(self.rate, at if self.most is None else min(at, self.most), self.most)

    def release(self, value: object) -> int:
        """Return the noisy number for a pair: the exact number and its width (the local sensitivity).

        Every pair of whole numbers has a meaning: widths outside floor and `most` count as the nearer one.
        """
        exact, width = read_pair(value)
        return exact + self.law(width).draw()

    def release_many(self, value: object, count: int) -> NDArray[Any]:
        """Return `count` independent outputs on the same pair, each at the full cost: for auditors only."""
        exact, width = read_pair(value)
        drawn = self.law(width).draws(count)
        fits = -(2**62) < exact < 2**62
        return drawn + exact if fits else np.asarray(drawn.astype(object) + exact)

    def half_width(self, confidence: Number, *, copies: int = 1, width: int | None = None) -> int:
        """Return how far an output may lie from the truth where the local sensitivity is at most `width`.

        The smallest m with P(|noise| <= m) at least the confidence, by the law at this width. It holds for
        all smaller widths too. The true width is private: state one that is public or that was paid for. If
        `most` is known, it is the default, which always holds.
        """
        level = confidence_level(confidence)
        at = self._stated(width)
        k = count("copies", copies, zero=False)
        return k * self.law(at).half_width(1 - (1 - level) / k)

    def error(self, confidence: Number, *, width: int | None = None) -> float:
        """Return the half-width as a float."""
        return float(self.half_width(confidence, width=width))

    def median_error(self, width: int | None = None) -> int:
        """Return the smallest m that the noise stays within at least half of the time, at this width."""
        return self.half_width(Fraction(1, 2), width=width)

    def _stated(self, width: int | None) -> int:
        if width is not None:
            return count("width", width)
        if self.most is None:
            raise bad_parameter(
                "width", "a whole number: a public bound on the local sensitivity", None, fix=Set(width=50)
            )
        return self.most

    def probability(self, output: int, exact: int, width: int) -> float:
        """Return the probability of an output for an exact number and its width; for private ones, private.

        Examples
        --------
        >>> round(LadderNoise(1, floor=10).probability(45, 45, 12), 6)
        0.055877
        """
        truth, at = read_pair((exact, width))
        return self.law(at).probability(_one_integer(output) - truth)

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


def read_pair(value: object) -> tuple[int, int]:
    """Read two whole numbers, exactly; a refusal shows none of them."""
    if isinstance(value, list | tuple) and len(value) == 2:
        return _one_integer(value[0]), _one_integer(value[1])
    if isinstance(value, np.ndarray) and value.shape == (2,):
        pair = read_integers(value).tolist()  # type: ignore[union-attr]
        return int(pair[0]), int(pair[1])
    raise _not_a_pair()


def _one_integer(one: object) -> int:
    read = None if isinstance(one, list | tuple) else read_integers(one)
    if isinstance(read, int):
        return read
    raise _not_a_pair()


def _not_a_pair() -> TacitError:
    return TacitError(
        "not-finite",
        "the value to be released is not a pair of whole numbers",
        why="the noise follows the second number, which says how far a neighbour can move the first",
        fix=Code("release((467, 16))"),
    )
