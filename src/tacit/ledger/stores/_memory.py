"""The ledger's memory store, for notebooks and trials: it lives only as long as the process."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from itertools import islice, takewhile
from threading import RLock
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.ledger.checks._chain import START
from tacit.ledger.stores._store import (
    AccountRow,
    BlockRow,
    EntryRow,
    LedgerIdentity,
    ReleaseRow,
    RunRow,
    StoreChanges,
    Tip,
    TransactionStart,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tacit.ledger.stores._store import StoreReader


class MemoryStore:
    """Lists and dictionaries behind the protocol `Store`; `commit` applies every change, or none."""

    def __init__(self) -> None:
        self.name = ":memory:"
        self._lock = RLock()
        self._identity: LedgerIdentity | None = None
        self._entries: list[EntryRow] = []
        self._by_key: dict[str, EntryRow] = {}
        self._by_plan: dict[str, list[EntryRow]] = {}
        self._accounts: dict[int, AccountRow] = {}
        self._names: dict[str, int] = {}
        self._releases: dict[tuple[int, int], ReleaseRow] = {}
        self._plans: dict[tuple[int, int, str], int] = {}
        self._blocks: dict[tuple[int, str], BlockRow] = {}
        self._runs: dict[int, RunRow] = {}
        self._artifacts: dict[str, bytes] = {}
        self._sealed: str | None = None

    def identity(self) -> LedgerIdentity | None:
        """Return the ledger's identity."""
        return self._identity

    def create(self, identity: LedgerIdentity) -> LedgerIdentity:
        """Keep the identity."""
        self._identity = self._identity or identity
        return self._identity

    def begin(self, keys: Sequence[str], guess: Tip | None, attempt: int) -> TransactionStart:  # noqa: ARG002
        """Start from the log's present end."""
        with self._lock:
            entries = {key: self._by_key[key] for key in keys if key in self._by_key}
            body = self._entries[-1].body if self._entries else ""
            return TransactionStart(self.tip(), entries, self._sealed, body)

    def transaction_reader(self) -> MemoryStore:
        """Read inside the transaction."""
        return self

    def upgrade(self, check: Callable[[StoreReader], Sequence[AccountRow]]) -> None:
        """Do nothing: a ledger in memory is never older than the program."""

    def commit(self, start: TransactionStart, keys: Sequence[str], changes: StoreChanges) -> bool:  # noqa: ARG002
        """Apply everything."""
        self._apply(changes)
        return True

    def _apply(self, changes: StoreChanges) -> None:
        with self._lock:
            for entry in changes.entries:
                self._entries.append(entry)
                if entry.key:
                    self._by_key[entry.key] = entry
                if entry.plan:
                    self._by_plan.setdefault(entry.plan, []).append(entry)
            for account in changes.accounts:
                self._accounts[account.id] = account
                self._names[account.name] = account.id
            for release in changes.releases:
                self._releases[release.receipt, release.part] = release
                if release.plan and not release.part:
                    self._plans[release.root, release.version, release.plan] = release.receipt
            self._blocks.update({(block.account, block.block): block for block in changes.blocks})
            self._runs.update({run.receipt: run for run in changes.runs})

    def keep_artifact(self, digest: str, payload: bytes) -> None:
        """Keep a long payload under its digest."""
        self._artifacts[digest] = payload

    def artifact(self, digest: str) -> bytes | None:
        """Return a long payload, or None if it is lost."""
        return self._artifacts.get(digest)

    def hold_run(self, receipt: int) -> AbstractContextManager[None]:  # noqa: ARG002
        """Keep out no other process: none can share this store."""
        return nullcontext()

    def rollback(self) -> None:
        """Do nothing: before the commit nothing is applied."""

    @contextmanager
    def reading(self) -> Iterator[MemoryStore]:
        """Read while nobody applies a change."""
        with self._lock:
            yield self

    @contextmanager
    def snapshot(self) -> Iterator[MemoryStore]:
        """Read from a copy."""
        copy = MemoryStore()
        with self._lock:
            copy._apply(
                StoreChanges(
                    self._entries,
                    list(self._accounts.values()),
                    list(self._releases.values()),
                    list(self._blocks.values()),
                    list(self._runs.values()),
                )
            )
            copy._artifacts = dict(self._artifacts)
        yield copy

    def replaced(self) -> TacitError | None:
        """Return None: there is no file."""
        return None

    def sealed(self) -> str | None:
        """Return why the store is sealed, or None."""
        return self._sealed

    def seal(self, why: str) -> None:
        """Seal the store until the process ends."""
        self._sealed = why

    def unseal(self) -> None:
        """Remove that mark."""
        self._sealed = None

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def after_fork(self) -> None:
        """Refuse a forked child: its copy of the budget would be a second budget."""
        raise TacitError(
            "ledger-unavailable",
            "a ledger in memory cannot be used in a forked process",
            why="parent and child would each spend the whole budget",
            fix=Do("open-ledger", path="study.ledger"),
        )

    def tip(self) -> Tip:
        """Return the log's end."""
        return Tip(self._entries[-1].seq, self._entries[-1].mac) if self._entries else Tip(0, START)

    def account_named(self, name: str) -> AccountRow | None:
        """Find an account by its name."""
        return self._accounts.get(self._names.get(name, 0))

    def account(self, id_: int) -> AccountRow | None:
        """Find an account by its number."""
        return self._accounts.get(id_)

    def accounts(self) -> list[AccountRow]:
        """Return all accounts in the order in which they were opened."""
        return [self._accounts[id_] for id_ in sorted(self._accounts)]

    def names_after(self, id_: int) -> list[tuple[int, str]]:
        """Return number and name of every account that was opened after this one, in order."""
        late = takewhile(lambda number: number > id_, reversed(self._accounts))  # in the order of opening
        return [(number, self._accounts[number].name) for number in late][::-1]

    def openings(self, after: int, end: int) -> list[EntryRow]:
        """Return the entries after one number, up to another, that opened an account."""
        return [row for row in self._entries[after:end] if row.kind == "open"]

    def entry(self, number: int) -> EntryRow | None:
        """Find an entry by its number."""
        return self._entries[number - 1] if 0 < number <= len(self._entries) else None

    def entry_with_key(self, key: str) -> EntryRow | None:
        """Find the entry that carries a key."""
        return self._by_key.get(key)

    def entries_of_plan(self, plan: str) -> list[EntryRow]:
        """Return the entries that name a plan."""
        return list(self._by_plan.get(plan, ()))

    def entries_between(self, after: int, end: int, account: int, max_rows: int) -> list[EntryRow]:
        """Return at most ``max_rows`` entries after a number up to another, of one account if it is not 0."""
        level = str(account)
        rows = (
            entry
            for entry in self._entries[after:end]
            if not account or entry.account == account or level in entry.levels.split(",")
        )
        return list(islice(rows, max_rows))

    def entries(self) -> Iterator[EntryRow]:
        """Return the whole log in order."""
        return iter(list(self._entries))

    def release_of_plan(self, root: int, version: int, plan: str) -> ReleaseRow | None:
        """Find the stored release of a plan."""
        return self._releases.get((self._plans.get((root, version, plan), 0), 0))

    def release_of_receipt(self, receipt: int, part: int = 0) -> ReleaseRow | None:
        """Find the stored release of a receipt, or one instalment of a run."""
        return self._releases.get((receipt, part))

    def releases(self) -> Iterator[ReleaseRow]:
        """Return all stored releases."""
        return iter([self._releases[number] for number in sorted(self._releases)])

    def block(self, account: int, name: str) -> BlockRow | None:
        """Find a block of an account's partition."""
        return self._blocks.get((account, name))

    def blocks(self, account: int) -> Iterator[BlockRow]:
        """Return the blocks of an account's partition that were charged; 0 stands for all accounts."""
        return iter([self._blocks[key] for key in sorted(self._blocks) if account in {0, key[0]}])

    def bodies_with(self, account: int, text: str, after: int, end: int) -> Iterator[str]:
        """Return the bodies of some entries that charged an account and contain a text."""
        level = str(account)
        rows = self._entries[after:end]
        return (row.body for row in rows if level in row.levels.split(",") and text in row.body)

    def runs_with_secrets(self) -> list[int]:
        """Return the numbers of the runs whose secret is stored."""
        return sorted(self._runs)

    def run_secret(self, receipt: int) -> RunRow | None:
        """Find the secret of a run."""
        return self._runs.get(receipt)

    def changed_since(self, account: int, after: int, end: int) -> bool:
        """Whether an entry after one number, up to another, changed an account."""
        return any(
            entry.kind not in {"claim", "release"} for entry in self.entries_between(after, end, account, end)
        )

    def check(self) -> list[str]:
        """Find nothing wrong: there are no pages."""
        return []
