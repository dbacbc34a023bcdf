"""Files that a command writes on request: an answer, a picture, a certificate. Checked before a charge."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._output import say, typed, write_figures, write_file
from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.show import needed_package

if TYPE_CHECKING:
    from tacit.core import Release

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
        known = {"--out": answers, "--plot": _PICTURES, "--certificate": (".json",)}
        for option, path in self.asked:
            _check_file(option, path, known[option])
            package = "pyarrow" if path.suffix.lower() == ".parquet" else None
            extra = "pandas"
            if option == "--plot":
                package, extra = needed_package(path), "plot"
            if package is not None and find_spec(package) is None:
                raise TacitError(
                    "missing-extra", f"{path} needs {package}, which is not installed",
                    why="nothing was charged", fix=Do("install", package=f"tacit[{extra}]"),
                )  # fmt: skip

    def save(self, release: Release[Any], *, most: int = 1, table: object = None) -> None:
        """Write the files of a release.

        Parameters
        ----------
        most
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
            write_figures(self.plot, release, most)
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
