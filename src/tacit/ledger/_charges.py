"""The ledger's charges, as one function over a transaction: check every level, then charge all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.ledger._block_charges import charged_blocks, check_blocks
from tacit.ledger._block_totals import BlockFull
from tacit.ledger._chain import Head
from tacit.ledger._curves import fits_alone, fits_limit, orders_of, recorded
from tacit.ledger._receipts import Receipt, account_key, receipt_of
from tacit.ledger._refusals import budget_in_words
from tacit.ledger._restrictions import check_expiry, check_frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting import Budget, Cost, Spend
    from tacit.ledger._accounts import Account
    from tacit.ledger._block_totals import BlockSums
    from tacit.ledger._rows import EntryRow
    from tacit.ledger._transaction import Transaction

#: Which accounts keep a question that is given in its words, or as its shape.
_KEEPS = {"words": frozenset({"words"}), "shape": frozenset({"words", "shape"})}


class BudgetExceeded(Exception):  # noqa: N818 - becomes a refusal
    """A budget does not admit a charge. The message is slow to compute: build it after releasing the lock."""

    def __init__(self, level: Account, spend: Spend, full: BlockFull | None = None) -> None:
        super().__init__(level.name)
        self.level = level
        self.spend = spend
        self.where = (
            f"account {level.name!r}" if full is None else f"account {level.name!r}, block {full.name!r}"
        )
        self.filter = level.filter if full is None else full.filter

    def refusal(self) -> TacitError:
        """Build the message: what is left, and what would fit."""
        try:
            self.filter.after(self.spend)
        except TacitError as error:
            return error.but(what=f"{self.where}: {error.what}", where=self.where)
        raise AssertionError(self.level.name)  # a filter that refuses and admits the same charge


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """A charge as it was asked for; every argument is already read and checked."""

    account: str
    version: int | None
    cost: object
    spend: Spend
    spend_text: str
    adjacency: str
    plan: str
    who: str
    purpose: str
    key: str
    dataset: str = ""
    asked: str = ""
    blocks: tuple[str, ...] = ()
    law: Cost | None = None
    parts: int = 0  # the instalments of a run
    run: int = 0  # the run that a view pays for
    certificate: str = ""
    record: str = "words"  # whether `asked` is the question in words, or its shape

    @property
    def keys(self) -> tuple[str, ...]:
        """The two forms under which the log may hold the key: plain, and with the account's name."""
        return (self.key, account_key(self.account, self.key)) if self.key else ()


def find_charge(
    transaction: Transaction, request: ChargeRequest, account: Account
) -> tuple[EntryRow | None, str]:
    """Find this account's earlier charge with the request's key, or the form of the key for a new one.

    The first account that uses a key holds it in its plain form; for every other account the log adds the
    account's name. So accounts do not disturb each other, and older versions still find plain keys.
    """
    plain, own = request.keys
    found = transaction.entry_with_key(plain)
    if found is None or found.account == account.id:
        return found, plain
    return transaction.entry_with_key(own), own


def check_lineage(transaction: Transaction, account: Account, dataset: str) -> None:
    """Refuse an account whose charges do not reach the dataset's own account, or another dataset's."""
    if not dataset:
        return
    own = transaction.account(dataset)
    if own.id not in account.path or own.root != account.root:
        raise TacitError(
            "account-differs",
            f"account {account.name!r} is not below {dataset!r}, the dataset's own account",
            why="what is learned from a dataset is charged to its budget, even if other accounts pay too",
            fix=Do("choose-account", account=f"{account.name}-{dataset}", dataset=dataset),
        )


def charge(
    transaction: Transaction,
    request: ChargeRequest,
    *,
    kind: str = "charge",
    only: frozenset[int] | None = None,
) -> Receipt:
    """Charge the account and every account above it (or ``only`` some of them), all or none."""
    account = transaction.account(request.account)
    known, key = find_charge(transaction, request, account) if request.key else (None, "")
    if known is not None:
        return same_charge(transaction, known, account, request)
    return new_charge(transaction, request, account, key, kind=kind, only=only)


def new_charge(
    transaction: Transaction,
    request: ChargeRequest,
    account: Account,
    key: str,
    *,
    kind: str,
    only: frozenset[int] | None = None,
) -> Receipt:
    """Charge as `charge` does, if no earlier charge has the key; ``key`` is its form in the log."""
    path = transaction.path(account)
    levels = [level for level in path if only is None or level.id in only]
    _check(transaction, request, path, levels)
    spend, text = request.spend, request.spend_text
    filters = [level.filter for level in levels if level.filter.curve]
    if filters or spend.curve:  # what the charge takes at the orders of all its levels
        spend, text = recorded(spend, request.law or request.cost, orders_of(filters))
    fits = fits_alone(request.law or request.cost)  # for an account, or a block, that nobody has charged yet
    after = [_charged(transaction, level, spend, request.blocks, fits) for level in levels]
    keeps = path[-1 - account.above].record  # what the dataset declares
    rare = {
        "asked": request.asked if keeps in _KEEPS[request.record] else "",
        "blocks": request.blocks,
        "certificate": request.certificate,
        "parts": request.parts,
        "run": request.run,
    }
    body = {
        "cost": request.cost,
        "purpose": request.purpose,
        "version": request.version or account.version,
        "who": request.who,
        **{name: value for name, value in rare.items() if value},
    }
    row = transaction.append(
        kind,
        account.id,
        body,
        levels=",".join(str(level.id) for level in levels),
        spend=text,
        plan=request.plan,
        key=key,
    )
    for level, blocks in after:
        transaction.change(level, blocks)
    return Receipt(
        id=f"{row.seq}-{row.mac.hex()[:16]}",
        account=account.name,
        charged=tuple(level.name for level in levels),
        spend=spend,
        plan=request.plan or None,
        who=request.who,
        purpose=request.purpose,
        key=request.key[2:] or None,
        at=transaction.at,
        head=Head(row.seq, row.mac.hex()),
        blocks=request.blocks,
        certificate=request.certificate,
    )


def _check(
    transaction: Transaction, request: ChargeRequest, path: list[Account], levels: list[Account]
) -> None:
    """Refuse a charge for every reason but the budget; ``levels`` are the accounts of the path that pay."""
    if any(level.frozen or level.expires is not None for level in path):
        check_frozen(path)
        check_expiry(transaction, path)
    for level in levels:
        if level.adjacency != request.adjacency or level.per_charge is not None:
            _check_limit(level, request)
    if request.blocks:
        check_blocks(path, request.blocks)


def _check_limit(level: Account, request: ChargeRequest) -> None:
    """Refuse a cost for another adjacency, and one above the largest single charge of an account."""
    if request.adjacency != level.adjacency:
        raise TacitError(
            "adjacency-mixed",
            f"the cost is for the adjacency {request.adjacency}, but account {level.name!r} has the "
            f"adjacency {level.adjacency}",
            why="the same noise protects differently under the two kinds of adjacency",
            fix=f"compute the cost for the adjacency {level.adjacency}",
        )
    if level.per_charge is not None and not fits_limit(
        level.per_charge, request.spend, request.law or request.cost
    ):
        raise TacitError(
            "charge-too-large",
            f"account {level.name!r} allows at most {budget_in_words(level.per_charge)} in one charge",
            fix="ask for less at once: a smaller epsilon or rho",
        )


def _charged(
    transaction: Transaction,
    level: Account,
    spend: Spend,
    blocks: tuple[str, ...],
    fits: Callable[[Budget], bool],
) -> tuple[Account, dict[str, BlockSums]]:
    """Charge one level: the blocks that a charge names, or all of the data; return the blocks' new sums."""
    if level.totals is None:
        after = level.filter.charged(spend, fits)
        if after is None:
            raise BudgetExceeded(level, spend)  # the filter's message is slow to compute, so it comes later
        return replace(level, filter=after), {}
    if not blocks:
        if not level.filter.admits(spend, fits):
            raise BudgetExceeded(level, spend)
        everywhere = replace(level.totals, all=level.totals.all.added(spend))
        return level.with_totals(everywhere), {}
    try:
        return charged_blocks(transaction, level, spend, blocks, fits)
    except BlockFull as full:
        raise BudgetExceeded(level, spend, full) from None


def same_charge(
    transaction: Transaction, known: EntryRow, account: Account, request: ChargeRequest
) -> Receipt:
    """Return the receipt of the earlier charge with the same key, if it was the same charge."""
    body = json.loads(known.body)
    same = (
        known.account == account.id
        and known.plan == request.plan
        and body.get("cost") == request.cost
        and body.get("who") == request.who
        and body.get("purpose") == request.purpose
        and body.get("asked", request.asked) == request.asked  # entries of older versions have none
        and body.get("parts", 0) == request.parts
        and request.version in {None, body.get("version")}
        and tuple(body.get("blocks", ())) == request.blocks
    )
    if not same:
        raise TacitError(
            "key-reused",
            f"the key {request.key[2:]!r} was used for another charge (entry {known.seq})",
            why="a key belongs to one charge: the same charge sent again gets the same receipt, but "
            "another charge is refused",
            fix="give every charge its own key",
        )
    return receipt_of(known, transaction.names(known))
