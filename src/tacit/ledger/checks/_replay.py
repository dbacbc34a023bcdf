"""The ledger's replay: work out every account from the log alone, entry by entry, with other arithmetic."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger.accounts._accounts import Account, empty_filter, opening_filter
from tacit.ledger.accounts._blocks import (
    BlockFull,
    charge_blocks,
    sums_of,
    sums_taken,
    with_blocks,
    with_sums,
)
from tacit.ledger.accounts._charges import CurveNeeded, fits_limit
from tacit.ledger.accounts._decisions import exhausted
from tacit.ledger.checks._chain import blocks_of, spend_from_text
from tacit.ledger.stores._sql import KINDS
from tacit.ledger.stores._store import Tip

if TYPE_CHECKING:
    from tacit.accounting import Filter
    from tacit.ledger.accounts._blocks import BlockSums
    from tacit.ledger.stores._store import EntryRow, StoreReader

_CHARGES = frozenset({"charge", "draw", "run", "view"})
_DECISIONS = frozenset({"grow", "refresh", "lost", "version", "freeze", "unfreeze", "expiry", "record"})


@dataclass(slots=True)
class _SpendSum:
    """A sum of spends, kept per denominator: a million charges cost a million additions of integers."""

    start: Filter  # untouched: it says which sums there are
    parts: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    infinite: set[int] = field(default_factory=set)

    def add(self, spend: str, times: int) -> None:
        self.hold(_coordinates(spend, self.start), times)

    def hold(self, sums: BlockSums, times: int = 1) -> None:
        """Add a number to each coordinate, some times; None is not finite."""
        for which, value in enumerate(sums):
            if value is None:
                self.infinite.add(which)
            else:
                self.parts[which][value.denominator] += value.numerator * times

    def sums(self) -> BlockSums:
        """Return the sums: epsilon, delta, rho, one for each order, and promised epsilon and delta."""
        return tuple(
            None
            if which in self.infinite
            else sum((Fraction(n, d) for d, n in self.parts[which].items()), Fraction(0))
            for which in range(len(sums_of(self.start)))
        )


@lru_cache(maxsize=4096)
def _coordinates(text: str, start: Filter) -> BlockSums:
    """Read what a recorded spend adds to each sum of one account."""
    return sums_taken(start, spend_from_text(text))


@dataclass(slots=True)
class ReplayedAccount:
    """An account as the log alone describes it."""

    account: Account
    exceeded: bool = False
    blocks: dict[str, BlockSums] = field(default_factory=dict)
    charged: bool = False  # since the cap was checked last
    total: _SpendSum = field(init=False)
    block_totals: dict[str, _SpendSum] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.total = _SpendSum(empty_filter(self.account.filter))

    def add(self, spend: str, blocks: tuple[str, ...], times: int) -> None:
        """Add some equal charges, to the blocks that they name or to the whole."""
        self.charged = True
        if not blocks or self.account.blocks is None:
            self.total.add(spend, times)
            return
        for name in blocks:
            of = self.block_totals.setdefault(name, _SpendSum(empty_filter(self.account.filter)))
            of.add(spend, times)

    def start_again(self, seq: int) -> None:
        """Forget what was spent, as the curator stated in an entry."""
        self.total = _SpendSum(empty_filter(self.account.filter))
        self.block_totals.clear()
        if self.account.totals is not None:
            self.account = replace(self.account, totals=replace(self.account.totals, since=seq))

    def add_up(self) -> None:
        """Work out the filter, and check that nothing exceeds the budget.

        The check is for new charges: after a budget has grown, another reading may be the one that holds.
        A first charge may take the whole budget, which the sums alone do not show: such an account counts as
        exceeded here, and `replay_in_order` decides.
        """
        totals, charged = self.account.totals, self.charged
        self.charged = False
        if totals is None:
            filled = with_sums(self.account.filter, self.total.sums())
            self.account = replace(self.account, filter=filled)
            self.exceeded |= charged and not filled.within
            return
        self.blocks = {name: total.sums() for name, total in self.block_totals.items()}
        everywhere = with_sums(totals.all, self.total.sums())
        totals = with_blocks(replace(totals, all=everywhere), self.blocks)
        self.account = self.account.with_totals(totals)
        filters = map(totals.beside, self.blocks.values()) if self.blocks else [everywhere]
        self.exceeded |= charged and not all(each.within for each in filters)


@dataclass(slots=True)
class ReplayedRun:
    """A run as the log alone describes it: its charge, and how far it is."""

    entry: EntryRow
    parts: int
    claimed: int = 0
    stored: int = 0
    digest: str = ""  # of the last stored payload


class Replay:
    """Follow the log. Spends between two decisions of the curator are counted, then added at once.

    Every filter is monotone in the total: what is within the cap at the end of such a stretch was within it
    at every entry before, so checking the end checks them all.
    """

    def __init__(self) -> None:
        self.accounts: dict[int, ReplayedAccount] = {}
        self.released: dict[tuple[int, int], tuple[int, str, str, int, int]] = {}
        self.runs: dict[int, ReplayedRun] = {}
        self.problems: list[str] = []
        self.gaps: dict[int, int] = {}  # the entries that record a gap, and the last entry before it
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self._block_counts: dict[tuple[str, str, tuple[str, ...]], int] = defaultdict(int)
        self._shapes: set[tuple[str, int, str]] = set()
        self._costs: set[tuple[str, str, str]] = set()
        self._latest: dict[str, EntryRow] = {}  # the last entry that changed some levels, or an account
        self._latest_of_blocks: dict[tuple[str, tuple[str, ...]], EntryRow] = {}
        self._changes: dict[int, Tip] = {}
        self._block_changes: dict[tuple[int, str], Tip] = {}
        self._frozen: set[int] = set()

    def take(self, row: EntryRow) -> None:
        """Take the next entry."""
        if row.kind in _CHARGES:
            if self._frozen and not self._frozen.isdisjoint(self.accounts[row.account].account.path):
                self.problems.append(f"entry {row.seq} charges a frozen account")
            self._latest[row.levels] = row
            blocks = blocks_of(row.body) if ',"blocks":[' in row.body else ()
            if blocks:
                self._latest_of_blocks[row.levels, tuple(blocks)] = row
                self._block_counts[row.levels, row.spend, tuple(blocks)] += 1
            else:
                self._counts[row.levels, row.spend] += 1
            shape = (row.kind, row.account, row.levels)
            if shape not in self._shapes:
                self._check_shape(row)
                self._shapes.add(shape)
            cost = (cost_text(row.body), row.spend, row.levels)
            if cost not in self._costs:
                self._check_cost(row)
                self._costs.add(cost)
            if row.kind == "run":
                self.runs[row.seq] = ReplayedRun(row, json.loads(row.body)["parts"])
            return
        body = json.loads(row.body)
        if row.kind == "release":
            root = self.accounts[row.account].account.root
            which = (body["receipt"], body.get("part", 0))
            self.released[which] = (row.seq, body["sha256"], row.plan, body["version"], root)
            self._follow_run(row, body)
        elif row.kind == "claim":
            if body["receipt"] < max(self.gaps, default=0):
                self.problems.append(f"entry {row.seq} draws for a charge from before entries were lost")
            self._follow_run(row, body)
        elif row.kind == "open":
            self._latest[str(row.seq)] = row
            account = Account.from_facts(row.seq, body["name"], body, opening_filter(body))
            self.accounts[row.seq] = ReplayedAccount(account)
        elif row.kind in _DECISIONS:
            self._decide(row, body)
        elif row.kind == "gap":
            self.gaps[row.seq] = body["last"]["count"]
        elif row.kind not in KINDS:
            self.problems.append(f"entry {row.seq} is of a kind that this version of Tacit does not know")

    def _follow_run(self, row: EntryRow, body: dict[str, Any]) -> None:
        """Check that an instalment of a run is claimed in its turn, and stored only after that, once."""
        run, part = self.runs.get(body["receipt"]), body.get("part", 0)
        if run is None and not part:
            return  # the one draw of a charge
        if run is None or not 1 <= part <= run.parts:
            self.problems.append(f"entry {row.seq} is an instalment that nobody has paid for")
        elif row.kind == "claim":
            if (part, body["after"]) != (run.claimed + 1, run.stored):
                self.problems.append(f"entry {row.seq} claims instalment {part} out of turn")
            run.claimed = part
        elif part != run.claimed or part == run.stored:
            self.problems.append(f"entry {row.seq} stores instalment {part}, which was not claimed for it")
        else:
            run.stored, run.digest = part, body["sha256"]

    def _decide(self, row: EntryRow, body: dict[str, object]) -> None:
        """Apply a decision of the curator."""
        self._latest[str(row.account)] = row
        self._add_up()
        replayed = self.accounts[row.account]
        replayed.add_up()
        account = replayed.account
        if row.kind == "grow":
            budget = Budget.from_json(body["budget"])
            replayed.account = account.with_budget(budget)
        elif row.kind == "refresh":
            replayed.start_again(row.seq)
        elif row.kind == "lost":
            replayed.start_again(row.seq)
            replayed.total.hold(sums_of(exhausted(account.filter)))
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
                expires = body["expires"]
                return {"expires": None if expires is None else datetime.fromisoformat(str(expires))}
        (self._frozen.add if row.kind == "freeze" else self._frozen.discard)(row.account)
        return {"frozen": row.kind == "freeze"}

    def end(self) -> None:
        """Add up what is left and check every cap, after the last entry."""
        self._add_up()
        for replayed in self.accounts.values():
            replayed.add_up()

    def last_change(self, account: int) -> Tip:
        """Return number and hash of the last entry that changed an account."""
        self._work_out_changes()
        return self._changes[account]

    def last_block_change(self, account: int, name: str) -> Tip:
        """Return number and hash of the last entry that charged a block of an account."""
        self._work_out_changes()
        return self._block_changes.get((account, name), Tip(0, b""))

    def _work_out_changes(self) -> None:
        if self._changes:
            return
        nothing = Tip(0, b"")
        for levels, row in self._latest.items():
            for id_ in map(int, levels.split(",")):
                self._changes[id_] = max(self._changes.get(id_, nothing), Tip(row.seq, row.mac))
        for (levels, names), row in self._latest_of_blocks.items():
            for key in product(map(int, levels.split(",")), names):
                self._block_changes[key] = max(self._block_changes.get(key, nothing), Tip(row.seq, row.mac))

    def _add_up(self) -> None:
        for (levels, spend), times in self._counts.items():
            for id_ in levels.split(","):
                self.accounts[int(id_)].add(spend, (), times)
        for (levels, spend, blocks), times in self._block_counts.items():
            for id_ in levels.split(","):
                self.accounts[int(id_)].add(spend, blocks, times)
        self._counts.clear()
        self._block_counts.clear()

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
        cost = Cost.from_json(json.loads(row.body)["cost"])
        if spend.promise is not None and not cost.fits(spend.promise):
            self.problems.append(f"entry {row.seq} records a promise that its cost does not keep")
        stated = cost.spend_at(tuple(order for order, _ in spend.curve))
        parts = [(spend.epsilon, stated.epsilon), (spend.delta, stated.delta), (spend.rho, stated.rho)]
        parts += [(kept, stated.divergence(order)) for order, kept in spend.curve]
        if any(kept is not None and (price is None or kept < price) for kept, price in parts):
            self.problems.append(f"entry {row.seq} records less than its cost")
        for id_ in row.levels.split(","):
            limit = self.accounts[int(id_)].account.per_charge
            if limit is not None and not _within_limit(limit, cost):
                self.problems.append(f"entry {row.seq} is larger than a single charge may be")


def _within_limit(limit: Budget, cost: Cost) -> bool:
    while True:
        try:
            return fits_limit(limit, cost.spend, cost)
        except CurveNeeded as needed:
            needed.compute()


def cost_text(body: str) -> str:
    """Cut the cost out of a charge's body, canonical JSON: ``{"at":...,"cost":...,"purpose":...}``.

    What people wrote (``asked`` before it, ``purpose`` after it) cannot be mistaken for it: inside a JSON
    string every quote follows a backslash.
    """
    start = body.find(',"cost":')
    return body[start : body.find(',"purpose":', start)]


def replay_in_order(reader: StoreReader, accounts: dict[int, ReplayedAccount]) -> None:
    """Add up charges one after another, as the filter did: it rounds up where denominators grow too long."""
    for replayed in accounts.values():
        replayed.exceeded = False
        replayed.blocks = {}
    for row in reader.entries():
        ids = row.levels.split(",") if row.kind in _CHARGES else [str(row.account)]
        for replayed in (accounts[int(id_)] for id_ in ids if int(id_) in accounts):
            replay_entry(replayed, row)
    for replayed in accounts.values():
        totals = replayed.account.totals
        if totals is not None:  # the largest sums again from all blocks, not as the charges kept them
            replayed.account = replayed.account.with_totals(with_blocks(totals, replayed.blocks))


def replay_entry(replayed: ReplayedAccount, row: EntryRow) -> bool:
    """Apply one entry to an account's filter as the ledger did; return whether it changed the filter."""
    account = replayed.account
    if row.kind in _CHARGES:
        _charge_again(replayed, row)
    elif row.kind == "open":
        replayed.account = account.with_filter(opening_filter(json.loads(row.body)))
    elif row.kind == "grow":
        replayed.account = account.with_budget(Budget.from_json(json.loads(row.body)["budget"]))
    elif row.kind in {"lost", "refresh"}:
        start = empty_filter if row.kind == "refresh" else exhausted
        replayed.account = account.with_filter(start(account.filter), since=row.seq)
        replayed.blocks = {}
    else:
        return False
    return True


def _charge_again(replayed: ReplayedAccount, row: EntryRow) -> None:
    account, spend, names = replayed.account, spend_from_text(row.spend), blocks_of(row.body)
    totals = account.totals

    def fits(budget: Budget) -> bool:
        return Cost.from_json(json.loads(row.body)["cost"]).fits(budget)

    try:
        if totals is None:
            replayed.account = replace(account, filter=account.filter.after(spend, fits))
        elif names:
            sums = {name: replayed.blocks.get(name, totals.empty) for name in names}
            totals, charged = charge_blocks(totals, sums, spend, fits)
            replayed.blocks |= charged
            replayed.account = account.with_totals(totals)
        else:
            account.filter.after(spend, fits)
            replayed.account = account.with_totals(replace(totals, all=totals.all.added(spend)))
    except (TacitError, BlockFull):
        replayed.exceeded = True
