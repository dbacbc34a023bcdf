"""The app behind the ``tacit`` command line: global options, and how errors reach a person or a program."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
from contextlib import suppress
from itertools import takewhile
from typing import Annotated, NoReturn

import typer

import tacit
from tacit.cli._fixes import in_words_of_the_command
from tacit.errors import TacitError
from tacit.fixes import Fix, Say, to_json

#: Words that are not a command: the exception of whichever click typer carries.
Misuse: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

#: The options that take a number with decimals.
_NUMBERS = frozenset(
    {"--epsilon", "-e", "--delta", "--rho", "--within", "--confidence", "--error", "--prior", "--budget"}
)

app = typer.Typer(
    name="tacit",
    help="Learn from sensitive data without exposing anyone in it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer passes the flag by position
    if wanted:
        typer.echo(f"tacit {tacit.__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, also for errors; may also follow COMMAND.")
    ] = False,
) -> None:
    """Learn from sensitive data without exposing anyone in it."""


def main() -> None:
    """Run the command. Output that cannot be written ends it with one line, not with a traceback."""
    try:
        try:
            _run()
        finally:
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()
    except OSError as problem:
        _end_without_output(problem)


def _end_without_output(problem: OSError) -> NoReturn:
    """Say that standard output is full or gone; what was paid for is stored."""
    with suppress(AttributeError, OSError, ValueError):  # else Python tries to write the rest when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if problem.errno != errno.EPIPE:  # a reader that has seen enough, like `head`, is not an error
        sentence = f"error: the output could not be written: {problem.strerror or problem}"
        why, fix = "why:   an answer that was charged is stored", "fix:   run the command again: it is free"
        with suppress(OSError):
            typer.echo(f"{sentence}\n{why}\n{fix}", err=True)
    sys.exit(1)


def _run() -> None:
    """Read the words of the command and run it.

    A refusal exits with status 2 and without a traceback. It is text on standard error, or with ``--json``
    one JSON value on standard output: ``{"error": {"code", "what", "why", "fix", "fix_data"}}``, where
    ``fix`` is in the words of the command and ``fix_data`` is the same fix for programs.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # what a terminal cannot show becomes "?"; stderr escapes it
        sys.stdout.reconfigure(errors="replace")
    for_programs = "--json" in sys.argv[1:]
    try:
        _check_quotes(sys.argv[1:])
        _check_decimal_points(sys.argv[1:])
        status = app(standalone_mode=not for_programs)
    except TacitError as error:
        refusal = in_words_of_the_command(error)
        if for_programs:
            _end(2, error.code, error.what, error.why, str(refusal.fix), error.fix)
        typer.echo(f"error: {refusal}", err=True)
        sys.exit(2)
    except Misuse as error:  # arrives here only with --json; without it, typer has printed the error
        context = getattr(error, "ctx", None)
        words = getattr(error, "format_message", error.__str__)()
        where = "tacit" if context is None else context.command_path
        _end(2, "usage", words, "tacit does not understand this command", f"{where} --help")
    if for_programs and status == 130:
        _end(130, "interrupted", "stopped by Ctrl-C", "a charge that was made stays", "run the command again")
    sys.exit(status if isinstance(status, int) else 0)


def _check_quotes(words: list[str]) -> None:
    """Refuse a question that arrived as several words because it had no quotes."""
    if not words or words[0] not in {"plan", "query"}:
        return
    question = list(takewhile(lambda word: not word.startswith("-"), words[1:]))
    if len(question) > 1:
        raise TacitError(
            "bad-sql",
            f"the question arrived as {len(question)} separate words; put it in quotes",
            why="without quotes, the shell changes characters such as * before Tacit reads the question",
            fix=f'tacit {words[0]} "{" ".join(question)}" {" ".join(words[1 + len(question) :])}'.rstrip(),
        )


def _check_decimal_points(words: list[str]) -> None:
    """Refuse ``--epsilon 0,5`` by name: a decimal comma could also separate two numbers."""
    for option, value in zip(["", *words], words, strict=False):
        name, _, inside = value.partition("=") if value.startswith("--") else (option, "", value)
        decimal = re.fullmatch(r"(-?\d+),(\d+)", inside)
        if decimal and name in _NUMBERS:
            raise TacitError(
                "bad-parameter",
                f"{name} {inside} has a decimal comma",
                why="Tacit reads decimal points only; a comma could also separate two numbers",
                fix=f"{name} {decimal[1]}.{decimal[2]}",
            )


def _end(status: int, code: str, sentence: str, why: str, words: str, fix: Fix | None = None) -> NoReturn:
    """Print an error as one JSON value and exit."""
    error = {"code": code, "what": sentence, "why": why, "fix": words, "fix_data": to_json(fix or Say(words))}
    typer.echo(json.dumps({"error": error}))
    sys.exit(status)
