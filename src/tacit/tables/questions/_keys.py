"""The keys of a table's groups, given, declared or read from a public table, else selected privately; levels.

Levels are ROLLUP, CUBE and GROUPING SETS as sums of the finest groups. Only the finest groups are measured. A
total is the sum of the noisy integers of its groups, which is free post-processing: its noise is the sum of
their independent noises, and totals agree with their parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from decimal import Decimal
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tacit.algebra import (
    Column,
    DistinctCounts,
    Node,
    Scope,
    UnitCounts,
    check_possible_keys,
    is_iso,
    keys_of,
    kind_of,
    resolve,
)
from tacit.core import KEY_KINDS, Fact, Kind, read_keys
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Declare, Either, Say, Set
from tacit.parameters import Choice, Listed
from tacit.tables.planning._steps import AddNoise
from tacit.tables.reading._readings import StepNoise

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.algebra import Contribution, TableQuestion
    from tacit.core import Table
    from tacit.engines import Engine
    from tacit.tables._dataset import TableDataset
    from tacit.tables.planning._pricing import ReleasedColumn
    from tacit.tables.planning._steps import MeasuredStep
    from tacit.tables.reading._readings import Cell, Reading


KeysGiven = Sequence[object] | Mapping[str, Sequence[object] | str] | str | None
MissingKeys: TypeAlias = Literal["drop", "group"]

MAX_KEYS = 1_000_000
_MAX_GROUPS: ContextVar[int] = ContextVar("most_groups", default=MAX_KEYS)
_MAX_CELLS: ContextVar[int | None] = ContextVar("most_cells", default=None)


@contextmanager
def at_most_groups(number: int) -> Iterator[None]:
    """Refuse questions with more public groups than this, before their keys are combined.

    A service plans for people whom it does not trust, and each group takes time.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> with tc.tables.at_most_groups(10):
    ...     visits.sql("SELECT MONTH(admitted) AS m, COUNT(*) AS n FROM data GROUP BY m")
    Traceback (most recent call last):
    tacit.errors.TacitError: keys must be at most 10 combinations, got '12'
    ...
    """
    before = _MAX_GROUPS.set(number)
    try:
        yield
    finally:
        _MAX_GROUPS.reset(before)


@contextmanager
def at_most_cells(number: int) -> Iterator[None]:
    """Refuse ranges of columns with more cells than this, before they are planned.

    A service plans for people whom it does not trust, and the best sums of many cells take time to find.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(
    ...     tc.tables.example_visits(),
    ...     unit="patient_id",
    ...     bounds={"age": (0, 100)},
    ...     budget=tc.Budget(epsilon=1),
    ... )
    >>> with tc.tables.at_most_cells(10):
    ...     visits.ranges("age", bins=50)
    Traceback (most recent call last):
    tacit.errors.TacitError: age has 50 cells, and at most 10 are allowed
    ...
    """
    before = _MAX_CELLS.set(number)
    try:
        yield
    finally:
        _MAX_CELLS.reset(before)


def cell_limit(limit: int) -> int:
    """Return how many cells a column may have: a question's own limit, or a smaller one around it."""
    around = _MAX_CELLS.get()
    return limit if around is None else min(limit, around)


def check_size(name: str, size: int, max_size: int, allowed: str, fix: str) -> None:
    """Refuse more public values than are allowed; the words have a place for the number."""
    if size > max_size:
        raise bad_parameter(name, allowed.format(max_size), f"{size:,}", fix=fix)


def key_node(node: Node, facts: Scope, kind: Kind | None) -> Node:
    """Resolve a group's key: its kind follows from the public keys, the declared facts, or is text."""
    resolved = resolve(node, facts)
    return resolve(node, facts, kind or kind_of(resolved) or "text")


def key_nodes(
    by: Sequence[tuple[str, Node]], keys: tuple[tuple[object, ...], ...] | None, facts: Scope
) -> tuple[tuple[str, Node], ...]:
    """Resolve the keys of groups, and refuse keys of another kind than their column.

    No row could have such a key, and the two cannot be compared. A column whose kind nobody declared is read
    as dates where all its keys are written as dates: then a day matches, whether the source stores text,
    dates or moments.
    """
    nodes = []
    for i, (name, node) in enumerate(by):
        if keys is None:
            nodes.append((name, key_node(node, facts, None)))
            continue
        column = [key[i] for key in keys if key[i] is not None]
        of_keys = KEY_KINDS[type(column[0])]
        dated = of_keys == "text" and all(is_iso(str(key)) for key in column)
        kind = kind_of(resolve(node, facts)) or ("date" if dated else of_keys)
        if kind != of_keys and not (kind == "date" and dated):
            example = next(k for k in column if kind != "date" or not isinstance(k, str) or not is_iso(k))
            raise bad_parameter(
                f"keys of {name!r}",
                "dates such as '2026-01-31'" if kind == "date" else f"of the type {kind}, like the column",
                example,
                fix=Set(keys={name: example_keys(kind)}),
            )
        nodes.append((name, resolve(node, facts, kind)))
        check_possible_keys(name, node, column, facts)
    return tuple(nodes)


def typed_keys(
    by: Sequence[tuple[str, Node]], keys: tuple[tuple[object, ...], ...] | None
) -> tuple[tuple[object, ...], ...] | None:
    """Write the public keys of dates as the engine writes its dates, so that equal moments are equal keys."""
    dated = [kind_of(node) == "date" for _, node in by]
    if keys is None or not any(dated):
        return keys
    dated_keys = [
        tuple(
            _moment(str(k)) if is_date and k is not None else k for k, is_date in zip(key, dated, strict=True)
        )
        for key in keys
    ]
    return tuple(
        sorted(Listed("dates", '["2026-01-01"]', different=True).read("keys", dated_keys), key=_order)
    )


def _order(key: tuple[object, ...]) -> list[Any]:
    """Sort the group of missing values last."""
    return [(one is None, "" if one is None else one) for one in key]


def _moment(text: str) -> object:
    return read_keys("a date", [datetime.fromisoformat(text)])[0]


def example_keys(kind: Kind | None) -> list[object]:
    """Return keys of a kind, to show how they are written."""
    examples: dict[Kind, list[object]] = {
        "date": ["2026-01-01", "2026-02-01"], "number": [1, 2], "boolean": [True, False],
    }  # fmt: skip
    return examples.get(kind or "text", ["A", "B"])


_Lists = Sequence[object] | Mapping[str, Sequence[object]] | None


def from_public_tables(keys: KeysGiven, dataset: TableDataset) -> _Lists:
    """Read the keys that are given as the name of a public table."""
    if isinstance(keys, str):
        return public_column(keys, dataset.tables, dataset._engine)
    if isinstance(keys, Mapping):
        return {
            n: public_column(v, dataset.tables, dataset._engine) if isinstance(v, str) else v
            for n, v in keys.items()
        }
    return keys


def public_column(reference: str, tables: Mapping[str, Table], engine: Engine) -> list[object]:
    """Read the different values of a column of a public table: ``table`` (its key) or ``table.column``."""
    name, _, column = (reference, "", "") if reference in tables else reference.rpartition(".")
    table = tables.get(name)
    if table is None or table.key is None:
        public = sorted(n for n, t in tables.items() if t.key is not None)
        raise TacitError(
            "bad-parameter",
            f"keys must be a list or the name of a public table, got {reference[:40]!r}",
            why="the values of a protected table are not public" if table is not None else "",
            fix=Set(keys=public[0] if public and table is None else [reference[:20]]),
        )
    column = column or table.key
    if table.columns is not None and column not in table.columns:
        raise TacitError(
            "unknown-column",
            f"the public table {name!r} has no column {column!r}",
            fix=Choose(table.columns, given=column),
        )
    kind = table.facts.get(column, Fact()).kind
    values = engine.public_values(name, Column(column, kind), MAX_KEYS + 1)
    if values is None:
        raise TacitError(
            "unknown-table",
            f"the public table {name!r} cannot be read now",
            why="keys from a public table are part of the plan, so they are read when it is made",
            fix=Either(Set(keys=["A", "B"]), Say("make its source available")),
        )
    plain = [float(v) if isinstance(v, Decimal) else v for v in values]
    return [v for v in plain if not isinstance(v, float) or math.isfinite(v)]


def read_column_keys(column: str, keys: object) -> tuple[object, ...]:
    """Read a list of public keys; None, which stands for missing values, comes last."""
    if not isinstance(keys, Sequence) or None not in keys:
        return read_keys(column, keys)
    if keys.count(None) > 1:
        read_keys(column, ["NULL", "NULL"])  # refuses a key that is listed twice
    return (*read_keys(column, [key for key in keys if key is not None]), None)


def listed_order(column: str, values: object, keys: tuple[object, ...]) -> tuple[object, ...]:
    """Return keys in the order in which a list has them; nothing if that is their own order, or for a set."""
    if not isinstance(values, Sequence) or list(values) == list(keys):
        return ()
    order = tuple(_read_key(column, one) for one in values)
    return () if order == keys else order


def read_group_keys(
    by: Sequence[tuple[str, Node]], lists: _Lists, facts: Scope, *, missing: bool = False
) -> tuple[tuple[object, ...], ...] | None:
    """Read the public keys of a grouping as sorted tuples; None where they are to be selected privately.

    With ``missing``, the missing values of each column are one more key of it.
    """
    names = [name for name, _ in by]
    if isinstance(lists, Mapping):
        columns = _lists_by_column(by, lists, facts)
    elif lists is None:
        key_lists = [_known_keys(name, node, facts) for name, node in by]
        columns = [keys for keys in key_lists if keys is not None]
        if len(columns) != len(key_lists):
            return None
    elif len(names) == 1:
        columns = [read_column_keys(names[0], list(lists))]
    else:
        if missing:
            raise _missing_in_tuples(names)
        return _tuples(names, list(lists))
    if missing:
        columns = [column if None in column else (*column, None) for column in columns]
    total = math.prod(len(column) for column in columns)
    fix = "group by fewer columns, or give only the combinations that matter"
    check_size("keys", total, _MAX_GROUPS.get(), "at most {:,} combinations", fix)
    return tuple(product(*columns))


def _known_keys(name: str, node: Node, facts: Scope) -> tuple[object, ...] | None:
    """Return the keys that are declared for a column, or that the form of an expression shows."""
    keys = keys_of(node, facts)
    if keys is None or isinstance(node, Column):
        return keys
    if len({type(key) for key in keys if key is not None}) != 1:
        return None
    sorted_keys = read_column_keys(name, list(keys))
    return (
        keys if set(keys) == set(sorted_keys) else sorted_keys
    )  # in the order of the question, or of the calendar


def _lists_by_column(
    by: Sequence[tuple[str, Node]], lists: Mapping[str, Sequence[object]], facts: Scope
) -> list[tuple[object, ...]]:
    """Read lists by column; they come beside the keys that are known."""
    columns = [
        read_column_keys(name, lists[name]) if name in lists else _known_keys(name, node, facts)
        for name, node in by
    ]
    missing = [name for (name, _), keys in zip(by, columns, strict=True) if keys is None]
    if missing:
        raise bad_parameter(
            "keys",
            "a list for each column that you group by",
            sorted(lists),
            fix=Set(keys={missing[0]: ["A", "B"]}),
        )
    return [keys for keys in columns if keys is not None]


def _missing_in_tuples(names: list[str]) -> TacitError:
    return TacitError(
        "bad-parameter",
        "a list of key combinations must itself contain the groups of missing values",
        why="a combination can contain None, which stands for a missing value",
        fix=Set(keys=[("A",) * (len(names) - 1) + (None,)]),
    )


def _tuples(names: list[str], values: list[Any]) -> tuple[tuple[object, ...], ...]:
    """Read combinations of several columns, each given as a tuple."""
    if not all(isinstance(v, tuple | list) and len(v) == len(names) for v in values):
        raise bad_parameter(
            "keys", f"tuples of {len(names)} values", values[:3], fix=Set(keys=[("A", 2024), ("B", 2024)])
        )
    for i, n in enumerate(names):
        read_column_keys(n, list(dict.fromkeys(v[i] for v in values)))
    lines = [tuple(_read_key(n, x) for n, x in zip(names, v, strict=True)) for v in values]
    different = Listed("tuples", '[("A", 2024), ("B", 2024)]', different=True).read("keys", lines)
    return tuple(sorted(different, key=_order))


def _read_key(name: str, value: object) -> object:
    return None if value is None else read_keys(name, [value])[0]


#: For each level the places of the columns that it groups by; the others are summed over.
Levels: TypeAlias = "tuple[tuple[int, ...], ...]"

MAX_LEVELS = 64
_MAX_SUMMED = 10_000


def rollup_levels(columns: int) -> Levels:
    """Return all columns, all but the last, and so on down to the total.

    Examples
    --------
    >>> rollup_levels(2)
    ((0, 1), (0,), ())
    """
    return tuple(tuple(range(n)) for n in range(columns, -1, -1))


def cube_levels(columns: int) -> Levels:
    """Return every choice of columns, the largest first.

    Examples
    --------
    >>> cube_levels(2)
    ((0, 1), (0,), (1,), ())
    """
    if 2**columns > MAX_LEVELS:
        raise bad_parameter("cube", "of at most 6 columns", columns, fix=Code(".rollup()"))
    return tuple(chosen for n in range(columns, -1, -1) for chosen in combinations(range(columns), n))


def named_levels(names: Sequence[str], sets: Sequence[Sequence[str]]) -> Levels:
    """Return the levels that are given by the names of their columns."""
    parameter = Listed("lists of columns", f'[["{names[0]}"], []]', most=MAX_LEVELS)
    levels = [(one,) if isinstance(one, str) else tuple(one) for one in parameter.read("sets", sets)]
    for name in (name for one in levels for name in one):
        Choice(tuple(names)).read("a column of a grouping set", name)
    return tuple(dict.fromkeys(tuple(i for i, n in enumerate(names) if n in one) for one in levels))


def check_levels(question: TableQuestion) -> None:
    """Refuse totals of groups that are selected privately, or of too many groups."""
    if not question.levels:
        return
    names = [name for name, _ in question.by]
    if question.keys is None:
        raise TacitError(
            "keys-missing",
            f"totals over {', '.join(names)} need public keys",
            why="private selection hides small groups, so the sum of the groups shown would be too small",
            fix=Either(
                *(Declare("keys", ["A", "B"], column=name) for name in names),
                Say("ask for the totals in a separate question, without these groups"),
            ),
        )
    if any(None in key for key in question.keys):
        raise TacitError(
            "not-allowed",
            f"totals over {', '.join(names)} cannot be shown together with a group of missing values",
            why="both would be rows without a key",
            fix=Say("name the missing values, as in COALESCE(ward, 'none')"),
        )
    allowed = "at most {:,} combinations if the question asks for totals"
    fix = "group by fewer columns, or ask for the totals in a separate question"
    check_size("keys", len(question.keys), _MAX_SUMMED, allowed, fix)


def check_totals(
    steps: tuple[MeasuredStep, ...],
    columns: tuple[ReleasedColumn, ...],
    contributed: Contribution,
    names: Sequence[str],
) -> None:
    """Refuse aggregates whose total is not the sum over groups: picked values, units in several groups."""
    for column in columns:
        step = steps[column.step]
        sums = isinstance(step.method, AddNoise) and not isinstance(step.statistic, DistinctCounts)
        if sums and (contributed.groups == 1 or not isinstance(step.statistic, UnitCounts)):
            continue
        raise TacitError(
            "not-allowed",
            f"{column.aggregate.words} has no totals over {', '.join(names)}",
            why="a total is the sum of its groups, but these numbers do not add up: for example, a value "
            "that is in several groups would count several times",
            fix=Say("remove it, or ask for it in a separate question with only the groups of the total"),
        )


def lines_of(keys: Sequence[Sequence[object]], levels: Levels) -> tuple[list[list[object]], list[list[int]]]:
    """Return all lines: their keys, None for what is summed over, and the finest lines in each of them."""
    lines_of_keys: list[list[object]] = []
    groups: list[list[int]] = []
    for level in levels:
        members: dict[tuple[object, ...], list[int]] = {}
        for at, key in enumerate(keys):
            members.setdefault(tuple(key[i] for i in level), []).append(at)
        for values_shown, lines in members.items():
            values = dict(zip(level, values_shown, strict=True))
            lines_of_keys.append([values.get(i) for i in range(len(keys[0]))])
            groups.append(lines)
    return lines_of_keys, groups


def read_levels(
    reading: Reading,
    noise: StepNoise,
    lines: list[list[int]],
    groups: Sequence[Sequence[int]],
    confidence: Fraction,
) -> list[Cell]:
    """Read the sum of the noisy integers of each group of lines, with the sum of their noises."""
    cells: list[Cell | None] = [None] * len(groups)
    for k in sorted({len(group) for group in groups}):
        places = [i for i, group in enumerate(groups) if len(group) == k]
        sums = [[sum(parts) for parts in zip(*(lines[at] for at in groups[i]), strict=True)] for i in places]
        summed = StepNoise(noise.statistic, noise.mechanisms * k)
        for i, cell in zip(places, reading.shown(summed, sums, confidence), strict=True):
            cells[i] = cell
    return [cell for cell in cells if cell is not None]
