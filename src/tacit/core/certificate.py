"""The certificate.

A machine-readable promise. Every field is a function of the plan and of the ledger, none of the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

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
        """Whether the ledger holds the entry that paid for this plan, and nothing here contradicts it."""
        return not self.problems(ledger)

    def problems(self, ledger: _History) -> list[str]:
        """Say what does not agree with the ledger; empty where all does.

        Compared are the entry's number, its hash (which chains all earlier entries), its plan, its cost, the
        data's declared version, name, unit and adjacency, and whether the mechanisms' costs add up to the
        cost. The plan's hash binds question, dataset and cost, so a certificate with another one fails.
        """
        written = self.fields["ledger"]
        number = written.get("entry") if isinstance(written, Mapping) else None
        entry = next((one for one in ledger.history() if one.seq == number), None)
        if entry is None or not isinstance(written, Mapping):
            return ["the ledger has no such entry"]
        found = []
        if entry.hash != written.get("hash"):
            found.append(f"entry {number} of the ledger has another hash")
        if entry.plan != self.plan:
            found.append(f"entry {number} paid for another plan")
        if entry.body.get("cost") != self.fields["cost"]:
            found.append(f"entry {number} paid another cost")
        if not self._adds_up():
            found.append("the costs of the mechanisms do not add up to the cost")
        return found + self._about_the_dataset(entry, ledger)

    def _adds_up(self) -> bool:
        from tacit.accounting import Cost

        try:
            each = [Cost.from_json(m["cost"]) for m in cast("Any", self.fields["mechanisms"])]
            return bool(each) and reduce(add, each).to_json() == self.fields["cost"]
        except (TacitError, KeyError, TypeError, ValueError):
            return False

    def _about_the_dataset(self, entry: Any, ledger: Any) -> list[str]:
        """Compare the dataset's declared facts with its account, the topmost of the one that asked."""
        account = ledger.account(entry.account) if entry.account else None
        if account is None:
            return ["the entry belongs to no account"]
        while account.parent is not None:
            account = ledger.account(account.parent)
        told = self.fields["dataset"]
        known = {"name": account.name, "unit": account.unit, "adjacency": account.adjacency}
        known["version"] = entry.body.get("version")
        if not isinstance(told, Mapping):
            return ["the dataset is not described"]
        return [
            f"the dataset's {name} is {value!r} in the ledger, {told.get(name)!r} here"
            for name, value in known.items()
            if told.get(name) != value
        ]
