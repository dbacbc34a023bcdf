"""Files that a command writes on request: an answer, a picture, a certificate. Checked before a charge."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._output import say, typed, write_file
from tacit.errors import TacitError
from tacit.fixes import Do

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.core import Release

_TABLES = (".csv", ".parquet")
_PICTURES = (".png", ".svg", ".pdf")


OutOption = Annotated[
    list[Path] | None,
    typer.Option("--out", help="Write the answer to this file (.csv, .parquet); may be repeated."),
]


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The files that the user asked for."""

    out: Sequence[Path] | None
    plot: Path | None
    certificate: Path | None
    #: How the files of the answer may end.
    ends: tuple[str, ...] = _TABLES

    @property
    def asked(self) -> list[tuple[str, Path, tuple[str, ...]]]:
        """The files that were asked for: option, path, and how it may end."""
        every = [("--out", path, self.ends) for path in self.out or ()]
        every += [("--plot", path, _PICTURES) for path in [self.plot] if path is not None]
        return every + [
            ("--certificate", path, (".json",)) for path in [self.certificate] if path is not None
        ]

    def check(self) -> None:
        """Refuse what cannot be written, before anything is charged."""
        for option, path, ends in self.asked:
            _check_file(option, path, ends)
            for package, extra, needing in (
                ("matplotlib", "plot", _PICTURES),
                ("pyarrow", "pandas", (".parquet",)),
            ):
                if path.suffix.lower() in needing and find_spec(package) is None:
                    raise TacitError(
                        "missing-extra", f"{path} needs {package}, which is not installed",
                        why="nothing was charged", fix=Do("install", package=f"tacit[{extra}]"),
                    )  # fmt: skip

    def save(
        self, release: Release[Any], draw: Callable[[Path], object] | None = None, table: object = None
    ) -> None:
        """Write the files of a release.

        Parameters
        ----------
        draw
            Draws the picture, where it is not that of the release.
        table
            What is written as a table, where it is not the whole release.
        """
        for path in self.out or ():
            ending = path.suffix.lower()[1:]
            name = {"tsv": "to_gwas_ssf", "json": "save"}.get(ending, f"to_{ending}")  # to_csv, to_vcf ...
            write_file(path, getattr(release if table is None else table, name), "the answer", "--out")
        if self.plot is not None:
            write_file(self.plot, draw or (lambda path: release.plot().savefig(path)), "the picture")
        if self.certificate is not None:
            write_file(self.certificate, release.certificate.save, "the certificate", "--certificate")

    def report(self) -> None:
        """Print what was written."""
        for _, path, _ in self.asked:
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
