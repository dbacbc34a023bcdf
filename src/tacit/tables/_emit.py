"""Emit a table question as SQL that returns bounded exact integers, and nothing else.

The text is a function of the question and of public facts. It reads views that the engine lays over its
sources (``"visits"`` with the owner of each row in ``tacit_u``, and ``"visits first 10"``, in the keyed
order a unit's first ten rows), small public tables (``tacit_keys``) and the function ``tacit_key()``, the
secret that orders a unit's groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.tables._algebra import Scan, TableQuestion, Where
from tacit.tables._cut_shares import CutSums
from tacit.tables._emit_expressions import ON_GRID, expression_sql, number, quantised, quote
from tacit.tables._emit_relations import limited_tables, ranked, relation_sql
from tacit.tables._expressions import Column, Node, lit, names
from tacit.tables._kinds import kind_of
from tacit.tables._products import ProductSums
from tacit.tables._sampling import in_sample
from tacit.tables._scores import ScoreSums
from tacit.tables._statistics import (
    BinCounts,
    DistinctCounts,
    EdgeBins,
    EvenBins,
    ListedBins,
    MomentSums,
    RowCounts,
    SquareSums,
    Statistic,
    Sums,
    UnitCounts,
    UnitsWith,
    ValueBins,
    grid_for,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Statement", "statements"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL text and the statistics whose integers its columns hold, after the group's key columns.

    ``limited`` names the tables that it reads under a row limit.
    """

    sql: str
    statistics: tuple[Statistic, ...]
    limited: frozenset[tuple[str, int]] = frozenset()


def statements(question: TableQuestion, statistics: tuple[Statistic, ...]) -> tuple[Statement, ...]:
    """Write the SQL for all statistics of a question.

    Bins and distinct values get statements of their own.
    """
    together = tuple(s for s in statistics if not isinstance(s, BinCounts | DistinctCounts))
    alone = [s for s in statistics if isinstance(s, BinCounts | DistinctCounts)]
    limited = limited_tables(question.input)
    made = [Statement(_together(question, together), together, limited)] if together else []
    return (*made, *(Statement(_alone(question, s), (s,), limited) for s in alone))


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


def _rows(question: TableQuestion, arguments: tuple[Node, ...], stored: frozenset[str] = frozenset()) -> str:
    """Write the rows of a question: owner, group key columns k0.., arguments v0.. ."""
    keys = [e for _, e in question.by]
    read = frozenset().union(*(names(e) for e in (*keys, *arguments)))
    below = relation_sql(question.input, read | stored)
    if question.sample is not None:
        below = f"SELECT * FROM ({below}) WHERE {in_sample(question.sample)}"
    made = "".join(f", {_key(e, missing=question.groups_missing)} AS k{i}" for i, e in enumerate(keys))
    made += "".join(f", {quote(c)}" for c in sorted(stored))
    made += "".join(f", {expression_sql(e)} AS v{i}" for i, e in enumerate(arguments))
    return f"SELECT tacit_u{made} FROM ({below})"


def _key(node: Node, *, missing: bool) -> str:
    """Write a group's key: 0 and -0 are one group, a date is written as text, NaN is a missing value."""
    value = expression_sql(node)
    if kind_of(node) == "date":
        return f"CAST({value} AS VARCHAR)"
    if kind_of(node) == "number" and missing:
        return f"(CASE WHEN NOT isnan({value}) THEN {value} + 0e0 END)"
    return f"({value} + 0e0)" if kind_of(node) == "number" else value


def _known(question: TableQuestion, rows: str) -> str:
    """Drop rows whose group is not one of the answer's, so that they use up no limit."""
    if not question.by:
        return rows
    if question.keys is not None:
        return _among_keys(question, rows)
    if question.missing:
        return rows
    present = " AND ".join(
        f"k{i} IS NOT NULL" + (f" AND NOT isnan(k{i})" if kind_of(e) == "number" else "")
        for i, (_, e) in enumerate(question.by)
    )
    return f"SELECT * FROM ({rows}) WHERE {present}"


def _among_keys(question: TableQuestion, lines: str) -> str:
    """Keep the lines whose key is public."""
    keys = [f"k{i}" for i in range(len(question.by))]
    return f"SELECT * FROM ({lines}) AS r SEMI JOIN tacit_keys AS s {_equal(question, keys)}"


def _equal(question: TableQuestion, columns: list[str]) -> str:
    """Write how a join compares: a missing value equals a missing value where it can be a group."""
    if not question.groups_missing:
        return f"USING ({', '.join(columns)})"
    return "ON " + " AND ".join(f"r.{c} IS NOT DISTINCT FROM s.{c}" for c in columns)


def _within_groups(question: TableQuestion, rows: str) -> str:
    """Keep each unit's first ``groups`` groups, in the keyed order.

    Only units that exceed the limit are ranked.
    """
    if question.groups is None or not question.by:
        return rows
    ks = ", ".join(f"k{i}" for i in range(len(question.by)))
    texts = ", ".join(f"CAST(k{i} AS VARCHAR)" for i in range(len(question.by)))
    g = question.groups
    pairs = f"SELECT DISTINCT tacit_u, {ks} FROM ({rows})"
    heavy = f"SELECT tacit_u FROM ({pairs}) GROUP BY tacit_u HAVING count(*) > {g}"
    beyond = (
        f"SELECT tacit_u, {ks} FROM ({pairs}) SEMI JOIN ({heavy}) USING (tacit_u) "
        f"QUALIFY row_number() OVER (PARTITION BY tacit_u ORDER BY {ranked(texts)}, {ks}) > {g}"
    )
    equal = _equal(question, ["tacit_u", *(f"k{i}" for i in range(len(question.by)))])
    return f"SELECT * FROM ({rows}) AS r ANTI JOIN ({beyond}) AS s {equal}"


def _alone(question: TableQuestion, statistic: BinCounts | DistinctCounts) -> str:
    """Count distinct values or cells.

    A unit's rows beyond the limit per group are dropped, in the keyed order.
    """
    argument = statistic.argument
    distinct = isinstance(statistic, DistinctCounts)
    ks = [f"k{i}" for i in range(len(question.by))]
    rows = _known(question, _rows(question, (argument,)))
    value = (
        _cell("v0", statistic)
        if isinstance(statistic, BinCounts)
        else (f"CAST({_present('v0', argument)} AS VARCHAR)")
    )
    rows = f"SELECT tacit_u{''.join(', ' + k for k in ks)}, {value} AS c FROM ({rows})"
    rows = _within_groups(question, rows)
    if distinct and question.per_group is not None:
        rows = f"SELECT DISTINCT * FROM ({rows})"
    if question.per_group is not None:
        groups = ", ".join(["tacit_u", *ks])
        texts = "".join(f"CAST({k} AS VARCHAR), " for k in ks)
        twins = (
            f"SELECT *, row_number() OVER (PARTITION BY {groups}, c) AS o FROM ({rows}) WHERE c IS NOT NULL"
        )
        rows = (
            f"SELECT * FROM ({twins}) QUALIFY row_number() OVER "
            f"(PARTITION BY {groups} ORDER BY {ranked(texts + 'c, o')}, c, o) <= {question.per_group}"
        )
    if distinct:
        return f"SELECT {''.join(k + ', ' for k in ks)}count(DISTINCT c) FROM ({rows})" + _group_by(ks)
    return f"SELECT {''.join(k + ', ' for k in ks)}c, count(*) FROM ({rows}) WHERE c IS NOT NULL" + _group_by(
        [*ks, "c"]
    )


def _group_by(columns: list[str]) -> str:
    return f" GROUP BY {', '.join(columns)}" if columns else ""


def _cell(value: str, statistic: BinCounts) -> str:
    """Write the index of the cell a value falls into, NULL outside."""
    match statistic.bins:
        case EdgeBins(ends):
            edges = [number(e) for e in ends]
            whens = " ".join(f"WHEN {value} < {e} THEN {i}" for i, e in enumerate(edges[1:-1]))
            whens += f" WHEN {value} <= {edges[-1]} THEN {len(edges) - 2}"
            return (
                f"(CASE WHEN {value} IS NULL OR isnan({value}) OR {value} < {edges[0]} THEN NULL {whens} END)"
            )
        case ListedBins(_, middles):
            whens = " ".join(f"WHEN {value} < {number(e)} THEN {i}" for i, e in enumerate(middles))
            return f"(CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL {whens} ELSE {len(middles)} END)"
        case EvenBins(first, step, size):
            last = first + step * (size - 1)
            inside = f"least(greatest({value}, {number(first)}), {number(last)})"
            y = f"({inside} - {number(first)}) / {number(step)}"
            at = f"TRY_CAST(floor({y} + 0.5e0) AS INTEGER)"
            return f"(CASE WHEN NOT isnan({value}) THEN least(greatest({at}, 0), {size - 1}) END)"
        case ValueBins(values):
            whens = " ".join(
                f"WHEN {value} = {expression_sql(lit(c))} THEN {i}" for i, c in enumerate(values)
            )
            return f"(CASE {whens} END)"


def _present(value: str, node: Node) -> str:
    """Write the value where there is one; NaN counts as missing."""
    return f"CASE WHEN NOT isnan({value}) THEN {value} END" if kind_of(node) == "number" else value


def _together(question: TableQuestion, statistics: tuple[Statistic, ...]) -> str:
    """Sum counts, sums and moments.

    Straight over rows where only the rows of a unit are limited, else per unit first.
    """
    held = [_stored(question, s) for s in statistics]
    read = [e for s, column in zip(statistics, held, strict=True) if column is None for e in _arguments(s)]
    arguments = tuple(dict.fromkeys(read))
    value = {e: f"v{i}" for i, e in enumerate(arguments)}
    ks = [f"k{i}" for i in range(len(question.by))]
    rows = _rows(question, arguments, frozenset(c for c in held if c is not None))
    straight = (question.groups is None or not ks) and question.per_group is None
    if not straight or question.keys is None:
        rows = _known(question, rows)
    quantities = "".join(
        f", {_quantity(s, column, value)} AS q{i}"
        for i, (s, column) in enumerate(zip(statistics, held, strict=True))
        if _arguments(s)
    )
    rows = f"SELECT {', '.join(['tacit_u', *ks])}{quantities} FROM ({rows})"
    if not straight:
        return _over_units(question, statistics, rows, ks)
    listed = ", ".join(
        [*ks, *(column for i, s in enumerate(statistics) for column in _over_rows(s, f"q{i}"))]
    )
    answer = f"SELECT {listed} FROM ({rows})" + _group_by(ks)
    if question.keys is None or not ks:
        return answer
    return _among_keys(question, answer)


def _arguments(statistic: Statistic) -> tuple[Node, ...]:
    """Return the expressions that a statistic reads."""
    if isinstance(statistic, ProductSums):
        return statistic.argument, statistic.other
    if isinstance(statistic, ScoreSums):
        return statistic.scores
    return () if statistic.argument is None else (statistic.argument,)


def _quantity(statistic: Statistic, column: str | None, value: Mapping[Node, str]) -> str:
    if column is not None:
        return quote(column)
    argument = statistic.argument
    if isinstance(statistic, ScoreSums):
        return f"[{', '.join(quantised(value[score], statistic.grid) for score in statistic.scores)}]"
    if argument is None:
        return "1"
    own = value[argument]
    grid = statistic.grid
    if isinstance(statistic, ProductSums):
        second = quantised(value[statistic.other], statistic.other_grid)
        return statistic.pair_sql(quantised(own, statistic.grid), second)
    return quantised(own, grid) if grid is not None else _present(own, argument)


def _parts(statistic: Statistic, q: str) -> tuple[str, ...]:
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
        case ProductSums() | CutSums():
            return statistic.parts_sql(q)
        case ScoreSums():
            return tuple(f"{q}[{i + 1}]" for i in range(statistic.size))
        case _:
            return ()


def _over_rows(statistic: Statistic, q: str) -> list[str]:
    sums = [f"coalesce(sum({part}), 0)" for part in _parts(statistic, q)]
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


def _over_units(question: TableQuestion, statistics: tuple[Statistic, ...], rows: str, ks: list[str]) -> str:
    """Aggregate per unit and group, limit the unit's groups, clip or scale, and sum over units."""
    made = [_per_pair(s, f"q{i}", f"s{i}", question.per_group) for i, s in enumerate(statistics)]
    groups = ", ".join(["tacit_u", *ks])
    inner = "".join(f", {column}" for columns, _ in made for column in columns)
    pairs = f"SELECT {groups}{inner} FROM ({rows}) GROUP BY {groups}"
    if question.groups is not None and ks:
        order = f"{ranked(', '.join(f'CAST({k} AS VARCHAR)' for k in ks))}, {', '.join(ks)}"
        g = question.groups
        pairs = (
            f"WITH p AS MATERIALIZED ({pairs}), "
            f"heavy AS (SELECT tacit_u FROM p GROUP BY tacit_u HAVING count(*) > {g}) "
            "SELECT * FROM p ANTI JOIN heavy USING (tacit_u) "
            "UNION ALL SELECT * FROM p SEMI JOIN heavy USING (tacit_u) "
            f"QUALIFY row_number() OVER (PARTITION BY tacit_u ORDER BY {order}) <= {g}"
        )
    outer = [column for _, columns in made for column in columns]
    return f"SELECT {', '.join([*ks, *outer])} FROM ({pairs})" + _group_by(ks)


def _per_pair(statistic: Statistic, q: str, name: str, limit: int | None) -> tuple[list[str], list[str]]:
    """Write what is summed for one unit in one group, and how it is bounded and summed over units."""
    n, parts = f"{name}n", _parts(statistic, q)
    inner = [f"coalesce(sum({part}), 0) AS {name}p{i}" for i, part in enumerate(parts)]
    sums = [f"{name}p{i}" for i in range(len(parts))]
    number_of = f"{n}" if limit is None else f"least({n}, {limit})"
    match statistic:
        case UnitCounts():
            return [], ["count(*)"]
        case UnitsWith():
            return [f"count({q}) AS {n}"], [f"coalesce(sum(CASE WHEN {n} > 0 THEN 1 ELSE 0 END), 0)"]
        case RowCounts(argument):
            counted = "count(*)" if argument is None else f"count({q})"
            return [f"{counted} AS {n}"], [f"coalesce(sum({number_of}), 0)"]
        case Sums(grid=grid) | ScoreSums(grid=grid) if limit is not None:
            low, high = limit * min(grid.lo, 0), limit * max(grid.hi, 0)
            return inner, [f"coalesce(sum(least(greatest({x}, {low}), {high})), 0)" for x in sums]
        case CutSums() if limit is not None:
            highest = zip(sums, statistic.most(limit), strict=True)
            return inner, [f"coalesce(sum(least({x}, {high})), 0)" for x, high in highest]
        case Sums() | ScoreSums() | CutSums():
            return inner, [f"coalesce(sum({x}), 0)" for x in sums]
        case _:
            if limit is not None:
                sums = [
                    f"CASE WHEN {n} > {limit} THEN ({x} * {limit}) // greatest({n}, 1) ELSE {x} END"
                    for x in sums
                ]
            return [f"count({q}) AS {n}", *inner], [f"coalesce(sum({x}), 0)" for x in (number_of, *sums)]
