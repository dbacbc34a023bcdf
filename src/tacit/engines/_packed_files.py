"""Files that hold a CSV table in another wrapping: compressed by gzip, or a sheet of Excel."""

from __future__ import annotations

import csv
import gzip
import shutil
import zlib
from datetime import datetime, time
from typing import TYPE_CHECKING

from tacit.core import needs
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

PACKED = (".csv.gz", ".tsv.gz", ".xlsx", ".xlsm")


def is_packed(path: Path) -> bool:
    """Return whether the table has to be unpacked before it can be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> is_packed(Path("stays.csv.gz")), is_packed(Path("stays.csv"))
    (True, False)
    """
    return path.name.lower().endswith(PACKED)


def unpack(path: Path, folder: Path) -> Path:
    """Write the CSV file that a packed file holds into a folder, and return its path.

    Of a workbook, the first sheet is read; dates are written with the year first, and numbers with a point.
    """
    is_sheet = path.suffix.lower() in {".xlsx", ".xlsm"}
    if is_sheet:
        needs("an Excel file", "openpyxl", "tacit[excel]")
    plain = folder / (f"{path.stem}.csv" if is_sheet else path.stem)
    try:
        if is_sheet:
            _write_sheet(path, plain)
        else:
            with gzip.open(path) as packed, plain.open("wb") as file:
                shutil.copyfileobj(packed, file)
    except (OSError, EOFError, KeyError, ValueError, zlib.error) as error:  # also a broken zip file
        raise _unreadable(path, is_sheet=is_sheet) from error
    return plain


def _write_sheet(path: Path, plain: Path) -> None:
    with _first_sheet(path) as rows, plain.open("w", encoding="utf-8", newline="") as file:
        writer, width = csv.writer(file, lineterminator="\n"), 0
        for row in rows:
            cells = [_cell(value) for value in row]
            width = width or max((n for n, cell in enumerate(cells, 1) if cell), default=0)
            if width and any(cells):
                writer.writerow(cells[:width] + [""] * (width - len(cells)))


def _first_sheet(path: Path) -> AbstractContextManager[Iterator[tuple[object, ...]]]:
    from contextlib import contextmanager
    from zipfile import BadZipFile

    import openpyxl

    @contextmanager
    def opened() -> Iterator[Iterator[tuple[object, ...]]]:
        try:
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        except BadZipFile as error:
            raise ValueError(str(error)) from error
        try:
            yield book.worksheets[0].iter_rows(values_only=True)
        finally:
            book.close()

    return opened()


def _cell(value: object) -> str:
    """Write a cell as text: a whole number without a fraction, a day without a time."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ") if value.time() != time() else value.date().isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return " ".join(str(value).splitlines())


def _unreadable(path: Path, *, is_sheet: bool) -> TacitError:
    kind = "an Excel file" if is_sheet else "a file compressed by gzip"
    return TacitError(
        "bad-parameter",
        f"{path.name} cannot be read as {kind}",
        why="it is missing, damaged, or of another kind than its name says",
        fix="open it in the program that wrote it, and save it as a CSV file in UTF-8",
    )
