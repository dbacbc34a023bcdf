"""One transaction: what is stored, what this batch adds to it, and the order in which things are checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.ledger.accounts import Account
from tacit.ledger.chain import START, Row, canonical
from tacit.ledger.store import ReleaseRow, Tip

if TYPE_CHECKING:
    from tacit.ledger.chain import Chain
    from tacit.ledger.store import Begun, Reader

__all__ = ["Book", "Memory"]


@dataclass(slots=True)
class Memory:
    """What this process knows of the committed state; right as long as the log still ends at ``tip``."""

    tip: Tip = field(default_factory=lambda: Tip(0, START))
    accounts: dict[int, Account] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)

    def forget(self) -> None:
        """Drop the accounts; they are read again when needed."""
        self.accounts.clear()
        self.names.clear()


class Book:
    """The state inside one transaction. Requests check fully, then change; a refused one leaves nothing."""

    def __init__(self, chain: Chain, reader: Reader, begun: Begun, memory: Memory) -> None:
        self._chain = chain
        self._reader = reader
        self._memory = memory
        self._known = dict(begun.known)
        self.tip = begun.tip
        self.rows: list[Row] = []
        self.touched: dict[int, Account] = {}
        self.releases: list[ReleaseRow] = []
        self.now = datetime.now(UTC)
        self.at = self.now.isoformat(timespec="milliseconds")
        if begun.tip != memory.tip:
            self._insist_on_growth(begun.tip)
            memory.forget()
            memory.tip = begun.tip

    def _insist_on_growth(self, tip: Tip) -> None:
        """Refuse a store that lost what this process has already seen in it."""
        seen = self._memory.tip
        if seen.seq == 0:
            return
        row = self._reader.row(seen.seq) if tip.seq > seen.seq else None
        if row is None or row.mac != seen.mac:
            raise TacitError(
                "ledger-rolled-back",
                f"the ledger no longer contains entry {seen.seq}, which this process has seen in it",
                why="an old copy was put in its place: its totals are too low",
                fix="put the latest store back, then `tacit budget verify`",
            )

    def account(self, name: str) -> Account | None:
        """Find an account by name."""
        id_ = self._memory.names.get(name)
        if id_ is None:
            for account in self.touched.values():
                if account.name == name:
                    return account
            row = self._reader.account_named(name)
            if row is None:
                return None
            id_ = row.id
            self._keep(Account.from_row(row))
        return self.account_numbered(id_)

    def account_numbered(self, id_: int) -> Account:
        """Find an account by number."""
        account = self.touched.get(id_) or self._memory.accounts.get(id_)
        if account is None:
            row = self._reader.account(id_)
            if row is None:
                raise TacitError("ledger-damaged", f"the ledger names account {id_} and does not have it")
            account = self._keep(Account.from_row(row))
        return account

    def _keep(self, account: Account) -> Account:
        self._memory.accounts[account.id] = account
        self._memory.names[account.name] = account.id
        return account

    def names(self, row: Row) -> dict[int, str]:
        """Name the accounts that an entry speaks of."""
        ids = {row.account, *(int(id_) for id_ in row.levels.split(",") if id_)}
        return {id_: self.account_numbered(id_).name for id_ in ids}

    def entry_with_key(self, key: str) -> Row | None:
        """Find the entry that carries a key, in the store or in this batch."""
        return self._known.get(key)

    def claim_of(self, receipt: int) -> Row | None:
        """Find the claim of a charge's one draw."""
        key = f"d:{receipt}"
        return self._known.get(key) or self._reader.row_of_key(key)

    def entry(self, seq: int) -> Row | None:
        """Return an entry, in the store or in this batch."""
        if seq > self.tip.seq - len(self.rows):
            return next((row for row in self.rows if row.seq == seq), None)
        return self._reader.row(seq)

    def entries_of_plan(self, plan: str) -> list[Row]:
        """Return the entries that name a plan, in the store and in this batch."""
        return self._reader.rows_of_plan(plan) + [row for row in self.rows if row.plan == plan]

    def release_of_plan(self, root: int, version: int, plan: str) -> ReleaseRow | None:
        """Find the stored release of a plan, in the store or in this batch."""
        for release in self.releases:
            if (release.root, release.version, release.plan) == (root, version, plan):
                return release
        return self._reader.release_of_plan(root, version, plan)

    def release_of_receipt(self, receipt: int) -> ReleaseRow | None:
        """Find the stored release of a receipt, in the store or in this batch."""
        for release in self.releases:
            if release.receipt == receipt:
                return release
        return self._reader.release_of_receipt(receipt)

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
    ) -> Row:
        """Chain a new entry to the log's end."""
        body["at"] = self.at
        seq, text = self.tip.seq + 1, canonical(body)
        mac = self._chain.link(self.tip.mac, seq, kind, account, levels, spend, plan, key, text)
        row = Row(seq, kind, account, levels, spend, plan, key, text, mac)
        self.rows.append(row)
        self.tip = Tip(seq, mac)
        if key:
            self._known[key] = row
        return row

    def touch(self, account: Account) -> None:
        """Let an account's new state take effect with this transaction."""
        self.touched[account.id] = account

    def committed(self) -> None:
        """Remember what is now durable."""
        self._memory.tip = self.tip
        for account in self.touched.values():
            self._keep(account)
