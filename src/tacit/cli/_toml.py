"""TOML that the command line writes, for ``tacit init`` and in fixes, and the line that declares a fact."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def toml_text(text: str) -> str:
    """Write a TOML string. JSON has the same escapes, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(text: str) -> str:
    """Write a TOML key, in quotes where it needs them."""
    plain = text.isascii() and text.replace("_", "").replace("-", "").isalnum()
    return text if plain else toml_text(text)


def toml_list(values: Sequence[object]) -> str:
    """Write a TOML array."""
    return "[" + ", ".join(toml_value(value) for value in values) + "]"


def toml_table(values: Mapping[str, object]) -> str:
    """Write a TOML table on one line."""
    return "{" + ", ".join(f"{name} = {toml_value(value)}" for name, value in values.items()) + "}"


def toml_value(value: object) -> str:
    """Write a value as TOML.

    Examples
    --------
    >>> toml_value((0, 30)), toml_value("text"), toml_value({"source": "h.csv", "key": "hospital"})
    ('[0, 30]', '"text"', '{source = "h.csv", key = "hospital"}')
    """
    match value:
        case bool():
            return str(value).lower()
        case list() | tuple():
            return toml_list(value)
        case dict():
            return toml_table(value)
        case str():
            return toml_text(value)
        case _:
            return number_text(value)


def number_text(value: object) -> str:
    """Write a number as people type it.

    Examples
    --------
    >>> number_text(3.0), number_text(1e-06), number_text(0.5), number_text(1_000_000)
    ('3', '1e-6', '0.5', '1000000')
    """
    if isinstance(value, int):
        return str(value)
    number = float(value)  # type: ignore[arg-type]
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return re.sub(r"e([+-])0+(?=\d)", r"e\1", repr(number))


def line_number(file: Path, heading: str, key: str) -> int | None:
    """Find the line below a heading that declares a key or hints at it; else the line after the heading."""
    lines = _lines(file)
    if heading not in lines:
        return None
    start = lines.index(heading) + 1
    for number, line in enumerate(lines[start:], start + 1):
        if line.startswith("["):
            break
        if re.match(rf"#? ?{re.escape(key)} *=", line):
            return number
    return start + 1


def has_line(file: Path, key: str) -> bool:
    """Report whether a line of the file declares a key or hints at it."""
    return any(re.match(rf"#? ?{re.escape(key)} *=", line) for line in _lines(file))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
