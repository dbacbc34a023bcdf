"""Public facts as command-line options: ``--bounds stay=0:30``, ``--keys ward=A,B``, ``--limit rows=8``."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tacit.cli._output import typed
from tacit.cli._toml import number_text
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.accounting import Budget


def read_column_option(option: str, text: str, known: Sequence[str]) -> tuple[str, str]:
    """Read ``COLUMN=VALUE``; the column must be one of the file's."""
    fits = [column for column in known if text.startswith(column + "=")]
    if not fits:
        column, equals, _ = text.partition("=")
        if not equals:
            meant = _meant(text, known)
            raise bad_parameter(option, "COLUMN=VALUE", text, fix=f"{option} {typed(meant + '=...')}")
        raise TacitError(
            "unknown-column",
            f"{option}: there is no column {column!r}",
            fix=Choose(tuple(known), given=column, close=_close(column, known)),
        )
    column = max(fits, key=len)
    return column, text[len(column) + 1 :]


def _meant(text: str, known: Sequence[str]) -> str:
    """Return the column that a text without ``=`` names: by its beginning, or by a similar name."""
    begun = [column for column in known if text.lower().startswith(column.lower())]
    return max(begun, key=len, default="") or _close(text, known) or known[0]


def _close(column: str, known: Sequence[str]) -> str:
    """Return the column with the most similar name, if any is similar."""
    plain = {one.strip().lower(): one for one in known}
    found = get_close_matches(column.strip().lower(), plain, 1)
    return plain[found[0]] if found else ""


def read_bounds_option(text: str, known: Sequence[str]) -> tuple[str, tuple[float, float]]:
    """Read ``COLUMN=LOW:HIGH``."""
    column, value = read_column_option("--bounds", text, known)
    low, _, high = value.partition(":")
    try:
        return column, (float(low), float(high))
    except ValueError:
        fix = fact_option("bounds", column, ("LOW", "HIGH"))
        raise bad_parameter("--bounds", "COLUMN=LOW:HIGH", text, fix=fix) from None


def read_keys_option(text: str, known: Sequence[str], types: Mapping[str, str]) -> tuple[str, list[object]]:
    """Read ``COLUMN=A,B,C``. The keys of a column of numbers are numbers."""
    column, value = read_column_option("--keys", text, known)
    words = [word.strip() for word in value.split(",")]
    try:
        match types.get(column, "text"):
            case "number":
                return column, [int(w) if w.lstrip("-").isdigit() else float(w) for w in words]
            case "boolean":
                return column, [{"true": True, "false": False}[w.lower()] for w in words]
            case _:
                return column, list(words)
    except (ValueError, KeyError):
        kind, fix = types[column], fact_option("types", column, "text")
        raise bad_parameter("--keys", f"keys of a {kind} column", text, fix=fix) from None


def read_question_keys(text: str, types: Mapping[str, str]) -> tuple[str, list[object]]:
    """Read ``NAME=A,B,C`` for a column or an expression. Keys that are all numbers are read as numbers.

    Examples
    --------
    >>> read_question_keys("month=1,2", {}), read_question_keys("zip=01,02", {"zip": "text"})
    (('month', [1, 2]), ('zip', ['01', '02']))
    """
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise bad_parameter("--keys", "COLUMN=A,B,C", text, fix=fact_option("keys", "ward", ["A", "B"]))
    if types.get(name, "number") == "number":
        try:
            return read_keys_option(text, [name], {name: "number"})
        except TacitError:
            pass
    return read_keys_option(text, [name], types)


def read_limit_option(text: str) -> tuple[str, int]:
    """Read ``rows=8``. The library checks which limits exist."""
    name, _, value = text.partition("=")
    try:
        return name, int(value)
    except ValueError:
        raise bad_parameter("--limit", "NAME=WHOLE NUMBER", text, fix="--limit rows=8") from None


def fact_option(fact: str, name: str, value: object) -> str:
    """Write a fact as an option of ``tacit init``; empty where there is no such option.

    Examples
    --------
    >>> fact_option("bounds", "stay", (0, 30)), fact_option("keys", "my ward", ["A", "B"])
    ('--bounds stay=0:30', '--keys "my ward=A,B"')
    """
    match fact, value:
        case "bounds", (low, high):
            option, words = "--bounds", f"{name}={_written(low)}:{_written(high)}"
        case "keys", [*values]:
            option, words = "--keys", f"{name}={','.join(map(_written, values))}"
        case "types", str(kind):
            option, words = "--type", f"{name}={kind}"
        case "limits", int(most):
            option, words = "--limit", f"{name}={most}"
        case "unit", str(column):
            option, words = ("--unit", column) if column else ("--row", "")
        case "name", str(called):
            option, words = "--name", called
        case "budget", dict(parts):
            return " ".join(f"--{part} {number_text(number)}" for part, number in parts.items())
        case _:
            return ""
    return f"{option} {typed(words)}" if words else option


def budget_parts(budget: object) -> dict[str, object]:
    """Return the numbers of a budget that are set, whether it is a `Budget` or a mapping."""
    parts = ("epsilon", "delta", "rho")
    if isinstance(budget, Mapping):
        return {part: budget[part] for part in parts if budget.get(part)}
    return {part: number for part in parts if (number := getattr(budget, part, None))}


def budget_text(budget: Budget) -> str:
    """Write a budget in words: ``epsilon 3, delta 1e-6``."""
    return ", ".join(f"{part} {number_text(number)}" for part, number in budget_parts(budget).items())


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value) if isinstance(value, int | float) else str(value)
