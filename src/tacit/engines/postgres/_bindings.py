"""Values that SQL names once and uses several times, so that nested operators do not multiply its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: A column, a bound name or a number: short enough to be written several times.
_NAME = r"""(?:[a-z_][a-z0-9_]*\.)?(?:[a-z_][a-z0-9_]*|"(?:[^"]|"")+")"""
_SHORT = re.compile(rf"{_NAME}|\(-{_NAME}\)|{_NAME}::float8|\(?-?'[-+.0-9a-zA-Z]+'::float8\)?")


def named(body: Callable[..., str], *values: str) -> str:
    """Write an expression that uses values several times.

    Longer values are computed once, in a subquery. ``OFFSET 0`` keeps the server from putting them back into
    the expression, and from computing parts of it before a row is read: a guard of CASE then holds for
    constants too.

    Examples
    --------
    >>> named(lambda x: f"({x} * {x})", '"stay"')
    '("stay" * "stay")'
    >>> named(lambda x: f"({x} * {x})", '("stay" + 1)')
    '(SELECT (tacit_v.a * tacit_v.a) FROM (SELECT ("stay" + 1) AS a OFFSET 0) tacit_v)'
    """
    if all(_SHORT.fullmatch(value) for value in values):
        return body(*values)
    names = "abcdefgh"[: len(values)]
    listed = ", ".join(f"{value} AS {name}" for name, value in zip(names, values, strict=True))
    return f"(SELECT {body(*(f'tacit_v.{n}' for n in names))} FROM (SELECT {listed} OFFSET 0) tacit_v)"
