"""Parquet footers for the engines: a copy of a file in which DuckDB reads text as bytes.

DuckDB refuses a whole file if one text in it is not UTF-8, and so reveals one row. Only the file's footer
says which columns hold text. So a copy with another footer has the same rows, with bytes in those columns,
and a view can decode each value on its own.

The footer is a Thrift structure (compact protocol), and readers skip fields that they do not know. A
column's annotation becomes such a field when the step to its field number grows: this changes one byte for
each column and moves nothing.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SCHEMA, _CONVERTED, _LOGICAL = 2, 6, 10
_TEXTS = {_CONVERTED: {0, 8, 38}, _LOGICAL: {0x1C, 0x4C, 0xCC}}  # UTF8, ENUM, JSON as they are written
_STRUCT, _LIST, _BINARY = 12, 9, 8
_WIDTHS = {1: 0, 2: 0, 3: 1, 7: 8}
_NUMBERS = {4, 5, 6}
_FARTHEST = 0xF0


def copy_with_bytes(file: Path, copy: Path) -> None:
    """Copy a Parquet file to one that has bytes in place of text; raise ValueError on another format."""
    shutil.copyfile(file, copy)
    with copy.open("r+b") as made:
        size = made.seek(-8, 2)
        tail = made.read(8)
        start = size - int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or start < 0:
            raise ValueError("this is not a Parquet file with a plain footer")
        made.seek(start)
        footer = bytearray(made.read(size - start))
        _forget_texts(footer)
        made.seek(start)
        made.write(footer)


def _forget_texts(footer: bytearray) -> None:
    """Turn the annotation of every text column into a field that no reader knows."""
    at, number = 0, 0
    while True:
        number, kind, at = _field(footer, at, number)
        if number == _SCHEMA and kind == _LIST:
            break
        at = _after(footer, at, kind)
    count, at = (footer[at] >> 4, at + 1) if footer[at] < _FARTHEST else _number(footer, at + 1)
    for _ in range(count):
        at = _after_column(footer, at)


def _after_column(footer: bytearray, at: int) -> int:
    number = 0
    while footer[at]:
        head = at
        number, kind, at = _field(footer, at, number)
        if footer[at] in _TEXTS.get(number, ()):
            footer[head] = _FARTHEST | kind  # its number and the following ones are beyond all known fields
        at = _after(footer, at, kind)
    return at + 1


def _field(footer: bytearray, at: int, before: int) -> tuple[int, int, int]:
    """Return a field's number, its kind and the place where its value begins."""
    step, kind = footer[at] >> 4, footer[at] & 15
    if not step:
        raise ValueError("the fields of the footer are not in order")
    return before + step, kind, at + 1


def _after(footer: bytearray, at: int, kind: int) -> int:
    """Return the place where the next field begins."""
    if kind in _NUMBERS:
        return _number(footer, at)[1]
    if kind == _BINARY:
        length, at = _number(footer, at)
        return at + length
    if kind == _STRUCT:
        number = 0
        while footer[at]:
            number, inner, at = _field(footer, at, number)
            at = _after(footer, at, inner)
        return at + 1
    if kind not in _WIDTHS:
        raise ValueError("the footer has a list inside a column")
    return at + _WIDTHS[kind]


def _number(footer: bytearray, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (footer[at] & 127) << shift
        shift += 7
        at += 1
        if footer[at - 1] < 128:
            return value, at
