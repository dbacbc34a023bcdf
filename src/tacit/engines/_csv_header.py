"""The header line of a CSV file, which is public: the names of the columns, and what separates them."""

from __future__ import annotations

import csv
import re
from codecs import BOM_UTF8
from typing import TYPE_CHECKING

from tacit.engines._csv_files import header_bytes, in_utf8
from tacit.errors import TacitError
from tacit.fixes import Do

if TYPE_CHECKING:
    from pathlib import Path

_SEPARATOR_LINE = re.compile(r"\ufeff?sep=.?", re.IGNORECASE)
_DELIMITERS = (",", ";", "\t", "|")


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
