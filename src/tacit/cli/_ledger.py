"""The ledger of a ``tacit`` command: the one that it names, otherwise the one that the config names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._context import note_dataset, note_ledger
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.ledger import Ledger

KeyFileOption = Annotated[
    Path | None, typer.Option("--key", help="The ledger's key file, if it is not beside the ledger.")
]


_CONFIG, _LEDGER = Path("tacit.toml"), Path("tacit.ledger")


def find_ledger(given: str | None, config: Path | None = None, *, named_by: str = "LEDGER") -> str:
    """Return where the ledger is: as given, or as the config (TACIT_CONFIG, else tacit.toml here) says.

    Without a config it is tacit.ledger here, if there is one.
    """
    if given is not None:
        return given
    file = config if config is not None else Path(os.environ.get("TACIT_CONFIG") or "tacit.toml")
    if file == _CONFIG and not file.exists() and _LEDGER.exists():
        return str(_LEDGER)  # where tacit map, graph and genome keep a budget
    if not file.exists():
        raise TacitError(
            "not-a-ledger",
            f"no ledger is named, and the file {file} that would name one does not exist",
            fix=f"{named_by} path/of/tacit.ledger, or --config path/of/tacit.toml"
            if named_by.startswith("--")
            else "tacit budget path/of/tacit.ledger",
        )
    from tacit.tables import open_config

    note_dataset(file, None, "")  # a refusal of the config names its line
    where = open_config(file).ledger
    note_dataset(None, None, "")
    if where is None:
        raise TacitError(
            "not-a-ledger",
            f"{file} declares no ledger",
            why="without one, the budget starts again with every session",
            fix=f'{file}, first line: ledger = "tacit.ledger"',
        )
    return where


def open_ledger(where: str, key: Path | None = None, *, create: bool = False) -> Ledger:
    """Open a ledger that exists; create one only if asked."""
    from tacit.ledger import Ledger

    note_ledger(where)
    return Ledger.open(where, key=key, create=create)


def note_on_completeness(how: str, *, whole: bool = True) -> str:
    """Explain what "completeness not proven" means, and how to prove it."""
    checked = "consistent: no entry was changed, and every total adds up. " if whole else ""
    return (
        f"{checked}The latest entries could still have been cut off; only a copy of the witness file that "
        f"was kept elsewhere can rule this out ({how})"
    )
