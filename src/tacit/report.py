"""A report: one page of facts, with the same content in a terminal, as plain text and in a notebook."""

from __future__ import annotations

import dataclasses
import html
import math
import shutil
import sys
import textwrap
from dataclasses import dataclass, is_dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from tacit.progress import is_terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Report", "ReportTable", "Reportable", "percent", "plain"]

_WIDTH = 100
_NARROWEST = 20  # letters of a column that is wrapped
_CELL = "text-align:left;padding:.15em 1.2em .15em 0"
_TITLE = "caption-side:top;text-align:left;font-weight:600;padding:.6em 0 .2em;white-space:nowrap"


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of text cells: a title, a header for each column, and rows."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self, width: int | None = None) -> str:
        """Return the table as plain text; spaces align the columns, and ``width`` wraps the widest ones."""
        columns = zip(self.header, *self.rows, strict=True)
        widths = [max(len(cell) for cell in column) for column in columns]
        room = math.inf if width is None else width - 2 * (len(widths) - 1)
        while sum(widths) > room and max(widths) > _NARROWEST:
            widths[widths.index(max(widths))] -= 1
        lines = [self.title] if self.title else []
        lines += [line for row in (self.header, *self.rows) for line in _row_lines(row, widths)]
        return "\n".join(lines)

    def html(self) -> str:
        """Return the table as HTML, with every cell escaped."""
        head = "".join(f'<th style="{_CELL}">{html.escape(cell)}</th>' for cell in self.header)
        rows = (
            "<tr>" + "".join(f'<td style="{_CELL}">{html.escape(cell)}</td>' for cell in row) + "</tr>"
            for row in self.rows
        )
        title = f'<caption style="{_TITLE}">{html.escape(self.title)}</caption>' if self.title else ""
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row_lines(row: tuple[str, ...], widths: list[int]) -> list[str]:
    """Return one row as lines; a cell that is wider than its column continues below."""
    cells = [
        [cell] if len(cell) <= width else textwrap.wrap(cell, width)
        for cell, width in zip(row, widths, strict=True)
    ]
    return [
        "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
        for parts in zip_longest(*cells, fillvalue="")
    ]


@dataclass(frozen=True, slots=True)
class Report:
    """A title, introductory sentences, tables, and notes that say what the figures cover."""

    title: str
    lead: tuple[str, ...]
    tables: tuple[ReportTable, ...] = ()
    notes: tuple[str, ...] = ()

    def text(self, width: int | None = None) -> str:
        """Return the report as plain text, with long sentences wrapped; ``width`` also wraps tables."""
        max_width = min(_WIDTH, width or _WIDTH)
        parts = [self.title, "=" * min(len(self.title), max_width)]
        parts += [textwrap.fill(line, max_width) for line in self.lead]
        parts += ["\n" + table.text(width) for table in self.tables]
        parts += ["\n" + textwrap.fill(note, max_width) for note in self.notes]
        return "\n".join(parts)

    def html(self) -> str:
        """Return the report as an HTML fragment for notebooks."""
        lead = "".join(f"<p>{html.escape(line)}</p>" for line in self.lead)
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        tables = "".join(table.html() for table in self.tables)
        return f'<div class="tacit-report"><h4>{html.escape(self.title)}</h4>{lead}{tables}{notes}</div>'

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        parts: list[RenderableType] = [Text(self.title, style="bold")]
        parts += [Text(line) for line in self.lead]
        for table in self.tables:
            rich_table = Table(box=None, header_style="dim", pad_edge=False, title_justify="left")
            for cell in table.header:
                rich_table.add_column(Text(cell), overflow="fold")
            for row in table.rows:
                rich_table.add_row(*(Text(cell) for cell in row))
            parts += [Text(""), *([Text(table.title, style="bold")] if table.title else []), rich_table]
        parts += [Text("\n" + note, style="dim") for note in self.notes]
        return Group(*parts)


class Reportable:
    """A result that shows its `report()` as text, in a rich terminal and in a notebook, and as plain data."""

    __slots__ = ()

    def report(self) -> Report:
        """Return the facts to show."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.report().text(_terminal_width())

    def __repr__(self) -> str:
        return self.report().text(_terminal_width())

    def __rich__(self) -> RenderableType:
        return self.report()

    def _repr_html_(self) -> str:
        return self.report().html()

    def to_dict(self) -> dict[str, object]:
        """Return the figures as plain data, ready for JSON."""
        if not is_dataclass(self):
            raise TypeError(f"{type(self).__name__} is not a dataclass")
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def _terminal_width() -> int | None:
    """Return how many letters fit into a line of the terminal; None where output goes elsewhere."""
    if not is_terminal(sys.stdout):
        return None
    return max(shutil.get_terminal_size().columns, 2 * _NARROWEST)


def percent(share: float, digits: int = 1) -> str:
    """Write a share as a percentage, with the space that people read: 0.95 is "95.0 %".

    Examples
    --------
    >>> percent(0.0714), percent(0.95, 0)
    ('7.1 %', '95 %')
    """
    return f"{100 * share:.{digits}f} %"


def short_percent(share: float, digits: int = 6) -> str:
    """Write a share as a percentage with at most so many digits, and without zeros at its end.

    Examples
    --------
    >>> short_percent(0.95), short_percent(0.0714, 2)
    ('95 %', '7.1 %')
    """
    return f"{100 * share:.{digits}g} %"


def with_article(word: str) -> str:
    """Write a word after "a" or "an".

    Examples
    --------
    >>> with_article("patient"), with_article("id")
    ('a patient', 'an id')
    """
    return f"{'an' if word[:1].lower() in {'a', 'e', 'i', 'o'} else 'a'} {word}"


def plain(value: object) -> object:
    """Convert dataclasses, arrays and tuples to what JSON can hold; infinities and NaN become None.

    An object with its own stored form (`to_json`, as costs and budgets have) keeps that form.
    """
    stored = getattr(value, "to_json", None)
    if callable(stored):
        return plain(stored())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float | Fraction | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    return str(value)
