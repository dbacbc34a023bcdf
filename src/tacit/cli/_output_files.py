"""Files that a command writes on request: an answer, a picture, a certificate. Checked before a charge."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tacit.cli._output import say, typed, write_file
from tacit.errors import TacitError
from tacit.fixes import Do

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tacit.core import Certificate, Content

_TABLES = (".csv", ".parquet")
_PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The files that the user asked for."""

    out: Path | None
    plot: Path | None
    certificate: Path | None
    #: How the file of the answer may end.
    ends: tuple[str, ...] = _TABLES

    def check(self) -> None:
        """Refuse what cannot be written, before anything is charged."""
        for option, path, ends in (
            ("--out", self.out, self.ends),
            ("--plot", self.plot, _PICTURES),
            ("--certificate", self.certificate, (".json",)),
        ):
            if path is not None:
                _check_file(option, path, ends)
        for package, extra, path in (("matplotlib", "plot", self.plot), ("pyarrow", "pandas", self.out)):
            used = path is not None and path.suffix.lower() not in {".csv", ".tsv", ".vcf"}
            if used and find_spec(package) is None:
                raise TacitError(
                    "missing-extra", f"{path} needs {package}, which is not installed",
                    why="nothing was charged", fix=Do("install", package=f"tacit[{extra}]"),
                )  # fmt: skip

    def save(self, table: Content, certificate: Certificate, draw: Callable[[Path], object]) -> None:
        """Write the files; ``draw`` draws the picture."""
        if self.out is not None:
            ending = self.out.suffix.lower()[1:]
            name = "to_gwas_ssf" if ending == "tsv" else f"to_{ending}"  # to_csv, to_parquet, to_vcf
            write_file(self.out, getattr(table, name), "the answer", "--out")
        if self.plot is not None:
            write_file(self.plot, draw, "the picture")
        if self.certificate is not None:
            write_file(self.certificate, certificate.save, "the certificate", "--certificate")

    def report(self) -> None:
        """Print what was written."""
        for path in (self.out, self.plot, self.certificate):
            if path is not None:
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
