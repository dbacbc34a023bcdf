"""The ledger's queries about its log: stored releases, entries, and whether everything is consistent."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING

from tacit.exact import count
from tacit.ledger import _refusals
from tacit.ledger._account_queries import AccountQueries
from tacit.ledger._accounts import Account
from tacit.ledger._arguments import read_name
from tacit.ledger._artifacts import read_payload_of, stored_digest
from tacit.ledger._curves import CurveNeeded
from tacit.ledger._damage import readable
from tacit.ledger._payments import CommittedEntries, certificate_of, payments
from tacit.ledger._receipts import Entry, Receipt, StoredRelease, account_key, entry_of, receipt_of
from tacit.ledger._replay import ReplayedAccount, replay_entry
from tacit.ledger._verification import Verification, verify
from tacit.ledger._witness import read_head

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tacit.accounting import Filter
    from tacit.ledger._chain import Head
    from tacit.ledger._open import Location
    from tacit.ledger._rows import EntryRow, ReleaseRow
    from tacit.ledger._store import StoreReader

_STEP = 2_000  # entries in one read of a long history
_FEW = 20  # accounts that are read one by one


class LedgerQueries(AccountQueries):
    """The methods of a ledger that change nothing."""

    def stored_release(
        self, account: str | Account, plan: str, *, version: int | None = None
    ) -> StoredRelease | None:
        """Find the stored release of a plan, whoever has paid for it: for the curator.

        What may be shown to the holder of an account is `paid_release`.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> ledger.stored_release("visits", "p1") is None
        True
        """
        asked = self.account(account)
        declared = account.version if version is None and isinstance(account, Account) else version
        with self._reading() as reader:
            found = reader.release_of_plan(asked.root, declared or asked.version, read_name("plan", plan))
            row = None if found is None else reader.entry(found.receipt)
            if found is None or row is None:
                return None
            receipt = receipt_of(row, _names(reader, row))
        return StoredRelease(receipt, self._checked_payload(found), fresh=False)

    def paid_release(
        self, account: str | Account, plan: str, *, version: int | None = None
    ) -> StoredRelease | None:
        """Find the stored release of a plan if this account has paid for it; nothing is charged or recorded.

        Guarantee: a release is returned only if the account and every account above it, below the dataset's,
        have each paid what the stored draw cost. The receipt is the account's own payment (the receipt of the
        draw for a dataset's account). The hashes of the payments and of the release are checked against the
        chain; an edited one is refused with ``ledger-tampered``. None stands for both "nothing is stored" and
        "not paid": `Ledger.draw` charges and returns it.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.create_account("ana", parent="visits", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.draw("visits", tc.Cost.pure(0.5), plan="p1", compute=lambda _: b"about 40")
        >>> ledger.paid_release("ana", "p1") is None
        True
        >>> _ = ledger.draw("ana", tc.Cost.pure(0.5), plan="p1", compute=lambda _: b"not run")
        >>> ledger.paid_release("ana", "p1").payload
        b'about 40'
        """
        while True:
            try:
                return self._paid_release(account, plan, version)
            except CurveNeeded as needed:
                curve = needed
            curve.compute()

    def _paid_release(
        self, account: str | Account, plan: str, version: int | None = None
    ) -> StoredRelease | None:
        declared = account.version if version is None and isinstance(account, Account) else version
        with self._reading() as reader:
            asked = Account.from_row(self._account_row(reader, account))
            found = reader.release_of_plan(asked.root, declared or asked.version, read_name("plan", plan))
            if found is None:
                return None
            drawn, paid = payments(CommittedEntries(reader), found)
            receipt = self._proven_receipt(reader, asked, drawn, paid)
            if receipt is None:
                return None
        return StoredRelease(receipt, self._checked_payload(found), fresh=False)

    def _proven_receipt(
        self, reader: StoreReader, asked: Account, drawn: EntryRow, paid: dict[int, EntryRow]
    ) -> Receipt | None:
        """Return an account's own payment; None if it, or an account above it, has not paid."""
        proofs = [paid.get(id_) for id_ in asked.below] or [drawn]
        for proof in (drawn, *proofs):
            if proof is None:
                return None
            if not self._is_linked(proof, reader.entry(proof.seq - 1)):
                raise _refusals.tampered(f"entry {proof.seq} of {self.name} does not match the keyed chain")
        mine = proofs[0] or drawn
        return receipt_of(mine, _names(reader, mine))

    def keyed_receipt(self, account: str | Account, key: str) -> Receipt | None:
        """Find the charge that an account made with an idempotency key; None if it made none.

        Guarantee: nothing is charged or recorded. The hash of the entry is checked against the chain. Whoever
        was interrupted learns whether the charge was made; `paid_release` says whether its answer is stored.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", tc.Cost.pure(0.5), key="report-17")
        >>> ledger.keyed_receipt("visits", "report-17") == receipt
        True
        >>> ledger.keyed_receipt("visits", "report-18") is None
        True
        """
        plain = f"k:{read_name('key', key)}"
        with self._reading() as reader:
            asked = Account.from_row(self._account_row(reader, account))
            for form in (plain, account_key(asked.name, plain)):
                row = reader.entry_with_key(form)
                if row is not None and row.account == asked.id:
                    if not self._is_linked(row, reader.entry(row.seq - 1)):
                        raise _refusals.tampered(f"entry {row.seq} of {self.name} does not match the chain")
                    return receipt_of(row, _names(reader, row))
        return None

    def _checked_payload(self, release: ReleaseRow) -> bytes:
        """Return a stored payload, but only if its entry and that entry's link in the chain prove it."""
        with self._reading() as reader:
            row, before = reader.entry(release.seq), reader.entry(release.seq - 1)
        good = row is not None and row.kind == "release"
        if row is not None and good:
            found = (
                release.receipt, release.part, stored_digest(release), release.plan, release.version,
            )  # fmt: skip
            with readable(f"entry {row.seq}"):
                body = json.loads(row.body)
                good = self._is_linked(row, before) and found == (
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

    def keyed_digest(self, purpose: str, message: bytes) -> str:
        """Return a digest that only a holder of this ledger's key can compute, to recognise data again.

        Guarantee: without the key it cannot be told from random digits (HMAC-SHA-256 as a pseudorandom
        function), so nobody can try out guesses of the message. Equal messages give equal digests.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> ledger.keyed_digest("fits", b"rows") == ledger.keyed_digest("fits", b"rows")
        True
        >>> ledger.keyed_digest("fits", b"rows") == tc.Ledger.memory().keyed_digest("fits", b"rows")
        False
        """
        key = self._writer.chain.derived(f"digests of {purpose}")
        return hmac.new(key, message, hashlib.sha256).hexdigest()

    def entry(self, number: int) -> Entry | None:
        """Return one entry of the log by its number, or None if the log is shorter.

        Guarantee: takes the same time however long the log is. The hash of the entry is checked against what
        the entry says and against the entry before it; an entry that was edited is refused with
        ``ledger-tampered``.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", tc.Cost.pure(0.5), who="ana")
        >>> entry = ledger.entry(receipt.head.count)
        >>> entry.account, entry.who, entry.hash == receipt.head.hash
        ('visits', 'ana', True)
        >>> ledger.entry(9) is None
        True
        """
        wanted = count("number", number, zero=False)
        if wanted.bit_length() > 63:  # beyond what a store can number
            return None
        with self._reading() as reader:
            row, before = reader.entry(wanted), reader.entry(wanted - 1)
            names = {} if row is None else _names(reader, row)
        if row is None:
            return None
        if not self._is_linked(row, before):
            raise _refusals.tampered(f"entry {wanted} of {self.name} does not match the keyed chain")
        return entry_of(row, names)

    def certified(self, number: int) -> str | None:
        """Return the digest of the certificate that an entry was charged for, or None if it records none.

        Guarantee: takes the same time however long the log is, and only entries that match the keyed chain
        are used (`entry`). Entries of older versions record no certificate.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> certificate = visits.agg(n=tc.count()).plan(epsilon=1).release().certificate
        >>> ledger = visits._ledger
        >>> ledger.certified(certificate.fields["ledger"]["entry"]) == certificate.digest
        True
        """
        if self.entry(number) is None:
            return None
        with self._reading() as reader:
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
        """Return the entries that charged or changed an account, oldest first; without a name, all entries.

        Parameters
        ----------
        account
            The account, or None for the whole log.
        after
            Only entries with a higher number: the ``seq`` of the last entry of the page before.
        limit
            At most this many entries. The log is read only as far as needed, so a page of the whole log takes
            the same time however long the log is.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.5), who="ana")
        >>> [(entry.kind, entry.who) for entry in ledger.history("visits")]
        [('open', ''), ('charge', 'ana')]
        >>> [entry.kind for entry in ledger.history("visits", after=1, limit=10)]
        ['charge']
        """
        seen = count("after", after)
        most = None if limit is None else count("limit", limit, zero=False)
        with self._reading() as reader:
            end = reader.tip().seq
            id_ = 0 if account is None else self._account_row(reader, account).id
        rows: list[EntryRow] = []
        while seen < end and (most is None or len(rows) < most):
            # entries never change, so the log can be read in short steps that keep nobody else waiting
            step = min(end, seen + _STEP)
            wanted = _STEP if most is None else min(_STEP, most - len(rows))
            with self._reading() as reader:
                rows += reader.entries_between(seen, step, id_, wanted)
            seen = step
        with self._reading() as reader:
            names = _names(reader, *rows)
        return [entry_of(row, names) for row in rows]

    def filters(self, account: str | Account) -> list[tuple[str, Filter]]:
        """Return an account's filter after each entry that changed it, with the time of the entry.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.5))
        >>> [str(filter_.remaining) for _, filter_ in ledger.filters("visits")]
        ['epsilon 1 of 1', 'epsilon 0.5 of 1']
        """
        asked = self.account(account)
        with self._reading() as reader:
            end = reader.tip().seq
        replayed, found = ReplayedAccount(asked), []
        for start in range(0, end, _STEP):  # in short steps that keep nobody else waiting
            with self._reading() as reader:
                rows = reader.entries_between(start, min(end, start + _STEP), asked.id, _STEP)
            for row in rows:
                charged = not row.levels or str(asked.id) in row.levels.split(",")
                with readable(f"entry {row.seq}", refusals=True):
                    if charged and replay_entry(replayed, row):
                        found.append((str(json.loads(row.body)["at"]), replayed.account.filter))
        return found

    def export(self) -> Iterator[str]:
        """Yield the log as JSON lines, oldest first: one entry a line, exact numbers as fractions in text.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> for line in ledger.export():
        ...     print(line[:24])
        {"seq": 1, "kind": "open
        """
        self._writer.ensure_open()
        with readable(self.name), self._writer.store.snapshot() as reader:
            names = dict(reader.names_after(0))
            for entry in (entry_of(row, names) for row in reader.entries()):
                yield json.dumps(entry.to_json(), ensure_ascii=True, allow_nan=False)

    def verify(
        self, witness: Location | Head | Receipt | tuple[int, str] | Mapping[str, object] | None = None
    ) -> Verification:
        """Check the chain, add up every total again from the log alone, and compare the log with a witness.

        Guarantee: with a witness kept where the keeper of the store cannot write, edits, cuts and old copies
        are found, up to the entry that the witness has seen. Without one, somebody may have cut the log
        cleanly at its end, so the report says "completeness not proven". The ledger's own witness file is
        compared in any case.

        Parameters
        ----------
        witness
            A witness file, a `Head` or a `Receipt` kept from earlier, or its ``(count, hash)``.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", tc.Cost.pure(0.5))
        >>> print(ledger.verify(witness=receipt))
        consistent and complete up to entry 2, as the witness proves
        (checked: 2 entries, 1 account, 0 releases)
        """
        self._writer.ensure_open()
        witnesses: list[tuple[str, Head]] = []
        own = self._writer.witness
        if own is not None:
            seen = own.head()
            if seen is not None:
                witnesses.append((f"the witness {own.path}", seen))
        if witness is not None:
            witnesses.append(("the given witness", read_head(witness, self.id)))
        with readable(self.name), self._writer.store.snapshot() as reader:
            return verify(
                reader, self._writer.chain, witnesses, proves=witness is not None,
                artifact=self._writer.store.artifact,
            )  # fmt: skip


def _names(reader: StoreReader, *rows: EntryRow) -> dict[int, str]:
    """Return the names of the accounts in some entries."""
    levels = {text for row in rows for text in {row.levels, str(row.account)}}
    with readable("the accounts of an entry"):
        ids = {int(id_) for text in levels for id_ in text.split(",") if id_} - {0}
    if len(ids) > _FEW:
        return dict(reader.names_after(0))
    found = (reader.account(id_) for id_ in ids)
    return {account.id: account.name for account in found if account is not None}
