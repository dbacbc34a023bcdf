"""The tables of a content, as data frames and files: one way for every kind of release.

Texts that people wrote into the data are made safe for a spreadsheet (`tacit.show`: for a screen). What a
person or a spreadsheet opens is changed: the printed table, the notebook, the picture, the CSV file. What a
program reads is not: ``to_dict``, ``to_pandas``, ``to_polars``, ``to_arrow``, ``to_parquet``, JSON.

Data frames need extras, the optional packages. A refusal names the missing one and the command that installs
it.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.fixes import Do, Fix

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tacit.core._answer_table import AnswerTable, Value
    from tacit.core._protocols import JSON


#: The note of a column that never has an interval.
NO_INTERVAL: Final = "no interval"
_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def lacking(subject: str, part: str, fix: Fix | str) -> TacitError:
    """Say that a content lacks what was asked of it, such as a table or a figure.

    Examples
    --------
    >>> lacking("the answer", "numbers to draw", "print it instead").what
    'the answer has no numbers to draw'
    """
    return TacitError("bad-parameter", f"{subject} has no {part}", fix=fix)


def needs(what: str, package: str, install: str) -> None:
    """Refuse, before anything else happens, work that needs a package that is not installed.

    Examples
    --------
    >>> needs("to_parrot", "parrot_of_no_name", "tacit[parrot]")
    Traceback (most recent call last):
    tacit.errors.TacitError: to_parrot needs parrot_of_no_name, which is not installed
      why: the base installation stays small and does not include it
      fix: pip install 'tacit[parrot]'
      code: missing-extra
    """
    if find_spec(package) is None:
        raise TacitError(
            "missing-extra",
            f"{what} needs {package}, which is not installed",
            why="the base installation stays small and does not include it",
            fix=Do("install", package=install),
        )


def for_spreadsheet(value: object) -> object:
    """Return text that a spreadsheet shows and does not compute: an apostrophe stands before a formula.

    Numbers stay, also negative ones.

    Examples
    --------
    >>> for_spreadsheet("=1+1"), for_spreadsheet("ICU"), for_spreadsheet(-1)
    ("'=1+1", 'ICU', -1)
    """
    if not isinstance(value, str):
        return value
    begins = value.startswith(_STARTS) or value.lstrip().startswith(_STARTS)
    return f"'{value}" if begins else value


def write_csv(path: str | Path, text: str, about: Mapping[str, JSON]) -> None:
    """Write a CSV file, and the facts of its release beside it, where the W3C puts the metadata of CSV files.

    A comment line in the file itself would be the first line of data for spreadsheets and most readers.
    """
    Path(path).write_text(text, encoding="utf-8")
    document = {"@context": "http://www.w3.org/ns/csvw", "url": Path(path).name, "tacit": dict(about)}
    beside = json.dumps(document, indent=1, ensure_ascii=False)
    Path(f"{path}-metadata.json").write_text(beside + "\n", encoding="utf-8")


def joined(tables: Iterable[tuple[str, AnswerTable]]) -> AnswerTable | None:
    """Return all tables as one: a column says from which table a line is; None if there is no table.

    Keys are text in it, because a column may have keys of several types; where a table lacks a column, it is
    empty.
    """
    from tacit.core._answer_table import AnswerTable, Cells

    named_tables = list(tables)
    if len(named_tables) <= 1:
        return named_tables[0][1] if named_tables else None
    names = list(dict.fromkeys(key for _, one in named_tables for key in one.keys))
    first_key = "table"
    while first_key in names:
        first_key += "_"
    keys: dict[str, tuple[Value, ...]] = {
        first_key: tuple(caption for caption, one in named_tables for _ in range(len(one)))
    }
    for name in names:
        keys[name] = tuple(
            text
            for _, one in named_tables
            for text in (one.shown_keys(name) if name in one.keys else ("",) * len(one))
        )
    columns = {
        name: Cells(*(_column(named_tables, name, end) for end in ("value", "low", "high")))
        for name in dict.fromkeys(column for _, one in named_tables for column in one.columns)
    }
    left_out = tuple(dict.fromkeys(line for _, one in named_tables for line in one.left_out))
    counts = tuple(name for name in columns if any(name in one.counts for _, one in named_tables))
    return AnswerTable(keys, columns, named_tables[0][1].confidence, left_out=left_out, counts=counts)


def _column(named_tables: Sequence[tuple[str, AnswerTable]], name: str, end: str) -> tuple[Any, ...]:
    """Return one part of a column of all tables; a table without the column has nothing there."""
    return tuple(
        value
        for _, one in named_tables
        for value in (getattr(one.columns[name], end) if name in one.columns else (None,) * len(one))
    )


def plain_table(keys: Mapping[str, Sequence[Any]], columns: Mapping[str, Sequence[Any]]) -> AnswerTable:
    """Return a table of values without intervals.

    Examples
    --------
    >>> plain_table({"layer": ["a", "b"]}, {"numbers": [3, 4]}).to_dict()["numbers"]
    [3, 4]
    """
    from tacit.core._answer_table import AnswerTable, Cells

    cells = {name: Cells(tuple(values), *((None,) * len(values),) * 2) for name, values in columns.items()}
    groups = {name: tuple(values) for name, values in keys.items()}
    return AnswerTable(groups, cells, 0.95, dict.fromkeys(columns, NO_INTERVAL))
