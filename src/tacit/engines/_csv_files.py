r"""CSV files for the engines: the header line, and which bytes end a line.

DuckDB ends a line at ``\r``, ``\n`` and ``\r\n`` alike, whatever it is told. A writer that ends lines with
``\n`` leaves a ``\r`` inside a cell as it is, so one person's cell could end a line and forge others. Here
the header line, which is public, decides what ends a line; any other ``\r`` or ``\n`` belongs to its cell. A
file whose lines end with ``\r`` alone is refused: a ``\n`` at the start of its first cell would change that.

A file in which such a sign occurs is read from a copy, in which two letters of a code replace it. The code is
undone in each cell on its own. It starts with ``\x1a``, and a ``\x1a`` of the file is coded too, so that the
copy can be read back in one way only. Since a coded line is longer, and lines beyond a length are skipped, a
``\x1a`` alone is a reason for a copy, too: then no line is longer because of a sign in another one.

A file in another encoding than UTF-8 is read from such a copy in UTF-8. Only encodings are known in which
each byte is one sign and the first 128 are those of ASCII: then separators, quotes and line ends are the same
bytes before and after. A byte that the encoding does not define becomes a sign of its own, so that different
bytes stay different names.
"""

from __future__ import annotations

import codecs
from functools import cache
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Set

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_HEADER = 1 << 20
_CHUNK = 1 << 24
_LEAST_DEFINED = 200  # of 256 bytes; encodings with several bytes for a sign define fewer bytes alone
_CODE, _RETURN, _FEED, _BOTH = b"\x1aa", b"\x1ab", b"\x1ac", b"\x1ad"


def header_bytes(path: Path, quote: str = '"') -> bytes | None:
    """Return the header line of a CSV file without its end; None if the file cannot be read."""
    found = _header(path, quote)
    return None if found is None else found[0]


def line_end(path: Path, quote: str = '"') -> bytes:
    r"""Return what ends the header line, and so every line: ``\n`` or ``\r\n``; ``\n`` if unknown."""
    found = _header(path, quote)
    return b"\n" if found is None else found[1]


def _header(path: Path, quote: str) -> tuple[bytes, bytes] | None:
    """Read the header line and what ends it. A line break inside a quoted name is part of the name."""
    mark = quote.encode() or b"\n\n"  # without quotes, no break is inside a name
    try:
        with path.open("rb") as file:
            line = file.readline(_MOST_HEADER)
            while line.count(mark) % 2 and len(line) < _MOST_HEADER and (more := file.readline(_MOST_HEADER)):
                line += more
    except OSError:
        return None
    if len(line) >= _MOST_HEADER:
        raise TacitError(
            "bad-parameter",
            f"the header line of {path.name} is longer than {_MOST_HEADER >> 20} MiB",
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
    with copy.open("wb") as made:
        for chunk in _chunks(file):
            coded = _coded(chunk, end)
            made.write(in_utf8(coded, encoding) if encoding else coded)
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
    if (
        not plain
        or len(set(signs)) != 256
        or defined < _LEAST_DEFINED
        or any(len(sign) != 1 for sign in signs)
    ):
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
        both = chunk.count(end)
        return chunk.count(b"\r") != both or chunk.count(b"\n") != both
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
