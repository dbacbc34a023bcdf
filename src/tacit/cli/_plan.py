"""The ``tacit plan`` command: a question's cost and expected error, without touching the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.cli import _question as question
from tacit.cli._app import app
from tacit.cli._fact_options import budget_text
from tacit.cli._kept_budget import kept_budget, times, what_helps
from tacit.cli._output import JsonOption, plan_facts, say, show_json
from tacit.cli._shared_options import with_options

if TYPE_CHECKING:
    from tacit.core import AnswerTable, Plan


@app.command()
@with_options
def plan(
    sql: question.SqlArgument, price: question.Price, place: question.Declarations, *,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show a question's cost, its likely error, and what is left in the ledger. Charges nothing."""
    from tacit.core import plan_text
    from tacit.ledger import Ledger

    declared, name = place.read(sql)
    with Ledger.memory() as ledger:
        opened = question.alone(declared, name).dataset(name, ledger=ledger)
        made = price.plan(opened, sql, question.public_keys(declared, name, price.keys))
        account, fits = ledger.account(name), question.more_like_it(ledger, name, made.cost)
    kept = kept_budget(declared, name, account.budget, made)
    if as_json:
        show_json({**_facts(made), "fits": fits, **kept.to_json()})
        return
    say(plan_text(made, left=False))
    if kept.lines():
        say(*kept.lines())
    elif fits:
        say(f"a budget of {budget_text(account.budget)} can pay for this plan {times(fits)}")
    else:
        whole, help_ = budget_text(account.budget), what_helps(account, made)
        say(f"this is more than the whole budget ({whole}), so the budget cannot pay for it: {help_}")


def _facts(made: Plan[AnswerTable]) -> dict[str, object]:
    return {
        "dataset": made.to_json()["dataset"],
        **plan_facts(made),
        "confidence": float(made.confidence),
        "sql": list(made.sql),
    }
