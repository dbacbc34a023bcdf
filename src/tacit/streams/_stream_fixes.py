"""The fixes of a table question in the words of a stream: facts are declared by ``tc.stream``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.core import fixes_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def fixes_of_streams() -> AbstractContextManager[None]:
    """Let refusals of a day's table say what to write for a stream."""
    return fixes_of("tc.stream")
