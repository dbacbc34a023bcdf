"""One sentence to start: ``tacit ask visits.csv --mean stay --by ward --unit patient_id --epsilon 1``.

What is missing is asked by numbered prompts, none of which needs statistics. Without a terminal the command
is refused with the whole line to type. Before anything is written or charged, the price and the expected
error are shown and confirmed. The answer leaves a ``tacit.toml`` and a ledger: the next question needs less.

Guarantee: nothing of the data is used before the charge. Prompts show names and types of columns alone, from
the header or the schema of the file; what is typed is a declaration of the curator, which is public.
"""

from __future__ import annotations

import csv
import math
import shutil
import sys
import textwrap
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tacit.cli import _query as question
from tacit.cli._context import note_dataset
from tacit.cli._declaration import (
    ConfigDraft,
    Declaration,
    DeclaredFacts,
    check_exists,
    open_reading,
)
from tacit.cli._ledger import check_charge, check_first_charge, find_account
from tacit.cli._options import (
    Total,
    budget_parts,
    number_text,
    read_bounds_option,
    read_keys_option,
    read_limit_option,
    with_options,
)
from tacit.cli._output import (
    JsonOption,
    OutputFiles,
    plan_facts,
    printable,
    say,
    show_json,
    typed,
    write_file,
)
from tacit.cli._plan import kept_budget, show_price
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.core import AnswerTable, Plan
    from tacit.engines import Source
    from tacit.tables import TableDataset

T = TypeVar("T")
#: What a question takes of the budget's delta to find its groups; the budget of a new file has ten times it.
_DELTA = 1e-7
_ENDINGS = (".csv", ".tsv", ".parquet", ".duckdb")
_AGGREGATES = {"mean": "AVG", "sum": "SUM", "median": "MEDIAN"}


@dataclass(frozen=True, kw_only=True)
class TableSentence:
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
        >>> TableSentence(mean=["stay"], count=True, by="ward").sql("visits")
        'SELECT ward, AVG(stay) AS mean_stay, COUNT(*) AS n FROM visits GROUP BY ward'
        """
        parts = [
            f"{_AGGREGATES[word]}({_quoted(column)}) AS {_quoted(f'{word}_{column}')}"
            for word, column in self.numbers
        ]
        parts += ["COUNT(*) AS n"] if self.count else []
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
    typer.echo(typer.style(lines, bold=True) if bold else lines, err=True)


_FileArgument = Annotated[
    Path | None,
    typer.Argument(metavar="SOURCE", help="A .csv, .tsv, .parquet or .duckdb file; by default tacit.toml's."),
]
_WholeBudgetOption = Annotated[
    float | None, typer.Option("--budget", help="The whole budget, in epsilon; needed the first time.")
]
_DeltaOfBudgetOption = Annotated[
    float, typer.Option("--budget-delta", help="The budget's delta, so that groups can be found privately.")
]
_SizeOption = Annotated[
    int | None, typer.Option("--size", help="A public guess of the rows in each group; for planning only.")
]
_PlanFlag = Annotated[bool, typer.Option("--plan", help="Show the cost and the error; charge nothing.")]
_YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Charge without asking again.")]


@with_options
def ask_tables(
    sentence: TableSentence, facts: DeclaredFacts, total: Total, files: OutputFiles, payer: question.Payer,
    place: question.Declarations, *, source: _FileArgument = None, budget: _WholeBudgetOption = None,
    budget_delta: _DeltaOfBudgetOption = 0, size: _SizeOption = None, cut: question.CutOption = None,
    yes: _YesFlag = False, plan: _PlanFlag = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Ask a table in one sentence; what is missing is asked. Shows the price, then charges and answers.

    tacit ask visits.csv --mean length_of_stay --by ward --unit patient_id --epsilon 1
    """
    files.check()
    prompts = Prompts(is_terminal=sys.stdin.isatty() and sys.stderr.isatty() and not as_json)
    draft = _declared(source, facts, place, prompts)
    sentence = _completed(sentence, draft, prompts)
    draft, total = _with_groups(draft, sentence, total, prompts)
    draft = _with_ranges(draft, sentence, prompts)
    draft = _with_limit(draft, prompts)
    total = _with_cost(draft, total, prompts)
    draft = _with_budget(draft, total, budget, budget_delta or 10 * total.delta, prompts)
    if not (yes or plan or prompts.is_terminal):
        prompts.missing.append("--yes")
    prompts.check()
    automatic = [f"{c}=auto" for _, c in sentence.numbers if c not in draft.facts.get("bounds", {})]
    price = question.Price(**total.goal, size=size, bounds=list(dict.fromkeys(automatic)) or None, cut=cut)
    sql = sentence.sql(draft.config.tables(draft.name)[0])
    note_dataset(draft.file, draft.config, draft.name, sql)

    def planned(data: TableDataset) -> Plan[AnswerTable]:
        return price.plan(data, sql, None)

    _show(draft, planned, as_json=as_json, plan_alone=plan)
    if plan:
        return
    if not yes and not prompts.confirms(f"Charge {_price(total)} and answer?"):
        _tell("nothing was charged, and nothing was written")
        raise typer.Exit(1)
    _answer(draft, planned, files, payer, as_json=as_json)


def _declared(
    source: Path | None, facts: DeclaredFacts, place: question.Declarations, prompts: Prompts
) -> ConfigDraft:
    """Find the dataset in the config, or declare the file as a new one."""
    file = place.config
    before = ""
    if file.exists():
        name = _known_as(source, place)
        if name is not None:
            return _of_config(file, name, facts, place.engine)
        before = file.read_text(encoding="utf-8")
    elif source is None:
        source = _chosen_file(prompts)
    assert source is not None  # noqa: S101 - else the config has named a dataset
    check_exists(source)
    draft, opened = _as_written(source, file, facts, prompts)
    draft = replace(draft, unit=_chosen_unit(draft, facts, prompts))
    if before and draft.name in tomllib.loads(before).get("datasets", {}):
        raise TacitError(
            "bad-parameter",
            f"{file} has a dataset {draft.name!r} already, of another file",
            fix=Say(f"--name {draft.name}_2"),
        )
    if draft.unit or facts.rows:
        draft.check(file.parent)
    has_key = any(set(key) <= {draft.unit} for key in opened.unique(draft.name))
    return ConfigDraft(
        file, draft.text(before), draft.name, draft.columns, draft.types, is_new=True, has_key=has_key
    )


def _known_as(source: Path | None, place: question.Declarations) -> str | None:
    """Return the dataset of the config that is asked: the only one, the named one, or that of the file."""
    if source is None:
        return place.read()[1]
    from tacit.tables import open_config

    config = open_config(place.config)
    wanted = source.resolve()
    names = [
        name
        for name in config.datasets
        if wanted in [Path(str(one)).resolve() for one in config.files(name)]
        and place.dataset in {None, name}
    ]
    return names[0] if names else None


def _of_config(file: Path, name: str, facts: DeclaredFacts, engine: str | None) -> ConfigDraft:
    """Open a dataset that is declared, and add what was declared with this question."""
    from tacit.ledger import Ledger

    draft = ConfigDraft(file, file.read_text(encoding="utf-8"), name, (), {}, engine=engine)
    note_dataset(file, draft.config, name)
    with Ledger.memory() as ledger:
        dataset = question.alone(draft.config, name).dataset(name, ledger=ledger)
        table = dataset.tables[dataset.main]
        types = {column: fact.kind for column, fact in table.facts.items() if fact.kind}
        draft = replace(draft, columns=table.columns or (), types=types)
    known = draft.columns
    if facts.unit is not None or facts.rows:
        draft = draft.declaring("", "unit", facts.unit or "")
    for text in facts.bounds or ():
        draft = draft.declaring("bounds", *read_bounds_option(text, known))
    for text in facts.keys or ():
        draft = draft.declaring("keys", *read_keys_option(text, known, types))
    for text in facts.limits or ():
        draft = draft.declaring("limits", *read_limit_option(text))
    return draft


def _chosen_file(prompts: Prompts) -> Path:
    here = sorted(one.name for one in Path().iterdir() if one.suffix.lower() in _ENDINGS)
    if not here or not prompts.is_terminal:
        raise TacitError(
            "bad-parameter",
            "name the file that is asked",
            why="there is no tacit.toml here, which would name it",
            fix=Say("tacit ask visits.csv --mean length_of_stay --by ward --unit patient_id --epsilon 1"),
        )
    why = "These files are in this folder."
    return Path(prompts.choose("SOURCE", "Which file is asked?", why, [(name, name) for name in here]) or "")


def _as_written(
    source: Path, file: Path, facts: DeclaredFacts, prompts: Prompts
) -> tuple[Declaration, Source]:
    """Declare a file as new, and ask how a CSV file is written where its form leaves that open."""
    try:
        draft, opened = facts.draft(source, file, budget={}, written_by="tacit ask")
        opened.check_form()
    except TacitError as refusal:
        if not prompts.is_terminal or facts.encoding != "utf-8" or not _is_of_encoding(refusal.fix):
            raise
        why = "It has letters such as ä or é that are written in another way, often by Excel on Windows."
        codes = [("read it as windows-1252, which is also called latin-1", True), ("stop here", False)]
        if not prompts.choose("", f"{source.name} is not a UTF-8 file.", why, codes):
            raise
        return _as_written(source, file, replace(facts, encoding="windows-1252"), prompts)
    is_open = open_reading(opened) and facts.decimal == "." and not facts.dates
    if not prompts.is_terminal or not is_open:
        return draft, opened
    why = (
        f"The columns of {source.name} are not separated by commas, so its numbers may be written with them."
    )
    signs = [("3.5, with a point", "."), ("3,5, with a comma", ",")]
    orders = [
        ("2023-12-31, or there are none", ""),
        ("31.12.2023", "day.month.year"),
        ("12/31/2023", "month/day/year"),
    ]
    decimal = prompts.choose("", "How are numbers written?", why, signs) or "."
    why = "A date that is written in another way counts as missing."
    dates = prompts.choose("", "How are dates written?", why, orders) or ""
    facts = replace(facts, decimal=decimal, dates=dates)
    return facts.draft(source, file, budget={}, written_by="tacit ask")


def _is_of_encoding(fix: object) -> bool:
    return any(_is_of_encoding(one) for one in getattr(fix, "fixes", ())) or (
        getattr(fix, "action", "") == "declare-encoding"
    )


def _chosen_unit(draft: Declaration, facts: DeclaredFacts, prompts: Prompts) -> str:
    """Return the column of the unit; empty where each row is a unit."""
    if facts.unit is not None or facts.rows:
        if facts.rows and facts.unit is not None:
            raise bad_parameter("--row", "omitted if --unit is given", facts.unit, fix=Say("leave --row out"))
        return facts.unit or ""
    choices = [(_labelled(column, draft.types), column) for column in draft.columns]
    choices.append(("no column: each row is about another person", ""))
    why = (
        "Choose the column that says to which person a row belongs, such as the number of the patient. "
        "Everything in the file about one person is then protected together."
    )
    return prompts.choose("--unit COLUMN", "Who is protected?", why, choices) or ""


def _labelled(column: str, types: Mapping[str, str]) -> str:
    return f"{printable(column)} ({types[column]})" if column in types else printable(column)


def _completed(sentence: TableSentence, draft: ConfigDraft, prompts: Prompts) -> TableSentence:
    """Return the sentence with an aggregate and with columns that exist."""
    for column in sentence.columns:
        if column not in draft.columns:
            fix = Choose(draft.columns, given=column)
            raise TacitError("unknown-column", f"there is no column {column!r}", fix=fix)
    if sentence.numbers or sentence.count:
        return sentence
    words = [
        ("how many rows there are", "count"),
        *((f"the {word} of a column", word) for word in _AGGREGATES),
    ]
    why = "You can ask more later, as long as the budget lasts."
    word = prompts.choose("--mean COLUMN", "What do you want to know?", why, words)
    if word is None:
        return sentence
    unit = draft.facts["unit"]
    others = [column for column in draft.columns if column != unit]
    if word == "count":
        sentence = replace(sentence, count=True)
    else:
        numbers = [(_labelled(c, draft.types), c) for c in others if draft.types.get(c, "number") == "number"]
        why = "It must be a column of numbers."
        column = prompts.choose(f"--{word} COLUMN", f"The {word} of which column?", why, numbers) or ""
        sentence = TableSentence(**{**vars(sentence), word: [column]})
    if sentence.by is None:
        others = [column for column in others if column not in sentence.columns]
        groups = [("all rows together", ""), *((_labelled(c, draft.types), c) for c in others)]
        why = "You can ask for one number, or for one number for each value of a column, such as each ward."
        sentence = replace(
            sentence, by=prompts.choose("--by COLUMN", "For which groups?", why, groups) or None
        )
    return sentence


def _with_groups(
    draft: ConfigDraft, sentence: TableSentence, total: Total, prompts: Prompts
) -> tuple[ConfigDraft, Total]:
    """Settle which groups there are: declared, listed now, or found privately with a delta."""
    by, facts = sentence.by, draft.facts
    if by is None or by in facts.get("keys", {}) or total.delta or total.rho is not None:
        return draft, total
    if kept_delta := float(facts.get("budget", {}).get("delta", 0)):
        return draft, replace(total, delta=min(_DELTA, kept_delta / 10))
    title = f"Which values can {printable(by)} have?"
    listed = "I list them, because everybody may know them"
    private = (
        f"Tacit finds them privately: a value that few {draft.noun}s have is not shown, and the answer also "
        f"costs delta {_DELTA:g}"
    )
    why = (
        "Tacit does not look into the file for this: even which values occur there can be private. In a "
        'list, put a value that has a comma into quotes: "B,2".'
    )
    if draft.is_new and not facts.get("budget"):
        way = prompts.choose(f"--keys {by}=A,B", title, why, [(listed, "list"), (private, "private")])
        if way == "private":
            return draft, replace(total, delta=_DELTA)
        if way is None:
            return draft, total
        keys = prompts.typed("The values, with commas between them", lambda text: _keys(by, text, draft))
    else:
        words = "The values, with commas between them"
        keys = prompts.read(f"--keys {by}=A,B", title, why, words, lambda text: _keys(by, text, draft)) or []
    return (draft.declaring("keys", by, keys) if keys else draft), total


def _keys(by: str, text: str, draft: ConfigDraft) -> list[object]:
    words = [word for part in next(csv.reader([text], skipinitialspace=True)) if (word := part.strip())]
    if not words:
        raise bad_parameter("the values", "a list such as A,B", text)
    if draft.types.get(by, "text") in {"text", "date"}:
        return list(words)
    return read_keys_option(f"{by}={','.join(words)}", [by], draft.types)[1]


def _with_ranges(draft: ConfigDraft, sentence: TableSentence, prompts: Prompts) -> ConfigDraft:
    """Settle the range of each column: declared, found privately by the plan, or typed where it cannot be."""
    grouped = sentence.by is not None and sentence.by not in draft.facts.get("keys", {})
    grouped = grouped and f"--keys {sentence.by}=A,B" not in prompts.missing
    for _, column in sentence.numbers:
        if column in draft.facts.get("bounds", {}) or not grouped:
            continue
        bounds = prompts.read(
            f"--bounds {column}=LOW:HIGH",
            f"Between which values does {printable(column)} lie?",
            "Give a range that everybody would expect, from what you know of the subject, not from the file. "
            "A value outside of it counts as the nearer end. (Tacit can find a range itself only if the "
            "groups are listed.)",
            "Lowest and highest, such as 0 30",
            _range,
        )  # fmt: skip
        if bounds is not None:
            draft = draft.declaring("bounds", column, bounds)
    return draft


def _range(text: str) -> tuple[float, float]:
    low, high = (float(part) for part in text.replace(":", " ").replace("..", " ").split())
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise bad_parameter("the range", "a lower number and a higher one", text)
    return low, high


def _with_limit(draft: ConfigDraft, prompts: Prompts) -> ConfigDraft:
    """Ask how many rows one person can have, where nothing says it: it decides the noise."""
    if not prompts.is_terminal or not draft.is_new or draft.has_key or not draft.facts["unit"]:
        return draft
    if draft.facts.get("limits"):
        return draft
    noun = draft.noun
    choices = [
        (f"one: there is one row for each {noun}", 1),
        ("a few, and I type how many count", 0),
        ("I do not know: up to 10 rows count, and the plan says what one row would change", -1),
    ]
    why = (
        f"The more rows of one {noun} count, the more noise is needed to hide that {noun}. Rows beyond the "
        "number are dropped at random."
    )
    title = f"How many rows can one {noun} have in this file?"
    rows = prompts.choose("--limit rows=1", title, why, choices)
    if rows == 0:
        rows = prompts.typed("How many rows count", lambda text: read_limit_option(f"rows={text}")[1])
    return draft.declaring("limits", "rows", rows) if rows and rows > 0 else draft


def _with_cost(draft: ConfigDraft, total: Total, prompts: Prompts) -> Total:
    """Settle what the answer may cost."""
    if total.epsilon is not None or total.rho is not None:
        return total
    why = (
        f"A small epsilon protects each {draft.noun} better, and makes the answer less exact. You see the "
        "error before you pay."
    )
    title = "How much may this answer cost?"
    return replace(total, epsilon=_epsilon("--epsilon 0.5", title, why, (0.1, 0.5, 1), draft, prompts))


def _epsilon(
    option: str, title: str, why: str, amounts: Sequence[float], draft: ConfigDraft, prompts: Prompts
) -> float | None:
    """Let a person choose an epsilon by what it means."""
    choices: list[tuple[str, float]] = [(f"epsilon {one:g}: {_meaning(one, draft)}", one) for one in amounts]
    epsilon = prompts.choose(option, title, why, [*choices, ("another number", 0)])
    return epsilon if epsilon != 0 else prompts.typed("Epsilon", _positive)


def _meaning(epsilon: float, draft: ConfigDraft) -> str:
    sure = 100 / (1 + math.exp(-epsilon))
    if sure > 99:
        return f"nearly any fact about one {draft.noun} can be guessed, at worst"
    return (
        f"who guesses a fact about one {draft.noun} is right at most {sure:.0f} % of the time instead of 50 %"
    )


def _positive(text: str) -> float:
    if not 0 < (number := float(text)) < math.inf:
        raise bad_parameter("epsilon", "a positive number", text)
    return number


def _with_budget(
    draft: ConfigDraft, total: Total, amount: float | None, delta: float, prompts: Prompts
) -> ConfigDraft:
    """Settle the whole budget of a dataset that has none: that of its account, the given one, or a choice."""
    if draft.facts.get("budget"):
        return draft
    account = find_account(draft.name, draft.ledger) if draft.ledger else None
    if account is not None:
        return draft.declaring("", "budget", budget_parts(account.budget))
    if amount is None:
        least = total.epsilon or 0
        why = (
            "All answers about this file together, today and later, never cost more. What was asked and what "
            f"is left stands in {draft.ledger}."
        )
        amounts = [one for one in (1.0, 3.0, 10.0) if one >= least] or [least, 2 * least]
        title = "How much may be learned from this file in total?"
        amount = _epsilon("--budget 3", title, why, amounts, draft, prompts)
    if amount is None:
        return draft
    parts = (
        {"rho": amount}
        if total.rho is not None
        else {"epsilon": amount, **({"delta": delta} if delta else {})}
    )
    return draft.declaring("", "budget", parts)


def _price(total: Total) -> str:
    parts = {"epsilon": total.epsilon, "delta": total.delta, "rho": total.rho}
    return ", ".join(f"{part} {number_text(amount)}" for part, amount in parts.items() if amount)


def _show(
    draft: ConfigDraft,
    planned: Callable[[TableDataset], Plan[AnswerTable]],
    *,
    as_json: bool,
    plan_alone: bool,
) -> None:
    """Show the price and the expected error; refuse what cannot be paid. Writes and charges nothing."""
    from tacit.ledger import Ledger

    config, name = draft.config, draft.name
    question.check_sources(config, name)
    with Ledger.memory() as trial:
        plan = planned(question.alone(config, name).dataset(name, ledger=trial))
        account = trial.account(name)
        if not plan_alone:
            where = question.declared_ledger(config)
            check_first_charge(name, where, plan, trial, parent=config.datasets[name].get("parent"))
            kept = kept_budget(config, name, account.budget, plan)
            if kept.account is not None and kept.fits == 0 and not kept.stored:
                check_charge(kept.account, plan)
        if not as_json:
            typer.echo()
            show_price(plan, config, account)
        elif plan_alone:
            show_json(plan_facts(plan))


def _answer(
    draft: ConfigDraft, planned: Callable[[TableDataset], Plan[AnswerTable]], files: OutputFiles,
    payer: question.Payer, *, as_json: bool,
) -> None:  # fmt: skip
    """Write what was declared, charge and answer."""
    is_changed = not draft.file.exists() or draft.file.read_text(encoding="utf-8") != draft.text
    if is_changed:
        text = draft.text
        write_file(draft.file, lambda file: file.write_text(text, encoding="utf-8"), "the config", "--config")
    question.answer(draft.config, draft.name, payer, planned, files, as_json=as_json)
    if as_json:
        return
    if is_changed:
        say(f"written: {draft.file}, with what you declared")
    option = "" if draft.file == Path("tacit.toml") else f" --config {typed(str(draft.file))}"
    typer.echo(f"next: tacit ask --mean COLUMN{option}    (it needs less now)")
