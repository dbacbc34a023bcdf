"""The engine of a dataset without data: it knows columns and types and writes SQL, and it reads nothing.

Guarantee: no source is opened. What a plan needs (columns, types, the SQL, the values of small public tables)
follows from what the engine is made with, and a draw is refused before its charge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from tacit.algebra import Column
from tacit.engines.duckdb._dialect import DUCKDB
from tacit.engines.sql._relations import SqlWriter
from tacit.engines.sql._statements import statements
from tacit.errors import TacitError
from tacit.fixes import Declare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.algebra import Node, Statistic, TableQuestion
    from tacit.core import Kind
    from tacit.engines._values import TypeFamily, UniqueColumns
    from tacit.engines.sql._dialect import Dialect, StoredType

#: The dialects by name, and the rooms that write them.
DIALECTS = {
    "duckdb": "",
    "postgresql": "tacit.engines.postgres",
    "spark": "tacit.engines.spark",
}


def dialect_named(name: str, settings: Mapping[str, str]) -> Dialect:
    """Return a dialect by its name, with the settings that it returned (`Dialect.settings`).

    Examples
    --------
    >>> dialect_named("duckdb", {}).name
    'duckdb'
    """
    if name == DUCKDB.name:
        dialect: Dialect = DUCKDB
    else:
        dialect = import_module(DIALECTS[name]).dialect(**settings)
    if dict(dialect.settings()) != dict(settings):
        raise ValueError("these are not the settings of this dialect")
    return dialect


@dataclass(frozen=True, slots=True)
class DeclaredColumns:
    """What is public about the columns of one table.

    Parameters
    ----------
    columns
        The columns by name, each with the type that keeps it from being read; None if they are not known.
    stored
        The declared types of the columns.
    types
        The types that the dialect needs; empty if it needs none.
    values
        Of a public table: the different values of a column, by its name and the kind as which it is read; a
        column that is not in it has too many. None for a protected table.
    """

    columns: Mapping[str, str] | None
    stored: Mapping[str, TypeFamily] = field(default_factory=dict)
    types: Mapping[str, StoredType | None] = field(default_factory=dict)
    values: Mapping[tuple[str, Kind | None], Sequence[object]] | None = None


class DeclaredTables:
    """The engine of tables of which only public facts are known here.

    Parameters
    ----------
    tables
        What is public about each table.
    dialect
        The SQL of the engine where the data is.
    """

    def __init__(self, tables: Mapping[str, DeclaredColumns], dialect: Dialect) -> None:
        self._tables = dict(tables)
        self._writer = SqlWriter(dialect, {name: one.types for name, one in tables.items() if one.types})

    def columns(self, table: str) -> Mapping[str, str] | None:
        """Return the columns of a table, or None where they are not known."""
        return self._tables[table].columns

    def stored_as(self, table: str) -> Mapping[str, TypeFamily]:
        """Return the declared types of a table's columns."""
        return self._tables[table].stored

    def unique(self, table: str) -> UniqueColumns:
        """Return nothing: what is unique stands in the public facts of the table."""
        del table
        return ()

    def missing_file(self, table: str) -> str:
        """Return nothing: there is no file here."""
        del table
        return ""

    def public_values(
        self, table: str, value: Node, most: int, *, where: Node | None = None, aggregate: str | None = None
    ) -> list[object] | None:
        """Return the different values of a column of a public table, or None if they are not known here.

        Only whole columns are known. A protected table is refused.
        """
        values = self._tables[table].values
        if values is None:
            raise TacitError(
                "not-allowed",
                f"the table {table!r} is protected",
                why="only a public table can be read without a charge",
                fix=Declare("public", ("hospitals.csv", "hospital"), column="hospitals"),
            )
        if not isinstance(value, Column) or where is not None or aggregate is not None:
            return None
        listed_values = values.get((value.name, value.kind))
        return None if listed_values is None else list(listed_values)[:most]

    def writer(self) -> SqlWriter:
        """Return the writer of the SQL."""
        return self._writer

    def sql(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> tuple[str, ...]:
        """Write the statements that would run where the data is."""
        return tuple(one.sql for one in statements(self._writer, question, statistics))

    def check(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> None:
        """Refuse every draw: there is no data here."""
        del question, statistics
        self.transaction()

    def prepare(self) -> None:
        """Do nothing: there is no data here."""

    def transaction(self) -> NoReturn:
        """Refuse to read."""
        raise TacitError(
            "unknown-table",
            "this dataset was opened from its public facts, without its data, so nothing was charged",
            why="plans can be made here, but they can be released only where the data is",
            fix="send the plan's document to the place that has the data",
        )

    def close(self) -> None:
        """Do nothing: nothing was opened."""
