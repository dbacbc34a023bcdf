"""One transaction of the ledger: what is stored, and what this batch adds to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tacit.ledger import _refusals
from tacit.ledger.accounts._accounts import Account, appearance, sealed_account, sealed_block
from tacit.ledger.accounts._blocks import sums_from_text, sums_to_text
from tacit.ledger.checks._chain import START, blocks_of, canonical
from tacit.ledger.draws._draws import claim_key
from tacit.ledger.stores._sql import KINDS
from tacit.ledger.stores._store import BlockRow, EntryRow, ReleaseRow, RunRow, StoreChanges, Tip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.ledger.accounts._blocks import BlockSums
    from tacit.ledger.checks._chain import Chain
    from tacit.ledger.stores._store import AccountRow, StoreReader, TransactionStart


@dataclass(slots=True)
class AccountCache:
    """What this process knows of the committed accounts; valid as long as the log still ends at ``tip``.

    ``latest`` is the latest time at which an entry was recorded, as text; texts of this form sort like times.
    ``blocks`` holds the sums of blocks, and the number of the entry up to which nobody charged them further.
    """

    tip: Tip = field(default_factory=lambda: Tip(0, START))
    latest: str = ""
    accounts: dict[int, Account] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    blocks: dict[tuple[int, str], tuple[BlockSums, int]] = field(default_factory=dict)
    appearances: dict[str, str] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)  # the names that the log knows
    compared: int = 0  # number of the last entry that was searched for names

    def clear(self) -> None:
        """Drop the accounts; they are read again when they are needed. Names never change, so they stay.

        Blocks stay too: before one is used, the entries since are searched for it.
        """
        self.accounts.clear()
        self.names.clear()

    def keep(self, account: Account) -> Account:
        """Keep an account."""
        self.accounts[account.id] = account
        self.names[account.name] = account.id
        return account


class Transaction:
    """The state inside one transaction.

    An operation checks everything first and then changes: a refused one leaves nothing behind.
    """

    def __init__(
        self, chain: Chain, reader: StoreReader, start: TransactionStart, cache: AccountCache
    ) -> None:
        self._chain = chain
        self._reader = reader
        self._cache = cache
        self._entries_by_key = dict(start.known)
        self.tip = start.tip
        self._start = start.tip.seq
        self.entries: list[EntryRow] = []
        self.changed: dict[int, Account] = {}
        self._changed_at: dict[int, Tip] = {}
        self._blocks: dict[tuple[int, str], tuple[BlockSums, Tip]] = {}
        self.releases: list[ReleaseRow] = []
        self.runs: dict[int, RunRow] = {}
        self.now = datetime.now(UTC)
        self.at = self.now.isoformat(timespec="milliseconds")
        if start.tip != cache.tip:
            self._require_growth(start.tip)
            cache.clear()
            cache.tip = start.tip
            cache.latest = latest_time(start.last)

    @property
    def latest(self) -> datetime:
        """The latest time that is known: the clock's, or that of an earlier entry if the clock went back."""
        return self.now if self.at >= self._cache.latest else datetime.fromisoformat(self._cache.latest)

    def _require_growth(self, tip: Tip) -> None:
        """Refuse a store that lost an entry which this process has already seen in it."""
        latest = self._cache.tip
        if latest.seq == 0:
            return
        row = self._reader.entry(latest.seq) if tip.seq > latest.seq else None
        if row is None or row.mac != latest.mac:
            raise _refusals.lacks(latest.seq, "this process has seen")

    def account(self, name: str) -> Account:
        """Return an account by its name, or refuse the name."""
        id_ = self._cache.names.get(name)
        if id_ is not None:
            return self.account_numbered(id_)
        account = self.find_account(name)
        if account is None:
            raise _refusals.unknown_account(name)
        return account

    def find_account(self, name: str) -> Account | None:
        """Find an account by its name."""
        id_ = self._cache.names.get(name)
        if id_ is None:
            for account in self.changed.values():
                if account.name == name:
                    return account
            row = self._reader.account_named(name)
            if row is None:
                return None
            id_ = row.id
            self._cache.keep(self._checked(row))
        return self.account_numbered(id_)

    def name_like(self, name: str) -> str | None:
        """Find another name that people would take for that of a new account, in the store or in this batch.

        A name that the log has opened before is refused: its row was removed. The names of all accounts are
        read from the log, which outlives their rows.
        """
        cache = self._cache
        for row in self._reader.openings(cache.compared, self._start):
            existing = str(json.loads(row.body)["name"])
            cache.opened.add(existing)
            cache.appearances.setdefault(appearance(existing), existing)
        cache.compared = max(cache.compared, self._start)
        if name in cache.opened:
            raise _refusals.tampered(f"account {name!r}, which the log opened, is missing")
        look = appearance(name)
        batch = (account.name for account in self.changed.values() if appearance(account.name) == look)
        return cache.appearances.get(look) or next(batch, None)

    def account_numbered(self, id_: int) -> Account:
        """Return an account by its number."""
        account = self.changed.get(id_) or self._cache.accounts.get(id_)
        if account is None:
            row = self._reader.account(id_)
            if row is None:
                raise _refusals.damaged(f"account {id_}, which the log names, is missing")
            account = self._cache.keep(self._checked(row))
        return account

    def path(self, account: Account) -> list[Account]:
        """Return an account and all accounts above it."""
        return [self.account_numbered(id_) for id_ in account.path]

    def accounts(self) -> list[Account]:
        """Return all accounts."""
        ids = [id_ for id_, _ in self._reader.names_after(0)]
        return [self.account_numbered(id_) for id_ in [*ids, *(self.changed.keys() - set(ids))]]

    def _checked(self, row: AccountRow) -> Account:
        """Read an account, but only if its seal is right and no later entry has changed it.

        Whoever can write to the store, but has no key, can neither make a row of his own nor put an older
        one back: the log shows the entries that came after it.
        """
        entry = self._reader.entry(row.seq)
        if entry is None or sealed_account(self._chain, Tip(row.seq, entry.mac), row).seal != row.seal:
            raise _refusals.tampered(
                f"the stored total of account {row.name!r} was not written by the ledger"
            )
        if self._reader.changed_since(row.id, row.seq, self._start):
            raise _refusals.tampered(
                f"the stored total of account {row.name!r} is older than its last charge"
            )
        return Account.from_row(row)

    def block(self, account: Account, name: str) -> BlockSums:
        """Return the sums of a block of an account."""
        key = (account.id, name)
        if key in self._blocks:
            return self._blocks[key][0]
        assert account.totals is not None  # noqa: S101 - the caller has checked
        sums, mark = self._cache.blocks.get(key, (account.totals.empty, -1))
        if mark < max(account.id, account.totals.since) or self._is_charged(account, name, mark):
            sums = self._checked_block(account, name, self._reader.block(*key))
        if account.totals.since <= self._start:  # else the block is empty only if this batch is committed
            self._cache.blocks[key] = (sums, self._start)
        return sums

    def _is_charged(self, account: Account, name: str, after: int) -> bool:
        """Whether an entry of the store after this number charged a block of an account."""
        if after >= self._start:
            return False
        bodies = self._reader.bodies_with(account.id, canonical(name), after, self._start)
        return any(name in blocks_of(body) for body in bodies)

    def _checked_block(self, account: Account, name: str, row: BlockRow | None) -> BlockSums:
        """Read a block, but only if its seal is right and no later entry has charged it."""
        assert account.totals is not None  # noqa: S101 - the caller has checked
        sums, after = account.totals.empty, max(account.id, account.totals.since)
        if row is not None:
            entry = self._reader.entry(row.seq)
            if entry is None or sealed_block(self._chain, Tip(row.seq, entry.mac), row) != row:
                raise _refusals.tampered(
                    f"the stored sums of block {name!r} of account {account.name!r} were not written by the "
                    "ledger"
                )
            if row.seq > after:
                sums, after = sums_from_text(row.state), row.seq
        if name <= account.totals.last and self._is_charged(account, name, after):
            raise _refusals.tampered(
                f"the stored sums of block {name!r} of account {account.name!r} are older than the block's "
                "last charge"
            )
        return sums

    def root_of(self, account: int) -> int:
        """Return the number of the dataset's own account, from the number of one below it."""
        return self.account_numbered(account).root

    def names(self, row: EntryRow) -> dict[int, str]:
        """Return the names of the accounts in an entry."""
        ids = {row.account, *(int(id_) for id_ in row.levels.split(",") if id_)}
        return {id_: self.account_numbered(id_).name for id_ in ids}

    def entry_with_key(self, key: str) -> EntryRow | None:
        """Find the entry that carries a key, in the store or in this batch."""
        return self._entries_by_key.get(key)

    def entry_keyed(self, key: str) -> EntryRow | None:
        """Find the entry that carries a key of the ledger's own, in the store or in this batch."""
        return self._entries_by_key.get(key) or self._reader.entry_with_key(key)

    def claim_of(self, receipt: int) -> EntryRow | None:
        """Find the claim of a charge's one draw."""
        return self.entry_keyed(claim_key(receipt))

    def entry(self, number: int) -> EntryRow | None:
        """Find an entry by its number, in the store or in this batch."""
        recent = self.entries if number > self.tip.seq - len(self.entries) else ()
        return next((row for row in recent if row.seq == number), None) or self._reader.entry(number)

    def require_linked(self, row: EntryRow) -> None:
        """Refuse an entry of the store whose hash is wrong for what it says."""
        if any(row is own for own in self.entries):
            return
        if not self._chain.follows(row, self._reader.entry(row.seq - 1)):
            raise _refusals.tampered(f"entry {row.seq} does not match the keyed chain")

    def entries_of_plan(self, plan: str) -> list[EntryRow]:
        """Return the entries that name a plan, in the store and in this batch."""
        return self._reader.entries_of_plan(plan) + [row for row in self.entries if row.plan == plan]

    def release_of_plan(self, root: int, version: int, plan: str) -> ReleaseRow | None:
        """Find the stored release of a plan, in the store or in this batch."""
        for release in self.releases:
            if (release.root, release.version, release.plan) == (root, version, plan):
                return release
        return self._reader.release_of_plan(root, version, plan)

    def release_of_receipt(self, receipt: int, part: int = 0) -> ReleaseRow | None:
        """Find the stored release of a receipt, or an instalment, in the store or in this batch."""
        for release in self.releases:
            if (release.receipt, release.part) == (receipt, part):
                return release
        return self._reader.release_of_receipt(receipt, part)

    def append(
        self,
        kind: str,
        account: int,
        body: dict[str, object],
        *,
        levels: str = "",
        spend: str = "",
        plan: str = "",
        key: str = "",
    ) -> EntryRow:
        """Append a new entry to the log and chain it to the last one."""
        if kind not in KINDS:  # a mistake of a programmer; the rule is in `_schema`
            raise RuntimeError(f"the kind of entry {kind!r} has no schema number")
        body["at"] = self.at
        if self.at < self._cache.latest:  # carried on, so that the last entry always knows it
            body["behind"] = self._cache.latest
        seq, text = self.tip.seq + 1, canonical(body)
        mac = self._chain.link(self.tip.mac, seq, kind, account, levels, spend, plan, key, text)
        row = EntryRow(seq, kind, account, levels, spend, plan, key, text, mac)
        self.entries.append(row)
        self.tip = Tip(seq, mac)
        if key:
            self._entries_by_key[key] = row
        return row

    def change(self, account: Account, blocks: Mapping[str, BlockSums] | None = None) -> None:
        """Write an account's new state, and the new sums of blocks; the entry for it is already appended."""
        if account.totals is not None and account.totals.since == self.tip.seq:  # started again just now
            for key in [key for key in self._blocks if key[0] == account.id]:
                del self._blocks[key]
        self.changed[account.id] = account
        self._changed_at[account.id] = self.tip
        for name, sums in (blocks or {}).items():
            self._blocks[account.id, name] = (sums, self.tip)

    def changes(self) -> StoreChanges:
        """Return what this transaction writes."""
        accounts = [
            account.to_row(self._chain, self._changed_at[id_]) for id_, account in self.changed.items()
        ]
        blocks = [
            sealed_block(self._chain, tip, BlockRow(*key, sums_to_text(sums), 0, ""))
            for key, (sums, tip) in self._blocks.items()
        ]
        return StoreChanges(self.entries, accounts, self.releases, blocks, list(self.runs.values()))

    def committed(self) -> None:
        """Keep in the cache what is now durable."""
        self._cache.tip = self.tip
        self._cache.latest = max(self.at, self._cache.latest)
        for account in self.changed.values():
            self._cache.keep(account)
        self._cache.blocks |= {key: (sums, self.tip.seq) for key, (sums, _) in self._blocks.items()}


def latest_time(body: str) -> str:
    """Return the latest time up to an entry, from its body: its own, or the one that its clock was behind."""
    if not body:
        return ""
    try:
        facts = json.loads(body)
        latest = facts.get("behind") or facts["at"]
        datetime.fromisoformat(latest)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _refusals.damaged("the last entry of the ledger does not say when it was recorded") from None
    return str(latest)
