"""The ledger's accounts: declared facts, a budget, and the filter that keeps its total.

Accounts are told apart by what people see of their names (`appearance`): names that look alike are refused.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Filter
from tacit.ledger._refusals import readable
from tacit.ledger.accounts._blocks import Blocks, BlockTotals, sums_of, with_sums
from tacit.ledger.checks._chain import canonical
from tacit.ledger.stores._store import AccountRow

if TYPE_CHECKING:
    from tacit.accounting import Spend
    from tacit.ledger.checks._chain import Chain
    from tacit.ledger.stores._store import BlockRow, Tip


@dataclass(frozen=True, slots=True)
class Account:
    """A dataset, a project that uses it or an analyst in the project, as of the moment when it was read.

    Guarantee: `filter` admits a further charge only while everything charged to the account since its last
    refresh stays within `budget`, whatever the answers were (adaptive composition).

    Parameters
    ----------
    id
        Number of the log entry that opened the account.
    name
        Its name, unique in the ledger; for a dataset, the dataset's declared name.
    unit, adjacency
        Who is protected and what neighbouring means; the same for all accounts of a dataset.
    version
        Declared version of the data. Each version has its own stored releases; a new one resets no budget.
    filter
        The budget and what was spent of it; in an account with blocks, what any one unit may have paid at
        most.
    path
        Numbers of this account and of all accounts above it.
    parent
        Name of the account above, or None.
    labels
        Free text for people, such as the name of a team.
    per_charge
        The largest single charge, or None.
    expires
        The moment after which nothing can be charged, or None.
    above
        How many accounts are above the dataset's own account and pay for several datasets.
    frozen
        Whether the curator has stopped every charge to this account and to those below it.
    record
        What the log keeps of a question: ``"words"``, or its ``"shape"``, without the constants in it.
    blocks
        The public partition of the data whose blocks are charged separately, or None.
    totals
        What an account with blocks has spent.
    declared
        The stored form of these facts, kept so that it is computed once.

    Examples
    --------
    >>> from tacit.accounting import Budget
    >>> from tacit.ledger import Ledger
    >>> with Ledger.memory() as ledger:
    ...     visits = ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
    >>> visits.name, visits.unit, visits.version
    ('visits', 'patient_id', 1)
    """

    id: int
    name: str
    unit: str
    adjacency: str
    version: int
    filter: Filter
    path: tuple[int, ...]
    parent: str | None = None
    labels: dict[str, str] = field(default_factory=dict, hash=False)
    per_charge: Budget | None = None
    expires: datetime | None = None
    above: int = 0
    frozen: bool = False
    record: str = "words"
    blocks: Blocks | None = None
    totals: BlockTotals | None = field(default=None, repr=False)
    declared: str = field(default="", compare=False, repr=False)

    @property
    def budget(self) -> Budget:
        """What may be learned in total."""
        return self.filter.budget

    @property
    def spent(self) -> Spend:
        """What was charged since the last refresh, as one sum."""
        return self.filter.spent

    @property
    def root(self) -> int:
        """Number of the dataset's own account: releases are stored for it."""
        return self.path[-1 - self.above]

    @property
    def below(self) -> tuple[int, ...]:
        """Numbers of this account and of those above it, up to the dataset's own, without that one."""
        return self.path[: self.path.index(self.root)]

    @property
    def levels(self) -> str:
        """The path in the form of the log."""
        return ",".join(map(str, self.path))

    def facts(self) -> dict[str, object]:
        """Return what was declared, as JSON values; facts that few accounts have are absent in the others."""
        rare = {"above": self.above, "frozen": self.frozen}
        return {
            "adjacency": self.adjacency,
            "expires": None if self.expires is None else self.expires.isoformat(),
            "labels": self.labels,
            "parent": self.parent,
            "path": list(self.path[1:]),
            "per_charge": None if self.per_charge is None else self.per_charge.to_json(),
            "unit": self.unit,
            "version": self.version,
            **{name: value for name, value in rare.items() if value},
            **({} if self.record == "words" else {"record": self.record}),
            **({} if self.blocks is None else {"blocks": self.blocks.to_json()}),
        }

    def with_filter(self, filter_: Filter, since: int = 0) -> Account:
        """Return the account with a new filter; one with blocks starts again from it, at entry ``since``."""
        if self.blocks is None:
            return replace(self, filter=filter_)
        return self.with_totals(BlockTotals.start(filter_, self.blocks.per_unit, since))

    def with_budget(self, budget: Budget) -> Account:
        """Return the account with another budget and the same sums."""
        if self.totals is None:
            return replace(self, filter=replace(self.filter, budget=budget))
        return self.with_totals(replace(self.totals, all=replace(self.totals.all, budget=budget)))

    def with_totals(self, totals: BlockTotals) -> Account:
        """Return an account with blocks after a charge."""
        return replace(self, totals=totals, filter=totals.whole())

    def to_row(self, chain: Chain, last: Tip) -> AccountRow:
        """Return the stored form, sealed with the entry that changed the account last."""
        parent = self.path[1] if len(self.path) > 1 else 0
        facts = self.declared or canonical(self.facts())
        state = canonical((self.totals or self.filter).to_json())
        return sealed_account(chain, last, AccountRow(self.id, self.name, parent, facts, state, 0, ""))

    @classmethod
    def from_row(cls, row: AccountRow) -> Account:
        """Read the stored form."""
        with readable(f"account {row.name!r}", refusals=True):
            facts, state = json.loads(row.facts), json.loads(row.state)
            if facts.get("blocks") is None:
                return cls.from_facts(row.id, row.name, facts, Filter.from_json(state))
            totals = BlockTotals.from_json(state, Blocks.from_json(facts["blocks"]).per_unit)
            return cls.from_facts(row.id, row.name, facts, totals.all).with_totals(totals)

    @classmethod
    def from_facts(
        cls, id_: int, name: str, facts: dict[str, object], filter_: Filter, declared: str = ""
    ) -> Account:
        """Build an account from its declared facts and its filter."""
        path = facts["path"]
        assert isinstance(path, list)  # noqa: S101 - written by `facts`
        limit, expires = facts["per_charge"], facts["expires"]
        labels = facts["labels"]
        assert isinstance(labels, dict)  # noqa: S101
        account = cls(
            id=id_,
            name=name,
            unit=str(facts["unit"]),
            adjacency=str(facts["adjacency"]),
            version=int(str(facts["version"])),
            filter=filter_,
            path=(id_, *path),
            parent=None if facts["parent"] is None else str(facts["parent"]),
            labels=labels,
            per_charge=None if limit is None else Budget.from_json(limit),
            expires=None if expires is None else datetime.fromisoformat(str(expires)),
            blocks=None if facts.get("blocks") is None else Blocks.from_json(facts["blocks"]),
            above=int(str(facts.get("above", 0))),
            frozen=facts.get("frozen") is True,
            record=str(facts.get("record", "words")),
            declared=declared,
        )
        return account if account.blocks is None else account.with_filter(filter_)


def empty_filter(filter_: Filter) -> Filter:
    """Return a filter with the same budget and the same rule from which nothing was spent."""
    return with_sums(filter_, (Fraction(0),) * len(sums_of(filter_)))


def opening_filter(facts: dict[str, object]) -> Filter:
    """Return the filter that an account was opened with, from the entry that opened it.

    Accounts keep the rule of the schema that opened them: those of schema 1 have no Renyi orders, and those
    of schemas 2 and 3 add up no promises.
    """
    return Filter.start(Budget.from_json(facts["budget"]), version=int(str(facts.get("filter", 1))))


def sealed_account(chain: Chain, tip: Tip, row: AccountRow) -> AccountRow:
    """Return an account's row with its seal, bound to the entry that changed the account last."""
    kind, *facts = ("account", *row[:5], tip.seq)
    return row._replace(seq=tip.seq, seal=chain.seal(tip.mac, kind, *facts))


def sealed_block(chain: Chain, tip: Tip, row: BlockRow) -> BlockRow:
    """Return a block's row with its seal, bound to the entry that charged the block last."""
    return row._replace(seq=tip.seq, seal=chain.seal(tip.mac, "block", *row[:3], tip.seq))


# Printable by their category and yet without ink: fillers, joiners, variation selectors, blank signs.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)


def appearance(name: str) -> str:
    """Return what is left of a name without case, encoding and invisible characters.

    Two names of the same appearance look alike: ``Visits`` and ``visits``, an e-acute in one character and
    in two, ``ward`` in full-width letters. Letters of different scripts that look alike (the Latin and the
    Cyrillic a) stay different.

    Examples
    --------
    >>> appearance("Visits") == appearance("visits")
    True
    >>> appearance("visits 1") == appearance("visits 2")
    False
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    visible = "".join(sign for sign in _INVISIBLE.sub("", folded) if unicodedata.category(sign) != "Cf")
    return unicodedata.normalize("NFKC", " ".join(visible.split()))
