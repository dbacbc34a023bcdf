"""The public places of rows: axes of cross tables, and trees of values.

An axis is a column of rows with its public list of values, or a number with public cuts. A tree has districts
in regions in countries, or codes in chapters. Everything here follows from public facts. A row has one place
on every axis, or is left out of all tables: a value that is not on the list has no place, unless the axis has
one for other values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from tacit.algebra import Call, Column, Literal, as_date, can_be_missing, kind_of, resolve, scope
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Choose, Declare, Do, Either, Set
from tacit.parameters import ColumnName, Listed, RealNumber, refuse_auto
from tacit.tables.questions._keys import check_size, key_nodes, read_group_keys, typed_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.algebra import Node, Scope
    from tacit.core import Kind, Value
    from tacit.fixes import Fix
    from tacit.tables.questions._rows import Rows


#: For each column a number of equally wide cells between its bounds, or the cuts themselves.
BinsGiven: TypeAlias = "Mapping[str, int | Sequence[object]] | None"

MAX_PLACES = 10_000
_OTHER = "(other)"
_COLUMNS = Listed("names of columns", '["age", "sex"]', different=True, each=ColumnName())
_MISSING = "(missing)"


@dataclass(frozen=True, slots=True)
class Axis:
    """One column of cross tables and its places.

    Parameters
    ----------
    name
        The column's name.
    node
        The expression whose value decides the place; of a number with cuts, the number of the place itself.
    values
        What the engine returns for each place, in order; None stands for missing values.
    cuts
        Of a number or a date: place i holds what lies from cut i to below cut i + 1. What lies outside is in
        the first or in the last place, which also holds the last cut.
    other
        Whether the last place holds all values that are not on the list.
    """

    name: str
    node: Node
    values: tuple[object, ...]
    cuts: tuple[float | str, ...] = ()
    other: bool = False

    @property
    def size(self) -> int:
        """How many places there are."""
        return len(self.values) + self.other

    @property
    def missing(self) -> bool:
        """Whether missing values have a place."""
        return None in self.values

    @property
    def labels(self) -> tuple[str, ...]:
        """The places as people read them.

        Examples
        --------
        >>> Axis("age", Column("age"), (0.0, 1.0, None), cuts=(0.0, 40.0, 80.0)).labels
        ('0 to 40', '40 to 80', '(missing)')
        """
        texts = [_MISSING if value is None else _written(value) for value in self.values]
        cells = [f"{_written(low)} to {_written(high)}" for low, high in pairwise(self.cuts)]
        return (*cells, *texts[len(cells) :], *([_OTHER] if self.other else []))

    @property
    def shown(self) -> tuple[Value, ...]:
        """The places as keys of an answer: values as they are, cells and other values by their labels."""
        if self.cuts or self.other:
            labelled = zip(self.values, self.labels, strict=False)
            keys: list[Value] = [None if value is None else label for value, label in labelled]
            return (*keys, *([_OTHER] if self.other else []))
        return tuple(
            value if isinstance(value, str | float | bool) or value is None else str(value)
            for value in self.values
        )

    def to_json(self) -> dict[str, object]:
        """Return the axis as a release stores it: names, labels and cuts; no expression."""
        return {"name": self.name, "places": list(self.shown), "cuts": list(self.cuts), "other": self.other}


def read_axes(
    rows: Rows,
    columns: Sequence[str],
    *,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
    other: Sequence[str] = (),
    missing: bool = True,
) -> tuple[Axis, ...]:
    """Read the columns of cross tables, or refuse those whose values are not public.

    Parameters
    ----------
    rows
        The rows that are counted.
    columns
        The names of the columns, all different.
    bins
        Of numbers: how many equally wide cells, or the cuts; of dates the cuts.
    keys
        Public values by column; by default those declared with the dataset.
    other
        Columns that get one more place for all values that are not listed.
    missing
        Whether missing values get a place, in columns that can have them.
    """
    facts = scope(rows.relation)
    names = _COLUMNS.read("columns", columns)
    refuse_auto("a table with bins", bins, _cells_fix(names[0], facts))
    for mapping, word in ((bins, "bins"), (keys, "keys")):
        for name in mapping or {}:
            _check_asked(word, name, names)
    for name in other:
        _check_asked("other", name, names)
    axes = []
    for name in names:
        node = resolve(Column(name), facts)
        gaps = missing and can_be_missing(node, facts)
        if bins is not None and name in bins:
            axes.append(_with_cuts(name, bins[name], facts, gaps=gaps))
        else:
            axes.append(_with_values(name, (keys or {}).get(name), facts, gaps=gaps, other=name in other))
    return tuple(axes)


def in_order(axis: Axis, values: Sequence[object]) -> Axis:
    """Return the axis with its listed values in the order in which they are given; dates stay in theirs."""
    if axis.cuts or kind_of(axis.node) == "date":
        return axis
    position = {_written(float(one) if type(one) is int else one): i for i, one in enumerate(values)}
    return replace(axis, values=tuple(sorted(axis.values, key=lambda one: position[_written(one)])))


def _check_asked(word: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise TacitError(
            "unknown-column",
            f"{word} names {name!r}, which is not one of the columns asked for",
            fix=Choose(tuple(names), given=str(name)),
        )


def _with_values(
    name: str, values_given: Sequence[object] | None, facts: Scope, *, gaps: bool, other: bool
) -> Axis:
    """Make the axis of a column whose values are listed."""
    by = ((name, Column(name)),)
    if values_given is None and facts[name].keys is None and facts[name].stored == "boolean":
        values_given = (False, True)
    _check_places(name, 0 if values_given is None else len(values_given))
    lists = None if values_given is None else {name: list(values_given)}
    public = read_group_keys(by, lists, facts)
    if public is None:
        numeric = facts[name].kind == "number" or facts[name].bounds is not None
        raise TacitError(
            "keys-missing",
            f"the values of {name} are not public",
            why="cross tables and invented rows need every value of a column in advance; which values occur "
            "is private",
            fix=Either(Set(bins={name: 10}), Declare("keys", [1, 2], column=name))
            if numeric
            else Declare("keys", ["A", "B"], column=name),
        )
    nodes = key_nodes(by, public, facts)
    values = tuple(key[0] for key in typed_keys(nodes, public) or ())
    if gaps and None not in values:
        values = (*values, None)
    _check_places(name, len(values) + other)
    return Axis(name, nodes[0][1], values, other=other)


def _with_cuts(name: str, bins: object, facts: Scope, *, gaps: bool) -> Axis:
    """Make the axis of a number, or of a date, with public cuts."""
    fact = facts[name]
    refuse_auto(f"a table with bins of {name}", bins, _cells_fix(name, facts))
    dated = isinstance(bins, Sequence) and all(isinstance(cut, str) for cut in bins)
    kind: Kind = "date" if dated or fact.kind == "date" else "number"
    cuts = _dates(name, bins) if kind == "date" else _numbers(name, bins, facts)
    _check_places(name, len(cuts) - 1 + gaps)
    value = resolve(Column(name), facts, kind)
    if kind_of(value) != kind:
        raise bad_parameter("bins", f"for numbers and dates, and {name} has neither", bins, fix=Set(bins={}))
    parts: list[Node] = []
    for position, cut in enumerate(cuts[1:-1]):
        upper = as_date(str(cut)) if kind == "date" else Literal(float(str(cut)), "number")
        parts += [Call("lt", (value, upper)), Literal(float(position), "number")]
    last_place = Literal(float(len(cuts) - 2), "number")
    inner: Node = Call("case", (*parts, last_place)) if parts else last_place
    present = Call("not", (Call("is_null", (value,)),))
    node = resolve(Call("case", (present, inner, Literal(None, "number"))), facts, "number")
    places: tuple[object, ...] = tuple(float(i) for i in range(len(cuts) - 1))
    return Axis(name, node, (*places, None) if gaps else places, cuts)


def _cells_fix(name: str, facts: Scope) -> Fix:
    """Return what to write in place of automatic cells: their number where bounds are known."""
    if name not in facts:  # an unknown column is refused after this
        return Do("find-bounds-first", expression=name)
    fact = facts[name]
    if fact.kind == "date":
        return Set(bins={name: ["2026-01-01", "2026-02-01", "2026-03-01"]})
    return Do("find-bounds-first", expression=name) if fact.bounds is None else Set(bins={name: 10})


def _numbers(name: str, bins: object, facts: Scope) -> tuple[float, ...]:
    if isinstance(bins, Sequence) and not isinstance(bins, str):
        _check_places(name, len(bins) - 1)
        rising = _cuts(f"cuts of {name}", {name: [0, 20, 40]})
        numbers = replace(rising, each=RealNumber(zero=True, negative=True)).read("bins", bins)
        return tuple(float(cut) for cut in numbers)
    cells = count(f"bins of {name}", bins, zero=False)  # type: ignore[arg-type]
    bounds = facts[name].bounds
    if bounds is None:
        raise TacitError(
            "missing-bounds",
            f"{name} has no declared bounds, so it cannot be divided into {cells} equally wide cells",
            why="the smallest and the largest value in the data are private",
            fix=Either(
                Declare("bounds", (0, 100), column=name),
                Set(bins={name: [0, 50, 100]}),
                Do("find-bounds-first", expression=name),
            ),
        )
    _check_places(name, cells)
    low, high = bounds
    cuts = [float(low + (high - low) * i / cells) for i in range(cells + 1)]
    if any(not b > a for a, b in pairwise(cuts)) or not all(map(math.isfinite, cuts)):
        raise bad_parameter(f"bins of {name}", "fewer cells", bins, fix=Set(bins={name: 10}))
    return tuple(cuts)


def _dates(name: str, bins: object) -> tuple[str, ...]:
    rising = _cuts(f"dates of {name}", {name: ["2026-01-01", "2026-02-01", "2026-03-01"]})
    dates = replace(rising, least=0, rising=False).read("bins", bins)
    _check_places(name, len(dates) - 1)
    return tuple(rising.read("bins", [str(as_date(str(cut)).value) for cut in dates]))


def _cuts(words: str, bins: dict[str, list[Any]]) -> Listed:
    """Declare the cuts of one column."""
    return Listed(words, str(bins), least=2, rising=True)


def _check_places(name: str, places: int) -> None:
    fix = "group them into fewer, for example with bins, or leave the column out"
    check_size(f"the values of {name}", places, MAX_PLACES, "at most {:,}", fix)


def _written(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).removesuffix(" 00:00:00")


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
        index = {path: i for i, path in enumerate(paths)}
        parents = np.array([index.get(path[:-1], -1) for path in paths], dtype=np.int64)
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
        sums = np.zeros(len(self.paths), np.int64)
        sums[: self.leaves] = counts
        for level in range(len(self.names) - 1, 0, -1):
            at = np.flatnonzero(self.depth == level)
            np.add.at(sums, self.parents[at], sums[at])
        return sums


def read_tree(levels: Sequence[str], tree: TreeGiven) -> PublicTree:
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
    lines = list(dict.fromkeys(_lines(levels, tree)))
    if not lines:
        raise _not_a_tree("a tree with at least one value", tree)
    check_size("tree", len(lines), MAX_PLACES, "one with at most {:,} values", "leave out its lowest level")
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


def _lines(levels: list[str], tree: TreeGiven) -> list[tuple[Value, ...]]:
    """Return one line for each value of the lowest level: where it lies on every level."""
    if hasattr(tree, "to_dict") and hasattr(tree, "columns"):
        tree = tree.to_dict("records")
    if isinstance(tree, Mapping):
        return _below(levels, tree, ())
    if not isinstance(tree, Sequence) or isinstance(tree, str):
        raise _not_a_tree("nested mappings, or a public table", tree)
    lines = []
    for branch in tree:
        if isinstance(branch, Mapping):
            lacking = [level for level in levels if level not in branch]
            if lacking:
                raise _not_a_tree(f"a table with the column {lacking[0]}", branch)
            line = tuple(branch[level] for level in levels)
        elif len(levels) == 1 and not isinstance(branch, list | tuple):
            line = (branch,)
        else:
            line = tuple(branch) if isinstance(branch, list | tuple) else ()
        if len(line) != len(levels) or any(value is None for value in line):
            raise _not_a_tree(f"{len(levels)} values in each line", branch)
        lines.append(tuple(_plain(value) for value in line))
    return lines


def _below(levels: list[str], branch: Any, above: tuple[Value, ...]) -> list[tuple[Value, ...]]:
    if len(levels) == 1:
        if isinstance(branch, str | Mapping) or not hasattr(branch, "__iter__"):
            raise _not_a_tree(f"a list of each {levels[0]}", branch)
        return [(*above, _plain(value)) for value in branch]
    if not isinstance(branch, Mapping):
        raise _not_a_tree(f"a mapping from each {levels[0]} to what lies in it", branch)
    return [
        line for name, inner in branch.items() for line in _below(levels[1:], inner, (*above, _plain(name)))
    ]


def _not_a_tree(must_be: str, tree: object) -> TacitError:
    return bad_parameter("tree", must_be, tree, fix=_EXAMPLE)


def _plain(value: Any) -> Value:
    if hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, str | int | float) else str(value)
