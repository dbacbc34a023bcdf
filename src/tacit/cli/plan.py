"""``tacit plan``: what a question will cost and how far off the answer may be; touches no data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli import asking
from tacit.cli.app import app
from tacit.cli.budget import told
from tacit.cli.output import JsonFlag, say, show_json
from tacit.cli.refusals import in_words_of_the_command
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.core import Plan

__all__ = ["plan"]


@app.command()
def plan(
    sql: asking.Sql,
    epsilon: asking.Epsilon = None,
    delta: asking.Delta = 0,
    rho: asking.Rho = None,
    within: asking.Within = None,
    confidence: asking.Confidence = 0.95,
    size: asking.Size = None,
    keys: asking.Keys = None,
    config: asking.ConfigFile = Path("tacit.toml"),
    dataset: asking.DatasetName = None,
    *,
    as_json: JsonFlag = False,
) -> None:
    """Say what a question will cost and how far off its answer may be. Touches neither data nor ledger."""
    declared, name = asking.declarations(config, dataset, sql)
    opened = asking.in_memory(declared, name)
    made = asking.Price(epsilon, delta, rho, within, confidence, size).plan(
        opened, sql, asking.public_keys(declared, name, keys)
    )
    if as_json:
        show_json(_facts(made))
        return
    say(repr(made))
    try:
        opened.ledger.account(name).filter.after(made.cost.spend)
    except TacitError as refusal:
        whole = told(opened.ledger.account(name).budget)
        fix = str(in_words_of_the_command(refusal).fix)
        say(f"more than the whole budget ({whole}), so no query would pay for it: {fix}")


def _facts(made: Plan) -> dict[str, object]:
    return {
        "dataset": dict(made.identity.document()),
        "promised": {name: float(value) for name, value in made.promised.items()},
        "columns": list(made.columns),
        "facts": dict(made.facts),
        "mechanisms": [dict(one) for one in made.mechanisms],
        "confidence": made.confidence,
        "sql": list(made.sql),
        "hash": made.hash,
    }
