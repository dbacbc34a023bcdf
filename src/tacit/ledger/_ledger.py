"""The class `Ledger`: open it, charge its accounts, draw against them."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

from tacit.errors import bad_parameter
from tacit.exact import rational
from tacit.fixes import Set
from tacit.ledger import _charges, _draws, _refusals
from tacit.ledger._arguments import read_charge, read_name, read_payload, read_receipt
from tacit.ledger._artifacts import keep_payload
from tacit.ledger._draws import DrawDecision
from tacit.ledger._open import Location, open_location, open_memory
from tacit.ledger._receipts import Receipt, StoredRelease
from tacit.ledger._run_operations import LedgerRuns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.accounting import Cost
    from tacit.ledger._accounts import Account
    from tacit.ledger._chain import Head
    from tacit.ledger._charges import ChargeRequest
    from tacit.ledger._rows import ReleaseRow


class Ledger(LedgerRuns):
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
            account, cost, plan=plan, who=who, purpose=purpose, key=key, asked=asked, blocks=blocks
        )
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
        )
        with self._writer.hold_plan(request.account, request.plan):
            decision = self._authorise(request)
            if decision.stored is not None:
                return StoredRelease(decision.receipt, self._checked_payload(decision.stored), fresh=False)
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
            self._checked_payload(decision)
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
        kept = keep_payload(self._writer.store, payload)
        return self._writer.run(partial(_draws.keep_release, head=head, kept=kept)), payload

    def _handed_out(self, receipt: Receipt, row: ReleaseRow, payload: bytes) -> StoredRelease:
        """Return what was stored for a receipt, or what another process had stored before."""
        fresh = row.receipt == receipt.head.count
        return StoredRelease(receipt, payload if fresh else self._checked_payload(row), fresh=fresh)

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
