"""The fixes of a table question in the words of a stream: facts are declared by ``tc.stream``."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Code, Declare, Either

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.fixes import Fix

__all__ = ["fixes_of_streams"]


@contextlib.contextmanager
def fixes_of_streams() -> Iterator[None]:
    """Let refusals of a day's table say what to write for a stream."""
    try:
        yield
    except TacitError as refusal:
        fix = _for_streams(refusal.fix)
        raise TacitError(refusal.code, refusal.what, why=refusal.why, fix=fix) from None


def _for_streams(fix: Fix) -> Fix:
    match fix:
        case Declare():
            return replace(fix, function="tc.stream")
        case Code(python):
            return Code(python.replace("tc.protect(", "tc.stream("))
        case Either(fixes):
            return Either(*(_for_streams(one) for one in fixes))
        case _:
            return fix
