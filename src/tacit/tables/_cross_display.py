"""Cross tables in a terminal, in a notebook and as figures."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.show import Figure, Matrix, visible

if TYPE_CHECKING:
    from tacit.tables._cross_tables import CrossTables, TableName

_LISTED = 40
_MOST = 12  # figures, if none is named


def table_words(names: tuple[str, ...]) -> str:
    """Name a table for people.

    Examples
    --------
    >>> table_words(("age", "sex")), table_words(())
    ('age x sex', 'all rows')
    """
    return " x ".join(visible(name) for name in names) or "all rows"


def _listed(tables: CrossTables) -> list[str]:
    """Say for each table how many cells it has and how far off they may be."""
    lines = []
    for names in list(tables)[:_LISTED]:
        cells = tables.noise.cells(tables.columns_of(names))
        count = "1 cell" if cells == 1 else f"{cells:,} cells"
        lines.append(f"{table_words(names)}: {count}, each +/- {tables.half_width(names):,.4g}")
    more = len(tables) - _LISTED
    return [*lines, *([f"and {more:,} more tables"] if more > 0 else [])]


def how_many(tables: int) -> str:
    """Write a number of cross tables."""
    return "1 cross table" if tables == 1 else f"{tables:,} cross tables"


def _head(tables: CrossTables) -> str:
    return f"{how_many(len(tables))}, +/- at {tables.confidence * 100:g} % for the noise, one cell at a time"


def _caption(tables: CrossTables, marks: tuple[str, ...]) -> list[str]:
    agree = (
        [] if tables.view != "measured" else ["all tables agree: cells add up to the cells of smaller tables"]
    )
    name = next(iter(tables), ())
    given = ", ".join(f'"{one}"' for one in name) + ("," if len(name) == 1 else "")
    return [*agree, f"release.tables[({given})] shows one table", *tables.left_out, *marks]


def cross_text(tables: CrossTables, marks: tuple[str, ...]) -> str:
    """Write the list of tables."""
    return "\n".join([_head(tables), *(f"  {line}" for line in _listed(tables)), *_caption(tables, marks)])


def cross_html(tables: CrossTables, marks: tuple[str, ...]) -> str:
    """Write the list of tables, each of which opens."""
    from html import escape

    items = "".join(f"<li>{escape(line)}</li>" for line in _listed(tables))
    said = "".join(f"<p>{escape(line)}</p>" for line in _caption(tables, marks))
    first = next(iter(tables), None)
    first_html = "" if first is None else tables.answer(first).html()
    shown = (
        ""
        if first is None
        else f"<details><summary>{escape(table_words(first))}</summary>{first_html}</details>"
    )
    return f"<b>{escape(_head(tables))}</b><ul>{items}</ul>{shown}{said}"


def cross_figures(tables: CrossTables, what: TableName | None) -> tuple[Figure, ...]:
    """Return the tables of two columns as matrices, then those of one column; or the table of this name."""
    sets = {
        inner: None
        for size in (2, 1, 0)
        for one in tables
        for inner in combinations(tables.columns_of(one), size)
    }
    if what is not None:
        named = {table_words(tuple(tables.axes[i].name for i in one)): one for one in sets}
        columns = named.get(what) if isinstance(what, str) else None
        return (_figure(tables, list(columns) if columns else tables.columns_of(what)),)
    return tuple(_figure(tables, list(one)) for one in list(sets)[:_MOST] if one or len(sets) == 1)


def _figure(tables: CrossTables, columns: list[int]) -> Figure:
    names = tuple(tables.axes[i].name for i in columns)
    title = table_words(names)
    if len(columns) < 2:
        return replace(tables.answer(names).figures("n")[0], name=title)
    if len(columns) > 2:
        known = tuple(table_words(one) for one in tables if len(one) <= 2)
        raise TacitError(
            "bad-parameter",
            "a picture shows one column, or two",
            fix=Choose(known, given=title) if known else "draw a table of two columns",
        )
    values, wide = tables.values(names), tables.half_width(names)
    down, across = ([_place(one) for one in tables.axes[i].places] for i in columns)
    unclear = np.abs(values) <= wide
    matrix = Matrix(values, tuple(down), tuple(across), names[0], names[1], "rows", unclear, "z,.0f")
    sure = f"each cell +/- {wide:,.4g} at {tables.confidence * 100:g} % for the noise only"
    return Figure(title, (matrix,), (f"{sure}; hatched: not distinguishable from 0",), name=title)


def _place(place: object) -> str:
    return "(missing)" if place is None else f"{place:g}" if isinstance(place, float) else str(place)
