"""The interface of a ledger's store: read, and write one transaction after another, durably.

Every store keeps the same rows: entries of the log, accounts, blocks, releases, runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tacit.errors import TacitError


class EntryRow(NamedTuple):
    """One entry of the log; the hash in the last column covers every other column."""

    seq: int
    kind: str
    account: int
    levels: str
    spend: str
    plan: str
    key: str
    body: str
    mac: bytes


class Tip(NamedTuple):
    """The number and the hash of the log's last entry."""

    seq: int
    mac: bytes


class AccountRow(NamedTuple):
    """One account: its declared facts, and its filter's state after the last entry that changed it.

    ``seq`` is that entry's number, and ``seal`` a keyed digest of the row and of that entry, so that nobody
    without the key can write a row or put an older one back.
    """

    id: int
    name: str
    parent: int
    facts: str
    state: str
    seq: int
    seal: str


class BlockRow(NamedTuple):
    """One block of an account's partition: what was charged to it alone; sealed like an account."""

    account: int
    block: str
    state: str
    seq: int
    seal: str


class ReleaseRow(NamedTuple):
    """One stored release; ``seq`` is the number of the entry that holds the payload's digest.

    ``part`` is 0 for the only draw of a receipt and counts the instalments of a run from 1. A long payload is
    kept outside the store: then ``artifact`` is its digest and ``payload`` is empty.
    """

    receipt: int
    part: int
    root: int
    version: int
    plan: str
    payload: bytes
    artifact: str
    seq: int


class RunRow(NamedTuple):
    """The secret of a run after its last stored instalment, encrypted with the ledger's key."""

    receipt: int
    secret: bytes


class StoreChanges(NamedTuple):
    """What one transaction writes, all or nothing."""

    entries: Sequence[EntryRow] = ()
    accounts: Sequence[AccountRow] = ()
    releases: Sequence[ReleaseRow] = ()
    blocks: Sequence[BlockRow] = ()
    runs: Sequence[RunRow] = ()


class LedgerIdentity(NamedTuple):
    """A ledger's random name, and the fingerprint of the key that it was made with."""

    ledger: str
    fingerprint: str


class TransactionStart(NamedTuple):
    """What a transaction starts from: the log's end, the entries that carry a requested key, the seal.

    ``last`` is the body of the last entry; empty if the log is, or if the start is the caller's own guess.
    """

    tip: Tip
    known: dict[str, EntryRow]
    sealed: str | None
    last: str = ""


class StoreReader(Protocol):
    """Read from a store: inside a transaction what it builds on, outside of one what is committed."""

    def tip(self) -> Tip:
        """Return the log's end."""

    def account_named(self, name: str) -> AccountRow | None:
        """Find an account by its name."""

    def account(self, id_: int) -> AccountRow | None:
        """Find an account by its number."""

    def accounts(self) -> list[AccountRow]:
        """Return all accounts in the order in which they were opened."""

    def names_after(self, id_: int) -> list[tuple[int, str]]:
        """Return number and name of every account that was opened after this one, in order."""

    def openings(self, after: int, end: int) -> list[EntryRow]:
        """Return the entries after one number, up to another, that opened an account."""

    def entry(self, number: int) -> EntryRow | None:
        """Find an entry by its number."""

    def entry_with_key(self, key: str) -> EntryRow | None:
        """Find the entry that carries a key."""

    def entries_of_plan(self, plan: str) -> list[EntryRow]:
        """Return the entries that name a plan."""

    def entries_between(self, after: int, end: int, account: int, max_rows: int) -> list[EntryRow]:
        """Return entries after one number up to another, in order, but no more than ``max_rows``.

        If ``account`` is not 0, only those that charged or changed that account.
        """

    def entries(self) -> Iterator[EntryRow]:
        """Return the whole log in order."""

    def release_of_plan(self, root: int, version: int, plan: str) -> ReleaseRow | None:
        """Find the stored release of a plan."""

    def release_of_receipt(self, receipt: int, part: int = 0) -> ReleaseRow | None:
        """Find the stored release of a receipt, or one instalment of a run."""

    def releases(self) -> Iterator[ReleaseRow]:
        """Return all stored releases."""

    def block(self, account: int, name: str) -> BlockRow | None:
        """Find a block of an account's partition."""

    def blocks(self, account: int) -> Iterator[BlockRow]:
        """Return the blocks of an account's partition that were charged; 0 stands for all accounts."""

    def bodies_with(self, account: int, text: str, after: int, end: int) -> Iterator[str]:
        """Return the bodies of entries after one number, up to another, that charged an account.

        Only those that contain the text.
        """

    def runs_with_secrets(self) -> list[int]:
        """Return the numbers of the runs whose secret is stored."""

    def run_secret(self, receipt: int) -> RunRow | None:
        """Find the secret of a run."""

    def changed_since(self, account: int, after: int, end: int) -> bool:
        """Whether an entry after one number, up to another, changed an account: not a claim or a release."""

    def check(self) -> list[str]:
        """Return what the store itself finds wrong with its pages and indexes."""


class Store(Protocol):
    """A durable place for one ledger. One writer at a time; `commit` returns only when the change is durable.

    A refusal leaves the store as it was. Every failure is a `TacitError`.
    """

    name: str

    def identity(self) -> LedgerIdentity | None:
        """Return the ledger's identity, or None if the store is new."""

    def create(self, identity: LedgerIdentity) -> LedgerIdentity:
        """Create the tables, unless another process just did; return the identity that holds."""

    def upgrade(self, check: Callable[[StoreReader], Sequence[AccountRow]]) -> None:
        """Bring an older schema up to date in one transaction, unless another process just did.

        ``check`` reads the upgraded store before anything is committed, refuses it if it is not consistent,
        and returns the accounts with their seals, which are written too.
        """

    def begin(self, keys: Sequence[str], guess: Tip | None, attempt: int) -> TransactionStart:
        """Return what the transaction starts from.

        A store that locks takes its lock here. A store that compares at the end may start from ``guess``,
        where the caller believes that the log ends, without reading.
        """

    def transaction_reader(self) -> StoreReader:
        """Read inside the transaction."""

    def commit(self, start: TransactionStart, keys: Sequence[str], changes: StoreChanges) -> bool:
        """Write everything and return True when it is durable.

        Return False, with nothing written, if the log no longer ends where the transaction started, or holds
        one of the keys that were unknown then. The caller must decide again.
        """

    def keep_artifact(self, digest: str, payload: bytes) -> None:
        """Keep a long payload under its digest, durably, outside of any transaction."""

    def artifact(self, digest: str) -> bytes | None:
        """Return a long payload as it is kept, unchecked, or None if it is lost."""

    def hold_run(self, receipt: int) -> AbstractContextManager[None]:
        """Keep other processes from drawing an instalment of a run; refuse if one of them takes too long."""

    def rollback(self) -> None:
        """Leave the transaction without a trace; never raises."""

    def reading(self) -> AbstractContextManager[StoreReader]:
        """Read what is committed; for short reads, shared by the threads."""

    def snapshot(self) -> AbstractContextManager[StoreReader]:
        """Read what is committed as of one moment, for as long as it takes."""

    def replaced(self) -> TacitError | None:
        """Return the refusal of every change if this is no longer the store that was opened, or None."""

    def sealed(self) -> str | None:
        """Return why the store is sealed, or None."""

    def seal(self, why: str) -> None:
        """Mark the store so that nobody writes to it again; best effort, never raises."""

    def unseal(self) -> None:
        """Remove that mark."""

    def close(self) -> None:
        """Close every connection."""

    def after_fork(self) -> None:
        """Forget, in a forked child, the connections of the parent process, without touching them."""
