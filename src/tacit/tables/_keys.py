"""The keys of a table's groups: given, declared or read from a public table; else selected privately."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

from tacit.core import KEY_KINDS, Fact, Kind, read_keys
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Either, Say, Set
from tacit.tables._emit_expressions import expression_sql, quote
from tacit.tables._expressions import Column, Node
from tacit.tables._kinds import Scope, kind_of, resolve
from tacit.tables._known_values import known_values

if TYPE_CHECKING:
    from tacit.core import Engine, Table
    from tacit.tables._dataset import TableDataset

__all__ = [
    "MOST_KEYS",
    "KeysGiven",
    "from_public_tables",
    "key_node",
    "key_nodes",
    "public_column",
    "read_group_keys",
]

KeysGiven = Sequence[object] | Mapping[str, Sequence[object] | str] | str | None


MOST_KEYS = 1_000_000


def key_node(node: Node, facts: Scope, kind: Kind | None) -> Node:
    """Resolve a group's key: its kind follows from the public keys, the declared facts, or is text."""
    known = resolve(node, facts)
    return resolve(node, facts, kind or kind_of(known) or "text")


def key_nodes(
    by: Sequence[tuple[str, Node]], keys: tuple[tuple[object, ...], ...] | None, facts: Scope
) -> tuple[tuple[str, Node], ...]:
    """Resolve the keys of groups, and refuse text as the key of a number or a boolean.

    No row could have such a key, and the two cannot be compared.
    """
    made = []
    for i, (name, node) in enumerate(by):
        of_keys = "text" if keys is None else KEY_KINDS[type(keys[0][i])]
        solved = key_node(node, facts, None if of_keys == "text" else of_keys)  # text may stand for a date
        kind = kind_of(solved)
        if keys is not None and of_keys == "text" and kind in {"number", "boolean"}:
            raise bad_parameter(
                f"keys of {name!r}",
                f"of the kind {kind}, like the column",
                keys[0][i],
                fix=Set(keys=[1, 2] if kind == "number" else [True, False]),
            )
        made.append((name, solved))
    return tuple(made)


_Lists = Sequence[object] | Mapping[str, Sequence[object]] | None


def from_public_tables(given: KeysGiven, dataset: TableDataset) -> _Lists:
    """Read the keys that are given as the name of a public table."""
    if isinstance(given, str):
        return public_column(given, dataset.tables, dataset._engine)
    if isinstance(given, Mapping):
        return {
            n: public_column(v, dataset.tables, dataset._engine) if isinstance(v, str) else v
            for n, v in given.items()
        }
    return given


def public_column(written: str, tables: Mapping[str, Table], engine: Engine) -> list[object]:
    """Read the different values of a column of a public table: ``table`` (its key) or ``table.column``."""
    name, _, column = (written, "", "") if written in tables else written.rpartition(".")
    table = tables.get(name)
    if table is None or table.key is None:
        public = sorted(n for n, t in tables.items() if t.key is not None)
        raise TacitError(
            "bad-parameter",
            f"keys must be a list or the name of a public table, got {written[:40]!r}",
            why="the values of a protected table are not public" if table is not None else "",
            fix=Set(keys=public[0] if public and table is None else [written[:20]]),
        )
    column = column or table.key
    if table.columns is not None and column not in table.columns:
        raise TacitError(
            "unknown-column",
            f"the public table {name!r} has no column {column!r}",
            fix=Choose(table.columns, given=column),
        )
    kind = table.facts.get(column, Fact()).kind
    read = quote(column) if kind is None else expression_sql(Column(column, kind))
    values = engine.public_values(name, read, MOST_KEYS + 1)
    if values is None:
        raise TacitError(
            "unknown-table",
            f"the public table {name!r} cannot be read now",
            why="keys from a public table are part of the plan, so they are read when it is made",
            fix=Either(Set(keys=["A", "B"]), Say("make its source available")),
        )
    plain = [float(v) if isinstance(v, Decimal) else v for v in values]
    return [v for v in plain if not isinstance(v, float) or math.isfinite(v)]


def read_group_keys(
    by: Sequence[tuple[str, Node]], given: _Lists, facts: Scope
) -> tuple[tuple[object, ...], ...] | None:
    """Read the public keys of a grouping as sorted tuples; None where they are to be selected privately."""
    names = [name for name, _ in by]
    if isinstance(given, Mapping):
        columns = _lists_by_column(names, given)
    elif given is None:
        declared = [known_values(node, facts) for _, node in by]
        columns = [k for k in declared if k is not None]
        if len(columns) != len(declared):
            return None
    elif len(names) == 1:
        columns = [read_keys(names[0], list(given))]
    else:
        return _tuples(names, list(given))
    total = math.prod(len(column) for column in columns)
    if total > MOST_KEYS:
        raise bad_parameter(
            "keys",
            f"at most {MOST_KEYS:,} combinations",
            f"{total:,}",
            fix="group by fewer columns, or give only the combinations that matter",
        )
    return tuple(product(*columns))


def _lists_by_column(names: list[str], given: Mapping[str, Sequence[object]]) -> list[tuple[object, ...]]:
    missing = [n for n in names if n not in given]
    if missing:
        raise bad_parameter(
            "keys",
            "a list for each column that you group by",
            sorted(given),
            fix=Set(keys={missing[0]: ["A", "B"]}),
        )
    return [read_keys(n, given[n]) for n in names]


def _tuples(names: list[str], values: list[Any]) -> tuple[tuple[object, ...], ...]:
    """Read combinations of several columns, each given as a tuple."""
    if not all(isinstance(v, tuple | list) and len(v) == len(names) for v in values):
        raise bad_parameter(
            "keys", f"tuples of {len(names)} values", values[:3], fix=Set(keys=[("A", 2024), ("B", 2024)])
        )
    for i, n in enumerate(names):
        read_keys(n, list(dict.fromkeys(v[i] for v in values)))
    lines = [tuple(read_keys(n, [x])[0] for n, x in zip(names, v, strict=True)) for v in values]
    if len(set(lines)) != len(lines):
        raise bad_parameter("keys", "different tuples", "one of them twice", fix="name each tuple once")
    return tuple(sorted(lines))
