"""The core's fixes in the words of a field: facts are declared by the field's own function."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Code, Declare, Either

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.fixes import Fix


@contextlib.contextmanager
def fixes_of(function: str) -> Iterator[None]:
    """Let refusals inside name the function that declares this kind of data, not ``tc.protect``.

    Examples
    --------
    >>> with fixes_of("tc.points"):
    ...     raise TacitError("bad-parameter", "the name is empty", fix=Declare("name", "sites"))
    Traceback (most recent call last):
    tacit.errors.TacitError: the name is empty
      fix: tc.points(..., name="sites")
      code: bad-parameter
    """
    try:
        yield
    except TacitError as refusal:
        fix = _declared_by(refusal.fix, function)
        raise refusal.but(fix=fix) from None


def _declared_by(fix: Fix, function: str) -> Fix:
    match fix:
        case Declare():
            return replace(fix, function=function)
        case Code(python):
            return Code(python.replace("tc.protect(", f"{function}("))
        case Either(fixes):
            return Either(*(_declared_by(one, function) for one in fixes))
        case _:
            return fix
