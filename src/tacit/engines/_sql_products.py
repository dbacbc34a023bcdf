"""Write the products of several values of a row, which travel as one value: a whole number or a list.

A whole number holds few values: a product of grids beyond 64 bits would make the statement fail at large
values alone, which reveals them. Many values travel as a list.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.algebra import MomentProducts, ValueGrid
    from tacit.engines._dialect import Dialect


def packed_values(values: list[tuple[str, ValueGrid]]) -> str:
    """Write values, on their grids, as one whole number; NULL where one of them is missing."""
    if prod(grid.width + 1 for _, grid in values) >= 2**62:
        raise ValueError("the values do not fit into one whole number")
    (first, grid), *more = values
    packed = f"({first} - ({grid.lo}))"
    for value, own in more:
        packed = f"({packed} * {own.width + 1} + ({value} - ({own.lo})))"
    return packed


def listed_values(dialect: Dialect, values: list[tuple[str, ValueGrid]]) -> str:
    """Write values, on their grids, as one list; NULL where one of them is missing."""
    held = [f"({value} - ({grid.lo}))" for value, grid in values]
    missing = " OR ".join(f"{one} IS NULL" for one in held)
    return f"CASE WHEN {missing} THEN NULL ELSE {dialect.vector(held)} END"


def _unpacked(dialect: Dialect, grids: tuple[ValueGrid, ...], packed: str) -> list[str]:
    """Write each value in [0, W], from the whole number that holds all of them."""
    values: list[str] = []
    below = 1
    for place, grid in reversed(list(enumerate(grids))):
        y = packed if below == 1 else dialect.whole_div(packed, str(below))
        values.insert(0, dialect.remainder(y, str(grid.width + 1)) if place else y)
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


def pair_products(dialect: Dialect, statistic: MomentProducts, listed: str) -> tuple[str, ...]:
    """Write all but the first of the products of every two variables."""
    each = [dialect.element(listed, i) for i in range(len(statistic.grids))]
    values = zip(each, statistic.grids, statistic.factors, strict=True)
    d = [str(statistic.one), *(f"({s} * (2 * {y} - {grid.width}))" for y, grid, s in values)]
    return tuple(f"{d[a]} * {d[b]}" for a, b in statistic.pairs)[1:]


def _three(y: str, width: int) -> tuple[str, str, str]:
    """Write the three parts of a value in [0, W]."""
    rest = f"({width} - {y})"
    return f"{rest} * {rest}", f"2 * {y} * {rest}", f"{y} * {y}"
