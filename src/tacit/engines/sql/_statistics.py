"""Write the statistics of a table question as SQL: what a row adds, and how it is summed and bounded.

The products of several values of a row travel as one value: a whole number or a list. A whole number holds
few values: a product of grids beyond 64 bits would make the statement fail at large values alone, which
reveals them. Many values travel as a list.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

from tacit.algebra import (
    BinCounts,
    CutSums,
    EdgeBins,
    EvenBins,
    FoundCandidates,
    FoundCells,
    ListedBins,
    MomentProducts,
    MomentSums,
    OctaveBins,
    PartBins,
    PartProducts,
    ProductSums,
    RowCounts,
    ScoreSums,
    SquareSums,
    Statistic,
    Sums,
    UnitCounts,
    UnitsWith,
    ValueBins,
    kind_of,
    lit,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.algebra import Node, ValueGrid
    from tacit.engines.sql._dialect import Dialect
    from tacit.engines.sql._relations import SqlWriter


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
        case OctaveBins():
            return (
                f"(CASE WHEN {missing} THEN NULL ELSE {_octave(writer, value, statistic.bins.cuts, 0)} END)"
            )
        case PartBins(ends):
            edges = [number(e) for e in ends]
            whens = " ".join(f"WHEN {value} <= {e} THEN {i}" for i, e in enumerate(edges[1:]))
            return f"(CASE WHEN {missing} OR {value} <= {edges[0]} THEN NULL {whens} END)"
        case FoundCells() | FoundCandidates():
            raise ValueError("these cells have no ends yet")


def _octave(writer: SqlWriter, value: str, cuts: tuple[float, ...], first: int) -> str:
    """Write how many of the rising cuts are smaller than a value, by halving; ``first`` are so already."""
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    below = _octave(writer, value, cuts[:middle], first)
    above = _octave(writer, value, cuts[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {value} <= {writer.dialect.number(cuts[middle])} THEN {below} ELSE {above} END"


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
