"""What a plan tells a person before anything is charged: what to expect of each released quantity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")
#: What a person reads of a plan: given, or worked out when somebody asks for it.
OnDemand: TypeAlias = Sequence[T] | Callable[[], Sequence[T]]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect of one released quantity.

    Parameters
    ----------
    column
        Its name.
    meaning
        What is computed, in words.
    mechanism
        The noise, in words.
    error
        The half-width of its interval, where it follows from public facts.
    note
        Why there is no such error, or what it means.
    caution
        What the quantity is not, where its name may promise more; always shown.
    """

    column: str
    meaning: str
    mechanism: str
    error: float | None
    note: str = ""
    caution: str = ""
