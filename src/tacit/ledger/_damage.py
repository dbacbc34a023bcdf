"""What the store holds and nobody can read, as one refusal: a damaged ledger ends in no other error."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.ledger import _refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What Python raises where stored text, JSON or numbers are not what the ledger wrote.
UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def readable(what: str, *, refusals: bool = False) -> Iterator[None]:
    """Report damage where a stored value cannot be read.

    With ``refusals``, a refusal of a number counts as damage, too: the number is stored, not an argument.
    """
    try:
        yield
    except TacitError as error:
        if not refusals or error.code.startswith("ledger-"):
            raise
        raise _refusals.damaged(f"{what} cannot be read: {error.what}") from error
    except UNREADABLE as error:
        raise _refusals.damaged(f"{what} cannot be read ({type(error).__name__})") from error
