"""Folders and patterns of Parquet files as one source of an engine: which files they are, with one schema.

Names of files and the schemas in their footers are public facts. All files must have the same columns with
the same types: a conversion between types could fail on one row. Values in the names of folders
(``year=2024``) are not read.
"""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Code, Either, Say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.engines._values import ColumnTypes

_ENDS = (".parquet", ".pq")


def is_pattern(place: Path) -> bool:
    """Return whether a path stands for several files: it has ``*``, ``?`` or ``[`` and does not exist."""
    return glob.has_magic(str(place)) and not place.exists()


def parquet_files(place: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a folder, at any depth, or those that match a pattern, sorted by name.

    Files and folders whose names start with a point or an underscore are no data. A path that is neither
    stands for itself.
    """
    if is_pattern(place):
        base = Path(*_fixed(place))
        found = [*base.glob(str(place.relative_to(base)))]
    elif place.is_dir():
        found, base = [*place.rglob("*")], place
    else:
        return (place,)
    files = [
        one
        for one in found
        if one.suffix.lower() in _ENDS
        and one.is_file()
        and not any(part.startswith((".", "_")) for part in one.relative_to(base).parts)
    ]
    odd = next((one for one in files if glob.has_magic(str(one))), None)
    if odd is not None:
        raise TacitError(
            "bad-parameter",
            f"the name of the file {odd.name!r} contains one of the characters * ? [",
            why="the engine would read other files in its place",
            fix="rename the file",
        )
    return tuple(sorted(files))


def _fixed(place: Path) -> list[str]:
    """Return the parts of a pattern's path before the first part with a sign."""
    kept = []
    for part in place.parts[:-1]:
        if glob.has_magic(part):
            break
        kept.append(part)
    return kept


def refuse_lake(place: Path) -> None:
    """Refuse a folder of a Delta or Iceberg table: its files hold rows that were deleted or replaced."""
    base = Path(*_fixed(place)) if is_pattern(place) else place
    for folder in (base, *base.parents):
        delta = (folder / "_delta_log").is_dir()
        if not delta and not any(folder.glob("metadata/*.metadata.json")):
            continue
        kind, scan = ("a Delta", "delta_scan") if delta else ("an Iceberg", "iceberg_scan")
        raise TacitError(
            "bad-parameter",
            f"{folder} is {kind} table, which Tacit cannot read",
            why="its files also hold rows that were deleted, and DuckDB reads its log only with an extension "
            "that has to be downloaded; Tacit downloads nothing",
            fix=Either(
                Say("export the table to Parquet first"),
                Code(f"COPY (FROM {scan}('{folder.name}')) TO '{folder.name}.parquet'"),
            ),
        )


def check_same_schema(files: Sequence[Path], schemas: Sequence[ColumnTypes]) -> None:
    """Refuse files of which one has other columns, or other types, than the first by name."""
    first = dict(schemas[0])
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        own = dict(schema)
        if own == first:
            continue
        column = next(c for c in (*first, *own) if own.get(c) != first.get(c))
        there, here = own.get(column, "no such column"), first.get(column, "no such column")
        raise TacitError(
            "bad-parameter",
            f"the column {column!r} is not the same in all files: {here} in {files[0].name}, {there} in "
            f"{file.name}",
            why="the files are read as one table, and a conversion could fail on one row and reveal it",
            fix="write all files with the same columns and types",
        )
