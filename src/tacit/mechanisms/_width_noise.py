"""Mechanisms whose noise follows a width: the common part of the ladders."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.exact import count
from tacit.fixes import Code
from tacit.mechanisms._input_values import read_integers
from tacit.mechanisms._integer_mechanism import IntegerMechanism
from tacit.mechanisms._mechanism import confidence_level
from tacit.parameters import Integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost
    from tacit.exact import Number
    from tacit.mechanisms._ladder_law import RungLaw


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
