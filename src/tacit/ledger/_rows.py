"""The ledger's rows, as every store keeps them: entries of the log, accounts, blocks, releases, runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


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
