"""The ``tacit plan`` command: a question's cost and expected error, without touching the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli import _question as question
from tacit.cli._app import app
from tacit.cli._fact_options import budget_text
from tacit.cli._fixes import in_words_of_the_command
from tacit.cli._output import JsonOption, say, show_json
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.core import AnswerTable, Plan

__all__ = ["plan"]


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
    """Show what a question will cost and how far off its answer may be. Touches neither data nor ledger."""
    from tacit.core import plan_text
    from tacit.ledger import Ledger

    declared, name = question.declared_dataset(config, dataset, sql, engine)
    price = question.Price(epsilon, delta, rho, within, confidence, size, limits or ())
    with Ledger.memory() as ledger:
        opened = question.alone(declared, name).dataset(name, ledger=ledger)
        made = price.plan(opened, sql, question.public_keys(declared, name, keys))
        account, fits = ledger.account(name), question.more_like_it(ledger, name, made.cost)
    if as_json:
        show_json({**_facts(made), "fits": fits})
        return
    say(plan_text(made, left=False))
    if fits:
        times = "once" if fits == 1 else f"{fits:,} times, one release after another"
        say(f"a budget of {budget_text(account.budget)} can pay for this plan {times}")
        return
    try:
        account.filter.after(account.filter.spend_of(made.cost))
    except TacitError as refusal:
        fix = in_words_of_the_command(refusal).fix
        whole = budget_text(account.budget)
        say(f"this is more than the whole budget ({whole}), so the budget cannot pay for it: {fix}")


def _facts(made: Plan[AnswerTable]) -> dict[str, object]:
    return {
        "dataset": made.to_json()["dataset"],
        "promised": {name: float(value) for name, value in made.promised.items()},
        "columns": list(made.forecast),
        "facts": dict(made.facts),
        "mechanisms": [dict(one) for one in made.mechanisms],
        "confidence": made.confidence,
        "sql": list(made.sql),
        "hash": made.hash,
    }
