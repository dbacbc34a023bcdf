"""The ``tacit limits`` command: which limits would fit, and how many rows the declared ones drop."""

from __future__ import annotations

from typing import Annotated

import typer

from tacit.cli import _query as paid
from tacit.cli import _question as question
from tacit.cli._app import app
from tacit.cli._field_command import Given, asks
from tacit.cli._output import JsonOption
from tacit.cli._output_files import OutputFiles
from tacit.cli._shared_options import Total, with_options
from tacit.errors import TacitError

_CutOption = Annotated[
    bool, typer.Option("--cut", help="Estimate instead which share of the rows the declared limit drops.")
]


@app.command(cls=asks("table", "suggest_limits", "measure_cut"))
@with_options
def limits(
    total: Total, given: Given, files: OutputFiles, payer: paid.Payer, place: question.Declarations, *,
    cut: _CutOption = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Charge the budget and suggest limits, or estimate what the declared limits and bounds cut."""
    cut = cut or given.text("column") is not None
    if cut and given.text("by") is not None:
        raise TacitError(
            "bad-parameter",
            "--by cannot be used together with --cut or --column",
            why="--by suggests a limit, and --cut and --column measure what is cut; each has its own cost",
            fix="ask for --by in a separate command",
        )
    files.check()
    table = given.text("table")
    asked = given.question("measure-cut" if cut else "suggest-limits")
    declared, name = place.read("" if table is None else f'SELECT COUNT(*) FROM "{table}"')  # noqa: S608 - never run
    paid.answer(declared, name, payer, lambda data: asked(data).plan(**total.goal), files, as_json=as_json)
