"""A CSV file converted to Parquet once: strictly, or with a reader that repairs or drops lines."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.engines.sources._arguments import csv_file
from tacit.engines.sources._csv_files import header_bytes, is_packed, unpack
from tacit.engines.sources._csv_form import MAX_LINE, NOT_UTF8, line_defect, not_well_formed
from tacit.engines.sources._row_files import write_rows
from tacit.errors import TacitError, bad_parameter

if TYPE_CHECKING:
    from typing import BinaryIO

    from tacit.engines.sources._csv_form import CsvDialect

_CHUNK = 1 << 16
_MAX_CELL = 1 << 20  # a quoted cell that does not end within this length is taken for a stray quotation mark
_MAX_LISTED = 1000


@dataclass(slots=True)
class Conversion:
    """What a conversion wrote; it is about single rows, so it is for the curator alone.

    Parameters
    ----------
    target
        The Parquet file.
    columns
        The names of its columns.
    repaired, dropped
        How many lines were changed, and how many were not written.
    repaired_lines, dropped_lines
        The first of them, by the number of the line.
    """

    target: Path
    columns: tuple[str, ...] = ()
    repaired: int = 0
    dropped: int = 0
    repaired_lines: list[int] = field(default_factory=list)
    dropped_lines: list[int] = field(default_factory=list)

    def note(self, line: int, *, kept: bool) -> None:
        """Note a line that was repaired, or dropped."""
        if kept:
            self.repaired += 1
            self.repaired_lines += [line] * (len(self.repaired_lines) < _MAX_LISTED)
        else:
            self.dropped += 1
            self.dropped_lines += [line] * (len(self.dropped_lines) < _MAX_LISTED)


def convert_csv(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    encoding: str = "utf-8",
    dates: str = "",
    decimal: str = ".",
    separator: str = "",
    quote: str = '"',
    lenient: bool = False,
    force: bool = False,
) -> Conversion:
    r"""Write the rows of a CSV file as Parquet, which all programs read in one way. All cells are text.

    What it returns is about single rows: it is for the curator, not for analysts.

    Parameters
    ----------
    path
        The file; also a CSV file that is compressed (``.csv.gz``) or an Excel file (``.xlsx``, of which the
        first sheet is read; this needs the extra ``excel``).
    encoding, dates, decimal, separator, quote
        How the file is written; see `csv_file`. With a decimal comma, numbers get a
        point; dates in another order get the year first. For the cells of an Excel file, only the dates
        and the decimal count.
    target
        The Parquet file to write.
    lenient
        Repair or drop the lines that break the form, and list them; by default the file is then refused. A
        line with a stray quotation mark is kept if it has the right number of cells without quotation. Short
        lines get empty cells. All other lines that break the form are dropped, but never the header line:
        the row after it would become the public names of the columns.
    force
        Overwrite the target.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "v.csv").write_text('id,ward\n1,A\n2,"B\n3,C,7\n')
    >>> done = convert_csv(folder / "v.csv", folder / "v.parquet", lenient=True)
    >>> done.repaired_lines, done.dropped_lines
    ([3], [4])
    """
    origin, end = Path(path), Path(target).absolute()
    _check_paths(origin, end, force=force)
    conversion = Conversion(end)
    with tempfile.TemporaryDirectory() as scratch:
        plain = unpack(origin, Path(scratch)) if is_packed(origin) else origin
        if origin.suffix.lower() in {".xlsx", ".xlsm"}:  # unpacked in one form
            encoding, separator, quote = "utf-8", "", '"'
        if header_bytes(plain) in {None, b""}:
            raise _empty(origin)
        source = csv_file(
            plain, encoding=encoding, dates=dates, decimal=decimal, separator=separator, quote=quote
        )
        if lenient and (dialect := source.dialect()) is not None:
            sound = Path(scratch) / ("sound.tsv" if source.delimiter == "\t" else "sound.csv")
            _repair(plain, sound, dialect, conversion, origin.name)
            source = replace(source, place=sound, separator=source.delimiter)
        else:
            source.check_form(origin.name)
        draft = end.with_name(f".{end.name}.{os.getpid()}")
        try:
            conversion.columns = write_rows(source, draft)
            draft.replace(end)
        except OSError as error:
            raise TacitError(
                "cannot-write", f"{end} cannot be written: {error.strerror}", fix="use another folder"
            ) from None
        finally:
            draft.unlink(missing_ok=True)
    return conversion


def _check_paths(file: Path, end: Path, *, force: bool) -> None:
    if not file.is_file():
        raise _empty(file)
    if end.suffix.lower() not in {".parquet", ".pq"}:
        raise bad_parameter("the target", "a file that ends in .parquet", end.name, fix=f"{end.stem}.parquet")
    if end.exists() and not force:
        raise TacitError(
            "cannot-write",
            f"{end.name} exists already",
            why="it may hold rows that a dataset reads",
            fix="choose another name, or overwrite the file with --force (in Python, force is true)",
        )


def _empty(file: Path) -> TacitError:
    return TacitError("bad-parameter", f"{file} is missing, empty or cannot be read", fix="check its name")


def _repair(file: Path, sound: Path, dialect: CsvDialect, conversion: Conversion, name: str) -> None:
    """Write the lines of a file that are well formed, and those that can be repaired."""
    with file.open("rb") as source, sound.open("wb") as copy:
        part, line = source.read(3), 1
        part = b"" if part == b"\xef\xbb\xbf" and not dialect.encoding else part
        more = True
        while more or part:
            more = _fill(source, part_ := bytearray(part), dialect)
            part = bytes(part_)
            while part:
                defect = line_defect(part, dialect)
                if defect is None:
                    copy.write(part)
                    line += part.count(b"\n")
                    part = b""
                    continue
                at, reason = defect
                copy.write(part[:at])
                line += part.count(b"\n", 0, at)
                part = part[at:]
                if more and "does not end" in reason and len(part) < _MAX_CELL:
                    break  # its end may stand in the next part
                is_header = line == 1
                part, line = _pass_line(part, copy, dialect, conversion, line, reason)
                if is_header and conversion.dropped:  # otherwise the first row would name the columns
                    raise not_well_formed(name, 1, reason, lenient=True)


def _fill(source: BinaryIO, part: bytearray, dialect: CsvDialect) -> bool:
    """Read on until a line ends; return whether there may be more."""
    start = len(part)
    while chunk := source.read(_CHUNK):
        part += chunk
        if dialect.line_end in chunk:
            rest = len(part) - part.rfind(dialect.line_end, start) - len(dialect.line_end)
            source.seek(-rest, os.SEEK_CUR)
            del part[len(part) - rest :]
            return True
        if len(part) > MAX_LINE + start:
            break
    return bool(chunk)


def _pass_line(
    part: bytes, copy: BinaryIO, dialect: CsvDialect, conversion: Conversion, line: int, reason: str
) -> tuple[bytes, int]:
    """Repair or drop the first line of a part; return what follows it, and its line number."""
    end = part.find(dialect.line_end)
    bad, rest = (part, b"") if end < 0 else (part[:end], part[end + len(dialect.line_end) :])
    repaired = None if reason == NOT_UTF8 or len(bad) > MAX_LINE else _repaired(bad, dialect)
    if repaired is not None:
        copy.write(repaired + dialect.line_end)
    conversion.note(line, kept=repaired is not None)
    return rest, line + part[: len(part) - len(rest)].count(b"\n")


def _repaired(bad: bytes, dialect: CsvDialect) -> bytes | None:
    """Return a line with the cells that it has if no quotation mark is special; None if it has too many."""
    cells = bad.split(dialect.separator)
    while len(cells) > dialect.width and not cells[-1].strip():
        cells.pop()
    if len(cells) > dialect.width:
        return None
    cells += [b""] * (dialect.width - len(cells))
    if dialect.quote:
        mark = dialect.quote
        cells = [mark + c.replace(mark, 2 * mark) + mark if mark in c else c for c in cells]
    joined = dialect.separator.join(cells)
    return joined if line_defect(joined, dialect) is None else None
