"""A question to explain, described by public facts: which statistic, how many people, which bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, SupportsIndex

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.parameters import Choice

STATISTICS: Final = ("count", "sum", "mean")
_EXAMPLE: Final = Set(bounds=(0, 100))


@dataclass(frozen=True, slots=True)
class ExplainedQuestion:
    """A statistic over n people, where each person has one value between public bounds.

    Sensitivities: a count changes by 1 when a person is added or removed. A sum changes by at most the larger
    bound in absolute value. A mean over a public number n of people changes by at most (high - low) / n when
    one person's value changes.

    Parameters
    ----------
    statistic
        ``count``, ``sum`` or ``mean``.
    n
        The number of people, as a public figure or an estimate; a mean and relative errors need it.
    bounds
        The public range of a value; sums and means need it.

    Examples
    --------
    >>> ExplainedQuestion("mean", n=5000, bounds=(80, 200)).sensitivity
    Fraction(3, 125)
    """

    statistic: str
    n: int | None = None
    bounds: tuple[Fraction, Fraction] | None = None

    def __init__(
        self, statistic: str, n: SupportsIndex | None = None, bounds: tuple[Number, Number] | None = None
    ) -> None:
        object.__setattr__(self, "statistic", Choice(STATISTICS).read("statistic", statistic))
        object.__setattr__(self, "n", None if n is None else count("n", n, zero=False))
        object.__setattr__(self, "bounds", None if bounds is None else _read_bounds(bounds))
        if statistic != "count" and self.bounds is None:
            raise TacitError(
                "bad-parameter",
                f"a {statistic} needs bounds",
                why="without a range one person can change the answer by any amount, and no noise hides it",
                fix=_EXAMPLE,
            )
        if statistic == "mean" and self.n is None:
            raise TacitError(
                "bad-parameter",
                "a mean needs n, the number of people",
                why="one person changes a mean by up to (high - low) / n",
                fix=Set(n=1000),
            )

    @property
    def sensitivity(self) -> Fraction:
        """How much one person can change the answer."""
        if self.statistic == "count" or self.bounds is None:
            return Fraction(1)
        low, high = self.bounds
        if self.statistic == "sum":
            return max(abs(low), abs(high))
        return (high - low) / Fraction(self.n or 1)

    @property
    def span(self) -> Fraction | None:
        """What an error is compared with: n for a count, n x bound for a sum, the range for a mean."""
        if self.statistic == "mean" and self.bounds is not None:
            return self.bounds[1] - self.bounds[0]
        return None if self.n is None else self.n * self.sensitivity

    def __str__(self) -> str:
        parts = [self.statistic]
        if self.n is not None:
            parts.append(f"of {self.n:,} {'person' if self.n == 1 else 'people'}")
        if self.bounds is not None:
            parts.append(f"(values in [{float(self.bounds[0]):g}, {float(self.bounds[1]):g}])")
        return " ".join(parts)


def _read_bounds(bounds: tuple[Number, Number]) -> tuple[Fraction, Fraction]:
    must_be = "two numbers, the smaller one first"
    try:
        lower, second = bounds
    except (TypeError, ValueError):
        raise bad_parameter("bounds", must_be, bounds, fix=_EXAMPLE) from None
    low, high = (rational("bounds", side, zero=True, negative=True) for side in (lower, second))
    if low >= high:
        raise bad_parameter("bounds", must_be, bounds, fix=_EXAMPLE)
    return low, high
