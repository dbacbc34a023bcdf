"""The ledger: open it, keep accounts in it, charge them, draw against them, check it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from tacit.errors import TacitError
from tacit.exact import count, rational
from tacit.ledger import acts, doors, draws, orders
from tacit.ledger.opening import Place, open_memory, open_place
from tacit.ledger.reading import Readable
from tacit.ledger.receipts import Receipt, StoredRelease

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date, datetime

    from tacit.accounting import Budget, Cost
    from tacit.ledger.accounts import Account
    from tacit.ledger.store import ReleaseRow
    from tacit.ledger.verify import Verification

__all__ = ["Ledger"]


class Ledger(Readable):
    """The durable record of every charge; made by `Ledger.open` or `Ledger.memory`.

    Guarantee: a charge is durable before it is acknowledged, is admitted only if every account of the lineage
    has room for it (one transaction, whoever else charges at the same time), and is never taken back. Over
    all callers together, what is released against an account stays within its budget. Threads may share a
    ledger; processes each open it. The threat model is in ``docs/explanation/ledger.md``.

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
            The chain's key, or the file that holds it; made there on first use, readable by its owner only.
            By default ``<path>.key``, or the file that ``TACIT_LEDGER_KEY_FILE`` names. A server needs one
            named.
        witness
            The file that keeps the log's end; by default ``<path>.witness``, for a server
            ``<key file>.witness``. Better on another disk, where a backup of the ledger does not restore it.
        create
            Whether a missing ledger is made.
        wait
            How many seconds to wait for another process that is writing.

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
        return cls(open_place(where, key=key, witness=witness, create=create, wait=seconds))

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
        parent, limit or last day is refused with ``account-differs``. A later ``version`` of the data is
        recorded, tells stored releases apart, and leaves the budget as it is.

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
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=3))
        >>> ledger.create_account("oncology", parent="visits", budget=tc.Budget(epsilon=1)).unit
        'patient_id'
        """
        act = partial(
            acts.open_account,
            name=doors.name_of("name", name),
            unit=None if unit is None else doors.name_of("unit", unit),
            adjacency=None if adjacency is None else doors.name_of("adjacency", adjacency),
            version=count("version", version, zero=False),
            budget=orders.budget_at("budget", budget),
            parent=None if parent is None else orders.name(parent),
            labels=doors.labels_of(labels),
            per_charge=None if per_charge is None else orders.budget_at("per_charge", per_charge),
            expires=doors.instant("expires", expires),
        )
        return self._desk.do(act)

    def grow(self, account: str | Account, budget: Budget, *, statement: str, who: str) -> Account:
        """Raise an account's budget by an act that is recorded with its reason and its author.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> grown = ledger.grow("visits", tc.Budget(epsilon=2), statement="board decision 12", who="curator")
        >>> grown.budget == tc.Budget(epsilon=2)
        True
        """
        act = partial(
            acts.grow,
            name=orders.name(account),
            budget=orders.budget_at("budget", budget),
            statement=doors.prose("statement", statement, needed=True),
            who=doors.prose("who", who, needed=True),
        )
        return self._desk.do(act)

    def refresh(self, account: str | Account, *, statement: str, who: str) -> Account:
        """Start an account's total anew, on the curator's recorded word that other people are in the data.

        Guarantee: none for a person who is in the data before and after; the statement is what the curator
        answers for. Accounts above and below keep their totals.

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
        act = partial(
            acts.refresh,
            name=orders.name(account),
            statement=doors.prose("statement", statement, needed=True),
            who=doors.prose("who", who, needed=True),
        )
        return self._desk.do(act)

    # charges and draws

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
    ) -> Receipt:
        """Charge a cost to an account and every account above it, durably, all or none.

        Guarantee: on return the charge is on the disk. A refusal (``budget-exceeded``, ``charge-too-large``,
        ``account-expired``, ...) charges nothing anywhere. The same ``key`` with the same charge returns the
        same receipt and charges nothing; with another one it is refused as ``key-reused``.

        Parameters
        ----------
        account
            The account that asks.
        cost
            What the plan takes.
        plan
            Hash of the plan.
        who, purpose, asked
            For the record; ``asked`` is the question in words, which must be public.
        key
            Idempotency key: makes a retry safe.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> first = ledger.charge("visits", tc.Cost.pure(0.5), key="report-2026-01")
        >>> ledger.charge("visits", tc.Cost.pure(0.5), key="report-2026-01") == first
        True
        """
        order = orders.order_of(account, cost, plan=plan, who=who, purpose=purpose, key=key, asked=asked)
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
        asked: str = "",
        key: str | None = None,
        dataset: str | Account | None = None,
    ) -> StoredRelease:
        """Charge, compute, store, return: the one way to a release.

        Guarantee: ``compute`` runs after its charge is durable, at most once for a receipt over all processes
        and crashes, and what it returns is durable before it is returned. The same plan on the same declared
        version returns the stored release: free for the dataset, charged to each account below it that has
        not paid yet. If anything fails after the charge, one opaque error is raised (``release-failed``) and
        the charge stays. With ``dataset`` named, an account that is neither that one nor below it is refused:
        its charge would not reach the dataset's budget. ``asked`` is the question in words, for the record.

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
        order = orders.order_of(
            account,
            cost,
            plan=doors.token("plan", plan),
            who=who,
            purpose=purpose,
            key=key,
            dataset=dataset,
            asked=asked,
        )
        with self._desk.turn((self.account(order.account).root, order.plan)):
            verdict = self._desk.do(partial(draws.authorise, order=order), order.key)
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
            payload = orders.payload_of(compute(receipt))
            return self._desk.do(partial(draws.keep_release, head=receipt.head, payload=payload))
        except Exception:  # noqa: BLE001 - what went wrong may depend on the data
            return None

    def claim(self, receipt: Receipt) -> None:
        """Take a receipt's one draw, durably; a second time is refused as ``spent``.

        `draw` does this by itself; call it where charge and computation are apart.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
        >>> _ = ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> receipt = ledger.charge("visits", tc.Cost.pure(0.5))
        >>> ledger.claim(receipt)
        >>> ledger.claim(receipt)
        Traceback (most recent call last):
        tacit.errors.TacitError: the one draw of receipt 2 is taken and no release is stored for it
        ...
        """
        self._desk.do(partial(draws.claim, receipt=orders.receipt_at(receipt).head))

    def store_release(self, receipt: Receipt, payload: bytes | Mapping[str, object]) -> StoredRelease:
        """Store what was drawn for a receipt, durably, and return what is to be handed out.

        Guarantee: the first release of a plan stays for ever; if another process stored one meanwhile, that
        one is returned. Another payload for the same receipt is refused as ``spent``.

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
        head = orders.receipt_at(receipt).head
        row = self._desk.do(partial(draws.keep_release, head=head, payload=orders.payload_of(payload)))
        return StoredRelease(receipt, row.payload, fresh=row.receipt == head.count)

    def unseal(self, *, statement: str, who: str) -> Verification:
        """Take the seal away after the disk was checked: only if the ledger verifies; the act is recorded.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger = tc.Ledger.memory()
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
