"""The ``tacit convert`` command: write the rows of a CSV file as Parquet once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._app import app
from tacit.cli._output import JsonOption, say, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_SHOWN = 10
EncodingOption = Annotated[
    str, typer.Option("--encoding", help="How a CSV file stands for text: utf-8, latin-1, windows-1252 ...")
]
DatesOption = Annotated[
    str, typer.Option("--dates", help="How dates are written, such as day.month.year for 31.12.2023.")
]
DecimalOption = Annotated[
    str, typer.Option("--decimal", help="What stands before the decimals of a number: a point or a comma.")
]
SeparatorOption = Annotated[
    str, typer.Option("--separator", help="What stands between cells; by default the header shows it.")
]
QuoteOption = Annotated[
    str, typer.Option("--quote", help="What stands around cells; empty if nothing does.", show_default=False)
]


@app.command()
def convert(
    data: Annotated[Path, typer.Argument(help="A .csv, .tsv, .csv.gz or .xlsx file.")],
    target: Annotated[Path, typer.Argument(help="The .parquet file to write.")],
    encoding: EncodingOption = "utf-8",
    dates: DatesOption = "",
    decimal: DecimalOption = ".",
    separator: SeparatorOption = "",
    quote: QuoteOption = '"',
    *,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Repair or drop lines that break the form, and list them.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the rows of a CSV or Excel file as Parquet, before you protect them.

    A file with a line that breaks the form of a CSV file is refused; with --lenient, such lines are repaired
    or dropped, and listed. What this command shows is about single rows: it is for the curator of the data.
    """
    from tacit.tables import convert_csv

    done = convert_csv(
        data, target, encoding=encoding, dates=dates, decimal=decimal, separator=separator, quote=quote,
        lenient=lenient, force=force,
    )  # fmt: skip
    if as_json:
        show_json(
            {
                "written": str(target), "columns": list(done.columns),
                "repaired": done.repaired, "repaired_lines": done.repaired_lines,
                "dropped": done.dropped, "dropped_lines": done.dropped_lines,
            }
        )  # fmt: skip
        return
    columns = "1 column" if len(done.columns) == 1 else f"{len(done.columns)} columns"
    notes = [f"written: {target} ({columns}, all of them text)"]
    if lenient:
        notes += [
            _listed("repaired", done.repaired, done.repaired_lines),
            _listed("dropped", done.dropped, done.dropped_lines),
        ]
    if done.repaired or done.dropped:
        notes.append("these numbers are about single rows: keep them as safe as the data")
    say(*notes, f"next: tacit init {target} --unit COLUMN")


def _listed(verb: str, count: int, lines: Sequence[int]) -> str:
    """Write how many lines were repaired or dropped, and the first of them."""
    if not count:
        return f"{verb}: no line"
    shown = ", ".join(f"{line:,}" for line in lines[:_MAX_SHOWN]) + (", ..." if count > _MAX_SHOWN else "")
    return f"{verb}: {count:,} {'line' if count == 1 else 'lines'} (line {shown})"
