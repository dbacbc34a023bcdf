"""``tacit budget``: what is left, who took what, and whether the record holds."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from tacit.cli.app import app
from tacit.cli.ledgers import KeyFile, find_ledger, open_ledger, what_is_not_proven
from tacit.cli.output import JsonFlag  # noqa: TC001 - typer reads the annotations

if TYPE_CHECKING:
    from tacit.accounting import Budget, Filter
    from tacit.ledger import Account, Entry

__all__ = ["Where", "budget", "safe", "told"]

_WIDTH = 40
#: What the entries of the log are, in words.
_ACTS = {
    "open": "account opened", "charge": "charged", "draw": "answer paid", "claim": "answer drawn",
    "release": "answer stored", "view": "answer seen", "grow": "budget raised", "refresh": "started anew",
    "version": "new version", "unseal": "unsealed",
}  # fmt: skip
#: What only follows from an entry before: shown by --json and export.
_SILENT = frozenset({"claim", "release"})
_T = TypeVar("_T")


class _LedgerFirst(TyperGroup):
    """Read ``tacit budget [LEDGER]`` as its status; the ledger may stand before or after a command's name."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if not args or (args[0] not in self.commands and args[0] not in {"--help", "--show-completion"}):
            args = (
                [args[1], args[0], *args[2:]] if args[1:2] and args[1] in self.commands else ["status", *args]
            )
        return super().parse_args(ctx, args)


budget = typer.Typer(
    name="budget",
    cls=_LedgerFirst,
    help="Show what is left, who took what, and whether the record holds: tacit budget hospital.ledger. "
    "Without a ledger, the one that tacit.toml names.",
)
app.add_typer(budget)

Where = Annotated[
    str | None,
    typer.Argument(
        metavar="[LEDGER]", envvar="TACIT_LEDGER", show_default=False,
        help="A ledger's path or postgresql:// address; by default the one of tacit.toml.",
    ),
]  # fmt: skip
_Name = Annotated[str | None, typer.Option("--account", "-a", help="Only this account.")]


@budget.command()
def status(where: Where = None, *, key: KeyFile = None, as_json: JsonFlag = False) -> None:
    """Show every account: its budget, what is spent and what is left."""
    with open_ledger(find_ledger(where), key) as ledger:
        accounts, sealed = ledger.accounts(), ledger.sealed
    if as_json:
        _print_json({"ledger": ledger.name, "sealed": sealed, "accounts": [_facts(one) for one in accounts]})
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    expiring = any(account.expires is not None for account in accounts)
    for title in ("account", "protects", "left of the budget", "", *(["expires"] if expiring else [])):
        table.add_column(title)
    for account in sorted(accounts, key=lambda one: one.path[::-1]):
        share = _share_left(account.filter)
        table.add_row(
            Text("  " * (len(account.path) - 1) + account.name),
            Text(account.unit),
            Text(str(account.filter.remaining)),
            _bar(share, 16),
            *([Text(_until(account))] if expiring else []),
        )
    console = Console()
    console.print(table if accounts else "no accounts yet")
    if sealed is not None:
        console.print(Text(f"sealed: {safe(sealed)}", style="red"))


@budget.command()
def history(
    where: Where = None,
    *,
    account: _Name = None,
    key: KeyFile = None,
    limit: Annotated[int, typer.Option(min=1, help="Show this many of the latest entries.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """Show who asked what at which cost, and the acts of the curator; --json and export show every entry."""
    with open_ledger(find_ledger(where), key) as ledger:
        entries = ledger.history(account)
    if as_json:
        _print_json([entry.to_json() for entry in entries[-limit:]])
        return
    entries = [entry for entry in entries if entry.kind not in _SILENT][-limit:]
    table = Table(box=None, header_style="dim", pad_edge=False)
    said = [{"who": _who(entry), "purpose": entry.purpose} for entry in entries]
    words = [name for name in ("who", "purpose") if any(one[name] for one in said)]
    for title in ("entry", "when (UTC)", "what", "account", "cost", *words):
        fixed = title in {"entry", "when (UTC)"}
        table.add_column(
            title, justify="right" if title == "entry" else "left", no_wrap=fixed, overflow="fold"
        )
    for entry, one in zip(entries, said, strict=True):
        cells = (
            entry.at[:19].replace("T", " "),
            _ACTS.get(entry.kind, entry.kind) + (f": {safe(entry.asked)}" if entry.asked else ""),
            entry.account or "",
            _cost(entry),
        )
        told_by = (safe(one[name]) for name in words)
        table.add_row(str(entry.seq), *(Text(cell) for cell in (*cells, *told_by)))
    Console().print(table)


@budget.command("burn-down")
def burn_down(
    where: Where = None,
    *,
    account: _Name = None,
    key: KeyFile = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw it into this picture (png, svg, pdf).")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what was left of an account (by default the first dataset) after each charge."""
    with open_ledger(find_ledger(where), key) as ledger:
        accounts = ledger.accounts()
        name = account if account is not None else accounts[0].name if accounts else ""
        points = _points(ledger.account(name), ledger.history(name))
    if plot is not None:
        _draw(name, points, plot)
    if as_json:
        _print_json([{"at": at, "left": left} for at, left in points])
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("when (UTC)")
    table.add_column(Text(f"left of {name}"))
    table.add_column("", justify="right")
    for at, left in _thinned(points, 24):
        table.add_row(at[:19].replace("T", " "), _bar(left, _WIDTH), f"{left:.1%}")
    Console().print(table)


@budget.command()
def verify(
    where: Where = None,
    *,
    witness: Annotated[
        Path | None, typer.Option(help="A witness file that was kept elsewhere; it proves completeness.")
    ] = None,
    key: KeyFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Check the keyed chain, every total and the witness; exit with 3 if anything is wrong."""
    with open_ledger(find_ledger(where), key) as ledger:
        report = ledger.verify(witness=witness)
    if as_json:
        head = {"count": report.head.count, "hash": report.head.hash}
        found = {"ok": report.ok, "complete": report.complete, "entries": report.entries, "head": head}
        _print_json({**found, "problems": list(report.problems)})
    else:
        Console().print(Text(str(report), style="green" if report.ok else "red"))
        if report.ok and not report.complete:
            Console().print(Text(what_is_not_proven("--witness FILE")))
    if not report.ok:
        raise typer.Exit(3)


@budget.command()
def export(
    where: Where = None,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write to this file instead of the terminal.")
    ] = None,
    key: KeyFile = None,
) -> None:
    """Write the whole log as JSON lines."""
    with open_ledger(find_ledger(where), key) as ledger:
        if to is None:
            sys.stdout.writelines(line + "\n" for line in ledger.export())
        else:
            with to.open("w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in ledger.export())


def _until(account: Account) -> str:
    return "" if account.expires is None else f"{account.expires:%Y-%m-%d %H:%M} UTC"


def _facts(account: Account) -> dict[str, object]:
    left, spent = account.filter.remaining, account.filter
    return {
        "name": account.name,
        **account.facts(),
        "budget": account.budget.to_json(),
        "spent": {"epsilon": _exact(spent.epsilon), "delta": _exact(spent.delta), "rho": _exact(spent.rho)},
        "left": {"epsilon": _exact(left.epsilon), "delta": _exact(left.delta), "rho": _exact(left.rho)},
    }


def _exact(value: object) -> str | None:
    return None if value is None else str(value)


def _share_left(filter_: Filter) -> float:
    """Compare the largest charge that still fits with the largest that fitted at first."""
    start, left = type(filter_).start(filter_.budget).remaining, filter_.remaining
    if filter_.budget.rho is not None and start.rho and left.rho is not None:
        return float(left.rho / start.rho)
    return float(left.epsilon / start.epsilon) if start.epsilon and left.epsilon is not None else 0.0


def _points(account: Account, entries: list[Entry]) -> list[tuple[str, float]]:
    """Replay an account's charges; for a long history, look at what was left a few hundred times."""
    from dataclasses import replace

    from tacit.accounting import Budget, Filter

    filter_ = Filter.start(account.budget)
    states: list[tuple[str, Filter]] = []
    for entry in entries:
        if entry.kind == "open" and entry.account == account.name:
            filter_ = Filter.start(Budget.from_json(entry.body["budget"]))
        elif entry.kind == "grow" and entry.account == account.name:
            filter_ = replace(filter_, budget=Budget.from_json(entry.body["budget"]))
        elif entry.kind == "refresh" and entry.account == account.name:
            filter_ = Filter.start(filter_.budget)
        elif entry.spend is not None and account.name in entry.charged:
            filter_ = filter_.after(entry.spend)
        else:
            continue
        states.append((entry.at, filter_))
    return [(at, _share_left(state)) for at, state in _thinned(states, 300)]


def _thinned(items: list[_T], about: int) -> list[_T]:
    """Keep about so many, evenly spread, and the last one once."""
    step = max(1, len(items) // about)
    return items[::step] if (len(items) - 1) % step == 0 else [*items[::step], items[-1]]


def _draw(name: str, points: list[tuple[str, float]], path: Path) -> None:
    from datetime import datetime

    from tacit.core import needs

    needs("--plot", "matplotlib", "tacit[plot]")
    import matplotlib as mpl
    import numpy as np

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    times = np.array([datetime.fromisoformat(at).replace(tzinfo=None) for at, _ in points], "datetime64[ms]")
    left = np.array([100 * share for _, share in points])
    axes.step(times, left, where="post", color="#0b7285")
    axes.fill_between(times, left, step="post", color="#0b7285", alpha=0.15)
    axes.set(ylim=(0, 102), ylabel="left, %", title=f"Budget of {safe(name)}".replace("$", r"\$"))
    axes.spines[["top", "right"]].set_visible(False)
    figure.autofmt_xdate()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _bar(share: float, width: int) -> Text:
    full = round(width * min(1.0, max(0.0, share)))
    colour = "green" if share > 0.5 else "yellow" if share > 0.15 else "red"
    return Text("█" * full, style=colour) + Text("░" * (width - full), style="dim")


def _who(entry: Entry) -> str:
    return entry.who or ("unknown" if entry.asked else "")


def _cost(entry: Entry) -> str:
    return "" if entry.spend is None else str(entry.spend)


def told(budget: Budget) -> str:
    """Write a budget as people say it: ``epsilon 3, delta 1e-06``."""
    text = repr(budget).removeprefix("Budget(").removesuffix(")").replace("=", " ")
    return text if len(text) <= 60 else text[:57] + "..."


def safe(text: str) -> str:
    """Show what others wrote without letting it move the cursor or colour the screen."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2))
