"""The ledger's replay: work out every account from the log alone, entry by entry, with other arithmetic."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget, Cost, Filter, Spend
from tacit.errors import TacitError
from tacit.ledger._accounts import Account
from tacit.ledger._chain import spend_from_text
from tacit.ledger._lost_entries import exhausted
from tacit.ledger._rows import Tip

if TYPE_CHECKING:
    from tacit.ledger._rows import EntryRow
    from tacit.ledger._store import StoreReader

__all__ = ["Replay", "ReplayedAccount", "cost_text", "replay_in_order"]

_CHARGES = frozenset({"charge", "draw", "view"})
_DECISIONS = frozenset({"grow", "refresh", "lost", "version", "freeze", "unfreeze", "expiry", "record"})
_NOTHING = Spend(0, 0, 0)


@dataclass(slots=True)
class _SpendSum:
    """A sum of spends, kept per denominator: a million charges cost a million additions of integers."""

    parts: tuple[dict[int, int], dict[int, int], dict[int, int]] = field(
        default_factory=lambda: (defaultdict(int), defaultdict(int), defaultdict(int))
    )
    infinite: set[int] = field(default_factory=set)

    def add(self, spend: str, times: int) -> None:
        for which, text in enumerate(spend.split(";")):
            if text == "-":
                self.infinite.add(which)
            else:
                above, _, below = text.partition("/")
                self.parts[which][int(below or 1)] += int(above) * times

    def fill(self, filter_: Filter) -> Filter:
        """Return a filter of the same budget that holds exactly these sums."""
        epsilon, delta, rho = (sum((Fraction(n, d) for d, n in p.items()), Fraction(0)) for p in self.parts)
        return replace(
            filter_,
            epsilon=None if 0 in self.infinite else epsilon,
            delta=delta,
            rho=None if 2 in self.infinite else rho,
        )


@dataclass(slots=True)
class ReplayedAccount:
    """An account as the log alone describes it."""

    account: Account
    total: _SpendSum = field(default_factory=_SpendSum)
    exceeded: bool = False


class Replay:
    """Follow the log. Spends between two decisions of the curator are counted, then added at once.

    Every filter is monotone in the total: what is within the cap at the end of such a stretch was within it
    at every entry before, so checking the end checks them all.
    """

    def __init__(self) -> None:
        self.accounts: dict[int, ReplayedAccount] = {}
        self.released: dict[int, tuple[int, str, str, int, int]] = {}
        self.problems: list[str] = []
        self.gaps: dict[int, int] = {}  # the entries that record a gap, and the last entry before it
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self._shapes: set[tuple[str, int, str]] = set()
        self._costs: set[tuple[str, str, str]] = set()
        self._latest: dict[str, EntryRow] = {}  # the last entry that changed some levels, or an account
        self._changes: dict[int, Tip] = {}
        self._frozen: set[int] = set()

    def take(self, row: EntryRow) -> None:
        """Take the next entry."""
        if row.kind in _CHARGES:
            if self._frozen and not self._frozen.isdisjoint(self.accounts[row.account].account.path):
                self.problems.append(f"entry {row.seq} charges a frozen account")
            self._latest[row.levels] = row
            self._counts[row.levels, row.spend] += 1
            shape = (row.kind, row.account, row.levels)
            if shape not in self._shapes:
                self._check_shape(row)
                self._shapes.add(shape)
            cost = (cost_text(row.body), row.spend, row.levels)
            if cost not in self._costs:
                self._check_cost(row)
                self._costs.add(cost)
            return
        body = json.loads(row.body)
        if row.kind == "release":
            root = self.accounts[row.account].account.root
            self.released[body["receipt"]] = (row.seq, body["sha256"], row.plan, body["version"], root)
        elif row.kind == "open":
            self._latest[str(row.seq)] = row
            filter_ = Filter.start(Budget.from_json(body["budget"]))
            account = Account.from_facts(row.seq, body["name"], body, filter_)
            self.accounts[row.seq] = ReplayedAccount(account)
        elif row.kind in _DECISIONS:
            self._decide(row, body)
        elif row.kind == "gap":
            self.gaps[row.seq] = body["last"]["count"]

    def _decide(self, row: EntryRow, body: dict[str, object]) -> None:
        """Apply a decision of the curator."""
        self._latest[str(row.account)] = row
        self._add_up()
        replayed = self.accounts[row.account]
        self._check_cap(replayed)
        account = replayed.account
        if row.kind == "grow":
            budget = Budget.from_json(body["budget"])
            replayed.account = replace(account, filter=replace(account.filter, budget=budget))
        elif row.kind == "refresh":
            replayed.total = _SpendSum()
        elif row.kind == "lost":
            replayed.total = _SpendSum()
            replayed.total.add(row.spend, 1)
        else:
            replayed.account = replace(account, **self._declared(row, body), declared="")

    def _declared(self, row: EntryRow, body: dict[str, object]) -> dict[str, Any]:
        """Return the facts that a decision of the curator changed."""
        match row.kind:
            case "version":
                return {"version": int(str(body["version"]))}
            case "record":
                return {"record": str(body["record"])}
            case "expiry":
                written = body["expires"]
                return {"expires": None if written is None else datetime.fromisoformat(str(written))}
        (self._frozen.add if row.kind == "freeze" else self._frozen.discard)(row.account)
        return {"frozen": row.kind == "freeze"}

    def end(self) -> None:
        """Add up what is left and check every cap, after the last entry."""
        self._add_up()
        for replayed in self.accounts.values():
            self._check_cap(replayed)

    def last_change(self, account: int) -> Tip:
        """Return number and hash of the last entry that changed an account."""
        if not self._changes:
            for levels, row in self._latest.items():
                for id_ in map(int, levels.split(",")):
                    self._changes[id_] = max(self._changes.get(id_, Tip(0, b"")), Tip(row.seq, row.mac))
        return self._changes[account]

    def _add_up(self) -> None:
        for (levels, spend), times in self._counts.items():
            for id_ in levels.split(","):
                self.accounts[int(id_)].total.add(spend, times)
        self._counts.clear()

    def _check_cap(self, replayed: ReplayedAccount) -> None:
        filled = replayed.total.fill(replayed.account.filter)
        replayed.account = replace(replayed.account, filter=filled)
        replayed.exceeded |= not filled.admits(_NOTHING)

    def _check_shape(self, row: EntryRow) -> None:
        """Check that a charge is paid on every level, and a view on some levels below the dataset."""
        account = self.accounts[row.account].account
        levels = tuple(int(id_) for id_ in row.levels.split(","))
        right = set(levels) <= set(account.below) if row.kind == "view" else levels == account.path
        if not right:
            self.problems.append(f"entry {row.seq} charges the wrong accounts")

    def _check_cost(self, row: EntryRow) -> None:
        """Check that the recorded spend covers the cost, and that no single charge was too large."""
        spend = spend_from_text(row.spend)
        stated = Cost.from_json(json.loads(row.body)["cost"]).spend
        parts = zip(
            (spend.epsilon, spend.delta, spend.rho), (stated.epsilon, stated.delta, stated.rho), strict=True
        )
        if any(kept is not None and (cost is None or kept < cost) for kept, cost in parts):
            self.problems.append(f"entry {row.seq} records less than its cost")
        for id_ in row.levels.split(","):
            limit = self.accounts[int(id_)].account.per_charge
            if limit is not None and not Filter.start(limit).admits(stated):
                self.problems.append(f"entry {row.seq} is larger than a single charge may be")


def cost_text(body: str) -> str:
    """Cut the cost out of a charge's body, canonical JSON: ``{"at":...,"cost":...,"purpose":...}``.

    What people wrote (``asked`` before it, ``purpose`` after it) cannot be mistaken for it: inside a JSON
    string every quote follows a backslash.
    """
    start = body.find(',"cost":')
    return body[start : body.find(',"purpose":', start)]


def replay_in_order(reader: StoreReader, accounts: dict[int, ReplayedAccount]) -> None:
    """Add up charges one after another, as the filter did: it rounds up where denominators grow too long."""
    filters: dict[int, Filter] = {}
    for replayed in accounts.values():
        replayed.exceeded = False
    for row in reader.entries():
        if row.kind in _CHARGES:
            for id_ in filters.keys() & {int(level) for level in row.levels.split(",")}:
                try:
                    filters[id_] = filters[id_].after(spend_from_text(row.spend))
                except TacitError:
                    accounts[id_].exceeded = True
        elif row.kind == "open" and row.seq in accounts:
            filters[row.seq] = Filter.start(Budget.from_json(json.loads(row.body)["budget"]))
        elif row.kind == "grow" and row.account in accounts:
            budget = Budget.from_json(json.loads(row.body)["budget"])
            filters[row.account] = replace(filters[row.account], budget=budget)
        elif row.kind == "refresh" and row.account in accounts:
            filters[row.account] = Filter.start(filters[row.account].budget)
        elif row.kind == "lost" and row.account in accounts:
            filters[row.account] = exhausted(filters[row.account].budget)
    for id_, filter_ in filters.items():
        accounts[id_].account = replace(accounts[id_].account, filter=filter_)
