"""``tacit init``: write a ``tacit.toml`` to fill in, from the names of a file's columns alone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.app import app
from tacit.cli.declarations import (
    Declaration,
    option_text,
    read_bound,
    read_column,
    read_key_list,
    read_limit,
)
from tacit.cli.output import JsonFlag, say, show_json, typed, write_file
from tacit.cli.refusals import now_asking
from tacit.errors import TacitError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["init"]


@app.command()
def init(
    data: Annotated[Path, typer.Argument(help="A .csv, .tsv, .parquet or .duckdb file.")],
    unit: Annotated[
        str | None, typer.Option("--unit", help="The column that says whom a row belongs to.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The dataset's name; the file's name if left out.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="The whole budget.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="The budget's delta.")] = None,
    bounds: Annotated[
        list[str] | None, typer.Option("--bounds", help="COLUMN=LOW:HIGH, a public range; may be repeated.")
    ] = None,
    keys: Annotated[
        list[str] | None, typer.Option("--keys", help="COLUMN=A,B,C, public groups; may be repeated.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--type", help="COLUMN=number, text, boolean or date; may be repeated."),
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option("--limit", help="rows=8: how much of one unit counts; may be repeated."),
    ] = None,
    ledger: Annotated[str, typer.Option("--ledger", help="Where the budget is kept.")] = "tacit.ledger",
    config: Annotated[Path, typer.Option("--config", "-c", help="The file to write.")] = Path("tacit.toml"),
    *,
    rows: Annotated[bool, typer.Option("--row", help="Protect single rows, not people.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a commented tacit.toml: columns from the header or schema, the rest for you to decide.

    No value of the data is read. What is public (bounds, groups, limits, budget) is yours to say: by the
    options, or in the file.
    """
    if (unit is None) == (not rows):
        raise TacitError(
            "bad-parameter",
            "say who is protected: --unit COLUMN, or --row for single rows",
            why="a person with many rows is protected as a whole only if Tacit knows whose rows they are",
            fix=_units(data),
        )
    if config.exists() and not force:
        raise TacitError(
            "cannot-write",
            f"{config} is there already",
            why="it may hold what a curator has decided",
            fix="--config other.toml, or --force to overwrite it (the ledger keeps what was spent)",
        )
    called = name or re.sub(r"\W+", "_", data.stem).strip("_") or "data"
    now_asking(None, None, called)
    schema = _schema(data, called)
    known = [column for column, _ in schema]
    types = {column: kind for column, kind in schema if kind}
    types |= dict(read_column("--type", text, known) for text in kinds or ())
    draft = Declaration(
        name=called,
        source=_relative(data, config),
        unit=unit or "",
        ledger=ledger,
        columns=tuple(known),
        types=types,
        bounds=dict(read_bound(text, known) for text in bounds or ()),
        keys=dict(read_key_list(text, known, types) for text in keys or ()),
        limits=dict(read_limit(text) for text in limits or ()),
        budget=_budget(epsilon, delta),
    )
    draft.check(config.parent)
    write_file(config, lambda path: path.write_text(draft.text(), encoding="utf-8"), "the config", "--config")
    if as_json:
        notes = _left_out(data, draft.unit)
        show_json(
            {"written": str(config), "dataset": called, "columns": known, "types": types, "notes": notes}
        )
        return
    told = f"written: {config} ({len(known)} columns of {data.name}; no value was read)"
    *advice, question = _next(draft, config)
    say(told, *_separated(data), *_left_out(data, draft.unit), *advice)
    typer.echo(question)  # a command to be copied: not broken over lines


def _units(data: Path) -> str:
    """Name the columns that could be the unit, where the file is at hand."""
    columns = [column for column, _ in _schema(data, "data")] if data.is_file() else []
    if not columns:
        return f"tacit init {typed(str(data))} --unit patient_id"
    return f"tacit init {typed(str(data))} --unit COLUMN, one of: {', '.join(map(typed, columns[:12]))}"


def _schema(data: Path, name: str) -> list[tuple[str, str]]:
    """Return columns and kinds from the schema; the kind is empty where the file does not declare it."""
    from tacit.engines import DuckDB, SourceTable, read_source

    source = read_source(data)
    if not data.is_file():
        raise TacitError(
            "bad-parameter", f"{data} is not there", fix="tacit init visits.csv --unit patient_id"
        )
    engine = DuckDB({name: SourceTable(source, None)}, key=0)
    described = engine.schema(name)
    if described is not None:
        return [(column, _kind(kind)) for column, kind in described]
    columns = engine.columns(name)
    if not columns:
        raise TacitError(
            "bad-parameter",
            f"{data} has no columns that can be read",
            why="a CSV needs a header line, a database a table of the dataset's name",
            fix="--name THE_TABLE",
        )
    return [(column, "") for column in columns]


def _separated(data: Path) -> list[str]:
    """Say which separator the header showed, where it is not the usual one, and what it means for numbers."""
    from tacit.engines import read_source

    source = read_source(data)
    if source.kind != "csv" or source.delimiter in {",", "\t"}:
        return []
    sign = {";": "semicolons", "|": "bars"}[source.delimiter]
    return [f"columns are separated by {sign}, as the header shows; 3,5 is no number here: write 3.5"]


def _left_out(data: Path, unit: str) -> list[str]:
    """Warn of rows that no answer will count: without a unit, or not UTF-8, as the header may show."""
    from tacit.engines import read_source

    source = read_source(data)
    told = [f"rows without a {unit} will not be counted"] if unit else []
    if source.kind == "csv" and not source.plain_header:
        told.append(
            f"warning: the header of {data.name} is not UTF-8; save the file as UTF-8 (in a spreadsheet: "
            "CSV UTF-8), then tacit init --force again: lines that are not UTF-8 are not counted"
        )
    return told


def _kind(sql_type: str) -> str:
    word = sql_type.upper().split("(", maxsplit=1)[0]
    if word == "BOOLEAN":
        return "boolean"
    if word in {"VARCHAR", "CHAR", "TEXT", "UUID"} or word.startswith("ENUM"):
        return "text"
    if word.startswith(("DATE", "TIMESTAMP")):
        return "date"
    numbers = ("INT", "TINYINT", "SMALLINT", "BIGINT", "HUGEINT", "U", "FLOAT", "DOUBLE", "DECIMAL", "REAL")
    return "number" if word.startswith(numbers) and not word.endswith("]") else ""


def _relative(data: Path, config: Path) -> str:
    if data.is_absolute():
        return str(data)
    return Path(os.path.relpath(data, config.parent)).as_posix()


def _budget(epsilon: float | None, delta: float | None) -> dict[str, float]:
    if epsilon is None and delta is not None:
        raise bad_parameter("--delta", "given with --epsilon", delta, fix="--epsilon 3 --delta 1e-6")
    return {} if epsilon is None else {"epsilon": epsilon} if delta is None else {
        "epsilon": epsilon, "delta": delta,
    }  # fmt: skip


def _next(draft: Declaration, config: Path) -> Sequence[str]:
    """Say what is left to decide and the first command to try."""
    todo = []
    if not draft.budget:
        todo.append("the budget: what may be learned in total (tacit explain --epsilon 3 says what it means)")
    if not draft.bounds and (could := draft.could_be("number")):
        todo.append(
            f"bounds of what you average or sum ({_few(could)}), from public knowledge, not from the data: "
            f"{option_text('bounds', _one(draft, could), ('LOW', 'HIGH'))}"
        )
    if not draft.keys and (could := draft.could_be("text")):
        todo.append(
            f"keys of what you group by ({_few(could)}), where they are public: "
            f"{option_text('keys', _one(draft, could), ['A', 'B'])}"
        )
    place = "" if config == Path("tacit.toml") else f" --config {config}"
    question = f'tacit plan "SELECT COUNT(*) AS n FROM {draft.name}" --epsilon 0.5{place}'  # noqa: S608 - shown
    how = f"decide, in {config} or by options of tacit init --force:"
    told = [*([how] if todo else []), *(f"  - {one}" for one in todo)]
    if draft.budget:
        return [*told, f"next: {question}"]
    return [*told, "first: set the line `budget = ...` (nothing is planned without one)", f"then: {question}"]


def _few(columns: Sequence[str]) -> str:
    return ", ".join(map(typed, columns[:6])) + (", ..." if len(columns) > 6 else "")


def _one(draft: Declaration, columns: Sequence[str]) -> str:
    """Return a column for an example, if the schema tells its kind; a header does not."""
    return next((column for column in columns if column in draft.types), "COLUMN")
