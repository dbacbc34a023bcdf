"""The ``tacit query`` command: release an answer, show it with its intervals, and save it where asked.

``tacit plan`` reads the same question: config, dataset, price. ``tacit limits`` suggests limits, or estimates
how many rows the declared ones drop.
"""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._context import current_context, note_dataset
from tacit.cli._field_command import Given, asks
from tacit.cli._ledger import check_first_charge
from tacit.cli._options import (
    Asker,
    Total,
    read_limit_option,
    read_question_bounds_option,
    read_question_keys,
    tables_in,
    with_options,
)
from tacit.cli._output import JsonOption, OutputFiles, amount_facts, printable, say, show_json, typed
from tacit.errors import TacitError
from tacit.fixes import Declare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tacit.accounting import Remaining
    from tacit.core import AnswerTable, Plan, Release
    from tacit.ledger import Ledger
    from tacit.tables import Config, TableDataset


SqlArgument = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT with aggregates, in quotes.")]
KeysOption = Annotated[
    list[str] | None,
    typer.Option("--keys", help="COLUMN=A,B,C: public groups, for this question; may be repeated."),
]
CutOption = Annotated[
    str | None,
    typer.Option(
        help="rare: bounds that the plan finds reach further out (times 4), so that few values lie beyond "
        "them; a frequency, not a guarantee."
    ),
]
_MOST_PANELS = 6


@dataclass(frozen=True, kw_only=True)
class Price(Total):
    """What the user is ready to pay, or the error that is good enough; and what counts in this question."""

    within: Annotated[float | None, typer.Option(help="Instead of epsilon: the error that you accept.")] = (
        None
    )
    size: Annotated[
        int | None,
        typer.Option(help="A public guess of the number of rows in each group, for planning only."),
    ] = None
    keys: KeysOption = None
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="rows=3 or groups=2: how much of one unit counts in this question; may be repeated."
        ),
    ] = None

    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--bounds",
            help="COLUMN=auto: the plan finds the range privately, at a quarter of its cost; or "
            "COLUMN=LOW:HIGH, a public range for this question; may be repeated.",
        ),
    ] = None
    cut: CutOption = None

    def plan(
        self, dataset: TableDataset, sql: str, keys: Mapping[str, list[object]] | None
    ) -> Plan[AnswerTable]:
        """Plan a question at this price."""
        limits = dict(read_limit_option(text) for text in self.limit or ()) or None
        bounds = dict(read_question_bounds_option(text) for text in self.bounds or ()) or None
        cut: Any = self.cut  # the library reads it
        return dataset.sql(sql, keys=keys, limits=limits, bounds=bounds, cut=cut).plan(
            **self.goal, within=self.within, size=self.size
        )


@dataclass(frozen=True, kw_only=True)
class Declarations:
    """Which dataset of which file is asked."""

    config: Annotated[
        Path, typer.Option("--config", "-c", envvar="TACIT_CONFIG", help="The file with the declarations.")
    ] = Path("tacit.toml")
    dataset: Annotated[str | None, typer.Option(help="Which dataset, if FROM does not show it.")] = None
    engine: Annotated[
        str | None,
        typer.Option(
            envvar="TACIT_ENGINE",
            help="Where the tables are: duckdb, or postgresql://... (a table's name is then the source).",
        ),
    ] = None

    def read(self, sql: str = "") -> tuple[Config, str]:
        """Read the config and choose the dataset: the named one, the only one, or that of the tables.

        An engine that is given with the command takes the place of the declared one.
        """
        from tacit.tables import open_config

        file = self.config
        note_dataset(file, None, self.dataset or "", sql)
        config = open_config(file)
        name = _chosen(config, self.dataset or _with_tables(config, sql), file)
        note_dataset(file, config, name, sql)
        return config if self.engine is None else config.on_engine(name, self.engine), name


def _with_tables(config: Config, sql: str) -> str | None:
    """Return the only dataset that has all the tables of the question; None where it is not clear."""
    if len(config.datasets) == 1:
        return None
    tables = tables_in(sql)
    names = [
        name for name in config.datasets if tables and tables <= {t.lower() for t in config.tables(name)}
    ]
    return names[0] if len(names) == 1 else None


def _chosen(config: Config, name: str | None, file: Path) -> str:
    names = list(config.datasets)
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return str(name)
    if not names:
        sentence, fix = f"{file} declares no dataset", "tacit init visits.csv --unit patient_id"
    else:
        sentence = (
            f"{file} declares several datasets" if name is None else f"{file} declares no dataset {name!r}"
        )
        fix = f"--dataset {typed(names[0])}" + (f", or one of: {', '.join(names[1:])}" if names[1:] else "")
    raise TacitError("bad-parameter", sentence, why="the question is about one dataset (--dataset)", fix=fix)


def alone(config: Config, name: str) -> Config:
    """Return the config with this dataset apart from its parent, for planning without the real ledger."""
    facts = {fact: value for fact, value in config.datasets[name].items() if fact != "parent"}
    return replace(config, datasets={**config.datasets, name: facts})


def public_keys(config: Config, name: str, texts: list[str] | None) -> dict[str, list[object]] | None:
    """Read the keys that come with a question, beside those of the config; None where none come with it."""
    if not texts:
        return None
    facts = config.datasets[name]
    types = {column: str(kind) for column, kind in facts.get("types", {}).items()}
    return {**facts.get("keys", {}), **dict(read_question_keys(text, types) for text in texts)}


def check_sources(config: Config, name: str) -> None:
    """Refuse a missing file before anything is charged."""
    from tacit.engines import place_source

    for file in config.files(name):
        source = place_source(file)
        if not source.is_there:
            raise TacitError(
                "bad-parameter",
                f"{source.shown if source.is_remote else file} does not exist"
                + (", or cannot be reached" if source.is_remote else ""),
                why=f"the config declares it as a source of {name}; nothing was charged",
                fix=Declare("source", f"path/of/{source.shown.rpartition('/')[2]}"),
            )


def more_like_it(ledger: Ledger, payer: str, plan: Plan[Any]) -> int:
    """Return how many questions like this one the account and every account above it can still pay."""
    return ledger.left(payer, plan.cost, promise=plan.promise).more or 0


def declared_ledger(config: Config) -> str:
    """Return where the ledger of the config is, or refuse."""
    if config.ledger is None:
        raise TacitError(
            "bad-parameter",
            "the config names no ledger",
            why="without one, the budget would start again with every command",
            fix='as the first line of the config: ledger = "tacit.ledger"',
        )
    return config.ledger


@dataclass(frozen=True, kw_only=True)
class Payer(Asker):
    """Who asks, for which purpose, and who pays."""

    account: Annotated[
        str | None,
        typer.Option("--account", "-a", help="An account below the dataset's account that also pays."),
    ] = None


@app.command()
@with_options
def query(
    sql: SqlArgument, price: Price, files: OutputFiles, payer: Payer,
    place: Declarations, *, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Charge the budget, answer with noise, show value, low and high. The same question again is free."""
    files.check()
    declared, name = place.read(sql)
    public = public_keys(declared, name, price.keys)
    answer(declared, name, payer, lambda asked: price.plan(asked, sql, public), files, as_json=as_json)


def answer(
    declared: Config, name: str, payer: Payer, planned: Callable[[TableDataset], Plan[AnswerTable]],
    files: OutputFiles, *, as_json: bool,
) -> None:  # fmt: skip
    """Release a plan, charge it, and show the answer, what it cost and what is left."""
    from tacit.ledger import Ledger

    check_sources(declared, name)
    where = declared_ledger(declared)
    with Ledger.memory() as trial:  # a wrong question is refused before a ledger is made
        trial_plan = planned(alone(declared, name).dataset(name, ledger=trial))
        parent = declared.datasets[name].get("parent")
        check_first_charge(name, where, trial_plan, trial, parent=parent)
    with Ledger.open(where) as ledger, _interruptible():
        before = ledger.head.count
        dataset = declared.dataset(name, ledger=ledger)
        plan = planned(dataset)
        release = plan.release(who=payer.who, purpose=payer.purpose, account=payer.account)
        entry = _entry(release)
        paid_by = ledger.entry(entry)
        blocks = paid_by.blocks if paid_by else ()
        more = None if blocks else more_like_it(ledger, payer.account or name, plan)
        fresh = entry > before
        remaining, also = left_in_words(ledger, name, blocks, more if fresh else None)
        payment = f"charged as entry {entry}" if fresh else _stored(release, ledger)
    files.save(release, max_figures=_MOST_PANELS)  # before printing: a terminal may fail
    if as_json:
        show_json({**_facts(release), "fresh": fresh, "left": amount_facts(remaining), "more": more})
        return
    say(repr(release), f"{payment}; left{also}", *dataset.account_notes)
    if fresh and not payer.who:
        say("no --who was given: recorded as unknown (tacit budget history shows who asked what)")
    files.report()


def _facts(release: Release[AnswerTable]) -> dict[str, object]:
    return {
        "rows": list(release),
        "confidence": release.confidence,
        "marks": list(release.marks),
        "notes": dict(release.notes),
        "left_out": list(release.left_out),
        "certificate": dict(release.certificate.fields),
    }


def _entry(release: Release[AnswerTable]) -> int:
    charge = release.certificate.fields["ledger"]
    return int(charge["entry"]) if isinstance(charge, dict) else 0


def left_in_words(
    ledger: Ledger, name: str, blocks: tuple[str, ...], more: int | None = None
) -> tuple[Remaining, str]:
    """Return what is left of the account, or of the fullest block that paid, also in words.

    ``more`` is how many more questions like this one fit, if that is known.
    """
    from tacit.accounting import Left

    lefts = {block: ledger.remaining(name, block=block) for block in blocks}
    fullest = min(lefts, key=lambda block: (lefts[block].rho or 0, lefts[block].epsilon or 0), default=None)
    remaining = ledger.remaining(name) if fullest is None else lefts[fullest]
    words = "" if fullest is None else f" of block {printable(fullest)}"
    words += f": {Left(remaining, more)}"
    above = ledger.account(name).parent
    while above is not None:
        words += f"; left of {printable(above)}, which also pays: {ledger.remaining(above)}"
        above = ledger.account(above).parent
    return remaining, words


def _stored(release: Release[AnswerTable], ledger: Ledger) -> str:
    """Report the day and the version of the data of a stored answer, and how to declare new data."""
    about = release.certificate.fields["dataset"]
    name, version = (str(about["name"]), int(about["version"])) if isinstance(about, dict) else ("", 0)
    stored = ledger.stored_release(name, release.certificate.plan, version=version)
    day = "" if stored is None else f"{stored.receipt.at[:10]}, "
    return (
        f"stored answer of entry {_entry(release)} ({day}version {version}): free "
        f"(new data? write version = {version + 1} in {current_context().config})"
    )


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Turn Ctrl-C into exit status 130, wherever it arrives, with a line about what stays.

    The ledger reports whatever fails after a charge as one opaque error. Only the signal shows that it was
    Ctrl-C.
    """
    pressed = False

    def note(_number: int, _frame: object) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread: the caller there handles Ctrl-C
        yield
        return
    try:
        yield
    except (KeyboardInterrupt, TacitError) as stopped:
        if isinstance(stopped, TacitError) and not pressed:
            raise
        typer.echo(
            "interrupted: the ledger is intact; a charge that was made stays\n"
            "  see: tacit budget history LEDGER", err=True,
        )  # fmt: skip
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGINT, previous)


_CutOption = Annotated[
    bool, typer.Option("--cut", help="Estimate instead which share of the rows the declared limit drops.")
]


@app.command(cls=asks("table", "suggest_limits", "measure_cut"))
@with_options
def limits(
    total: Total, given: Given, files: OutputFiles, payer: Payer, place: Declarations, *,
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
    question = given.question("measure-cut" if cut else "suggest-limits")
    declared, name = place.read("" if table is None else f'SELECT COUNT(*) FROM "{table}"')  # noqa: S608 - never run
    answer(declared, name, payer, lambda data: question(data).plan(**total.goal), files, as_json=as_json)
