"""A public tree of values: districts in regions in countries, codes in chapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Set
from tacit.parameters import Listed
from tacit.tables._axes import MOST_PLACES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import Value

#: Nested mappings that end in lists, or a public table with one column for each level.
TreeGiven: TypeAlias = Any
ALL = "(all)"
_LEVELS = Listed("names", '["region", "district"]', most=8, different=True)
_EXAMPLE = Set(tree={"North": ["A", "B"], "South": ["C"]})


@dataclass(frozen=True, slots=True, eq=False)
class PublicTree:
    """The nodes of a tree, the lowest level first, and the parent of each.

    Parameters
    ----------
    names
        The names of the levels from the top down; the first may be that of all rows together.
    paths
        For each node its values on the levels from the top down to its own.
    parents
        The number of each node's parent, or -1.
    """

    names: tuple[str, ...]
    paths: tuple[tuple[Value, ...], ...]
    parents: NDArray[np.int64]

    @classmethod
    def from_paths(cls, names: tuple[str, ...], lines: Sequence[tuple[Value, ...]]) -> Self:
        """Make the tree whose leaves have these paths; raises ``ValueError`` where they do not fit."""
        if not lines or {len(line) for line in lines} != {len(names)} or len(set(lines)) != len(lines):
            raise ValueError("not a tree")
        paths: list[tuple[Value, ...]] = []
        for length in range(len(names), 0, -1):
            paths += list(dict.fromkeys(line[:length] for line in lines))
        place = {path: i for i, path in enumerate(paths)}
        parents = np.array([place.get(path[:-1], -1) for path in paths], dtype=np.int64)
        return cls(names, tuple(paths), parents)

    @property
    def depth(self) -> NDArray[np.int64]:
        """The level of each node; the top is 0."""
        return np.array([len(path) - 1 for path in self.paths])

    @property
    def leaves(self) -> int:
        """How many nodes the lowest level has; they come first."""
        return int((self.depth == len(self.names) - 1).sum())

    def sums(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact count of every node, from those of the leaves."""
        made = np.zeros(len(self.paths), np.int64)
        made[: self.leaves] = counts
        for level in range(len(self.names) - 1, 0, -1):
            at = np.flatnonzero(self.depth == level)
            np.add.at(made, self.parents[at], made[at])
        return made


def read_tree(levels: Sequence[str], given: TreeGiven) -> PublicTree:
    """Read a public tree; a value of the lowest level lies in one node of each level above.

    Examples
    --------
    >>> tree = read_tree(["region", "district"], {"North": ["A", "B"], "South": ["C"]})
    >>> tree.names, tree.parents.tolist()
    (('(all)', 'region', 'district'), [3, 3, 4, 5, 5, -1])
    >>> tree.sums(np.array([1, 2, 4])).tolist()
    [1, 2, 4, 3, 4, 7]
    """
    levels = _LEVELS.read("levels", levels)
    lines = list(dict.fromkeys(_lines(levels, given)))
    if not lines:
        raise _not_a_tree("a tree with at least one value", given)
    if len(lines) > MOST_PLACES:
        raise bad_parameter(
            "tree",
            f"one with at most {MOST_PLACES:,} values",
            f"{len(lines):,}",
            fix="leave out its lowest level",
        )
    lowest = [line[-1] for line in lines]
    if len(set(lowest)) != len(lowest):
        twice = next(one for one in lowest if lowest.count(one) > 1)
        raise TacitError(
            "bad-parameter",
            f"the tree has {levels[-1]} {twice!r} in two places",
            why="rows are counted where their own value stands, so it must stand once",
            fix="write each value of the lowest level once",
        )
    names = tuple(levels)
    if len({line[0] for line in lines}) > 1 or len(levels) == 1:
        names, lines = (ALL, *names), [(ALL, *line) for line in lines]
    return PublicTree.from_paths(names, lines)


def _lines(levels: list[str], given: TreeGiven) -> list[tuple[Value, ...]]:
    """Return one line for each value of the lowest level: where it lies on every level."""
    if hasattr(given, "to_dict") and hasattr(given, "columns"):
        given = given.to_dict("records")
    if isinstance(given, Mapping):
        return _below(levels, given, ())
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise _not_a_tree("nested mappings, or a public table", given)
    lines = []
    for one in given:
        if isinstance(one, Mapping):
            lacking = [level for level in levels if level not in one]
            if lacking:
                raise _not_a_tree(f"a table with the column {lacking[0]}", one)
            line = tuple(one[level] for level in levels)
        elif len(levels) == 1 and not isinstance(one, list | tuple):
            line = (one,)
        else:
            line = tuple(one) if isinstance(one, list | tuple) else ()
        if len(line) != len(levels) or any(value is None for value in line):
            raise _not_a_tree(f"{len(levels)} values in each line", one)
        lines.append(tuple(_plain(value) for value in line))
    return lines


def _below(levels: list[str], given: Any, above: tuple[Value, ...]) -> list[tuple[Value, ...]]:
    if len(levels) == 1:
        if isinstance(given, str | Mapping) or not hasattr(given, "__iter__"):
            raise _not_a_tree(f"a list of each {levels[0]}", given)
        return [(*above, _plain(value)) for value in given]
    if not isinstance(given, Mapping):
        raise _not_a_tree(f"a mapping from each {levels[0]} to what lies in it", given)
    return [
        line for name, inner in given.items() for line in _below(levels[1:], inner, (*above, _plain(name)))
    ]


def _not_a_tree(must_be: str, given: object) -> TacitError:
    return bad_parameter("tree", must_be, given, fix=_EXAMPLE)


def _plain(value: Any) -> Value:
    if hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, str | int | float) else str(value)
