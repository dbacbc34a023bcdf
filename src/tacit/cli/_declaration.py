"""The declaration of a dataset in a ``tacit.toml``, as commands write it: from a file's schema and options.

No value of the data is used: columns and types come from the header of a CSV file, or from a schema.
"""

from __future__ import annotations

import glob
import os
import re
import tomllib
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import typer

from tacit.cli._context import note_dataset
from tacit.cli._options import (
    read_bounds_option,
    read_column_option,
    read_keys_option,
    read_limit_option,
    toml_key,
    toml_list,
    toml_table,
    toml_text,
    toml_value,
)
from tacit.cli._output import typed
from tacit.errors import TacitError, missing_file
from tacit.fixes import Say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.engines import CsvSource, Source
    from tacit.tables import Config


EXAMPLE = "tacit init visits.csv --unit patient_id"
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
_UnitOption = Annotated[
    str | None, typer.Option("--unit", help="The column that names who each row belongs to.")
]
_NameOption = Annotated[str | None, typer.Option("--name", help="The dataset's name; by default the file's.")]
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
_RowFlag = Annotated[bool, typer.Option("--row", help="Protect single rows, not people.")]


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
    bounds: Mapping[str, tuple[float, float] | str]
    keys: Mapping[str, list[object]]
    limits: Mapping[str, int]
    budget: Mapping[str, float]
    reading: Mapping[str, str] = field(default_factory=dict)
    written_by: str = "tacit init"

    def check(self, folder: Path) -> None:
        """Refuse what the library would refuse, before anything is written."""
        from tacit.ledger import Ledger
        from tacit.tables import read_config

        complete = replace(self, budget=self.budget or {"epsilon": 1.0})
        with Ledger.memory() as ledger:
            read_config(complete.text(), folder).dataset(self.name, ledger=ledger)

    def text(self, before: str = "") -> str:
        """Write the file, or add the dataset to the text of a file that has others."""
        start = [before.rstrip()] if before else self._start()
        sections = (start, self._head(), self._limits(), self._bounds(), self._keys(), self._types())
        return "\n\n".join("\n".join(lines) for lines in sections) + "\n"

    def could_be(self, kind: str) -> list[str]:
        """Return the columns that may be of a kind, as far as the schema shows."""
        return [c for c in self.columns if c != self.unit and self.types.get(c, kind) == kind]

    def _start(self) -> list[str]:
        return [
            "# What Tacit may rely on. All of it is public; none of it was read from the data.",
            f"# Written by `{self.written_by}`; later changes are yours.",
            "",
            "# Where the budget is kept. Opening it again never resets what was spent.",
            f"ledger = {toml_text(self.ledger)}",
        ]

    def _head(self) -> list[str]:
        budget = toml_table(self.budget or _EXAMPLE_BUDGET)
        return [
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
            *(f"{toml_key(name)} = {toml_value(limit)}" for name, limit in self.limits.items()),
            *([] if self.limits else ["# rows = 10"]),
        ]

    def _bounds(self) -> list[str]:
        open_columns = self._undeclared("number", self.bounds, self.keys)
        return [
            "# Public ranges of the columns that you sum or average. Values outside are clipped. Take a",
            "# range from public knowledge, not from the data.",
            *([] if self.types else ["# (A CSV file has no types: skip columns of text and dates.)"]),
            self._heading("bounds"),
            *(f"{toml_key(column)} = {toml_value(pair)}" for column, pair in self.bounds.items()),
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
        return heading_of(self.name, section)

    def _undeclared(self, kind: str, *declared: Mapping[str, object]) -> list[str]:
        """Return the columns that may be of a kind and are not among the declared ones."""
        declared_columns = {column for facts in declared for column in facts}
        return [column for column in self.could_be(kind) if column not in declared_columns]


@dataclass(frozen=True, kw_only=True)
class DeclaredFacts:
    """What the curator declares of a file with options."""

    unit: _UnitOption = None
    rows: _RowFlag = False
    name: _NameOption = None
    bounds: _BoundsOptions = None
    keys: _KeysOptions = None
    kinds: _TypeOptions = None
    limits: _LimitOptions = None
    encoding: EncodingOption = "utf-8"
    dates: DatesOption = ""
    decimal: DecimalOption = "."
    separator: SeparatorOption = ""
    ledger: _LedgerOption = "tacit.ledger"

    def draft(
        self, data: Path, config: Path, *, budget: Mapping[str, float], written_by: str = "tacit init"
    ) -> tuple[Declaration, Source]:
        """Return the declaration of a file, and the file as it is declared to be written."""
        name = self.name or default_name(data)
        note_dataset(None, None, name)
        reading = {f: getattr(self, f) for f in ("encoding", "dates", "decimal", "separator")}
        source = source_of(data, reading)
        schema = schema_of(data, name, source)
        known = [column for column, _ in schema]
        types = {column: kind for column, kind in schema if kind}
        types |= dict(read_column_option("--type", text, known) for text in self.kinds or ())
        draft = Declaration(
            name=name,
            source=relative(data, config),
            unit=self.unit or "",
            ledger=self.ledger,
            columns=tuple(known),
            types=types,
            bounds=dict(read_bounds_option(text, known) for text in self.bounds or ()),
            keys=dict(read_keys_option(text, known, types) for text in self.keys or ()),
            limits=dict(read_limit_option(text) for text in self.limits or ()),
            budget=budget,
            reading=dict(source.reading_facts),
            written_by=written_by,
        )
        return draft, source


def heading_of(name: str, section: str = "") -> str:
    """Write the heading of a dataset's section.

    Examples
    --------
    >>> heading_of("visits", "bounds")
    '[datasets.visits.bounds]'
    """
    return f"[datasets.{toml_key(name)}{'.' + section if section else ''}]"


def with_fact(text: str, name: str, section: str, key: str, value: object) -> str:
    r"""Return the text of a ``tacit.toml`` with one more fact about a dataset.

    The fact takes the place of the line that hints at it, or stands below the heading of its section. A fact
    that is declared already is not changed here: the curator changes it in the file.

    Examples
    --------
    >>> print(with_fact("[datasets.v.bounds]\n# age = [LOW, HIGH]", "v", "bounds", "age", (0, 105)))
    [datasets.v.bounds]
    age = [0, 105]
    """
    heading, line = heading_of(name, section), f"{toml_key(key)} = {toml_value(value)}"
    lines = text.splitlines()
    if heading not in lines:
        return "\n".join([*lines, "", heading, line, ""])
    start = lines.index(heading) + 1
    end = next((i for i, one in enumerate(lines[start:], start) if one.startswith("[")), len(lines))
    hint = re.compile(rf"# ?{re.escape(toml_key(key))} *=")
    hinted = next((i for i in range(start, end) if hint.match(lines[i])), None)
    lines[start if hinted is None else hinted : start if hinted is None else hinted + 1] = [line]
    return "\n".join([*lines, ""]) if text.endswith("\n") else "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ConfigDraft:
    """A config as it would be written, and the dataset in it that is asked.

    Parameters
    ----------
    file, text
        Where the config is, and its text with what this question adds.
    name, columns, types
        The dataset; its columns, and their types where the file declares them.
    is_new
        Whether the config did not declare the dataset before.
    has_key
        Whether the catalogue of a database says that each unit has one row.
    engine
        The engine that the command names in place of the declared one, if it does.
    """

    file: Path
    text: str
    name: str
    columns: tuple[str, ...]
    types: Mapping[str, str]
    is_new: bool = False
    has_key: bool = False
    engine: str | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What is declared of the dataset."""
        facts: dict[str, Any] = tomllib.loads(self.text)["datasets"][self.name]
        return facts

    @property
    def config(self) -> Config:
        """The config, as other commands read it."""
        from tacit.tables import read_config

        config = read_config(self.text, self.file.parent, name=self.file.name)
        return config if self.engine is None else config.on_engine(self.name, self.engine)

    @property
    def ledger(self) -> str:
        """Where the budget is kept."""
        place = str(tomllib.loads(self.text).get("ledger", ""))
        return place if "://" in place or not place else str(self.file.parent / place)

    @property
    def noun(self) -> str:
        """What one unit is called."""
        from tacit.core import Unit

        unit = self.facts["unit"]
        return Unit(unit).noun if isinstance(unit, str) and unit else "row"

    def declaring(self, section: str, key: str, value: object) -> ConfigDraft:
        """Return the draft with one more fact; what is declared otherwise is refused."""

        def declared(facts: dict[str, Any]) -> object:
            return facts.get(section, {}).get(key) if section else facts.get(key)

        now, written = declared(self.facts), list(value) if isinstance(value, tuple) else value
        fact = f"{section} of {key!r}" if section else f"{key} of {self.name!r}"
        if now == written:
            return self
        if now is not None:
            raise TacitError(
                "bad-parameter",
                f"{self.file} declares other {fact}",
                why="answers that were paid for belong to that declaration",
                fix=Say(f"leave the option out, or change {self.file}"),
            )
        changed = replace(self, text=with_fact(self.text, self.name, section, key, value))
        try:
            is_declared = declared(changed.facts) == written
        except tomllib.TOMLDecodeError:  # written by hand in another way
            is_declared = False
        if not is_declared:
            place = f"{self.file}, under {heading_of(self.name, section)}"
            raise TacitError(
                "cannot-write",
                f"the {fact} could not be added to {self.file}",
                why="the file is written in another way than Tacit writes it; nothing was charged",
                fix=Say(f"{place}: {toml_key(key)} = {toml_value(value)}"),
            )
        return changed


def check_exists(data: Path, again: Callable[[str, str], str] | None = None) -> None:
    """Refuse a file that does not exist, and a folder without Parquet files.

    The fix names the file that was likely meant: in a line of ``tacit init``, or in the line that ``again``
    makes of what was typed and of what was meant.
    """
    if not data.is_file() and not _has_parquet_files(data):
        here = sorted(
            f.name for f in data.parent.glob("*") if f.suffix.lower() in {data.suffix.lower(), ".csv"}
        )
        meant = get_close_matches(data.name, here, 1)
        fix = EXAMPLE if again is None else "check its name and its folder"
        if meant:
            name = typed(str(data.parent / meant[0]))
            fix = f"tacit init {name} --unit COLUMN" if again is None else again(typed(str(data)), name)
        if data.is_dir():
            raise TacitError(
                "bad-parameter",
                f"the folder {data} holds no Parquet files",
                why="a folder stands for all Parquet files in it, and they must have the same columns",
                fix=EXAMPLE,
            )
        raise missing_file(data, fix=fix)


def _has_parquet_files(data: Path) -> bool:
    """Return whether a folder or pattern stands for at least one Parquet file."""
    from tacit.engines import read_source

    if not data.is_dir() and not glob.has_magic(str(data)):
        return False
    source = read_source(data)
    return source.is_folder and source.is_there


def default_name(data: Path) -> str:
    """Return the name of the file or folder as SQL can write it; a pattern is called like its folder."""
    candidates = [re.sub(r"\W+", "_", part).strip("_") for part in (data.stem, data.absolute().parent.name)]
    return next((name for name in candidates if name), "data")


def source_of(data: Path, reading: Mapping[str, str]) -> Source:
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


def open_reading(source: Source) -> TypeGuard[CsvSource]:
    """Return whether the header of a CSV file shows a separator that often comes with decimal commas."""
    from tacit.engines import CsvSource

    return isinstance(source, CsvSource) and not source.separator and source.delimiter not in {",", "\t"}


def schema_of(data: Path, name: str, source: Source) -> list[tuple[str, str]]:
    """Return columns and kinds from the schema; the kind is empty where the file does not declare it.

    A file in which all columns are text, such as one that `tacit convert` wrote, declares as little as CSV.
    """
    check_exists(data)
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


def relative(data: Path, config: Path) -> str:
    """Return the path of a file from the folder of the config; an absolute path stays."""
    if data.is_absolute():
        return str(data)
    return Path(os.path.relpath(data, config.parent)).as_posix()
