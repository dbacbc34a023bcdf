"""One sentence to start: ``tacit ask visits.csv --mean length_of_stay --by ward --unit patient_id --epsilon 1``.

What is missing is asked by numbered prompts, none of which needs statistics; without a terminal the command is
refused with the whole line to type. Before anything is written or charged, the price and the expected error
are shown and confirmed. The answer leaves a ``tacit.toml`` and a ledger, so that the next question needs less.

Guarantee: nothing of the data is used before the charge. Prompts show names and types of columns alone, from
the header or the schema of the file; what is typed is a declaration of the curator, which is public.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tacit.cli import _query as question
from tacit.cli._context import note_dataset
from tacit.cli._declaration import Declaration, DeclaredFacts, check_exists, with_fact
from tacit.cli._ledger import find_account
from tacit.cli._options import (
    Total,
    budget_parts,
    number_text,
    read_bounds_option,
    read_keys_option,
    read_limit_option,
    with_options,
)
from tacit.cli._output import JsonOption, OutputFiles, say, typed
from tacit.cli._plan import price_lines
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.core import AnswerTable, Plan
    from tacit.tables import Config, TableDataset

T = TypeVar("T")
#: The budget of a file of which groups are found privately, and what each such question takes of its delta.
_BUDGET_DELTA, _DELTA = 1e-6, 1e-7
_ENDINGS = (".csv", ".tsv", ".parquet", ".duckdb")
_AGGREGATES = {"mean": "AVG", "sum": "SUM", "median": "MEDIAN"}


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """What is asked: numbers of columns, and the column whose values divide the rows into groups."""

    mean: Annotated[list[str] | None, typer.Option(help="The mean of this column; may be repeated.")] = None
    sum: Annotated[list[str] | None, typer.Option(help="The sum of this column; may be repeated.")] = None
    median: Annotated[list[str] | None, typer.Option(help="The median of this column; may be repeated.")] = (
        None
    )
    count: Annotated[bool, typer.Option("--count", help="How many rows there are.")] = False
    by: Annotated[str | None, typer.Option(help="For each value of this column.")] = None

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """The aggregates of columns: the word and the column."""
        return [(word, column) for word in _AGGREGATES for column in getattr(self, word) or ()]

    @property
    def columns(self) -> list[str]:
        """The columns that it names."""
        return [*(column for _, column in self.numbers), *([self.by] if self.by else [])]

    def sql(self, table: str) -> str:
        """Write the sentence as the question that ``tacit query`` takes.

        Examples
        --------
        >>> Sentence(mean=["stay"], count=True, by="ward").sql("visits")
        'SELECT ward, AVG(stay) AS mean_stay, COUNT(*) AS rows FROM visits GROUP BY ward'
        """
        parts = [
            f"{_AGGREGATES[word]}({_quoted(column)}) AS {_quoted(f'{word}_{column}')}"
            for word, column in self.numbers
        ]
        parts += ["COUNT(*) AS rows"] if self.count else []
        by = [_quoted(self.by)] if self.by else []
        groups = f" GROUP BY {by[0]}" if by else ""
        return f"SELECT {', '.join([*by, *parts])} FROM {_quoted(table)}{groups}"  # noqa: S608 - never run


def _quoted(name: str) -> str:
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


@dataclass(slots=True)
class Prompts:
    """Asks a person at a terminal; elsewhere notes what should have been typed.

    Parameters
    ----------
    is_terminal
        Whether somebody can answer.
    missing
        The options that were not typed, with words in place of their values.
    """

    is_terminal: bool
    missing: list[str] = field(default_factory=list)

    def choose(self, option: str, title: str, why: str, choices: Sequence[tuple[str, T]]) -> T | None:
        """Let a person choose by number; None where nobody can."""
        if not self._asks(option, title, why):
            return None
        for number, (label, _) in enumerate(choices, 1):
            _tell(f"{number:>3}  {label}", hanging=5)
        while True:
            text = typer.prompt(f"Number (1 to {len(choices)})", err=True).strip()
            if text.isdecimal() and 1 <= int(text) <= len(choices):
                return choices[int(text) - 1][1]
            _tell(f"Type a whole number from 1 to {len(choices)}.")

    def read(self, option: str, title: str, why: str, words: str, read: Callable[[str], T]) -> T | None:
        """Let a person type a value until it can be read; None where nobody can."""
        if not self._asks(option, title, why):
            return None
        return self.typed(words, read)

    def typed(self, words: str, read: Callable[[str], T]) -> T:
        """Let a person type a value until it can be read."""
        while True:
            try:
                return read(typer.prompt(words, err=True).strip())
            except (TacitError, ValueError) as refusal:
                _tell(refusal.what if isinstance(refusal, TacitError) else "This cannot be read.")

    def confirms(self, words: str) -> bool:
        """Return whether a person agrees."""
        return typer.confirm(words, err=True)

    def _asks(self, option: str, title: str, why: str) -> bool:
        if not self.is_terminal:
            self.missing.append(option)
            return False
        typer.echo(err=True)
        _tell(title, bold=True)
        _tell(why)
        return True

    def check(self) -> None:
        """Refuse with the whole line to type, if something is missing."""
        if not self.missing:
            return
        words = [typed(word) for word in sys.argv[1:] if word != "--json"]
        raise TacitError(
            "bad-parameter",
            f"this question also needs {', '.join(dict.fromkeys(one.split()[0] for one in self.missing))}",
            why="there is no terminal to ask you on; nothing was written and nothing was charged",
            fix=Say(" ".join(["tacit", *words, *dict.fromkeys(self.missing)])),
        )


def _tell(text: str, *, bold: bool = False, hanging: int = 0) -> None:
    width = min(max(shutil.get_terminal_size().columns, 30), 100)
    lines = textwrap.fill(text, width, subsequent_indent=" " * hanging, break_on_hyphens=False)
    typer.echo(typer.style(lines, bold=bold), err=True)


@dataclass(frozen=True, slots=True)
class Draft:
    """The text of the config as it would be written, and the dataset that is asked."""

    text: str
    config: Config
    name: str
    is_new: bool

    @property
    def facts(self) -> dict[str, Any]:
        """What is declared of the dataset."""
        return dict(self.config.datasets[self.name])

    def declaring(self, section: str, key: str, value: object) -> Draft:
        """Return the draft with one more fact."""
        from tacit.tables import read_config

        text = with_fact(self.text, self.name, section, key, value)
        return replace(self, text=text, config=read_config(text, self.config.folder))


@with_options
def ask_tables(
    source: Annotated[Path | None, typer.Argument(help="A .csv, .tsv, .parquet or .duckdb file.")] = None,
    *,
    sentence: Sentence,
    facts: DeclaredFacts,
    total: Total,
    files: OutputFiles,
    payer: question.Payer,
    place: question.Declarations,
    budget: Annotated[
        float | None, typer.Option(help="The whole budget, in epsilon; needed the first time.")
    ] = None,
    budget_delta: Annotated[float, typer.Option(help="The budget's delta, to find groups privately.")] = 0,
    size: Annotated[int | None, typer.Option(help="A public guess of the rows in each group.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Charge without asking again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a table in one sentence; what is missing is asked. Shows the price, charges, answers.

    tacit ask visits.csv --mean length_of_stay --by ward --unit patient_id --epsilon 1
    """
    files.check()
    prompts = Prompts(_is_terminal() and not as_json)
    draft = _opened(source, sentence, facts, place, prompts, (budget, budget_delta or 10 * total.delta))
    ...


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
