"""The ``tacit synth`` command: invented rows that agree with measured tables, with a price first."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import _query as question
from tacit.cli._app import app
from tacit.cli._ledger import check_first_charge, find_account
from tacit.cli._options import Total, toml_value, with_options
from tacit.cli._output import JsonOption, OutputFiles, amount_facts, say, show_json, typed
from tacit.cli._query import Payer
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.core import Plan
    from tacit.tables import Config, TableDataset

_SynthColumns = Annotated[str, typer.Argument(metavar="COLUMNS", help="The columns: age,sex,job.")]
_SynthBins = Annotated[
    list[str] | None,
    typer.Option("--bins", help="age=20 (equal cells) or age=0:18:65:100 (cuts); may be repeated."),
]
_SynthKeep = Annotated[
    list[str] | None, typer.Option("--keep", help="age,sex: a table that is measured first; may be repeated.")
]
_SynthNever = Annotated[
    list[str] | None,
    typer.Option("--never", help="sex=M,pregnant=yes: a combination that cannot occur; may be repeated."),
]
_SynthMethod = Annotated[str, typer.Option("--method", help="auto, aim, mst or tables.")]
_SynthSize = Annotated[int, typer.Option("--size", help="The most cells of the model.")]
_SynthRows = Annotated[
    int | None, typer.Option("--rows", help="How many rows to write; by default the noisy total.")
]
_SynthPlan = Annotated[
    bool, typer.Option("--plan", help="Show the price and what is measured; charge nothing.")
]


@app.command()
@with_options
def synth(
    columns: _SynthColumns, total: Total, files: OutputFiles, payer: Payer, place: question.Declarations, *,
    bins: _SynthBins = None, keys: question.KeysOption = None, keep: _SynthKeep = None,
    never: _SynthNever = None, method: _SynthMethod = "auto", size: _SynthSize = 200_000,
    plan: _SynthPlan = False, rows: _SynthRows = None, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Charge the budget, measure tables with noise, write invented rows. The same question again is free."""
    from tacit.ledger import Ledger

    files.check()
    declared, name = place.read()
    column_names = [part.strip() for part in columns.split(",")]
    arguments: dict[str, Any] = {
        "bins": dict(_bins(text) for text in bins or ()), "keys": _keys(declared, name, keys, column_names),
        "keep": [tuple(part.strip() for part in text.split(",")) for text in keep or ()],
        "never": [_never(text) for text in never or ()], "method": method, "size": size,
    }  # fmt: skip

    def planned(dataset: TableDataset) -> Plan[Any]:
        return dataset.synthesize(column_names, **arguments).plan(**total.goal)

    where = "" if plan else question.declared_ledger(declared)
    if not plan:
        _refuse_without_delta(declared, name, place.config, where)
    with Ledger.memory() as trial:  # a wrong question is refused before a ledger is made
        trial_plan = planned(question.alone(declared, name).dataset(name, ledger=trial))
        if plan:
            show_json(trial_plan.to_json()) if as_json else say(repr(trial_plan))
            return
        question.check_sources(declared, name)
        parent = declared.datasets[name].get("parent")
        check_first_charge(name, where, trial_plan, trial, parent=parent)
    with Ledger.open(where) as ledger:
        opened = declared.dataset(name, ledger=ledger)
        release = planned(opened).release(who=payer.who, purpose=payer.purpose, account=payer.account)
        remaining = opened.remaining
    content = release.content
    views = SimpleNamespace(
        to_csv=partial(content.to_csv, rows=rows), to_parquet=partial(content.to_parquet, rows=rows)
    )
    files.save(release, table=views)
    if as_json:
        show_json({
            "release": content.to_json(),
            "certificate": dict(release.certificate.fields),
            "left": amount_facts(remaining),
        })  # fmt: skip
        return
    say(repr(release), f"left: {remaining}", *opened.account_notes)
    files.report()


def _refuse_without_delta(declared: Config, name: str, config: Path, where: str) -> None:
    """Refuse to measure tables with a budget that can never pay for them; the fix adds a delta to it."""
    budget = declared.datasets[name].get("budget")
    if not isinstance(budget, dict) or "rho" in budget or budget.get("delta"):
        return
    larger = toml_value({**budget, "delta": 1e-6})
    line = f"in {config}, under [datasets.{name}]: budget = {larger}"
    grow = f"tacit budget grow {typed(where)} --account {typed(name)} --delta 1e-6"
    has_account = find_account(name, where) is not None
    raise TacitError(
        "bad-parameter",
        f"synthetic rows need a budget with a delta, and the budget of {name!r} has none",
        why="their noise is Gaussian, which has no pure epsilon; nothing was charged",
        fix=Say(f'{grow} --statement "why" --who NAME, and {line}' if has_account else line),
    )


def _keys(
    declared: Any, name: str, texts: list[str] | None, columns: list[str]
) -> dict[str, list[object]] | None:
    """Read the keys of the columns that are asked for."""
    keys = question.public_keys(declared, name, texts)
    return None if keys is None else {column: values for column, values in keys.items() if column in columns}


def _bins(text: str) -> tuple[str, int | list[Any]]:
    """Read ``age=20`` or ``age=0:18:65``; cuts of dates are written with colons too.

    Examples
    --------
    >>> _bins("age=20"), _bins("age=0:18:65"), _bins("day=2026-01-01:2026-02-01")
    (('age', 20), ('age', [0.0, 18.0, 65.0]), ('day', ['2026-01-01', '2026-02-01']))
    """
    column, equal, value = text.partition("=")
    parts = value.split(":")
    try:
        if equal and len(parts) == 1:
            return column, int(value)
        if equal:
            return column, [float(part) for part in parts]
    except ValueError:
        if len(parts) > 1:
            return column, parts
    raise bad_parameter("--bins", "COLUMN=NUMBER or COLUMN=CUT:CUT:CUT", text, fix=Say("--bins age=20"))


def _never(text: str) -> dict[str, object]:
    """Read ``sex=M,pregnant=yes``; an empty value stands for missing ones.

    Examples
    --------
    >>> _never("sex=M,pregnant=yes"), _never("sex=")
    ({'sex': 'M', 'pregnant': 'yes'}, {'sex': '(missing)'})
    """
    combination: dict[str, object] = {}
    for part in text.split(","):
        column, equal, value = part.strip().partition("=")
        if not equal or not column:
            raise bad_parameter(
                "--never", "COLUMN=VALUE,COLUMN=VALUE", text, fix=Say("--never sex=M,pregnant=yes")
            )
        combination[column] = value or "(missing)"
    return combination
