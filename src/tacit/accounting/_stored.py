"""How exact numbers are written down: ``"1/10"`` in stored values, a short decimal in what people read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from tacit.errors import TacitError, bad_parameter

__all__ = ["VERSION", "Json", "read", "read_fields", "shown", "write"]

#: The version of every stored cost, budget, spend and filter; later releases keep reading it.
VERSION = 1

Json = dict[str, object]

_EXACT = re.compile(r"(0|[1-9][0-9]{0,1999})(/[1-9][0-9]{0,1999})?")


def write(value: Fraction | None) -> str | None:
    """Write an exact non-negative rational.

    Examples
    --------
    >>> write(Fraction(1, 10)), write(Fraction(3)), write(None)
    ('1/10', '3', None)
    """
    return None if value is None else str(value)


def read(name: str, text: object) -> Fraction:
    """Read what `write` wrote, and nothing else."""
    if not isinstance(text, str) or not _EXACT.fullmatch(text):
        raise bad_parameter(name, 'an exact number such as "1/10"', text, why="stored values are exact")
    return Fraction(text)


def read_fields(kind: str, data: object, fields: set[str]) -> Mapping[str, object]:
    """Check a stored value's version and field names before anything is read from it."""
    if not isinstance(data, Mapping):
        raise bad_parameter(kind, "a stored JSON object", data)
    version = data.get("version")
    if version != VERSION or isinstance(version, bool):
        raise TacitError(
            "unknown-version",
            f"this {kind} was stored as version {version!r}, and this release reads version {VERSION}",
            why="a guess at what a stored promise meant would be a new promise",
            fix="read it with the release of tacit that wrote it, or a later one",
        )
    if set(data) != fields | {"version"}:
        raise bad_parameter(
            f"stored {kind}", f"an object with {', '.join(sorted(fields))}", sorted(data, key=str)
        )
    return data


def shown(value: Fraction) -> str:
    """Show a number as people write it: the exact decimal where there is a short one, else a fraction.

    Examples
    --------
    >>> shown(Fraction(1, 10)), shown(Fraction(3)), shown(Fraction(1, 3))
    ('0.1', '3', 'Fraction(1, 3)')
    """
    if value.denominator == 1 and value < 10**16:
        return str(value.numerator)
    try:
        near = float(value)
    except OverflowError:
        near = math.inf
    if math.isfinite(near) and Fraction(repr(near)) == value:
        return repr(near)
    return repr(value)
