"""The ledger's operations on runs: charge one, go on with it, find one that is paid for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from tacit.exact import count
from tacit.ledger._accounts import Account
from tacit.ledger._arguments import read_charge, read_name
from tacit.ledger._curation import LedgerCuration
from tacit.ledger._curves import CurveNeeded
from tacit.ledger._instalments import authorise_run
from tacit.ledger._ledger_run import LedgerRun
from tacit.ledger._payments import CommittedEntries, run_of_plan, run_payments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.accounting import Cost


class LedgerRuns(LedgerCuration):
    """The methods of a ledger for runs of numbered instalments."""

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
    ) -> LedgerRun:
        """Charge a run of numbered instalments once, or continue the run of this plan.

        Guarantee: the charge is durable on return. A plan has one run on a declared version of its dataset:
        asking again, after a crash or from another process, charges the dataset nothing and continues where
        the run stopped. Each account below the dataset that has not paid yet is charged what the run cost,
        whatever ``cost`` says.

        Parameters
        ----------
        account, who, purpose, asked, key, dataset, blocks, version, certificate, record
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
            ),
            parts=count("instalments", instalments, zero=False),
        )
        operation = partial(authorise_run, request=request)
        receipt, entry = self._writer.run(operation, request.keys)
        return LedgerRun(self, self._writer, receipt, entry)

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
        while True:
            try:
                return self._paid_run(account, plan, version)
            except CurveNeeded as needed:
                curve = needed
            curve.compute()

    def _paid_run(self, account: str | Account, plan: str, version: int | None) -> LedgerRun | None:
        declared = account.version if version is None and isinstance(account, Account) else version
        asked = self.account(account)
        with self._reading() as reader:
            entries = CommittedEntries(reader)
            run = run_of_plan(entries, asked.root, declared or asked.version, read_name("plan", plan))
            if run is None:
                return None
            receipt = self._proven_receipt(reader, asked, run, run_payments(entries, run))
        return None if receipt is None else LedgerRun(self, self._writer, receipt, run)
