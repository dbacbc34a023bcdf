"""The arguments that methods of datasets take: each kind of value with its limits, read strictly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final, TypeAlias

__all__ = ["ChoiceArgument", "DayArgument", "KindArgument", "TextArgument", "WholeArgument"]

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class WholeArgument:
    """A whole number between two others; ``needed`` if the method has no default for it."""

    low: int
    high: int
    needed: bool = False

    def read(self, value: object) -> object:
        """Return the number, or raise."""
        if type(value) is not int or not self.low <= value <= self.high:
            raise ValueError(f"a whole number between {self.low:,} and {self.high:,}")
        return value

    @property
    def words(self) -> str:
        """What may be given."""
        return f"a whole number from {self.low:,} to {self.high:,}"

    @property
    def least(self) -> object:
        """Something that may be given, to try a method."""
        return self.low


@dataclass(frozen=True, slots=True)
class TextArgument:
    """A short text, such as the name of a column."""

    needed: bool = False
    words: str = "a text"

    def read(self, value: object) -> object:
        """Return the text, or raise."""
        if not isinstance(value, str) or not 0 < len(value) <= 200:
            raise ValueError("a text of at most 200 characters")
        return value

    @property
    def least(self) -> object:
        """Something that may be given, to try a method."""
        return "x"


@dataclass(frozen=True, slots=True)
class ChoiceArgument:
    """One of a few words."""

    choices: tuple[str, ...]
    needed: bool = False

    def read(self, value: object) -> object:
        """Return the word, or raise."""
        if value not in self.choices:
            raise ValueError(self.words)
        return value

    @property
    def words(self) -> str:
        """What may be given."""
        return f"one of {', '.join(self.choices)}"

    @property
    def least(self) -> object:
        """Something that may be given, to try a method."""
        return self.choices[0]


@dataclass(frozen=True, slots=True)
class DayArgument:
    """A day, such as 2026-01-31."""

    needed: bool = False
    words: str = "a day such as 2026-01-31"

    def read(self, value: object) -> object:
        """Return the day as text, or raise."""
        if not isinstance(value, str) or not _DAY.fullmatch(value):
            raise ValueError(self.words)
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            raise ValueError(self.words) from None

    @property
    def least(self) -> object:
        """Something that may be given, to try a method."""
        return "2026-01-01"


KindArgument: TypeAlias = WholeArgument | TextArgument | ChoiceArgument | DayArgument
