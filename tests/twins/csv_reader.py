"""A reader of CSV files as it was before their form was checked: one stray quotation mark swallows lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tacit.engines.sources._csv_form import CsvDialect

__all__ = ["check_nothing"]


def check_nothing(file: Path, dialect: CsvDialect, *_declared: object) -> None:
    """Accept every file, in the place of `tacit.engines.sources._csv_form.check_form`."""
    del file, dialect
