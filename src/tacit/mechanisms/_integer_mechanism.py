"""Integer mechanisms, the only noise of every field: exact integers in, noisy integers or indices out."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.exact import count
from tacit.mechanisms._mechanism import Mechanism
from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw, TruncatedLaplaceLaw

if TYPE_CHECKING:
    from tacit.exact import Number


class IntegerMechanism(Mechanism):
    """A mechanism that a field hands its exact integers to.

    Guarantee: one call of `release` takes `cost` from a budget, for all integers of the call together. Two
    integer mechanisms with equal `to_json` follow the same law.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.DiscreteLaplace(epsilon=0.5, sensitivity=1)
    >>> isinstance(m, IntegerMechanism), m.additive, m.half_width(0.95), m.describe()
    (True, True, 6, 'discrete Laplace, scale 2')
    """

    __slots__ = ()

    #: Whether the noisy outputs of several independent runs may be added up.
    additive: ClassVar[bool] = False

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """The scale of the noise, in whole steps: what integers or scores are divided by in the law."""

    @abstractmethod
    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return how far, in whole steps, an output may lie from the truth with at least this confidence.

        For added noise, the sum of `copies` independent noises stays within it. For a choice, the chosen
        score lies at most this far below the best.
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the mechanism's name, its exact parameters and its cost as JSON data."""

    @abstractmethod
    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return a short phrase for people; `unit` is what one whole step is worth."""


@lru_cache(maxsize=4096)
def half_width_of_sum(
    law: LaplaceLaw | TruncatedLaplaceLaw | GaussianLaw, confidence: Fraction, copies: int = 1
) -> int:
    """Return an m with P(|sum of `copies` noises| <= m) at least the confidence; the smallest for one noise.

    The sum of k noises stays within k times the half-width of each at 1 - (1 - confidence)/k, and within a
    tail bound: sub-Gaussian, or Chan, Shi and Song 2011, lemma 2.8. The smaller of the two is taken. Cutting
    off the ends of a symmetric law only lowers its moments.
    """
    k = copies if type(copies) is int and copies > 0 else count("copies", copies, zero=False)
    each = k * law.half_width(1 - (1 - confidence) / k)
    if k == 1:
        return each
    log = math.log(2 / float(1 - confidence))
    if isinstance(law, GaussianLaw):
        together = float(law.sigma) * math.sqrt(2 * k * log)
    else:
        together = float(law.scale) * math.sqrt(8 * log) * max(math.sqrt(k), math.sqrt(log))
    return min(each, math.ceil(together))
