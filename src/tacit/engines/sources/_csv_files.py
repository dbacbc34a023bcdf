r"""CSV files for the engines: their header line, which bytes end a line, and files that hold a CSV table.

**Line ends.** DuckDB ends a line at ``\r``, ``\n`` and ``\r\n`` alike, whatever it is told. A writer that
ends lines with ``\n`` leaves a ``\r`` inside a cell as it is, so one person's cell could end a line and forge
others. Here the header line, which is public, decides what ends a line; any other ``\r`` or ``\n`` belongs to
its cell. A file whose lines end with ``\r`` alone is refused: a ``\n`` at the start of its first cell would
change that.

A file in which such a sign occurs is read from a copy, in which two letters of a code replace it. The code is
undone in each cell on its own. It starts with ``\x1a``, and a ``\x1a`` of the file is coded too, so that the
copy can be read back in one way only. Since a coded line is longer, and lines beyond a length are skipped, a
``\x1a`` alone is a reason for a copy, too: then no line is longer because of a sign in another one.

**Encodings.** A file in another encoding than UTF-8 is read from such a copy in UTF-8. Only encodings are
known in which each byte is one sign and the first 128 are those of ASCII: then separators, quotes and line
ends are the same bytes before and after. A byte that the encoding does not define becomes a sign of its own,
so that different bytes stay different names.

**The header line** is public: it has the names of the columns, and shows what separates them.

**Files in another wrapping** hold a CSV table compressed by gzip, or as a sheet of Excel.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import shutil
import zlib
from codecs import BOM_UTF8
from datetime import datetime, time
from functools import cache
from typing import TYPE_CHECKING

from tacit.core import needs
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Do, Set

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


_MAX_HEADER = 1 << 20
_CHUNK = 1 << 24
_MIN_DEFINED = 200  # of 256 bytes; encodings with several bytes for a sign define fewer bytes alone
_CODE, _RETURN, _FEED, _BOTH = b"\x1aa", b"\x1ab", b"\x1ac", b"\x1ad"
_SEPARATOR_LINE = re.compile(r"\ufeff?sep=.?", re.IGNORECASE)
_DELIMITERS = (",", ";", "\t", "|")


def header_bytes(path: Path, quote: str = '"') -> bytes | None:
    """Return the header line of a CSV file without its end; None if the file cannot be read."""
    header = _header(path, quote)
    return None if header is None else header[0]


def line_end(path: Path, quote: str = '"') -> bytes:
    r"""Return what ends the header line, and so every line: ``\n`` or ``\r\n``; ``\n`` if unknown."""
    header = _header(path, quote)
    return b"\n" if header is None else header[1]


def _header(path: Path, quote: str) -> tuple[bytes, bytes] | None:
    """Read the header line and what ends it. A line break inside a quoted name is part of the name."""
    mark = quote.encode() or b"\n\n"  # without quotes, no break is inside a name
    try:
        with path.open("rb") as file:
            line = file.readline(_MAX_HEADER)
            while line.count(mark) % 2 and len(line) < _MAX_HEADER and (more := file.readline(_MAX_HEADER)):
                line += more
    except OSError:
        return None
    if len(line) >= _MAX_HEADER:
        raise TacitError(
            "bad-parameter",
            f"the header line of {path.name} is longer than {_MAX_HEADER >> 20} MiB",
            why="the header line is the first line of a CSV file and names the columns",
            fix="keep fewer columns, or give them shorter names",
        )
    at = next((i for i in _all(line, b"\r") if line.count(mark, 0, i) % 2 == 0), -1)
    if at < 0:
        return line.removesuffix(b"\n"), b"\n"
    if line[at + 1 :] == b"\n":
        return line[:at], b"\r\n"
    raise TacitError(
        "bad-parameter",
        f"the lines of {path.name} end with a carriage return alone",
        why="then a line feed at the start of the first cell would look like a part of the line end",
        fix="write the file again, with line ends that contain a line feed",
    )


def _all(line: bytes, sign: bytes) -> Iterator[int]:
    at = line.find(sign)
    while at >= 0:
        yield at
        at = line.find(sign, at + 1)


def copy_with_coded_cells(file: Path, copy: Path, encoding: str = "", quote: str = '"') -> bool:
    """Copy a file so that only line ends look like line ends; make no copy and return False if none differs.

    A file with an ``encoding`` is always copied. Called after the charge: it reads the whole file.
    """
    end = line_end(file, quote)
    if not encoding and not any(b"\x1a" in chunk or _is_stray(chunk, end) for chunk in _chunks(file)):
        return False
    with copy.open("wb") as output:
        for chunk in _chunks(file):
            coded = _coded(chunk, end)
            output.write(in_utf8(coded, encoding) if encoding else coded)
    return True


def read_encoding(name: str) -> str:
    """Read the name of an encoding; empty for UTF-8. Refuse one in which a sign can take several bytes.

    Examples
    --------
    >>> read_encoding("UTF-8"), read_encoding("latin-1")
    ('', 'iso8859-1')
    """
    try:
        plain = codecs.lookup(name).name
        if plain in {"utf-8", "utf-8-sig", "ascii"}:
            return ""
        _signs(plain)
    except (LookupError, TypeError, ValueError):
        raise bad_parameter(
            "encoding",
            "utf-8, or one with one byte for each character, such as latin-1 or windows-1252",
            name,
            fix=Set(encoding="latin-1"),
        ) from None
    return plain


def in_utf8(line: bytes, encoding: str) -> bytes:
    """Return bytes of an encoding in UTF-8; different bytes stay different."""
    return codecs.charmap_decode(line, "strict", _signs(encoding))[0].encode()


@cache
def _signs(encoding: str) -> str:
    """Return the sign of each of the 256 bytes; bytes without one get a sign for private use."""
    signs = []
    for byte in range(256):
        try:
            signs.append(bytes([byte]).decode(encoding))
        except UnicodeDecodeError:
            signs.append(chr(0xF700 + byte))
    defined = sum(ord(sign) != 0xF700 + byte for byte, sign in enumerate(signs) if len(sign) == 1)
    plain = "".join(signs[:128]) == bytes(range(128)).decode("ascii")
    if not plain or len(set(signs)) != 256 or defined < _MIN_DEFINED or any(len(sign) != 1 for sign in signs):
        raise ValueError("a character of this encoding can take several bytes")
    return "".join(signs)


def _chunks(file: Path) -> Iterator[bytes]:
    r"""Read a file in parts; none of them ends between ``\r`` and ``\n``."""
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK):
            while chunk.endswith(b"\r") and (more := source.read(1)):
                chunk += more
            yield chunk


def _is_stray(chunk: bytes, end: bytes) -> bool:
    """Return whether a part holds a return or feed that does not end a line."""
    if end == b"\r\n":
        ends = chunk.count(end)
        return chunk.count(b"\r") != ends or chunk.count(b"\n") != ends
    return b"\r" in chunk


def _coded(chunk: bytes, end: bytes) -> bytes:
    chunk = chunk.replace(b"\x1a", _CODE)
    if end == b"\r\n":
        chunk = chunk.replace(end, _BOTH).replace(b"\r", _RETURN).replace(b"\n", _FEED)
        return chunk.replace(_BOTH, end)
    return chunk.replace(b"\r", _RETURN)


def cell_sql(column: str) -> str:
    """Write the cell that a coded cell stands for."""
    plain = f"replace(replace({column}, chr(26) || 'b', chr(13)), chr(26) || 'c', chr(10))"
    return f"replace({plain}, chr(26) || 'a', chr(26))"


def csv_names(path: Path, encoding: str, separator: str, quote: str) -> list[str] | None:
    """Return the names of the columns as the header writes them; None if the file cannot be read."""
    text = _first_line(path, encoding, quote)
    if text is None:
        return None
    _check_start(path, text, encoding)
    sign = separator or _delimiter(path, text)
    try:
        if quote:
            names = next(csv.reader([text], delimiter=sign, quotechar=quote, strict=True), [])
        else:
            names = text.split(sign) if text else []
    except csv.Error:
        names = ["\0"]
    if any("\0" in name for name in names):
        raise TacitError(
            "bad-parameter",
            f"the header line of {path.name} cannot be read",
            why="it must be text in which names that contain a separator, a quotation mark or a line break "
            "stand in quotation marks",
            fix="write the file again as CSV UTF-8, with a plain header line",
        )
    return names


def _check_start(path: Path, text: str, encoding: str) -> None:
    """Refuse a first line that says how the file is written, where it is read in another way."""
    if encoding and text.startswith(in_utf8(BOM_UTF8, encoding).decode()):
        raise TacitError(
            "bad-parameter",
            f"{path.name} starts with the mark of UTF-8, but the encoding {encoding} is declared",
            why="only files in UTF-8 start with this mark; otherwise it would be a part of the first name",
            fix=Do("declare-encoding", source=path.name, encoding="utf-8"),
        )
    if _SEPARATOR_LINE.fullmatch(text):
        raise TacitError(
            "bad-parameter",
            f"the first line of {path.name} is {text!r}, which is not a name of a column",
            why="this line tells Excel how to split the lines; Tacit reads the names of the columns from the "
            "first line, which shows the separator too",
            fix="delete the first line of the file",
        )


def csv_delimiter(path: Path, encoding: str, quote: str) -> str:
    """Return the separator that the header line shows: a comma, semicolon, tab or bar."""
    return _delimiter(path, _first_line(path, encoding, quote) or "")


def _first_line(path: Path, encoding: str, quote: str) -> str | None:
    line = header_bytes(path, quote)
    if line is None:
        return None
    return in_utf8(line, encoding).decode() if encoding else line.decode("utf-8-sig", errors="replace")


def _delimiter(path: Path, header: str) -> str:
    """Return the separator: the sign that occurs most often in the header line outside quoted names.

    It is a function of the header alone, which is public; cells do not matter. A ``.tsv`` file has tabs.
    """
    if path.suffix.lower() == ".tsv":
        return "\t"
    bare = re.sub(r'"[^"]*"', "", header)
    return max(_DELIMITERS, key=bare.count)  # on a tie the first: a comma


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
