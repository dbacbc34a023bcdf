"""What can be read from a ledger: accounts, what is left, the history, and whether it all holds."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.ledger import acts, doors, orders
from tacit.ledger.accounts import Account
from tacit.ledger.chain import START, Head
from tacit.ledger.receipts import Entry, Receipt, StoredRelease, entry_of, receipt_of
from tacit.ledger.verify import Verification, verify
from tacit.ledger.witness import read_witness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tacit.accounting import Remaining
    from tacit.ledger.chain import Row
    from tacit.ledger.desk import Desk
    from tacit.ledger.opening import Place
    from tacit.ledger.store import Reader, ReleaseRow

__all__ = ["Readable"]


class Readable:
    """The half of a ledger that changes nothing."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @property
    def name(self) -> str:
        """Where the ledger is, without any password."""
        return self._desk.store.name

    @property
    def id(self) -> str:
        """The ledger's own name: random, fixed when it was made."""
        return self._desk.meta.ledger

    @property
    def witness(self) -> Path | None:
        """The file that keeps the log's end, or None."""
        return None if self._desk.witness is None else self._desk.witness.path

    @property
    def sealed(self) -> str | None:
        """Why the ledger refuses every change, or None."""
        self._desk.awake()
        return self._desk.sealed()

    @property
    def head(self) -> Head:
        """The log's end: how many entries it has and the last one's hash. Kept elsewhere, it is a witness."""
        with self._reading() as reader:
            tip = reader.tip()
        return Head(tip.seq, tip.mac.hex())

    def account(self, name: str | Account) -> Account:
        """Return an account as it stands, in constant time.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> ledger.account("visits").adjacency
        'add/remove'
        """
        wanted = orders.name(name)
        with self._reading() as reader:
            row = reader.account_named(wanted)
        if row is None:
            raise acts.unknown_account(wanted)
        return Account.from_row(row)

    def accounts(self) -> list[Account]:
        """Return all accounts in the order they were opened.

        Examples
        --------
        >>> import tacit as tc
        >>> tc.Ledger.memory().accounts()
        []
        """
        with self._reading() as reader:
            rows = reader.accounts()
        return [Account.from_row(row) for row in rows]

    def remaining(self, account: str | Account) -> Remaining:
        """Return what is left in an account, in constant time, however long its history is.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.25))
        >>> ledger.remaining("visits").epsilon
        Fraction(3, 4)
        """
        return self.account(account).filter.remaining

    def stored_release(
        self, account: str | Account, plan: str, *, version: int | None = None
    ) -> StoredRelease | None:
        """Find the stored release of a plan, without asking who has paid: for the curator and the service.

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
            found = reader.release_of_plan(asked.root, declared or asked.version, doors.token("plan", plan))
            row = None if found is None else reader.row(found.receipt)
            if found is None or row is None:
                return None
            names = {one.id: one.name for one in reader.accounts()}
        return StoredRelease(receipt_of(row, names), self._checked(found), fresh=False)

    def _checked(self, release: ReleaseRow) -> bytes:
        """Hand a stored release out only if its entry, and that entry's link in the chain, vouch for it."""
        with self._reading() as reader:
            row, before = reader.row(release.seq), reader.row(release.seq - 1)
        good = row is not None and row.kind == "release"
        if row is not None and good:
            body = json.loads(row.body)
            link = self._desk.chain.link(START if before is None else before.mac, *row[:-1])
            digest = hashlib.sha256(release.payload).hexdigest()
            found = (release.receipt, digest, release.plan, release.version)
            good = link == row.mac and found == (body["receipt"], body["sha256"], row.plan, body["version"])
        if not good:
            raise TacitError(
                "ledger-tampered",
                f"the stored release of receipt {release.receipt} is not the one that was stored",
                why="the store was changed by something else than Tacit",
                fix="`tacit budget verify` tells what else; put a good copy back",
            )
        return release.payload

    def history(self, account: str | Account | None = None) -> list[Entry]:
        """Return the entries that charged an account or concern it, oldest first; all of them without a name.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.5), who="ana")
        >>> [(entry.kind, entry.who) for entry in ledger.history("visits")]
        [('open', ''), ('charge', 'ana')]
        """
        self._desk.awake()
        with self._desk.store.snapshot() as reader:
            if account is None:
                return list(_entries(reader, reader.rows()))
            asked = orders.name(account)
            row = reader.account_named(asked)
            if row is None:
                raise acts.unknown_account(asked)
            below = [one.id for one in map(Account.from_row, reader.accounts()) if row.id in one.path]
            mine = str(row.id)
            rows = (
                entry
                for entry in reader.rows_of_accounts(below)
                if entry.account == row.id or mine in entry.levels.split(",")
            )
            return list(_entries(reader, rows))

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
        self._desk.awake()
        with self._desk.store.snapshot() as reader:
            for entry in _entries(reader, reader.rows()):
                yield json.dumps(entry.to_json(), ensure_ascii=True, allow_nan=False)

    def verify(
        self, witness: Place | Head | Receipt | tuple[int, str] | Mapping[str, object] | None = None
    ) -> Verification:
        """Check the chain, replay every total from the log alone, and compare the log with a witness.

        Guarantee: with a witness kept where the store's keeper cannot write, edits, cuts and restored old
        copies are found, up to the entry that the witness has seen. Without one the log may have been cut
        cleanly at its end, so the report says "completeness not proven"; the ledger's own witness file is
        looked at in any case.

        Parameters
        ----------
        witness
            A witness file, a `Head` or `Receipt` kept from earlier, or its ``(count, hash)``.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", tc.Cost.pure(0.5))
        >>> print(ledger.verify(witness=receipt))
        consistent and complete up to entry 2 by the witness (checked: entries 2, accounts 1, releases 0)
        """
        self._desk.awake()
        witnesses: list[tuple[str, Head]] = []
        own = self._desk.witness
        if own is not None:
            seen = own.head()
            if seen is not None:
                witnesses.append((f"the witness {own.path}", seen))
        if witness is not None:
            witnesses.append(("the given witness", self._witness_head(witness)))
        with self._desk.store.snapshot() as reader:
            return verify(reader, self._desk.chain, witnesses, proves=witness is not None)

    def _witness_head(self, witness: object) -> Head:
        if isinstance(witness, Receipt):
            witness = witness.head
        if isinstance(witness, Head):
            witness = (witness.count, witness.hash)
        if isinstance(witness, Mapping):
            witness = (witness.get("count"), witness.get("hash"))
        if isinstance(witness, str | os.PathLike):
            return read_witness(witness, self.id)
        match witness:
            case (int(number), str(digest)) if number >= 0 and len(digest) == 64:
                return Head(number, digest.lower())
        raise bad_parameter(
            "witness", "a witness file, a Head, a Receipt or (count, hash)", witness, fix="witness=receipt"
        )

    @contextmanager
    def _reading(self) -> Iterator[Reader]:
        self._desk.awake()
        with self._desk.store.reading() as reader:
            yield reader


def _entries(reader: Reader, rows: Iterator[Row]) -> Iterator[Entry]:
    names = {account.id: account.name for account in reader.accounts()}
    return (entry_of(row, names) for row in rows)
