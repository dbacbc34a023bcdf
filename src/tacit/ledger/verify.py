"""Check a ledger without trusting it: the chain, every total replayed from the log, the witness."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Cost, Filter, Spend
from tacit.errors import TacitError
from tacit.ledger.accounts import Account
from tacit.ledger.chain import START, Head, spend_from_text
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.ledger.chain import Chain, Row
    from tacit.ledger.store import Reader

__all__ = ["Verification", "verify"]

_CHARGES = frozenset({"charge", "draw", "view"})
_NOTHING = Spend(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the whole ledger found.

    Parameters
    ----------
    ok
        Whether the chain holds, every total equals its replay, no cap was ever exceeded, every stored release
        matches its entry and the log contains what the witnesses have seen.
    complete
        Whether a witness from outside the store proves that nothing up to `witnessed` is missing.
    entries, accounts, releases
        How many were checked.
    head
        The log's end; keep it elsewhere as a witness.
    witnessed
        Up to which entry the given witness vouches; 0 without one.
    problems
        What is wrong, in words; empty when `ok`.

    Examples
    --------
    >>> from tacit.ledger import Ledger
    >>> with Ledger.memory() as ledger:
    ...     print(ledger.verify())
    consistent, completeness not proven (checked: entries 0, accounts 0, releases 0)
    """

    ok: bool
    complete: bool
    entries: int
    accounts: int
    releases: int
    head: Head
    witnessed: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        seen = f"(checked: entries {self.entries:,}, accounts {self.accounts:,}, releases {self.releases:,})"
        if not self.ok:
            return "\n".join([f"NOT consistent {seen}", *(f"  - {problem}" for problem in self.problems)])
        if not self.complete:
            return f"consistent, completeness not proven {seen}"
        return f"consistent and complete up to entry {self.witnessed:,} by the witness {seen}"


@dataclass(slots=True)
class _Total:
    """A sum of spends, kept per denominator so that a million charges cost a million integer additions."""

    parts: tuple[dict[int, int], dict[int, int], dict[int, int]] = field(
        default_factory=lambda: (defaultdict(int), defaultdict(int), defaultdict(int))
    )
    endless: set[int] = field(default_factory=set)

    def add(self, spend: str, times: int) -> None:
        for which, text in enumerate(spend.split(";")):
            if text == "-":
                self.endless.add(which)
            else:
                above, _, below = text.partition("/")
                self.parts[which][int(below or 1)] += int(above) * times

    def fill(self, filter_: Filter) -> Filter:
        """Return a filter of the same budget that holds exactly these sums."""
        epsilon, delta, rho = (sum((Fraction(n, d) for d, n in p.items()), Fraction(0)) for p in self.parts)
        return replace(
            filter_,
            epsilon=None if 0 in self.endless else epsilon,
            delta=delta,
            rho=None if 2 in self.endless else rho,
        )


@dataclass(slots=True)
class _Line:
    """An account as the log alone tells it."""

    account: Account
    total: _Total = field(default_factory=_Total)
    exceeded: bool = False


class _Replay:
    """Follow the log entry by entry. Spends between two acts of the curator are counted, then added at once.

    Every filter is monotone in the total: what is within the cap at the end of such a stretch was within it
    at every entry before, so checking the end checks them all.
    """

    def __init__(self) -> None:
        self.lines: dict[int, _Line] = {}
        self.released: dict[int, tuple[int, str, str, int, int]] = {}
        self.problems: list[str] = []
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self._shapes: set[tuple[str, int, str]] = set()
        self._costs: set[tuple[str, str, str]] = set()

    def take(self, row: Row) -> None:
        if row.kind in _CHARGES:
            self._counts[row.levels, row.spend] += 1
            shape = (row.kind, row.account, row.levels)
            if shape not in self._shapes:
                self._check_shape(row)
                self._shapes.add(shape)
            cost = (_cost_text(row.body), row.spend, row.levels)
            if cost not in self._costs:
                self._check_cost(row)
                self._costs.add(cost)
            return
        body = json.loads(row.body)
        if row.kind == "release":
            root = self.lines[row.account].account.root
            self.released[body["receipt"]] = (row.seq, body["sha256"], row.plan, body["version"], root)
        elif row.kind == "open":
            filter_ = Filter.start(Budget.from_json(body["budget"]))
            account = Account.from_facts(row.seq, body["name"], body, filter_)
            self.lines[row.seq] = _Line(account)
        elif row.kind in {"grow", "refresh", "version"}:
            self._act(row, body)

    def _act(self, row: Row, body: dict[str, object]) -> None:
        self._add_up()
        line = self.lines[row.account]
        self._check_cap(line)
        if row.kind == "grow":
            budget = Budget.from_json(body["budget"])
            line.account = replace(line.account, filter=replace(line.account.filter, budget=budget))
        elif row.kind == "refresh":
            line.total = _Total()
        else:
            line.account = replace(line.account, version=int(str(body["version"])), declared="")

    def end(self) -> None:
        self._add_up()
        for line in self.lines.values():
            self._check_cap(line)

    def _add_up(self) -> None:
        for (levels, spend), times in self._counts.items():
            for id_ in levels.split(","):
                self.lines[int(id_)].total.add(spend, times)
        self._counts.clear()

    def _check_cap(self, line: _Line) -> None:
        line.account = replace(line.account, filter=line.total.fill(line.account.filter))
        line.exceeded |= not line.account.filter.admits(_NOTHING)

    def _check_shape(self, row: Row) -> None:
        """Check that a charge pays on its whole lineage, and a view on some of it below the dataset."""
        path = self.lines[row.account].account.path
        levels = tuple(int(id_) for id_ in row.levels.split(","))
        right = set(levels) <= set(path[:-1]) if row.kind == "view" else levels == path
        if not right:
            self.problems.append(f"entry {row.seq} charges the wrong accounts")

    def _check_cost(self, row: Row) -> None:
        """Check that the recorded spend covers the cost, and that no single charge was too large."""
        spend = spend_from_text(row.spend)
        said = Cost.from_json(json.loads(row.body)["cost"]).spend
        parts = zip(
            (spend.epsilon, spend.delta, spend.rho), (said.epsilon, said.delta, said.rho), strict=True
        )
        if any(kept is not None and (cost is None or kept < cost) for kept, cost in parts):
            self.problems.append(f"entry {row.seq} records less than its cost")
        for id_ in row.levels.split(","):
            limit = self.lines[int(id_)].account.per_charge
            if limit is not None and not Filter.start(limit).admits(said):
                self.problems.append(f"entry {row.seq} takes more than one charge may")


def _cost_text(body: str) -> str:
    """Cut the cost out of a charge's body, canonical JSON: ``{"at":...,"cost":...,"purpose":...}``.

    What people wrote (``asked`` before, ``purpose`` after) cannot be taken for it: inside a text every quote
    has a backslash before it.
    """
    start = body.find(',"cost":')
    return body[start : body.find(',"purpose":', start)]


@progress("Checking the ledger")
def verify(
    reader: Reader, chain: Chain, witnesses: Sequence[tuple[str, Head]], *, proves: bool
) -> Verification:
    """Check everything; ``proves`` tells whether the last witness was handed in from outside."""
    problems: list[str] = list(reader.check())
    replay = _Replay()
    awaited: dict[int, list[tuple[str, Head]]] = defaultdict(list)
    for name, head in witnesses:
        awaited[head.count].append((name, head))
    before, count = START, 0
    for row in reader.rows():
        if row.seq != count + 1:
            problems.append(f"entry {count + 1} is missing")
            break
        mac = chain.link(before, *row[:-1])
        if mac != row.mac:
            problems.append(
                f"entry {row.seq} does not match the keyed chain: it was changed, or something before it"
            )
            break
        before, count = mac, row.seq
        try:
            replay.take(row)
        except (KeyError, ValueError, TypeError, AssertionError, TacitError) as error:
            problems.append(f"entry {row.seq} cannot be read ({type(error).__name__})")
            break
        if count in awaited:
            problems += [
                f"entry {count} is not the one that {name} has seen"
                for name, head in awaited[count]
                if head.hash != mac.hex()
            ]
    else:
        replay.end()
        problems += replay.problems
        problems += _compare_accounts(reader, replay)
    problems += [
        f"{name} has seen {at:,} entries, the ledger has {count:,}: it was cut or an old copy was put back"
        for at, seen in awaited.items()
        if at > count
        for name, _ in seen
    ]
    releases = _check_releases(reader, replay, problems)
    witnessed = witnesses[-1][1].count if proves else 0
    return Verification(
        ok=not problems,
        complete=proves and not problems,
        entries=count,
        accounts=len(replay.lines),
        releases=releases,
        head=Head(count, before.hex()),
        witnessed=witnessed,
        problems=tuple(problems),
    )


def _compare_accounts(reader: Reader, replay: _Replay) -> list[str]:
    problems: list[str] = []
    stored: dict[int, Account] = {}
    for row in reader.accounts():
        try:
            account = Account.from_row(row)
        except (KeyError, ValueError, TypeError, AssertionError, TacitError):
            problems.append(f"account {row.name!r} cannot be read")
            continue
        stored[row.id] = account
        if row.parent != (account.path[1] if len(account.path) > 1 else 0):
            problems.append(f"account {row.name!r} is not below the account that the log says")
    doubtful = {
        id_
        for id_, line in replay.lines.items()
        if line.exceeded or id_ not in stored or stored[id_].filter != line.account.filter
    }
    if doubtful:
        _replay_one_by_one(reader, {id_: replay.lines[id_] for id_ in doubtful})
    for id_, line in replay.lines.items():
        found, name = stored.pop(id_, None), line.account.name
        if line.exceeded:
            problems.append(f"account {name!r} was charged beyond its budget")
        if found is None:
            problems.append(f"account {name!r} is missing")
        elif found.filter != line.account.filter:
            problems.append(f"the total of account {name!r} is not what the log adds up to")
        elif found != line.account:
            problems.append(f"account {name!r} is not as the log declares it")
    problems += [f"account {account.name!r} is not in the log" for account in stored.values()]
    return problems


def _replay_one_by_one(reader: Reader, lines: dict[int, _Line]) -> None:
    """Add charges up in their order, as the filter did: it rounds up where denominators grow too long."""
    filters: dict[int, Filter] = {}
    for line in lines.values():
        line.exceeded = False
    for row in reader.rows():
        if row.kind in _CHARGES:
            for id_ in filters.keys() & {int(level) for level in row.levels.split(",")}:
                try:
                    filters[id_] = filters[id_].after(spend_from_text(row.spend))
                except TacitError:
                    lines[id_].exceeded = True
        elif row.kind == "open" and row.seq in lines:
            filters[row.seq] = Filter.start(Budget.from_json(json.loads(row.body)["budget"]))
        elif row.kind == "grow" and row.account in lines:
            budget = Budget.from_json(json.loads(row.body)["budget"])
            filters[row.account] = replace(filters[row.account], budget=budget)
        elif row.kind == "refresh" and row.account in lines:
            filters[row.account] = Filter.start(filters[row.account].budget)
    for id_, filter_ in filters.items():
        lines[id_].account = replace(lines[id_].account, filter=filter_)


def _check_releases(reader: Reader, replay: _Replay, problems: list[str]) -> int:
    checked = 0
    awaited = dict(replay.released)
    for release in reader.releases():
        checked += 1
        digest = hashlib.sha256(release.payload).hexdigest()
        found = (release.seq, digest, release.plan, release.version, release.root)
        if awaited.pop(release.receipt, None) != found:
            problems.append(f"the stored release of receipt {release.receipt} is not the one that was stored")
    problems += [f"the stored release of receipt {receipt} is missing" for receipt in awaited]
    return checked
