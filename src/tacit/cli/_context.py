"""The context of the running command, so that a refusal can name its dataset, files, ledger and question."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tacit.tables import Config


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The subject of the running command.

    Parameters
    ----------
    dataset
        The name of the dataset.
    config
        The file with the declarations. None for ``tacit init``, which takes them as options.
    ledger
        Where the ledger is.
    sql
        The question.
    keyed
        The columns that have public keys in the config.
    delta
        Whether the budget has a delta.
    parent, unit
        The account above the dataset's, and the unit, as the config declares them.
    options
        The options of declared arguments and facts, by their names.
    """

    dataset: str = ""
    config: Path | None = None
    ledger: str = "LEDGER"
    sql: str = ""
    keyed: frozenset[str] = frozenset()
    delta: bool = False
    parent: str = ""
    unit: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


_context: ContextVar[CommandContext | None] = ContextVar("command context", default=None)


def current_context() -> CommandContext:
    """Return what was noted so far."""
    return _context.get() or CommandContext()


def note_dataset(config: Path | None, declared: Config | None, name: str, sql: str = "") -> None:
    """Note which dataset and question the command is about."""
    facts = declared.datasets[name] if declared is not None else {}
    ledger = declared.ledger if declared is not None and declared.ledger else "LEDGER"
    keyed, delta = frozenset(facts.get("keys", ())), bool(facts.get("budget", {}).get("delta"))
    parent, unit = str(facts.get("parent", "")), str(facts.get("unit", ""))
    options = current_context().options
    _context.set(CommandContext(name, config, ledger, sql, keyed, delta, parent, unit, options))


def note_ledger(where: str) -> None:
    """Note which ledger the command is about."""
    _context.set(replace(current_context(), ledger=where))


def note_options(options: Mapping[str, str]) -> None:
    """Note the options of the arguments or facts that are read next."""
    _context.set(replace(current_context(), options=options))
