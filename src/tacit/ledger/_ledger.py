"""The class `Ledger`: its accounts, charges, draws and runs, its log, and what its curator decides.

The class is the one surface of the room. What it reads is in `LedgerReading`, what it changes in functions
over one transaction (``accounts``, ``draws``), and what it writes to in ``stores``.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

from tacit.errors import TacitError, bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Set
from tacit.ledger import _refusals
from tacit.ledger._arguments import (
    read_account_name,
    read_blocks,
    read_budget,
    read_charge,
    read_expiry,
    read_labels,
    read_name,
    read_payload,
    read_receipt,
    read_record,
    read_text,
)
from tacit.ledger._reading import LedgerReading
from tacit.ledger.accounts import _charges, _decisions
from tacit.ledger.accounts._accounts import Account
from tacit.ledger.checks._chain import Head
from tacit.ledger.checks._verification import accounts_to_seal, verify
from tacit.ledger.checks._witness import contains
from tacit.ledger.draws import _draws
from tacit.ledger.draws._draws import DrawDecision
from tacit.ledger.draws._receipts import Receipt, StoredRelease
from tacit.ledger.draws._runs import LedgerRun, authorise_run
from tacit.ledger.stores._artifacts import keep_payload
from tacit.ledger.stores._opening import Location, open_location, open_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import date, datetime
    from pathlib import Path

    from tacit.accounting import Budget, Cost, Filter, Left, Remaining, Spend
    from tacit.ledger.accounts._blocks import Blocks
    from tacit.ledger.accounts._charges import ChargeRequest
    from tacit.ledger.checks._verification import Verification
    from tacit.ledger.draws._receipts import Entry
    from tacit.ledger.stores._store import ReleaseRow
    from tacit.ledger.stores._writer import Writer


class Ledger:
    """The durable record of every charge; made by `Ledger.open` or `Ledger.memory`.

    Guarantee: a charge is durable before it is acknowledged. It is admitted only if the account and every
    account above it have room for it (checked in one transaction, whoever else charges at the same time), and
    it is never taken back. Over all callers together, what is released against an account stays within its
    budget. Threads may share a ledger; each process opens its own. The threat model is in
    ``docs/explanation/ledger.md``.

    Examples
    --------
    >>> import tacit as tc
    >>> with tc.Ledger.memory() as ledger:
    ...     visits = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=3))
    ...     receipt = ledger.charge("visits", tc.Cost.pure(0.5), who="ana", purpose="monthly report")
    ...     ledger.account("visits").spent.epsilon
    Fraction(1, 2)
    """

    #: What people are told of a ledger that nobody asked for; empty for one that was given.
    kept: str = ""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._log = LedgerReading(writer)
        #: Accounts that were opened for the same source, by account, as far as this process has opened them.
        self.beside: Mapping[str, tuple[str, ...]] = {}

    # Opening ------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        where: Location,
        *,
        key: bytes | Location | None = None,
        witness: Location | None = None,
        create: bool = True,
        wait: float = 10.0,
    ) -> Self:
        """Open the ledger in a file or on a server; make it if it does not exist.

        Parameters
        ----------
        where
            A path (SQLite), a ``postgresql://`` address, or ``":memory:"``.
        key
            The chain's key, or the file that holds it. The file is made on first use, readable only by its
            owner. By default ``<path>.key``, or the file that ``TACIT_LEDGER_KEY_FILE`` names. A ledger on a
            server has no default.
        witness
            The file that keeps the log's end; by default ``<path>.witness``, for a server
            ``<key file>.witness``. It is safer on another disk, where a backup of the ledger does not restore
            it.
        create
            Whether to make a missing ledger.
        wait
            How many seconds to wait for another process that is writing; 0 does not wait.

        Examples
        --------
        >>> import pathlib, tempfile, tacit as tc
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with tc.Ledger.open(pathlib.Path(folder) / "hospital.ledger") as ledger:
        ...         ledger.head.count
        0
        """
        if isinstance(where, str) and where == ":memory:":
            return cls(open_memory())
        seconds = float(rational("wait", wait, zero=True))
        return cls(open_location(where, key=key, witness=witness, create=create, wait=seconds))

    @classmethod
    def memory(cls) -> Self:
        """Open a ledger that lives as long as the process: for notebooks and trials.

        Examples
        --------
        >>> import tacit as tc
        >>> tc.Ledger.memory().name
        ':memory:'
        """
        return cls(open_memory())

    def close(self) -> None:
        """Wait for running operations, then close the store."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.name!r})"

    # State --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Where the ledger is, without any password."""
        return self._writer.store.name

    @property
    def id(self) -> str:
        """The ledger's own name: random, and fixed when the ledger was made."""
        return self._writer.identity.ledger

    @property
    def witness(self) -> Path | None:
        """The file that keeps the log's end, or None."""
        return None if self._writer.witness is None else self._writer.witness.path

    @property
    def sealed(self) -> str | None:
        """Why the ledger refuses every change, or None."""
        self._writer.ensure_open()
        return self._writer.sealed()

    @property
    def refusal(self) -> TacitError | None:
        """The error that every change gets because the log was cut, replaced or changed, or None.

        A cut log is found in constant time when the ledger is opened, a file that was removed or replaced
        afterwards whenever you look. The ledger can still be read, but the totals of an old copy are too low.
        See `Ledger.continue_from_backup`.

        Examples
        --------
        >>> import tacit as tc
        >>> tc.Ledger.memory().refusal is None
        True
        """
        self._writer.ensure_open()
        return self._writer.refusal or self._writer.store.replaced()

    @property
    def head(self) -> Head:
        """The log's end: how many entries it has and the last one's hash; kept elsewhere, it is a witness."""
        with self._log.reading() as reader:
            tip = reader.tip()
        return Head(tip.seq, tip.mac.hex())

    @property
    def missing(self) -> Head | None:
        """The last entry that the ledger's own witness has seen, if the log lacks it; read in constant time.

        A ledger that lacks it accepts no charges. See `Ledger.continue_from_backup`.
        """
        witness_file = self._writer.witness
        seen_head = None if witness_file is None else witness_file.head()
        with self._log.reading() as reader:
            return None if seen_head is None or contains(reader, seen_head) else seen_head

    # Accounts -----------------------------------------------------------------------------------------------

    def account(self, name: str | Account) -> Account:
        """Return an account in its present state, in constant time.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> ledger.account("visits").adjacency
        'add/remove'
        """
        return self._log.account(name)

    def accounts(self) -> list[Account]:
        """Return all accounts in the order in which they were opened.

        Examples
        --------
        >>> import tacit as tc
        >>> tc.Ledger.memory().accounts()
        []
        """
        with self._log.reading() as reader:
            rows = reader.accounts()
        return [Account.from_row(row) for row in rows]

    def remaining(self, account: str | Account, *, block: str | None = None) -> Remaining:
        """Return what is left in an account, in constant time, however long its history is.

        In an account with blocks this is what is left for a question about all of the data; with ``block``,
        for a question about that block alone.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.25))
        >>> ledger.remaining("visits").epsilon
        Fraction(3, 4)
        """
        return self._log.remaining(account, block=block)

    def left(
        self, account: str | Account, cost: Cost | None = None, *, promise: Budget | None = None,
        block: str | None = None,
    ) -> Left:  # fmt: skip
        """Return what is left for questions: one more of a size, *or* how many more like a given one.

        Each is the largest that the account and all above it admit, from the sums by which a charge is
        admitted; they do not add up. ``cost`` and ``promise`` are the given question's, as in `charge`.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger, question = tc.Ledger.memory(), tc.Cost.gaussian(sigma=9, sensitivity=1)
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(1, 1e-6))
        >>> _ = ledger.charge("visits", question, promise=tc.Budget(0.5, 1e-7))
        >>> ledger.left("visits", question, promise=tc.Budget(0.5, 1e-7))
        one more question of up to epsilon 0.5; or 2 more like this one
        """
        return self._log.left(account, cost, promise=promise, block=block)

    def blocks(self, account: str | Account) -> dict[str, Spend]:
        """Return what was charged to each block of an account by itself, the fullest blocks first.

        What concerns all of the data is not included; blocks that were never charged are not listed.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger, days = tc.Ledger.memory(), tc.Blocks("day")
        >>> _ = ledger.create_account("visits", unit="row", budget=tc.Budget(epsilon=1), blocks=days)
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.25), blocks=["monday"])
        >>> _ = ledger.charge("visits", tc.Cost.pure(0.5), blocks=["tuesday"])
        >>> [(day, str(spend)) for day, spend in ledger.blocks("visits").items()]
        [('tuesday', 'epsilon 0.5'), ('monday', 'epsilon 0.25')]
        """
        return self._log.blocks(account)

    def source_label(self, places: Sequence[str]) -> str:
        """Return what an account keeps of where its data is: keyed digests, which reveal no path.

        Whoever lacks the ledger's key learns at most that two accounts have a place in common.
        """
        return self._log.source_label(places)

    def accounts_of_source(self, label: str) -> list[str]:
        """Return the names of the datasets' accounts that were opened for a place in this label."""
        places = set(label.split())
        return [one.name for one in self.accounts() if places & set(one.labels.get("source", "").split())]

    # Charges, draws and runs --------------------------------------------------------------------------------

    def charge(
        self,
        account: str | Account,
        cost: Cost,
        *,
        plan: str | None = None,
        who: str = "",
        purpose: str = "",
        asked: str = "",
        key: str | None = None,
        blocks: Sequence[str] = (),
        promise: Budget | None = None,
    ) -> Receipt:
        """Charge a cost to an account and every account above it, durably, all or none.

        Guarantee: on return the charge is on the disk. A refusal (``budget-exceeded``, ``charge-too-large``,
        ``account-expired``, ...) charges nothing anywhere. The same ``key`` with the same charge returns the
        same receipt and charges nothing; with another charge to the same account it is refused as
        ``key-reused``. Accounts do not disturb each other: two of them may use the same key.

        Parameters
        ----------
        account
            The account that asks.
        cost
            The cost of the plan.
        plan
            Hash of the plan.
        who, purpose, asked
            For the record; ``asked`` is the question in words, which must be public.
        key
            Idempotency key: makes a retry safe.
        blocks
            The blocks of the data that the answer depends on, where the account is divided into blocks; none
            stands for all of the data. An account above that is not divided is charged for all of its data.
        promise
            The epsilon and delta that the plan promises, for budgets that add them up (by default those of
            the cost, if they are finite). The ledger checks that the cost keeps them.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> first = ledger.charge("visits", tc.Cost.pure(0.5), key="report-2026-01")
        >>> ledger.charge("visits", tc.Cost.pure(0.5), key="report-2026-01") == first
        True
        """
        request = read_charge(
            account, cost, plan=plan, who=who, purpose=purpose, key=key, asked=asked, blocks=blocks,
            promise=promise,
        )  # fmt: skip
        return self._writer.run(partial(_charges.charge, request=request), request.keys)

    def draw(
        self,
        account: str | Account,
        cost: Cost,
        *,
        plan: str,
        compute: Callable[[Receipt], bytes | Mapping[str, object]],
        who: str = "",
        purpose: str = "",
        asked: str = "",
        key: str | None = None,
        dataset: str | Account | None = None,
        blocks: Sequence[str] = (),
        version: int | None = None,
        certificate: str = "",
        record: Literal["words", "shape"] = "words",
        promise: Budget | None = None,
    ) -> StoredRelease:
        """Charge, compute, store, return: the only way to a release.

        Guarantee: ``compute`` runs after its charge is durable, at most once for a receipt over all processes
        and crashes, and its result is durable before it is returned. The same plan on the same declared
        version returns the stored release: free for the dataset, charged to each account below it that has
        not paid yet. It then costs what it cost when it was drawn, whatever ``cost`` says. If anything fails
        after the charge, one error without details is raised (``release-failed``) and the charge stays. If
        ``dataset`` is given, an account that is neither that one nor below it is refused, because its charge
        would not reach the dataset's budget; so is an account below it that is another dataset's. ``asked``
        is the question in words, for the record. ``version`` is the declared version of the data (by default
        the latest that the account knows). ``certificate`` is the digest of the certificate that will travel
        with the release: it is recorded with the charge, so that an edited certificate is found. ``record``
        says whether ``asked`` is the question in words or its shape; a dataset that keeps shapes keeps no
        words. ``blocks`` are the blocks that the answer depends on; none stands for all of the data.
        ``promise`` is as in `charge`.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> for _ in range(3):
        ...     release = ledger.draw("visits", tc.Cost.pure(1), plan="p1", compute=lambda _: b"about 40")
        >>> release.payload, ledger.remaining("visits").epsilon
        (b'about 40', Fraction(0, 1))
        """
        request = read_charge(
            account,
            cost,
            plan=read_name("plan", plan),
            who=who,
            purpose=purpose,
            key=key,
            dataset=dataset,
            asked=asked,
            blocks=blocks,
            version=version,
            certificate=certificate,
            record=record,
            promise=promise,
        )
        with self._writer.hold_plan(request.account, request.plan):
            decision = self._authorise(request)
            if decision.stored is not None:
                return StoredRelease(
                    decision.receipt, self._log.checked_payload(decision.stored), fresh=False
                )
            release = self._compute(decision.receipt, compute)
        if release is None:
            raise _refusals.release_failed()
        return self._handed_out(decision.receipt, *release)

    def _authorise(self, request: ChargeRequest) -> DrawDecision:
        """Decide a draw; before somebody pays for a stored artifact, make sure that it can be read."""
        readable = ""
        while True:
            operation = partial(_draws.authorise, request=request, readable=readable)
            decision = self._writer.run(operation, request.keys)
            if isinstance(decision, DrawDecision):
                return decision
            self._log.checked_payload(decision)
            readable = decision.artifact

    def _compute(
        self, receipt: Receipt, compute: Callable[[Receipt], bytes | Mapping[str, object]]
    ) -> tuple[ReleaseRow, bytes] | None:
        """Compute and store; None stands for every failure alike, and no trace of the failure is kept."""
        try:
            return self._keep(receipt.head, read_payload(compute(receipt)))
        except (KeyboardInterrupt, SystemExit, GeneratorExit):  # the caller's, whatever the data is
            raise
        except BaseException:  # noqa: BLE001 - what went wrong may depend on the data, also a panic in Rust
            return None

    def _keep(self, head: Head, payload: bytes) -> tuple[ReleaseRow, bytes]:
        storable = keep_payload(self._writer.store, payload)
        return self._writer.run(partial(_draws.keep_release, head=head, payload=storable)), payload

    def _handed_out(self, receipt: Receipt, row: ReleaseRow, payload: bytes) -> StoredRelease:
        """Return what was stored for a receipt, or what another process had stored before."""
        fresh = row.receipt == receipt.head.count
        return StoredRelease(receipt, payload if fresh else self._log.checked_payload(row), fresh=fresh)

    def claim(self, receipt: Receipt) -> None:
        """Take a receipt's one draw, durably; a second claim is refused as ``spent``.

        `draw` does this itself; call it only if the charge and the computation are separate.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", tc.Cost.pure(0.5))
        >>> ledger.claim(receipt)
        >>> ledger.claim(receipt)
        Traceback (most recent call last):
        tacit.errors.TacitError: receipt 2 pays for one draw; the draw was started, ...
        ...
        """
        self._writer.run(partial(_draws.claim, receipt=read_receipt(receipt).head))

    def store_release(self, receipt: Receipt, payload: bytes | Mapping[str, object]) -> StoredRelease:
        """Store what was drawn for a receipt, durably, and return what may be handed out.

        Guarantee: the first release of a plan stays for ever; if another process stored one in the meantime,
        that one is returned. Another payload for the same receipt is refused as ``spent``.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", tc.Cost.pure(0.5), plan="p1")
        >>> ledger.claim(receipt)
        >>> ledger.store_release(receipt, {"n": 40}).payload
        b'{"n":40}'
        """
        head = read_receipt(receipt).head
        return self._handed_out(receipt, *self._keep(head, read_payload(payload)))

    def run(
        self,
        account: str | Account,
        cost: Cost,
        *,
        plan: str,
        instalments: int,
        who: str = "",
        purpose: str = "",
        asked: str = "",
        key: str | None = None,
        dataset: str | Account | None = None,
        blocks: Sequence[str] = (),
        version: int | None = None,
        certificate: str = "",
        record: Literal["words", "shape"] = "words",
        promise: Budget | None = None,
    ) -> LedgerRun:
        """Charge a run of numbered instalments once, or continue the run of this plan.

        Guarantee: the charge is durable on return. A plan has one run on a declared version of its dataset:
        asking again, after a crash or from another process, charges the dataset nothing and continues where
        the run stopped. Each account below the dataset that has not paid yet is charged what the run cost,
        whatever ``cost`` says.

        Parameters
        ----------
        account, who, purpose, asked, key, dataset, blocks, version, certificate, record, promise
            As in `draw`.
        cost
            The cost of the whole run.
        plan
            Hash of the plan.
        instalments
            How many instalments the run has.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> run = ledger.run("visits", tc.Cost.pure(0.5), plan="daily counts", instalments=365)
        >>> _ = run.draw(lambda number, secret: (b"about 40", secret))
        >>> again = ledger.run("visits", tc.Cost.pure(0.5), plan="daily counts", instalments=365)
        >>> again.next, ledger.remaining("visits").epsilon
        (2, Fraction(1, 2))
        """
        request = replace(
            read_charge(
                account,
                cost,
                plan=read_name("plan", plan),
                who=who,
                purpose=purpose,
                key=key,
                dataset=dataset,
                asked=asked,
                blocks=blocks,
                version=version,
                certificate=certificate,
                record=record,
                promise=promise,
            ),
            parts=count("instalments", instalments, zero=False),
        )
        operation = partial(authorise_run, request=request)
        receipt, entry = self._writer.run(operation, request.keys)
        return LedgerRun(self._log, self._writer, receipt, entry)

    def paid_run(self, account: str | Account, plan: str, *, version: int | None = None) -> LedgerRun | None:
        """Find the run of a plan if this account has paid for it; nothing is charged or recorded.

        Guarantee: as for `paid_release`. None stands for both "there is no such run" and "not paid".

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> ledger.paid_run("visits", "daily counts") is None
        True
        >>> _ = ledger.run("visits", tc.Cost.pure(0.5), plan="daily counts", instalments=365)
        >>> ledger.paid_run("visits", "daily counts").instalments
        365
        """
        payment = self._log.paid_run(account, plan, version)
        return None if payment is None else LedgerRun(self._log, self._writer, *payment)

    # The log ------------------------------------------------------------------------------------------------

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
        return self._log.stored_release(account, plan, version=version)

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
        return self._log.paid_release(account, plan, version=version)

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
        return self._log.keyed_receipt(account, key)

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
        return self._log.entry(number)

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
        return self._log.certified(number)

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
        return self._log.history(account, after=after, limit=limit)

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
        return self._log.filters(account)

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
        return self._log.export()

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
        return self._log.verify(witness)

    # Curation -----------------------------------------------------------------------------------------------

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
        blocks: Blocks | None = None,
        dataset: bool = False,
        record: Literal["words", "shape"] = "words",
    ) -> Account:
        """Open an account, or return the one of that name if every declared fact agrees with it.

        Guarantee: a new session resets nothing. An account of that name with another unit, adjacency, budget,
        parent, limit or expiry is refused with ``account-differs``. A later ``version`` of the data is
        recorded and gets its own stored releases; the budget stays as it is. A new name that differs from the
        name of another account only in case, spacing, encoding or invisible characters is refused.

        Parameters
        ----------
        name
            Name of the account: a dataset's declared name, a project, an analyst.
        budget
            What may be learned in total.
        unit, adjacency
            Who is protected, and what neighbouring means (``"add/remove"`` by default); inherited from the
            parent.
        parent
            The account above, which pays every charge too.
        labels
            Free text for people.
        version
            Declared version of the data.
        per_charge
            The largest single charge.
        expires
            The last day (in UTC) on which charges are accepted, or the moment (with its time zone) after
            which they are not.
        blocks
            A public partition of the data (days, hospitals), whose blocks are charged separately; for the
            adjacency add/remove only. An account below may have the same partition, or none.
        dataset
            Whether this is the own account of a dataset that has a parent. The parent then pays for all
            datasets below it, and releases are stored for each dataset. `tacit.protect` sets it.
        record
            What the log keeps of questions to this dataset: their words, or only their shape, where ``?``
            stands for each constant. `tacit.protect` passes it on. Later sessions can change words to shape,
            not back.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=3))
        >>> ledger.create_account("oncology", parent="visits", budget=tc.Budget(epsilon=1)).unit
        'patient_id'
        """
        operation = partial(
            _decisions.open_account,
            name=read_name("name", name),
            unit=None if unit is None else read_name("unit", unit),
            adjacency=None if adjacency is None else read_name("adjacency", adjacency),
            version=count("version", version, zero=False),
            budget=read_budget("budget", budget),
            parent=None if parent is None else read_account_name(parent),
            labels={} if labels is None else read_labels(labels),
            per_charge=None if per_charge is None else read_budget("per_charge", per_charge),
            expires=None if expires is None else read_expiry("expires", expires),
            blocks=None if blocks is None else read_blocks(blocks),
            dataset=dataset is True,
            record=read_record(record),
        )
        return self._writer.run(operation)

    def grow(self, account: str | Account, budget: Budget, *, statement: str, who: str) -> Account:
        """Raise an account's budget, and record the reason and who decided it.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> grown = ledger.grow("visits", tc.Budget(epsilon=2), statement="board decision 12", who="curator")
        >>> grown.budget == tc.Budget(epsilon=2)
        True
        """
        operation = partial(
            _decisions.grow_budget,
            name=read_account_name(account),
            budget=read_budget("budget", budget),
            statement=read_text("statement", statement, needed=True),
            who=read_text("who", who, needed=True),
        )
        return self._writer.run(operation)

    def refresh(self, account: str | Account, *, statement: str, who: str) -> Account:
        """Start an account's total again from zero, because other people are in the data now.

        The curator states this on record. Guarantee: none for a person who is in the data before and
        after; the curator is responsible for the statement. The accounts above and below keep their totals.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("intake", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.charge("intake", tc.Cost.pure(1))
        >>> fresh = ledger.refresh("intake", statement="new patients, none of the old", who="curator")
        >>> fresh.spent.epsilon
        Fraction(0, 1)
        """
        operation = partial(
            _decisions.refresh_account,
            name=read_account_name(account),
            statement=read_text("statement", statement, needed=True),
            who=read_text("who", who, needed=True),
        )
        return self._writer.run(operation)

    def freeze(self, account: str | Account, *, statement: str, who: str) -> Account:
        """Stop every charge to an account and to the accounts below it, until `unfreeze`.

        Guarantee: once this returns, nothing more is charged or drawn there, whoever asks. What was paid for
        stays readable. The reason and who decided it are recorded.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> ledger.freeze("visits", statement="consent is being checked", who="curator").frozen
        True
        """
        return self._freeze(account, frozen=True, statement=statement, who=who)

    def unfreeze(self, account: str | Account, *, statement: str, who: str) -> Account:
        """Allow charges again, and record the reason and who decided it.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = ledger.freeze("visits", statement="consent is being checked", who="curator")
        >>> ledger.unfreeze("visits", statement="consent is in order", who="curator").frozen
        False
        """
        return self._freeze(account, frozen=False, statement=statement, who=who)

    def _freeze(self, account: str | Account, *, frozen: bool, statement: str, who: str) -> Account:
        operation = partial(
            _decisions.set_frozen,
            name=read_account_name(account),
            frozen=frozen,
            statement=read_text("statement", statement, needed=True),
            who=read_text("who", who, needed=True),
        )
        return self._writer.run(operation)

    def set_expiry(
        self, account: str | Account, expires: date | datetime | None, *, statement: str, who: str
    ) -> Account:
        """Change the last day of an account, and record the reason and who decided it.

        ``expires`` is the last day (in UTC), a moment with its time zone, or None for an account without a
        last day. The day applies to the account and to those below it.

        Examples
        --------
        >>> import datetime, tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> day = datetime.date(2030, 12, 31)
        >>> ledger.set_expiry("visits", day, statement="the approval ends", who="curator").expires.isoformat()
        '2031-01-01T00:00:00+00:00'
        """
        operation = partial(
            _decisions.set_expiry,
            name=read_account_name(account),
            expires=read_expiry("expires", expires),
            statement=read_text("statement", statement, needed=True),
            who=read_text("who", who, needed=True),
        )
        return self._writer.run(operation)

    def continue_from_backup(
        self,
        *,
        statement: str,
        who: str,
        witness: Location | Head | Receipt | tuple[int, str] | Mapping[str, object] | None = None,
        raised: Mapping[str, Budget] | None = None,
        opened: Sequence[str] | None = None,
    ) -> Verification:
        """Continue from an older copy, because the latest one is lost for good; this is recorded.

        Guarantee: nobody learns more than the budgets allow, whatever was charged in the lost entries. Every
        budget counts as fully spent: no account has anything left until the curator raises its budget or
        states that other people are in the data now. An account that is opened later also starts with nothing
        left, because one of that name may have been opened in the lost entries. Releases that were stored
        there are lost. One entry records the gap: the last entry of the copy, the last one that the witness
        has seen, the statement, and who decided. The copy must verify.

        Parameters
        ----------
        statement, who
            The reason, and who decided.
        witness
            What shows that entries are missing, if the ledger's own witness does not: a witness file, a
            `Head`, a `Receipt`, or (count, hash).
        raised
            The budgets that were raised in the lost entries, by account. Name them here: what a budget was
            raised by there may be spent, and raising it again later would grant it twice.
        opened
            The names of the accounts that were opened in the lost entries, if the curator knows them all (an
            empty list if there were none). Accounts of other names then start with their whole budget.

        Examples
        --------
        >>> import pathlib, shutil, tempfile, tacit as tc
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with tc.Ledger.open(folder / "a.ledger") as ledger:
        ...     _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> _ = shutil.copy(folder / "a.ledger", folder / "backup")
        >>> with tc.Ledger.open(folder / "a.ledger") as ledger:
        ...     _ = ledger.charge("visits", tc.Cost.pure(0.5))
        >>> _ = shutil.copy(folder / "backup", folder / "a.ledger")     # the disk broke
        >>> with tc.Ledger.open(folder / "a.ledger") as ledger:
        ...     report = ledger.continue_from_backup(statement="disk broke, backup of May", who="curator")
        ...     print(ledger.remaining("visits"))
        nothing of epsilon 1
        """
        operation = partial(
            _decisions.record_gap,
            witnessed=self._log.lost_head(witness),
            raised={
                read_account_name(name): read_budget("raised", one) for name, one in (raised or {}).items()
            },
            opened=None if opened is None else [read_name("opened", name) for name in opened],
            statement=read_text("statement", statement, needed=True),
            who=read_text("who", who, needed=True),
        )
        writer = self._writer
        writer.store.upgrade(partial(accounts_to_seal, chain=writer.chain, name=self.name))
        with writer.store.snapshot() as reader:
            report = verify(reader, writer.chain, (), proves=False, artifact=writer.store.artifact)
        if not report.ok:
            raise _refusals.tampered(f"{self.name} does not verify: {report.problems[0]}")
        writer.continue_after_loss(operation)
        return self.verify()

    def unseal(self, *, statement: str, who: str) -> Verification:
        """Remove the seal after the disk was checked; only if the ledger verifies, and on record.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> ledger.unseal(statement="disk replaced, file system checked", who="operator").ok
        True
        """
        statement = read_text("statement", statement, needed=True)
        who = read_text("who", who, needed=True)
        report = self.verify()
        if not report.ok:
            raise TacitError(
                "ledger-sealed",
                "the ledger stays sealed, because it does not verify",
                why="; ".join(report.problems[:3]),
                fix=_refusals.RESTORE,
            )
        self._writer.unseal()
        self._writer.run(partial(_decisions.record_unsealing, statement=statement, who=who))
        return report


def open_ledger(given: Ledger | Location | None) -> Ledger:
    """Read a ``ledger=`` argument: a ledger as it is, a location opened, nothing as a new ledger in memory.

    Examples
    --------
    >>> open_ledger(None)
    Ledger(':memory:')
    >>> ledger = Ledger.memory()
    >>> open_ledger(ledger) is ledger
    True
    """
    match given:
        case None:
            return Ledger.memory()
        case Ledger():
            return given
        case str() | os.PathLike():
            return Ledger.open(given)
    raise bad_parameter(
        "ledger", "a Ledger, a path or a postgresql:// address", given, fix=Set(ledger="study.ledger")
    )
