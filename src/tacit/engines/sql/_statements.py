"""Write a table question as SQL that returns bounded exact integers, and nothing else.

The text is a function of the question and of public facts. It reads views that the engine lays over its
sources (``"visits"`` with the owner of each row in ``tacit_u``, and ``"visits first 10"``, in the keyed
order a unit's first ten rows) and small public tables (``tacit_keys``). The secret that orders a unit's
rows and groups is not in the text.

Groups whose keys are private are written in parts: the first few, all by size, or some by rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.algebra import (
    BinCounts,
    Column,
    DistinctCounts,
    FewGroups,
    GroupsAtRanks,
    GroupsBySize,
    ListedGroups,
    PartialQuestion,
    ProductSums,
    Scan,
    SquareSums,
    Statistic,
    TableQuestion,
    Where,
    grid_for,
    kind_of,
    names,
    rows_per_unit,
)
from tacit.engines.sql._dialect import STORED, numbered
from tacit.engines.sql._relations import (
    ON_GRID,
    QuestionWriter,
    SqlWriter,
    check_lengths,
    limited_tables,
    relation_sql,
)
from tacit.engines.sql._statistics import (
    arguments_of,
    cell_index_sql,
    over_rows,
    per_pair,
    present_sql,
    quantity_sql,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.algebra import Node
    from tacit.engines.sql._dialect import Dialect, Part, StoredType


def by_size_sql(dialect: Dialect, groups: str, keys: Sequence[Part], part: GroupsBySize) -> str:
    """Write the large groups one by one, and how many others have which size, in one pass over all groups.

    ``groups`` returns the key and the size of each group. A small group has no key in the inner lines, so all
    of one size and one cell fall together.
    """
    names = [name for name, _ in keys]
    large = ", ".join(f"CASE WHEN n >= {part.threshold} THEN {k} END AS x{k}" for k in names)
    cell = f"CASE WHEN n < {part.threshold} THEN {dialect.cell(keys, part.digits)} END AS b"
    columns = ", ".join([*(f"x{k}" for k in names), "n", "b"])
    lines = f"SELECT {large}, n, {cell} FROM ({groups}) AS g({', '.join([*names, 'n'])})"
    return f"SELECT {columns}, count(*) FROM ({lines}) t GROUP BY {columns}"


def at_ranks_sql(dialect: Dialect, groups: str, keys: Sequence[Part], part: GroupsAtRanks) -> str:
    """Write the small groups at the ranks of ``tacit_ranks``; cells without a rank are dropped before.

    Groups differ in their keys, so the order has no ties.
    """
    key_parts = [(f"g{i}", stored) for i, (_, stored) in enumerate(keys)]
    names = [name for name, _ in key_parts]
    columns = ", ".join(names)
    cells = (
        f"SELECT {columns}, {dialect.to_double('n')} AS k0, {dialect.cell(key_parts, part.digits)} AS k1 "
        f"FROM ({groups}) AS g({columns}, n) WHERE n < {part.threshold}"
    )
    rank = dialect.to_double(numbered(["k0", "k1"], dialect.order(names)))
    within = dialect.semi(cells, "tacit_ranks", ["k0", "k1"], missing=False)
    ranked = (
        f"SELECT {columns}, k0, k1, {rank} AS k2, count(*) OVER (PARTITION BY k0, k1) AS c FROM ({within}) t"
    )
    joined = dialect.semi(ranked, "tacit_ranks", ["k0", "k1", "k2"], missing=False)
    return f"SELECT {columns}, k0, k1, k2, c FROM ({joined}) t"


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL text and the statistics whose integers its columns hold, after the group's key columns.

    ``limited`` names the tables that it reads under a row limit.
    """

    sql: str
    statistics: tuple[Statistic, ...]
    limited: frozenset[tuple[str, int]] = frozenset()


def statements(
    writer: SqlWriter, question: TableQuestion, statistics: tuple[Statistic, ...]
) -> tuple[Statement, ...]:
    """Write the SQL for all statistics of a question, or for a part of its private groups.

    Bins and distinct values get statements of their own.
    """
    writer = QuestionWriter(writer.dialect, writer.tables)
    if isinstance(question, PartialQuestion) and not isinstance(question.part, ListedGroups):
        return (_part(writer, question, statistics),)
    shared = tuple(s for s in statistics if not isinstance(s, BinCounts | DistinctCounts))
    separate = [s for s in statistics if isinstance(s, BinCounts | DistinctCounts)]
    limited = limited_tables(question.input)
    sql_statements = [Statement(_together(writer, question, shared), shared, limited)] if shared else []
    return (*sql_statements, *(Statement(_apart(writer, question, s), (s,), limited) for s in separate))


def _part(writer: QuestionWriter, question: PartialQuestion, statistics: tuple[Statistic, ...]) -> Statement:
    """Write a part of the groups, for statistics that are summed together."""
    sql, keys = _together(writer, question, statistics), _keys(question)
    match question.part:
        case FewGroups(most):
            sql = f"{sql} LIMIT {most + 1}"
        case GroupsBySize():
            sql = by_size_sql(writer.dialect, sql, keys, question.part)
        case GroupsAtRanks():
            sql = at_ranks_sql(writer.dialect, sql, keys, question.part)
    return Statement(sql, statistics, limited_tables(question.input))


def public_values_sql(
    writer: SqlWriter, table: str, value: Node, most: int, where: Node | None, aggregate: str | None
) -> str:
    """Write the different values of an expression over a public table, or one aggregate of them."""
    types = writer.tables.get(table, {})
    if isinstance(value, Column) and value.kind is None:
        sql = writer.dialect.quote(value.name)
    else:
        sql = writer.expression(value, types)
    if aggregate is not None:
        sql = writer.dialect.public_aggregate(aggregate, sql)
    condition = "" if where is None else f" WHERE {writer.expression(where, types)}"
    lines = f"SELECT {sql} AS v FROM {writer.dialect.quote(table)}{condition}"
    return f"SELECT DISTINCT v FROM ({lines}) WHERE v IS NOT NULL LIMIT {most}"


def _stored(question: TableQuestion, statistic: Statistic) -> str | None:
    """Name the column that holds a statistic's values on their grid already, if there is one."""
    node = question.input
    while isinstance(node, Where):
        node = node.input
    argument = statistic.argument
    if not isinstance(node, Scan) or not isinstance(argument, Column) or statistic.grid is None:
        return None
    if isinstance(statistic, ProductSums):
        return None  # both columns are read
    bits = 16 if isinstance(statistic, SquareSums) else 30
    fact = node.table.facts.get(argument.name)
    if fact is None or fact.bounds is None or fact.auto or grid_for(fact.bounds, bits) != statistic.grid:
        return None
    return ON_GRID[bits] + argument.name


def _rows(
    writer: QuestionWriter,
    question: TableQuestion,
    arguments: tuple[Node, ...],
    stored: frozenset[str] = frozenset(),
) -> str:
    """Write the rows of a question: owner, group key columns k0.., arguments v0.. ."""
    dialect = writer.dialect
    keys = [e for _, e in question.by]
    columns = frozenset().union(*(names(e) for e in (*keys, *arguments)))
    check_lengths(writer, question.input, (*keys, *arguments))
    below = relation_sql(writer, question.input, columns | stored)
    if question.sample is not None:
        below = f"SELECT * FROM ({below}) WHERE {dialect.in_sample(question.sample)}"
    key_columns = [
        dialect.key(writer.over(question.input, e), kind_of(e) or "text", missing=question.groups_missing)
        for e in keys
    ]
    columns_sql = "".join(f", {key} AS k{i}" for i, key in enumerate(key_columns))
    columns_sql += "".join(f", {dialect.quote(c)}" for c in sorted(stored))
    columns_sql += "".join(f", {writer.over(question.input, e)} AS v{i}" for i, e in enumerate(arguments))
    return f"SELECT tacit_u{columns_sql} FROM ({below})"


def _names(question: TableQuestion) -> list[str]:
    """Name the columns that hold a group's key."""
    return [f"k{i}" for i in range(len(question.by))]


def _keys(question: TableQuestion) -> list[Part]:
    """Return the columns that hold a group's key, with their types; a date is text."""
    kinds = (kind_of(e) for _, e in question.by)
    types: list[StoredType] = ["text" if kind in {"date", None} else STORED[kind] for kind in kinds]
    return list(zip(_names(question), types, strict=True))


def _with_declared_keys(writer: QuestionWriter, question: TableQuestion, rows: str) -> str:
    """Drop rows whose group is not one of the answer's, so that they use up no limit."""
    if not question.by:
        return rows
    if question.keys is not None:
        return _among_keys(writer, question, rows)
    if question.missing:
        return rows
    present = " AND ".join(
        f"NOT {writer.dialect.is_missing(k)}" if kind_of(e) == "number" else f"{k} IS NOT NULL"
        for k, (_, e) in zip(_names(question), question.by, strict=True)
    )
    return f"SELECT * FROM ({rows}) WHERE {present}"


def _among_keys(writer: QuestionWriter, question: TableQuestion, lines: str) -> str:
    """Keep the lines whose key is public."""
    return writer.dialect.semi(lines, "tacit_keys", _names(question), missing=question.groups_missing)


def _listed(writer: QuestionWriter, question: TableQuestion, lines: str) -> str:
    """Keep the lines of private groups that are to be shown, if only these are asked for."""
    is_listed = isinstance(question, PartialQuestion) and isinstance(question.part, ListedGroups)
    return _among_keys(writer, question, lines) if is_listed else lines


def _apart(writer: QuestionWriter, question: TableQuestion, statistic: BinCounts | DistinctCounts) -> str:
    """Count distinct values or cells, in a statement of its own.

    A unit's rows beyond the limit per group are dropped, in the keyed order.
    """
    dialect, argument = writer.dialect, statistic.argument
    distinct = isinstance(statistic, DistinctCounts)
    ks = _names(question)
    rows = _with_declared_keys(writer, question, _rows(writer, question, (argument,)))
    value = (
        cell_index_sql(writer, "v0", statistic)
        if isinstance(statistic, BinCounts)
        else dialect.distinct_text(present_sql(dialect, "v0", argument), STORED[kind_of(argument) or "text"])
    )
    columns = ["tacit_u", *ks, "c"]
    rows = f"SELECT {', '.join(columns[:-1])}, {value} AS c FROM ({rows})"
    if question.groups is not None and ks:
        rows = dialect.first_groups(
            rows, columns, _keys(question), question.groups, missing=question.groups_missing
        )
    rows = _listed(writer, question, rows)
    if distinct and question.per_group is not None:
        rows = f"SELECT DISTINCT * FROM ({rows})"
    if question.per_group is not None:
        twins = dialect.twins(f"SELECT * FROM ({rows}) WHERE c IS NOT NULL", columns, "o")
        parts: list[Part] = [*_keys(question), ("c", "text" if distinct else "whole"), ("o", "whole")]
        order = f"{dialect.ranked(parts)}, {dialect.order(['c', 'o'])}"
        rows = dialect.first_rows(twins, columns, ["tacit_u", *ks], order, question.per_group)
    if distinct:
        return f"SELECT {''.join(k + ', ' for k in ks)}count(DISTINCT c) FROM ({rows})" + _group_by(ks)
    return f"SELECT {''.join(k + ', ' for k in ks)}c, count(*) FROM ({rows}) WHERE c IS NOT NULL" + _group_by(
        [*ks, "c"]
    )


def _group_by(columns: list[str]) -> str:
    return f" GROUP BY {', '.join(columns)}" if columns else ""


def _together(writer: QuestionWriter, question: TableQuestion, statistics: tuple[Statistic, ...]) -> str:
    """Sum counts, sums and moments.

    Straight over rows where only the rows of a unit are limited, else per unit first.
    """
    stored_columns = [_stored(question, s) for s in statistics]
    expressions = [
        e
        for s, column in zip(statistics, stored_columns, strict=True)
        if column is None
        for e in arguments_of(s)
    ]
    arguments = tuple(dict.fromkeys(expressions))
    value = {e: f"v{i}" for i, e in enumerate(arguments)}
    ks = _names(question)
    rows = _rows(writer, question, arguments, frozenset(c for c in stored_columns if c is not None))
    straight = (question.groups is None or not ks) and question.per_group is None
    if not straight or question.keys is None:
        rows = _with_declared_keys(writer, question, rows)
    quantities = "".join(
        f", {quantity_sql(writer, s, column, value)} AS q{i}"
        for i, (s, column) in enumerate(zip(statistics, stored_columns, strict=True))
        if arguments_of(s)
    )
    rows = f"SELECT {', '.join(['tacit_u', *ks])}{quantities} FROM ({rows})"
    if question.groups is None:
        rows = _listed(writer, question, rows)
    if not straight:
        return _over_units(writer, question, statistics, rows)
    summed = (column for i, s in enumerate(statistics) for column in over_rows(writer.dialect, s, f"q{i}"))
    answer = f"SELECT {', '.join([*ks, *summed])} FROM ({rows})" + _group_by(ks)
    if question.keys is None or not ks:
        return answer
    return _among_keys(writer, question, answer)


def _over_units(
    writer: QuestionWriter, question: TableQuestion, statistics: tuple[Statistic, ...], rows: str
) -> str:
    """Aggregate per unit and group, limit the unit's groups, clip or scale, and sum over units."""
    ks, dialect = _names(question), writer.dialect
    limit = rows_per_unit(question.input)
    columns_sql = [
        per_pair(dialect, s, (f"q{i}", f"s{i}"), question.per_group, limit) for i, s in enumerate(statistics)
    ]
    groups = ", ".join(["tacit_u", *ks])
    if question.groups is not None and ks:
        rows = dialect.gathered(rows)
    inner = [f"{sql} AS {name}" for columns, _ in columns_sql for name, sql in columns]
    pairs = f"SELECT {', '.join([groups, *inner])} FROM ({rows}) GROUP BY {groups}"
    if question.groups is not None and ks:
        columns = ["tacit_u", *ks, *(name for columns, _ in columns_sql for name, _ in columns)]
        pairs = dialect.first_pairs(pairs, columns, _keys(question), question.groups)
        pairs = _listed(writer, question, pairs)
    outer = [column for _, columns in columns_sql for column in columns]
    return f"SELECT {', '.join([*ks, *outer])} FROM ({pairs})" + _group_by(ks)
