"""The relations of a table in PostgreSQL: its rows with their owners, and the first rows of every owner.

A statement starts with them, as common table expressions that the server merges into it: a role needs no
right to create anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tacit.engines.postgres._types import owner_sql, value_sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.engines._dialect import Dialect, Part, StoredType
    from tacit.engines.postgres._types import StoredColumn


def key_text(key: int) -> str:
    """Write the secret that orders a unit's rows, as the first part of what is hashed.

    Examples
    --------
    >>> key_text(12345)
    '12345|,'
    """
    return f"{key}|,"


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as statements read it.

    Parameters
    ----------
    dialect
        The SQL of the server.
    within
        Schema and name of the table.
    columns
        Its columns.
    unit
        The columns that name the owner; none where each row stands for itself. None for a public table.
    grids
        Further columns by name: the column whose values they hold on a public grid, and the SQL of the grid
        over its value.
    """

    dialect: Dialect
    within: tuple[str, str]
    columns: tuple[StoredColumn, ...]
    unit: tuple[str, ...] | None
    grids: Mapping[str, str] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, StoredType | None]:
        """The types of the view's columns; text where a column is never read, and missing everywhere."""
        return {column.name: column.stored or "text" for column in self.columns}

    @property
    def names(self) -> list[str]:
        """The view's columns, quoted: the owner, the columns, the values on their grids."""
        quote = self.dialect.quote
        return ["tacit_u", *(quote(c.name) for c in self.columns), *(quote(g) for g in self.grids)]

    @property
    def rows(self) -> str:
        """The rows with their owners; those without an owner are dropped."""
        quote = self.dialect.quote
        listed = [f"{value_sql(c, self.dialect)} AS {quote(c.name)}" for c in self.columns]
        place = ".".join(map(quote, self.within))
        named = {column.name: column for column in self.columns}
        if self.unit:
            owner = owner_sql([named[c] for c in self.unit], self.dialect)
            rows = (
                f"SELECT {', '.join([f'{owner} AS tacit_u', *listed])} FROM {place} WHERE {owner} IS NOT NULL"
            )
        else:
            rows = f"SELECT {', '.join(['0::bigint AS tacit_u', *listed])} FROM {place}"
        if not self.grids:
            return rows
        made = ", ".join(f"{sql} AS {quote(name)}" for name, sql in self.grids.items())
        return f"SELECT *, {made} FROM ({rows}) t"

    def ranked(self, table: str) -> str:
        """Write all rows with their rank among the rows of their owner.

        Rows are ordered by a keyed hash of the owner and all values, then by the values themselves. Rows that
        are equal in every value are interchangeable: whichever of them comes first, the same multiset is
        kept.
        """
        rank = f"row_number() OVER (PARTITION BY tacit_u ORDER BY {self._order('{}')})"
        return f"SELECT {', '.join(self.names)}, {rank} AS tacit_r FROM {table}"

    def _order(self, hashed: str) -> str:
        """Write the order of an owner's rows, with the hash put into ``hashed``."""
        quote = self.dialect.quote
        parts: list[Part] = [(quote(c.name), c.stored or "text") for c in self.columns]
        one = self.unit[0] if self.unit is not None and len(self.unit) == 1 else None
        values = [quote(c.name) for c in self.columns if c.stored and (c.name, c.stored) != (one, "whole")]
        first = hashed.replace("{}", self.dialect.ranked(parts))
        return ", ".join([first, *([self.dialect.order(values)] if values else [])])

    def first(self, table: str, rows: int) -> str:
        """Write each unit's first rows. The hash is computed for units that have more rows than that."""
        names = ", ".join(self.names)
        counted = f"SELECT {names}, count(*) OVER (PARTITION BY tacit_u) AS tacit_c FROM {table}"
        order = self._order(f"CASE WHEN tacit_c > {rows} THEN {{}} END")
        rank = f"row_number() OVER (PARTITION BY tacit_u ORDER BY {order})"
        ranked = f"SELECT {names}, {rank} AS tacit_r FROM ({counted}) t"
        return f"SELECT {names} FROM ({ranked}) t WHERE tacit_r <= {rows}"

    def snapshot_columns(self) -> Sequence[str]:
        """Return the definitions of the columns of a snapshot: those of the view, and the rank."""
        types = {
            "whole": "bigint", "float": "float8", "digits": "numeric", "boolean": "boolean",
            "text": 'text COLLATE "C"', "moment": "timestamp",
        }  # fmt: skip
        quote = self.dialect.quote
        unit = self.unit or ()
        whole = not unit or (len(unit) == 1 and self.types[unit[0]] == "whole")
        owner = "bigint" if whole else types["text"]
        return [
            f"tacit_u {owner}",
            *(f"{quote(name)} {types[stored or 'text']}" for name, stored in self.types.items()),
            *(f"{quote(name)} bigint" for name in self.grids),
            "tacit_r bigint",
        ]
