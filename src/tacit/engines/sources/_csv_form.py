r"""The form of a CSV file as a whole: checked before the file is read, so that no line can change another.

A CSV file is read as RFC 4180 says, with a public dialect: the header line shows the line end and the
separator, or the curator declares them. One line that breaks the form could change how others are read: a
stray quotation mark swallows the lines after it, a byte that is not text drops its line. So the bytes of the
file are checked once for each state of the file, when the curator opens it:

* every byte is text in the declared encoding;
* a quotation mark opens a cell at the cell's start, is doubled inside the cell, and closes it at its end;
* every line has as many cells as the header, and at most 16 MiB. Empty lines are ignored.

A file that passes is read in one way only, line by line. Nothing is kept of the check except that it passed.

The file is read in parts, each of which ends with a line, so memory is bounded.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Do, Either, Say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from tacit.fixes import Fix

#: The longest line in bytes. A coded copy is at most three times as long, within what DuckDB reads as a line.
MAX_LINE = 1 << 24
_CHUNK = 1 << 22
_SETTLED = 2 * 10**9  # ns: a file changed more recently may change again without a new time
_MARK = b"\xef\xbb\xbf"
_FEED, _RETURN = 10, 13
_NEAR = 8  # line breaks at the end of a part that are tried one by one
NOT_UTF8 = "it has a byte that is not UTF-8"
#: What a file that is not UTF-8 most often is: as latin-1, with signs such as € and – in place of controls.
_USUAL = "windows-1252"


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How a CSV file is written: public facts, declared or shown by its header line.

    Parameters
    ----------
    separator
        The byte between cells.
    line_end
        What ends each line.
    quote
        The byte around cells that contain others of these bytes; empty if no cell is quoted.
    encoding
        An encoding with one byte for each character; empty for UTF-8.
    width
        The number of columns.
    """

    separator: bytes
    line_end: bytes
    quote: bytes
    encoding: str
    width: int


_passed: dict[tuple[Path, CsvDialect], tuple[int, ...]] = {}
_lock = threading.Lock()


def check_form(
    file: Path, dialect: CsvDialect, name: str = "", reading: Mapping[str, str] | None = None
) -> None:
    """Refuse a file that is not well formed. It is read only if it has changed since it passed.

    The refusal names the file, or what it was unpacked from, and repeats what is declared of it. It depends
    on the rows: so it is for the curator who opens the file, and for nobody else.
    """
    before = _stamp(file)
    if _passed.get((file, dialect)) == before:
        return
    started = time_ns()
    line = 1
    for part in records(file, dialect):
        defect = line_defect(part, dialect)
        if defect is not None:
            at, reason = defect
            raise not_well_formed(name or file.name, line + part.count(b"\n", 0, at), reason, reading)
        line += part.count(b"\n")
    if _stamp(file) != before:
        raise TacitError(
            "bad-parameter",
            f"{file.name} changed while Tacit checked its form",
            why="another program is writing it; nothing was charged",
            fix="wait until the file is written, and try again",
        )
    if started - before[0] > _SETTLED:  # its time of change: a later change would show
        with _lock:
            _passed[file, dialect] = before


def _stamp(file: Path) -> tuple[int, ...]:
    status = file.stat()
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def records(file: Path, dialect: CsvDialect) -> Iterator[bytes]:
    """Read a file in parts of complete lines, the last of which may lack its end.

    Where a line is too long or a cell does not end, the part is all that was read of it, and more than a
    line may have.
    """
    with file.open("rb") as source:
        rest = source.read(len(_MARK))
        rest = b"" if rest == _MARK and not dialect.encoding else rest
        while chunk := source.read(_CHUNK):
            rest += chunk
            end = _last_end(rest, dialect)
            if end:
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) > MAX_LINE:
                yield rest
                return
        if rest:
            yield rest


def line_defect(part: bytes, dialect: CsvDialect) -> tuple[int, str] | None:
    """Return where complete lines first break the form, as the place where a line starts, and how."""
    cells = np.frombuffer(part, np.uint8)
    marks = _marks(cells, dialect)
    ends = _ends(cells, marks, dialect)
    if not len(ends) or ends[-1] != len(part) - 1:
        ends = np.append(ends, len(part))  # a last line without its end
    starts = np.concatenate([[0], ends[:-1] + 1])
    long = starts[ends - starts > MAX_LINE]
    defects = [
        _quote_defect(cells, marks, dialect),
        (int(long[0]), f"it is longer than {MAX_LINE >> 20} MiB") if long.size else None,
        _text_defect(part, dialect),
        _width_defect(cells, marks, starts, ends, dialect),
    ]
    lines = [
        (int(starts[np.searchsorted(starts, d[0], "right") - 1]), d[1]) for d in defects if d is not None
    ]
    return min(lines, default=None, key=lambda defect: defect[0])  # of one line, the first in this order


def _marks(cells: NDArray[np.uint8], dialect: CsvDialect) -> NDArray[np.intp]:
    """Return where the quotation marks are. Before each of them, and after, a cell is open or not in turn."""
    return np.flatnonzero(cells == dialect.quote[0]) if dialect.quote else np.empty(0, np.intp)


def _ends(cells: NDArray[np.uint8], marks: NDArray[np.intp], dialect: CsvDialect) -> NDArray[np.intp]:
    """Return where the feeds are that end a line."""
    ends = np.flatnonzero(cells == _FEED)
    if len(dialect.line_end) == 2:
        ends = ends[(ends > 0) & (cells[ends - 1] == _RETURN)]
    return _outside(ends, marks)


def _outside(places: NDArray[np.intp], marks: NDArray[np.intp]) -> NDArray[np.intp]:
    """Keep the places that are not inside a quoted cell."""
    return places[np.searchsorted(marks, places) % 2 == 0] if len(marks) else places


def _last_end(part: bytes, dialect: CsvDialect) -> int:
    """Return where the last complete line of a part ends; 0 if none does."""
    if not dialect.quote or dialect.quote not in part:
        return part.rfind(dialect.line_end) + len(dialect.line_end) if dialect.line_end in part else 0
    end = len(part)
    for _ in range(_NEAR):
        end = part.rfind(dialect.line_end, 0, end)
        if end < 0 or part.count(dialect.quote, 0, end) % 2 == 0:
            return end + len(dialect.line_end) if end >= 0 else 0
    cells = np.frombuffer(part, np.uint8)
    ends = _ends(cells, _marks(cells, dialect), dialect)
    return int(ends[-1]) + 1 if len(ends) else 0


def _quote_defect(
    cells: NDArray[np.uint8], marks: NDArray[np.intp], dialect: CsvDialect
) -> tuple[int, str] | None:
    """Return the first quotation mark that neither opens nor closes a cell, nor is doubled inside one."""
    if not len(marks):
        return None
    last_index, is_pair = len(cells) - 1, len(dialect.line_end) == 2
    beside = np.zeros(256, np.bool_)
    beside[[dialect.separator[0], dialect.quote[0], dialect.line_end[0]]] = True
    opening, closing = marks[::2], marks[1::2]
    closes = beside[cells[np.minimum(closing + 1, last_index)]] | (closing == last_index)
    if is_pair:  # what follows a cell is the whole line end
        at = closing[cells[np.minimum(closing + 1, last_index)] == _RETURN]
        closes &= ~np.isin(closing, at[cells[np.minimum(at + 2, last_index)] != _FEED])
        beside[[_RETURN, _FEED]] = False, True
    opens = beside[cells[np.maximum(opening - 1, 0)]] | (opening == 0)
    if is_pair:
        at = opening[(opening > 0) & (cells[np.maximum(opening - 1, 0)] == _FEED)]
        opens &= ~np.isin(opening, at[(at == 1) | (cells[np.maximum(at - 2, 0)] != _RETURN)])
    stray = np.concatenate([opening[~opens], closing[~closes]])
    if stray.size:
        return int(stray.min()), "a quotation mark stands inside a cell, and it is not doubled"
    if len(marks) % 2:
        return int(marks[-1]), "a quotation mark opens a cell that does not end"
    return None


def _text_defect(part: bytes, dialect: CsvDialect) -> tuple[int, str] | None:
    """Return the first byte that is not text. In other encodings than UTF-8 every byte is a character."""
    if dialect.encoding or part.isascii():
        return None
    try:
        part.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start, NOT_UTF8
    return None


def _width_defect(
    cells: NDArray[np.uint8],
    marks: NDArray[np.intp],
    starts: NDArray[np.intp],
    ends: NDArray[np.intp],
    dialect: CsvDialect,
) -> tuple[int, str] | None:
    """Return the first line that has another number of cells than the header."""
    separators = _outside(np.flatnonzero(cells == dialect.separator[0]), marks)
    widths = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
    odd = widths != dialect.width
    if odd.any():
        full = ends - starts > len(dialect.line_end) - 1
        full |= cells[np.minimum(starts, len(cells) - 1)] != dialect.line_end[0]
        odd &= full & (ends > starts)
    if not odd.any():
        return None
    index = int(np.flatnonzero(odd)[0])
    has, must = int(widths[index]), dialect.width
    return int(
        starts[index]
    ), f"it has {has:,} {'cell' if has == 1 else 'cells'}, and the header has {must:,}"


def not_well_formed(
    name: str, line: int, reason: str, reading: Mapping[str, str] | None = None, *, lenient: bool = False
) -> TacitError:
    """Refuse a file because of a line that breaks the form.

    ``reading`` is what is declared of how the file is written; ``lenient``, whether a lenient conversion
    refuses it.
    """
    facts = dict(reading or {})
    encoding = Do("declare-encoding", source=name, encoding=_USUAL)
    target = Path(name.removesuffix(".gz")).with_suffix(".parquet").name
    arguments = "".join(f", {fact}={value!r}" for fact, value in facts.items())
    converted = Do("convert-csv", source=name, target=target, reading=arguments, **facts)
    by_hand = Say("write the names of the columns again, in the first line of the file")
    fix: Fix = by_hand if lenient else converted
    if reason == NOT_UTF8:
        fix = encoding if line == 1 else Either(encoding, converted)
    return TacitError(
        "bad-parameter",
        f"line {line:,} of {name} breaks the form of a CSV file: {reason}",
        why="such a line can change how the lines of other people are read, or it would be lost, so Tacit "
        "opens none of the file. Nothing was charged, and only you should see this message",
        fix=fix,
    )
