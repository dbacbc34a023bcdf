"""What every mechanism offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tacit.errors import bad_parameter
from tacit.exact import Number, rational

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from tacit.accounting import Cost

__all__ = [
    "Adjacency",
    "Interval",
    "Mechanism",
    "check_delta",
    "confidence_level",
    "exactly_one",
    "read_adjacency",
    "show",
]

Adjacency = Literal["add/remove", "replace"]
_T = TypeVar("_T", float, NDArray[np.float64])


class Mechanism(ABC):
    """A noise-adding step that knows its cost and its error; immutable, and valid if it exists."""

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

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


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
        What the interval accounts for: the noise, and nothing else unless it says so. An interval for noise
        is not a confidence interval for a population.
    """

    low: _T
    high: _T
    confidence: float
    covers: str = "noise"

    def __iter__(self) -> Iterator[_T]:
        return iter((self.low, self.high))


def read_adjacency(adjacency: str) -> Adjacency:
    """Read what makes two data sets neighbours."""
    if adjacency not in {"add/remove", "replace"}:
        raise bad_parameter("adjacency", '"add/remove" or "replace"', adjacency, fix='adjacency="add/remove"')
    return cast("Adjacency", adjacency)


def confidence_level(confidence: Number) -> Fraction:
    """Read a confidence, strictly between 0 and 1."""
    level = rational("confidence", confidence)
    if level >= 1:
        raise bad_parameter(
            "confidence", "a number between 0 and 1, both excluded", confidence, fix="confidence=0.95"
        )
    return level


def check_delta(given: str, delta: Number | None) -> None:
    """Refuse a delta without an epsilon, an epsilon without a delta, and a delta outside (0, 1)."""
    if (delta is None) == (given == "epsilon"):
        raise bad_parameter(
            "delta", "given together with epsilon, and only then", delta, fix="epsilon=0.5, delta=1e-6"
        )
    if delta is not None and rational("delta", delta) >= 1:
        raise bad_parameter("delta", "below 1", delta, fix="delta=1e-6")


def exactly_one(**given: object) -> str:
    """Return the name of the one parameter that is not None; refuse none or several."""
    named = [name for name, value in given.items() if value is not None]
    if len(named) == 1:
        return named[0]
    choice = " or ".join(given)
    first = next(iter(given))
    raise bad_parameter(
        choice,
        "given exactly once",
        ", ".join(named) or "nothing",
        why="nothing has a default epsilon" if not named else "two of them could contradict each other",
        fix=f"{first}=0.5",
    )


def show(value: Fraction | float) -> str:
    """Write a number for people: short, and as a plain decimal where that is exact enough."""
    return f"{float(value):.6g}"
