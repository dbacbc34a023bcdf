"""Write a table question as SQL that returns bounded exact integers, and nothing else.

The text is a function of the question and of public facts. It reads views that the engine lays over its
sources (``"visits"`` with the owner of each row in ``tacit_u``, and ``"visits first 10"``, in the keyed
order a unit's first ten rows) and small public tables (``tacit_keys``). The secret that orders a unit's
rows and groups is not in the text.

The products of several values of a row travel as one value: a whole number or a list. A whole number holds
few values: a product of grids beyond 64 bits would make the statement fail at large values alone, which
reveals them. Many values travel as a list.

Groups whose keys are private are written in parts: the first few, all by size, or some by rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from tacit.algebra import (
    BinCounts,
    Column,
    CutSums,
    DistinctCounts,
    EdgeBins,
    EvenBins,
    FewGroups,
    GroupsAtRanks,
    GroupsBySize,
    ListedBins,
    ListedGroups,
    MomentProducts,
    MomentSums,
    PartialQuestion,
    PartProducts,
    ProductSums,
    RowCounts,
    Scan,
    ScoreSums,
    SquareSums,
    Statistic,
    Sums,
    TableQuestion,
    UnitCounts,
    UnitsWith,
    ValueBins,
    Where,
    grid_for,
    kind_of,
    lit,
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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.algebra import Node, ValueGrid
    from tacit.engines.sql._dialect import Dialect, Part, StoredType


def packed_values(values: list[tuple[str, ValueGrid]]) -> str:
    """Write values, on their grids, as one whole number; NULL where one of them is missing."""
    if prod(grid.width + 1 for _, grid in values) >= 2**62:
        raise ValueError("the values do not fit into one whole number")
    (product_sql, grid), *more = values
    packed = f"({product_sql} - ({grid.lo}))"
    for value, value_grid in more:
        packed = f"({packed} * {value_grid.width + 1} + ({value} - ({value_grid.lo})))"
    return packed


def listed_values(dialect: Dialect, values: list[tuple[str, ValueGrid]]) -> str:
    """Write values, on their grids, as one list; NULL where one of them is missing."""
    values_sql = [f"({value} - ({grid.lo}))" for value, grid in values]
    missing = " OR ".join(f"{one} IS NULL" for one in values_sql)
    return f"CASE WHEN {missing} THEN NULL ELSE {dialect.vector(values_sql)} END"


def _unpacked(dialect: Dialect, grids: tuple[ValueGrid, ...], packed: str) -> list[str]:
    """Write each value in [0, W], from the whole number that holds all of them."""
    values: list[str] = []
    below = 1
    for index, grid in reversed(list(enumerate(grids))):
        y = packed if below == 1 else dialect.whole_div(packed, str(below))
        values.insert(0, dialect.remainder(y, str(grid.width + 1)) if index else y)
        below *= grid.width + 1
    return values


def part_products(
    dialect: Dialect, grids: tuple[ValueGrid, ...], shape: tuple[int, ...], packed: str
) -> tuple[str, ...]:
    """Write all but the first of the products of parts."""
    parts: list[tuple[str, ...]] = [
        (f"(1 - {y})", y) if number == 2 else _three(y, grid.width)
        for y, grid, number in zip(_unpacked(dialect, grids, packed), grids, shape, strict=True)
    ]
    return tuple(" * ".join(chosen) for chosen in product(*parts))[1:]


def pair_products(dialect: Dialect, statistic: MomentProducts, vector: str) -> tuple[str, ...]:
    """Write all but the first of the products of every two variables."""
    each = [dialect.element(vector, i) for i in range(len(statistic.grids))]
    values = zip(each, statistic.grids, statistic.factors, strict=True)
    d = [str(statistic.one), *(f"({s} * (2 * {y} - {grid.width}))" for y, grid, s in values)]
    return tuple(f"{d[a]} * {d[b]}" for a, b in statistic.pairs)[1:]


def _three(y: str, width: int) -> tuple[str, str, str]:
    """Write the three parts of a value in [0, W]."""
    rest = f"({width} - {y})"
    return f"{rest} * {rest}", f"2 * {y} * {rest}", f"{y} * {y}"


def arguments_of(statistic: Statistic) -> tuple[Node, ...]:
    """Return the expressions that a statistic reads."""
    if isinstance(statistic, ProductSums):
        return statistic.argument, statistic.other
    if isinstance(statistic, ScoreSums):
        return statistic.scores
    if isinstance(statistic, PartProducts | MomentProducts):
        return statistic.values
    return () if statistic.argument is None else (statistic.argument,)


def quantity_sql(
    writer: SqlWriter, statistic: Statistic, column: str | None, value: Mapping[Node, str]
) -> str:
    """Write what a row has of a statistic: its column on the grid if there is one, or from its arguments."""
    if column is not None:
        return writer.dialect.quote(column)
    argument = statistic.argument
    if isinstance(statistic, ScoreSums):
        scores = [writer.quantised(value[score], statistic.grid) for score in statistic.scores]
        return writer.dialect.vector(scores)
    if isinstance(statistic, PartProducts | MomentProducts):
        columns = zip(statistic.values, statistic.grids, strict=True)
        quantised = [(writer.quantised(value[e], g), g) for e, g in columns]
        return (
            packed_values(quantised)
            if isinstance(statistic, PartProducts)
            else listed_values(writer.dialect, quantised)
        )
    if argument is None:
        return "1"
    sql = value[argument]
    grid = statistic.grid
    if isinstance(statistic, ProductSums):
        quantity = writer.quantised(sql, statistic.grid)
        second = writer.quantised(value[statistic.other], statistic.other_grid)
        return packed_values([(quantity, statistic.grid), (second, statistic.other_grid)])
    return writer.quantised(sql, grid) if grid is not None else present_sql(writer.dialect, sql, argument)


def present_sql(dialect: Dialect, value: str, node: Node) -> str:
    """Write the value where there is one; NaN counts as missing."""
    return dialect.present(value) if kind_of(node) == "number" else value


def cell_index_sql(writer: SqlWriter, value: str, statistic: BinCounts) -> str:
    """Write the index of the cell a value falls into, NULL outside."""
    number = writer.dialect.number
    missing = writer.dialect.is_missing(value)
    match statistic.bins:
        case EdgeBins(ends):
            edges = [number(e) for e in ends]
            whens = " ".join(f"WHEN {value} < {e} THEN {i}" for i, e in enumerate(edges[1:-1]))
            whens += f" WHEN {value} <= {edges[-1]} THEN {len(edges) - 2}"
            return f"(CASE WHEN {missing} OR {value} < {edges[0]} THEN NULL {whens} END)"
        case ListedBins(_, middles):
            whens = " ".join(f"WHEN {value} < {number(e)} THEN {i}" for i, e in enumerate(middles))
            return f"(CASE WHEN {missing} THEN NULL {whens} ELSE {len(middles)} END)"
        case EvenBins(first, step, size):
            return writer.dialect.even_cell(value, first, first + step * (size - 1), step, size)
        case ValueBins(values):
            whens = " ".join(
                f"WHEN {value} = {writer.expression(lit(c), {})} THEN {i}" for i, c in enumerate(values)
            )
            return f"(CASE {whens} END)"


def over_rows(dialect: Dialect, statistic: Statistic, q: str) -> list[str]:
    """Write the sums of a statistic straight over the rows of a group."""
    sums = [dialect.total(part) for part in _parts(dialect, statistic, q)]
    match statistic:
        case RowCounts(argument):
            return ["count(*)" if argument is None else f"count({q})"]
        case UnitCounts():
            return ["count(DISTINCT tacit_u)"]
        case UnitsWith():
            return [f"count(DISTINCT CASE WHEN {q} IS NOT NULL THEN tacit_u END)"]
        case Sums() | ScoreSums() | CutSums():
            return sums
        case _:
            return [f"count({q})", *sums]


def per_pair(
    dialect: Dialect, statistic: Statistic, pair: tuple[str, str], limit: int | None, rows: int | None
) -> tuple[list[tuple[str, str]], list[str]]:
    """Write what is summed for one unit in one group, and how it is bounded and summed over units.

    ``rows`` bounds the rows of one unit, if something does.
    """
    q, name = pair
    n, parts = f"{name}n", _parts(dialect, statistic, q)
    # the values of a pair may be scaled by the limit
    limit_of_pair = None if rows is None else rows * statistic.weight * (limit or 1)
    inner = [(f"{name}p{i}", dialect.total(part, limit_of_pair)) for i, part in enumerate(parts)]
    sums = [column for column, _ in inner]
    number_of = f"{n}" if limit is None else f"least({n}, {limit})"
    match statistic:
        case UnitCounts():
            return [], ["count(*)"]
        case UnitsWith():
            return [(n, f"count({q})")], [dialect.total(f"CASE WHEN {n} > 0 THEN 1 ELSE 0 END")]
        case RowCounts(argument):
            count = "count(*)" if argument is None else f"count({q})"
            return [(n, count)], [dialect.total(number_of)]
        case Sums(grid=grid) | ScoreSums(grid=grid) if limit is not None:
            low, high = limit * min(grid.lo, 0), limit * max(grid.hi, 0)
            return inner, [dialect.total(f"least(greatest({x}, {low}), {high})") for x in sums]
        case CutSums() if limit is not None:
            highest = zip(sums, statistic.most(limit), strict=True)
            return inner, [dialect.total(f"least({x}, {high})") for x, high in highest]
        case Sums() | ScoreSums() | CutSums():
            return inner, [dialect.total(x) for x in sums]
        case _:
            if limit is not None:
                sums = [
                    f"CASE WHEN {n} > {limit} THEN "
                    f"{dialect.whole_div(f'({x} * {limit})', f'greatest({n}, 1)')} ELSE {x} END"
                    for x in sums
                ]
            return [(n, f"count({q})"), *inner], [dialect.total(x) for x in (number_of, *sums)]


def _parts(dialect: Dialect, statistic: Statistic, q: str) -> tuple[str, ...]:
    """Write what is summed beside the count.

    The value, or all but the first of the non-negative parts of W or W^2.
    """
    match statistic:
        case Sums():
            return (q,)
        case SquareSums(_, grid):
            y = f"({q} - ({grid.lo}))"
            return f"2 * {y} * ({grid.width} - {y})", f"{y} * {y}"
        case MomentSums(_, grid):
            return (f"({q} - ({grid.lo}))",)
        case ProductSums():
            return part_products(dialect, (statistic.grid, statistic.other_grid), (3, 3), q)
        case PartProducts(_, grids):
            return part_products(dialect, grids, statistic.shape, q)
        case MomentProducts():
            return pair_products(dialect, statistic, q)
        case CutSums():
            return f"least({q}, {statistic.limit})", f"greatest({q} - {statistic.limit}, 0)"
        case ScoreSums():
            return tuple(dialect.element(q, i) for i in range(statistic.size))
        case _:
            return ()


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
    return (*sql_statements, *(Statement(_alone(writer, question, s), (s,), limited) for s in separate))


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
    if fact is None or fact.bounds is None or grid_for(fact.bounds, bits) != statistic.grid:
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


def _alone(writer: QuestionWriter, question: TableQuestion, statistic: BinCounts | DistinctCounts) -> str:
    """Count distinct values or cells.

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
