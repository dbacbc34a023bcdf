"""What a curator declares on the command line, and the ``tacit.toml`` that says it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = [
    "Declaration",
    "option_text",
    "read_bound",
    "read_column",
    "read_key_list",
    "read_keys_of_a_question",
    "read_limit",
    "toml_key",
    "toml_value",
]


@dataclass(frozen=True, slots=True)
class Declaration:
    """One dataset as ``tacit init`` writes it."""

    name: str
    source: str
    unit: str
    ledger: str
    columns: tuple[str, ...]
    types: Mapping[str, str]
    bounds: Mapping[str, tuple[float, float]]
    keys: Mapping[str, list[object]]
    limits: Mapping[str, int]
    budget: Mapping[str, float]

    def check(self, folder: Path) -> None:
        """Refuse what the library would refuse, before anything is written."""
        from tacit.ledger import Ledger
        from tacit.tables import read_config

        whole = replace(self, budget=self.budget or {"epsilon": 1.0})
        read_config(whole.text(), folder).dataset(self.name, ledger=Ledger.memory())

    def text(self) -> str:
        """Write the file."""
        here = f"[datasets.{toml_key(self.name)}"
        others = [c for c in self.columns if c != self.unit]
        told = _inline(self.budget or {"epsilon": 3.0, "delta": 1e-6})
        lines = [
            "# What Tacit may rely on: all of it public, none of it read from the data.",
            "# Written by `tacit init`; every later change is yours.",
            "",
            "# Where the budget is kept. Opening it again never resets what was spent.",
            f"ledger = {_quote(self.ledger)}",
            "",
            f"{here}]",
            f"source = {_quote(self.source)}",
            "# New data (next month's file)? Count up: stored answers are of one version. The budget stays.",
            "# version = 1",
            "# Who is protected: everything of one unit counts as one. Empty: single rows.",
            f"unit = {_quote(self.unit)}",
            "# What may be learned in total; `tacit explain --epsilon 3` says what it means.",
            f"{'' if self.budget else '# '}budget = {told}",
            "",
            "# How much of one unit counts. Smaller: less noise, more left out.",
            f"{here}.limits]",
            *(f"{toml_key(c)} = {limit}" for c, limit in (self.limits or {"rows": 10}).items()),
            "",
            "# Public ranges of the columns of numbers that are summed or averaged; values",
            "# outside are clipped. Take them from what everybody knows, not from the data.",
            *([] if self.types else ["# (A CSV has no types: pass over columns of texts and dates.)"]),
            f"{here}.bounds]",
            *(f"{toml_key(c)} = [{_number(low)}, {_number(high)}]" for c, (low, high) in self.bounds.items()),
            *(f"# {toml_key(c)} = [LOW, HIGH]" for c in others if self._may_be(c, "number", self.bounds)),
            "",
            "# Groups that everybody knows to exist. Others are selected privately (delta).",
            f"{here}.keys]",
            *(f"{toml_key(c)} = {_list(values)}" for c, values in self.keys.items()),
            *(f'# {toml_key(c)} = ["A", "B"]' for c in others if self._may_be(c, "text", self.keys)),
            "",
            "# KIND: number, text, boolean or date; needed where the question does not tell.",
            f"{here}.types]",
            *(f"{toml_key(c)} = {_quote(kind)}" for c, kind in self.types.items()),
            *(
                f'# {toml_key(c)} = "KIND"'
                for c in others
                if c not in {*self.types, *self.bounds, *self.keys}
            ),
        ]
        return "\n".join(lines) + "\n"

    def could_be(self, kind: str) -> list[str]:
        """Return the columns that may be of a kind, as far as the schema tells."""
        return [c for c in self.columns if c != self.unit and self.types.get(c, kind) == kind]

    def _may_be(self, column: str, kind: str, declared: Mapping[str, object]) -> bool:
        other = self.keys if kind == "number" else self.bounds
        return column not in declared and column not in other and self.types.get(column, kind) == kind


def read_column(option: str, text: str, known: Sequence[str]) -> tuple[str, str]:
    """Read ``COLUMN=VALUE`` and insist on a column that is there."""
    fits = [c for c in known if text.startswith(c + "=")]
    if not fits:
        column, equals, _ = text.partition("=")
        if not equals:
            raise bad_parameter(option, "COLUMN=VALUE", text, fix=f"{option} {known[0]}=...")
        raise TacitError(
            "unknown-column",
            f"{option}: there is no column {column!r}",
            fix=f"{_close(column, known)}one of: {', '.join(known[:12])}",
        )
    column = max(fits, key=len)
    return column, text[len(column) + 1 :]


def _close(column: str, known: Sequence[str]) -> str:
    """Ask after the column of a close name: ``LOS? ``."""
    plain = {one.strip().lower(): one for one in known}
    found = get_close_matches(column.strip().lower(), plain, 1)
    return f"{plain[found[0]]}? " if found else ""


def read_bound(text: str, known: Sequence[str]) -> tuple[str, tuple[float, float]]:
    """Read ``COLUMN=LOW:HIGH``."""
    column, value = read_column("--bounds", text, known)
    low, _, high = value.partition(":")
    try:
        return column, (float(low), float(high))
    except ValueError:
        raise bad_parameter("--bounds", "COLUMN=LOW:HIGH", text, fix=f"--bounds {column}=0:30") from None


def read_key_list(text: str, known: Sequence[str], types: Mapping[str, str]) -> tuple[str, list[object]]:
    """Read ``COLUMN=A,B,C``; keys of a column of numbers are numbers."""
    column, value = read_column("--keys", text, known)
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
        kind = types[column]
        raise bad_parameter("--keys", f"keys of a {kind} column", text, fix=f"--type {column}=text") from None


def read_keys_of_a_question(text: str, types: Mapping[str, str]) -> tuple[str, list[object]]:
    """Read ``NAME=A,B,C`` of a column or an expression; keys that are all numbers are numbers.

    Examples
    --------
    >>> read_keys_of_a_question("month=1,2", {}), read_keys_of_a_question("zip=01,02", {"zip": "text"})
    (('month', [1, 2]), ('zip', ['01', '02']))
    """
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise bad_parameter("--keys", "COLUMN=A,B,C", text, fix="--keys ward=A,B")
    if types.get(name, "number") == "number":
        try:
            return read_key_list(text, [name], {name: "number"})
        except TacitError:
            pass
    return read_key_list(text, [name], types)


def read_limit(text: str) -> tuple[str, int]:
    """Read ``rows=8``; which limits there are, the library knows."""
    name, _, value = text.partition("=")
    try:
        return name, int(value)
    except ValueError:
        raise bad_parameter("--limit", "NAME=WHOLE NUMBER", text, fix="--limit rows=8") from None


def _quote(text: str) -> str:
    """Write a TOML string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def option_text(table: str, name: str, value: object) -> str:
    """Write a fact as an option of ``tacit init``; empty where it has none.

    Examples
    --------
    >>> option_text("bounds", "stay", (0, 30))
    '--bounds stay=0:30'
    """
    match table, value:
        case "bounds", (low, high):
            told = f"--bounds {name}={low}:{high}"
        case "keys", [*values]:
            told = f"--keys {name}={','.join(map(str, values))}"
        case "types", kind:
            told = f"--type {name}={kind}"
        case "limits", most:
            told = f"--limit {name}={most}"
        case "", str(column) if name == "unit":
            told = f"--unit {column}"
        case _:
            return ""
    option, _, rest = told.partition(" ")
    return f'{option} "{rest}"' if " " in rest else told


def toml_value(value: object, table: str = "") -> str:
    """Write a fact's value as TOML; a public table is its source and key.

    Examples
    --------
    >>> toml_value((0, 30)), toml_value("text"), toml_value(("h.csv", "hospital"), "public")
    ('[0, 30]', '"text"', '{source = "h.csv", key = "hospital"}')
    """
    match value:
        case (str(source), str(key)) if table == "public":
            return f"{{source = {_quote(source)}, key = {_quote(key)}}}"
        case list() | tuple():
            return _list(value)
        case dict():
            return "{" + ", ".join(f"{name} = {number}" for name, number in value.items()) + "}"
        case str():
            return _quote(value)
        case _:
            return str(value).lower()


def toml_key(text: str) -> str:
    """Write a TOML key, quoted where it must be."""
    plain = text.isascii() and text.replace("_", "").replace("-", "").isalnum()
    return text if plain else _quote(text)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _inline(values: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{name} = {_number(value)}" for name, value in values.items()) + "}"


def _list(values: Sequence[object]) -> str:
    words = (_quote(v) if isinstance(v, str) else str(v).lower() for v in values)
    return "[" + ", ".join(words) + "]"
