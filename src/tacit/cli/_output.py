"""The output of the command line: text and tables for people, JSON for programs, files where asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tacit.errors import TacitError
from tacit.report import plain
from tacit.show import Chart, Drawn, Figure, together

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.core import Plan, Release


def _or_at_the_root(context: typer.Context, wanted: bool) -> bool:  # noqa: FBT001 - typer passes it by position
    """Read ``tacit --json plan`` like ``tacit plan --json``."""
    return wanted or bool(context.find_root().params.get("as_json"))


JsonOption = Annotated[
    bool,
    typer.Option("--json", callback=_or_at_the_root, help="Print JSON instead of text, also for errors."),
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", help="Draw a picture into this file (.png, .svg, .pdf).")
]


def typed(word: str) -> str:
    """Write a word as people type it in a terminal: in quotes where it has spaces or special characters."""
    return word if re.fullmatch(r"[\w./:=,+-]+", word) else f'"{word}"'


def printable(text: str) -> str:
    """Show what others wrote without letting it move the cursor or colour the screen."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def exact_text(value: object) -> str | None:
    """Write an exact number for JSON, as text; None stays None."""
    return None if value is None else str(value)


def amount_facts(amount: object) -> dict[str, str | None]:
    """Return what is left of a budget, or what was spent, for JSON: exact numbers as text."""
    return {part: exact_text(getattr(amount, part)) for part in ("epsilon", "delta", "rho")}


def plan_facts(made: Plan[Any]) -> dict[str, object]:
    """Return what a plan says, for JSON."""
    return {
        "asked": made.asked,
        "columns": list(made.forecast),
        "promised": {name: float(value) for name, value in made.promised.items()},
        "facts": dict(made.facts),
        "mechanisms": [dict(one) for one in made.mechanisms],
        "hash": made.hash,
    }


def show_json(value: object) -> None:
    """Print one JSON value on one line."""
    typer.echo(json.dumps(plain(value), allow_nan=False))


def say(*parts: object) -> None:
    """Print to the terminal; plain text where there is no terminal or NO_COLOR is set."""
    console = Console(highlight=False)
    for part in parts:
        console.print(part, markup=False)


def write_figures(path: Path, result: Drawn | Release[Any], most: int = 1) -> None:
    """Draw the first figures of a result into one file; of an answer without numbers, a figure that says so.

    Whether there are numbers may be known only after the charge, so their lack is not refused.
    """
    figures = result.figures()
    if not figures and not isinstance(result, Drawn):
        figures = (Figure("", (Chart((), note=result.content.without_figure().what),)),)
    write_file(path, together(figures[:most]).save, "the picture")


def write_file(path: Path, write: Callable[[Path], object], what: str, option: str = "--plot") -> None:
    """Write a file that the user asked for; a failure is a refusal that names the path, not a traceback."""
    try:
        write(path)
    except (OSError, ValueError) as problem:
        unknown_format = option == "--plot" and isinstance(problem, ValueError)
        file = f"./{path.stem}.png" if unknown_format else f"./{path.name}"
        raise TacitError(
            "cannot-write",
            f"{what} could not be written to {path}",
            why=str(problem),
            fix=f"{option} {typed(file)}",
        ) from problem
