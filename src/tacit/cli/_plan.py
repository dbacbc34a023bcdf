"""Prices before they are paid: ``tacit plan`` for one question, ``tacit budget-plan`` for a year of reports.

Neither touches the data. ``tacit plan`` reads what the ledger has left, and changes nothing in it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import _query as question
from tacit.cli._app import app
from tacit.cli._fixes import in_words_of_the_command
from tacit.cli._options import budget_text, with_options
from tacit.cli._output import (
    JsonOption,
    PlotOption,
    amount_facts,
    plan_facts,
    printable,
    say,
    show_json,
    write_figures,
)
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.report import short_percent

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tacit.accounting import Budget, Remaining
    from tacit.core import AnswerTable, BudgetSchedule, Plan
    from tacit.ledger import Account, Ledger
    from tacit.tables import Config, TableDataset


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
    afterwards
        What it has left after the plan, in words, if it and the accounts above it can pay for it.
    """

    account: Account | None = None
    left: Remaining | None = None
    words: str = ""
    fits: int | None = None
    stored: bool = False
    fix: str = ""
    trouble: str = ""
    afterwards: str = ""

    def lines(self) -> list[str]:
        """Return what a person should know before asking."""
        lines = [f"left now{self.words}"] if self.account is not None else []
        if self.stored:
            lines.append("this answer is stored: asking again is free")
        elif self.afterwards:
            lines.append(f"left afterwards: {self.afterwards}")
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
            "afterwards": self.afterwards or None,
        }


def times(count: int) -> str:
    """Return how often a budget can pay, in words.

    Examples
    --------
    >>> times(1), times(3000)
    ('once', '3,000 times, one release after another')
    """
    return "once" if count == 1 else f"{count:,} times, one release after another"


def what_helps(account: Account, plan: Plan[AnswerTable]) -> str:
    """Return what helps if an account cannot pay for a plan; empty if it can."""
    try:
        account.filter.after(account.filter.spend_of(plan.cost, plan.promise))
    except TacitError as refusal:
        return str(in_words_of_the_command(refusal).fix)
    return ""


def kept_budget(declared: Config, name: str, budget: Budget, plan: Plan[AnswerTable]) -> KeptBudget:
    """Read what the declared ledger has left for a plan; a ledger that is not there is not made.

    Parameters
    ----------
    declared, name, budget
        The config, the dataset, and the budget that the config declares for it.
    plan
        The plan.
    """
    from tacit.ledger import Ledger

    where = declared.ledger
    if where is None or ("://" not in where and not Path(where).exists()):
        return KeptBudget()
    try:
        with Ledger.open(where, create=False) as ledger:
            account_names = {account.name for account in ledger.accounts()}
            payer = name if name in account_names else str(declared.datasets[name].get("parent", ""))
            return _read(ledger, payer, name, budget, plan) if payer in account_names else KeptBudget()
    except TacitError as refusal:
        return KeptBudget(trouble=f"what is left is not known: {refusal.what}")


def _read(ledger: Ledger, payer: str, name: str, budget: Budget, plan: Plan[AnswerTable]) -> KeptBudget:
    """Read the account of the dataset, or the one above it while the dataset has none."""
    from tacit.cli._query import left_in_words
    from tacit.core import members_of

    [member] = members_of(plan)
    account, is_own = ledger.account(payer), payer == name
    fits = None if member.blocks else question.more_like_it(ledger, payer, plan)
    remaining, words = left_in_words(ledger, payer, member.blocks if is_own else (), fits)
    stored = is_own and ledger.paid_release(name, plan.hash, version=member.identity.version) is not None
    trouble = _trouble(ledger, account, budget if is_own else account.budget)
    levels = [account]
    while levels[-1].parent is not None:
        levels.append(ledger.account(levels[-1].parent))
    fix = next(filter(None, (what_helps(level, plan) for level in levels)), "")
    words = words if is_own else f" of {printable(payer)}{words}"
    afterwards = "" if member.blocks else _afterwards(levels, plan)
    return KeptBudget(account, remaining, words, fits, stored, fix, trouble, afterwards)


def _afterwards(levels: list[Account], plan: Plan[AnswerTable]) -> str:
    """Return what all accounts that pay have left after a plan; empty if one of them cannot pay."""
    from tacit.accounting import least_left

    cost, promise = plan.cost, plan.promise
    charged = [one.filter.charged(one.filter.spend_of(cost, promise), cost.fits) for one in levels]
    after = [filter_ for filter_ in charged if filter_ is not None]
    return str(least_left([one.left(cost, promise) for one in after])) if len(after) == len(levels) else ""


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


@app.command()
@with_options
def plan(
    sql: question.SqlArgument, price: question.Price, place: question.Declarations, *,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show a question's cost, its likely error, and what is left in the ledger. Charges nothing."""
    from tacit.ledger import Ledger

    declared, name = place.read(sql)
    with Ledger.memory() as ledger:
        dataset = question.alone(declared, name).dataset(name, ledger=ledger)
        planned = price.plan(dataset, sql, question.public_keys(declared, name, price.keys))
        account = ledger.account(name)
        if not as_json:
            show_price(planned, declared, account)
            return
        fits, facts = question.more_like_it(ledger, name, planned), _facts(planned)
    kept_in_ledger = kept_budget(declared, name, account.budget, planned)
    show_json({**facts, "fits": fits, **kept_in_ledger.to_json()})


def show_price(planned: Plan[AnswerTable], declared: Config, account: Account) -> None:
    """Show a plan, and how often what is left can pay for it.

    Parameters
    ----------
    planned, declared
        The plan and the config that declares its dataset.
    account
        The account that the dataset gets from that config, in a ledger in memory.
    """
    from tacit.core import plan_text

    say(plan_text(planned, left=False))
    kept_in_ledger = kept_budget(declared, account.name, account.budget, planned)
    if kept_in_ledger.lines():
        say(*kept_in_ledger.lines())
        return
    total, help_ = budget_text(account.budget), what_helps(account, planned)
    if help_:
        say(f"this is more than the whole budget ({total}), so the budget cannot pay for it: {help_}")
    else:
        fits = account.filter.how_many(planned.cost, planned.promise)
        say(f"a budget of {total} can pay for this plan {times(fits)}")


def price_in_words(
    planned: Plan[AnswerTable], cost: str, account: Account, kept: KeptBudget, unknown: Collection[str]
) -> list[str]:
    """Say in plain words what a plan costs, what is left afterwards, and how exact it is.

    Parameters
    ----------
    planned, cost
        The plan, and its cost in words.
    account
        The account that the dataset gets from its config, in a ledger in memory.
    kept
        What the ledger has left.
    unknown
        The columns whose range the plan finds: their error follows from it.
    """
    afterwards = kept.afterwards or ("" if kept.account else _afterwards([account], planned))
    lines = [f"cost: {cost}{f'; left afterwards: {afterwards}' if afterwards else ''}"]
    if kept.trouble:
        lines.append(kept.trouble)
    sure = short_percent(float(planned.confidence))
    for column in planned.forecast:
        if column.column in unknown:
            error = "known only with the answer: it follows from the range that is found"
        elif column.error is not None:
            error = f"+/- {column.error:.3g}, with {sure} confidence, from the noise"
        else:
            error = column.note
        lines.append(f"error of {printable(column.column)}: {error}")
        if column.caution:
            lines.append(f"no number of {printable(column.column)} for small groups: {column.caution}")
    about_the_range = dict(planned.facts).get("bounds")
    return [*lines, *([f"range: {about_the_range}"] if unknown and about_the_range else [])]


def _facts(plan: Plan[AnswerTable]) -> dict[str, object]:
    return {
        "dataset": plan.to_json()["dataset"],
        **plan_facts(plan),
        "confidence": float(plan.confidence),
        "sql": list(plan.sql),
    }


_OF_A_FILE = ("budget", "report")
_OF_SQL = ("sql", "keys", "limits")
_EXAMPLE = '[[report]]\nname = "stays"\nsql = "SELECT COUNT(*) AS n FROM visits"\nwithin = 20\ntimes = 12'
ReportsArgument = Annotated[
    Path, typer.Argument(metavar="REPORTS", help="A TOML file with a [[report]] for each report.")
]


@app.command("budget-plan")
@with_options
def budget_plan(
    reports: ReportsArgument,
    place: question.Declarations,
    *,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which of a year's reports the budget pays for, and what the others would need.

    Touches neither data nor ledger. Exits with status 1 if not everything fits.
    """
    from tacit.ledger import Ledger

    document = _read_file(reports)
    reports_listed = document.get("report", [])
    if (
        not isinstance(reports_listed, list)
        or not reports_listed
        or not all(isinstance(one, dict) for one in reports_listed)
    ):
        raise _unreadable(reports, "it has no [[report]]")
    first_sql = str(reports_listed[0].get("sql", ""))
    declared, name = place.read(first_sql)
    with Ledger.memory() as ledger:
        dataset = question.alone(declared, name).dataset(name, ledger=ledger)
        schedule = _schedule(
            [_asked(one, dataset, reports) for one in reports_listed], document.get("budget"), dataset
        )
        if plot is not None:
            write_figures(plot, schedule)
        _show(schedule, as_json=as_json)
    if not schedule.fits:
        raise typer.Exit(1)


def _show(schedule: BudgetSchedule, *, as_json: bool) -> None:
    if as_json:
        show_json({"fits": schedule.fits, "reports": schedule.records(), "advice": list(schedule.advice)})
    else:
        say(printable_lines(schedule.report().text()))


def printable_lines(text: str) -> str:
    """Show what others wrote line by line, without letting it move the cursor."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _schedule(reports: list[dict[str, Any]], budget: object, dataset: TableDataset) -> BudgetSchedule:
    from tacit.core import budget_plan as planned

    return planned(reports, dataset.budget if budget is None else _budget(budget))


def _budget(document: object) -> Budget:
    from tacit.accounting import Budget

    if not isinstance(document, dict) or not set(document) <= {"epsilon", "delta", "rho"}:
        raise TacitError(
            "bad-parameter",
            "the budget of the reports has other parts than epsilon, delta and rho",
            fix="budget = {epsilon = 3, delta = 1e-6}",
        )
    return Budget(document.get("epsilon"), document.get("delta", 0), rho=document.get("rho"))


def _asked(report: Mapping[str, Any], dataset: TableDataset, file: Path) -> dict[str, Any]:
    """Return a report of the file with its SQL as a question."""
    if not isinstance(report.get("sql"), str):
        raise _unreadable(file, f"the report {printable(str(report.get('name', '')))!r} has no sql")
    question = dataset.sql(report["sql"], keys=report.get("keys"), limits=report.get("limits"))
    if "question" in report:
        raise _unreadable(file, "a report in a file has sql, not a question")
    return {**{name: value for name, value in report.items() if name not in _OF_SQL}, "question": question}


def _read_file(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise _unreadable(path, "the file does not exist or cannot be opened") from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from None
    for name in document:
        if name not in _OF_A_FILE:
            raise TacitError(
                "bad-parameter",
                f"{path.name} has a part {name!r} that Tacit does not know",
                fix=Choose(_OF_A_FILE, given=name),
            )
    return document


def _unreadable(path: Path, why: str) -> TacitError:
    return TacitError(
        "bad-parameter", f"{path.name} cannot be read as a list of reports", why=why, fix=_EXAMPLE
    )
