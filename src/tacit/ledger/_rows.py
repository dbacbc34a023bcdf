"""The rows of a ledger as every store keeps them: entries of the log, accounts, stored releases."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AccountRow", "EntryRow", "ReleaseRow", "Tip"]


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
    """One account: its declared facts, and its filter's state after the last entry that charged it."""

    id: int
    name: str
    parent: int
    facts: str
    state: str


class ReleaseRow(NamedTuple):
    """One stored release; ``seq`` is the number of the entry that holds the payload's digest."""

    receipt: int
    root: int
    version: int
    plan: str
    payload: bytes
    seq: int
