"""The ``tacit budget history`` command: who asked what at which cost, and what the curator changed."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.cli._block_rows import named_blocks
from tacit.cli._budget import AccountOption, LedgerArgument, budget, last_day, print_json
from tacit.cli._fact_options import budget_text
from tacit.cli._ledger import KeyFileOption, find_ledger, open_ledger
from tacit.cli._output import JsonOption, printable
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.ledger import Entry, Ledger

#: The kinds of entries of the log, in words.
_KINDS = {
    "open": "account opened", "charge": "charged", "draw": "answer charged", "claim": "answer drawn",
    "release": "answer stored", "run": "run charged", "view": "answer seen", "grow": "budget raised",
    "refresh": "budget started again", "version": "new version", "unseal": "unsealed",
    "record": "only shapes of questions are kept", "freeze": "frozen", "unfreeze": "unfrozen",
    "expiry": "last day changed", "gap": "continued from a backup", "lost": "counted as spent",
}  # fmt: skip
_TITLES = ("entry", "when (UTC)", "what", "account", "cost", "who", "purpose")
#: What people may leave empty.
_WORDS = frozenset({"who", "purpose"})
#: The least width of a terminal at which a table of entries can be read.
_WIDE = 100
#: Entries that only follow from an earlier one: --json and export show them.
_SILENT = frozenset({"claim", "release"})


@budget.command()
def history(
    where: LedgerArgument = None,
    *,
    account: AccountOption = None,
    key: KeyFileOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Show this many entries, by default the latest.")] = 50,
    after: Annotated[
        int | None, typer.Option(min=0, help="Show the entries that follow this one: one page after another.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show who asked what, the cost, and what the curator changed; --json and export show every entry."""
    skipped = frozenset() if as_json else _SILENT
    with open_ledger(find_ledger(where), key) as ledger:
        read = _latest if after is None else _following
        entries, more = read(ledger, account, limit, skipped, after or 0)
        if as_json:
            print_json([entry.to_json() for entry in entries])
            return
        stored = _stored(ledger, account, entries)
        promises = [_promise(ledger, entry) for entry in entries]
    lines = [
        _line(entry, stored[entry.seq] if account in {None, entry.account} else None, promise)
        for entry, promise in zip(entries, promises, strict=True)
    ]
    console = Console()
    console.print(_table(lines) if console.width >= _WIDE else _below_each_other(lines, console.width))
    if more:
        typer.echo(f"more: --after {entries[-1].seq}")


def _line(entry: Entry, stored: int | None, promise: str) -> dict[str, str]:
    """Return the cells of an entry by their titles."""
    return {
        "entry": str(entry.seq),
        "when (UTC)": entry.at[:19].replace("T", " "),
        "what": _what(entry, stored),
        "account": entry.account or "",
        "cost": promise + _cost(entry),
        "who": printable(_who(entry)),
        "purpose": printable(entry.purpose),
    }


def _table(lines: list[dict[str, str]]) -> Table:
    """Lay out one line for each entry; a column of words that nobody gave is dropped."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    titles = [title for title in _TITLES if title not in _WORDS or any(line[title] for line in lines)]
    for title in titles:
        fixed = title in {"entry", "when (UTC)"}
        table.add_column(
            title, justify="right" if title == "entry" else "left", no_wrap=fixed, overflow="fold"
        )
    for line in lines:
        table.add_row(*(Text(line[title]) for title in titles))
    return table


def _below_each_other(lines: list[dict[str, str]], width: int) -> Text:
    """Write the parts of an entry below each other where a terminal is too narrow for a table."""
    text = Text()
    for line in lines:
        named = {"account ": line["account"], "": line["cost"], "who: ": line["who"]}
        facts = "; ".join(f"{name}{value}" for name, value in named.items() if value)
        text.append(f"{line['entry']:>5}  {line['when (UTC)']} UTC\n")
        for part in (line["what"], facts, line["purpose"] and f"purpose: {line['purpose']}"):
            for row in textwrap.wrap(part, max(width - 7, 20), break_long_words=False):
                text.append(f"       {row}\n")
    text.right_crop(1)
    return text


def _following(
    ledger: Ledger, account: str | None, limit: int, skipped: frozenset[str], after: int
) -> tuple[list[Entry], bool]:
    """Return a page of entries, and whether there are more; the log is read only as far as needed."""
    found: list[Entry] = []
    while len(found) <= limit:
        page = ledger.history(account, after=after, limit=limit + 1)
        found += [entry for entry in page if entry.kind not in skipped]
        if len(page) <= limit:
            break
        after = page[-1].seq
    return found[:limit], len(found) > limit


def _latest(
    ledger: Ledger, account: str | None, limit: int, skipped: frozenset[str], _: int
) -> tuple[list[Entry], bool]:
    """Return the latest entries; the log is read from its end, in steps that grow."""
    end, step = ledger.head.count, 4 * limit
    while True:
        start = max(0, end - step)
        entries = [e for e in ledger.history(account, after=start) if e.kind not in skipped and e.seq <= end]
        if len(entries) >= limit or start == 0:
            return entries[-limit:], False
        step *= 4


def _who(entry: Entry) -> str:
    return entry.who or ("unknown" if entry.asked else "")


def _stored(ledger: Ledger, account: str | None, entries: list[Entry]) -> Counter[int]:
    """Count the stored instalments of each run that is shown; without a run, nothing more is read."""
    runs = [entry.seq for entry in entries if entry.kind == "run"]
    later = ledger.history(account, after=min(runs)) if runs else []
    kept = (entry.body for entry in later if entry.kind == "release" and "part" in entry.body)
    return Counter(int(str(body["receipt"])) for body in kept)


def _what(entry: Entry, stored: int | None) -> str:
    """Say what an entry is about; of a run, how many instalments it has and how many are stored if known."""
    asked = f": {printable(entry.asked)}" if entry.asked else _change(entry)
    parts = entry.body.get("parts")
    if not isinstance(parts, int):
        return _KINDS.get(entry.kind, entry.kind) + asked
    kind = "run seen" if entry.kind == "view" else _KINDS[entry.kind]
    done = f", {stored:,} stored" if entry.kind == "run" and stored is not None else ""
    return f"{kind}{asked} ({parts:,} {'instalment' if parts == 1 else 'instalments'}{done})"


def _change(entry: Entry) -> str:
    """Say to what the curator set a budget or a last day."""
    from datetime import datetime

    from tacit.accounting import Budget

    match entry.kind, entry.body:
        case (("open" | "grow"), {"budget": dict(written)}):
            return f": {budget_text(Budget.from_json(written))}"
        case "expiry", {"expires": None}:
            return ": none"
        case "expiry", {"expires": str(written)}:
            return f": {last_day(datetime.fromisoformat(written))}"
        case _:
            return ""


def _promise(ledger: Ledger, entry: Entry) -> str:
    """Return the epsilon that a stored answer promised, where it is charged in other numbers."""
    if entry.plan is None or entry.account is None or entry.spend is None or entry.spend.epsilon is not None:
        return ""
    with suppress(TacitError, ValueError, LookupError, TypeError):  # no answer, or none with a certificate
        stored = ledger.stored_release(entry.account, entry.plan, version=int(str(entry.body["version"])))
        promised = json.loads(stored.payload)["certificate"]["promised"] if stored is not None else {}
        if "epsilon" in promised:
            text = ", ".join(f"{name} {float(Fraction(value)):g}" for name, value in promised.items())
            return f"{text}; charged as "
    return ""


def _cost(entry: Entry) -> str:
    return "" if entry.spend is None else str(entry.spend) + named_blocks(entry)
