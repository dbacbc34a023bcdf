"""The ``tacit limits`` command: which limits would fit, and how many rows the declared ones drop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import _query as paid
from tacit.cli import _question as question
from tacit.cli._app import app
from tacit.cli._output import JsonOption  # noqa: TC001 - typer reads it
from tacit.cli._output_files import OutputFiles
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.core import AnswerTable, Plan
    from tacit.tables import TableDataset

_ByOption = Annotated[
    str | None, typer.Option("--by", help="A column to group by later: also suggest a limit on groups.")
]
_TableOption = Annotated[str | None, typer.Option("--table", help="Which table, if the dataset has several.")]
_MostOption = Annotated[
    int, typer.Option("--most", help="The largest number of rows of one unit that Tacit looks for.")
]
_CutOption = Annotated[
    bool, typer.Option("--cut", help="Estimate instead which share of the rows the declared limit drops.")
]
_ColumnOption = Annotated[
    str | None,
    typer.Option("--column", help="Estimate instead which share of this column lies outside its bounds."),
]
_CostOption = Annotated[float, typer.Option("--epsilon", "-e", help="What the answer costs.")]


@app.command()
def limits(
    epsilon: _CostOption,
    by: _ByOption = None,
    table: _TableOption = None,
    most: _MostOption = 1000,
    column: _ColumnOption = None,
    certificate: paid.CertificateToWrite = None,
    who: paid.AskerOption = "",
    purpose: paid.PurposeOption = "",
    account: paid.PayerOption = None,
    config: question.ConfigOption = Path("tacit.toml"),
    dataset: question.DatasetOption = None,
    engine: question.EngineOption = None,
    *,
    cut: _CutOption = False,
    as_json: JsonOption = False,
) -> None:
    """Charge the budget and suggest limits, or estimate what the declared limits and bounds cut."""
    if by is not None and (cut or column is not None):
        raise TacitError(
            "bad-parameter",
            "--by cannot be used together with --cut or --column",
            why="--by suggests a limit, and --cut and --column measure what is cut; each has its own cost",
            fix="ask for --by in a separate command",
        )
    files = OutputFiles(None, None, certificate)
    files.check()
    asked = "" if table is None else f'SELECT COUNT(*) FROM "{table}"'  # noqa: S608 - never run
    declared, name = question.declared_dataset(config, dataset, asked, engine)

    def planned(data: TableDataset) -> Plan[AnswerTable]:
        if cut or column is not None:
            return data.measure_cut(column=column, table=table).plan(epsilon=epsilon)
        return data.suggest_limits(by=by, table=table, most=most).plan(epsilon=epsilon)

    paying = paid.Payment(declared, name, config, who, purpose, account)
    paid.answer(paying, planned, files, as_json=as_json)
