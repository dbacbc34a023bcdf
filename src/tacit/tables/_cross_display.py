"""Cross tables in a terminal, in a notebook and as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.core import about_release, visible
from tacit.errors import TacitError
from tacit.fixes import Choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.picture import Picture
    from tacit.tables._cross_tables import CrossTables, PlacedAxis, TableName

_LISTED = 40
_HATCHED = 10_000
_WRITTEN = 400  # cells of a heat map that have room for their number
_BRIGHT = 0.5  # how bright a cell is from which black numbers are read more easily than white ones


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


def plot_cross(
    tables: CrossTables, what: TableName | None, ax: Axes | None, certificate: Certificate
) -> Axes | Picture:
    """Draw one table: with intervals over its places, or as a heat map of two columns."""
    wanted = list(tables)
    table = next((one for one in wanted if len(one) == 2), wanted[0]) if what is None else what
    columns = tables.columns_of(table)
    if len(columns) < 2:
        return tables.answer(table).plot("n", ax, certificate)
    if len(columns) > 2:
        known = tuple(table_words(one) for one in wanted if len(one) <= 2)
        raise TacitError(
            "bad-parameter",
            "a picture shows one column, or two",
            fix=Choose(known, given=table_words(tuple(table))) if known else "draw a table of two columns",
        )
    if ax is None:
        from tacit.picture import Picture

        first, second = (len(tables.axes[i].places) for i in columns)
        picture = Picture(min(4 + 0.5 * second, 14), min(2.5 + 0.35 * first, 14))
        _heat_map(tables, columns, picture.subplots(), certificate)
        return picture
    _heat_map(tables, columns, ax, certificate)
    return ax


def _heat_map(tables: CrossTables, columns: list[int], axes: Axes, certificate: Certificate) -> None:
    """Colour the cells by their counts; those that cannot be told from 0 are hatched."""
    from matplotlib.patches import Rectangle

    down, across = (tables.axes[i] for i in columns)
    names = (down.name, across.name)
    values, wide = tables.values(names), tables.half_width(names)
    drawn = axes.pcolormesh(values, cmap="viridis", vmin=min(0.0, float(values.min())))
    axes.figure.colorbar(drawn, ax=axes, label="rows")
    if values.size <= _HATCHED:
        for i, j in np.argwhere(np.abs(values) <= wide):
            axes.add_patch(Rectangle((j, i), 1, 1, fill=False, hatch="///", edgecolor="grey", linewidth=0))
    if values.size <= _WRITTEN:
        bright = np.asarray(drawn.to_rgba(values))[..., :3] @ np.array([0.299, 0.587, 0.114])
        for (i, j), value in np.ndenumerate(values):
            colour = "black" if bright[i, j] > _BRIGHT else "white"
            axes.text(j + 0.5, i + 0.5, f"{value:.0f}", ha="center", va="center", fontsize=7, color=colour)
    for axis, label, ticks in (
        (down, axes.set_ylabel, axes.set_yticks),
        (across, axes.set_xlabel, axes.set_xticks),
    ):
        label(_plain(axis.name))
        ticks(np.arange(len(axis.places)) + 0.5, _places(axis), fontsize=7)
    axes.tick_params(axis="x", rotation=45)
    axes.invert_yaxis()
    sure = f"each cell +/- {wide:,.4g} at {tables.confidence * 100:g} % for the noise only"
    said = f"{sure}; hatched: not distinguishable from 0"
    axes.set_title(
        _plain(about_release(table_words(names), certificate)) + "\n" + said, fontsize=8, loc="left"
    )


def _places(axis: PlacedAxis) -> list[str]:
    return [
        _plain("(missing)" if one is None else f"{one:g}" if isinstance(one, float) else str(one))
        for one in axis.places
    ]


def _plain(text: str) -> str:
    """Keep names from being read as formulae."""
    return visible(text).replace("$", r"\$")
