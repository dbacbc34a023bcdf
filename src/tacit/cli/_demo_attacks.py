"""The attacks of the ``tacit demo`` command, its last part: one attacker, three kinds of release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tacit.report import percent

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.audit import lab


def compare(show: Console, epsilon: float) -> None:
    """Attack exact counts, a k-anonymous table and Tacit, and show the three side by side."""
    from tacit.audit import lab

    exact = lab.differencing_attack(epsilons=[epsilon])
    table = lab.homogeneity_attack(epsilons=[epsilon])
    who, everyone, without, has = exact.example
    verdict = "has the condition" if has else "does not have it"
    show.print(
        Text(
            f"\nExact answers: {everyone:,} people have the condition. Without people with {who}, "
            f"the count is {without:,}. Only one person fits that description, and {verdict}."
        )
    )
    if table.example is not None:
        where, size, all_have = table.example
        shared = "have it" if all_have else "do not have it"
        show.print(
            Text(
                f"A {table.k}-anonymous table: nobody is alone in it, but all {size} people with {where} "
                f"{shared}. Anyone who knows that you are one of them knows it about you."
            )
        )
    show.print(
        Text(
            "Tacit: the same counts with noise. Advantage 0 is blind guessing, 1 is certainty. The bound "
            "holds for every attacker, whatever else they know. Measured, with 99.9 % intervals:\n"
        )
    )
    show.print(_side_by_side(exact, table, epsilon))


def _side_by_side(exact: lab.DifferencingAttack, table: lab.HomogeneityAttack, epsilon: float) -> Table:
    grid = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("release", "certain about", "advantage", "bound"):
        grid.add_column(title, justify="left" if title == "release" else "right")
    grid.add_row("two exact counts", f"{percent(exact.exposed)} of people", "1.00", "none")
    grid.add_row(f"{table.k}-anonymous table", f"{percent(table.sure)} of people", "1.00", "none")
    for name, attack in (("two counts", exact), ("one count", table)):
        point = attack.points[-1]
        grid.add_row(
            f"Tacit, {name}, epsilon {epsilon:g}",
            "nobody",
            f"{point.low:.2f} to {point.high:.2f}",
            f"{point.bound:.2f}",
        )
    return grid
