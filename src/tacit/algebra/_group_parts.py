"""Parts of the groups of a question whose keys are private: what an engine returns at one time.

There may be very many such groups, of which few are shown. So their integers are read in parts: all of them
while they are few, else by size, and only those that are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

from tacit.algebra._questions import TableQuestion


@dataclass(frozen=True, slots=True)
class FewGroups:
    """All groups, where there are at most ``most``; else ``most`` + 1 of them, any."""

    most: int


@dataclass(frozen=True, slots=True)
class GroupsBySize:
    """The large groups one by one, and of the others only how many have which size.

    The one statistic that is asked for is the size. A line holds a group's key, its size, a cell and a
    number. A group of at least ``threshold`` has a line of its own, without a cell. The other groups of one
    size and one cell have a line together, without a key, and the number says how many they are. The cell of
    a group is a function of its key: a text that has 16^``digits`` values.
    """

    threshold: int
    digits: int


@dataclass(frozen=True, slots=True)
class GroupsAtRanks:
    """Small groups at some ranks, among the groups of one size and one cell in the order of their keys.

    The table ``tacit_ranks`` has sizes, cells and ranks from 1. A line holds a group's key, its size, cell
    and rank, and the number of groups of this size and cell.
    """

    threshold: int
    digits: int


@dataclass(frozen=True, slots=True)
class ListedGroups:
    """The groups in the table ``tacit_keys``. They are picked after a unit's groups were limited."""


GroupPart: TypeAlias = FewGroups | GroupsBySize | GroupsAtRanks | ListedGroups


@dataclass(frozen=True, slots=True)
class PartialQuestion(TableQuestion):
    """A question with private keys, and the part of its groups that is read now; never part of a plan."""

    part: GroupPart | None = None


def part_of(question: TableQuestion, part: GroupPart) -> PartialQuestion:
    """Return a question about a part of the groups.

    Examples
    --------
    >>> from tacit.algebra import Scan
    >>> from tacit.core import Table
    >>> asked = TableQuestion(Scan(Table("visits"), None), (), None, (), None, None)
    >>> part_of(asked, FewGroups(10)).part
    FewGroups(most=10)
    """
    return PartialQuestion(**{f.name: getattr(question, f.name) for f in fields(question)}, part=part)
