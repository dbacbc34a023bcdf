"""What a mechanism is: its interface, and the parameters that all mechanisms share.

Integer mechanisms are the only noise of every field: exact integers in, noisy integers or indices out. The
memory of a mechanism becomes bytes whose length shows nothing, because whoever stores it sees its length.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tacit import parameters
from tacit.bisection import first_number
from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Either, Set
from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw, TruncatedLaplaceLaw
from tacit.parameters import Choice, Delta, Flag, Needed, Omitted, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tacit.accounting import Adjacency, Cost


_T = TypeVar("_T", float, NDArray[np.float64])
_SHORT = 2**64  # a fraction with a smaller denominator is short
_ADJACENCY = Choice(("add/remove", "replace"))


class Mechanism(ABC):
    """A step that adds noise and knows its cost and its error; it cannot change, and is always valid."""

    __slots__ = ()

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What one release takes from a budget."""

    @abstractmethod
    def release(self, value: object) -> object:
        """Return one private output for the true value."""

    def release_many(self, value: object, count: int) -> object:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        return [self.release(value) for _ in range(count)]

    @property
    @abstractmethod
    def worst_pair(self) -> tuple[object, object]:
        """Neighbouring values on which the outputs differ as much as the cost allows (or close to it)."""

    @classmethod
    def accuracy_to_epsilon(cls, error: Number, confidence: Number = 0.95, **parameters: Any) -> float:
        """Return the smallest epsilon, to a part in a million, whose error is at most `error`.

        The answer is checked forward: a mechanism built with it has at most this error.

        Parameters
        ----------
        error
            The wanted half-width.
        confidence
            How often the error stays within it.
        **parameters
            All other parameters of the mechanism, and of its `error`.

        Examples
        --------
        >>> import tacit as tc
        >>> epsilon = tc.mechanisms.Laplace.accuracy_to_epsilon(5, 0.95, sensitivity=1)
        >>> round(epsilon, 4), tc.mechanisms.Laplace(epsilon=epsilon, sensitivity=1).error(0.95) <= 5
        (0.5991, True)
        >>> round(tc.mechanisms.Exponential.accuracy_to_epsilon(10, sensitivity=1, candidates=100), 2)
        1.51
        """
        error_of = getattr(cls, "error", None)
        if error_of is None:
            raise bad_parameter(
                "mechanism",
                "one that states its error",
                cls.__name__,
                fix=Code("tc.mechanisms.Laplace"),
            )
        arguments = inspect.signature(error_of).parameters
        of = {name: parameters.pop(name) for name in list(parameters) if name in arguments}

        def error_at(epsilon: float) -> float:
            mechanism: Any = cls(epsilon=epsilon, **parameters)  # type: ignore[call-arg]
            return float(mechanism.error(confidence, **of))

        return _smallest(error_at, float(rational("error", error)))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def _smallest(error_at: Callable[[float], float], error: float) -> float:
    """Return the smallest epsilon with ``error_at(epsilon) <= wanted``; more epsilon means less error."""
    high = 1.0
    while error_at(high) > error:
        high *= 4
        if high > 1e6:
            raise bad_parameter("error", "reachable with an epsilon below a million", error, fix=Set(error=1))
    low = high / 4
    while low > 1e-12 and error_at(low) <= error:
        high, low = low, low / 4
    return first_number(lambda epsilon: error_at(epsilon) <= error, low, high, ratio=1 + 1e-6)


@dataclass(frozen=True, slots=True)
class Interval(Generic[_T]):
    """A range that holds the true value with at least the stated confidence; unpacks into low and high.

    Attributes
    ----------
    low, high
        The ends, included.
    confidence
        The stated confidence, over the randomness named by `covers`.
    covers
        What the interval accounts for: the noise, and nothing else unless it is named here. An interval for
        the noise is not a confidence interval for a population.
    """

    low: _T
    high: _T
    confidence: float
    covers: str = "noise"

    def __iter__(self) -> Iterator[_T]:
        return iter((self.low, self.high))


def read_adjacency(adjacency: str) -> Adjacency:
    """Read what makes two data sets neighbours."""
    _ADJACENCY.read("adjacency", adjacency)
    return cast("Adjacency", adjacency)


def read_monotone(monotone: object, adjacency: Adjacency) -> bool:
    """Read whether adding a unit moves all scores in one direction; under replace no scores are like that."""
    monotone = Flag(instead=False).read("monotone", monotone)
    if adjacency == "replace":
        why = "replacing a record lowers some scores and raises others, so the factor 2 is needed"
        fix = Either(Set(adjacency="add/remove"), Set(monotone=False))
        Omitted("under replace", why, absent=False, fix=fix).read("monotone", monotone)
    return monotone


def confidence_level(confidence: Number) -> Fraction:
    """Read a confidence, strictly between 0 and 1."""
    if type(confidence) is Fraction and 0 < confidence < 1 and confidence.denominator < _SHORT:
        return confidence  # read before
    return RealNumber(above=0, below=1, instead=0.95).read("confidence", confidence)


def check_delta(promise: str, delta: Number | None) -> None:
    """Refuse a delta without an epsilon, an epsilon without a delta, and a delta outside (0, 1)."""
    if promise == "epsilon":
        needed: Needed[Number] = Needed(1e-6, "together with epsilon")
        Delta(zero=False).read("delta", needed.read("delta", delta))
    else:
        Omitted("without epsilon").read("delta", delta)


def exactly_one(fix: Set | None = None, /, **values: object) -> str:
    """Return the name of the one parameter that is not None; refuse none or several."""
    names = [name for name, value in values.items() if value is not None]
    if len(names) == 1:
        return names[0]
    example = next(iter(values))
    return parameters.exactly_one(
        "the mechanism",
        why="they have no default, and two of them could contradict each other",
        fix=fix or Set(**{example: 1 if "sensitivity" in example else 0.5}),
        **values,
    )


def figure(value: Fraction) -> str:
    """Write a scale for people: whole where that is exact or large, else four digits."""
    return f"{round(value):,}" if value.denominator == 1 or 1000 <= value < 10**15 else f"{float(value):.4g}"


def show(value: Fraction | float) -> str:
    """Write a number for people: short, and as a plain decimal where that is exact enough."""
    return f"{float(value):.6g}"


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
        bound = float(law.sigma) * math.sqrt(2 * k * log)
    else:
        bound = float(law.scale) * math.sqrt(8 * log) * max(math.sqrt(k), math.sqrt(log))
    return min(each, math.ceil(bound))


#: Digits and sign of a number up to 10^47; sums of private numbers stay far below.
_WIDTH = 48
_NUMBER = re.compile(r"-?\d+")


def fixed_width(memory: object) -> bytes:
    """Write integers as JSON whose length follows from how many there are, not from what they are.

    Guarantee: two memories of the same shape have the same length, if no number has more than 48 characters.
    Blanks at the end make up the difference, which JSON allows; so what was written without them is read too.

    Examples
    --------
    >>> len(fixed_width({"past": [[9, 0]]})) == len(fixed_width({"past": [[10, -70000]]}))
    True
    """
    text = json.dumps(memory)
    numbers, rest = len(_NUMBER.findall(text)), len(_NUMBER.sub("", text))
    return text.ljust(rest + _WIDTH * numbers).encode()
