"""The output of the command line: text, tables and prompts for people, JSON for programs, files where asked.

Files (an answer, a picture, a certificate) are checked before a charge.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from tacit.errors import TacitError
from tacit.fixes import Do, Say
from tacit.report import plain
from tacit.show import Chart, Drawn, Figure, needed_package, together

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tacit.core import Plan, Release

T = TypeVar("T")


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


def plan_facts(plan: Plan[Any], *, budget: bool = True) -> dict[str, object]:
    """Return what a plan says, for JSON."""
    from tacit.core import risk_lines

    return {
        "asked": plan.asked,
        "columns": list(plan.forecast),
        "promised": {name: float(value) for name, value in plan.promised.items()},
        "facts": dict(plan.facts),
        **({"risk": dict(risk_lines(plan, account=budget))} if plan.risk is not None else {}),
        "mechanisms": [dict(one) for one in plan.mechanisms],
        "hash": plan.hash,
    }


def show_json(value: object) -> None:
    """Print one JSON value on one line."""
    typer.echo(json.dumps(plain(value), allow_nan=False))


def say(*parts: object) -> None:
    """Print to the terminal; plain text where there is no terminal or NO_COLOR is set."""
    console = Console(highlight=False)
    for part in parts:
        console.print(part, markup=False)


def write_figures(path: Path, result: Drawn | Release[Any], max_figures: int = 1) -> None:
    """Draw the first figures of a result into one file; of an answer without numbers, a figure that says so.

    Whether there are numbers may be known only after the charge, so their lack is not refused.
    """
    figures = result.figures()
    if not figures and not isinstance(result, Drawn):
        figures = (Figure("", (Chart((), note=result.content.without_figure().what),)),)
    write_file(path, together(figures[:max_figures]).save, "the picture")


def write_file(path: Path, write: Callable[[Path], object], noun: str, option: str = "--plot") -> None:
    """Write a file that the user asked for; a failure is a refusal that names the path, not a traceback."""
    try:
        write(path)
    except (OSError, ValueError) as problem:
        unknown_format = option == "--plot" and isinstance(problem, ValueError)
        file = f"./{path.stem}.png" if unknown_format else f"./{path.name}"
        raise TacitError(
            "cannot-write",
            f"{noun} could not be written to {path}",
            why=str(problem),
            fix=f"{option} {typed(file)}",
        ) from problem


_PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFiles:
    """The files that the user asked for; options of every command that answers."""

    out: Annotated[
        list[Path] | None,
        typer.Option(help="Write the answer to this file (report.html: a page); may be repeated."),
    ] = None
    plot: Annotated[Path | None, typer.Option(help="Draw a picture (.png, .svg, .pdf).")] = None
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate (.json).")] = None

    @property
    def asked(self) -> list[tuple[str, Path]]:
        """The files that were asked for, each with its option."""
        every: list[tuple[str, Path | None]] = [("--out", path) for path in self.out or ()]
        every += [("--plot", self.plot), ("--certificate", self.certificate)]
        return [(option, path) for option, path in every if path is not None]

    def check(self, *ends: str) -> None:
        """Refuse what cannot be written, before anything is charged; ``ends`` are those of the answer."""
        answers = tuple(dict.fromkeys((*(ends or (".csv", ".parquet")), ".html")))
        endings = {"--out": answers, "--plot": _PICTURES, "--certificate": (".json",)}
        for option, path in self.asked:
            _check_file(option, path, endings[option])
            package = "pyarrow" if path.suffix.lower() == ".parquet" else None
            extra = "pandas"
            if option == "--plot":
                package, extra = needed_package(path), "plot"
            if package is not None and find_spec(package) is None:
                raise TacitError(
                    "missing-extra", f"{path} needs {package}, which is not installed",
                    why="nothing was charged", fix=Do("install", package=f"tacit[{extra}]"),
                )  # fmt: skip

    def save(self, release: Release[Any], *, max_figures: int = 1, table: object = None) -> None:
        """Write the files of a release.

        Parameters
        ----------
        max_figures
            How many of its figures are drawn, at most.
        table
            What is written as a table, where it is not the whole release.
        """
        for path in self.out or ():
            ending = path.suffix.lower()[1:]
            if ending == "html" and not hasattr(release.content, "to_html"):
                write_file(path, release.report, "the report", "--out")
                continue
            name = {"tsv": "to_gwas_ssf", "json": "save"}.get(ending, f"to_{ending}")  # to_csv, to_vcf ...
            write_file(path, getattr(release if table is None else table, name), "the answer", "--out")
        if self.plot is not None:
            write_figures(self.plot, release, max_figures)
        if self.certificate is not None:
            write_file(self.certificate, release.certificate.save, "the certificate", "--certificate")

    def report(self) -> None:
        """Print what was written."""
        for _, path in self.asked:
            say(f"written: {path}")


def _check_file(option: str, path: Path, ends: tuple[str, ...]) -> None:
    if path.suffix.lower() not in ends:
        raise TacitError(
            "bad-parameter",
            f"{option} must be a file that ends in {', '.join(ends)}, got {str(path)!r}",
            fix=f"{option} answer{ends[0]}",
        )
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or path.is_dir():
        raise TacitError(
            "cannot-write",
            f"{path} cannot be written",
            why="its folder is missing or read-only, or it is a folder itself; nothing was charged",
            fix=f"{option} {typed('./' + path.name)}",
        )


@dataclass(slots=True)
class Prompts:
    """Asks a person at a terminal; elsewhere notes what should have been typed.

    Parameters
    ----------
    is_terminal
        Whether somebody can answer.
    missing, reasons
        The options that were not typed, with words in place of their values, and why they are needed.
    answers
        What was answered, as options.
    notice
        What a person should know before the first prompt.
    """

    is_terminal: bool
    missing: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    notice: str = ""

    def choose(self, option: str, title: str, why: str, choices: Sequence[tuple[str, T]]) -> T | None:
        """Let a person choose by number; None where nobody can."""
        if not self._asks(option, title, why):
            return None
        for number, (label, _) in enumerate(choices, 1):
            tell(f"{number:>3}  {label}", hanging=5)
        while True:
            text = typer.prompt(f"Number (1 to {len(choices)})", err=True).strip()
            if text.isdecimal() and 1 <= int(text) <= len(choices):
                return choices[int(text) - 1][1]
            tell(f"Type a whole number from 1 to {len(choices)}.")

    def read(self, option: str, title: str, why: str, words: str, read: Callable[[str], T]) -> T | None:
        """Let a person type a value until it can be read; None where nobody can."""
        if not self._asks(option, title, why):
            return None
        return self.typed(words, read)

    def typed(self, words: str, read: Callable[[str], T]) -> T:
        """Let a person type a value until it can be read."""
        while True:
            try:
                return read(typer.prompt(words, err=True).strip())
            except (TacitError, ValueError) as refusal:
                tell(refusal.what if isinstance(refusal, TacitError) else "This cannot be read.")

    def agrees(self, words: str) -> bool:
        """Return whether a person agrees; only a clear yes is one, and no answer is a no."""
        while True:
            text = typer.prompt(f"{words} [y/N]", default="", show_default=False, err=True).strip().lower()
            if text in {"y", "yes", "j", "ja"}:
                return True
            if text in {"", "n", "no", "nein"}:
                return False
            tell("Type y for yes, or n for no.")

    def _asks(self, option: str, title: str, why: str) -> bool:
        if not self.is_terminal:
            self.missing.append(option)
            return False
        if self.notice:
            typer.echo(err=True)
            tell(self.notice)
            self.notice = ""
        typer.echo(err=True)
        tell(title, bold=True)
        tell(why)
        return True

    def line(self, *more: str, without: Collection[str] = ()) -> str:
        """Return the command as it was typed, with what was answered since and what is to be added."""
        words = [typed(word) for word in sys.argv[1:] if word not in {"--json", *without}]
        return " ".join(["tacit", *words, *dict.fromkeys([*self.answers, *more])])

    def check(self) -> None:
        """Refuse with the whole line to type, if something is missing; as it stands, it charges nothing."""
        if not self.missing:
            return
        nobody = "there is no terminal to ask you on; nothing was written and nothing was charged"
        then = "the line shows the price and charges nothing; with --yes it charges"
        if any(re.search(r"\.\.\.|[A-Z]{3}", option) for option in self.missing):
            then = f"put your own values in place of ... and of words in capitals; then {then}"
        raise TacitError(
            "bad-parameter",
            f"this question also needs {', '.join(dict.fromkeys(one.split()[0] for one in self.missing))}",
            why="; ".join([*self.reasons, nobody, then]),
            fix=Say(self.line(*self.missing, without=("--yes", "-y"))),
        )


def tell(text: str, *, bold: bool = False, hanging: int = 0) -> None:
    """Write to a person, beside the output: in lines as wide as the terminal."""
    width = min(max(shutil.get_terminal_size().columns, 30), 100)
    lines = textwrap.fill(text, width, subsequent_indent=" " * hanging, break_on_hyphens=False)
    typer.echo(typer.style(lines, bold=True) if bold else lines, err=True)
