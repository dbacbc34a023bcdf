"""Commands before the first question: ``tacit init`` declares a file, ``tacit convert`` makes it Parquet.

``tacit init`` writes a commented ``tacit.toml`` to fill in, from the column names of a file alone.
"""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._app import app
from tacit.cli._context import note_dataset
from tacit.cli._options import (
    fact_option,
    read_bounds_option,
    read_column_option,
    read_keys_option,
    read_limit_option,
    toml_key,
    toml_list,
    toml_table,
    toml_text,
)
from tacit.cli._output import JsonOption, say, show_json, typed, write_file
from tacit.errors import TacitError, missing_file
from tacit.report import with_article

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.engines import Source


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
    line_numbers = ", ".join(f"{line:,}" for line in lines[:_MAX_SHOWN]) + (
        ", ..." if count > _MAX_SHOWN else ""
    )
    return f"{verb}: {count:,} {'line' if count == 1 else 'lines'} (line {line_numbers})"


#: Shown as a comment where the curator gave no budget.
_EXAMPLE_BUDGET = {"epsilon": 3.0, "delta": 1e-6}


@dataclass(frozen=True, slots=True)
class Declaration:
    """One dataset as ``tacit init`` writes it."""

    name: str
    source: str
    unit: str
    ledger: str
    columns: tuple[str, ...]
    types: Mapping[str, str]
    bounds: Mapping[str, tuple[float, float]]
    keys: Mapping[str, list[object]]
    limits: Mapping[str, int]
    budget: Mapping[str, float]
    reading: Mapping[str, str] = field(default_factory=dict)

    def check(self, folder: Path) -> None:
        """Refuse what the library would refuse, before anything is written."""
        from tacit.ledger import Ledger
        from tacit.tables import read_config

        complete = replace(self, budget=self.budget or {"epsilon": 1.0})
        with Ledger.memory() as ledger:
            read_config(complete.text(), folder).dataset(self.name, ledger=ledger)

    def text(self) -> str:
        """Write the file."""
        sections = (self._head(), self._limits(), self._bounds(), self._keys(), self._types())
        return "\n\n".join("\n".join(lines) for lines in sections) + "\n"

    def could_be(self, kind: str) -> list[str]:
        """Return the columns that may be of a kind, as far as the schema shows."""
        return [c for c in self.columns if c != self.unit and self.types.get(c, kind) == kind]

    def _head(self) -> list[str]:
        budget = toml_table(self.budget or _EXAMPLE_BUDGET)
        return [
            "# What Tacit may rely on. All of it is public; none of it was read from the data.",
            "# Written by `tacit init`; later changes are yours.",
            "",
            "# Where the budget is kept. Opening it again never resets what was spent.",
            f"ledger = {toml_text(self.ledger)}",
            "",
            self._heading(),
            f"source = {toml_text(self.source)}",
            *(f"{fact} = {toml_text(own)}" for fact, own in self.reading.items()),
            "# New data, such as next month's file? Increase the version: stored answers belong to one",
            "# version. The budget stays.",
            "# version = 1",
            "# Who is protected: all rows with the same value here, together. If empty: single rows.",
            f"unit = {toml_text(self.unit)}",
            "# How much may be learned in total; `tacit explain --epsilon 3` shows what that means.",
            f"{'' if self.budget else '# '}budget = {budget}",
        ]

    def _limits(self) -> list[str]:
        whose = f"rows with the same {self.unit}" if self.unit else "copies of one row"
        return [
            f"# How many {whose} count. A smaller limit means less noise,",
            "# but more rows are dropped. By default, 10 rows count.",
            self._heading("limits"),
            *(f"{toml_key(name)} = {limit}" for name, limit in self.limits.items()),
            *([] if self.limits else ["# rows = 10"]),
        ]

    def _bounds(self) -> list[str]:
        open_columns = self._undeclared("number", self.bounds, self.keys)
        return [
            "# Public ranges of the columns that you sum or average. Values outside are clipped. Take a",
            "# range from public knowledge, not from the data.",
            *([] if self.types else ["# (A CSV file has no types: skip columns of text and dates.)"]),
            self._heading("bounds"),
            *(f"{toml_key(column)} = {toml_list(pair)}" for column, pair in self.bounds.items()),
            *(f"# {toml_key(column)} = [LOW, HIGH]" for column in open_columns),
        ]

    def _keys(self) -> list[str]:
        return [
            "# Groups that are publicly known to exist. Other groups are selected with a delta.",
            self._heading("keys"),
            *(f"{toml_key(column)} = {toml_list(values)}" for column, values in self.keys.items()),
            *(
                f'# {toml_key(column)} = ["A", "B"]'
                for column in self._undeclared("text", self.keys, self.bounds)
            ),
        ]

    def _types(self) -> list[str]:
        typed = {self.unit, *self.types, *self.bounds, *self.keys}
        return [
            "# KIND: number, text, boolean or date. Needed where a question does not make it clear.",
            self._heading("types"),
            *(f"{toml_key(column)} = {toml_text(kind)}" for column, kind in self.types.items()),
            *(f'# {toml_key(column)} = "KIND"' for column in self.columns if column not in typed),
        ]

    def _heading(self, section: str = "") -> str:
        return f"[datasets.{toml_key(self.name)}{'.' + section if section else ''}]"

    def _undeclared(self, kind: str, *declared: Mapping[str, object]) -> list[str]:
        """Return the columns that may be of a kind and are not among the declared ones."""
        declared_columns = {column for facts in declared for column in facts}
        return [column for column in self.could_be(kind) if column not in declared_columns]


_EXAMPLE = "tacit init visits.csv --unit patient_id"
_DataArgument = Annotated[
    Path, typer.Argument(help="A .csv, .tsv, .parquet or .duckdb file, or a folder of Parquet files.")
]
_UnitOption = Annotated[
    str | None, typer.Option("--unit", help="The column that names who each row belongs to.")
]
_NameOption = Annotated[str | None, typer.Option("--name", help="The dataset's name; by default the file's.")]
_BudgetEpsilonOption = Annotated[float | None, typer.Option("--epsilon", "-e", help="The whole budget.")]
_BudgetDeltaOption = Annotated[float | None, typer.Option("--delta", help="The budget's delta.")]
_BoundsOptions = Annotated[
    list[str] | None, typer.Option("--bounds", help="COLUMN=LOW:HIGH, a public range; may be repeated.")
]
_KeysOptions = Annotated[
    list[str] | None, typer.Option("--keys", help="COLUMN=A,B,C, public groups; may be repeated.")
]
_TypeOptions = Annotated[
    list[str] | None, typer.Option("--type", help="COLUMN=number, text, boolean or date; may be repeated.")
]
_LimitOptions = Annotated[
    list[str] | None, typer.Option("--limit", help="rows=8: how much of one unit counts; may be repeated.")
]
_LedgerOption = Annotated[str, typer.Option("--ledger", help="Where the budget is kept.")]
_TargetOption = Annotated[Path, typer.Option("--config", "-c", help="The file to write.")]
_RowFlag = Annotated[bool, typer.Option("--row", help="Protect single rows, not people.")]
_ForceFlag = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]


@app.command()
def init(
    data: _DataArgument,
    unit: _UnitOption = None,
    name: _NameOption = None,
    epsilon: _BudgetEpsilonOption = None,
    delta: _BudgetDeltaOption = None,
    bounds: _BoundsOptions = None,
    keys: _KeysOptions = None,
    kinds: _TypeOptions = None,
    limits: _LimitOptions = None,
    encoding: EncodingOption = "utf-8",
    dates: DatesOption = "",
    decimal: DecimalOption = ".",
    separator: SeparatorOption = "",
    ledger: _LedgerOption = "tacit.ledger",
    config: _TargetOption = Path("tacit.toml"),
    *,
    rows: _RowFlag = False,
    force: _ForceFlag = False,
    as_json: JsonOption = False,
) -> None:
    """Write a commented tacit.toml: columns from the header or schema, the rest for you to decide.

    No value of the data is used; of a CSV file, the form of the lines is checked. You declare what is public
    (bounds, groups, limits, budget): with the options, or in the file.
    """
    _check_unit(data, unit, rows=rows)
    _check_target(config, force=force)
    dataset_name = name or _default_name(data)
    note_dataset(None, None, dataset_name)
    reading = {"encoding": encoding, "dates": dates, "decimal": decimal, "separator": separator}
    source = _source(data, reading)
    schema = _schema(data, dataset_name, source)
    known = [column for column, _ in schema]
    types = {column: kind for column, kind in schema if kind}
    types |= dict(read_column_option("--type", text, known) for text in kinds or ())
    draft = Declaration(
        name=dataset_name,
        source=_relative(data, config),
        unit=unit or "",
        ledger=ledger,
        columns=tuple(known),
        types=types,
        bounds=dict(read_bounds_option(text, known) for text in bounds or ()),
        keys=dict(read_keys_option(text, known, types) for text in keys or ()),
        limits=dict(read_limit_option(text) for text in limits or ()),
        budget=_budget(epsilon, delta),
        reading=dict(source.reading_facts),
    )
    draft.check(config.parent)
    write_file(config, lambda path: path.write_text(draft.text(), encoding="utf-8"), "the config", "--config")
    notes = _notes(unit, delta)
    if as_json:
        summary = {"written": str(config), "dataset": dataset_name, "columns": known, "types": types}
        show_json({**summary, "notes": notes})
        return
    columns = "1 column" if len(known) == 1 else f"{len(known)} columns"
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
        _check_exists(data)
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


def _check_exists(data: Path) -> None:
    if not data.is_file() and not _has_parquet_files(data):
        here = sorted(
            f.name for f in data.parent.glob("*") if f.suffix.lower() in {data.suffix.lower(), ".csv"}
        )
        meant = get_close_matches(data.name, here, 1)
        fix = f"tacit init {typed(str(data.parent / meant[0]))} --unit COLUMN" if meant else _EXAMPLE
        if data.is_dir():
            raise TacitError(
                "bad-parameter",
                f"the folder {data} holds no Parquet files",
                why="a folder stands for all Parquet files in it, and they must have the same columns",
                fix=_EXAMPLE,
            )
        raise missing_file(data, fix=fix)


def _has_parquet_files(data: Path) -> bool:
    """Return whether a folder or pattern stands for at least one Parquet file."""
    from tacit.engines import read_source

    if not data.is_dir() and not glob.has_magic(str(data)):
        return False
    source = read_source(data)
    return source.is_folder and source.is_there


def _default_name(data: Path) -> str:
    """Return the name of the file or folder as SQL can write it; a pattern is called like its folder."""
    candidates = [re.sub(r"\W+", "_", part).strip("_") for part in (data.stem, data.absolute().parent.name)]
    return next((name for name in candidates if name), "data")


def _possible_units(data: Path) -> str:
    """Name the columns that could be the unit."""
    columns = [column for column, _ in _schema(data, "data", _source(data, {}))]
    if not columns:
        return f"tacit init {typed(str(data))} --unit patient_id"
    return f"tacit init {typed(str(data))} --unit COLUMN, one of: {', '.join(map(typed, columns))}"


def _source(data: Path, reading: Mapping[str, str]) -> Source:
    """Return the source, with what the options say of how a CSV file is written."""
    from tacit.engines import READING_FACTS, csv_file, read_source

    declared = {fact: own for fact, own in reading.items() if own not in {READING_FACTS[fact], "utf-8"}}
    _check_is_csv(data, declared)
    source = read_source(data)
    return csv_file(data, **declared) if source.kind == "csv" or declared else source


def _check_is_csv(data: Path, declared: Mapping[str, str]) -> None:
    """Refuse to declare how a file is written that is not a CSV file: its conversion is told so."""
    if not declared or data.suffix.lower() in {".csv", ".tsv"}:
        return
    options = " ".join(f"--{fact} {typed(own)}" for fact, own in declared.items())
    is_packed = data.name.lower().endswith((".csv.gz", ".tsv.gz", ".xlsx", ".xlsm"))
    target = typed(f"{data.name.partition('.')[0]}.parquet")
    again = (
        f"leave them out, or convert the CSV file again: tacit convert FILE.csv {target} --force {options}"
    )
    raise TacitError(
        "bad-parameter",
        f"{data.name} is not a CSV file, so tacit init does not take {options}",
        why="these options say how a CSV file is written; a file in another format is read as it is stored",
        fix=f"tacit convert {typed(data.name)} {target} {options}" if is_packed else again,
    )


def _schema(data: Path, name: str, source: Source) -> list[tuple[str, str]]:
    """Return columns and kinds from the schema; the kind is empty where the file does not declare it.

    A file in which all columns are text, such as one that `tacit convert` wrote, declares as little as CSV.
    """
    _check_exists(data)
    described = source.schema(name)
    if described is not None:
        kinds = [(column, _kind(kind)) for column, kind in described]
        return [(column, "") for column, _ in kinds] if all(kind == "text" for _, kind in kinds) else kinds
    columns = source.columns()
    if not columns:
        raise TacitError(
            "bad-parameter",
            f"{data} has no columns that can be read",
            why="a CSV file needs a header line, and a database needs a table with the dataset's name",
            fix="--name THE_TABLE" if source.kind == "database" else "write the names of the columns into it",
        )
    return [(column, "") for column in columns]


def _separator(source: Source) -> list[str]:
    """Name the separator that the header shows, if it is not the usual one, and what often comes with it."""
    from tacit.engines import CsvSource

    if not isinstance(source, CsvSource) or source.separator or source.delimiter in {",", "\t"}:
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
