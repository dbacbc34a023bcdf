"""The plan card: what a question costs, what that means, how far off the answer may be, what is left after.

A card has a part that is a function of the question and of public facts, which is kept as bytes, and a part
about one person's account, which is asked of the ledger each time. Who pays for a question is one rule, for
the card that shows the price and for the draw that charges it.

The operation ``plans`` answers with the card of a question. It has no side effect and no entry in the ledger.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from tacit.core import budget_risk, members_of, odds_factor, plan_meaning, risk_words
from tacit.errors import TacitError
from tacit.service._bodies import MAX_QUESTION
from tacit.service._operations import Download, Operation, needs
from tacit.service.plans._asks import AskBody, ask_key, digest_of_ask, plan_of, read_ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting import Cost
    from tacit.core import Plan
    from tacit.ledger import Account, Head, Ledger
    from tacit.service._database import Database, ServiceRow
    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset, Service


V = TypeVar("V")
_MAX_PLANS: Final = 512
_MAX_BYTES: Final = 32 * 1024 * 1024  # of all cards together
_MAX_FACTS: Final = 8192  # what accounts have and what is stored, of a few words each
_MAX_HASHES: Final = 65_536
_MANY = 10**6
_ANSWERED = "EXISTS (SELECT 1 FROM releases r WHERE r.plan = ? AND r.account = a.name AND r.shown_from <= ?)"


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan and the public part of its card: as a document and as bytes without the closing brace."""

    plan: Plan[Any]
    hash: str
    cost: Cost
    document: dict[str, Any]
    written: bytes


@dataclass(frozen=True, slots=True)
class Afterwards:
    """What an account has after a charge, in words; how many more of its kind fit; whether this one does."""

    left: str | None
    more: int
    fits: bool


@dataclass(frozen=True, slots=True)
class OwnPart:
    """The part of a card about one account, as of an end of the ledger's log."""

    head: Head
    document: dict[str, Any]
    expires: datetime | None
    is_paid: bool


class Recent(Generic[V]):
    """A few values by key; the one that was used least recently goes first."""

    def __init__(self, max_entries: int) -> None:
        self._most, self._lock = max_entries, threading.Lock()
        self._kept: OrderedDict[object, V] = OrderedDict()

    def get(self, key: object) -> V | None:
        """Return a value, or None."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is not None:
                self._kept.move_to_end(key)
            return entry

    def keep(self, key: object, value: V) -> None:
        """Keep a value."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


class PlanCache:
    """The plans of a worker that were made last, by dataset, policy, question and parameters.

    Guarantee: nothing in it depends on who asked. Where a policy does not say which answers are stored, each
    person's plans are kept apart, so that a quick answer does not tell that somebody else asked the same.
    What is left and what was paid is kept by account, together with the end of the log for which it holds.
    """

    def __init__(self) -> None:
        self._plans: Recent[KeptPlan] = Recent(_MAX_PLANS)
        self._hashes: Recent[str] = Recent(_MAX_HASHES)
        self._facts: Recent[tuple[Head, Any]] = Recent(_MAX_FACTS)
        self.own: Recent[OwnPart] = Recent(4 * _MAX_PLANS)

    def at(self, head: Head, key: tuple[object, ...], find: Callable[[], V]) -> V:
        """Return what the ledger says at this end of its log; it is asked again when there is a new entry."""
        cached = self._facts.get(key)
        if cached is None or cached[0] != head:
            cached = head, find()
            self._facts.keep(key, cached)
        return cast("V", cached[1])

    def hash(self, service: Service, dataset: OpenDataset, ask: dict[str, Any], person: str) -> str:
        """Return the hash of a question's plan: remembered, found with a question asked before, or planned.

        A repeated question then needs no planning.
        """
        key = _cache_key(dataset, ask, person)
        plan_hash = self._hashes.get(key)
        if plan_hash is None:
            whose = key[0]
            row = service.database.row(
                "SELECT plan FROM queries WHERE asked = ? AND dataset = ? AND policy = ?"
                " AND (person = ? OR '' = ?) ORDER BY position DESC LIMIT 1",
                digest_of_ask(ask), dataset.name, dataset.number, whose, whose,
            )  # fmt: skip
            plan_hash = self.plan(dataset, ask, person).hash if row is None else str(row["plan"])
            self._hashes.keep(key, plan_hash)
        return plan_hash

    def plan(self, dataset: OpenDataset, ask: dict[str, Any], person: str = "") -> KeptPlan:
        """Return the plan of a question; refusals are not kept."""
        key = _cache_key(dataset, ask, person)
        kept_plan = self._plans.get(key)
        if kept_plan is None:
            plan = plan_of(dataset.dataset, ask)
            document = public_part(plan, dataset)
            text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            kept_plan = KeptPlan(plan, plan.hash, plan.cost, document, text.encode("utf-8"))
            self._hashes.keep(key, kept_plan.hash)
            if len(kept_plan.written) * _MAX_PLANS <= _MAX_BYTES:
                self._plans.keep(key, kept_plan)
        return kept_plan


def _cache_key(dataset: OpenDataset, ask: dict[str, Any], person: str) -> tuple[str, str, int, str]:
    """Return under which key a plan is kept: for everybody, or for one person."""
    return "" if dataset.policy.get("shows_stored") else person, dataset.name, dataset.number, ask_key(ask)


def plan_cache(service: Service) -> PlanCache:
    """Return the cache of a service in this process."""
    cache: PlanCache | None = getattr(service, "cached_plans", None)
    if cache is None:
        cache = service.cached_plans = PlanCache()  # type: ignore[attr-defined]
    return cache


def public_part(plan: Plan[Any], dataset: OpenDataset) -> dict[str, Any]:
    """Return the part of a card that is the same for everybody."""
    promised = {name: {"exact": str(value), "number": float(value)} for name, value in plan.promised.items()}
    epsilon = plan.promised.get("epsilon")
    task = members_of(plan)[0].task
    return {
        "plan": plan.hash,
        "dataset": {
            "name": dataset.name,
            "version": dataset.dataset.version,
            "unit": plan.unit.noun,
            "policy": dataset.number,
        },
        "price": {"promised": promised, "cost": plan.cost.to_json()},
        "meaning": {
            "odds": None if epsilon is None else odds_factor(epsilon),
            "sentence": plan_meaning(plan),
        },
        "risk": risk_words(plan, plan.cost) or None,
        "columns": [
            {
                "name": one.column,
                "what": one.meaning,
                "noise": one.mechanism,
                "plus_minus": one.error,
                "confidence": float(plan.confidence),
                "note": "; ".join(text for text in (one.note, one.caution) if text),
            }
            for one in plan.forecast
        ],
        "facts": [list(pair) for pair in plan.facts],
        "left_out": list(task.omissions),
        "instalments": plan.instalments,
        "asked": plan.asked,
        "document": plan.to_json(),
        "sql": list(plan.sql),
    }


def account_part(
    service: Service, dataset: OpenDataset, kept_plan: KeptPlan, account: str | None
) -> dict[str, Any]:
    """Return what a card says to one person: what is left afterwards, and whether the answer is paid for.

    Guarantee: it holds for the ledger as it is now. It is worked out again whenever the ledger has a new
    entry; whether an account has expired is asked each time.

    Parameters
    ----------
    service, dataset, kept_plan
        Where, of which dataset, for which plan.
    account
        The account that would pay, which belongs to the person; None if there is none.
    """
    ledger = service.ledger
    if ledger.refusal is not None:
        return {"account": None, "fits": False, "would_fit": None, "stored": None, "answer_in_s": None}
    cache, head = plan_cache(service), ledger.head
    key = (kept_plan.hash, kept_plan.plan.risk, dataset.name, dataset.number, account)
    card = cache.own.get(key)
    if card is None or card.head != head:
        card = _own_part(service, dataset, kept_plan, account, head)
        cache.own.keep(key, card)
    if card.expires is not None and card.expires < datetime.now(UTC):
        past = {**card.document["account"], "words": "the last day of your allotment has passed"}
        return {**card.document, "fits": card.is_paid, "account": past}
    return card.document


def _own_part(
    service: Service, open_dataset: OpenDataset, kept_plan: KeptPlan, account: str | None, head: Head
) -> OwnPart:
    ledger, cache = service.ledger, plan_cache(service)
    is_paid, exists = _stored(ledger, open_dataset, kept_plan, account, cache, head)
    dataset = cache.at(head, ("account", open_dataset.name), lambda: ledger.account(open_dataset.name))
    mine = None if account is None else cache.at(head, ("account", account), lambda: ledger.account(account))
    yours = None if mine is None else _afterwards(mine, kept_plan.plan, free=is_paid)
    free = is_paid or exists is True
    dataset_filter = cache.at(
        head,
        ("after", open_dataset.name, kept_plan.hash, free),
        lambda: _afterwards(dataset, kept_plan.plan, free=free),
    )
    filters = [dataset_filter] if yours is None else [yours, dataset_filter]
    more, fits = min(one.more for one in filters), mine is not None and all(one.fits for one in filters)
    frozen = dataset.frozen or (mine is not None and mine.frozen)
    lag = int(open_dataset.policy.get("lag") or service.settings.lag)
    is_series = kept_plan.plan.instalments is not None  # its days are drawn, whether or not they are paid for
    document = {
        "account": {
            "name": account,
            "yours_after": None if yours is None else yours.left,
            "dataset_after": dataset_filter.left,
            "yours_now": None if mine is None else str(mine.filter.remaining),
            "dataset_now": cache.at(head, ("now", open_dataset.name), lambda: str(dataset.filter.remaining)),
            "more": more,
            "words": _more_words(more, fits=fits, has_account=mine is not None, frozen=frozen),
            **_risks(kept_plan.plan, dataset, mine),
        },
        "fits": is_paid or (fits and not frozen),
        "would_fit": None if fits or frozen else _would_fit(kept_plan.plan, dataset, mine),
        "stored": {"paid": is_paid, "exists": exists},
        "answer_in_s": 0.0 if is_paid and not is_series else float((lag + 1) * service.settings.tick),
    }
    return OwnPart(head, document, None if mine is None else mine.expires, is_paid=is_paid)


def _risks(plan: Plan[Any], dataset: Account, mine: Account | None) -> dict[str, str]:
    """Return what an attacker can achieve with whole budgets, for a plan that was asked for by a risk."""
    if plan.risk is None:
        return {}
    yours = {} if mine is None else {"yours_risk": budget_risk(plan, mine.budget)}
    return {**yours, "dataset_risk": budget_risk(plan, dataset.budget)}


def _would_fit(plan: Plan[Any], dataset: Account, mine: Account | None) -> dict[str, str] | None:
    """Return the largest epsilon that the accounts have left, for a plan that promises epsilon alone."""
    if set(plan.promised) != {"epsilon"} or mine is None:
        return None
    epsilons = [one.filter.remaining.epsilon or Fraction(0) for one in (mine, dataset)]
    return {"epsilon": rounded_text(min(epsilons))} if min(epsilons) > 0 else None


def rounded_text(value: Fraction) -> str:
    """Write a number in six digits at most, rounded down, so that it still fits."""
    with localcontext() as context:
        context.prec, context.rounding = 6, ROUND_FLOOR
        return f"{(Decimal(value.numerator) / Decimal(value.denominator)).normalize():f}"


def card_of(kept_plan: KeptPlan, account_facts: dict[str, Any]) -> dict[str, Any]:
    """Return a whole card."""
    return {**kept_plan.document, **account_facts}


def card_bytes(kept_plan: KeptPlan, account_facts: dict[str, Any]) -> bytes:
    """Return a whole card as JSON; the public part is not written again."""
    mine = json.dumps(account_facts, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        "utf-8"
    )
    return kept_plan.written[:-1] + b"," + mine[1:]


def _stored(
    ledger: Ledger,
    dataset: OpenDataset,
    kept_plan: KeptPlan,
    account: str | None,
    cache: PlanCache,
    head: Head,
) -> tuple[bool, bool | None]:
    """Return whether the account has paid for the stored answer, and whether there is one (None: not shown).

    That an answer is stored shows that somebody has asked the same, so the policy decides about it.
    """
    version, shows = dataset.dataset.version, bool(dataset.policy.get("shows_stored"))
    is_run = kept_plan.plan.instalments is not None
    exists = shows and cache.at(
        head,
        ("stored", dataset.name, version, kept_plan.hash),
        lambda: (
            (ledger.paid_run if is_run else ledger.stored_release)(
                dataset.name, kept_plan.hash, version=version
            )
            is not None
        ),
    )
    if account is None or (shows and not exists):
        return False, exists if shows else None
    find = ledger.paid_run if is_run else ledger.paid_release
    is_paid = find(account, kept_plan.hash, version=version) is not None
    return is_paid, exists if shows else None


def _afterwards(account: Account, plan: Plan[Any], *, free: bool) -> Afterwards:
    now, cost, promise = account.filter, plan.cost, plan.promise
    after = now if free else now.charged(now.spend_of(cost, promise), cost.fits)
    if after is None:
        return Afterwards(None, 0, fits=False)
    left = after.left(cost, promise)
    return Afterwards(str(left), min(left.more or 0, _MANY), fits=True)


def _more_words(more: int, *, fits: bool, has_account: bool, frozen: bool) -> str:
    if frozen:
        return "the curator has stopped all charges to this dataset or to your allotment"
    if not has_account:
        return "you have no allotment for this dataset; ask its curator for one"
    if not fits:
        return "not enough is left for this question"
    if not more:
        return "nothing is left for another question like this one"
    number = f"{more:,}" if more < _MANY else "more than a million"
    return f"{number} more {'question' if more == 1 else 'questions'} like this one"


_FAILED_DAYS = (
    "EXISTS (SELECT 1 FROM queries q JOIN datasets d ON d.name = q.dataset WHERE q.plan = ?"
    " AND q.account = a.name AND q.state = 'failed' AND q.answer_at <= ? AND d.kind = 'stream')"
)


def own_account(
    database: Database, person: str, dataset: str, name: str | None = None, plan: str = ""
) -> ServiceRow | None:
    """Return the account of a person that pays: its name and purpose; None if there is none.

    It is the account that was named; else one that was approved for exactly this plan; else the allotment
    that has paid for the answer, or for a series whose draw failed, so that asking again is free; else the
    newest allotment. A named account that is not the person's, or is for another plan, is refused.

    Parameters
    ----------
    database
        The service's database.
    person, dataset
        Whose account, and for which dataset.
    name
        The account that the question names.
    plan
        The hash of the question's plan.
    """
    from tacit.service.runner import now  # which imports this room

    if name is None:
        moment = now()
        return database.row(
            "SELECT name, purpose, plan"  # noqa: S608 - constants only
            " FROM accounts a WHERE dataset = ? AND person = ? AND plan IN ('', ?)"
            f" ORDER BY plan DESC, ({_ANSWERED} OR {_FAILED_DAYS}) DESC, created DESC, name DESC LIMIT 1",
            dataset, person, plan, plan, moment, plan, moment,
        )  # fmt: skip
    row = database.row(
        "SELECT name, purpose, plan FROM accounts WHERE name = ? AND dataset = ? AND person = ?",
        name, dataset, person,
    )  # fmt: skip
    if row is None or row["plan"] not in {"", plan}:
        raise TacitError(
            "no-allotment",
            "this account is not an allotment of yours for this question",
            fix="choose one of your allotments, or ask the curator for one",
        )
    return row


#: Who may see prices of a dataset.
MAY_PLAN = needs("analyst", on="dataset", scope="plan")


def planned(call: ServiceCall, body: AskBody) -> tuple[OpenDataset, KeptPlan, dict[str, Any]]:
    """Check the grant on the dataset that the body names, and plan; nothing of it is kept for others."""
    from tacit.service.runner import check_work, lag_of  # it imports this area

    MAY_PLAN.check(call.caller, body.dataset)
    ask = read_ask(body)
    dataset = call.service.dataset(body.dataset)
    kept_plan = plan_cache(call.service).plan(dataset, ask, call.person.id)
    row = own_account(call.service.database, call.person.id, body.dataset, body.account, kept_plan.hash)
    account_facts = account_part(call.service, dataset, kept_plan, None if row is None else str(row["name"]))
    if not (account_facts["stored"] or {}).get("paid"):
        check_work(call.service.settings, lag_of(dataset.policy, call.service.settings), kept_plan.plan)
    return dataset, kept_plan, account_facts


def shown_card(call: ServiceCall, body: AskBody) -> dict[str, Any]:
    """Return the card of a question as a document."""
    _, kept_plan, account_facts = planned(call, body)
    return card_of(kept_plan, account_facts)


def _post_plan(call: ServiceCall) -> Any:
    if call.is_page:
        return shown_card(call, call.body)
    _, kept_plan, account_facts = planned(call, call.body)
    return Download(card_bytes(kept_plan, account_facts), "application/json")


CARD_OPERATIONS = (
    Operation(
        "POST", "/plans", needs("analyst", scope="plan"), _post_plan, body=AskBody, page="plans/card.html",
        most=MAX_QUESTION,
        summary="Show the price, the meaning and the expected error of a question; nothing is charged",
    ),
)  # fmt: skip
