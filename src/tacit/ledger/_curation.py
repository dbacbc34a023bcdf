"""The ledger's curation: how the curator opens accounts, raises budgets, restarts totals, removes a seal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from tacit.errors import TacitError
from tacit.exact import count
from tacit.ledger import _account_operations, _recovery, _refusals, _restrictions
from tacit.ledger._arguments import (
    read_account_name,
    read_blocks,
    read_budget,
    read_expiry,
    read_labels,
    read_name,
    read_record,
    read_text,
)
from tacit.ledger._queries import LedgerQueries
from tacit.ledger._verification import accounts_to_seal, verify
from tacit.ledger._witness import contains, read_head

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime

    from tacit.accounting import Budget
    from tacit.ledger._accounts import Account
    from tacit.ledger._blocks import Blocks
    from tacit.ledger._chain import Head
    from tacit.ledger._open import Location
    from tacit.ledger._receipts import Receipt
    from tacit.ledger._verification import Verification


class LedgerCuration(LedgerQueries):
    """The methods of a ledger for its curator; each is recorded in the log."""

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
            _account_operations.open_account,
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
            _account_operations.grow_budget,
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
            _account_operations.refresh_account,
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
            _restrictions.set_frozen,
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
            _restrictions.set_expiry,
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
            _recovery.record_gap,
            seen=self._lost_head(witness),
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

    def _lost_head(self, witness: object) -> Head | None:
        """Return the last entry that somebody has seen and that is missing here; None if nobody knows it."""
        writer = self._writer
        writer.ensure_open()
        refusal = writer.refusal
        if refusal is not None and refusal.code != "ledger-rolled-back":
            raise refusal
        own = None if writer.witness is None else writer.witness.head()
        given = None if witness is None else read_head(witness, self.id)
        heads = [head for head in (own, given) if head is not None]
        with self._reading() as reader:
            found = [head for head in heads if not contains(reader, head)]
        if refusal is None and not found:
            raise TacitError(
                "bad-parameter",
                f"nothing shows that {self.name} lacks entries",
                why="it contains everything that its witness and you have seen",
                fix="name a witness file, or a receipt, from the lost entries; or continue without this step",
            )
        return max(found, default=None)

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
        self._writer.run(partial(_account_operations.record_unsealing, statement=statement, who=who))
        return report
