"""The core's certificate: the machine-readable promise that travels with a release.

Every field is a function of the plan and of the ledger, none of the data. A certificate of several datasets
has members: what one unit pays for each, and what they promise.

**What binds a release's values to its certificate** are their digests, and the ledger's keyed digest of both.
The certificate's body is settled before the data is touched, so the ledger's entry for the charge cannot hold
a digest of the values. The certificate gets it when the release is read off what the ledger has stored: the
digests of the content as it is shown, the SHA-256 of the stored answer (which the ledger's log holds), and a
keyed digest of the whole certificate, which nobody can make without the ledger's key. So each way to show one
stored answer, with other names, order or confidence, is bound, and so is an answer that was stored before
certificates bound values. All of it follows from noisy values, so it reveals nothing more.

**The short page** says who is protected, what was promised and who paid. A certificate may have been edited
by anybody, so the page is written from any fields and never fails.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tacit.core._plan_run import cost_of_laws, digest_of, plan_hash, together_hash
from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.report import Report, Reportable, ReportTable
from tacit.show import visible

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.core._plan_run import Member
    from tacit.core._protocols import JSON
    from tacit.core._release import Content


_PURPOSE = "values of releases"
_LONGEST = 60
_CHECK = "matches(ledger) compares it with the ledger; save(path) writes the whole document; fields holds it."


def content_digest(kind: str, document: object) -> str:
    """Return the digest of a content's JSON; raises ``ValueError`` for text that no file can hold.

    Examples
    --------
    >>> content_digest("answer-table", {"n": [1, 2]}) == content_digest("answer-table", {"n": (1, 2)})
    True
    """
    text = json.dumps([kind, document], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def content_digests(content: Content) -> list[str]:
    """Return the digests by which a release is recognised: of the whole, and of each answer of a batch."""
    answers = [one.content for one in getattr(content, "answers", ())]
    return [content_digest(one.kind, json.loads(json.dumps(one.to_json()))) for one in (content, *answers)]


def payload_digest(payload: bytes) -> str:
    """Return the digest that a ledger's log holds of what it has stored."""
    return hashlib.sha256(payload).hexdigest()


def vouches(ledger: object) -> bool:
    """Return whether a ledger can bind values: it has a key, and makes keyed digests."""
    return hasattr(ledger, "keyed_digest")


def bound_values(fields: Mapping[str, JSON], digests: Sequence[str], ledger: Any, of: str) -> dict[str, JSON]:
    """Return what a certificate states of the values, with the ledger's keyed digest of all of it.

    Where several datasets answered together, ``of`` is the plan of all; each of their ledgers binds the sum.
    """
    earlier: Any = fields.get("values")
    values: dict[str, JSON] = {
        "stored": earlier["stored"],
        "digests": list(digests),
        **({"of": of} if of else {}),
    }
    return {**values, "keyed": _keyed_digest({**fields, "values": values}, ledger)}


def _keyed_digest(fields: Mapping[str, JSON], ledger: Any) -> str:
    return str(ledger.keyed_digest(_PURPOSE, digest_of(fields).encode()))


def binding_problems(certificate: Certificate, ledger: Any) -> list[str]:
    """Say what is wrong with what a certificate states of the values; older certificates state nothing."""
    values = certificate.fields.get("values")
    if values is None:
        cut = ["what binds the values was removed from it"]
        return cut if "binds" in certificate.fields else []
    if not isinstance(values, Mapping) or not set(values) <= {"stored", "digests", "keyed", "of"}:
        return ["what it says of the values cannot be read"]
    if "keyed" not in values:
        return ["what binds the values was removed from it"]
    if not vouches(ledger):
        return ["this ledger cannot check what binds the values"]
    stated = {name: one for name, one in values.items() if name != "keyed"}
    right = _keyed_digest({**certificate.fields, "values": stated}, ledger)
    if hmac.compare_digest(right.encode(), str(values["keyed"]).encode("utf-8", "replace")):
        return []
    return ["the digest of the values, or another part of it, was edited"]


def cost_together(members: Sequence[Certificate], *, disjoint: bool) -> Cost:
    """Return what one unit pays for all members: the largest cost if they are disjoint, else the sum.

    Where members share the noise of one sum, a unit in all of them moves this sum several times against one
    noise. It pays like a group of so many units, which is more than the sum of the costs.
    """
    from tacit.accounting import Cost

    each = [Cost.from_json(cast("Any", member.fields["cost"])) for member in members]
    shared = _share_noise(members)
    if not disjoint and not shared:
        return reduce(add, each)
    largest = each[0] if len(set(each)) == 1 else Cost.parallel(*each)
    return largest if disjoint else largest.group(len(each))


def _share_noise(members: Sequence[Certificate]) -> bool:
    """Return whether the noise of a member is a share of what several members add to one sum."""
    return any("shares" in law for member in members for law in cast("Any", member.fields["mechanisms"]))


def promised_together(members: Sequence[Certificate], *, disjoint: bool) -> dict[str, JSON]:
    """Return the total that follows from what each member promised: the largest if disjoint, else the sum.

    Where members share noise and a unit may be in several, no total follows; the cost says what holds.
    """
    if not disjoint and _share_noise(members):
        return {}
    stated = [cast("Any", member.fields.get("promised")) or {} for member in members]
    try:
        return {
            name: str((max if disjoint else sum)(Fraction(one[name]) for one in stated))
            for name in stated[0]
            if all(name in one for one in stated)
        }
    except (TypeError, ValueError, ArithmeticError):
        return {}


_PAID = frozenset({"entry", "hash"})  # what names the entry that paid
_PAID_PART = _PAID | {"instalment", "instalments", "stored", "kept"}  # and, of a run, the instalment
CERTIFICATE_SCHEMA = "tacit/certificate/2"
_FIRST_SCHEMA = "tacit/certificate/1"  # without the digest of the question
_FIELDS = frozenset(
    {"schema", "dataset", "question", "mechanisms", "cost", "promised", "filter", "plan", "software"}
    | {"ledger"}
)
_ADDED = frozenset({"question", "promised"})
_PAYMENT = frozenset({"filter", "ledger", "values"})  # what differs from one payer or reader to the next
_MAY = frozenset({"audit", "binds", "blocks", "numerics", "values"})
_TOGETHER = frozenset({"schema", "members", "disjoint", "cost", "promised", "plan", "software"})


@dataclass(frozen=True, slots=True, repr=False)
class Certificate(Reportable):
    """What was promised, under which declared facts, and which entry of which ledger paid for it.

    Parameters
    ----------
    fields
        The JSON document, schema ``tacit/certificate/2``: ``dataset`` (name, version, unit, adjacency),
        ``question`` (digest), ``mechanisms``, ``cost``, ``filter``, ``plan`` (hash of dataset, question and
        mechanisms), ``software``, ``ledger`` (entry number and
        hash; null where a release was local and nobody was charged). A release of several datasets has the
        certificates of its ``members``, whether they are ``disjoint``, and the total ``cost``. ``blocks``
        are the blocks of the data that were charged, if only some were; ``audit`` is what an attack
        on the plan found before its release, where there was one; ``numerics`` says in words how far the
        guarantee holds for the numbers of the computer, where these are floats. ``values`` binds the released
        values: their digests, that of the stored answer, and a keyed digest of the whole certificate by the
        ledger.
    """

    fields: Mapping[str, JSON]

    def __post_init__(self) -> None:
        has_members = "members" in self.fields
        needed, may = (_TOGETHER, set()) if has_members else (_FIELDS, _MAY)
        members = self.fields.get("members", [])
        are_mappings = isinstance(members, list | tuple) and all(isinstance(one, Mapping) for one in members)
        has_all_fields = set(self.fields) - may == needed and self.fields["schema"] == CERTIFICATE_SCHEMA
        early = self.fields.get("schema") == _FIRST_SCHEMA and set(self.fields) >= _FIELDS - _ADDED
        if not are_mappings or not (has_all_fields or (early and not has_members)):
            raise TacitError(
                "bad-certificate",
                "this is not a certificate that this version of Tacit can read",
                why=f"it must be JSON of the schema {CERTIFICATE_SCHEMA} with all its fields",
                fix=Do("save-certificate", path="certificate.json"),
            )

    @classmethod
    def of_draw(
        cls,
        receipt: Any,
        stored: Mapping[str, JSON] | None,
        asked: Mapping[str, JSON],
        payload: bytes | None = None,
        kept: str = "",
    ) -> Certificate:
        """Write the certificate of what a ledger was charged for.

        A stored release keeps the certificate that it was drawn with, whichever plan or later version asks
        for it again. Releases of older versions have none; their certificate is that of the plan that asks.
        """
        body = asked if stored is None or digest_of(stored) != receipt.certificate else stored
        digest = receipt.head.hash
        charge = {
            "entry": receipt.head.count,
            "hash": digest.hex() if isinstance(digest, bytes) else digest,
            **({"kept": kept} if kept else {}),  # a ledger in memory that nobody asked for
        }
        fields = {**body, "filter": receipt.charged and list(receipt.charged), "ledger": charge}
        return cls(fields if payload is None else {**fields, "values": {"stored": payload_digest(payload)}})

    @classmethod
    def of_instalment(
        cls,
        drawn: Any,
        instalments: int,
        stored: Mapping[str, JSON] | None,
        body: Mapping[str, JSON],
        kept: str = "",
    ) -> Certificate:
        """Write the certificate of one instalment: the whole run's cost, its entry, and the instalment's."""
        charge = cls.of_draw(drawn.receipt, stored, body, drawn.payload, kept).fields
        entry = {
            **cast("Any", charge["ledger"]),
            "instalment": drawn.number,
            "instalments": instalments,
            "stored": {"entry": drawn.head.count, "hash": drawn.head.hash},
        }
        return cls({**charge, "ledger": entry})

    @classmethod
    def of_local(cls, member: Member) -> Certificate:
        """Write the certificate of a release on the respondent's device, for which nobody was charged."""
        return cls({**certificate_body(member), "filter": None, "ledger": None})

    @classmethod
    def together(
        cls,
        members: Sequence[Certificate],
        *,
        disjoint: bool,
        cost: Cost | None = None,
        plan: str | None = None,
    ) -> Certificate:
        """Write the certificate of a release of several datasets: it holds those of all members.

        Cost and plan follow from the members, unless they are known already.
        """
        if cost is None:
            cost = cost_together(members, disjoint=disjoint)
        if plan is None:
            plan = together_hash([member.plan for member in members], disjoint=disjoint)
        return cls(
            {
                "schema": CERTIFICATE_SCHEMA,
                "members": [dict(member.fields) for member in members],
                "disjoint": disjoint,
                "cost": cast("JSON", cost.to_json()),
                "promised": promised_together(members, disjoint=disjoint),
                "plan": plan,
                "software": members[0].fields["software"],
            }
        )

    def bound_to(self, digests: Sequence[str], ledgers: Sequence[Any]) -> Certificate:
        """Return the certificate with the digests of the values, bound by the ledger of each member."""
        if "members" in self.fields:
            pairs = zip(self.members, ledgers, strict=True)
            each = [dict(member._bound(digests, ledger, of=self.plan).fields) for member, ledger in pairs]  # noqa: SLF001
            return Certificate({**self.fields, "members": each})
        return self._bound(digests, ledgers[0])

    def _bound(self, digests: Sequence[str], ledger: Any, of: str = "") -> Certificate:
        """Return the certificate of one dataset with values; ``of`` is the plan of all members together."""
        if not vouches(ledger):
            return Certificate({name: one for name, one in self.fields.items() if name != "values"})
        return Certificate({**self.fields, "values": bound_values(self.fields, digests, ledger, of)})

    @property
    def value_digests(self) -> frozenset[str] | None:
        """The digests of the values that all its members bind; None where a member binds none, or others."""
        of = self.plan if "members" in self.fields else None
        each = [one.fields.get("values") for one in self.members]
        bindings = [one for one in each if isinstance(one, Mapping) and one.get("of") == of]
        digest_lists = [one["digests"] for one in bindings if isinstance(one.get("digests"), list | tuple)]
        if not digest_lists or len(digest_lists) < len(each):
            return None
        return frozenset.intersection(*(frozenset(map(str, cast("Any", one))) for one in digest_lists))

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
    def digest(self) -> str:
        """The digest in the ledger's entry: of everything except who paid, and with which entry."""
        return digest_of({name: value for name, value in self.fields.items() if name not in _PAYMENT})

    @property
    def is_local(self) -> bool:
        """Whether the release was made on the respondent's device, so that no ledger was charged."""
        return "members" not in self.fields and self.fields["ledger"] is None

    @property
    def kept(self) -> str:
        """Where the ledger is kept, if nobody gave one: in memory; else an empty text."""
        charges = [one.fields.get("ledger") for one in self.members]
        told = [one.get("kept") for one in charges if isinstance(one, Mapping) and one.get("kept")]
        return str(told[0]) if told else ""

    @property
    def names(self) -> str:
        """The declared names of the datasets that answered."""
        datasets = [member.fields["dataset"] for member in self.members]
        return " + ".join(str(one.get("name", "")) for one in datasets if isinstance(one, Mapping))

    @property
    def facts(self) -> dict[str, JSON]:
        """The main facts: dataset, unit, neighbours, promised cost, plan, software, entry of the ledger."""
        fields: Mapping[str, Any] = self.members[0].fields
        declared: Any = fields.get("dataset") or {}
        names = ("name", "dataset"), ("version", "version"), ("unit", "unit"), ("adjacency", "adjacency")
        charge: Any = fields.get("ledger")
        return {
            **{word: declared.get(name) for name, word in names},
            **({"dataset": self.names} if "members" in self.fields else {}),
            "promised": self.fields.get("promised"),
            "plan": self.plan,
            "software": fields.get("software"),
            **(
                {"entry": charge.get("entry"), "hash": charge.get("hash")}
                if isinstance(charge, Mapping)
                else {}
            ),
        }

    def report(self) -> Report:
        """Return the certificate as a short page."""
        return certificate_page(self)

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
        """Return whether the ledgers hold the entries that paid for this plan, and none contradicts this."""
        return not self.problems(*ledgers)

    def problems(self, *ledgers: Any) -> list[str]:
        """Say what does not agree with the ledger; empty where everything agrees.

        The check compares the entry's number, its hash (which chains all earlier entries), its plan, its
        cost, the accounts that it charged, the data's declared version, name, unit and adjacency, and whether
        the mechanisms' costs add up to the cost. The cost of integer noise and of cross tables is worked out
        again from the noise and the sensitivity that they state, and the plan's hash from dataset, question
        and mechanisms. The entry holds the digest of everything else (entries of older versions do not), so
        any edit is found. A certificate of several datasets takes the ledgers of all of them. The time does
        not depend on how long the ledger is.
        """
        if self.is_local:
            return [
                "the release was made on the respondent's device: no ledger was charged, so there is no entry"
            ]
        if "members" not in self.fields:
            each = [self._own_problems(ledger) for ledger in ledgers]
            return min(each, key=len, default=["no ledger was given"])
        problems = [
            f"{member.names}: {problem}" for member in self.members for problem in member.problems(*ledgers)
        ]
        if not self._members_add_up():
            problems.append("the costs of the members do not add up")
        plans = [member.plan for member in self.members]
        if together_hash(plans, disjoint=cast("bool", self.fields["disjoint"])) != self.plan:
            problems.append("the members, or the statement that they are disjoint, do not match the plan")
        return problems + self._about_all_members(ledgers)

    def _about_all_members(self, ledgers: Sequence[Any]) -> list[str]:
        """Compare what is stated for all members together with what follows from their own certificates."""
        members, problems = self.members, []
        if not members:
            return ["it names no member"]
        if self.fields["software"] != members[0].fields["software"]:
            problems.append("the software is not the one that the first member states")
        disjoint = self.fields["disjoint"] is True
        bound = all(any(member._bound_in(ledger) for ledger in ledgers) for member in members)  # noqa: SLF001
        if bound and self.fields["promised"] != promised_together(members, disjoint=disjoint):
            problems.append("the promised total is not the one that follows from the members")
        return problems

    def _bound_in(self, ledger: Any) -> bool:
        """Return whether the entry of this certificate records a digest."""
        charge = self.fields.get("ledger")
        number = charge.get("entry") if isinstance(charge, Mapping) else None
        return _is_number(number) and ledger.certified(number) is not None

    def _own_problems(self, ledger: Any) -> list[str]:
        charge = self.fields["ledger"]
        number = charge.get("entry") if isinstance(charge, Mapping) else None
        entry = _entry(ledger, number)
        if entry is None or not isinstance(charge, Mapping) or not _PAID <= set(charge) <= _PAID_PART:
            return ["the ledger has no such entry"]
        problems = []
        if entry.hash != charge.get("hash"):
            problems.append(f"entry {number} of the ledger has another hash")
        if entry.plan != self.plan:
            problems.append(f"entry {number} paid for another plan")
        if entry.body.get("cost") != self.fields["cost"]:
            problems.append(f"entry {number} paid another cost")
        if list(entry.blocks) != self._blocks():
            problems.append(f"entry {number} paid for other blocks of the data")
        if self.fields["filter"] != list(entry.charged):
            problems.append(f"entry {number} charged other accounts than those under filter")
        if not self._adds_up():
            problems.append("the costs of the mechanisms do not add up to the cost")
        if self.fields["schema"] == _FIRST_SCHEMA:
            problems.append(
                "it was written by an earlier version, whose certificates do not bind the mechanisms"
            )
        elif plan_hash(*(self.fields[n] for n in ("dataset", "question", "mechanisms"))) != self.plan:
            problems.append("the dataset, the question or a mechanism does not match the plan")
        problems += self._about_the_instalment(entry, ledger) + self._about_the_dataset(entry, ledger)
        problems += [] if problems else self._about_the_costs()
        if not problems and ledger.certified(number) not in {None, self.digest}:
            problems.append(
                f"entry {number} was charged for another certificate: the promised total, the software or "
                "another part of this one was edited"
            )
        return problems or binding_problems(self, ledger)

    def _about_the_instalment(self, entry: Any, ledger: Any) -> list[str]:
        """Compare which instalment this is, of how many, with the run's entry and the instalment's own."""
        charge = cast("Mapping[str, Any]", self.fields["ledger"])
        number, parts, stored = (charge.get(name) for name in ("instalment", "instalments", "stored"))
        if (entry.body.get("parts"), number, parts, stored) == (None, None, None, None):
            return []
        same = _is_number(parts) and entry.body.get("parts") == parts
        problems = [] if same else ["the run has another number of instalments"]
        at, digest = 0, ""
        if isinstance(stored, Mapping) and set(stored) == _PAID:
            at, digest = stored["entry"], stored["hash"]
        ledger_entry = _entry(ledger, at)
        run = entry.body.get("run", entry.seq)
        if (
            ledger_entry is None
            or not _is_number(number)
            or (ledger_entry.kind, ledger_entry.hash) != ("release", digest)
            or (ledger_entry.body.get("receipt"), ledger_entry.body.get("part")) != (run, number)
            or self._stored() not in {None, ledger_entry.body.get("sha256")}
        ):
            problems.append(f"the ledger has not stored this as instalment {number} of the run")
        return problems

    def _stored(self) -> object:
        """Return the digest of the stored answer, where the certificate states one."""
        values = self.fields.get("values")
        return values.get("stored") if isinstance(values, Mapping) else None

    def _blocks(self) -> object:
        """Return the blocks that were charged; a dataset that is one block cannot claim others."""
        dataset = self.fields["dataset"]
        declared = dataset.get("block") if isinstance(dataset, Mapping) else None
        stated = self.fields.get("blocks", [])
        return stated if declared is None or stated == [declared] else None

    def _adds_up(self) -> bool:
        try:
            laws = cast("Any", self.fields["mechanisms"])
            return bool(laws) and cost_of_laws(laws).to_json() == self.fields["cost"]
        except (TacitError, KeyError, TypeError, ValueError):
            return False

    def _about_the_costs(self) -> list[str]:
        """Work out again what the mechanisms cost, from the parameters that stand beside their costs.

        It takes time, so it comes after everything that a forged document fails at.
        """
        from tacit.mechanisms import cost_is_too_small

        adjacency, findings = cast("Any", self.fields["dataset"])["adjacency"], []
        for number, law in enumerate(cast("Any", self.fields["mechanisms"]), 1):
            try:
                is_too_small = cost_is_too_small(law, adjacency)
            except (TacitError, KeyError, TypeError, ValueError, ArithmeticError):
                is_too_small = True
            if is_too_small:
                findings.append(f"the cost of mechanism {number} does not follow from its parameters")
        return findings

    def _members_add_up(self) -> bool:
        try:
            total = cost_together(self.members, disjoint=bool(self.fields["disjoint"]))
            return digest_of(total.to_json()) == digest_of(self.fields["cost"])
        except (TacitError, KeyError, TypeError, ValueError):
            return False

    def _about_the_dataset(self, entry: Any, ledger: Any) -> list[str]:
        """Compare the dataset's declared facts with its own account, at or above the one that asked."""
        account = ledger.account(entry.account) if entry.account else None
        if account is None:
            return ["the entry belongs to no account"]
        root = account.root
        while account.id != root:
            account = ledger.account(account.parent)
        stated = self.fields["dataset"]
        facts = {"name": account.name, "unit": account.unit, "adjacency": account.adjacency}
        facts["version"] = entry.body.get("version")
        if not isinstance(stated, Mapping):
            return ["the dataset is not described"]
        return [
            f"the dataset's {name} is {value!r} in the ledger, {stated.get(name)!r} here"
            for name, value in facts.items()
            if stated.get(name) != value
        ]


def _entry(ledger: Any, number: object) -> Any:
    """Find an entry by the number that a certificate names, whatever is written there."""
    return ledger.entry(number) if _is_number(number) else None


def certificate_body(member: Member) -> dict[str, JSON]:
    """Return what a certificate states whoever pays: all fields but the accounts charged and the entry."""
    return {
        "schema": CERTIFICATE_SCHEMA,
        "dataset": member.identity.document(),
        "question": member.question,
        "mechanisms": [dict(law) for law in member.laws],
        "cost": cast("JSON", member.cost.to_json()),
        "promised": {name: str(value) for name, value in member.promised.items()},
        "plan": member.hash,
        "software": "; ".join([_software(), *member.packages]),
        **({"audit": dict(member.audit)} if member.audit is not None else {}),
        **({"numerics": member.task.numerics} if member.task.numerics else {}),
        **({"binds": ["values"]} if vouches(member.ledger) else {}),
        **({"blocks": list(member.blocks)} if member.blocks and member.ledger is not None else {}),
    }


def _is_number(number: object) -> bool:
    return type(number) is int and number > 0


@lru_cache(maxsize=1)
def _software() -> str:
    from importlib.metadata import version

    return f"tacit {version('tacit')}"


def certificate_page(certificate: Certificate) -> Report:
    """Return the page of a certificate."""
    fields = certificate.fields
    try:
        members, names = certificate.members, certificate.names
    except TacitError as error:
        return Report("Certificate", (f"Its members cannot be read: {error.what}.",))
    rows = [row for member in members for row in _member(member, with_name="members" in fields)]
    rows += [
        ("promised", _promise_words(fields.get("promised"))),
        *([("audit", _audit(fields["audit"]))] if "audit" in fields else []),
        ("plan", _one_line(fields.get("plan"))),
        ("software", _one_line(fields.get("software"))),
    ]
    table = ReportTable("", ("part", "content"), tuple(rows))
    return Report(f"Certificate for {_one_line(names)}", (), (table,), (_CHECK,))


def _member(member: Certificate, *, with_name: bool) -> list[tuple[str, str]]:
    """Return the lines that each dataset has of its own."""
    dataset = member.fields.get("dataset")
    about = dataset if isinstance(dataset, Mapping) else {}
    laws = member.fields.get("mechanisms")
    mappings = [law for law in laws if isinstance(law, Mapping)] if isinstance(laws, list | tuple) else []
    steps = [
        _one_line(law.get("mechanism"))
        + (f" on {_one_line(law['statistic'])}" if law.get("statistic") else "")
        for law in mappings
    ]
    assumed = dict.fromkeys(visible(str(law["assumes"]))[:300] for law in mappings if law.get("assumes"))
    return [
        *([("dataset", _one_line(about.get("name")))] if with_name else []),
        ("version", _one_line(about.get("version"))),
        ("protects", f"each {_one_line(about.get('unit'))}; neighbours: {_one_line(about.get('adjacency'))}"),
        *(("holds if", words) for words in assumed),
        *[(name, visible(str(value))[:400]) for name, value in member.fields.items() if name == "numerics"],
        ("mechanisms", ", ".join(dict.fromkeys(steps[:10])) + (" ..." if len(steps) > 10 else "")),
        ("paid by", _payment_words(member.fields)),
    ]


def _payment_words(fields: Mapping[str, object]) -> str:
    charge, accounts = fields.get("ledger"), fields.get("filter")
    if not isinstance(charge, Mapping):
        return "nobody: the release was made on the respondent's device"
    charges = accounts if isinstance(accounts, list | tuple) else []
    names = ", ".join(_one_line(name) for name in charges[:5]) or "the dataset"
    part = f", instalment {_one_line(charge['instalment'])}" if "instalment" in charge else ""
    durability = f"; {_one_line(charge['kept'])}" if "kept" in charge else ""
    entry = f"entry {_one_line(charge.get('entry'))} of the ledger ({_one_line(charge.get('hash'))})"
    return f"{names}, with {entry}{part}{durability}"


def _promise_words(promise: object) -> str:
    """Write the promised total in decimals."""
    parts = promise if isinstance(promise, Mapping) else {}
    return ", ".join(f"{_one_line(name)} {_decimal(value)}" for name, value in parts.items()) or "not stated"


def _decimal(value: object) -> str:
    top, _, bottom = str(value).partition("/")
    try:
        return f"{float(top) / float(bottom or 1):.6g}"
    except (ValueError, ZeroDivisionError, OverflowError):
        return _one_line(value)


def _audit(audit: object) -> str:
    fields = audit if isinstance(audit, Mapping) else {}
    verdict = "nothing was found" if fields.get("holds") is True else "the plan is broken"
    return f"{verdict}, with {_one_line(fields.get('pairs'))} pairs of neighbours"


def _one_line(value: object) -> str:
    """Write a field in one line: hashes by their first signs, nothing that a terminal obeys."""
    text = visible(str(value))
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:12]
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
