"""The ``tacit budget`` command: what is left, who asked what, and whether the record is intact."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from tacit.cli._app import app
from tacit.cli._block_rows import block_lines, blocks_to_json, named_blocks
from tacit.cli._ledger import KeyFileOption, find_ledger, note_on_completeness, open_ledger
from tacit.cli._output import JsonOption, exact_text, printable, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.accounting import Filter, Remaining
    from tacit.ledger import Account, Entry, Ledger

__all__ = ["AccountOption", "LedgerArgument", "bar", "budget", "print_json", "share_left", "share_of"]

#: The kinds of entries of the log, in words.
_KINDS = {
    "open": "account opened", "charge": "charged", "draw": "answer paid", "claim": "answer drawn",
    "release": "answer stored", "run": "run paid", "view": "answer seen", "grow": "budget raised",
    "refresh": "budget started again", "version": "new version", "unseal": "unsealed",
    "record": "only shapes of questions are kept", "freeze": "frozen", "unfreeze": "unfrozen",
    "expiry": "last day changed", "gap": "went on from a backup", "lost": "counted as spent",
}  # fmt: skip
#: Entries that only follow from an earlier one: --json and export show them.
_SILENT = frozenset({"claim", "release"})


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
    "Without LEDGER, the one that tacit.toml names.",
)
app.add_typer(budget)

LedgerArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="LEDGER", envvar="TACIT_LEDGER", show_default=False,
        help="The ledger's path or postgresql:// address; by default the one that tacit.toml names.",
    ),
]  # fmt: skip
AccountOption = Annotated[str | None, typer.Option("--account", "-a", help="Only this account.")]


@budget.command()
def status(where: LedgerArgument = None, *, key: KeyFileOption = None, as_json: JsonOption = False) -> None:
    """Show what is left of every account."""
    with open_ledger(find_ledger(where), key) as ledger:
        accounts, sealed = ledger.accounts(), ledger.sealed
        if as_json:
            listed = [_facts(one) | _blocks(ledger, one) for one in accounts]
            print_json({"ledger": ledger.name, "sealed": sealed, "accounts": listed})
            return
        blocks = {account.id: block_lines(ledger, account) for account in accounts}
    table = Table(box=None, header_style="dim", pad_edge=False)
    expiring = any(account.expires is not None or account.frozen for account in accounts)
    for title in ("account", "protects", "left of the budget", "", *(["expires"] if expiring else [])):
        table.add_column(title)
    for account in sorted(accounts, key=lambda one: one.path[::-1]):
        share = share_left(account.filter)
        table.add_row(
            Text("  " * (len(account.path) - 1) + printable(account.name)),
            Text(printable(account.unit)),
            Text(str(account.filter.remaining)),
            bar(share, 16),
            *([Text(_until(account))] if expiring else []),
        )
        for label, left in blocks[account.id]:
            drawn = bar(share_of(left, account.filter), 16) if left is not None else Text()
            table.add_row(Text("  " * len(account.path) + label), Text(), Text(str(left or "")), drawn)
    console = Console()
    console.print(table if accounts else "no accounts yet")
    if sealed is not None:
        console.print(Text(f"sealed: {printable(sealed)}", style="red"))


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
    table = Table(box=None, header_style="dim", pad_edge=False)
    texts = [{"who": _who(entry), "purpose": entry.purpose} for entry in entries]
    words = [name for name in ("who", "purpose") if any(one[name] for one in texts)]
    for title in ("entry", "when (UTC)", "what", "account", "cost", *words):
        fixed = title in {"entry", "when (UTC)"}
        table.add_column(
            title, justify="right" if title == "entry" else "left", no_wrap=fixed, overflow="fold"
        )
    for entry, one in zip(entries, texts, strict=True):
        cells = (
            entry.at[:19].replace("T", " "),
            _what(entry),
            entry.account or "",
            _cost(entry),
        )
        added = (printable(one[name]) for name in words)
        table.add_row(str(entry.seq), *(Text(cell) for cell in (*cells, *added)))
    Console().print(table)
    if more:
        typer.echo(f"more: --after {entries[-1].seq}")


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
        found = {"ok": report.ok, "complete": report.complete, "entries": report.entries, "head": head}
        print_json({**found, "problems": list(report.problems)})
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
    until = "" if account.expires is None else f"{account.expires:%Y-%m-%d %H:%M} UTC"
    return "frozen" if account.frozen else until


def _facts(account: Account) -> dict[str, object]:
    left, spent = account.filter.remaining, account.filter
    return {
        "name": account.name,
        **account.facts(),
        "budget": account.budget.to_json(),
        "spent": {part: exact_text(getattr(spent, part)) for part in ("epsilon", "delta", "rho")},
        "left": {part: exact_text(getattr(left, part)) for part in ("epsilon", "delta", "rho")},
    }


def _blocks(ledger: Ledger, account: Account) -> dict[str, object]:
    return {"fullest": blocks_to_json(ledger, account)} if account.blocks is not None else {}


def share_left(filter_: Filter) -> float:
    """Return the largest charge that still fits, as a share of the largest that fitted at first."""
    return share_of(filter_.remaining, filter_)


def share_of(left: Remaining, filter_: Filter) -> float:
    """Return what is left as a share of the largest charge that fitted at first."""
    start = type(filter_).start(filter_.budget).remaining
    if filter_.budget.rho is not None and start.rho and left.rho is not None:
        return float(left.rho / start.rho)
    return float(left.epsilon / start.epsilon) if start.epsilon and left.epsilon is not None else 0.0


def bar(share: float, width: int) -> Text:
    """Draw a share of a budget as a bar of the given width."""
    full = round(width * min(1.0, max(0.0, share)))
    colour = "green" if share > 0.5 else "yellow" if share > 0.15 else "red"
    return Text("█" * full, style=colour) + Text("░" * (width - full), style="dim")


def _who(entry: Entry) -> str:
    return entry.who or ("unknown" if entry.asked else "")


def _what(entry: Entry) -> str:
    """Say what an entry is about; of a run, how many instalments it has."""
    asked = f": {printable(entry.asked)}" if entry.asked else ""
    parts = entry.body.get("parts")
    if not isinstance(parts, int):
        return _KINDS.get(entry.kind, entry.kind) + asked
    kind = "run seen" if entry.kind == "view" else _KINDS[entry.kind]
    return f"{kind}{asked} ({parts:,} {'instalment' if parts == 1 else 'instalments'})"


def _cost(entry: Entry) -> str:
    return "" if entry.spend is None else str(entry.spend) + named_blocks(entry)


def print_json(value: object) -> None:
    """Print one JSON value over several lines."""
    typer.echo(json.dumps(value, indent=2))
