"""The command's root: global options and how errors reach a terminal."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

import tacit
from tacit.cli.refusals import in_words_of_the_command
from tacit.errors import TacitError

__all__ = ["app", "main"]

app = typer.Typer(
    name="tacit",
    help="Learn from sensitive data without exposing anyone in it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer hands the flag over by position
    if wanted:
        typer.echo(f"tacit {tacit.__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Learn from sensitive data without exposing anyone in it."""


def main() -> None:
    """Run the command; a refusal is printed without a traceback and exits with status 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # what a terminal cannot show becomes "?"; stderr escapes it
        sys.stdout.reconfigure(errors="replace")
    try:
        app()
    except TacitError as error:
        typer.echo(f"error: {in_words_of_the_command(error)}", err=True)
        sys.exit(2)
