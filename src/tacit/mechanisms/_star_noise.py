"""The star mechanism: the number of stars of a graph, with noise for a noisy bound on the largest degree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Set
from tacit.mechanisms._grid_noise import SMALLEST_SCALE, out_of_range
from tacit.mechanisms._integer_mechanism import IntegerMechanism, half_width_of_sum
from tacit.mechanisms._mechanism import Adjacency, confidence_level, figure, read_adjacency, show
from tacit.mechanisms._noise_laws import LaplaceLaw, check_width
from tacit.mechanisms._quantile_choice import read_share
from tacit.mechanisms._width_noise import read_pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.exact import Number

__all__ = ["StarNoise"]

_DIGITS = 60
_WIDEST = 56  # the scale of the noise stays below 2^57 steps


@dataclass(frozen=True, init=False, repr=False, slots=True)
class StarNoise(IntegerMechanism):
    """Release the number of k-stars of a graph, and a noisy upper bound on its largest degree.

    Guarantee: (epsilon, delta) for one edge of a graph, for both released numbers together. A k-star is a
    node with k of its neighbours, so a node of degree d has C(d, k) of them.

    Argument: one edge moves the largest degree D by at most 1, and the number of k-stars by at most
    2 C(D, k - 1), where D is the smaller of the two largest degrees. The bound is D plus discrete Laplace
    noise of scale 1/epsilon1 plus `pad`. The count gets discrete Laplace noise of scale
    2 C(bound, k - 1) / epsilon2, which is enough unless the bound lies below D. The pad is the smallest one
    for which this has a probability of at most delta (noisy local sensitivity; Karwa, Raskhodnikova, Smith
    and Yaroslavtsev 2011). The proof is in docs/proofs/graphs.md. `StarLadder` has less noise and needs no
    delta, but it does not show a bound on the largest degree.

    Parameters
    ----------
    epsilon, delta
        The promise for both numbers.
    stars
        k, at least 2: how many edges a star has.
    most
        The largest degree that a node can have without the edge in question, if it is public: n - 2 for n
        nodes. Larger bounds count as this one.
    share
        The part of epsilon that the largest degree gets.
    adjacency
        The neighbours that the statement is made for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> stars = tc.mechanisms.StarNoise(1, delta=1e-6, stars=3, most=998)
    >>> stars.pad, stars.half_width(0.95, bound=150)
    (52, 89273)
    >>> noisy, bound = stars.release((1_500_000, 98))
    >>> isinstance(noisy, int), bound <= 998
    (True, True)
    """

    epsilon: Fraction
    delta: Fraction
    stars: int
    most: int | None
    share: Fraction
    adjacency: Adjacency
    pad: int

    def __init__(
        self,
        epsilon: Number,
        *,
        delta: Number,
        stars: int,
        most: int | None = None,
        share: Number = Fraction(1, 4),
        adjacency: Adjacency = "add/remove",
    ) -> None:
        spent, missed, part = (
            rational("epsilon", epsilon),
            rational("delta", delta),
            read_share("share", share),
        )
        if missed >= 1:
            raise bad_parameter("delta", "between 0 and 1", delta, fix=Set(delta=1e-6))
        edges = count("stars", stars, zero=False)
        if edges < 2:
            raise bad_parameter("stars", "at least 2", stars, fix=Set(stars=3))
        last = None if most is None else count("most", most, zero=False)
        if last is not None and last < edges - 1:
            raise bad_parameter(
                "most",
                f"at least {edges - 1} for stars of {edges} edges",
                most,
                why="otherwise the graph has too few nodes for such a star",
                fix=Set(stars=2),
            )
        for one in (spent * part, spent * (1 - part)):
            check_width(1 / one, power=_WIDEST)
            if one * SMALLEST_SCALE > 1:
                raise out_of_range(1 / one)
        for name, value in (
            ("epsilon", spent),
            ("delta", missed),
            ("stars", edges),
            ("most", last),
            ("share", part),
            ("adjacency", read_adjacency(adjacency)),
            ("pad", _smallest_pad(spent * part, missed)),
        ):
            object.__setattr__(self, name, value)

    @property
    def scale(self) -> Fraction:
        """The scale of the count's noise for a sensitivity of 1; a bound multiplies it by `sensitivity`."""
        return 1 / (self.epsilon * (1 - self.share))

    @property
    def cost(self) -> Cost:
        """Epsilon with delta, for both numbers together."""
        from tacit.accounting import Cost

        return Cost.approximate(self.epsilon, self.delta, adjacency=self.adjacency)

    @property
    def degree_law(self) -> LaplaceLaw:
        """The law of the noise on the largest degree, to which `pad` is added."""
        return LaplaceLaw(1 / (self.epsilon * self.share))

    def sensitivity(self, bound: int) -> int:
        """Return how far one edge moves the number of stars where no degree exceeds `bound`.

        Examples
        --------
        >>> StarNoise(1, delta=1e-6, stars=3).sensitivity(10)
        90
        """
        return 2 * math.comb(self._bounded(bound), self.stars - 1)

    def _bounded(self, bound: int) -> int:
        """Return a bound within its public limits, which are those of degrees that can matter."""
        least = max(bound, self.stars - 1)
        return least if self.most is None else min(least, self.most)

    def _count_law(self, bound: int) -> tuple[int, LaplaceLaw]:
        """Return the grid and the law in steps of it; the grid is 1 unless the noise passes 2^56."""
        moved = self.sensitivity(bound)
        grid = 1 << max(0, math.ceil(moved * self.scale).bit_length() - _WIDEST)
        return grid, LaplaceLaw(-(-moved // grid) * self.scale)

    def release(self, value: object) -> tuple[int, int]:
        """Return the noisy number of stars and the bound on the largest degree, for the two exact numbers.

        Every pair of whole numbers has a meaning. The bound is at least the largest degree (or `most`, if
        that is less), except with a probability of at most delta.
        """
        exact, degree = read_pair(value)
        bound = self._bounded(degree + self.pad + self.degree_law.draw())
        grid, law = self._count_law(bound)
        return grid * (exact // grid + law.draw()), bound

    def release_many(self, value: object, count: int) -> NDArray[Any]:
        """Return `count` independent pairs on the same value, each at the full cost: for auditors only."""
        exact, degree = read_pair(value)
        drawn = self.degree_law.draws(count)
        pairs = np.empty((count, 2), dtype=object)
        for one, places in _groups(drawn):
            bound = self._bounded(degree + self.pad + one)
            grid, law = self._count_law(bound)
            pairs[places, 0] = grid * (exact // grid + law.draws(len(places)).astype(object))
            pairs[places, 1] = bound
        fits = all(-(2**62) < one < 2**62 for one in pairs.flat)
        return pairs.astype(np.int64) if fits else pairs

    def half_width(self, confidence: Number, *, copies: int = 1, bound: int | None = None) -> int:
        """Return how far the noisy number of stars may lie from the truth, given the released bound.

        Given the bound, the noise is exactly discrete Laplace noise, so this costs nothing and always holds.
        If `most` is known, it is the default, for a forecast that holds whatever the bound turns out to be.
        """
        at = self.most if bound is None else bound
        if at is None:
            raise bad_parameter(
                "bound", "a whole number: the released bound on the largest degree", None, fix=Set(bound=100)
            )
        grid, law = self._count_law(count("bound", at))
        k = count("copies", copies, zero=False)
        return grid * half_width_of_sum(law, confidence_level(confidence), k) + k * (grid - 1)

    def error(self, confidence: Number, *, bound: int | None = None) -> float:
        """Return the half-width as a float."""
        return float(self.half_width(confidence, bound=bound))

    @property
    def worst_pair(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Graphs whose largest degree is far above the pad, so that the bound adds little to the noise."""
        degree = self._bounded(100 * self.stars * (self.pad + 1))
        return (0, degree), (self.sensitivity(degree), degree + 1)

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact parameters of both laws, and the cost."""
        return {
            "mechanism": "star-noise",
            "stars": self.stars,
            "degree_scale": str(self.degree_law.scale),
            "pad": self.pad,
            "scale": str(self.scale),
            "most": self.most,
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        each = figure(self.scale * unit)
        return f"discrete Laplace, scale {each} x the change that a noisy bound on the largest degree allows"

    def __repr__(self) -> str:
        cap = "" if self.most is None else f", most={self.most}"
        spent = f"epsilon={show(self.epsilon)}, delta={show(self.delta)}"
        return f"StarNoise({spent}, stars={self.stars}{cap})"


def _groups(drawn: NDArray[np.int64]) -> list[tuple[int, NDArray[np.intp]]]:
    """Return each number that was drawn, with its places."""
    numbers, which = np.unique(drawn, return_inverse=True)
    return [(int(one), np.flatnonzero(which == place)) for place, one in enumerate(numbers)]


@lru_cache(maxsize=1024)
def _smallest_pad(epsilon: Fraction, delta: Fraction) -> int:
    """Return the smallest t >= 0 with P(noise < -t) = c^(t+1) / (1 + c) <= delta, c = exp(-epsilon)."""
    context = Context(prec=_DIGITS + epsilon.denominator.bit_length(), Emin=MIN_EMIN)
    with localcontext(context):
        rate = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        allowed = Decimal(delta.numerator) / Decimal(delta.denominator)
        guess = -(allowed * (1 + (-rate).exp())).ln() / rate
        pad = max(0, int(guess) - 2)
        while not _is_enough(pad, rate, allowed):
            pad += 1
    return pad


def _is_enough(pad: int, rate: Decimal, allowed: Decimal) -> bool:
    """Check c^(t+1) <= delta (1 + c) with every rounding against us."""
    slack = Decimal(10) ** (-_DIGITS // 2)
    with localcontext() as context:
        context.rounding = ROUND_CEILING
        chance = (-rate * (pad + 1)).exp() * (1 + slack)
        context.rounding = ROUND_FLOOR
        return chance <= allowed * (1 + (-rate).exp()) * (1 - slack)
