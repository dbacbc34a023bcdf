"""The curator's decisions about accounts, each one function over a transaction: check, then change.

**Accounts** are opened, their budgets raised, their totals restarted.

**Restrictions**: an account that is frozen or past its last day refuses every charge.

**Lost entries**: what may have been spent in them counts as spent, after recovery from an older backup.

Argument. The entries after the backup are lost, so nobody knows what was charged in them; but each charge was
admitted by the filter of its account, and so everything released against an account stayed within its budget,
known and lost together. As one mechanism, the past of an account is therefore within its budget: (epsilon,
delta), or rho. `exhausted` puts this in place of everything that is on record. What the curator grants later
composes with it by addition.

For a budget with epsilon and delta, a filter spends at most one half of delta on charges, and keeps the other
half for its readings by Renyi orders or by rho. Here the past takes the whole delta. So it is charged one
half, no finite rho and no finite divergence at any order: these readings stay closed, and epsilons are added.
If the budget becomes (epsilon', delta'), later charges have deltas of at most delta'/2 - delta/2 in total.
All deltas then add up to at most delta + delta'/2 - delta/2, which is within delta'.

An account that was opened in the lost entries is not known. If it is opened again, its past may be lost too,
so it starts with nothing left, unless the curator has stated which accounts were opened there.

What was charged before the gap pays for one draw (or for the instalments of one run). The draw may have been
taken in the lost entries, and its answer seen. So no draw of an earlier charge can be taken after the gap,
and an earlier payment does not pay for a release that was drawn after it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Filter
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Do, Either, Say, Set
from tacit.ledger._refusals import budget_in_words
from tacit.ledger.accounts._accounts import Account, appearance, empty_filter
from tacit.ledger.accounts._blocks import check_partition, with_sums
from tacit.ledger.checks._chain import Head, canonical
from tacit.parameters import Needed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from tacit.fixes import Fix
    from tacit.ledger.accounts._blocks import Blocks
    from tacit.ledger.stores._store import EntryRow
    from tacit.ledger.stores._transaction import Transaction


_CLOCKS_DIFFER = timedelta(seconds=5)  # between machines that share a ledger


def gap_key(number: int) -> str:
    """Return the key of the entry that records the first, second, ... gap of a log; unique in the store."""
    return f"g:{number}"


def exhausted(filter_: Filter) -> Filter:
    """Return a filter of the same budget and orders that has paid for everything that it may have paid for.

    Examples
    --------
    >>> from tacit.accounting import Budget, Filter
    >>> print(exhausted(Filter.start(Budget(epsilon=3, delta=1e-6))).remaining)
    nothing of epsilon 3
    """
    budget = filter_.budget
    if budget.rho is not None:
        return with_sums(filter_, (None, budget.delta, budget.rho))
    orders = (None for _ in filter_.orders)
    if filter_.promised is None:
        return with_sums(filter_, (budget.epsilon, budget.delta / 2, None, *orders))
    promised = (budget.epsilon, budget.delta / 2)  # each filter of the union has spent its share
    return with_sums(filter_, (budget.epsilon, budget.delta / 4, None, *orders, *promised))


def count_as_spent(transaction: Transaction, account: Account) -> Account:
    """Charge an account its whole budget, in place of what is on record."""
    empty = exhausted(account.filter)
    parts = (empty.epsilon, empty.delta, empty.rho)
    spend = ";".join("-" if part is None else str(part) for part in parts)
    row = transaction.append("lost", account.id, {}, levels=str(account.id), spend=spend)
    emptied = account.with_filter(empty, since=row.seq)
    transaction.change(emptied)
    return emptied


def may_have_been_lost(transaction: Transaction, name: str) -> bool:
    """Whether an account of this name may have been opened in entries that are lost."""
    for gap in gaps(transaction.entry_keyed):
        names = json.loads(gap.body)["opened"]
        if names is None or appearance(name) in {appearance(other) for other in names}:
            return True
    return False


def lost_between(find: Callable[[str], EntryRow | None], number: int, later: int | None = None) -> bool:
    """Whether entries were lost after the entry of this number (and before a later one); find: by its key."""
    return any(number < gap.seq and (later is None or gap.seq < later) for gap in gaps(find))


def refresh_key(account: int, number: int) -> str:
    """Return the key of the entry that starts an account again for the first, second, ... time; unique."""
    return f"f:{account}:{number}"


def refreshed_since(find: Callable[[str], EntryRow | None], path: Sequence[Account], seq: int) -> str | None:
    """Return the name of an account that started again from zero after an entry; None if there is none.

    What was charged before that pays for the people who were in the data then, and for nobody else.
    """
    for account in path:
        number = 1
        while (row := find(refresh_key(account.id, number))) is not None:
            if row.seq > seq:
                return account.name
            number += 1
    return None


def gaps(find: Callable[[str], EntryRow | None]) -> list[EntryRow]:
    """Return the entries that record a gap of the log, in order; ``find`` finds an entry by its key."""
    rows: list[EntryRow] = []
    while (row := find(gap_key(len(rows) + 1))) is not None:
        rows.append(row)
    return rows


def set_frozen(transaction: Transaction, name: str, *, frozen: bool, statement: str, who: str) -> Account:
    """Stop every charge to an account and to those below it, or allow them again, on record."""
    account = transaction.account(name)
    kind = "freeze" if frozen else "unfreeze"
    transaction.append(kind, account.id, {"statement": statement, "who": who})
    changed = replace(account, frozen=frozen, declared="")
    transaction.change(changed)
    return changed


def set_expiry(
    transaction: Transaction, name: str, *, expires: datetime | None, statement: str, who: str
) -> Account:
    """Change the last day of an account, on record."""
    account = transaction.account(name)
    moment = None if expires is None else expires.isoformat()
    transaction.append("expiry", account.id, {"expires": moment, "statement": statement, "who": who})
    changed = replace(account, expires=expires, declared="")
    transaction.change(changed)
    return changed


def check_frozen(path: Sequence[Account]) -> None:
    """Refuse a charge, or the draw of an earlier charge, if the account or one above it is frozen."""
    for level in path:
        if level.frozen:
            which = "" if level is path[0] else f", which is above {path[0].name!r},"
            raise TacitError(
                "account-frozen",
                f"account {level.name!r}{which} is frozen",
                why="its curator has stopped every charge to it and to the accounts below it; the ledger's "
                "log says why",
                fix=Either(
                    Say("repeat a question that was already answered, which is free"),
                    Say("ask the curator to unfreeze the account"),
                ),
            )


def check_expiry(transaction: Transaction, path: Sequence[Account]) -> None:
    """Refuse an account if its last day, or that of one above it, has passed or nobody can say so."""
    for level in path:
        if level.expires is not None:
            _check_clock(transaction, level.name, level.expires)


def _check_clock(transaction: Transaction, name: str, expires: datetime) -> None:
    latest = transaction.latest
    if latest >= expires:
        raise TacitError(
            "account-expired",
            f"account {name!r} expired at {expires.isoformat()}",
            why="nothing can be charged to it, or to an account below it, after its last day",
            fix="open an account for the new period, or ask the curator for a later last day",
        )
    if latest - transaction.now > _CLOCKS_DIFFER:
        raise TacitError(
            "clock-behind",
            f"nobody can say whether account {name!r} has expired: the clock shows {transaction.at}, but the "
            f"ledger has an entry of {latest.isoformat(timespec='milliseconds')}",
            why="a clock that runs backwards would allow charges after the last day",
            fix="set the clock of this machine; if the clock was wrong when that entry was recorded, ask the "
            "curator to remove the last day of the account",
        )


def open_account(
    transaction: Transaction,
    name: str,
    *,
    unit: str | None,
    adjacency: str | None,
    version: int,
    budget: Budget,
    parent: str | None,
    labels: dict[str, str],
    per_charge: Budget | None,
    expires: datetime | None,
    blocks: Blocks | None = None,
    dataset: bool = False,
    record: str = "words",
) -> Account:
    """Open an account, or return the one of that name if every declared fact agrees with it.

    The account of a ``dataset`` stands for it also where it has a parent, and its declaration says nothing
    about the largest single charge and the last day.
    """
    above = None if parent is None else transaction.account(parent)
    unit, adjacency = _protected(name, unit, adjacency, above)
    if blocks is not None:
        check_partition(name, blocks, adjacency, [] if above is None else transaction.path(above))
    declared_account = Account(
        id=0,
        name=name,
        unit=unit,
        adjacency=adjacency,
        version=version,
        filter=Filter.start(budget),
        path=(0,) if above is None else (0, *above.path),
        parent=parent,
        labels=labels,
        per_charge=per_charge,
        expires=expires,
        blocks=blocks,
        above=0 if above is None else len(above.path) if dataset else above.above,
        record=record,
    )
    if blocks is not None:
        declared_account = declared_account.with_filter(declared_account.filter)
    existing = transaction.find_account(name)
    if existing is not None:
        return _reopen(transaction, existing, declared_account, dataset=dataset)
    _check_appearance(transaction, name)
    lost = may_have_been_lost(transaction, name)
    declared = declared_account.facts()
    facts = {**declared, "name": name, "budget": budget.to_json()}
    version_of_filter = declared_account.filter.version
    facts |= {"filter": version_of_filter} if version_of_filter > 1 else {}  # schema 1 had one rule
    row = transaction.append("open", transaction.tip.seq + 1, facts)
    account = replace(
        declared_account, id=row.seq, path=(row.seq, *declared_account.path[1:]), declared=canonical(declared)
    )
    transaction.change(account)
    return count_as_spent(transaction, account) if lost else account


def _protected(name: str, unit: str | None, adjacency: str | None, above: Account | None) -> tuple[str, str]:
    """Return who is protected and what neighbouring means: as declared, or as in the account above."""
    if above is not None:
        unit = above.unit if unit is None else unit
        adjacency = above.adjacency if adjacency is None else adjacency
        if (unit, adjacency) != (above.unit, above.adjacency):
            raise TacitError(
                "account-differs",
                f"account {name!r} would protect {unit!r} ({adjacency}), but {above.name!r} above it "
                f"protects {above.unit!r} ({above.adjacency})",
                why="a charge to an account is also charged to the accounts above it, so all must protect "
                "the same unit",
                fix=Set(unit=above.unit, adjacency=above.adjacency),
            )
    protected: Needed[str] = Needed("patient_id", "for an account without a parent")
    return protected.read("unit", unit), adjacency or "add/remove"


def _check_appearance(transaction: Transaction, name: str) -> None:
    """Refuse the name of a new account that nobody can see, or that looks like another account's name."""
    other = transaction.name_like(name)
    if not appearance(name):
        raise bad_parameter(
            "name", "made of characters that people can see", ascii(name), fix=Set(name="visits")
        )
    if other is not None:
        spelled = repr if name.isascii() and other.isascii() else ascii
        raise TacitError(
            "bad-parameter",
            f"the name {spelled(name)} looks like {spelled(other)}, the name of another account",
            why="the two differ only in case, spacing, encoding or invisible characters, so people would "
            "take one account for the other",
            fix=Either(Set(name=other), Say("a name that people can tell apart from it")),
        )


def _reopen(transaction: Transaction, existing: Account, declared: Account, *, dataset: bool) -> Account:
    limits = () if dataset else ("per_charge", "expires")
    for fact in ("unit", "adjacency", "budget", "parent", *limits):
        if getattr(existing, fact) != getattr(declared, fact):
            raise _account_differs(existing, declared, fact)
    if existing.blocks != declared.blocks and not (
        declared.blocks and declared.blocks.divides_like(existing.blocks)
    ):
        raise _account_differs(existing, declared, "blocks")
    if dataset and existing.root != existing.id:
        raise _belongs_to_another(existing, transaction.account_numbered(existing.root).name)
    if dataset and existing.record != declared.record and declared.record != "shape":
        raise _account_differs(existing, declared, "record")
    if dataset and existing.record != declared.record:
        # from now on the log keeps less, which is always allowed
        existing = replace(existing, record=declared.record, declared="")
        transaction.append("record", existing.id, {"record": existing.record})
        transaction.change(existing)
    if declared.version > existing.version:
        latest = replace(existing, version=declared.version, declared="")
        transaction.append("version", existing.id, {"version": declared.version})
        transaction.change(latest)
        return latest
    return replace(existing, version=declared.version)


def _belongs_to_another(existing: Account, dataset: str) -> TacitError:
    return TacitError(
        "account-differs",
        f"account {existing.name!r} is not a dataset's own account: it belongs to {dataset!r}",
        why="stored releases and certificates name the dataset's own account",
        fix=Say("use another name"),
    )


def _account_differs(existing: Account, declared: Account, fact: str) -> TacitError:
    """Refuse an account that was opened with another fact; the fix carries the old and the new value."""
    old, new = getattr(existing, fact), getattr(declared, fact)
    back = Say("no parent") if fact == "parent" and old is None else Set(**{fact: old})
    fix: Fix = Either(back, Say("use another name"))
    if fact == "budget" and _grows(existing.budget, declared.budget):
        fix = Do("grow-budget", account=existing.name, old=old, new=new)
    words = {
        "per_charge": "largest single charge",
        "expires": "expiry",
        "blocks": "partition into blocks",
        "record": "record of questions",
    }
    label = words.get(fact, fact)
    return TacitError(
        "account-differs",
        f"the {label} of account {existing.name!r} is {_in_words(old)}, not {_in_words(new)}",
        why="everything charged so far was counted under the first declaration, and opening the account "
        "again does not change it",
        fix=fix,
    )


def _in_words(value: object) -> str:
    match value:
        case None:
            return "none"
        case Budget():
            return budget_in_words(value)
        case str():
            return repr(value)
        case _:
            return str(value)


def _grows(old: Budget, new: Budget) -> bool:
    """Whether a budget is of the same kind as the old one and nowhere smaller."""
    pairs = ((old.epsilon, new.epsilon), (old.delta, new.delta), (old.rho, new.rho))
    return all(
        (before is None) == (after is None) and (before is None or after is None or after >= before)
        for before, after in pairs
    )


def check_growth(account: Account, budget: Budget) -> None:
    """Refuse a budget of another kind than the account's, or one that is smaller."""
    if not _grows(account.budget, budget):
        raise bad_parameter(
            "budget",
            f"of the same kind as the present one ({budget_in_words(account.budget)}) and not smaller",
            budget,
            why="a budget only grows; what was promised about the past stays true",
            fix="open another account for a smaller budget",
        )


def grow_budget(transaction: Transaction, name: str, budget: Budget, *, statement: str, who: str) -> Account:
    """Raise a budget, on record."""
    account = transaction.account(name)
    check_growth(account, budget)
    larger = account.with_budget(budget)
    transaction.append("grow", account.id, {"budget": budget.to_json(), "statement": statement, "who": who})
    transaction.change(larger)
    return larger


def refresh_account(transaction: Transaction, name: str, *, statement: str, who: str) -> Account:
    """Start an account's total again from zero, on record."""
    account = transaction.account(name)
    number = 1
    while transaction.entry_keyed(refresh_key(account.id, number)) is not None:
        number += 1
    key = refresh_key(account.id, number)
    row = transaction.append("refresh", account.id, {"statement": statement, "who": who}, key=key)
    fresh = account.with_filter(empty_filter(account.filter), since=row.seq)
    transaction.change(fresh)
    return fresh


def record_unsealing(transaction: Transaction, statement: str, who: str) -> None:
    """Record that an operator removed the seal."""
    transaction.append("unseal", 0, {"statement": statement, "who": who})


def record_gap(
    transaction: Transaction,
    *,
    witnessed: Head | None,
    raised: Mapping[str, Budget],
    opened: Sequence[str] | None,
    statement: str,
    who: str,
) -> Head:
    """Record that the entries after the last one are lost, and count every account as spent."""
    for name, budget in raised.items():
        check_growth(transaction.account(name), budget)
    accounts = transaction.accounts()
    number = len(gaps(transaction.entry_keyed)) + 1
    tip = transaction.tip
    body: dict[str, object] = {
        "last": {"count": tip.seq, "hash": tip.mac.hex()},
        "seen": None if witnessed is None else {"count": witnessed.count, "hash": witnessed.hash},
        "opened": None if opened is None else list(opened),
        "statement": statement,
        "who": who,
    }
    transaction.append("gap", 0, body, key=gap_key(number))
    for account in accounts:
        now = account
        if account.name in raised:
            now = grow_budget(transaction, account.name, raised[account.name], statement=statement, who=who)
        count_as_spent(transaction, now)
    return Head(transaction.tip.seq, transaction.tip.mac.hex())
