"""What a store must do for the ledger, and the queries that the two SQL stores share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from tacit.ledger.chain import START, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

__all__ = ["VERSION", "AccountRow", "Begun", "Meta", "Reader", "ReleaseRow", "SqlReader", "Store", "Tip"]

#: Version of the stored form; a store of a later one is refused.
VERSION = 1

_ROW = "seq, kind, account, levels, spend, plan, idem, body, mac"


class Tip(NamedTuple):
    """The last entry's number and hash."""

    seq: int
    mac: bytes


class AccountRow(NamedTuple):
    """One account: who it is, and its filter's state after the last entry that charged it."""

    id: int
    name: str
    parent: int
    facts: str
    state: str


class ReleaseRow(NamedTuple):
    """One stored release; ``seq`` is the log entry that holds the payload's digest."""

    receipt: int
    root: int
    version: int
    plan: str
    payload: bytes
    seq: int


class Meta(NamedTuple):
    """The ledger's identity: a random name, and the fingerprint of the key it was made with."""

    ledger: str
    fingerprint: str


class Begun(NamedTuple):
    """What a transaction starts from: the log's end, the entries that carry an asked key, the seal."""

    tip: Tip
    known: dict[str, Row]
    sealed: str | None


class Reader(Protocol):
    """Look things up: inside a transaction what it will build on, outside it what is committed."""

    def tip(self) -> Tip:
        """Return the log's end."""

    def account_named(self, name: str) -> AccountRow | None:
        """Find an account by name."""

    def account(self, id_: int) -> AccountRow | None:
        """Find an account by number."""

    def accounts(self) -> list[AccountRow]:
        """Return all accounts in the order they were opened."""

    def row(self, seq: int) -> Row | None:
        """Return one entry."""

    def row_of_key(self, key: str) -> Row | None:
        """Return the entry that carries a key."""

    def rows_of_plan(self, plan: str) -> list[Row]:
        """Return the entries that name a plan."""

    def rows_of_accounts(self, ids: Sequence[int]) -> Iterator[Row]:
        """Return the entries that were made in the name of one of the accounts."""

    def rows(self) -> Iterator[Row]:
        """Return the whole log in order."""

    def release_of_plan(self, root: int, version: int, plan: str) -> ReleaseRow | None:
        """Find the stored release of a plan."""

    def release_of_receipt(self, receipt: int) -> ReleaseRow | None:
        """Find the stored release of a receipt."""

    def releases(self) -> Iterator[ReleaseRow]:
        """Return all stored releases."""

    def check(self) -> list[str]:
        """Return what the store itself finds wrong with its pages and indexes."""


class Store(Protocol):
    """A durable place for one ledger. One writer at a time; `commit` returns only when the change is durable.

    A refusal leaves the store as it was. Every failure is a `TacitError`.
    """

    name: str

    def meta(self) -> Meta | None:
        """Return the ledger's identity, or None where nothing was ever stored."""

    def create(self, meta: Meta) -> Meta:
        """Lay the store out, unless another process just did; return the identity that holds."""

    def begin(self, keys: Sequence[str], guess: Tip | None, attempt: int) -> Begun:
        """Return what the transaction starts from.

        A store that locks takes its lock here. One that compares at the end may start from ``guess``, where
        the caller believes the log to end, without looking.
        """

    def inside(self) -> Reader:
        """Look things up inside the transaction."""

    def commit(
        self,
        begun: Begun,
        keys: Sequence[str],
        rows: Sequence[Row],
        accounts: Sequence[AccountRow],
        releases: Sequence[ReleaseRow],
    ) -> bool:
        """Write everything and return True when it is durable.

        False, and nothing is written, if the log does not end where the transaction began or has one of the
        keys that it did not know of: whatever was decided is to be decided again.
        """

    def rollback(self) -> None:
        """Leave the transaction without a trace; never raises."""

    def reading(self) -> AbstractContextManager[Reader]:
        """Look committed things up; short, shared by the threads."""

    def snapshot(self) -> AbstractContextManager[Reader]:
        """Look committed things up as of one moment, for as long as it takes."""

    def sealed(self) -> str | None:
        """Return why the store is sealed, or None."""

    def seal(self, why: str) -> None:
        """Mark the store as not to be written again; best effort, never raises."""

    def unseal(self) -> None:
        """Take the mark away."""

    def close(self) -> None:
        """Let go of everything."""

    def abandon(self) -> None:
        """Forget connections that belong to the parent process, without touching them."""


class SqlReader:
    """The lookups in SQL; ``query`` runs one statement and returns an iterator over its rows."""

    def __init__(self, query: Callable[[str, tuple[object, ...]], Iterator[tuple[object, ...]]]) -> None:
        self._query = query

    def tip(self) -> Tip:
        """Return the log's end."""
        row = next(self._query("SELECT seq, mac FROM ledger_entries ORDER BY seq DESC LIMIT 1", ()), None)
        return Tip(0, START) if row is None else Tip(*row)  # type: ignore[arg-type]

    def account_named(self, name: str) -> AccountRow | None:
        """Find an account by name."""
        return self._account("name", name)

    def account(self, id_: int) -> AccountRow | None:
        """Find an account by number."""
        return self._account("id", id_)

    def _account(self, column: str, value: object) -> AccountRow | None:
        sql = f"SELECT id, name, parent, facts, state FROM ledger_accounts WHERE {column} = ?"  # noqa: S608
        row = next(self._query(sql, (value,)), None)
        return None if row is None else AccountRow(*row)  # type: ignore[arg-type]

    def accounts(self) -> list[AccountRow]:
        """Return all accounts in the order they were opened."""
        sql = "SELECT id, name, parent, facts, state FROM ledger_accounts ORDER BY id"
        return [AccountRow(*row) for row in self._query(sql, ())]  # type: ignore[arg-type]

    def row(self, seq: int) -> Row | None:
        """Return one entry."""
        row = next(self._query(f"SELECT {_ROW} FROM ledger_entries WHERE seq = ?", (seq,)), None)  # noqa: S608
        return None if row is None else Row(*row)  # type: ignore[arg-type]

    def row_of_key(self, key: str) -> Row | None:
        """Return the entry that carries a key."""
        sql = f"SELECT {_ROW} FROM ledger_entries WHERE idem = ? AND idem <> ''"  # noqa: S608
        row = next(self._query(sql, (key,)), None)
        return None if row is None else Row(*row)  # type: ignore[arg-type]

    def rows_of_plan(self, plan: str) -> list[Row]:
        """Return the entries that name a plan."""
        sql = f"SELECT {_ROW} FROM ledger_entries WHERE plan = ? AND plan <> '' ORDER BY seq"  # noqa: S608
        return [Row(*row) for row in self._query(sql, (plan,))]  # type: ignore[arg-type]

    def rows_of_accounts(self, ids: Sequence[int]) -> Iterator[Row]:
        """Return the entries that were made in the name of one of the accounts."""
        marks = ", ".join("?" * len(ids))
        sql = f"SELECT {_ROW} FROM ledger_entries WHERE account IN ({marks}) ORDER BY seq"  # noqa: S608
        return (Row(*row) for row in self._query(sql, tuple(ids)))  # type: ignore[arg-type]

    def rows(self) -> Iterator[Row]:
        """Return the whole log in order."""
        return (Row(*row) for row in self._query(f"SELECT {_ROW} FROM ledger_entries ORDER BY seq", ()))  # type: ignore[arg-type]  # noqa: S608

    def release_of_plan(self, root: int, version: int, plan: str) -> ReleaseRow | None:
        """Find the stored release of a plan."""
        where = "root = ? AND version = ? AND plan = ? AND plan <> ''"
        return next(self._releases(f"WHERE {where}", (root, version, plan)), None)

    def release_of_receipt(self, receipt: int) -> ReleaseRow | None:
        """Find the stored release of a receipt."""
        return next(self._releases("WHERE receipt = ?", (receipt,)), None)

    def releases(self) -> Iterator[ReleaseRow]:
        """Return all stored releases."""
        return self._releases("ORDER BY receipt", ())

    def _releases(self, rest: str, values: tuple[object, ...]) -> Iterator[ReleaseRow]:
        sql = f"SELECT receipt, root, version, plan, payload, seq FROM ledger_releases {rest}"  # noqa: S608
        return (ReleaseRow(*row) for row in self._query(sql, values))  # type: ignore[arg-type]

    def check(self) -> list[str]:
        """Return what the store itself finds wrong; each store overrides it where it can tell."""
        return []
