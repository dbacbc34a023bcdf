"""The ``tacit budget burn-down`` command: what was left after each charge, as a chart or a picture."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.cli._budget import AccountOption, LedgerArgument, bar, budget, print_json, share_left
from tacit.cli._ledger import KeyFileOption, find_ledger, open_ledger
from tacit.cli._output import JsonOption, printable, write_file
from tacit.report import percent
from tacit.show import Chart, ChartAxis, ChartSeries, Figure, days_of

if TYPE_CHECKING:
    from tacit.accounting import Filter

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
        print_json([{"at": at, "left": left} for at, left in points])
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("when (UTC)")
    table.add_column(Text(f"left of {name}"))
    table.add_column("", justify="right")
    for at, left in _thinned(points, 24):
        table.add_row(at[:19].replace("T", " "), bar(left, _WIDTH), percent(left))
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
    left = [share for _, share in points]
    steps = ChartSeries("steps", [*days, *days[-1:]], left, [0.0] * len(left), left)
    chart = Chart((steps,), ChartAxis(kind="dates"), ChartAxis("left", kind="shares", ends=(0.0, 1.02)))
    return Figure(f"Budget of {printable(name)}", (chart,))
