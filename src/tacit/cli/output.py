"""How commands speak: rich tables for people, JSON for programs, files where asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tacit.errors import TacitError
from tacit.report import plain

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JsonFlag", "PlotFile", "say", "show_json", "typed", "write_file"]


def _or_at_the_root(context: typer.Context, wanted: bool) -> bool:  # noqa: FBT001 - typer hands it by position
    """``tacit --json plan`` is ``tacit plan --json``."""
    return wanted or bool(context.find_root().params.get("as_json"))


JsonFlag = Annotated[
    bool, typer.Option("--json", callback=_or_at_the_root, help="Print JSON instead of text; errors too.")
]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", help="Write a picture to this file (.png, .svg, .pdf).")
]


def typed(word: str) -> str:
    """Write a word as it is typed in a terminal: in quotes where it has spaces or signs."""
    return word if re.fullmatch(r"[\w./:=,+-]+", word) else f'"{word}"'


def show_json(value: object) -> None:
    """Print one JSON value on one line."""
    typer.echo(json.dumps(plain(value), allow_nan=False))


def say(*parts: object) -> None:
    """Print to the terminal; without one, or with NO_COLOR set, plain text."""
    console = Console(highlight=False)
    for part in parts:
        console.print(part, markup=False)


def write_file(path: Path, write: Callable[[Path], object], what: str, option: str = "--plot") -> None:
    """Write a file that the user asked for; a failure is a refusal with the path, not a traceback."""
    try:
        write(path)
    except (OSError, ValueError) as problem:
        raise TacitError(
            "cannot-write",
            f"{what} could not be written to {path}",
            why=str(problem),
            fix=f"{option} ./{path.stem}.png"
            if option == "--plot" and isinstance(problem, ValueError)
            else f"{option} ./{path.name}",
        ) from problem
