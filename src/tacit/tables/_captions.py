"""What an answer leaves out, in words: rows without a unit or outside the public keys, small groups."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.tables.laws import half_width

if TYPE_CHECKING:
    from tacit.tables.algebra import Question
    from tacit.tables.budgeting import Share

__all__ = ["left_out", "nearly_always", "whom_of"]


def left_out(question: Question, shares: tuple[Share, ...], unit: str) -> tuple[str, ...]:
    """Say which rows are not counted and which groups are not shown; a function of public facts."""
    names = " or ".join(name for name, _ in question.by)
    rows = [f"rows without a {unit}"] if unit else []
    if question.by and question.keys is not None:
        rows.append(f"rows whose {names} is not among the keys")
    told = [f"not counted: {'; '.join(rows)}"] if rows else []
    if question.by and question.keys is None:
        share = shares[0]
        told.append(
            f"not shown: groups of fewer than about {share.above:,} {whom_of(unit)} "
            f"(nearly always shown from {nearly_always(share):,})"
        )
    return tuple(told)


def whom_of(unit: str) -> str:
    """Name what the size of a group counts."""
    return f"different {unit}" if unit else "rows"


def nearly_always(share: Share) -> int:
    """Return the size from which a group passes the threshold with 95 % or more."""
    return share.above + half_width(share, Fraction(95, 100))
