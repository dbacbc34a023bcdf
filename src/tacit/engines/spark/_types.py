"""Spark's types as Tacit reads them: which are safe, what a view holds, and who owns a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.engines._values import MOST_TEXT
from tacit.engines.spark._calendar import in_calendar
from tacit.engines.spark._dialect import SPARK
from tacit.engines.spark._texts import plain_text, text_of_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.engines._dialect import StoredType
    from tacit.engines._values import ColumnTypes, TypeFamily

#: The type of a column on which Spark fails where one of its moments is out of range: it is never read.
MILLISECONDS = "timestamp in milliseconds"
#: The same, where the files that would tell cannot be seen.
UNKNOWN_UNIT = "timestamp, perhaps in milliseconds"

_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_FAMILIES: dict[StoredType, TypeFamily] = {
    "whole": "number", "float": "number", "digits": "number", "text": "text", "boolean": "boolean",
    "moment": "moment",
}  # fmt: skip


def stored_type(kind: str) -> StoredType | None:
    """Return what a view holds for a Spark type; None where its values are never read."""
    if kind in _WHOLE:
        return "whole"
    if kind in {"float", "double"}:
        return "float"
    if kind.startswith("decimal"):
        return "digits"
    if kind in {"string", "binary"} or kind.startswith(("string collate", "varchar(", "char(")):
        return "text"
    if kind == "boolean":
        return "boolean"
    return "moment" if kind in {"date", "timestamp", "timestamp_ntz"} else None


def family_of(kind: str) -> TypeFamily | None:
    """Return how values of a Spark type are read; None where they never are."""
    stored = stored_type(kind)
    return None if stored is None else _FAMILIES[stored]


def value_sql(column: str, kind: str) -> str:
    """Write a value in one of a few types; no value makes it fail.

    Floats have one zero and one NaN, moments have no time zone. Text has a bounded length and is compared
    byte by byte, whatever collation its column has; bytes that are not UTF-8 are written out.
    """
    c = SPARK.quote(column)
    match stored_type(kind):
        case "whole":
            return f"CAST({c} AS BIGINT)"
        case "float":
            return f"(CASE WHEN isnan({c}) THEN double('nan') ELSE CAST({c} AS DOUBLE) + 0e0 END)"
        case "digits":
            return f"CAST({c} AS STRING)"
        case "text":
            return plain_text(_text(c, kind))
        case "boolean":
            return c
        case "moment":
            return _moment(c, kind)
        case None:
            return "CAST(NULL AS STRING)"


def _text(column: str, kind: str) -> str:
    plain = kind == "string" or kind.startswith(("varchar(", "char("))
    return column if plain else f"CAST({column} AS STRING COLLATE UTF8_BINARY)"


def _moment(column: str, kind: str) -> str:
    if kind == "date":  # a day far outside cannot become a moment
        inside = f"{column} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        return f"(CASE WHEN {inside} THEN CAST({column} AS TIMESTAMP_NTZ) END)"
    return in_calendar(column if kind == "timestamp_ntz" else f"CAST({column} AS TIMESTAMP_NTZ)")


def owner_sql(unit: Sequence[str], types: ColumnTypes) -> str:
    """Write the owner of a row, by the same names as the DuckDB engine (see its ``owner_sql``)."""
    parts = [_name(column, _kind(column, types)) for column in unit]
    if len(parts) == 1:
        return parts[0]
    *first, last = (f"CAST({part} AS STRING)" for part in parts)
    sized = "".join(f"CAST(octet_length({text}) AS STRING), ':', {text}, " for text in first)
    return f"concat({sized}{last})"


def _kind(column: str, types: ColumnTypes) -> str:
    exact = dict(types).get(column)
    return exact if exact is not None else next(t for c, t in types if c.lower() == column.lower())


def _name(column: str, kind: str) -> str:
    """Write what a column names, so that two names are equal only if they name one unit."""
    c = SPARK.quote(column)
    match stored_type(kind):
        case "whole":
            return f"CAST({c} AS BIGINT)"
        case "float":
            return f"(CASE WHEN NOT isnan({c}) THEN {text_of_number(f'(CAST({c} AS DOUBLE) + 0e0)')} END)"
        case "digits":
            text = f"CAST({c} AS STRING)"
            return f"(CASE WHEN contains({text}, '.') THEN rtrim('.', rtrim('0', {text})) ELSE {text} END)"
        case "moment":
            return f"CAST({_moment(c, kind)} AS STRING)"
        case "boolean":
            return f"CAST({c} AS STRING)"
        case "text":
            return _named_text(_text(c, kind))
        case None:
            return "CAST(NULL AS STRING)"


def _named_text(text: str) -> str:
    """Write a text, or its digest where it is too long, looks like a digest, or is not UTF-8."""
    size, digest = f"octet_length({text})", f"concat('sha256:', sha2(CAST({text} AS BINARY), 256))"
    hashed = f"{size} >= 71 AND ({size} > {MOST_TEXT} OR startswith({text}, 'sha256:'))"
    return f"(CASE WHEN NOT is_valid_utf8({text}) OR ({hashed}) THEN {digest} ELSE {text} END)"
