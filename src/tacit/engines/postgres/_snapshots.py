"""Temporary tables that hold a table's rows with their ranks: later questions do not sort them again.

A transaction that only reads may not create a table, but it may fill a temporary one. So a snapshot is
created empty before the transaction and filled within it, with the rows that the transaction sees. A later
transaction uses it only if it sees the same versions of the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.engines.postgres._sessions import Session
    from tacit.engines.postgres._tables import FoundTable
    from tacit.engines.postgres._views import TableView

_MAY_KEEP = """SELECT has_database_privilege(current_database(), 'TEMP') AND NOT pg_is_in_recovery()
AND current_setting('default_transaction_read_only') = 'off'"""
_MOMENT = "SELECT pg_current_snapshot()::text"
#: The versions of all rows that a transaction sees: place and writing transaction name a version of a row.
_VERSION = "hashtidextended(ctid, xmin::text::bigint + (tableoid::bigint << 32))"
_STAMP = f"SELECT count(*), bit_xor({_VERSION})::text FROM {{}}"
#: What can change the values of a row without a new version of it: its columns (a new one may have a value
#: for every row), and the labels of enumerations.
_SHAPE = """WITH RECURSIVE below(relid) AS (SELECT $1::oid
UNION SELECT inhrelid FROM pg_inherits JOIN below ON inhparent = relid)
SELECT (SELECT md5(string_agg(concat_ws(' ', attrelid, attnum, a.xmin), ',' ORDER BY attrelid, attnum))
FROM below JOIN pg_attribute a ON attrelid = relid WHERE attnum > 0),
(SELECT md5(string_agg(concat_ws(' ', oid, enumlabel), ',' ORDER BY oid)) FROM pg_enum)"""


@dataclass(slots=True)
class _Snapshot:
    """A temporary table: of which view, whether it is filled, and what the transaction that filled it saw."""

    table: str
    view: TableView
    filled: bool = False
    stamp: tuple[object, ...] = ()
    moment: str = ""


class Snapshots:
    """The snapshots of one session.

    Parameters
    ----------
    after
        After how many questions about a table to make one; None: never.
    """

    def __init__(self, after: int | None) -> None:
        self._after = after
        self._asked: dict[str, int] = {}
        self._made: dict[str, _Snapshot] = {}
        self._number = 0
        self._useless: list[str] = []
        self._may_keep: bool | None = None
        self._current: set[str] = set()

    def prepare(self, session: Session, views: Mapping[str, TableView]) -> None:
        """Create what the coming transaction may fill, and drop what earlier ones gave up."""
        import psycopg

        self._current.clear()
        if self._after is None:
            return
        if self._may_keep is None:
            [(self._may_keep,)] = session.execute(_MAY_KEEP).fetchall()
        while self._useless:
            session.execute(f"DROP TABLE IF EXISTS {self._useless.pop()}")
        for name, view in views.items():
            self._asked[name] = self._asked.get(name, 0) + 1
            if name not in self._made and self._may_keep and self._asked[name] > self._after:
                self._number += 1
                table = f"pg_temp.tacit_snapshot_{self._number}"
                try:
                    session.execute(f"CREATE TEMPORARY TABLE {table} ({', '.join(view.snapshot_columns())})")
                except psycopg.Error:  # such as a trigger of the administrators that allows no tables
                    self._may_keep = False
                else:
                    self._made[name] = _Snapshot(table, view)

    def fill(self, session: Session, name: str, view: TableView, found: FoundTable, key: str) -> None:
        """Fill a snapshot within a transaction, or give up one that shows other rows than the transaction.

        Only after that may the transaction use it.
        """
        made = self._made.get(name)
        if made is None or name in self._current:
            return
        if made.view != view or not found.whole:  # a role that may read some columns sees no versions of rows
            self.forget(name)
            return
        [(moment,)] = session.execute(_MOMENT).fetchall()
        if made.filled and made.moment == moment:
            self._current.add(name)
            return
        quote = view.dialect.quote
        [rows] = session.execute(_STAMP.format(".".join(map(quote, found.within)))).fetchall()
        [shape] = session.execute(_SHAPE, (found.oid,)).fetchall()
        stamp = (*rows, *shape)
        if not made.filled:
            if not _filled(session, made, view, key):
                self._may_keep = False
                self.forget(name)
                return
            made.filled, made.stamp = True, stamp
        elif made.stamp != stamp:
            self.forget(name)
            return
        made.moment = str(moment)
        self._current.add(name)

    def table(self, name: str) -> str | None:
        """Return the temporary table that the current transaction may read instead of a table, if any."""
        return self._made[name].table if name in self._current else None

    def forget(self, name: str) -> None:
        """Give up a snapshot."""
        self._current.discard(name)
        made = self._made.pop(name, None)
        if made is not None:
            self._useless.append(made.table)

    def forget_all(self) -> None:
        """Forget the snapshots of a session that has ended."""
        self._made.clear()
        self._current.clear()
        self._useless.clear()
        self._may_keep = None


def _filled(session: Session, made: _Snapshot, view: TableView, key: str) -> bool:
    """Fill a temporary table; return whether there was room for it. The transaction goes on either way."""
    import psycopg

    source = 'WITH tacit_key AS NOT MATERIALIZED (SELECT $1::text COLLATE "C" AS k0)'
    session.execute("SAVEPOINT tacit_fill")
    try:
        session.execute(f"{source} INSERT INTO {made.table} {view.ranked(f'({view.rows}) t')}", (key,))
    except psycopg.OperationalError:
        session.execute("ROLLBACK TO SAVEPOINT tacit_fill")
        return False
    session.execute("RELEASE SAVEPOINT tacit_fill")
    return True
