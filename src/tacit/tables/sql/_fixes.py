"""Slips of the pen in SQL, told by name: a column in single quotes, a text in double ones, a name in none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["hinted"]

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def hinted(error: TacitError, text: str, columns: Iterable[str]) -> TacitError:
    """Return a refusal of SQL with the fix for a likely slip; without one, as it is.

    Examples
    --------
    >>> error = TacitError("bad-sql", "this SQL cannot be read", fix="SELECT COUNT(*) FROM visits")
    >>> hinted(error, "SELECT COUNT(*) FROM visits WHERE Patient ID = 3", ["Patient ID"]).fix.text
    'a name with spaces or signs stands in double quotes: "Patient ID"'
    """
    given: object = text  # whatever was handed in as SQL
    fix = _fix(error, text, list(columns)) if isinstance(given, str) else ""
    return TacitError(error.code, error.what, why=error.why, fix=fix) if fix else error


def _fix(error: TacitError, text: str, columns: list[str]) -> str:
    if error.code not in {"bad-sql", "not-allowed", "unknown-column", "bad-expression"}:
        return ""
    literal = re.match(r"'(.*)' is a text, and a ", error.what)
    if error.code == "bad-expression":
        meant = [c for c in columns if literal and c.lower() == literal[1].lower()]
        return f"a column stands without single quotes: {_written(meant[0])}" if meant else ""
    bare = _QUOTED.sub('""', text)
    for column in columns:
        name = column.strip()  # a space at the end alone is told by the column of a close name
        odd = _written(name) != name and re.search(r"\w", name)
        if odd and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", bare, re.IGNORECASE):
            return f"a name with spaces or signs stands in double quotes: {_written(column)}"
    missing = re.match(r"there is no column '(.*)' here$", error.what)
    if missing and f'"{missing[1]}"' in text and str(error.fix).startswith("one of:"):  # none of a close name
        return f"a text stands in single quotes: '{missing[1]}'"
    return ""


def _written(column: str) -> str:
    """Write a column as SQL does."""
    return column if column.isascii() and column.isidentifier() else f'"{column}"'
