"""Declared parameters: what a question takes, read and refused in one place for every surface.

A parameter knows the values that it accepts, the words that describe them, and how a value is written as
JSON. So the same mistake gets the same refusal wherever it is made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Protocol, SupportsIndex

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational, read_fraction
from tacit.fixes import Choose, Set

__all__ = ["Anything", "Choice", "ColumnName", "Day", "Flag", "Integer", "Parameter", "RealNumber", "Text"]

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MOST_LETTERS = 200


class Parameter(Protocol):
    """What a declared argument accepts."""

    @property
    def words(self) -> str:
        """What may be given."""

    @property
    def example(self) -> object:
        """Something that may be given."""

    def read(self, name: str, value: Any) -> Any:
        """Return the value as the question uses it, or refuse it."""

    def from_text(self, name: str, text: str) -> Any:
        """Read what somebody typed in a command or a form."""

    def to_json(self, value: Any) -> Any:
        """Write a value that was read, for a plan's document."""

    def from_json(self, document: Any) -> Any:
        """Return what `read` takes from what `to_json` wrote."""


class _AsItIs:
    """A value that is typed and written as it is."""

    __slots__ = ()

    def from_text(self, name: str, text: str) -> Any:
        """Read what somebody typed."""
        return self.read(name, text)  # type: ignore[attr-defined]

    def to_json(self, value: Any) -> Any:
        """Return the value."""
        return value

    def from_json(self, document: Any) -> Any:
        """Return the value."""
        return document


@dataclass(frozen=True, slots=True)
class Integer(_AsItIs):
    """A whole number between two others, both included.

    Examples
    --------
    >>> Integer(1, 20).read("k", 3), Integer(1, 20).words
    (3, 'a whole number from 1 to 20')
    """

    low: int = 0
    high: int | None = None
    why: str = ""

    @property
    def words(self) -> str:
        """What may be given."""
        return (
            f"a whole number from {self.low:,} to {self.high:,}"
            if self.high is not None
            else f"a whole number of at least {self.low:,}"
        )

    @property
    def example(self) -> int:
        """Something that may be given."""
        return self.low

    def read(self, name: str, value: SupportsIndex) -> int:
        """Return the number, or refuse it."""
        fix = Set(**{name: max(self.low, min(10, self.high or 10))})
        if self.low == 0 and self.high is None:
            return count(name, value, fix=fix)
        whole = count(name, value, zero=self.low == 0, fix=fix)
        if whole < self.low or (self.high is not None and whole > self.high):
            raise bad_parameter(name, self.words, value, why=self.why, fix=fix)
        return whole

    def from_text(self, name: str, text: str) -> int:
        """Read what somebody typed."""
        if not re.fullmatch(r"-?[0-9]{1,18}", text.strip(), re.ASCII):
            raise bad_parameter(name, self.words, text, fix=Set(**{name: self.example}))
        return self.read(name, int(text))


@dataclass(frozen=True, slots=True)
class RealNumber:
    """A positive finite number, read exactly; zero and negative numbers where they are allowed.

    Examples
    --------
    >>> RealNumber().read("clip", 0.1)
    Fraction(1, 10)
    """

    zero: bool = False
    negative: bool = False

    @property
    def words(self) -> str:
        """What may be given."""
        kind = "a finite" if self.negative else "a non-negative finite" if self.zero else "a positive finite"
        return f"{kind} number"

    @property
    def example(self) -> float:
        """Something that may be given."""
        return 0.5

    def read(self, name: str, value: Number) -> Any:
        """Return the exact rational, or refuse it."""
        return rational(name, value, zero=self.zero, negative=self.negative)

    def from_text(self, name: str, text: str) -> Any:
        """Read what somebody typed."""
        try:
            return self.read(name, float(text))
        except ValueError:
            raise bad_parameter(name, self.words, text, fix=Set(**{name: self.example})) from None

    def to_json(self, value: object) -> str:
        """Write the number exactly."""
        return str(value)

    def from_json(self, document: object) -> Any:
        """Read the number back."""
        return read_fraction(document)


@dataclass(frozen=True, slots=True)
class Text(_AsItIs):
    """A short text."""

    words: str = "a text"

    @property
    def example(self) -> str:
        """Something that may be given."""
        return "x"

    def read(self, name: str, value: object) -> str:
        """Return the text, or refuse it."""
        if not isinstance(value, str) or not 0 < len(value) <= _MOST_LETTERS:
            raise bad_parameter(
                name, f"{self.words} of at most {_MOST_LETTERS} characters", value, fix=Set(**{name: "x"})
            )
        return value


@dataclass(frozen=True, slots=True)
class ColumnName(Text):
    """The name of a column."""

    words: str = "the name of a column"


@dataclass(frozen=True, slots=True)
class Choice(_AsItIs):
    """One of a few words."""

    choices: tuple[str, ...]

    @property
    def words(self) -> str:
        """What may be given."""
        return f"one of {', '.join(self.choices)}"

    @property
    def example(self) -> str:
        """Something that may be given."""
        return self.choices[0]

    def read(self, name: str, value: object) -> str:
        """Return the word, or refuse it."""
        if not isinstance(value, str) or value not in self.choices:
            raise bad_parameter(name, self.words, value, fix=Choose(self.choices, given=str(value)))
        return value


@dataclass(frozen=True, slots=True)
class Day(_AsItIs):
    """A day, written as 2026-01-31."""

    words: str = "a day such as 2026-01-31"

    @property
    def example(self) -> str:
        """Something that may be given."""
        return "2026-01-01"

    def read(self, name: str, value: object) -> str:
        """Return the day as text, or refuse it."""
        if isinstance(value, date):
            return value.isoformat()[:10]
        if isinstance(value, str) and _DAY.fullmatch(value):
            try:
                return date.fromisoformat(value).isoformat()
            except ValueError:
                pass
        raise bad_parameter(name, self.words, value, fix=Set(**{name: self.example}))


@dataclass(frozen=True, slots=True)
class Flag(_AsItIs):
    """Yes or no."""

    words: str = "yes or no"

    @property
    def example(self) -> bool:
        """Something that may be given."""
        return True

    def read(self, name: str, value: object) -> bool:
        """Return the value, or refuse it."""
        if not isinstance(value, bool):
            raise bad_parameter(name, "True or False", value, fix=Set(**{name: True}))
        return value

    def from_text(self, name: str, text: str) -> bool:
        """Read what somebody typed."""
        return self.read(name, {"yes": True, "true": True, "no": False, "false": False}.get(text, text))


@dataclass(frozen=True, slots=True)
class Anything(_AsItIs):
    """A value that the question reads itself, such as polygons or aggregates; Python alone can give it.

    ``shown`` says whether its text says something to people, as "12 polygons" does.
    """

    words: str
    shown: bool = False

    @property
    def example(self) -> object:
        """Nothing can be said of it here."""
        return None

    def read(self, name: str, value: object) -> object:
        """Return the value as it is."""
        del name
        return value

    def from_text(self, name: str, text: str) -> object:
        """Refuse: this cannot be typed."""
        raise bad_parameter(name, self.words, text, why="only Python can give it")
