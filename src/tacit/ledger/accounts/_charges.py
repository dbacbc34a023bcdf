"""The ledger's charges, as one function over a transaction: check every level, then charge all of them.

**Spends at Renyi orders** are computed once, and never while the store is locked. A filter of an
(epsilon, delta) budget adds up what a cost takes at a few Renyi orders of its own, and reads the cost of a
first charge as a whole. The first computation of such a curve can be slow. So a transaction only looks it up.
Where it is not known yet, the transaction signals `CurveNeeded`; the caller computes it outside and asks
again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting import Cost, Filter, Spend
from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.ledger._refusals import budget_in_words
from tacit.ledger.accounts._blocks import BlockFull, charged_blocks, check_blocks
from tacit.ledger.accounts._decisions import check_expiry, check_frozen
from tacit.ledger.checks._chain import Head, spend_from_text, spend_to_text
from tacit.ledger.draws._receipts import Receipt, account_key, receipt_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tacit.accounting import Budget
    from tacit.ledger.accounts._accounts import Account
    from tacit.ledger.accounts._blocks import BlockSums
    from tacit.ledger.stores._store import EntryRow
    from tacit.ledger.stores._transaction import Transaction


_KNOWN: dict[tuple[Cost, tuple[Fraction, ...]], Spend] = {}
#: By the identity of a spend: the spend itself, some orders, what it is at them, and its text.
_RECORDED: dict[int, tuple[Spend, tuple[Fraction, ...], Spend, str]] = {}
_FITS: dict[tuple[Cost, Budget], bool] = {}
_MAX_CACHED = 4096
#: Which accounts keep a question that is given in its words, or as its shape.
_KEEPS = {"words": frozenset({"words"}), "shape": frozenset({"words", "shape"})}


class CurveNeeded(Exception):  # noqa: N818 - a signal between a transaction and its caller
    """A transaction needs what a cost takes at some orders; compute it without the lock, then ask again."""

    def __init__(self, cost: Cost, orders: tuple[Fraction, ...]) -> None:
        super().__init__()
        self.cost = cost
        self.orders = orders

    def compute(self) -> None:
        """Compute the spend and keep it."""
        spend = self.cost.spend_at(self.orders)
        if len(_KNOWN) >= _MAX_CACHED:
            _KNOWN.clear()
        _KNOWN[self.cost, self.orders] = spend


class FitNeeded(CurveNeeded):
    """A transaction needs to know whether a whole cost fits a budget, which is as slow to compute."""

    def __init__(self, cost: Cost, budget: Budget) -> None:
        super().__init__(cost, ())
        self.budget = budget

    def compute(self) -> None:
        """Compute whether the cost fits, and keep it."""
        fits = self.cost.fits(self.budget)
        if len(_FITS) >= _MAX_CACHED:
            _FITS.clear()
        _FITS[self.cost, self.budget] = fits


def fits_alone(cost: object) -> Callable[[Budget], bool]:
    """Return how to tell whether a cost (or its stored form), read as a whole, stays within a budget."""

    def fits(budget: Budget) -> bool:
        law = cost if isinstance(cost, Cost) else Cost.from_json(cost)
        fit = _FITS.get((law, budget))
        if fit is None:
            raise FitNeeded(law, budget)
        return fit

    return fits


def orders_of(filters: Iterable[Filter]) -> tuple[Fraction, ...]:
    """Return the orders of some filters together, ascending."""
    each = [filter_.orders for filter_ in filters if filter_.curve]
    if not each or all(orders == each[0] for orders in each[1:]):
        return each[0] if each else ()
    return tuple(sorted({order for orders in each for order in orders}))


def recorded(spend: Spend, cost: object, orders: tuple[Fraction, ...]) -> tuple[Spend, str]:
    """Return what a charge takes at some orders (see `at_orders`), and the log's text of it.

    Requests of equal costs share one spend, so it is found again by its identity, which is quick to compare.
    """
    record = _RECORDED.get(id(spend))
    if record is not None and record[0] is spend and record[1] == orders:
        return record[2:]
    at_known = at_orders(spend, cost, orders)
    if len(_RECORDED) >= _MAX_CACHED:
        _RECORDED.clear()
    text = spend_to_text(at_known)
    _RECORDED[id(spend)] = (spend, orders, at_known, text)
    return at_known, text


def at_orders(spend: Spend, cost: object, orders: tuple[Fraction, ...]) -> Spend:
    """Return what a recorded or a new charge takes at some orders, or signal that it must be computed.

    ``spend`` is what was recorded, ``cost`` the cost in its stored form. What is missing in the recorded
    curve is computed from the cost; nothing becomes less than what was recorded.
    """
    curve = dict(spend.curve)
    if all(order in curve for order in orders):
        points = [(order, curve[order]) for order in orders]
        return Spend(spend.epsilon, spend.delta, spend.rho, points, spend.promise)
    law = cost if isinstance(cost, Cost) else Cost.from_json(cost)
    known_spend = _KNOWN.get((law, orders))
    if known_spend is None:
        raise CurveNeeded(law, orders)
    known = (known_spend.epsilon, known_spend.delta, known_spend.rho, known_spend.promise)
    if known == (spend.epsilon, spend.delta, spend.rho, spend.promise):
        return known_spend
    return Spend(
        _larger(known_spend.epsilon, spend.epsilon),
        max(known_spend.delta, spend.delta),
        _larger(known_spend.rho, spend.rho),
        [(order, _larger(value, curve.get(order, Fraction(0)))) for order, value in known_spend.curve],
        spend.promise,
    )


def fits_limit(limit: Budget, spend: Spend, cost: object) -> bool:
    """Whether a charge is within the largest single charge: by epsilon and rho, by curve or as a whole."""
    start = Filter.start(limit, version=2)
    if Filter(limit, start.epsilon, start.delta, start.rho).admits(spend):
        return True
    return bool(start.orders) and start.admits(at_orders(spend, cost, start.orders), fits_alone(cost))


def _larger(bound: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if bound is None or other is None else max(bound, other)


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
    plain, account_key = request.keys
    row = transaction.entry_with_key(plain)
    if row is None or row.account == account.id:
        return row, plain
    return transaction.entry_with_key(account_key), account_key


def check_lineage(transaction: Transaction, account: Account, dataset: str) -> None:
    """Refuse an account whose charges do not reach the dataset's own account, or another dataset's."""
    if not dataset:
        return
    declared = transaction.account(dataset)
    if declared.id not in account.path or declared.root != account.root:
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
    earlier, key = find_charge(transaction, request, account) if request.key else (None, "")
    if earlier is not None:
        return same_charge(transaction, earlier, account, request)
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
    transaction: Transaction, earlier: EntryRow, account: Account, request: ChargeRequest
) -> Receipt:
    """Return the receipt of the earlier charge with the same key, if it was the same charge."""
    body = json.loads(earlier.body)
    same = (
        earlier.account == account.id
        and earlier.plan == request.plan
        and body.get("cost") == request.cost
        and _same_promise(earlier, request)
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
            f"the key {request.key[2:]!r} was used for another charge (entry {earlier.seq})",
            why="a key belongs to one charge: the same charge sent again gets the same receipt, but "
            "another charge is refused",
            fix="give every charge its own key",
        )
    return receipt_of(earlier, transaction.names(earlier))


def _same_promise(earlier: EntryRow, request: ChargeRequest) -> bool:
    """Whether a charge was made with the promise of a request; entries of older versions have none."""
    promise = spend_from_text(earlier.spend).promise
    return promise is None or promise == request.spend.promise
