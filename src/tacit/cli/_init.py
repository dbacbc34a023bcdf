"""Commands before the first question: ``tacit init`` declares a file, ``tacit convert`` makes it Parquet.

``tacit init`` writes a commented ``tacit.toml`` to fill in, from the column names of a file alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._app import app
from tacit.cli._declaration import (
    DatesOption,
    DecimalOption,
    Declaration,
    DeclaredFacts,
    EncodingOption,
    QuoteOption,
    SeparatorOption,
    check_exists,
    open_reading,
    schema_of,
    source_of,
)
from tacit.cli._options import (
    fact_option,
    with_options,
)
from tacit.cli._output import JsonOption, say, show_json, typed, write_file
from tacit.errors import TacitError
from tacit.report import with_article

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.engines import Source


_MAX_SHOWN = 10


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
    line_numbers = ", ".join(f"{line:,}" for line in lines[:_MAX_SHOWN]) + (
        ", ..." if count > _MAX_SHOWN else ""
    )
    return f"{verb}: {count:,} {'line' if count == 1 else 'lines'} (line {line_numbers})"


_DataArgument = Annotated[
    Path, typer.Argument(help="A .csv, .tsv, .parquet or .duckdb file, or a folder of Parquet files.")
]
_BudgetEpsilonOption = Annotated[float | None, typer.Option("--epsilon", "-e", help="The whole budget.")]
_BudgetDeltaOption = Annotated[float | None, typer.Option("--delta", help="The budget's delta.")]
_TargetOption = Annotated[Path, typer.Option("--config", "-c", help="The file to write.")]
_ForceFlag = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]


@app.command()
@with_options
def init(
    data: _DataArgument,
    facts: DeclaredFacts,
    epsilon: _BudgetEpsilonOption = None,
    delta: _BudgetDeltaOption = None,
    config: _TargetOption = Path("tacit.toml"),
    *,
    force: _ForceFlag = False,
    as_json: JsonOption = False,
) -> None:
    """Write a commented tacit.toml: columns from the header or schema, the rest for you to decide.

    No value of the data is used; of a CSV file, the form of the lines is checked. You declare what is public
    (bounds, groups, limits, budget): with the options, or in the file.
    """
    _check_unit(data, facts.unit, rows=facts.rows)
    _check_target(config, force=force)
    draft, source = facts.draft(data, config, budget=_budget(epsilon, delta))
    draft.check(config.parent)
    write_file(config, lambda path: path.write_text(draft.text(), encoding="utf-8"), "the config", "--config")
    notes = _notes(facts.unit, delta)
    if as_json:
        names = list(draft.columns)
        summary = {"written": str(config), "dataset": draft.name, "columns": names, "types": draft.types}
        show_json({**summary, "notes": notes})
        return
    columns = "1 column" if len(draft.columns) == 1 else f"{len(draft.columns)} columns"
    *advice, question = _next_steps(draft, config)
    wrote = f"written: {config} ({columns} of {data.name}; no value was used)"
    say(wrote, *_separator(source), *_repeated(source), *notes, *advice)
    typer.echo(question)  # a command to copy: not broken over lines


def _notes(unit: str | None, delta: float | None) -> list[str]:
    """Say which rows do not count, and warn of a delta that is too large."""
    from tacit.core import warn_of_delta

    warning = warn_of_delta(delta or 0)
    return [
        *([f"rows without {with_article(unit)} will not be counted"] if unit else []),
        *([warning] if warning else []),
    ]


def _check_unit(data: Path, unit: str | None, *, rows: bool) -> None:
    if (unit is None) == (not rows):
        check_exists(data)
        raise TacitError(
            "bad-parameter",
            "say who is protected: --unit COLUMN, or --row for single rows",
            why="a person with many rows is protected as a whole only if Tacit knows which rows are theirs",
            fix=_possible_units(data),
        )


def _check_target(config: Path, *, force: bool) -> None:
    if config.exists() and not force:
        raise TacitError(
            "cannot-write",
            f"{config} exists already",
            why="it may contain decisions of the curator",
            fix="--config other.toml, or --force to overwrite it (the ledger keeps what was spent)",
        )


def _possible_units(data: Path) -> str:
    """Name the columns that could be the unit."""
    columns = [column for column, _ in schema_of(data, "data", source_of(data, {}))]
    if not columns:
        return f"tacit init {typed(str(data))} --unit patient_id"
    return f"tacit init {typed(str(data))} --unit COLUMN, one of: {', '.join(map(typed, columns))}"


def _separator(source: Source) -> list[str]:
    """Name the separator that the header shows, if it is not the usual one, and what often comes with it."""
    if not open_reading(source):
        return []
    sign = {";": "semicolons", "|": "bars"}[source.delimiter]
    notes = {"3,5 is a number": ("--decimal ,", source.decimal != "."),
             "31.12.2023 is a date": ("--dates day.month.year", bool(source.dates))}  # fmt: skip
    open_notes = [
        f"if {case} in this file, add {option}" for case, (option, done) in notes.items() if not done
    ]
    if not open_notes:
        return []
    return [f"the header shows that {sign} separate the columns: {'; '.join(open_notes)} (with --force)"]


def _repeated(source: Source) -> list[str]:
    """Say how a column is called whose name another column of the header has already."""
    pairs = zip(source.written_names() or (), source.columns() or (), strict=False)
    return [
        f"the header names {typed(name)} again: this column is called {typed(own)} here"
        for name, own in pairs
        if name and name != own
    ]


def _budget(epsilon: float | None, delta: float | None) -> dict[str, float]:
    if epsilon is None and delta is not None:
        raise TacitError("bad-parameter", "--delta needs --epsilon", fix="--epsilon 3 --delta 1e-6")
    amounts = {"epsilon": epsilon, "delta": delta}
    return {part: number for part, number in amounts.items() if number is not None}


def _next_steps(draft: Declaration, config: Path) -> Sequence[str]:
    """List what is left to decide and the first command to try."""
    todo = []
    if not draft.budget:
        todo.append(
            "the budget: how much may be learned in total (tacit explain --epsilon 3 shows what it means)"
        )
    if not draft.bounds and (could := draft.could_be("number")):
        todo.append(
            f"bounds of the columns that you average or sum ({_few(could)}), from public knowledge, "
            "not from the data: "
            f"{fact_option('bounds', _example(draft, could), ('LOW', 'HIGH'))}"
        )
    if not draft.keys and (could := draft.could_be("text")):
        todo.append(
            f"keys of the columns that you group by ({_few(could)}), if they are public: "
            f"{fact_option('keys', _example(draft, could), ['A', 'B'])}"
        )
    config_option = "" if config == Path("tacit.toml") else f" --config {config}"
    question = f'tacit plan "SELECT COUNT(*) AS n FROM {draft.name}" --epsilon 0.5{config_option}'  # noqa: S608 - shown
    lines = [f"decide, in {config} or with options of tacit init --force:"] if todo else []
    lines += [f"  - {one}" for one in todo]
    if draft.budget:
        return [*lines, f"next: {question}"]
    return [*lines, "first: set the line `budget = ...` (Tacit cannot plan without it)", f"then: {question}"]


def _few(columns: Sequence[str]) -> str:
    return ", ".join(map(typed, columns[:6])) + (", ..." if len(columns) > 6 else "")


def _example(draft: Declaration, columns: Sequence[str]) -> str:
    """Return a column for an example, if the schema shows its kind; a header does not."""
    return next((column for column in columns if column in draft.types), "COLUMN")
