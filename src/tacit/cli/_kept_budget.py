"""What the ledger has left for a plan: read for ``tacit plan``, which changes nothing in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli import _question as question
from tacit.cli._fact_options import budget_text
from tacit.cli._fixes import in_words_of_the_command
from tacit.cli._output import amount_facts, printable
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.accounting import Budget, Remaining
    from tacit.core import AnswerTable, Plan
    from tacit.ledger import Account, Ledger
    from tacit.tables import Config


@dataclass(frozen=True, slots=True)
class KeptBudget:
    """What a ledger says about the account of a plan.

    Parameters
    ----------
    account
        The dataset's account; None if no question has opened it yet.
    left
        What is left of it, and in words, also of the accounts above it.
    fits
        How many such plans it and the accounts above it can still pay for; None if blocks pay.
    stored
        Whether the answer is stored, so that asking again is free.
    fix
        What helps if the plan does not fit into what is left.
    trouble
        Why the ledger could not be read, or would refuse the plan.
    """

    account: Account | None = None
    left: Remaining | None = None
    words: str = ""
    fits: int | None = None
    stored: bool = False
    fix: str = ""
    trouble: str = ""

    def lines(self) -> list[str]:
        """Return what a person should know before asking."""
        lines = [f"left now{self.words}"] if self.account is not None else []
        if self.stored:
            lines.append("this answer is stored: asking again is free")
        elif self.fits:
            lines.append(f"enough for this plan {times(self.fits)}")
        elif self.fits == 0 and not self.trouble:
            lines.append(
                f"this is more than what is left, so the budget cannot pay for this plan now: {self.fix}"
            )
        return [*lines, *([self.trouble] if self.trouble else [])]

    def to_json(self) -> dict[str, object]:
        """Return the same for programs."""
        return {
            "left": None if self.left is None else amount_facts(self.left),
            "fits_now": self.fits,
            "stored": self.stored,
            "trouble": self.trouble or None,
        }


def times(count: int) -> str:
    """Return how often a budget can pay, in words.

    Examples
    --------
    >>> times(1), times(3000)
    ('once', '3,000 times, one release after another')
    """
    return "once" if count == 1 else f"{count:,} times, one release after another"


def what_helps(account: Account, made: Plan[AnswerTable]) -> str:
    """Return what helps if an account cannot pay for a plan; empty if it can."""
    try:
        account.filter.after(account.filter.spend_of(made.cost))
    except TacitError as refusal:
        return str(in_words_of_the_command(refusal).fix)
    return ""


def kept_budget(declared: Config, name: str, budget: Budget, made: Plan[AnswerTable]) -> KeptBudget:
    """Read what the declared ledger has left for a plan; a ledger that is not there is not made.

    Parameters
    ----------
    declared, name, budget
        The config, the dataset, and the budget that the config declares for it.
    made
        The plan.
    """
    from tacit.ledger import Ledger

    where = declared.ledger
    if where is None or ("://" not in where and not Path(where).exists()):
        return KeptBudget()
    try:
        with Ledger.open(where, create=False) as ledger:
            known = {account.name for account in ledger.accounts()}
            payer = name if name in known else str(declared.datasets[name].get("parent", ""))
            return _read(ledger, payer, name, budget, made) if payer in known else KeptBudget()
    except TacitError as refusal:
        return KeptBudget(trouble=f"what is left is not known: {refusal.what}")


def _read(ledger: Ledger, payer: str, name: str, budget: Budget, made: Plan[AnswerTable]) -> KeptBudget:
    """Read the account of the dataset, or the one above it while the dataset has none."""
    from tacit.cli._query import left_in_words
    from tacit.core import members_of

    [member] = members_of(made)
    account, own = ledger.account(payer), payer == name
    left, words = left_in_words(ledger, payer, member.blocks if own else ())
    fits = None if member.blocks else question.more_like_it(ledger, payer, made.cost)
    stored = own and ledger.paid_release(name, made.hash, version=member.identity.version) is not None
    trouble = _trouble(ledger, account, budget if own else account.budget)
    levels = [account]
    while levels[-1].parent is not None:
        levels.append(ledger.account(levels[-1].parent))
    fix = next(filter(None, (what_helps(level, made) for level in levels)), "")
    words = words if own else f" of {printable(payer)}{words}"
    return KeptBudget(account, left, words, fits, stored, fix, trouble)


def _trouble(ledger: Ledger, account: Account, declared: Budget) -> str:
    """Return why the ledger would refuse every plan of this dataset now; empty if it would not."""
    if account.frozen:
        return f"account {printable(account.name)} is frozen, so nothing can be charged to it"
    if ledger.refusal is not None:
        return f"the ledger accepts no charges: {printable(ledger.refusal.what)}"
    if ledger.sealed is not None:
        return f"the ledger is sealed, so nothing can be charged: {printable(ledger.sealed)}"
    if declared != account.budget:
        return (
            f"the ledger has a budget of {budget_text(account.budget)} for this dataset, but the config "
            f"declares {budget_text(declared)}; tacit query refuses until they agree"
        )
    return ""
