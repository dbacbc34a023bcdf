"""The ladder mechanisms: noise whose width follows the data, without paying to learn how wide that is.

Their common part, the law of ladder noise (its draws, chances and half-widths, and the rate that a promise
allows), the ladder itself, and the ladder for stars of a graph: pure epsilon, with noise that follows the
largest degree.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.bisection import first_integer
from tacit.errors import TacitError
from tacit.exact import count, rational
from tacit.fixes import Code
from tacit.mechanisms._input_values import read_integers
from tacit.mechanisms._mechanism import IntegerMechanism, confidence_level, figure, read_adjacency, show
from tacit.mechanisms._noise_laws import check_width
from tacit.mechanisms.additive._lattice_noise import SMALLEST_SCALE, out_of_range
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost
    from tacit.exact import Number


_DIGITS = 60  # of the decimal arithmetic, besides those that a small rate loses
_RATE_BITS = 64  # of a rate, after its leading zeros
RATE_SLACK = Decimal(10) ** -40  # far above the error of the decimal arithmetic, far below a step of the rate
_STEPS = 100  # of the search for the largest ratio of normalisers


class WidthNoise(IntegerMechanism):
    """A ladder: the noise of a whole number follows a second, private number, its width."""

    __slots__ = ()

    epsilon: Fraction
    most: int | None
    adjacency: Adjacency

    @abstractmethod
    def law(self, width: int) -> RungLaw:
        """Return the law of the noise where the width is `width`; on a private width the law is private."""

    @property
    def cost(self) -> Cost:
        """Pure epsilon: the rate was rounded down and its cost up, so that they stay within it."""
        from tacit.accounting import Cost

        return Cost.pure(self.epsilon, adjacency=self.adjacency)

    def release(self, value: object) -> int:
        """Return the noisy number for a pair: the exact number and its width (the local sensitivity).

        Every pair of whole numbers has a meaning: widths outside floor and `most` count as the nearer one.
        """
        exact, width = read_pair(value)
        return exact + self.law(width).draw()

    def release_many(self, value: object, count: int) -> NDArray[Any]:
        """Return `count` independent outputs on the same pair, each at the full cost: for auditors only."""
        exact, width = read_pair(value)
        draws = self.law(width).draws(count)
        fits = -(2**62) < exact < 2**62
        return draws + exact if fits else np.asarray(draws.astype(object) + exact)

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
        if width is None and self.most is not None:
            return self.most
        return Integer(instead=50).read("width", width)

    def probability(self, output: int, exact: int, width: int) -> float:
        """Return the probability of an output for an exact number and its width; for private ones, private.

        Examples
        --------
        >>> import tacit as tc
        >>> round(tc.mechanisms.LadderNoise(1, floor=10).probability(45, 45, 12), 6)
        0.055877
        """
        truth, at = read_pair((exact, width))
        return self.law(at).probability(_one_integer(output) - truth)


def read_pair(value: object) -> tuple[int, int]:
    """Read two whole numbers, exactly; a refusal shows none of them."""
    if isinstance(value, list | tuple) and len(value) == 2:
        return _one_integer(value[0]), _one_integer(value[1])
    if isinstance(value, np.ndarray) and value.shape == (2,):
        pair = read_integers(value).tolist()  # type: ignore[union-attr]
        return int(pair[0]), int(pair[1])
    raise _not_a_pair()


def _one_integer(number: object) -> int:
    integer = None if isinstance(number, list | tuple) else read_integers(number)
    if isinstance(integer, int):
        return integer
    raise _not_a_pair()


def _not_a_pair() -> TacitError:
    return TacitError(
        "not-finite",
        "the value to be released is not a pair of whole numbers",
        why="the noise follows the second number, which says how far a neighbour can move the first",
        fix=Code("release((467, 16))"),
    )


class RungLaw(ABC):
    """P(k) proportional to exp(-rate j) for k in rung j; the widths of the rungs grow."""

    __slots__ = ()

    rate: Fraction

    @abstractmethod
    def draw(self) -> int:
        """Draw one number exactly."""

    @abstractmethod
    def draws(self, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw an array exactly."""

    @abstractmethod
    def end(self, rung: int) -> int:
        """Return the largest number of a rung: the sum of all widths up to it."""

    @abstractmethod
    def _one_side(self, rung: int) -> Decimal:
        """Return the sum over i >= 1 of q^i times the width of rung `rung` + i."""

    @abstractmethod
    def _context(self) -> Context:
        """Return a decimal context with enough digits."""

    def rung(self, k: int) -> int:
        """Return the rung of an integer."""
        far = abs(k)
        return first_integer(lambda rung: self.end(rung) >= far, -1, 1, growing=True)

    def probability(self, k: int) -> float:
        """Return P(k)."""
        with localcontext(self._context()):
            return float((-decimal(self.rate) * self.rung(k)).exp() / self._mass())

    def exceeds(self, steps: int) -> float:
        """Return P(|k| > steps)."""
        if steps < 0:
            return 1.0
        with localcontext(self._context()):
            return float(self._beyond(steps) / self._mass())

    def half_width(self, confidence: Fraction) -> int:
        """Return the smallest m with P(|k| <= m) >= confidence."""
        with localcontext(self._context()) as context:
            allowed = decimal(1 - confidence) * self._mass()
            if self._above(0) <= allowed:
                return 0
            high = first_integer(lambda rung: self._above(rung) <= allowed, 0, 1, growing=True)
            low = high - 1  # the weight above this rung is too large
            each = 2 * (-decimal(self.rate) * high).exp()
            context.rounding = ROUND_CEILING
            return self.end(low) + int(((self._above(low) - allowed) / each).to_integral_value())

    def _mass(self) -> Decimal:
        """Return Z, the sum of all weights, where zero has the weight 1."""
        return 1 + self._above(0)

    def _above(self, rung: int) -> Decimal:
        """Return the weight above a rung: a ladder again, that begins `rung` steps wider."""
        return 2 * (-decimal(self.rate) * rung).exp() * self._one_side(rung)

    def _beyond(self, steps: int) -> Decimal:
        """Return the weight of all integers farther than `steps` from zero."""
        rung = self.rung(steps)
        rest = self.end(rung) - steps
        return self._above(rung) + 2 * rest * (-decimal(self.rate) * rung).exp()


@dataclass(frozen=True, slots=True)
class LadderLaw(RungLaw):
    """The law of a ladder whose rung j holds min(width + j - 1, most) integers on each side.

    Examples
    --------
    >>> from fractions import Fraction
    >>> law = LadderLaw(Fraction(1), 2, None)
    >>> law.rung(-2), law.rung(3), law.half_width(Fraction(95, 100)), round(law.probability(0), 4)
    (1, 2, 13, 0.2497)
    """

    rate: Fraction
    width: int
    most: int | None

    def draw(self) -> int:
        """Draw one number exactly."""
        return noise.ladder(self.rate, self.width, self.most)

    def draws(self, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw an array exactly."""
        return noise.ladder(self.rate, self.width, self.most, size=shape)

    def end(self, rung: int) -> int:
        """Return the largest number of a rung: the sum of all widths up to it."""
        growing = rung if self.most is None else min(rung, self.most - self.width + 1)
        flat = 0 if self.most is None else (rung - growing) * self.most
        return growing * self.width + growing * (growing - 1) // 2 + flat

    def _one_side(self, rung: int) -> Decimal:
        width = self.width + rung if self.most is None else min(self.width + rung, self.most)
        return _one_side(self.rate, width, self.most)

    def _context(self) -> Context:
        return digits_for(self.rate, self.width)


def _one_side(rate: Fraction, width: int, cap: int | None) -> Decimal:
    """Return sum over j >= 1 of q^j min(width + j - 1, most) = u (width + u (1 - q^(most - width)))."""
    q = (-decimal(rate)).exp()
    u = q / (1 - q)
    cut = Decimal(0) if cap is None else (-decimal(rate) * (cap - width)).exp()
    return u * (width + u * (1 - cut))


@lru_cache(maxsize=1024)
def largest_rate(epsilon: Fraction, floor: int, cap: int | None) -> Fraction:
    """Return the largest rate r on a fine grid with r + ln(Z(floor + 1) / Z(floor)) <= epsilon, certified.

    Half of epsilon always holds (docs/proofs/graphs.md), so the search starts there. Where all widths are
    `cap`, the normaliser does not move, and the rate is epsilon.

    Examples
    --------
    >>> from fractions import Fraction
    >>> [round(float(largest_rate(Fraction(1), floor, None)), 6) for floor in (0, 10, 100)]
    [0.545944, 0.916034, 0.99019]
    >>> largest_rate(Fraction(1, 3), 7, 7)
    Fraction(1, 3)
    """
    if floor == cap:
        return epsilon
    return search_rate(epsilon, lambda rate: _spent(rate, floor, cap))


def search_rate(epsilon: Fraction, spent: Callable[[Fraction], Fraction]) -> Fraction:
    """Return a rate r from epsilon/2 on, to 64 bits, with spent(r) <= epsilon; epsilon/2 must hold."""
    shift = _RATE_BITS + max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    high = (epsilon.numerator << shift) // epsilon.denominator + 1  # more than epsilon
    low = (high - 1) // 2
    beyond = first_integer(lambda rate: spent(Fraction(rate, 1 << shift)) > epsilon, low, high)
    return Fraction(beyond - 1, 1 << shift)


def _spent(rate: Fraction, floor: int, cap: int | None) -> Fraction:
    """Return r + ln(Z(floor + 1) / Z(floor)), rounded up: the epsilon of a rate.

    The decimal operations are correctly rounded, and 1 - q, which loses digits, has its own in reserve. The
    slack covers all of them many times over.
    """
    with localcontext(digits_for(rate, floor)):
        ratio = (1 + 2 * _one_side(rate, floor + 1, cap)) / (1 + 2 * _one_side(rate, floor, cap))
        return rate + Fraction(ratio.ln() + RATE_SLACK * decimal(rate))


def digits_for(rate: Fraction, width: int) -> Context:
    """Return the decimal context that leaves 60 digits after the loss in 1 - exp(-rate)."""
    small = max(0, rate.denominator.bit_length() - rate.numerator.bit_length())
    return Context(prec=_DIGITS + small + width.bit_length(), Emin=MIN_EMIN)


def decimal(number: Fraction) -> Decimal:
    """Return a rational number in the digits of the current context."""
    return Decimal(number.numerator) / Decimal(number.denominator)


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
        cap = None if most is None else count("most", most, zero=False)
        lowest = self.default_floor(spent, cap) if floor is None else count("floor", floor)
        if cap is not None:
            Integer(0, cap, f"the largest width is {cap:,}", instead=cap).read("floor", lowest)
        check_width(2 / spent, power=56)  # a rate is at least half of epsilon
        if spent * SMALLEST_SCALE > 1:
            raise out_of_range(1 / spent)
        for name, value in (
            ("epsilon", spent),
            ("floor", lowest),
            ("most", cap),
            ("adjacency", read_adjacency(adjacency)),
            ("rate", largest_rate(spent, lowest, cap)),
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
        root = math.isqrt(100 * spent.denominator // spent.numerator)
        floor = root if root * root * spent >= 100 else root + 1
        return floor if most is None else min(floor, count("most", most, zero=False))

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
        cap = None if most is None else count("most", most, zero=False)
        usual = (edges - 1) * LadderNoise.default_floor(spent)
        lowest = Integer(edges - 1, cap, instead=cap or usual)
        start = lowest.read("floor", min(usual, cap or usual) if floor is None else floor)
        check_width(2 / spent, power=56)  # a rate is at least half of epsilon
        if spent * SMALLEST_SCALE > 1:
            raise out_of_range(1 / spent)
        for name, value in (
            ("epsilon", spent),
            ("stars", edges),
            ("floor", start),
            ("most", cap),
            ("adjacency", read_adjacency(adjacency)),
            ("rate", _largest_rate(spent, start, edges - 1, cap)),
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
        smallest = figure(2 * math.comb(self.floor, self.stars - 1) * unit)
        return f"ladder of steps of at least {smallest}, rate {float(self.rate):.4g}"

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
def _largest_rate(epsilon: Fraction, floor: int, power: int, cap: int | None) -> Fraction:
    """Return the largest rate on a fine grid whose cost, rounded up, is within epsilon."""
    if floor == cap:
        return epsilon
    return search_rate(epsilon, lambda rate: _epsilon_of_stars(rate, floor, power, cap))


def _epsilon_of_stars(rate: Fraction, floor: int, power: int, cap: int | None) -> Fraction:
    """Return r + ln of the largest Z(A + 1) / Z(A) over A from the floor on, rounded up.

    With S(p) for the sums above, Z(A + 1) / Z(A) = 1 + 4 S(p-1) / (1 + 4 S(p)) <= 1 + S(p-1) / S(p), and this
    bound falls in A. So the search ends where the bound is no larger than the largest ratio so far; after
    100 steps the bound itself is taken, for all later A.
    """
    with localcontext(_digits(rate, floor, power)):
        largest, width = Decimal(0), floor
        while cap is None or width < cap:
            above, exact = (_sum_of_binomials(rate, width, p) for p in (power - 1, power))
            if above <= largest * exact:
                break
            final = width == floor + _STEPS
            largest = max(largest, above / exact if final else 4 * above / (1 + 4 * exact))
            width += 1
        return rate + Fraction((1 + largest).ln() + RATE_SLACK * decimal(rate))
