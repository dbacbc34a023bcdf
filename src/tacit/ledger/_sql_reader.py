"""The ledger's SQL reader: the queries that the SQLite and PostgreSQL stores share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.ledger._chain import START
from tacit.ledger._rows import AccountRow, BlockRow, EntryRow, ReleaseRow, RunRow, Tip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENTRY = "SELECT seq, kind, account, levels, spend, plan, idem, body, mac FROM ledger_entries"
_ACCOUNT = "SELECT id, name, parent, facts, state, seq, seal FROM ledger_accounts"
_RELEASE = "SELECT receipt, part, root, version, plan, payload, artifact, seq FROM ledger_releases"
_BLOCK = "SELECT account, block, state, seq, seal FROM ledger_blocks"


class SqlReader:
    """Read from a store with SQL; ``query`` runs one statement and returns an iterator over its rows."""

    def __init__(self, query: Callable[[str, tuple[object, ...]], Iterator[tuple[object, ...]]]) -> None:
        self._query = query

    def tip(self) -> Tip:
        """Return the log's end."""
        return self.end()[0]

    def end(self) -> tuple[Tip, str]:
        """Return the log's end and the body of the last entry."""
        row = next(
            self._query("SELECT seq, mac, body FROM ledger_entries ORDER BY seq DESC LIMIT 1", ()), None
        )
        return (Tip(0, START), "") if row is None else (Tip(row[0], row[1]), str(row[2]))  # type: ignore[arg-type]

    def account_named(self, name: str) -> AccountRow | None:
        """Find an account by its name."""
        return next(self._accounts("WHERE name = ?", name), None)

    def account(self, id_: int) -> AccountRow | None:
        """Find an account by its number."""
        return next(self._accounts("WHERE id = ?", id_), None)

    def accounts(self) -> list[AccountRow]:
        """Return all accounts in the order in which they were opened."""
        return list(self._accounts("ORDER BY id"))

    def names_after(self, id_: int) -> list[tuple[int, str]]:
        """Return number and name of every account that was opened after this one, in order."""
        rows = self._query("SELECT id, name FROM ledger_accounts WHERE id > ? ORDER BY id", (id_,))
        return [(int(str(number)), str(name)) for number, name in rows]

    def openings(self, after: int, last: int) -> list[EntryRow]:
        """Return the entries after one number, up to another, that opened an account."""
        return list(self._entries("WHERE seq > ? AND seq <= ? AND kind = 'open' ORDER BY seq", after, last))

    def _accounts(self, rest: str, *values: object) -> Iterator[AccountRow]:
        return (AccountRow(*row) for row in self._query(f"{_ACCOUNT} {rest}", values))  # type: ignore[arg-type]

    def entry(self, number: int) -> EntryRow | None:
        """Find an entry by its number."""
        return next(self._entries("WHERE seq = ?", number), None)

    def entry_with_key(self, key: str) -> EntryRow | None:
        """Find the entry that carries a key."""
        return next(self._entries("WHERE idem = ? AND idem <> ''", key), None)

    def entries_of_plan(self, plan: str) -> list[EntryRow]:
        """Return the entries that name a plan."""
        return list(self._entries("WHERE plan = ? AND plan <> '' ORDER BY seq", plan))

    def entries_between(self, after: int, last: int, account: int, most: int) -> list[EntryRow]:
        """Return entries after one number up to another, of one account if it is not 0, at most ``most``."""
        where = "WHERE seq > ? AND seq <= ?"
        values: list[object] = [after, last]
        if account:
            where += " AND (account = ? OR ',' || levels || ',' LIKE ?)"
            values += [account, f"%,{account},%"]
        return list(self._entries(f"{where} ORDER BY seq LIMIT ?", *values, most))

    def entries(self) -> Iterator[EntryRow]:
        """Return the whole log in order."""
        return self._entries("ORDER BY seq")

    def _entries(self, rest: str, *values: object) -> Iterator[EntryRow]:
        return (EntryRow(*row) for row in self._query(f"{_ENTRY} {rest}", values))  # type: ignore[arg-type]

    def release_of_plan(self, root: int, version: int, plan: str) -> ReleaseRow | None:
        """Find the stored release of a plan."""
        where = "WHERE root = ? AND version = ? AND plan = ? AND plan <> '' AND part = 0"
        return next(self._releases(where, root, version, plan), None)

    def release_of_receipt(self, receipt: int, part: int = 0) -> ReleaseRow | None:
        """Find the stored release of a receipt, or one instalment of a run."""
        return next(self._releases("WHERE receipt = ? AND part = ?", receipt, part), None)

    def releases(self) -> Iterator[ReleaseRow]:
        """Return all stored releases."""
        return self._releases("ORDER BY receipt, part")

    def _releases(self, rest: str, *values: object) -> Iterator[ReleaseRow]:
        return (ReleaseRow(*row) for row in self._query(f"{_RELEASE} {rest}", values))  # type: ignore[arg-type]

    def block(self, account: int, name: str) -> BlockRow | None:
        """Find a block of an account's partition."""
        return next(self._blocks("WHERE account = ? AND block = ?", account, name), None)

    def blocks(self, account: int) -> Iterator[BlockRow]:
        """Return the blocks of an account's partition that were charged; 0 stands for all accounts."""
        if not account:
            return self._blocks("ORDER BY account, block")
        return self._blocks("WHERE account = ? ORDER BY block", account)

    def _blocks(self, rest: str, *values: object) -> Iterator[BlockRow]:
        return (BlockRow(*row) for row in self._query(f"{_BLOCK} {rest}", values))  # type: ignore[arg-type]

    def bodies_with(self, account: int, text: str, after: int, last: int) -> Iterator[str]:
        """Return the bodies of some entries that charged an account and contain a text."""
        sql = (
            "SELECT body FROM ledger_entries WHERE seq > ? AND seq <= ? AND ',' || levels || ',' LIKE ? "
            "AND body LIKE ? ESCAPE '!'"
        )
        for special in "!%_":
            text = text.replace(special, "!" + special)
        rows = self._query(sql, (after, last, f"%,{account},%", f"%{text}%"))
        return (str(body) for (body,) in rows)

    def runs_with_secrets(self) -> list[int]:
        """Return the numbers of the runs whose secret is stored."""
        rows = self._query("SELECT receipt FROM ledger_runs ORDER BY receipt", ())
        return [int(str(receipt)) for (receipt,) in rows]

    def run_secret(self, receipt: int) -> RunRow | None:
        """Find the secret of a run."""
        rows = self._query("SELECT receipt, secret FROM ledger_runs WHERE receipt = ?", (receipt,))
        return next((RunRow(*row) for row in rows), None)  # type: ignore[arg-type]

    def changed_since(self, account: int, after: int, last: int) -> bool:
        """Whether an entry after one number, up to another, changed an account."""
        sql = (
            "SELECT 1 FROM ledger_entries WHERE seq > ? AND seq <= ? AND kind NOT IN ('claim', 'release') "
            "AND (account = ? OR ',' || levels || ',' LIKE ?) LIMIT 1"
        )
        return next(self._query(sql, (after, last, account, f"%,{account},%")), None) is not None

    def check(self) -> list[str]:
        """Return what the store itself finds wrong; a store that can check its pages overrides this."""
        return []
