"""The ledger: open it, keep accounts in it, charge them, draw against them, check it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache, partial
from threading import Lock, RLock
from typing import TYPE_CHECKING, Self

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.ledger import acts, doors
from tacit.ledger.accounts import Account
from tacit.ledger.chain import START, Head, canonical
from tacit.ledger.opening import Place, open_memory, open_place
from tacit.ledger.receipts import Entry, Receipt, StoredRelease, entry_of, receipt_of
from tacit.ledger.verify import Verification, verify
from tacit.ledger.witness import read_witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date, datetime
    from pathlib import Path

    from tacit.accounting import Spend
    from tacit.ledger.chain import Row
    from tacit.ledger.desk import Desk
    from tacit.ledger.store import Reader, ReleaseRow

__all__ = ["Ledger"]


class Ledger:
    """The durable record of every charge; made by `Ledger.open` or `Ledger.memory`.

    Guarantee: a charge is durable before it is acknowledged, is admitted only if every account of the lineage
    has room for it (one transaction, whoever else charges at the same time), and is never taken back. Over all
    callers together, what is released against an account stays within its budget. Threads may share a ledger;
    processes each open it. The threat model is in ``docs/explanation/ledger.md``.

    Examples
    --------
    >>> from tacit.accounting import Budget, Cost
    >>> from tacit.ledger import Ledger
    >>> with Ledger.memory() as ledger:
    ...     visits = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
    ...     receipt = ledger.charge("visits", Cost.pure(0.5), who="ana", purpose="monthly report")
    ...     ledger.account("visits").spent.epsilon
    Fraction(1, 2)
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._drawing: dict[tuple[str, str], tuple[RLock, int]] = {}  # type: ignore[valid-type]
        self._drawing_lock = Lock()

    @classmethod
    def open(
        cls,
        where: Place,
        *,
        key: bytes | Place | None = None,
        witness: Place | None = None,
        create: bool = True,
        wait: float = 10.0,
    ) -> Self:
        """Open the ledger in a file or on a server; make it if it is not there.

        Parameters
        ----------
        where
            A path (SQLite), a ``postgresql://`` address, or ``":memory:"``.
        key
            The chain's key, or the file that holds it; made there on first use, readable by its owner only. By
            default ``<path>.key``, or the file that ``TACIT_LEDGER_KEY_FILE`` names. A server needs one named.
        witness
            The file that keeps the log's end; by default ``<path>.witness``, for a server ``<key file>.witness``.
            Better on another disk, where a backup of the ledger does not restore it too.
        create
            Whether a missing ledger is made.
        wait
            How many seconds to wait for another process that is writing.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Ledger.open(pathlib.Path(folder) / "hospital.ledger") as ledger:
        ...         ledger.head.count
        0
        """
        if isinstance(where, str) and where == ":memory:":
            return cls(open_memory())
        if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= 3600:
            raise bad_parameter("wait", "a number of seconds from 0 to 3600", wait, fix="wait=10")
        return cls(open_place(where, key=key, witness=witness, create=create, wait=float(wait)))

    @classmethod
    def memory(cls) -> Self:
        """Open a ledger that lives as long as the process: for notebooks and trials.

        Examples
        --------
        >>> Ledger.memory().name
        ':memory:'
        """
        return cls(open_memory())

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

    def close(self) -> None:
        """Let what is under way finish, then let go of the store."""
        self._desk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.name!r})"

    # accounts

    def create_account(
        self,
        name: str,
        *,
        budget: Budget,
        unit: str | None = None,
        parent: str | Account | None = None,
        labels: Mapping[str, str] | None = None,
        adjacency: str | None = None,
        version: int = 1,
        per_charge: Budget | None = None,
        expires: date | datetime | None = None,
    ) -> Account:
        """Open an account, or return the one of that name if everything declared agrees with it.

        Guarantee: a new session resets nothing. An account of that name with another unit, adjacency, budget,
        parent, limit or last day is refused with ``account-differs``. A later ``version`` of the data is recorded,
        tells stored releases apart, and leaves the budget as it is.

        Parameters
        ----------
        name
            Name of the account: a dataset's declared name, a project, an analyst.
        budget
            What may be learned in total.
        unit, adjacency
            Who is protected, and what neighbouring means (``"add/remove"`` by default); inherited from the parent.
        parent
            The account above: every charge is charged there too.
        labels
            Words for people.
        version
            Declared version of the data.
        per_charge
            The most that one charge may take.
        expires
            Last day (UTC), or a moment with its time zone, from which nothing is charged.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        >>> ledger.create_account("oncology", parent="visits", budget=Budget(epsilon=1)).unit
        'patient_id'
        """
        act = partial(
            acts.open_account,
            name=doors.name_of("name", name),
            unit=None if unit is None else doors.name_of("unit", unit),
            adjacency=None if adjacency is None else doors.name_of("adjacency", adjacency),
            version=count("version", version, zero=False),
            budget=_budget("budget", budget),
            parent=None if parent is None else _name(parent),
            labels=doors.labels_of(labels),
            per_charge=None if per_charge is None else _budget("per_charge", per_charge),
            expires=doors.instant("expires", expires),
        )
        return self._desk.do(act)

    def grow(self, account: str | Account, budget: Budget, *, statement: str, who: str) -> Account:
        """Raise an account's budget by an act that is recorded with its reason and its author.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        >>> grown = ledger.grow("visits", Budget(epsilon=2), statement="board decision 12", who="curator")
        >>> grown.budget == Budget(epsilon=2)
        True
        """
        act = partial(
            acts.grow,
            name=_name(account),
            budget=_budget("budget", budget),
            statement=doors.prose("statement", statement, needed=True),
            who=doors.prose("who", who, needed=True),
        )
        return self._desk.do(act)

    def refresh(self, account: str | Account, *, statement: str, who: str) -> Account:
        """Start an account's total anew, on the curator's recorded word that other people are in the data now.

        Guarantee: none for a person who is in the data before and after; the statement is what the curator
        answers for. Accounts above and below keep their totals.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("intake", unit="patient_id", budget=Budget(epsilon=1))
        >>> _ = ledger.charge("intake", Cost.pure(1))
        >>> fresh = ledger.refresh("intake", statement="a new year's patients, none of the old", who="curator")
        >>> fresh.spent.epsilon
        Fraction(0, 1)
        """
        act = partial(
            acts.refresh,
            name=_name(account),
            statement=doors.prose("statement", statement, needed=True),
            who=doors.prose("who", who, needed=True),
        )
        return self._desk.do(act)

    def account(self, name: str | Account) -> Account:
        """Return an account as it stands, in constant time.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        >>> ledger.account("visits").adjacency
        'add/remove'
        """
        wanted = _name(name)
        with self._reading() as reader:
            row = reader.account_named(wanted)
        if row is None:
            raise acts.unknown_account(wanted)
        return Account.from_row(row)

    def accounts(self) -> list[Account]:
        """Return all accounts in the order they were opened.

        Examples
        --------
        >>> Ledger.memory().accounts()
        []
        """
        with self._reading() as reader:
            rows = reader.accounts()
        return [Account.from_row(row) for row in rows]

    def remaining(self, account: str | Account) -> Budget:
        """Return what is left in an account, in constant time, however long its history is.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        >>> _ = ledger.charge("visits", Cost.pure(0.25))
        >>> ledger.remaining("visits")
        Fraction(3, 4)
        """
        return self.account(account).filter.remaining

    # charges and draws

    def charge(
        self,
        account: str | Account,
        cost: Cost,
        *,
        plan: str | None = None,
        who: str = "",
        purpose: str = "",
        key: str | None = None,
    ) -> Receipt:
        """Charge a cost to an account and every account above it, durably, all or none.

        Guarantee: on return the charge is on the disk. A refusal (``budget-exceeded``, ``charge-too-large``,
        ``account-expired``, ...) charges nothing anywhere. The same ``key`` with the same charge returns the same
        receipt and charges nothing; with another one it is refused as ``key-reused``.

        Parameters
        ----------
        account
            The account that asks.
        cost
            What the plan takes.
        plan
            Hash of the plan.
        who, purpose
            For the record.
        key
            Idempotency key: makes a retry safe.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        >>> first = ledger.charge("visits", Cost.pure(0.5), key="report-2026-01")
        >>> ledger.charge("visits", Cost.pure(0.5), key="report-2026-01") == first
        True
        """
        order = _order(account, cost, plan=plan, who=who, purpose=purpose, key=key)
        return self._desk.do(partial(acts.charge, order=order), order.key)

    def draw(
        self,
        account: str | Account,
        cost: Cost,
        *,
        plan: str,
        compute: Callable[[Receipt], bytes | Mapping[str, object]],
        who: str = "",
        purpose: str = "",
        key: str | None = None,
    ) -> StoredRelease:
        """Charge, compute, store, return: the one way to a release.

        Guarantee: ``compute`` runs after its charge is durable, at most once for a receipt over all processes and
        crashes, and what it returns is durable before it is returned. The same plan on the same declared version
        returns the stored release: free for the dataset, charged to each account below it that has not paid yet.
        If anything fails after the charge, one opaque error is raised (``release-failed``) and the charge stays.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        >>> for _ in range(3):
        ...     release = ledger.draw("visits", Cost.pure(1), plan="p1", compute=lambda receipt: b"about 40")
        >>> release.payload, ledger.remaining("visits")
        (b'about 40', Fraction(0, 1))
        """
        order = _order(account, cost, plan=doors.token("plan", plan), who=who, purpose=purpose, key=key)
        with self._one_at_a_time(order.account, order.plan):
            verdict = self._desk.do(partial(acts.authorise, order=order), order.key)
            if verdict.stored is not None:
                return StoredRelease(verdict.receipt, self._checked(verdict.stored), fresh=False)
            release = self._compute(verdict.receipt, compute)
        if release is None:
            raise TacitError(
                "release-failed",
                "the release failed after its charge",
                why="the charge stays: how it failed could tell something about the data",
                fix="ask the curator, who can look into it where the data is",
            )
        return StoredRelease(
            verdict.receipt, release.payload, fresh=release.receipt == verdict.receipt.head.count
        )

    def _compute(
        self, receipt: Receipt, compute: Callable[[Receipt], bytes | Mapping[str, object]]
    ) -> ReleaseRow | None:
        """Compute and store; None stands for every failure alike, and no trace of it is kept."""
        try:
            payload = _payload(compute(receipt))
            return self._desk.do(partial(acts.keep_release, head=receipt.head, payload=payload))
        except Exception:  # noqa: BLE001 - what went wrong may depend on the data
            return None

    def claim(self, receipt: Receipt) -> None:
        """Take a receipt's one draw, durably; a second time is refused as ``spent``.

        `draw` does this by itself; call it where charge and computation are apart.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", Cost.pure(0.5))
        >>> ledger.claim(receipt)
        >>> ledger.claim(receipt)
        Traceback (most recent call last):
        tacit.errors.TacitError: the one draw of receipt 2 is taken and no release is stored for it
        ...
        """
        self._desk.do(partial(acts.claim, receipt=_receipt(receipt).head))

    def store_release(self, receipt: Receipt, payload: bytes | Mapping[str, object]) -> StoredRelease:
        """Store what was drawn for a receipt, durably, and return what is to be handed out.

        Guarantee: the first release of a plan stays for ever; if another process stored one meanwhile, that one is
        returned. Another payload for the same receipt is refused as ``spent``.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", Cost.pure(0.5), plan="p1")
        >>> ledger.claim(receipt)
        >>> ledger.store_release(receipt, {"n": 40}).payload
        b'{"n":40}'
        """
        head = _receipt(receipt).head
        row = self._desk.do(partial(acts.keep_release, head=head, payload=_payload(payload)))
        return StoredRelease(receipt, row.payload, fresh=row.receipt == head.count)

    def stored_release(
        self, account: str | Account, plan: str, *, version: int | None = None
    ) -> StoredRelease | None:
        """Find the stored release of a plan, without asking who has paid for it: for the curator and the service.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
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
        """Hand a stored release out only if its entry, and the entry's link to the one before, vouch for it."""
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

    # the record

    def history(self, account: str | Account | None = None) -> list[Entry]:
        """Return the entries that charged an account or concern it, oldest first; all of them without a name.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        >>> _ = ledger.charge("visits", Cost.pure(0.5), who="ana")
        >>> [(entry.kind, entry.who) for entry in ledger.history("visits")]
        [('open', ''), ('charge', 'ana')]
        """
        self._desk.awake()
        with self._desk.store.snapshot() as reader:
            if account is None:
                return list(_entries(reader, reader.rows()))
            asked = _name(account)
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
        """Yield the whole log as JSON lines, oldest first: one entry a line, exact numbers as fractions in text.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
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

        Guarantee: with a witness kept where the store's keeper cannot write, edits, cuts and restored old copies
        are found, up to the entry that the witness has seen. Without one the log may have been cut cleanly at its
        end, so the report says "completeness not proven"; the ledger's own witness file is looked at in any case.

        Parameters
        ----------
        witness
            A witness file, a `Head` or `Receipt` kept from earlier, or its ``(count, hash)``.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", Cost.pure(0.5))
        >>> print(ledger.verify(witness=receipt))
        consistent and complete up to entry 2 by the witness: 2 entries, 1 accounts and 0 stored releases checked
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

    def unseal(self, *, statement: str, who: str) -> Verification:
        """Take the seal away after the disk was checked: only if the ledger verifies; the act is recorded.

        Examples
        --------
        >>> ledger = Ledger.memory()
        >>> ledger.unseal(statement="disk replaced, file system checked", who="operator").ok
        True
        """
        statement, who = (
            doors.prose("statement", statement, needed=True),
            doors.prose("who", who, needed=True),
        )
        report = self.verify()
        if not report.ok:
            raise TacitError(
                "ledger-sealed",
                "the ledger stays sealed: it does not verify",
                why="; ".join(report.problems[:3]),
                fix="put a good copy back, then try again",
            )
        self._desk.unseal()
        self._desk.do(partial(acts.record_unsealing, statement=statement, who=who))
        return report

    # inside

    def _witness_head(self, witness: object) -> Head:
        if isinstance(witness, Receipt):
            return witness.head
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

    @contextmanager
    def _one_at_a_time(self, account: str, plan: str) -> Iterator[None]:
        """Let threads that draw the same plan wait for the first one's answer instead of paying again."""
        name = (account, plan)
        with self._drawing_lock:
            lock, users = self._drawing.get(name, (RLock(), 0))
            self._drawing[name] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._drawing_lock:
                lock, users = self._drawing.pop(name)
                if users > 1:
                    self._drawing[name] = (lock, users - 1)


def _entries(reader: Reader, rows: Iterator[Row]) -> Iterator[Entry]:
    names = {account.id: account.name for account in reader.accounts()}
    return (entry_of(row, names) for row in rows)


def _name(account: object) -> str:
    if isinstance(account, Account):
        return account.name
    return doors.name_of("account", account)


def _budget(name: str, budget: object) -> Budget:
    if not isinstance(budget, Budget):
        raise bad_parameter(name, "a Budget", budget, fix=f"{name}=tc.Budget(epsilon=1)")
    return budget


def _receipt(receipt: object) -> Receipt:
    if not isinstance(receipt, Receipt):
        raise bad_parameter(
            "receipt", "a Receipt from this ledger", receipt, fix="receipt=ledger.charge(...)"
        )
    return receipt


def _payload(payload: bytes | Mapping[str, object]) -> bytes:
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, Mapping):
        return canonical(dict(payload)).encode()
    raise bad_parameter("payload", "bytes or a mapping of JSON values", type(payload), fix="payload=b'...'")


@lru_cache(maxsize=4096)
def _priced(cost: Cost) -> tuple[object, Spend]:
    """Return a cost's stored form and its spend, checked once more at this door: exact and not negative."""
    spend = cost.spend
    for part in (spend.epsilon, spend.delta, spend.rho):
        if part is not None and (type(part) is not Fraction or part < 0):
            raise bad_parameter("cost", "of exact parts that are not negative", spend)
    return json.loads(canonical(cost.to_json())), spend


def _order(
    account: object, cost: object, *, plan: str | None, who: str, purpose: str, key: str | None
) -> acts.Order:
    if not isinstance(cost, Cost):
        raise bad_parameter(
            "cost",
            "a Cost",
            cost,
            why="a bare number does not say what it bounds",
            fix="cost=tc.Cost.pure(0.5)",
        )
    stored, spend = _priced(cost)
    return acts.Order(
        account=_name(account),
        version=account.version if isinstance(account, Account) else None,
        cost=stored,
        spend=spend,
        adjacency=cost.adjacency,
        plan="" if plan is None else doors.token("plan", plan),
        who=doors.prose("who", who),
        purpose=doors.prose("purpose", purpose),
        key="" if key is None else "k:" + doors.token("key", key),
    )
