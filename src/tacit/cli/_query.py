"""The ``tacit query`` command: release an answer, show it with its intervals, and save it where asked."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import _question as question
from tacit.cli._app import app
from tacit.cli._context import current_context
from tacit.cli._first_budget import check_first_charge
from tacit.cli._output import JsonOption, amount_facts, printable, say, show_json
from tacit.cli._output_files import OutputFiles
from tacit.cli._shared_options import Asker, with_options
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tacit.accounting import Remaining
    from tacit.core import AnswerTable, Plan, Release
    from tacit.ledger import Ledger
    from tacit.tables import Config, TableDataset

_MOST_PANELS = 6


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
    sql: question.SqlArgument, price: question.Price, files: OutputFiles, payer: Payer,
    place: question.Declarations, *, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Charge the budget, answer with noise, show value, low and high. The same question again is free."""
    files.check()
    declared, name = place.read(sql)
    public = question.public_keys(declared, name, price.keys)
    answer(declared, name, payer, lambda asked: price.plan(asked, sql, public), files, as_json=as_json)


def answer(
    declared: Config, name: str, payer: Payer, planned: Callable[[TableDataset], Plan[AnswerTable]],
    files: OutputFiles, *, as_json: bool,
) -> None:  # fmt: skip
    """Release a plan, charge it, and show the answer, what it cost and what is left."""
    from tacit.ledger import Ledger

    question.check_sources(declared, name)
    where = question.declared_ledger(declared)
    with Ledger.memory() as trial:  # a wrong question is refused before a ledger is made
        first = planned(question.alone(declared, name).dataset(name, ledger=trial))
        parent = declared.datasets[name].get("parent")
        check_first_charge(name, where, first, trial, parent=parent)
    with Ledger.open(where) as ledger, _interruptible():
        before = ledger.head.count
        opened = declared.dataset(name, ledger=ledger)
        plan = planned(opened)
        release = plan.release(who=payer.who, purpose=payer.purpose, account=payer.account)
        entry = _entry(release)
        paid_by = ledger.entry(entry)
        blocks = paid_by.blocks if paid_by else ()
        left, also = left_in_words(ledger, name, blocks)
        more = None if blocks else question.more_like_it(ledger, payer.account or name, plan.cost)
        fresh = entry > before
        paid = f"charged as entry {entry}" if fresh else _stored(release, ledger)
    files.save(release, most=_MOST_PANELS)  # before printing: a terminal may fail
    if as_json:
        show_json({**_facts(release), "fresh": fresh, "left": amount_facts(left), "more": more})
        return
    say(repr(release), f"{paid}; left{also}", *opened.account_notes)
    if fresh and more:
        say(f"enough for {more:,} more {'question' if more == 1 else 'questions'} of this kind")
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
    written = release.certificate.fields["ledger"]
    return int(written["entry"]) if isinstance(written, dict) else 0


def left_in_words(ledger: Ledger, name: str, blocks: tuple[str, ...]) -> tuple[Remaining, str]:
    """Return what is left of the account, or of the fullest block that paid, also in words."""
    lefts = {block: ledger.remaining(name, block=block) for block in blocks}
    fullest = min(lefts, key=lambda block: (lefts[block].rho or 0, lefts[block].epsilon or 0), default=None)
    left = ledger.remaining(name) if fullest is None else lefts[fullest]
    words = "" if fullest is None else f" of block {printable(fullest)}"
    words += f": {left}"
    above = ledger.account(name).parent
    while above is not None:
        words += f"; left of {printable(above)}, which also pays: {ledger.remaining(above)}"
        above = ledger.account(above).parent
    return left, words


def _stored(release: Release[AnswerTable], ledger: Ledger) -> str:
    """Report the day and the version of the data of a stored answer, and how to declare new data."""
    about = release.certificate.fields["dataset"]
    name, version = (str(about["name"]), int(about["version"])) if isinstance(about, dict) else ("", 0)
    kept = ledger.stored_release(name, release.certificate.plan, version=version)
    day = "" if kept is None else f"{kept.receipt.at[:10]}, "
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
