"""The store of notebooks and trials: it lives and dies with the process, and says so."""

from __future__ import annotations

from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.ledger.chain import START, Row
from tacit.ledger.store import AccountRow, Begun, Meta, ReleaseRow, Tip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["MemoryStore"]


class MemoryStore:
    """Lists and dictionaries behind the same protocol; changes are applied at `commit`, all or nothing."""

    def __init__(self) -> None:
        self.name = ":memory:"
        self._lock = RLock()
        self._meta: Meta | None = None
        self._rows: list[Row] = []
        self._by_key: dict[str, Row] = {}
        self._by_plan: dict[str, list[Row]] = {}
        self._accounts: dict[int, AccountRow] = {}
        self._names: dict[str, int] = {}
        self._releases: dict[int, ReleaseRow] = {}
        self._plans: dict[tuple[int, int, str], int] = {}
        self._sealed: str | None = None

    def meta(self) -> Meta | None:
        """Return the ledger's identity."""
        return self._meta

    def create(self, meta: Meta) -> Meta:
        """Take the identity."""
        self._meta = self._meta or meta
        return self._meta

    def begin(self, keys: Sequence[str], guess: Tip | None, attempt: int) -> Begun:  # noqa: ARG002
        """Start from the present end."""
        with self._lock:
            known = {key: self._by_key[key] for key in keys if key in self._by_key}
            return Begun(self.tip(), known, self._sealed)

    def inside(self) -> MemoryStore:
        """Look things up."""
        return self

    def commit(
        self,
        begun: Begun,  # noqa: ARG002
        keys: Sequence[str],  # noqa: ARG002
        rows: Sequence[Row],
        accounts: Sequence[AccountRow],
        releases: Sequence[ReleaseRow],
    ) -> bool:
        """Apply everything."""
        self._apply(rows, accounts, releases)
        return True

    def _apply(
        self, rows: Sequence[Row], accounts: Sequence[AccountRow], releases: Sequence[ReleaseRow]
    ) -> None:
        with self._lock:
            for row in rows:
                self._rows.append(row)
                if row.key:
                    self._by_key[row.key] = row
                if row.plan:
                    self._by_plan.setdefault(row.plan, []).append(row)
            for account in accounts:
                self._accounts[account.id] = account
                self._names[account.name] = account.id
            for release in releases:
                self._releases[release.receipt] = release
                if release.plan:
                    self._plans[release.root, release.version, release.plan] = release.receipt

    def rollback(self) -> None:
        """Nothing was applied before the commit."""

    @contextmanager
    def reading(self) -> Iterator[MemoryStore]:
        """Look things up while nothing is applied."""
        with self._lock:
            yield self

    @contextmanager
    def snapshot(self) -> Iterator[MemoryStore]:
        """Look at a copy."""
        copy = MemoryStore()
        with self._lock:
            copy._apply(self._rows, list(self._accounts.values()), list(self._releases.values()))
        yield copy

    def sealed(self) -> str | None:
        """Return why the store is sealed."""
        return self._sealed

    def seal(self, why: str) -> None:
        """Seal until the process ends."""
        self._sealed = why

    def unseal(self) -> None:
        """Take the mark away."""
        self._sealed = None

    def close(self) -> None:
        """Nothing to let go of."""

    def abandon(self) -> None:
        """Refuse a forked child: its copy of the budget would be a second budget."""
        raise TacitError(
            "ledger-unavailable",
            "a ledger in memory cannot be used in a forked process",
            why="parent and child would each spend the whole budget",
            fix="Ledger.open('study.ledger')",
        )

    def tip(self) -> Tip:
        """Return the log's end."""
        return Tip(self._rows[-1].seq, self._rows[-1].mac) if self._rows else Tip(0, START)

    def account_named(self, name: str) -> AccountRow | None:
        """Find an account by name."""
        return self._accounts.get(self._names.get(name, 0))

    def account(self, id_: int) -> AccountRow | None:
        """Find an account by number."""
        return self._accounts.get(id_)

    def accounts(self) -> list[AccountRow]:
        """Return all accounts in the order they were opened."""
        return [self._accounts[id_] for id_ in sorted(self._accounts)]

    def row(self, seq: int) -> Row | None:
        """Return one entry."""
        return self._rows[seq - 1] if 0 < seq <= len(self._rows) else None

    def row_of_key(self, key: str) -> Row | None:
        """Return the entry that carries a key."""
        return self._by_key.get(key)

    def rows_of_plan(self, plan: str) -> list[Row]:
        """Return the entries that name a plan."""
        return list(self._by_plan.get(plan, ()))

    def rows_of_accounts(self, ids: Sequence[int]) -> Iterator[Row]:
        """Return the entries that were made in the name of one of the accounts."""
        wanted = set(ids)
        return (row for row in list(self._rows) if row.account in wanted)

    def rows(self) -> Iterator[Row]:
        """Return the whole log in order."""
        return iter(list(self._rows))

    def release_of_plan(self, root: int, version: int, plan: str) -> ReleaseRow | None:
        """Find the stored release of a plan."""
        return self._releases.get(self._plans.get((root, version, plan), 0))

    def release_of_receipt(self, receipt: int) -> ReleaseRow | None:
        """Find the stored release of a receipt."""
        return self._releases.get(receipt)

    def releases(self) -> Iterator[ReleaseRow]:
        """Return all stored releases."""
        return iter([self._releases[receipt] for receipt in sorted(self._releases)])

    def check(self) -> list[str]:
        """Nothing can be wrong with pages where there are none."""
        return []
