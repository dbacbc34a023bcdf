"""``tacit demo``: the main job, end to end, on bundled data. It grows with the system."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit import noise
from tacit.cli.app import app

__all__ = ["demo"]

_SCALE = 2
_DRAWS = 1_000_000
_WIDTH = 50


@app.command()
def demo() -> None:
    """Draw exact noise and show its shape; then what it does to a count."""
    console = Console()
    console.print(
        f"[bold]Exact noise.[/] {_DRAWS:,} draws of [cyan]tc.noise.discrete_laplace(scale={_SCALE})[/]: "
        "whole numbers,\neach step away from zero less likely by exp(-1/2), with exactly that probability.\n"
    )
    draws = noise.discrete_laplace(_SCALE, size=_DRAWS)
    console.print(_histogram(draws, reach=8))
    console.print(
        "\n[bold]What it is for.[/] A ward has 38 positive tests. With one patient more it would be 39.\n"
        "Whoever sees a noisy count can hardly tell which of the two it was:\n"
    )
    console.print(_two_worlds(38, 39))
    console.print(
        "\nNo output is more than exp(1/2) = 1.65 times likelier in one world than in the other:\n"
        "that is epsilon = 0.5. "
        "Next: the tutorial, docs/tutorial/index.md"
    )


def _histogram(draws: np.ndarray, reach: int) -> Table:
    values = np.arange(-reach, reach + 1)
    shares = np.array([(draws == value).mean() for value in values])
    table = Table(box=None, show_header=True, header_style="dim", pad_edge=False)
    table.add_column("noise", justify="right")
    table.add_column("share of draws")
    table.add_column("", justify="right")
    for value, share in zip(values, shares, strict=True):
        bar = Text("█" * round(_WIDTH * share / shares.max()), style="cyan")
        table.add_row(f"{value:+d}" if value else "0", bar, f"{share:.3%}")
    return table


def _two_worlds(here: int, there: int) -> Table:
    trials = 200_000
    with_patient = there + noise.discrete_laplace(_SCALE, size=trials)
    without = here + noise.discrete_laplace(_SCALE, size=trials)
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("noisy count", f"chance if the truth is {here}", f"chance if it is {there}", "ratio"):
        table.add_column(title, justify="right")
    for value in range(here - 3, there + 4):
        p, q = (without == value).mean(), (with_patient == value).mean()
        table.add_row(str(value), f"{p:.3f}", f"{q:.3f}", f"{max(p, q) / min(p, q):.2f}")
    return table
