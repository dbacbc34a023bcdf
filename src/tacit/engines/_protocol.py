"""What every engine does. The algebra crosses this seam, never SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from tacit.algebra import Node, Statistic, TableQuestion
    from tacit.engines._sql_expressions import SqlWriter
    from tacit.engines._values import TypeFamily

#: Small public tables that a question reads beside its sources, by name; their columns are k0, k1, ...
SmallTables: TypeAlias = "Mapping[str, Sequence[Sequence[object]]]"
#: The statistics of one statement, and its rows: the group's key, then the integers of each statistic.
StatementRows: TypeAlias = "tuple[tuple[Statistic, ...], list[tuple[object, ...]]]"


class EngineTransaction(Protocol):
    """One consistent reading of an engine's sources, for one plan."""

    def integers(
        self, question: TableQuestion, statistics: tuple[Statistic, ...], tables: SmallTables
    ) -> list[StatementRows]:
        """Compute exact integers for every group. The plan reports every failure as one opaque error."""


class Engine(Protocol):
    """Where exact integers of tables are computed.

    An engine is opened on sources. Outside of a transaction it reads only names and types of columns, and
    public tables.
    """

    def columns(self, table: str) -> Mapping[str, str] | None:
        """Return the columns of a table, or None where its source cannot be reached now.

        Beside each column stands the type that keeps it from being read; it is empty where nothing does.
        """

    def stored_as(self, table: str) -> Mapping[str, TypeFamily]:
        """Return the declared types of a table's columns; empty where types come from the values."""

    def missing_file(self, table: str) -> str:
        """Return the path of a table's file if it does not exist now; empty for every other source."""

    def public_values(
        self, table: str, value: Node, most: int, *, where: Node | None = None, aggregate: str | None = None
    ) -> list[object] | None:
        """Return the different values of an expression over a public table, or None if it is not available.

        A protected table is refused.

        Parameters
        ----------
        table
            The public table.
        value
            The expression; a column without a kind is returned as it is stored.
        most
            Return at most so many values.
        where
            Read only the lines for which this is true.
        aggregate
            ``min``, ``max``, ``avg``, ``sum``, ``count`` or ``median`` of the values instead of all of them.
        """

    def writer(self) -> SqlWriter:
        """Return the writer of the engine's SQL: its dialect and the types of the columns. Reads nothing."""

    def sql(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> tuple[str, ...]:
        """Write the statements that will run. A function of public facts: no row is read."""

    def check(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> None:
        """Let the engine bind the statements before the charge; no row is read."""

    def prepare(self) -> None:
        """Make now what quick answers need, so that no answer's time shows what it cost to make.

        Reads the data, keeps what it makes to the engine, and returns nothing. For a service, which opens a
        version before it takes questions.
        """

    def transaction(self) -> AbstractContextManager[EngineTransaction]:
        """Begin one consistent reading of the sources. Only a paid plan does."""

    def close(self) -> None:
        """Close what the engine opened."""
