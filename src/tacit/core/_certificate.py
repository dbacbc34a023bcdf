"""The core's certificate: the machine-readable promise that travels with a release.

Every field is a function of the plan and of the ledger, none of the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tacit.core._plan_run import plan_hash, together_hash
from tacit.errors import TacitError
from tacit.fixes import Do

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.core._plan_run import Member
    from tacit.core._protocols import JSON

__all__ = ["CERTIFICATE_SCHEMA", "Certificate"]

CERTIFICATE_SCHEMA = "tacit/certificate/2"
_FIRST_SCHEMA = "tacit/certificate/1"  # without the digest of the question
_FIELDS = frozenset(
    {"schema", "dataset", "question", "mechanisms", "cost", "promised", "filter", "plan", "software"}
    | {"ledger"}
)
_ADDED = frozenset({"question", "promised"})
_TOGETHER = frozenset({"schema", "members", "disjoint", "cost", "promised", "plan", "software"})


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was promised, under which declared facts, and which entry of which ledger paid for it.

    Parameters
    ----------
    fields
        The JSON document, schema ``tacit/certificate/2``: ``dataset`` (name, version, unit, adjacency),
        ``question`` (digest), ``mechanisms``, ``cost``, ``filter``, ``plan`` (hash of dataset, question and
        mechanisms), ``software``, ``ledger`` (entry number and
        hash; null where a release was local and nobody was charged). A release of several datasets has the
        certificates of its ``members``, whether they are ``disjoint``, and the total ``cost``.
    """

    fields: Mapping[str, JSON]

    def __post_init__(self) -> None:
        needed = _TOGETHER if "members" in self.fields else _FIELDS
        members = self.fields.get("members", [])
        listed = isinstance(members, list | tuple) and all(isinstance(one, Mapping) for one in members)
        known = set(self.fields) == needed and self.fields["schema"] == CERTIFICATE_SCHEMA
        early = self.fields.get("schema") == _FIRST_SCHEMA and set(self.fields) >= _FIELDS - _ADDED
        if not listed or not (known or early):
            raise TacitError(
                "bad-certificate",
                "this is not a certificate that this version of Tacit reads",
                why=f"it must be JSON of the schema {CERTIFICATE_SCHEMA} with all its fields",
                fix=Do("save-certificate", path="certificate.json"),
            )

    @classmethod
    def of_member(cls, member: Member, promised: Mapping[str, str], receipt: Any = None) -> Certificate:
        """Write the certificate of what a ledger was charged for.

        There is no receipt of a release at the respondent, for which nobody was charged.
        """
        charged, paid = None, None
        if receipt is not None:
            charged = receipt.charged and list(receipt.charged)
            digest = receipt.head.hash
            paid = {
                "entry": receipt.head.count,
                "hash": digest.hex() if isinstance(digest, bytes) else digest,
            }
        return cls(
            {
                "schema": CERTIFICATE_SCHEMA,
                "dataset": member.identity.document(),
                "question": member.question,
                "mechanisms": [dict(law) for law in member.laws],
                "cost": cast("JSON", member.cost.to_json()),
                "promised": dict(promised),
                "filter": charged,
                "plan": member.hash,
                "software": _software(),
                "ledger": paid,
            }
        )

    @classmethod
    def together(
        cls, members: Sequence[Certificate], *, cost: Cost, plan: str, disjoint: bool
    ) -> Certificate:
        """Write the certificate of a release of several datasets: it holds those of all members."""
        return cls(
            {
                "schema": CERTIFICATE_SCHEMA,
                "members": [dict(member.fields) for member in members],
                "disjoint": disjoint,
                "cost": cast("JSON", cost.to_json()),
                "promised": members[0].fields.get("promised"),
                "plan": plan,
                "software": members[0].fields["software"],
            }
        )

    @property
    def plan(self) -> str:
        """The hash of the plan."""
        return str(self.fields["plan"])

    @property
    def members(self) -> tuple[Certificate, ...]:
        """The certificates of all datasets that answered; of one dataset, this certificate alone."""
        if "members" not in self.fields:
            return (self,)
        return tuple(Certificate(fields) for fields in cast("Any", self.fields["members"]))

    @property
    def is_local(self) -> bool:
        """Whether the release was made at the respondent, so that no ledger was charged."""
        return "members" not in self.fields and self.fields["ledger"] is None

    @property
    def names(self) -> str:
        """The declared names of the datasets that answered."""
        found = [member.fields["dataset"] for member in self.members]
        return " + ".join(str(one.get("name", "")) for one in found if isinstance(one, Mapping))

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
        except (OSError, ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise TacitError(
                "bad-certificate",
                f"{Path(path).name} cannot be read as a certificate",
                why="a certificate is a file of JSON that Tacit wrote",
                fix=Do("save-certificate", path="certificate.json"),
            )
        return cls(fields)

    def matches(self, *ledgers: Any) -> bool:
        """Whether the ledgers hold the entries that paid for this plan, and nothing here contradicts them."""
        return not self.problems(*ledgers)

    def problems(self, *ledgers: Any) -> list[str]:
        """Say what does not agree with the ledger; empty where everything agrees.

        The check compares the entry's number, its hash (which chains all earlier entries), its plan, its
        cost, the data's declared version, name, unit and adjacency, and whether the mechanisms' costs add up
        to the cost. The plan's hash is worked out again from dataset, question and mechanisms. A certificate
        of several datasets takes the ledgers of all of them.
        """
        if self.is_local:
            return ["the release was made at the respondent: no ledger was charged, so there is no entry"]
        if "members" not in self.fields:
            each = [self._own_problems(ledger) for ledger in ledgers]
            return min(each, key=len, default=["no ledger was given"])
        found = [
            f"{member.names}: {problem}" for member in self.members for problem in member.problems(*ledgers)
        ]
        if not self._members_add_up():
            found.append("the costs of the members do not add up")
        plans = [member.plan for member in self.members]
        if together_hash(plans, disjoint=self.fields["disjoint"] is True) != self.plan:
            found.append("the members, or whether they are disjoint, are not those of the plan")
        return found

    def _own_problems(self, ledger: Any) -> list[str]:
        written = self.fields["ledger"]
        number = written.get("entry") if isinstance(written, Mapping) else None
        entry = ledger.entry(number) if isinstance(number, int) else None
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
        if self.fields["schema"] == _FIRST_SCHEMA:
            found.append(
                "it was written by an earlier version, whose certificates do not bind the mechanisms"
            )
        elif plan_hash(*(self.fields[n] for n in ("dataset", "question", "mechanisms"))) != self.plan:
            found.append("the dataset, the question or a mechanism is not the one of the plan")
        return found + self._about_the_dataset(entry, ledger)

    def _adds_up(self) -> bool:
        from tacit.accounting import Cost

        try:
            each = [Cost.from_json(m["cost"]) for m in cast("Any", self.fields["mechanisms"])]
            return bool(each) and reduce(add, each).to_json() == self.fields["cost"]
        except (TacitError, KeyError, TypeError, ValueError):
            return False

    def _members_add_up(self) -> bool:
        from tacit.accounting import Cost

        try:
            each = [Cost.from_json(cast("Any", member.fields["cost"])) for member in self.members]
            total = Cost.parallel(*each) if self.fields["disjoint"] else reduce(add, each)
            return total.to_json() == self.fields["cost"]
        except (TacitError, KeyError, TypeError, ValueError):
            return False

    def _about_the_dataset(self, entry: Any, ledger: Any) -> list[str]:
        """Compare the dataset's declared facts with its account, the topmost above the one that asked."""
        account = ledger.account(entry.account) if entry.account else None
        if account is None:
            return ["the entry belongs to no account"]
        while account.parent is not None:
            account = ledger.account(account.parent)
        stated = self.fields["dataset"]
        known = {"name": account.name, "unit": account.unit, "adjacency": account.adjacency}
        known["version"] = entry.body.get("version")
        if not isinstance(stated, Mapping):
            return ["the dataset is not described"]
        return [
            f"the dataset's {name} is {value!r} in the ledger, {stated.get(name)!r} here"
            for name, value in known.items()
            if stated.get(name) != value
        ]


@lru_cache(maxsize=1)
def _software() -> str:
    from importlib.metadata import version

    return f"tacit {version('tacit')}"
