"""The ``tacit budget`` command: what is left, who asked what at which cost, and whether the record is intact.

``history`` lists charges and changes by the curator; ``burn-down`` shows what was left after each charge. An
account with blocks shows the fullest ones, what is left of them, and of any other. ``tacit verify``
compares a certificate, or a whole release, with the record.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from tacit.cli._app import app
from tacit.cli._ledger import KeyFileOption, find_ledger, note_on_completeness, open_ledger
from tacit.cli._options import budget_text
from tacit.cli._output import JsonOption, amount_facts, printable, say, show_json, write_file
from tacit.errors import TacitError, missing_file
from tacit.fixes import Do
from tacit.report import percent
from tacit.show import Chart, ChartAxis, ChartSeries, Figure, days_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tacit.accounting import Filter, Remaining
    from tacit.core import Certificate
    from tacit.ledger import Account, Entry, Ledger


_SHOWN = 3
_LISTED = 1_000

#: The label of a block, and what is left for a question about it alone; None for several blocks in one line.
BlockLine: TypeAlias = "tuple[str, Remaining | None]"
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
#: The codes that refuse a damaged or changed ledger; a certificate is then not verified.
_BROKEN = frozenset({"ledger-damaged", "ledger-tampered", "ledger-rolled-back"})


def block_lines(ledger: Ledger, account: Account) -> list[BlockLine]:
    """Return what is left of each of the fullest blocks, of any other block, and of all of the data."""
    if account.blocks is None or account.totals is None:
        return []
    by = printable(account.blocks.by)
    charged = list(ledger.blocks(account))
    lines: list[BlockLine] = [
        (f"{by} {printable(name)}", ledger.remaining(account, block=name)) for name in charged[:_SHOWN]
    ]
    if len(charged) > _SHOWN:
        lines.append((f"{len(charged) - _SHOWN:,} more that were charged", None))
    other = account.totals.beside(account.totals.empty).remaining
    return [*lines, (f"any other {by}", other), ("all of the data", account.filter.remaining)]


def blocks_to_json(ledger: Ledger, account: Account) -> list[dict[str, object]]:
    """Return the fullest blocks of an account as JSON values, at most a thousand."""
    listed_blocks = list(ledger.blocks(account).items())[:_LISTED] if account.blocks is not None else []
    lefts = [ledger.remaining(account, block=name) for name, _ in listed_blocks]
    return [
        {"block": name, "spent": amount_facts(spend), "left": amount_facts(left)}
        for (name, spend), left in zip(listed_blocks, lefts, strict=True)
    ]


def named_blocks(entry: Entry) -> str:
    """Return the blocks that an entry names, for a narrow column."""
    if not entry.blocks:
        return ""
    more = f" and {len(entry.blocks) - 1:,} more" if len(entry.blocks) > 1 else ""
    return f" (block {printable(entry.blocks[0])}{more})"


class _LedgerFirst(TyperGroup):
    """Read ``tacit budget [LEDGER]`` as its status; the ledger may come before or after a command's name."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if not args or (args[0] not in self.commands and args[0] not in {"--help", "--show-completion"}):
            args = (
                [args[1], args[0], *args[2:]] if args[1:2] and args[1] in self.commands else ["status", *args]
            )
        return super().parse_args(ctx, args)


budget = typer.Typer(
    name="budget",
    cls=_LedgerFirst,
    help="Show what is left, who asked what, and whether the record is intact: tacit budget hospital.ledger. "
    "Without LEDGER, Tacit uses the ledger that tacit.toml names.",
)
app.add_typer(budget)

LedgerArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="LEDGER", envvar="TACIT_LEDGER", show_default=False,
        help="The ledger's path or postgresql:// address; by default the one that tacit.toml names.",
    ),
]  # fmt: skip
#: Entries that charge, and how far back the latest one is looked for.
_CHARGES = frozenset({"charge", "draw", "run", "view"})
_RECENT = 2_000
AccountOption = Annotated[str | None, typer.Option("--account", "-a", help="Only this account.")]


@budget.command()
def status(where: LedgerArgument = None, *, key: KeyFileOption = None, as_json: JsonOption = False) -> None:
    """Show what is left of every account."""
    with open_ledger(find_ledger(where), key) as ledger:
        accounts, sealed, refusal = ledger.accounts(), ledger.sealed, ledger.refusal
        stopped = None if refusal is None else refusal.what
        if as_json:
            rows = [
                _facts(one) | {"more_like_the_last": _more(ledger, one)} | _blocks(ledger, one)
                for one in accounts
            ]
            print_json({"ledger": ledger.name, "sealed": sealed, "refusal": stopped, "accounts": rows})
            return
        blocks = {account.id: block_lines(ledger, account) for account in accounts}
        more = {account.id: _more(ledger, account) for account in accounts}
    console = Console()
    console.print(_table(accounts, blocks, more) if accounts else "no accounts yet")
    if sealed is not None:
        console.print(Text(f"sealed: {printable(sealed)}", style="red"))
    if stopped is not None:
        console.print(Text(f"accepts no charges, and less may be left: {printable(stopped)}", style="red"))


def _more(ledger: Ledger, account: Account) -> int | None:
    """Return how many charges like the latest one still fit; None without a recent one, or with blocks."""
    recent = ledger.history(account, after=max(0, ledger.head.count - _RECENT))
    charges = [entry for entry in recent if entry.kind in _CHARGES]
    if not charges or account.blocks is not None or charges[-1].cost is None:
        return None
    latest, spend = charges[-1].cost, charges[-1].spend
    return account.filter.how_many(latest, None if spend is None else spend.promise)


def _table(
    accounts: list[Account], blocks: Mapping[int, list[BlockLine]], more: Mapping[int, int | None]
) -> Table:
    """Lay out one line for each account, and one for each of its fullest blocks."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    narrow = Console().width < 72  # too narrow for a bar
    has_counts = any(count is not None for count in more.values())
    stops = any(account.expires is not None or account.frozen for account in accounts)
    titles = (
        "account",
        "protects",
        "left of the budget",
        "",
        *(["or more like the latest"] if has_counts else []),
    )
    for title in (*titles, *([""] if stops else [])):
        table.add_column(title)
    for account in sorted(accounts, key=lambda one: one.path[::-1]):
        lines = blocks[account.id]
        remaining_text = Text("" if lines else str(account.filter.remaining))
        table.add_row(
            Text("  " * (len(account.path) - 1) + printable(account.name)),
            Text(printable(account.unit)),
            remaining_text,
            Text() if lines or narrow else bar(share_left(account.filter), 16),
            *([Text("" if (count := more[account.id]) is None else f"{count:,}")] if has_counts else []),
            *([Text(_until(account))] if stops else []),
        )
        for label, remaining in lines:
            share_bar = (
                bar(share_of(remaining, account.filter), 16)
                if remaining is not None and not narrow
                else Text()
            )
            table.add_row(
                Text("  " * len(account.path) + label), Text(), Text(str(remaining or "")), share_bar
            )
    return table


@budget.command()
def verify(
    where: LedgerArgument = None,
    *,
    witness: Annotated[
        Path | None, typer.Option(help="A witness file that was kept elsewhere; it can prove completeness.")
    ] = None,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the keyed chain, every total and the witness; exit status 3 means a problem."""
    with open_ledger(find_ledger(where), key) as ledger:
        report = ledger.verify(witness=witness)
    if as_json:
        head = {"count": report.head.count, "hash": report.head.hash}
        document = {"ok": report.ok, "complete": report.complete, "entries": report.entries, "head": head}
        print_json({**document, "problems": list(report.problems)})
    else:
        Console().print(Text(str(report), style="green" if report.ok else "red"))
        if report.ok and not report.complete:
            Console().print(Text(note_on_completeness("--witness FILE")))
    if not report.ok:
        raise typer.Exit(3)


@budget.command()
def export(
    where: LedgerArgument = None,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write to this file instead of the terminal.")
    ] = None,
    key: KeyFileOption = None,
) -> None:
    """Write the whole log as JSON lines."""
    with open_ledger(find_ledger(where), key) as ledger:
        lines = (line + "\n" for line in ledger.export())
        if to is None:
            sys.stdout.writelines(lines)
        else:
            write_file(to, lambda path: _write_lines(path, lines), "the log", "--to")


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)


def _until(account: Account) -> str:
    until = "" if account.expires is None else f"last day {last_day(account.expires)} (UTC)"
    return ", ".join(part for part in ("frozen" if account.frozen else "", until) if part)


def last_day(expires: datetime) -> str:
    """Write when an account expires: its last day, or the moment in UTC if it is not the end of a day."""
    from datetime import UTC, timedelta

    moment = expires.astimezone(UTC)
    final_moment = moment - timedelta(microseconds=1)
    return f"{final_moment:%Y-%m-%d}" if final_moment.date() != moment.date() else f"{moment:%Y-%m-%d %H:%M}"


def _facts(account: Account) -> dict[str, object]:
    remaining, spent = account.filter.remaining, account.filter
    return {
        "name": account.name,
        **account.facts(),
        "budget": account.budget.to_json(),
        "spent": amount_facts(spent),
        "left": amount_facts(remaining),
    }


def _blocks(ledger: Ledger, account: Account) -> dict[str, object]:
    return {"fullest": blocks_to_json(ledger, account)} if account.blocks is not None else {}


def share_left(filter_: Filter) -> float:
    """Return the largest charge that still fits, as a share of the largest that fitted at first."""
    return share_of(filter_.remaining, filter_)


def share_of(remaining: Remaining, filter_: Filter) -> float:
    """Return what is left as a share of the largest charge that fitted at first."""
    start = type(filter_).start(filter_.budget).remaining
    if filter_.budget.rho is not None and start.rho and remaining.rho is not None:
        return float(remaining.rho / start.rho)
    return (
        float(remaining.epsilon / start.epsilon) if start.epsilon and remaining.epsilon is not None else 0.0
    )


def bar(share: float, width: int) -> Text:
    """Draw a share of a budget as a bar of the given width."""
    full = round(width * min(1.0, max(0.0, share)))
    colour = "green" if share > 0.5 else "yellow" if share > 0.15 else "red"
    return Text("█" * full, style=colour) + Text("░" * (width - full), style="dim")


def print_json(value: object) -> None:
    """Print one JSON value over several lines."""
    typer.echo(json.dumps(value, indent=2))


_WIDTH = 40
_T = TypeVar("_T")


@budget.command("burn-down")
def burn_down(
    where: LedgerArgument = None,
    *,
    account: AccountOption = None,
    key: KeyFileOption = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw a picture into this file (.png, .svg, .pdf).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what was left of an account (by default the first one) after each charge."""
    with open_ledger(find_ledger(where), key) as ledger:
        accounts = ledger.accounts()
        name = account if account is not None else accounts[0].name if accounts else ""
        points = _points(ledger.filters(name))
        divided = bool(name) and ledger.account(name).blocks is not None
    if plot is not None:
        write_file(plot, _figure(name, points).save, "the picture")
    if as_json:
        print_json([{"at": at, "left": share} for at, share in points])
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("when (UTC)")
    table.add_column(Text(f"left of {name}"))
    table.add_column("", justify="right")
    for at, share in _thinned(points, 24):
        table.add_row(at[:19].replace("T", " "), bar(share, _WIDTH), percent(share))
    Console().print(table)
    if divided:
        typer.echo("left for questions about all of the data; tacit budget shows what is left of the blocks")


def _points(states: list[tuple[str, Filter]]) -> list[tuple[str, float]]:
    """Return what was left after each charge; a long history gives a few hundred points."""
    return [(at, share_left(state)) for at, state in _thinned(states, 300)]


def _thinned(items: list[_T], about: int) -> list[_T]:
    """Keep about so many items, evenly spread, and always the last one."""
    step = max(1, len(items) // about)
    return items[::step] if (len(items) - 1) % step == 0 else [*items[::step], items[-1]]


def _figure(name: str, points: list[tuple[str, float]]) -> Figure:
    days = [days_of(datetime.fromisoformat(at)) for at, _ in points]
    shares = [share for _, share in points]
    steps = ChartSeries("steps", [*days, *days[-1:]], shares, [0.0] * len(shares), shares)
    chart = Chart((steps,), ChartAxis(kind="dates"), ChartAxis("left", kind="shares", ends=(0.0, 1.02)))
    return Figure(f"Budget of {printable(name)}", (chart,))


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
        read_page = _latest if after is None else _following
        entries, more = read_page(ledger, account, limit, skipped, after or 0)
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
    console.print(
        _history_table(lines) if console.width >= _WIDE else _below_each_other(lines, console.width)
    )
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


def _history_table(lines: list[dict[str, str]]) -> Table:
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
        cells = {"account ": line["account"], "": line["cost"], "who: ": line["who"]}
        facts = "; ".join(f"{name}{value}" for name, value in cells.items() if value)
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
    entries: list[Entry] = []
    while len(entries) <= limit:
        page = ledger.history(account, after=after, limit=limit + 1)
        entries += [entry for entry in page if entry.kind not in skipped]
        if len(page) <= limit:
            break
        after = page[-1].seq
    return entries[:limit], len(entries) > limit


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
    instalments = (entry.body for entry in later if entry.kind == "release" and "part" in entry.body)
    return Counter(int(str(body["receipt"])) for body in instalments)


def _what(entry: Entry, stored: int | None) -> str:
    """Say what an entry is about; of a run, how many instalments it has and how many are stored if known."""
    question = f": {printable(entry.asked)}" if entry.asked else _change(entry)
    parts = entry.body.get("parts")
    if not isinstance(parts, int):
        return _KINDS.get(entry.kind, entry.kind) + question
    kind = "run seen" if entry.kind == "view" else _KINDS[entry.kind]
    done = f", {stored:,} stored" if entry.kind == "run" and stored is not None else ""
    return f"{kind}{question} ({parts:,} {'instalment' if parts == 1 else 'instalments'}{done})"


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
    if entry.spend is not None and entry.spend.promise is not None:
        promise = entry.spend.promise
        delta = f", delta {float(promise.delta):g}" if promise.delta else ""
        return f"epsilon {float(promise.epsilon or 0):g}{delta}; charged as "
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


@app.command("verify")
def verify_certificate(
    certificate: Annotated[Path, typer.Argument(help="The file of a release, or of its certificate.")],
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", envvar="TACIT_LEDGER", help="The ledger's path or postgresql:// address."),
    ] = None,
    key: KeyFileOption = None,
    config: Annotated[
        Path, typer.Option("--config", "-c", envvar="TACIT_CONFIG", help="The file that names the ledger.")
    ] = Path("tacit.toml"),
    *,
    whole: Annotated[
        bool, typer.Option("--whole", help="Also check every entry and total of the ledger.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a release, or its certificate alone, against its ledger; exit status 3: it is not verified."""
    if not certificate.is_file():
        raise missing_file(certificate, "bad-certificate", fix=Do("save-certificate", path=str(certificate)))
    promise, values, told = _read(certificate)
    where = find_ledger(ledger, config, named_by="--ledger")
    result = _compared(promise, where, key, whole_log=whole)
    if values == "changed":
        result = replace(result, problems=(*result.problems, told))
    entry = _entry_that_paid(promise).get("entry")
    if as_json:
        ok, problems = not result.problems, list(result.problems)
        about = {"certificate": promise.plan, "entry": entry, "values": values}
        show_json({"ok": ok, "problems": problems, **about})
    elif result.problems:
        say(Text(f"NOT verified: {certificate}", style="red"), *(f"  - {one}" for one in result.problems))
        if result.intact and not result.knows_entry:
            say(f"compared with {where}, which is intact; for another ledger, give --ledger FILE")
    else:
        say(
            Text(f"verified: entry {entry} of {where} paid for this release", style="green"),
            f"values: {told}",
            f"ledger: {result.state}",
            note_on_completeness(f"tacit budget verify {where} --witness FILE", is_complete=whole),
        )
    if result.problems:
        raise typer.Exit(3)


def _read(path: Path) -> tuple[Certificate, str, str]:
    """Read a certificate, alone or in a release; say what is known of its values, in short and in full."""
    from tacit.core import Certificate, Release

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("certificate"), dict):
        certificate_only = (
            "NOT checked; this file has the certificate alone. "
            "A release that Python saved (release.save) has the values too"
        )
        return Certificate.load(path), "not in this file", certificate_only
    promise = Certificate(document["certificate"])
    try:
        release = Release.from_json(document)
    except TacitError as refusal:
        return promise, "changed", refusal.what
    if release.values_bound and not release.values_problem:
        return promise, "bound", "the certificate was made for the values in this file"
    if release.values_bound is None:
        return promise, "not bound", f"NOT checked; {release.values_problem}"
    return promise, "changed", release.values_problem


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What was found wrong, the state of the ledger, and whether it has the entry of the certificate."""

    problems: tuple[str, ...]
    state: str = ""
    intact: bool = False
    knows_entry: bool = False


def _compared(promise: Certificate, where: str, key: Path | None, *, whole_log: bool) -> _Comparison:
    """Compare a certificate with its ledger; unless ``whole_log``, in the same time for any log."""
    try:
        with open_ledger(where, key) as ledger:
            problems = _problems(ledger) + promise.problems(ledger)
            entries = ledger.head.count
            state = (
                f"entry {entries}, the last one, is intact; the others were not checked (--whole checks them)"
            )
            if whole_log:
                report = ledger.verify()
                problems, state = [*report.problems] or problems, str(report)
            entry_named = _entry_that_paid(promise)
            number = entry_named.get("entry")
            entry = ledger.entry(number) if isinstance(number, int) and number > 0 else None
            is_same = entry is not None and entry.hash == entry_named.get("hash")
            return _Comparison(tuple(problems), state, not _problems(ledger), is_same)
    except TacitError as refusal:
        if refusal.code not in _BROKEN:
            raise
        return _Comparison((refusal.what,))


def _problems(ledger: Ledger) -> list[str]:
    """Say what is wrong with the end of the log; an edited last entry is refused."""
    if ledger.head.count:
        ledger.entry(ledger.head.count)
    missing = ledger.missing
    if missing is None:
        return []
    missing_entry = (
        f"the witness {ledger.witness} has seen entry {missing.count}, which the ledger does not contain"
    )
    return [f"{missing_entry}: its end was cut off, or an old copy took its place"]


def _entry_that_paid(promise: Certificate) -> dict[str, object]:
    """Return the number and the hash of the entry that paid, as the certificate states them."""
    charge = promise.fields["ledger"]
    return dict(charge) if isinstance(charge, dict) else {}
