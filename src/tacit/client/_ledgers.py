"""The ledgers of a client: that of a dataset at a service, and that of its sandbox.

At a service, plans are answered there, and nothing is charged here. The account that pays is read from what
the service shows of a dataset. A sandbox has invented rows of the declared schema, on this machine, free and
unlimited.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NoReturn

from tacit.accounting import Budget, Filter, Left, Remaining
from tacit.client._http_calls import not_from_a_service, path_of, refusal_of
from tacit.errors import TacitError, bad_parameter
from tacit.exact import read_fraction
from tacit.fixes import Say, Set
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Cost
    from tacit.client._http_calls import HttpCalls, ServiceReply
    from tacit.core import JSON

#: Seconds between two looks at a question that waits; the service says how long it takes where it knows.
_LOOK: Final = 0.3
_LONGEST_LOOK: Final = 2.0
_WAITING: Final = frozenset({"waiting", "running"})
#: The mark of an answer of a sandbox.
INVENTED: Final = "a rehearsal on invented rows: these numbers say nothing about anybody"


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """An account at a service: its name, its budget and what is left of it.

    Parameters
    ----------
    name, purpose
        Its name, and what it may be spent for.
    budget
        What may be learned in total.
    remaining
        What can be used now: what is left here, or of the dataset if that is less.
    state
        What was spent, in every detail; None where the service does not show it.
    """

    name: str
    purpose: str
    budget: Budget
    remaining: Remaining
    state: Filter | None = None

    @property
    def filter(self) -> Filter:
        """The budget and what was spent of it."""
        if self.state is None:
            raise TacitError(
                "not-allowed",
                "the service does not show in detail how much of an account was spent",
                fix="ask the service for the price of the question",
            )
        return self.state


def check_purpose(purpose: str) -> None:
    """Refuse a question or a request that does not say what its answers are for."""
    if not purpose.strip():
        raise bad_parameter("purpose", "what the answer is for", purpose, fix=Set(purpose="monthly report"))


def paying_account(document: Mapping[str, Any], name: str | None) -> ServiceAccount | None:
    """Return the account that pays: the one that was named, else the newest allotment, else the dataset's.

    None if there is no account of that name. The service chooses in the same way, but for a question that was
    paid for, or approved, it takes the account that paid or was opened for it.
    """
    below = [one for one in document["accounts"] if one.get("mine", not document.get("oversees", False))]
    if name is not None:
        candidates = [one for one in document["accounts"] if one["account"] == name]
    else:
        candidates = sorted((one for one in below if not one.get("plan")), key=_age)[-1:]
    if candidates:
        return _account(candidates[0], str(candidates[0]["account"]))
    return None if name is not None else _account(document, str(document["name"]))


def _age(account: Mapping[str, Any]) -> tuple[str, str]:
    return str(account.get("created", "")), str(account["account"])


def _account(document: Mapping[str, Any], name: str) -> ServiceAccount:
    total = _amounts(document["budget"])
    budget = Budget(total["epsilon"], total["delta"] or 0, rho=total["rho"])
    remaining_amounts = _amounts(document.get("left_to_use", document["left"]))
    remaining = Remaining(
        remaining_amounts["epsilon"],
        remaining_amounts["delta"] or Fraction(0),
        remaining_amounts["rho"],
        budget,
    )
    state = document.get("filter")
    purpose = str(document.get("purpose", ""))
    return ServiceAccount(
        name, purpose, budget, remaining, None if state is None else Filter.from_json(state)
    )


def _amounts(document: Mapping[str, Any]) -> dict[str, Fraction | None]:
    """Read an amount: exact numbers as text."""
    exact = document["exact"]
    return {name: _number(exact.get(name)) for name in ("epsilon", "delta", "rho")}


def _number(text: str | None) -> Fraction | None:
    return None if text is None else read_fraction(text if "/" in text else f"{text}/1")


_ENDED: Final = {
    "failed": ("release-failed", "the release failed after its charge; the charge stays"),
    "spent": ("spent", "the question was paid for, but its answer was lost; it is never drawn again"),
    "cancelled": ("not-allowed", "the question was cancelled before it was answered; nothing was charged"),
    "refused": ("not-allowed", "the service refused the question; nothing was charged"),
}


class ServiceLedger:
    """The ledger of one dataset at a service.

    Guarantee: a question that is sent again, after a lost connection or with the same ``key``, is charged at
    most once: the service recognises it by its key.

    Parameters
    ----------
    calls
        How the service is reached.
    dataset
        The dataset's name there.
    account
        The allotment that pays; None where the service chooses the only one.
    patience
        Seconds to wait for an answer.
    """

    def __init__(self, calls: HttpCalls, dataset: str, account: str | None, patience: float = 600.0) -> None:
        self._calls = calls
        self._dataset = dataset
        self._account = account
        self._patience = patience

    def __repr__(self) -> str:
        return f"ServiceLedger({str(self._calls.address)!r}, {self._dataset!r})"

    def answer(
        self,
        plan: Mapping[str, JSON],
        *,
        account: str | None,
        purpose: str,
        key: str | None,
        stored: bool = False,
    ) -> Mapping[str, JSON] | None:
        """Send a plan; wait for its answer, and return the document of the release."""
        if stored:
            return self._stored(self._asked({"plan": plan}, account))
        return self.ask({"plan": plan}, account=account, purpose=purpose, key=key)

    def ask(
        self, question: Mapping[str, Any], *, account: str | None, purpose: str, key: str | None
    ) -> Mapping[str, JSON]:
        """Send a question (a plan, or a method with its arguments) and wait for its answer."""
        retry_key = key or uuid.uuid4().hex
        body = {**self._asked(question, account), "purpose": purpose}
        try:
            return self._awaited(self._calls.post("/queries", body, key=retry_key))
        except TacitError as refusal:
            if refusal.code != "service-unreachable":
                raise
            why = refusal.why or "the question may go on there"
            raise refusal.but(why=why, fix=Set(key=retry_key)) from None

    def _asked(self, question: Mapping[str, Any], account: str | None) -> dict[str, Any]:
        paying = account or self._account
        return {"dataset": self._dataset, **question, **({} if paying is None else {"account": paying})}

    def _stored(self, body: Mapping[str, Any]) -> Mapping[str, JSON] | None:
        """Return the release that is stored and paid for, if there is one: the card says so."""
        card = self._calls.post("/plans", body, again=True).document
        match card.get("stored"):
            case {"release": str(release)} if release:
                return self._document(self._calls.get(path_of("releases", release)))
            case {"paid": True}:  # a question that is paid for is answered at once, and is free
                body = {**body, "purpose": "stored answer"}
                return self._awaited(self._calls.post("/queries", body, key=uuid.uuid4().hex))
        return None

    def _awaited(self, sent: ServiceReply) -> Mapping[str, JSON]:
        """Look at a question until it has ended; public times alone decide when that is."""
        query, end = sent.document, time.monotonic() + self._patience
        name = query.get("query")
        with progress(lambda: f"The service has your question: {query.get('state', 'waiting')}"):
            while query.get("state") in _WAITING:
                if not isinstance(name, str):
                    raise not_from_a_service(self._calls.address, "it does not name the question")
                if time.monotonic() > end:
                    raise self._too_late()
                time.sleep(_pause(query))
                query = self._calls.get(path_of("queries", name))
        return self._result(query)

    def _result(self, query: Mapping[str, Any]) -> Mapping[str, JSON]:
        state = query.get("state", "finished")
        if state == "finished":
            return self._document(query)
        problem = query.get("problem")
        if isinstance(problem, dict) and problem.get("code"):
            raise refusal_of(problem, 0, self._calls.address)
        if state not in _ENDED:
            raise not_from_a_service(self._calls.address, f"its question is in the state {str(state)[:40]!r}")
        code, sentence = _ENDED[state]
        raise TacitError(code, sentence, fix="ask the people who run the service")

    def _document(self, reply: Mapping[str, Any]) -> Mapping[str, JSON]:
        """Return the document of a release: it stands there, or the release is named."""
        match reply:
            case {"document": dict() as document} | {"release": {"document": dict() as document}}:
                return document
            case {"release": str(release)} if "certificate" not in reply:
                return self._document(
                    {k: v for k, v in self._calls.get(path_of("releases", release)).items() if k != "release"}
                )
        raise not_from_a_service(self._calls.address, "its answer has no release")

    def _too_late(self) -> TacitError:
        return TacitError(
            "service-unreachable",
            f"the answer was not there after {self._patience:g} seconds",
            why="the question goes on at the service, and is charged at most once",
            fix=Say("ask again with the same key"),
        )

    # Accounts -----------------------------------------------------------------------------------------------

    def account(self, name: str) -> ServiceAccount:
        """Return the account that pays: the allotment of whoever asks, else the dataset's own."""
        del name
        document = self._calls.get(path_of("datasets", self._dataset))
        try:
            account = paying_account(document, self._account)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise not_from_a_service(self._calls.address, "its accounts cannot be read") from None
        if account is None:
            raise TacitError(
                "unknown-account",
                f"you have no allotment {self._account!r} for {self._dataset!r}",
                why="questions are paid from an allotment",
                fix="ask the curator for an allotment",
            )
        return account

    def remaining(self, account: str, *, block: str | None = None) -> Remaining:
        """Return what is left of the account that pays."""
        if block is not None:
            raise TacitError(
                "not-allowed",
                "a service does not show what is left of one block",
                fix="ask for what is left of the whole account",
            )
        return self.account(account).remaining

    def left(
        self, account: str, cost: Cost | None = None, *, promise: Budget | None = None,
        block: str | None = None,
    ) -> Left:  # fmt: skip
        """Return what is left for questions: one more of a size, or how many more of a cost."""
        remaining = self.remaining(account, block=block)
        return Left(remaining, None if cost is None else self.account(account).filter.how_many(cost, promise))

    # What only the service does -----------------------------------------------------------------------------

    def create_account(self, name: str, **_: object) -> NoReturn:
        """Refuse: curators open accounts at the service."""
        raise elsewhere(f"the account {name!r} cannot be opened from here", "ask for an allotment there")

    def paid_release(self, account: str, plan: str, *, version: int | None = None) -> NoReturn:
        """Refuse: `answer` asks the service for what is stored."""
        del account, plan, version
        raise elsewhere("stored answers are at the service", "release the plan: a stored answer is free")

    def draw(self, *_: object, **__: object) -> NoReturn:
        """Refuse: the data is at the service."""
        raise elsewhere("nothing is drawn here", "release the plan")

    def run(self, *_: object, **__: object) -> NoReturn:
        """Refuse: a service answers plans of one draw."""
        raise elsewhere("a run of many draws cannot be started from here", "start it where the data is")

    def close(self) -> None:
        """Close the connection."""
        self._calls.close()


def _pause(query: Mapping[str, Any]) -> float:
    """Return how long to wait before the next look: until the answer is due, if the service says when."""
    due = query.get("answer_in_s")
    if isinstance(due, int | float) and not isinstance(due, bool) and due > 0:
        return min(float(due), _LONGEST_LOOK)
    return _LOOK


def elsewhere(sentence: str, fix: str) -> TacitError:
    """Return the refusal of what only the service can do."""
    return TacitError("not-allowed", sentence, why="the ledger and the data are at the service", fix=fix)


class SandboxLedger:
    """The ledger of a sandbox: it charges nobody, and every answer says that its rows were invented.

    Guarantee: nothing is sent to the service, and nothing of the data is involved. The rows are a function of
    the public facts.

    Parameters
    ----------
    facts
        The public facts of the dataset.
    """

    def __init__(self, facts: Mapping[str, JSON]) -> None:
        self._facts = facts

    def answer(
        self,
        plan: Mapping[str, JSON],
        *,
        account: str | None,
        purpose: str,
        key: str | None,
        stored: bool = False,
    ) -> Mapping[str, JSON] | None:
        """Answer a plan from invented rows; nothing is stored."""
        del account, purpose, key
        if stored:
            return None
        from tacit.ledger import Ledger
        from tacit.tables import open_facts, rehearsal

        planned = open_facts(self._facts, Ledger.memory())
        promised: dict[str, Any] = dict(planned.plan_from(plan).promised)
        digest = hashlib.sha256(json.dumps(self._facts, sort_keys=True).encode()).digest()
        trial = rehearsal(planned, seed=int.from_bytes(digest[:8], "big"), budget=Budget(**promised))
        release = trial.plan_from(plan).release()
        return {**release.to_json(), "marks": [INVENTED, *release.marks]}

    def account(self, name: str) -> NoReturn:
        """Refuse: nothing is charged in a sandbox."""
        raise TacitError(
            "unknown-account",
            f"the sandbox of {name!r} has no account",
            fix="release the plan: in the sandbox it is free and unlimited",
        )

    def remaining(self, account: str, *, block: str | None = None) -> NoReturn:
        """Refuse: a sandbox has no budget."""
        del block
        self.account(account)

    def left(self, account: str, *_: object, **__: object) -> NoReturn:
        """Refuse: a sandbox has no budget."""
        self.account(account)

    def create_account(self, name: str, **_: object) -> NoReturn:
        """Refuse: nothing is charged in a sandbox."""
        self.account(name)

    def paid_release(self, account: str, plan: str, *, version: int | None = None) -> None:
        """Return nothing: a sandbox stores no answer."""
        del account, plan, version

    def draw(self, *_: object, **__: object) -> NoReturn:
        """Refuse: `answer` draws."""
        raise elsewhere("nothing is drawn from a sandbox in this way", "release the plan")

    def run(self, *_: object, **__: object) -> NoReturn:
        """Refuse: a rehearsal is one draw."""
        raise elsewhere("a run of many draws cannot be rehearsed", "rehearse a plan of one draw")
