"""The ledger's operations on an account, each one function over a transaction: check, then change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Filter
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Do, Either, Say, Set
from tacit.ledger._accounts import Account, empty_filter
from tacit.ledger._block_charges import check_partition
from tacit.ledger._chain import canonical
from tacit.ledger._likeness import appearance
from tacit.ledger._lost_entries import count_as_spent, may_have_been_lost, refresh_key
from tacit.ledger._refusals import budget_in_words
from tacit.parameters import Needed

if TYPE_CHECKING:
    from datetime import datetime

    from tacit.fixes import Fix
    from tacit.ledger._blocks import Blocks
    from tacit.ledger._transaction import Transaction


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
    wanted = Account(
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
        wanted = wanted.with_filter(wanted.filter)
    found = transaction.find_account(name)
    if found is not None:
        return _reopen(transaction, found, wanted, dataset=dataset)
    _check_appearance(transaction, name)
    lost = may_have_been_lost(transaction, name)
    declared = wanted.facts()
    facts = {**declared, "name": name, "budget": budget.to_json()}
    facts |= {"filter": 2} if wanted.filter.curve else {}  # schema 1 had no orders
    row = transaction.append("open", transaction.tip.seq + 1, facts)
    account = replace(wanted, id=row.seq, path=(row.seq, *wanted.path[1:]), declared=canonical(declared))
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
        shown = repr if name.isascii() and other.isascii() else ascii
        raise TacitError(
            "bad-parameter",
            f"the name {shown(name)} looks like {shown(other)}, the name of another account",
            why="the two differ only in case, spacing, encoding or invisible characters, so people would "
            "take one account for the other",
            fix=Either(Set(name=other), Say("a name that people can tell apart from it")),
        )


def _reopen(transaction: Transaction, found: Account, wanted: Account, *, dataset: bool) -> Account:
    limits = () if dataset else ("per_charge", "expires")
    for fact in ("unit", "adjacency", "budget", "parent", *limits):
        if getattr(found, fact) != getattr(wanted, fact):
            raise _account_differs(found, wanted, fact)
    if found.blocks != wanted.blocks and not (wanted.blocks and wanted.blocks.divides_like(found.blocks)):
        raise _account_differs(found, wanted, "blocks")
    if dataset and found.root != found.id:
        raise _belongs_to_another(found, transaction.account_numbered(found.root).name)
    if dataset and found.record != wanted.record and wanted.record != "shape":
        raise _account_differs(found, wanted, "record")
    if dataset and found.record != wanted.record:  # from now on the log keeps less, which is always allowed
        found = replace(found, record=wanted.record, declared="")
        transaction.append("record", found.id, {"record": found.record})
        transaction.change(found)
    if wanted.version > found.version:
        latest = replace(found, version=wanted.version, declared="")
        transaction.append("version", found.id, {"version": wanted.version})
        transaction.change(latest)
        return latest
    return replace(found, version=wanted.version)


def _belongs_to_another(found: Account, dataset: str) -> TacitError:
    return TacitError(
        "account-differs",
        f"account {found.name!r} is not a dataset's own account: it belongs to {dataset!r}",
        why="stored releases and certificates name the dataset's own account",
        fix=Say("use another name"),
    )


def _account_differs(found: Account, wanted: Account, fact: str) -> TacitError:
    """Refuse an account that was opened with another fact; the fix carries the old and the new value."""
    old, new = getattr(found, fact), getattr(wanted, fact)
    back = Say("no parent") if fact == "parent" and old is None else Set(**{fact: old})
    fix: Fix = Either(back, Say("use another name"))
    if fact == "budget" and _grows(found.budget, wanted.budget):
        fix = Do("grow-budget", account=found.name, old=old, new=new)
    words = {
        "per_charge": "largest single charge",
        "expires": "expiry",
        "blocks": "partition into blocks",
        "record": "record of questions",
    }
    label = words.get(fact, fact)
    return TacitError(
        "account-differs",
        f"the {label} of account {found.name!r} is {_in_words(old)}, not {_in_words(new)}",
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
