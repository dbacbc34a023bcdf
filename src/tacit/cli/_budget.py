"""The ``tacit budget`` command: what is left, who asked what, and whether the record is intact."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from tacit.cli._app import app
from tacit.cli._block_rows import block_lines, blocks_to_json
from tacit.cli._ledger import KeyFileOption, find_ledger, note_on_completeness, open_ledger
from tacit.cli._output import JsonOption, amount_facts, printable, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tacit.accounting import Filter, Remaining
    from tacit.cli._block_rows import BlockLine
    from tacit.ledger import Account, Ledger


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
            listed = [
                _facts(one) | {"more_like_the_last": _more(ledger, one)} | _blocks(ledger, one)
                for one in accounts
            ]
            print_json({"ledger": ledger.name, "sealed": sealed, "refusal": stopped, "accounts": listed})
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
    costs = [entry for entry in recent if entry.kind in _CHARGES]
    cost = costs[-1].cost if costs and account.blocks is None else None
    return None if cost is None else account.filter.how_many(cost)


def _table(
    accounts: list[Account], blocks: Mapping[int, list[BlockLine]], more: Mapping[int, int | None]
) -> Table:
    """Lay out one line for each account, and one for each of its fullest blocks."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    narrow = Console().width < 72  # too narrow for a bar
    counted = any(count is not None for count in more.values())
    stops = any(account.expires is not None or account.frozen for account in accounts)
    titles = (
        "account",
        "protects",
        "left of the budget",
        "",
        *(["more charges like the latest"] if counted else []),
    )
    for title in (*titles, *([""] if stops else [])):
        table.add_column(title)
    for account in sorted(accounts, key=lambda one: one.path[::-1]):
        lines = blocks[account.id]
        whole = Text("" if lines else str(account.filter.remaining))
        table.add_row(
            Text("  " * (len(account.path) - 1) + printable(account.name)),
            Text(printable(account.unit)),
            whole,
            Text() if lines or narrow else bar(share_left(account.filter), 16),
            *([Text("" if (count := more[account.id]) is None else f"{count:,}")] if counted else []),
            *([Text(_until(account))] if stops else []),
        )
        for label, left in lines:
            drawn = bar(share_of(left, account.filter), 16) if left is not None and not narrow else Text()
            table.add_row(Text("  " * len(account.path) + label), Text(), Text(str(left or "")), drawn)
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
    until = "" if account.expires is None else f"last day {last_day(account.expires)} (UTC)"
    return ", ".join(part for part in ("frozen" if account.frozen else "", until) if part)


def last_day(expires: datetime) -> str:
    """Write when an account expires: its last day, or the moment in UTC if it is not the end of a day."""
    from datetime import UTC, timedelta

    moment = expires.astimezone(UTC)
    last = moment - timedelta(microseconds=1)
    return f"{last:%Y-%m-%d}" if last.date() != moment.date() else f"{moment:%Y-%m-%d %H:%M}"


def _facts(account: Account) -> dict[str, object]:
    left, spent = account.filter.remaining, account.filter
    return {
        "name": account.name,
        **account.facts(),
        "budget": account.budget.to_json(),
        "spent": amount_facts(spent),
        "left": amount_facts(left),
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


def print_json(value: object) -> None:
    """Print one JSON value over several lines."""
    typer.echo(json.dumps(value, indent=2))
