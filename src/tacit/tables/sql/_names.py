"""Names in a table's SQL question: the tables in reach, and the columns that its FROM clause offers.

Some columns name a unit; whether a column of a relation still does is known here too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tacit.algebra import (
    Column,
    JoinPublic,
    JoinUnits,
    PerUnit,
    Project,
    Relation,
    Scan,
    Where,
    choose_name,
    scope,
)
from tacit.engines import quote
from tacit.errors import TacitError
from tacit.fixes import Choose

if TYPE_CHECKING:
    from sqlglot import exp

    from tacit.algebra import Node
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._rows import Rows


#: Turns a column as written (table alias or "", name) into the column of the relation.
ColumnFinder: TypeAlias = Callable[[str, str], str]
#: Reads a part of an expression.
PartReader: TypeAlias = Callable[["exp.Expr"], "Node"]


def sql_name(name: str) -> str:
    """Write a name as SQL does: in double quotes if it is not a plain word.

    Examples
    --------
    >>> sql_name("stay"), sql_name("Patient ID")
    ('stay', '"Patient ID"')
    """
    return name if name.isascii() and name.isidentifier() else quote(name)


@dataclass(frozen=True, slots=True)
class TablesInReach:
    """The tables that a SELECT can use: those of the dataset, and the WITH clauses before it."""

    dataset: TableDataset
    named: dict[str, Rows] = field(default_factory=dict)

    def rows(self, name: str) -> Rows:
        """Return the rows of a WITH clause or a protected table."""
        for declared, rows in self.named.items():
            if declared.lower() == name.lower():
                return rows
        for declared, table in self.dataset.tables.items():
            if declared.lower() == name.lower() and table.key is None:
                return self.dataset[declared]
        main = self.dataset.main
        unnamed = main == self.dataset.name == "data"
        public = any(declared.lower() == name.lower() for declared in self.dataset.tables)
        tables = (*self.named, *(n for n, table in self.dataset.tables.items() if table.key is None))
        meant = choose_name(name, tuple(map(sql_name, tables)))
        raise TacitError(
            "unknown-table",
            f"there is no protected table {name!r}" + (", only a public one" if public else ""),
            why="the dataset was declared without a name, so its table is called data"
            if unnamed
            else "a question is asked of a protected table; public tables can be joined to it",
            fix=f"FROM {meant.close if meant.close and name.isidentifier() else sql_name(main)}",
        )

    def public_table(self, name: str) -> str | None:
        """Return the declared name of a public table that no WITH clause hides."""
        if any(known.lower() == name.lower() for known in self.named):
            return None
        tables = self.dataset.tables.items()
        return next((n for n, t in tables if n.lower() == name.lower() and t.key is not None), None)


_FILES = frozenset({"csv", "tsv", "txt", "parquet", "json", "arrow", "feather", "xlsx", "duckdb", "db"})


def declared_name(table: exp.Table, reach: TablesInReach) -> str | None:
    """Return the name under which a written table is declared; None where a file or a schema is not known.

    ``telemetry.crashes`` is the table declared with that name, or the table ``crashes`` of a dataset that is
    called ``telemetry``. ``covid.csv`` is the table declared as ``covid``: a question reads no files.
    """
    from sqlglot import exp

    if not isinstance(table.this, exp.Identifier):
        return None
    parts = [*(str(table.args[p].name) for p in ("catalog", "db") if table.args.get(p)), table.name]
    full = ".".join(parts)
    declared = {name.lower(): name for name in (*reach.dataset.tables, *reach.named)}
    if full.lower() in declared:
        return declared[full.lower()]
    stem, _, end = full.rpartition(".")
    if end.lower() in _FILES and stem.lower() in declared:
        return declared[stem.lower()]
    if len(parts) == 1:
        return full
    owner = reach.dataset.identity.name.lower()
    return declared.get(end.lower()) if stem.lower() in {owner, f"{owner}.main"} else None


@dataclass(frozen=True, slots=True)
class FromClause:
    """The rows of a FROM clause, and where its columns are found.

    Parameters
    ----------
    rows
        The rows, joins included.
    columns
        The column of the rows, by table alias and name in lower case.
    aliases
        The table aliases in lower case.
    names
        The columns that an expression over the rows can use.
    is_open
        Whether there may be other columns, because the source is not available.
    """

    rows: Rows
    columns: dict[tuple[str, str], str]
    aliases: frozenset[str]
    names: frozenset[str]
    is_open: bool

    @classmethod
    def of(cls, rows: Rows, alias: str) -> FromClause:
        """Offer the columns of one table under its alias."""
        facts = scope(rows.relation)
        columns = {(alias.lower(), c.lower()): c for c in facts}
        return cls(rows, columns, frozenset({alias.lower()}), frozenset(facts), facts.open)

    def with_table(self, rows: Rows, columns: dict[tuple[str, str], str], alias: str) -> FromClause:
        """Add a joined table."""
        aliases, facts = self.aliases | {alias.lower()}, scope(rows.relation)
        return FromClause(rows, self.columns | columns, aliases, frozenset(facts), facts.open)

    def find(self, table: str, name: str) -> str:
        """Find a column by its written name, ignoring case where that is unique."""
        if table and table.lower() not in self.aliases:
            raise TacitError(
                "unknown-table",
                f"there is no table {table!r} here",
                fix=Choose(tuple(sorted(self.aliases)), given=table),
            )
        column = self.columns.get((table.lower(), name.lower()))
        if column is not None:
            return column
        if table and len(self.aliases) > 1:
            raise TacitError(
                "unknown-column",
                f"the table {table!r} has no column {name!r}",
                fix=Choose(self._columns_of(table), given=name),
            )
        if name in self.names and not self.is_open:
            return name
        close = [c for c in self.names if c.lower() == name.lower()]
        return close[0] if len(close) == 1 else name

    def _columns_of(self, table: str) -> tuple[str, ...]:
        """Return the columns of one table, without the alias that keeps equal names apart."""
        columns = [(name, column) for (alias, name), column in self.columns.items() if alias == table.lower()]
        return tuple(
            column[-len(name) :] if column.lower().endswith(name) else name for name, column in columns
        )


def unit_columns(rows: Rows) -> tuple[str, ...]:
    """Return the columns that name the owner of a row: one, or several together; none for single rows."""
    return rows.unit.columns


def unit_noun(rows: Rows) -> str:
    """Return what one unit is called in a sentence."""
    return rows.unit.noun


def names_whole_unit(rows: Rows, names: list[str]) -> bool:
    """Return whether these columns of the rows name the unit, as its declared columns do.

    A column names the unit as long as it is passed on untouched. A unit of several columns is named by all of
    them together only.
    """
    needed = unit_columns(rows)
    if len(needed) == 1:
        facts = scope(rows.relation)
        return any(name in facts and facts[name].unit for name in names)
    return bool(needed) and all(any(_is(rows.relation, n, column) for n in names) for column in needed)


def unit_column(rows: Rows, name: str) -> str | None:
    """Return the declared column of the unit that a column of the rows is, untouched; None for any other."""
    return next((column for column in unit_columns(rows) if _is(rows.relation, name, column)), None)


def _is(relation: Relation, name: str, column: str) -> bool:
    """Return whether a column of a relation is a declared column, untouched and never missing."""
    match relation:
        case Scan():
            return name == column
        case Where(inner, _):
            return _is(inner, name, column)
        case Project(inner, made) | PerUnit(inner, made, _):
            source = dict(made).get(name)
            return isinstance(source, Column) and _is(inner, source.name, column)
        case JoinPublic(left, _, _, brought, _):
            return name not in dict(brought) and _is(left, name, column)
        case JoinUnits(left, right, how, _):
            if name in scope(left):
                return _is(left, name, column)
            return how == "inner" and _is(right, name, column)
