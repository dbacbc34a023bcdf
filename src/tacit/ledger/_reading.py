"""What a ledger shows without changing anything: accounts, paid releases, entries, and their verification.

Entries never change, so a long log is read in short steps that keep nobody else waiting. What is handed out
is checked against the keyed chain first.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tacit.accounting import least_left
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Code
from tacit.ledger import _refusals
from tacit.ledger._arguments import read_account_name, read_name
from tacit.ledger._refusals import readable
from tacit.ledger.accounts._accounts import Account
from tacit.ledger.accounts._blocks import read_block, sums_from_text
from tacit.ledger.accounts._charges import CurveNeeded
from tacit.ledger.checks._replay import ReplayedAccount, replay_entry
from tacit.ledger.checks._verification import Verification, verify
from tacit.ledger.checks._witness import contains, read_head
from tacit.ledger.draws._draws import CommittedEntries, certificate_of, payments, run_of_plan, run_payments
from tacit.ledger.draws._receipts import Entry, Receipt, StoredRelease, account_key, entry_of, receipt_of
from tacit.ledger.stores._artifacts import read_payload_of, stored_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tacit.accounting import Budget, Cost, Filter, Left, Remaining, Spend
    from tacit.ledger.checks._chain import Head
    from tacit.ledger.stores._opening import Location
    from tacit.ledger.stores._store import AccountRow, EntryRow, ReleaseRow, StoreReader
    from tacit.ledger.stores._writer import Writer

T = TypeVar("T")
_STEP = 2_000  # entries in one read of a long history
_FEW = 20  # accounts that are read one by one


class LedgerReading:
    """The part of a ledger that reads its store; `Ledger` says what each method guarantees."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._name = writer.store.name

    def reading(self) -> AbstractContextManager[StoreReader]:
        """Read a consistent state of the store."""
        return self._writer.reading()

    def account(self, name: str | Account) -> Account:
        """Return an account in its present state."""
        with self.reading() as reader:
            row = self.account_row(reader, name)
        return Account.from_row(row)

    def source_label(self, places: Sequence[str]) -> str:
        """Return keyed digests of places, which reveal no path."""
        key = self._writer.chain.derived("digests of places")
        return " ".join(
            hmac.new(key, place.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:32]
            for place in sorted(set(places))
        )

    def remaining(self, account: str | Account, *, block: str | None = None) -> Remaining:
        """Return what is left in an account, or in one of its blocks."""
        if block is None:
            return self.account(account).filter.remaining
        with self.reading() as reader:
            return self._block_filter(reader, self.account_row(reader, account), block).remaining

    def left(
        self, account: str | Account, cost: Cost | None, *, promise: Budget | None, block: str | None
    ) -> Left:
        """Return what is left for questions in an account and in those above it, which also pay."""
        with self.reading() as reader:
            row: AccountRow | None = self.account_row(reader, account)
            filters: list[Filter] = []
            while row is not None:
                state = Account.from_row(row)
                in_blocks = block is not None and (state.blocks is not None or not filters)
                filters.append(self._block_filter(reader, row, str(block)) if in_blocks else state.filter)
                row = reader.account(row.parent) if row.parent else None
        return least_left([filter_.left(cost, promise) for filter_ in filters])

    def _block_filter(self, reader: StoreReader, account: AccountRow, block: str) -> Filter:
        """Return what a unit in a block may have paid at most."""
        state = Account.from_row(account)
        row = reader.block(state.id, read_block(block))
        if state.totals is None:
            raise bad_parameter(
                "block",
                f"omitted: account {state.name!r} has no blocks",
                block,
                fix=Code(f"ledger.remaining({state.name!r})"),
            )
        charged = row is not None and row.seq > state.totals.since
        with readable(f"block {block!r}"):
            sums = sums_from_text(row.state) if row is not None and charged else state.totals.empty
        return state.totals.beside(sums)

    def blocks(self, account: str | Account) -> dict[str, Spend]:
        """Return what was charged to each block of an account by itself, the fullest blocks first."""
        with self.reading() as reader:
            state = Account.from_row(self.account_row(reader, account))
            rows = list(reader.blocks(state.id))
        with readable(f"the blocks of account {state.name!r}"):
            return {} if state.totals is None else state.totals.listed(rows)

    def stored_release(
        self, account: str | Account, plan: str, *, version: int | None = None
    ) -> StoredRelease | None:
        """Find the stored release of a plan, whoever has paid for it."""
        state = self.account(account)
        declared = account.version if version is None and isinstance(account, Account) else version
        with self.reading() as reader:
            release = reader.release_of_plan(state.root, declared or state.version, read_name("plan", plan))
            row = None if release is None else reader.entry(release.receipt)
            if release is None or row is None:
                return None
            receipt = receipt_of(row, _names(reader, row))
        return StoredRelease(receipt, self.checked_payload(release), fresh=False)

    def paid_release(
        self, account: str | Account, plan: str, *, version: int | None = None
    ) -> StoredRelease | None:
        """Find the stored release of a plan if the account has paid for it."""
        return _with_curves(partial(self._paid_release, account, plan, version))

    def _paid_release(
        self, account: str | Account, plan: str, version: int | None = None
    ) -> StoredRelease | None:
        declared = account.version if version is None and isinstance(account, Account) else version
        with self.reading() as reader:
            state = Account.from_row(self.account_row(reader, account))
            release = reader.release_of_plan(state.root, declared or state.version, read_name("plan", plan))
            if release is None:
                return None
            draw, payers = payments(CommittedEntries(reader), release)
            receipt = self._proven_receipt(reader, state, draw, payers)
            if receipt is None:
                return None
        return StoredRelease(receipt, self.checked_payload(release), fresh=False)

    def paid_run(
        self, account: str | Account, plan: str, version: int | None
    ) -> tuple[Receipt, EntryRow] | None:
        """Find the run of a plan if the account has paid for it: its own payment and the run's entry."""
        return _with_curves(partial(self._paid_run, account, plan, version))

    def _paid_run(
        self, account: str | Account, plan: str, version: int | None
    ) -> tuple[Receipt, EntryRow] | None:
        declared = account.version if version is None and isinstance(account, Account) else version
        state = self.account(account)
        with self.reading() as reader:
            entries = CommittedEntries(reader)
            run = run_of_plan(entries, state.root, declared or state.version, read_name("plan", plan))
            if run is None:
                return None
            receipt = self._proven_receipt(reader, state, run, run_payments(entries, run))
        return None if receipt is None else (receipt, run)

    def _proven_receipt(
        self, reader: StoreReader, payer: Account, draw: EntryRow, payers: dict[int, EntryRow]
    ) -> Receipt | None:
        """Return an account's own payment; None if it, or an account above it, has not paid."""
        proofs = [payers.get(id_) for id_ in payer.below] or [draw]
        for proof in (draw, *proofs):
            if proof is None:
                return None
            if not self._is_linked(proof, reader.entry(proof.seq - 1)):
                raise _refusals.tampered(f"entry {proof.seq} of {self._name} does not match the keyed chain")
        mine = proofs[0] or draw
        return receipt_of(mine, _names(reader, mine))

    def keyed_receipt(self, account: str | Account, key: str) -> Receipt | None:
        """Find the charge that an account made with an idempotency key."""
        plain = f"k:{read_name('key', key)}"
        with self.reading() as reader:
            state = Account.from_row(self.account_row(reader, account))
            for form in (plain, account_key(state.name, plain)):
                row = reader.entry_with_key(form)
                if row is not None and row.account == state.id:
                    if not self._is_linked(row, reader.entry(row.seq - 1)):
                        raise _refusals.tampered(f"entry {row.seq} of {self._name} does not match the chain")
                    return receipt_of(row, _names(reader, row))
        return None

    def checked_payload(self, release: ReleaseRow) -> bytes:
        """Return a stored payload, but only if its entry and that entry's link in the chain prove it."""
        with self.reading() as reader:
            row, before = reader.entry(release.seq), reader.entry(release.seq - 1)
        good = row is not None and row.kind == "release"
        if row is not None and good:
            stored = (
                release.receipt, release.part, stored_digest(release), release.plan, release.version,
            )  # fmt: skip
            with readable(f"entry {row.seq}"):
                body = json.loads(row.body)
                good = self._is_linked(row, before) and stored == (
                    body["receipt"], body.get("part", 0), body["sha256"], row.plan, body["version"],
                )  # fmt: skip
        if not good:
            raise _refusals.tampered(
                f"the stored release of receipt {release.receipt} is not the one that was stored"
            )
        return read_payload_of(release, self._writer.store.artifact)

    def _is_linked(self, row: EntryRow, before: EntryRow | None) -> bool:
        """Whether an entry's hash is right for what it says and for the entry before it."""
        return self._writer.chain.follows(row, before)

    def entry(self, number: int) -> Entry | None:
        """Return one entry of the log by its number, checked against the chain."""
        position = count("number", number, zero=False)
        if position.bit_length() > 63:  # beyond what a store can number
            return None
        with self.reading() as reader:
            row, before = reader.entry(position), reader.entry(position - 1)
            names = {} if row is None else _names(reader, row)
        if row is None:
            return None
        if not self._is_linked(row, before):
            raise _refusals.tampered(f"entry {position} of {self._name} does not match the keyed chain")
        return entry_of(row, names)

    def certified(self, number: int) -> str | None:
        """Return the digest of the certificate that an entry was charged for."""
        if self.entry(number) is None:
            return None
        with self.reading() as reader:
            row = reader.entry(number)
            source = CommittedEntries(reader)
            digest = "" if row is None else certificate_of(source, row)
            claimed = source.claim_of(number)
        if claimed is not None:
            self.entry(claimed.seq)  # refuses an edited one
        return digest or None

    def history(
        self, account: str | Account | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[Entry]:
        """Return the entries that charged or changed an account, read in short steps."""
        position = count("after", after)
        max_rows = None if limit is None else count("limit", limit, zero=False)
        with self.reading() as reader:
            end = reader.tip().seq
            id_ = 0 if account is None else self.account_row(reader, account).id
        rows: list[EntryRow] = []
        while position < end and (max_rows is None or len(rows) < max_rows):
            # entries never change, so the log can be read in short steps that keep nobody else waiting
            step = min(end, position + _STEP)
            batch = _STEP if max_rows is None else min(_STEP, max_rows - len(rows))
            with self.reading() as reader:
                rows += reader.entries_between(position, step, id_, batch)
            position = step
        with self.reading() as reader:
            names = _names(reader, *rows)
        return [entry_of(row, names) for row in rows]

    def filters(self, account: str | Account) -> list[tuple[str, Filter]]:
        """Return an account's filter after each entry that changed it."""
        state = self.account(account)
        with self.reading() as reader:
            end = reader.tip().seq
        replayed, filters = ReplayedAccount(state), []
        for start in range(0, end, _STEP):  # in short steps that keep nobody else waiting
            with self.reading() as reader:
                rows = reader.entries_between(start, min(end, start + _STEP), state.id, _STEP)
            for row in rows:
                charged = not row.levels or str(state.id) in row.levels.split(",")
                with readable(f"entry {row.seq}", refusals=True):
                    if charged and replay_entry(replayed, row):
                        filters.append((str(json.loads(row.body)["at"]), replayed.account.filter))
        return filters

    def export(self) -> Iterator[str]:
        """Yield the log as JSON lines."""
        self._writer.ensure_open()
        with readable(self._name), self._writer.store.snapshot() as reader:
            names = dict(reader.names_after(0))
            for entry in (entry_of(row, names) for row in reader.entries()):
                yield json.dumps(entry.to_json(), ensure_ascii=True, allow_nan=False)

    def verify(
        self, witness: Location | Head | Receipt | tuple[int, str] | Mapping[str, object] | None = None
    ) -> Verification:
        """Verify the log, with the ledger's own witness and the given one."""
        self._writer.ensure_open()
        witnesses: list[tuple[str, Head]] = []
        witness_file = self._writer.witness
        if witness_file is not None:
            head = witness_file.head()
            if head is not None:
                witnesses.append((f"the witness {witness_file.path}", head))
        if witness is not None:
            witnesses.append(("the given witness", read_head(witness, self._writer.identity.ledger)))
        with readable(self._name), self._writer.store.snapshot() as reader:
            return verify(
                reader, self._writer.chain, witnesses, proves=witness is not None,
                artifact=self._writer.store.artifact,
            )  # fmt: skip

    def account_row(self, reader: StoreReader, account: str | Account) -> AccountRow:
        """Return the row of an account, or refuse a name that the ledger does not have."""
        name = read_account_name(account)
        row = reader.account_named(name)
        if row is None:
            raise _refusals.unknown_account(name)
        return row

    def lost_head(self, witness: object) -> Head | None:
        """Return the last entry that somebody has seen and that is missing here; None if nobody knows it."""
        writer = self._writer
        writer.ensure_open()
        refusal = writer.refusal
        if refusal is not None and refusal.code != "ledger-rolled-back":
            raise refusal
        own_head = None if writer.witness is None else writer.witness.head()
        witness_head = None if witness is None else read_head(witness, writer.identity.ledger)
        heads = [head for head in (own_head, witness_head) if head is not None]
        with self.reading() as reader:
            missing = [head for head in heads if not contains(reader, head)]
        if refusal is None and not missing:
            raise TacitError(
                "bad-parameter",
                f"nothing shows that {writer.store.name} lacks entries",
                why="it contains everything that its witness and you have seen",
                fix="name a witness file, or a receipt, from the lost entries; or continue without this step",
            )
        return max(missing, default=None)


def _with_curves(query: Callable[[], T]) -> T:
    """Read, as often as the store must be released to compute a curve."""
    while True:
        try:
            return query()
        except CurveNeeded as needed:
            curve = needed
        curve.compute()


def _names(reader: StoreReader, *rows: EntryRow) -> dict[int, str]:
    """Return the names of the accounts in some entries."""
    levels = {text for row in rows for text in {row.levels, str(row.account)}}
    with readable("the accounts of an entry"):
        ids = {int(id_) for text in levels for id_ in text.split(",") if id_} - {0}
    if len(ids) > _FEW:
        return dict(reader.names_after(0))
    accounts = (reader.account(id_) for id_ in ids)
    return {account.id: account.name for account in accounts if account is not None}
