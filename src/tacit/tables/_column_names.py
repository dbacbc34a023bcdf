"""The names of columns: which ones a question may use, and where they must be known."""

from __future__ import annotations

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Declare


def check_name(name: str) -> None:
    """Refuse names that the emitted SQL keeps for itself."""
    if name.lower().startswith("tacit_") or "\x00" in name or not name:
        raise bad_parameter(
            "a column's name", "plain text that does not start with tacit_", name, fix="use another name"
        )


def names_needed(what: str) -> TacitError:
    return TacitError(
        "unknown-column",
        f"{what} needs the names of the table's columns, and its source is not available",
        why="names are public facts; they are read from the header or declared",
        fix=Declare("types", "text", column="patient_id"),
    )
