"""The certificate.

A machine-readable promise. Every field is a function of the plan and of the ledger, none of the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.core.protocols import JSON

__all__ = ["SCHEMA", "Certificate"]

SCHEMA = "tacit/certificate/1"
_FIELDS = ("schema", "dataset", "mechanisms", "cost", "filter", "plan", "software", "ledger")


class _History(Protocol):
    def history(self) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was promised, under which declared facts, paid by which entry of which ledger.

    Parameters
    ----------
    fields
        The JSON document, schema ``tacit/certificate/1``: ``dataset`` (name, version, unit, adjacency),
        ``mechanisms``, ``cost``, ``filter``, ``plan`` (hash), ``software``, ``ledger`` (entry number and
        hash).
    """

    fields: Mapping[str, JSON]

    def __post_init__(self) -> None:
        if self.fields.get("schema") != SCHEMA or any(f not in self.fields for f in _FIELDS):
            raise TacitError(
                "bad-certificate",
                "this is not a certificate that this version of Tacit reads",
                why=f"it must be JSON of the schema {SCHEMA} with all its fields",
                fix="the file that release.certificate.save(path) wrote",
            )

    @property
    def plan(self) -> str:
        """The hash of the plan."""
        return str(self.fields["plan"])

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(self.fields, indent=2, sort_keys=True, ensure_ascii=False)

    def save(self, path: str | Path) -> None:
        """Write the certificate to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate from a file."""
        try:
            fields = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            fields = None
        return cls(fields if isinstance(fields, dict) else {})

    def matches(self, ledger: _History) -> bool:
        """Whether the ledger holds the entry that paid for this plan.

        The entry's number, its hash (which chains all earlier entries) and its plan must agree.
        """
        written = self.fields["ledger"]
        if not isinstance(written, Mapping):
            return False
        return any(
            entry.seq == written.get("entry")
            and entry.hash == written.get("hash")
            and entry.plan == self.plan
            for entry in ledger.history()
        )
