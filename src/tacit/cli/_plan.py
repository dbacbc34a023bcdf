"""The ``tacit plan`` command: a question's cost and expected error, without touching the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli import _question as question
from tacit.cli._app import app
from tacit.cli._fact_options import budget_text
from tacit.cli._kept_budget import kept_budget, times, what_helps
from tacit.cli._output import JsonOption, say, show_json

if TYPE_CHECKING:
    from tacit.core import AnswerTable, Plan


@app.command()
def plan(
    sql: question.SqlArgument,
    epsilon: question.EpsilonOption = None,
    delta: question.DeltaOption = 0,
    rho: question.RhoOption = None,
    within: question.WithinOption = None,
    confidence: question.ConfidenceOption = 0.95,
    size: question.SizeOption = None,
    keys: question.KeysOption = None,
    limits: question.LimitsOption = None,
    config: question.ConfigOption = Path("tacit.toml"),
    dataset: question.DatasetOption = None,
    engine: question.EngineOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a question's cost, its likely error, and what is left in the ledger. Charges nothing."""
    from tacit.core import plan_text
    from tacit.ledger import Ledger

    declared, name = question.declared_dataset(config, dataset, sql, engine)
    price = question.Price(epsilon, delta, rho, within, confidence, size, limits or ())
    with Ledger.memory() as ledger:
        opened = question.alone(declared, name).dataset(name, ledger=ledger)
        made = price.plan(opened, sql, question.public_keys(declared, name, keys))
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
        "promised": {name: float(value) for name, value in made.promised.items()},
        "columns": list(made.forecast),
        "facts": dict(made.facts),
        "mechanisms": [dict(one) for one in made.mechanisms],
        "confidence": float(made.confidence),
        "sql": list(made.sql),
        "hash": made.hash,
    }
