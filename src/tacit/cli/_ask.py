"""One sentence to start: ``tacit ask visits.csv --mean stay --by ward --unit patient_id --epsilon 1``.

What is missing is asked by numbered prompts, none of which needs statistics. Without a terminal the command
is refused with the whole line to type, which charges nothing. Before anything is written or charged, the
price is shown in plain words and confirmed; an answer that is stored is free and needs no consent. The answer
leaves a ``tacit.toml`` and a ledger: the next question needs less.

Guarantee: nothing of the data is used before the charge. Prompts show names and types of columns alone, from
the header or the schema of the file; what is typed is a declaration of the curator, which is public.
"""

from __future__ import annotations

import contextlib
import csv
import math
import signal
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from tacit.cli._fixes import in_words_of_the_command
from tacit.cli._ledger import check_charge, check_first_charge, find_account
from tacit.cli._options import (
    Total,
    budget_parts,
    closest,
    fact_option,
    number_text,
    read_bounds_option,
    read_keys_option,
    read_limit_option,
    with_options,
)
from tacit.cli._output import (
    JsonOption,
    OutputFiles,
    Prompts,
    plan_facts,
    printable,
    say,
    show_json,
    tell,
    typed,
    write_file,
)
from tacit.cli._plan import kept_budget, price_in_words, show_price
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tacit.core import AnswerTable, Plan
    from tacit.engines import Source
    from tacit.tables import TableDataset

#: What a question takes of the budget's delta to find its groups; the budget of a new file has ten times it.
_DELTA = 1e-7
_VALUES = "The values, with commas between them"
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
    with _stoppable(prompts):
        draft = _declared(sentence, source, facts, place, prompts)
        prompts.notice = _notice(draft, total)
        sentence = _completed(sentence, draft, prompts)
        draft, total = _with_groups(draft, sentence, total, prompts)
        draft = _with_ranges(draft, sentence, prompts)
        draft = _with_limit(draft, prompts)
        total = _with_cost(draft, total, prompts)
        draft = _with_budget(draft, total, budget, budget_delta or 10 * total.delta, prompts)
        prompts.check()
        automatic = [f"{c}=auto" for _, c in sentence.numbers if c not in draft.facts.get("bounds", {})]
        price = question.Price(
            **total.goal, size=size, bounds=list(dict.fromkeys(automatic)) or None, cut=cut
        )
        sql = sentence.sql(draft.config.tables(draft.name)[0])
        note_dataset(draft.file, draft.config, draft.name, sql)

        def planned(data: TableDataset) -> Plan[AnswerTable]:
            return price.plan(data, sql, None)

        if plan:
            _show_plan(draft, planned, as_json=as_json)
            return
        is_free = _show_price(draft, planned, sentence, total, payer, as_json=as_json)
        if not (is_free or yes):
            _check_agreed(prompts, total)
    _answer(draft, planned, files, payer, as_json=as_json)


@contextlib.contextmanager
def _stoppable(prompts: Prompts) -> Iterator[None]:
    """Say that nothing was charged or written if a person stops before the charge, and how to ask again.

    After a no and Ctrl-D the exit status is 1, after Ctrl-C it is 130.
    """
    presses = []

    def note(number: int, _frame: object) -> None:
        presses.append(number)
        raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread: the caller there handles Ctrl-C
        previous = None
    try:
        yield
    except (typer.Abort, KeyboardInterrupt):
        typer.echo(err=True)
        tell("nothing was charged, nothing was written; to ask again, with what you have answered:")
        typer.echo(f"  {prompts.line()}", err=True)
        raise typer.Exit(130 if presses else 1) from None
    finally:
        if previous is not None:
            signal.signal(signal.SIGINT, previous)


def _check_agreed(prompts: Prompts, total: Total) -> None:
    """Stop if a person does not agree to the charge; refuse where nobody can be asked."""
    if not prompts.is_terminal:
        raise TacitError(
            "bad-parameter",
            f"nobody has agreed to charge {_price(total)}: --yes is missing",
            why="there is no terminal to ask you on; nothing was written and nothing was charged",
            fix=Say(prompts.line("--yes")),
        )
    if not prompts.agrees(f"Charge {_price(total)} and answer?"):
        raise typer.Abort


def _declared(
    sentence: TableSentence, source: Path | None, facts: DeclaredFacts, place: question.Declarations,
    prompts: Prompts,
) -> ConfigDraft:  # fmt: skip
    """Find the dataset in the config, or declare the file as a new one."""
    file = place.config
    before = ""
    if file.exists():
        name = _known_as(source, place)
        if name is not None:
            draft = _of_config(file, name, facts, place.engine)
            _check_columns(sentence.columns, draft.columns)
            return draft
        before = file.read_text(encoding="utf-8")
    elif source is None:
        source = _chosen_file(prompts)
        prompts.answers.append(typed(str(source)))
    assert source is not None  # noqa: S101 - else the config has named a dataset
    check_exists(source, lambda named, meant: prompts.line().replace(f" {named}", f" {meant}", 1))
    declaration, opened = _as_written(source, file, facts, sentence, prompts)
    declaration = replace(declaration, unit=_chosen_unit(declaration, facts, prompts))
    if before and declaration.name in tomllib.loads(before).get("datasets", {}):
        raise TacitError(
            "bad-parameter",
            f"{file} has a dataset {declaration.name!r} already, of another file",
            fix=Say(f"--name {declaration.name}_2"),
        )
    if declaration.unit or facts.rows:
        declaration.check(file.parent)
    has_key = any(set(key) <= {declaration.unit} for key in opened.unique(declaration.name))
    return ConfigDraft(
        file,
        declaration.text(before),
        declaration.name,
        declaration.columns,
        declaration.types,
        is_new=True,
        has_key=has_key,
    )


def _check_columns(names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a column that is not there, with the nearest name, before anything is asked."""
    for name in names:
        if name not in columns:
            fix = Choose(tuple(columns), given=name, close=closest(name, columns))
            raise TacitError("unknown-column", f"there is no column {name!r}", fix=fix)


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
    source: Path, file: Path, facts: DeclaredFacts, sentence: TableSentence, prompts: Prompts
) -> tuple[Declaration, Source]:
    """Declare a file as new, and ask how a CSV file is written where its form leaves that open."""
    try:
        draft, opened = facts.draft(source, file, budget={}, written_by="tacit ask")
        opened.check_form()
    except TacitError as refusal:
        if facts.encoding != "utf-8" or not _is_of_encoding(refusal.fix):
            raise
        option, title = "--encoding windows-1252", f"{source.name} is not a UTF-8 file."
        why = "It has letters such as ä or é that are written in another way, often by Excel on Windows."
        codes = [("read it as windows-1252, which is also called latin-1", True), ("stop here", False)]
        if prompts.choose(option, title, why, codes) is False:
            raise typer.Abort from None
        if prompts.is_terminal:
            prompts.answers.append(option)
        else:
            prompts.reasons.append(f"{source.name} is not a UTF-8 file")
        return _as_written(source, file, replace(facts, encoding="windows-1252"), sentence, prompts)
    _check_columns([*sentence.columns, *([facts.unit] if facts.unit else [])], draft.columns)
    if not open_reading(opened) or _was_typed("--decimal"):
        return draft, opened
    form = (
        f"the columns of {source.name} are not separated by commas, so its numbers may be written with them"
    )
    if not prompts.is_terminal:
        if sentence.numbers:
            prompts.missing.append("--decimal ,")
            prompts.reasons.append(f"{form} (--decimal , reads 3,5 and --decimal . reads 3.5)")
        return draft, opened
    signs = [("3,5, with a comma, as is usual in such files", ","), ("3.5, with a point", ".")]
    orders = [
        ("2023-12-31, or there are none", ""),
        ("31.12.2023", "day.month.year"),
        ("12/31/2023", "month/day/year"),
    ]
    why = f"{form[0].upper()}{form[1:]}. Numbers that are written in the other way count as missing."
    decimal = prompts.choose("", "How are numbers written?", why, signs) or "."
    why = "A date that is written in another way counts as missing."
    dates = facts.dates or prompts.choose("", "How are dates written?", why, orders) or ""
    prompts.answers.append(f"--decimal {decimal}")
    prompts.answers += [f"--dates {dates}"] if dates != facts.dates else []
    return replace(facts, decimal=decimal, dates=dates).draft(source, file, budget={}, written_by="tacit ask")


def _was_typed(option: str) -> bool:
    """Return whether an option is in the command, even with the value that it has by default."""
    return any(word.partition("=")[0] == option for word in sys.argv[1:])


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
    unit = prompts.choose("--unit COLUMN", "Who is protected?", why, choices)
    if unit is not None:
        prompts.answers.append(f"--unit {typed(unit)}" if unit else "--row")
    return unit or ""


def _labelled(column: str, types: Mapping[str, str]) -> str:
    return f"{printable(column)} ({types[column]})" if column in types else printable(column)


def _completed(sentence: TableSentence, draft: ConfigDraft, prompts: Prompts) -> TableSentence:
    """Return the sentence with an aggregate."""
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
        prompts.answers.append("--count")
    else:
        numbers = [(_labelled(c, draft.types), c) for c in others if draft.types.get(c, "number") == "number"]
        why = "It must be a column of numbers."
        column = prompts.choose(f"--{word} COLUMN", f"The {word} of which column?", why, numbers) or ""
        sentence = TableSentence(**{**vars(sentence), word: [column]})
        prompts.answers.append(f"--{word} {typed(column)}")
    if sentence.by is None:
        others = [column for column in others if column not in sentence.columns]
        groups = [("all rows together", ""), *((_labelled(c, draft.types), c) for c in others)]
        why = "You can ask for one number, or for one number for each value of a column, such as each ward."
        sentence = replace(
            sentence, by=prompts.choose("--by COLUMN", "For which groups?", why, groups) or None
        )
        prompts.answers += [f"--by {typed(sentence.by)}"] if sentence.by else []
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
    option = f"--keys {typed(f'{by}=...')}"
    if draft.is_new and not facts.get("budget"):
        way = prompts.choose(option, title, why, [(listed, "list"), (private, "private")])
        if way == "private":
            prompts.answers.append(f"--delta {number_text(_DELTA)}")
            return draft, replace(total, delta=_DELTA)
        if way is None:
            return draft, total
        keys = prompts.typed(_VALUES, lambda text: _keys(by, text, draft))
    else:
        keys = prompts.read(option, title, why, _VALUES, lambda text: _keys(by, text, draft)) or []
    if not keys:
        return draft, total
    prompts.answers.append(fact_option("keys", by, keys))
    return draft.declaring("keys", by, keys), total


def _keys(by: str, text: str, draft: ConfigDraft) -> list[object]:
    words = [word for part in next(csv.reader([text], skipinitialspace=True)) if (word := part.strip())]
    if not words:
        raise bad_parameter("the values", "a list such as A,B", text)
    kind = draft.types.get(by, "text")
    if kind in {"text", "date"}:
        return list(words)
    try:
        return read_keys_option(f"{by}={','.join(words)}", [by], draft.types)[1]
    except TacitError:
        raise bad_parameter("the values", f"values of a {kind} column", text) from None


def _with_ranges(draft: ConfigDraft, sentence: TableSentence, prompts: Prompts) -> ConfigDraft:
    """Settle the range of each column: declared, found privately by the plan, or typed where it cannot be."""
    grouped = sentence.by is not None and sentence.by not in draft.facts.get("keys", {})
    grouped = grouped and f"--keys {typed(f'{sentence.by}=...')}" not in prompts.missing
    for _, column in sentence.numbers:
        if column in draft.facts.get("bounds", {}) or not grouped:
            continue
        bounds = prompts.read(
            f"--bounds {typed(f'{column}=LOW:HIGH')}",
            f"Between which values does {printable(column)} lie?",
            "Give a range that everybody would expect, from what you know of the subject, not from the file. "
            "A value outside of it counts as the nearer end. (Tacit can find a range itself only if the "
            "groups are listed.)",
            "Lowest and highest, such as 0 30",
            _range,
        )  # fmt: skip
        if bounds is not None:
            prompts.answers.append(fact_option("bounds", column, bounds))
            draft = draft.declaring("bounds", column, bounds)
    return draft


def _range(text: str) -> tuple[float, float]:
    low, high = map(_number, text.replace(":", " ").replace("..", " ").split())
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
        ("I do not know: up to 10 rows count (--plan says what one row would change)", -1),
    ]
    why = (
        f"The more rows of one {noun} count, the more noise is needed to hide that {noun}. Rows beyond the "
        "number are dropped at random."
    )
    title = f"How many rows can one {noun} have in this file?"
    rows = prompts.choose("--limit rows=1", title, why, choices)
    if rows == 0:
        rows = prompts.typed("How many rows count", _rows)
    if not rows or rows < 0:
        return draft
    prompts.answers.append(f"--limit rows={rows}")
    return draft.declaring("limits", "rows", rows)


def _rows(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise bad_parameter("the number of rows", "a whole number of at least 1", text)
    return int(text)


def _with_cost(draft: ConfigDraft, total: Total, prompts: Prompts) -> Total:
    """Settle what the answer may cost: at most what is left."""
    if total.epsilon is not None or total.rho is not None:
        return total
    most = _left(draft)
    if most == 0:
        raise TacitError(
            "budget-exceeded",
            f"nothing is left of the budget of {draft.name!r}",
            why="an answer that was paid for stays free: ask it with the epsilon that it had",
            fix=Say(f"ask the curator for a larger budget ({_growing(draft)})"),
        )
    why = f"A small epsilon protects each {draft.noun} better, and makes the answer less exact."
    why += "" if most is None else f" Of the budget, one more question of up to epsilon {most:g} is left."
    amounts = [amount for amount in (0.1, 0.5, 1.0) if most is None or amount <= most] or [most or 1]
    choices = [
        (f"epsilon {amount:g}{' (usual)' if amount == 1 else ''}: {_meaning(amount, draft)}", amount)
        for amount in amounts
    ]
    title = "How much may this answer cost?"
    epsilon = prompts.choose("--epsilon 1", title, why, [*choices, ("another number", 0.0)])
    if epsilon == 0:
        epsilon = prompts.typed("Epsilon", lambda text: _epsilon(text, most=most))
    if epsilon is not None:
        prompts.answers.append(f"--epsilon {number_text(epsilon)}")
    return replace(total, epsilon=epsilon)


def _left(draft: ConfigDraft) -> float | None:
    """Return the largest epsilon that one more question may cost; None where no ledger or budget says it."""
    from tacit.ledger import open_ledger

    try:
        account = find_account(draft.name, draft.ledger) if draft.ledger else None
        if account is None:
            declared = draft.facts.get("budget", {}).get("epsilon")
            return None if declared is None else float(declared)
        ledger, amounts = open_ledger(draft.ledger), []
        while account is not None:
            amounts.append(ledger.remaining(account.name).epsilon)
            account = None if account.parent is None else ledger.account(account.parent)
    except TacitError:  # the price says why
        return None
    least = min((amount for amount in amounts if amount is not None), default=None)
    return None if least is None else math.floor(least * 10**9) / 10**9


def _growing(draft: ConfigDraft) -> str:
    """Return the line with which the curator makes the budget larger."""
    own = draft.facts.get("budget", {}).get("epsilon")
    larger = "EPSILON" if own is None else number_text(2 * own)
    options = f"--account {typed(draft.name)} --epsilon {larger}"
    return f'tacit budget grow {options} --statement "WHY" --who NAME'


def _notice(draft: ConfigDraft, total: Total) -> str:
    """Return what a person should know before the first prompt: that less is left than is asked."""
    most = _left(draft)
    if total.epsilon is None or most is None or most >= total.epsilon:
        return ""
    left = "nothing" if most == 0 else f"one more question of up to epsilon {most:g}"
    asked = f"Epsilon {total.epsilon:g} is more than is left of the budget"
    return f"{asked}: {left}. The curator can raise it: {_growing(draft)}"


def _meaning(epsilon: float, draft: ConfigDraft) -> str:
    """Say what an epsilon means, in one sentence."""
    sure = 100 / (1 + math.exp(-epsilon))
    if sure > 99:
        return f"nearly any fact about one {draft.noun} can be guessed, at worst"
    return (
        f"at worst, who guesses a fact about one {draft.noun} is right {sure:.0f} % of the time instead of "
        "50 %"
    )


def _number(text: str) -> float:
    """Read a number as people type it, with a decimal point or a decimal comma."""
    return float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)


def _epsilon(text: str, *, least: float = 0, most: float | None = None) -> float:
    if not 0 < (number := _number(text)) < math.inf:
        raise bad_parameter("epsilon", "a positive number", text)
    if most is not None and number > most:
        raise bad_parameter("epsilon", f"at most {most:g}, which is what is left", text)
    if number < least:
        raise bad_parameter("the budget", f"at least {least:g}, which is what this answer costs", text)
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
        amount = _chosen_budget(draft, total.epsilon or 0, prompts)
    if amount is None:
        return draft
    parts = (
        {"rho": amount}
        if total.rho is not None
        else {"epsilon": amount, **({"delta": delta} if delta else {})}
    )
    return draft.declaring("", "budget", parts)


def _chosen_budget(draft: ConfigDraft, least: float, prompts: Prompts) -> float | None:
    """Let a person choose the whole budget, by the number of such questions that it pays for."""
    why = (
        "All answers about this file together, today and later, never cost more. Usual are epsilon 1 for a "
        "question and 3 in all; the more, the weaker the protection. The curator can raise it later. "
        f"{draft.ledger} keeps what was asked and what is left."
    )
    usual = 3.0 if least <= 3 else 3 * least
    choices = [
        (
            f"epsilon {amount:g}{' (recommended)' if amount == usual else ''}{_enough_for(amount, least)}",
            amount,
        )
        for amount in sorted({1.0, 10.0, usual})
        if amount >= least
    ]
    title = "How much may be learned from this file in total?"
    amount = prompts.choose(f"--budget {usual:g}", title, why, [*choices, ("another number", 0.0)])
    if amount == 0:
        amount = prompts.typed("Epsilon", lambda text: _epsilon(text, least=least))
    if amount is not None:
        prompts.answers.append(f"--budget {number_text(amount)}")
    return amount


def _enough_for(amount: float, least: float) -> str:
    many = int(amount / least) if least else 0
    return f": enough for {many:,} question{'s' * (many > 1)} like this one" if many else ""


def _price(total: Total) -> str:
    parts = {"epsilon": total.epsilon, "delta": total.delta, "rho": total.rho}
    return ", ".join(f"{part} {number_text(amount)}" for part, amount in parts.items() if amount)


def _show_plan(
    draft: ConfigDraft, planned: Callable[[TableDataset], Plan[AnswerTable]], *, as_json: bool
) -> None:
    """Show the plan with all its details, as ``tacit plan`` does."""
    from tacit.ledger import Ledger

    config, name = draft.config, draft.name
    question.check_sources(config, name)
    with Ledger.memory() as trial:
        plan = planned(question.alone(config, name).dataset(name, ledger=trial))
        if as_json:
            show_json(plan_facts(plan))
            return
        typer.echo()
        show_price(plan, config, trial.account(name))


def _show_price(
    draft: ConfigDraft, planned: Callable[[TableDataset], Plan[AnswerTable]], sentence: TableSentence,
    total: Total, payer: question.Payer, *, as_json: bool,
) -> bool:  # fmt: skip
    """Show the price in plain words; refuse what cannot be paid. Return whether the answer is free."""
    from tacit.ledger import Ledger

    config, name = draft.config, draft.name
    question.check_sources(config, name)
    where = question.declared_ledger(config)
    with Ledger.memory() as trial:
        plan = planned(question.alone(config, name).dataset(name, ledger=trial))
        account = trial.account(name)
        kept = kept_budget(config, name, account.budget, plan)
        if kept.stored and payer.account in {None, name}:
            if not as_json:
                say("this answer is stored and free: nothing is charged")
            return True
        check_first_charge(name, where, plan, trial, parent=config.datasets[name].get("parent"))
        if kept.account is not None and kept.fits == 0:
            try:
                check_charge(kept.account, plan)
            except TacitError as refusal:
                fix = in_words_of_the_command(refusal).fix
                raise refusal.but(fix=Say(f"{fix} ({_growing(draft)})")) from None
        if not as_json:
            declared = draft.facts.get("bounds", {})
            unknown = [f"{word}_{column}" for word, column in sentence.numbers if column not in declared]
            typer.echo()
            say(
                *_subject(draft, sentence, dict(plan.facts).get("limits", "")),
                *price_in_words(plan, _price(total), account, kept, unknown),
                *([f"epsilon {total.epsilon:g}: {_meaning(total.epsilon, draft)}"] if total.epsilon else []),
                "details: add --plan to the line; it charges nothing",
            )
    return False


def _subject(draft: ConfigDraft, sentence: TableSentence, limits: str) -> list[str]:
    """Say in plain words what is asked of whom, with the groups as they were listed."""
    facts, by, noun = draft.facts, sentence.by, draft.noun
    parts = [f"the {word} of {printable(column)}" for word, column in sentence.numbers]
    parts += ["the number of rows"] if sentence.count else []
    lines = [f"asked: {' and '.join(parts)}{f', for each {printable(by)}' if by else ''}, in {draft.name}"]
    if by is not None and isinstance(keys := facts.get("keys", {}).get(by), list):
        names = ", ".join(printable(str(key)) for key in keys)
        unread = "check their spelling, also capitals: Tacit cannot, without reading the data"
        lines += [
            f"groups: {names}",
            f"{unread}; a name that is not there gives a line of noise, and is paid for",
        ]
    elif by is not None:
        lines.append(f"groups: Tacit finds the values of {printable(by)} privately")
    most = f"; {printable(limits)}" if limits else ""
    return [*lines, f"protected: everything about each {noun}{most}"]


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
