"""Which ledger a command is about: the one that is named, else the one of the config."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.refusals import now_opening
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.ledger import Ledger

__all__ = ["KeyFile", "find_ledger", "open_ledger", "what_is_not_proven"]

KeyFile = Annotated[
    Path | None, typer.Option("--key", help="The ledger's key file, where it is not beside it.")
]


def find_ledger(given: str | None, config: Path | None = None, *, say: str = "LEDGER") -> str:
    """Return where the ledger is: as given, or as the config (TACIT_CONFIG, tacit.toml here) says."""
    if given is not None:
        return given
    file = config if config is not None else Path(os.environ.get("TACIT_CONFIG") or "tacit.toml")
    if not file.exists():
        raise TacitError(
            "not-a-ledger",
            f"no ledger is named, and there is no {file} in this folder to name one",
            fix=f"{say} where/tacit.ledger, or --config where/tacit.toml"
            if say.startswith("--")
            else "tacit budget where/tacit.ledger",
        )
    from tacit.tables import open_config

    where = open_config(file).ledger
    if where is None:
        raise TacitError(
            "not-a-ledger",
            f"{file} declares no ledger",
            why="without one the budget starts anew with every session",
            fix=f'{file}, first line: ledger = "tacit.ledger"',
        )
    return where


def open_ledger(where: str, key: Path | None = None) -> Ledger:
    """Open a ledger that is there; nothing is made."""
    from tacit.ledger import Ledger

    now_opening(where)
    return Ledger.open(where, key=key, create=False)


def what_is_not_proven(how: str) -> str:
    """Explain what "completeness not proven" means, and how it is proven."""
    return (
        "consistent: no entry was changed, and every total adds up. Not proven: that no latest entries were "
        f"cut off; a copy of the witness file kept elsewhere proves it ({how})"
    )
