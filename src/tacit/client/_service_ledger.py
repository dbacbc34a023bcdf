"""The ledger of a dataset that is at a service: plans are answered there, and nothing is charged here."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any, Final, NoReturn

from tacit.client._accounts import paying_account
from tacit.client._http_calls import path_of
from tacit.client._problems import not_from_a_service, refusal_of
from tacit.errors import TacitError
from tacit.fixes import Say, Set
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Remaining
    from tacit.client._accounts import ServiceAccount
    from tacit.client._http_calls import HttpCalls, ServiceReply
    from tacit.core import JSON

#: Seconds between two looks at a question that waits; the service says how long it takes where it knows.
_LOOK: Final = 0.3
_LONGEST_LOOK: Final = 2.0
_WAITING: Final = frozenset({"waiting", "running"})
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
        kept = key or uuid.uuid4().hex
        asked = {**self._asked(question, account), "purpose": purpose}
        try:
            return self._awaited(self._calls.post("/queries", asked, key=kept))
        except TacitError as refusal:
            if refusal.code != "service-unreachable":
                raise
            why = refusal.why or "the question may go on there"
            raise refusal.but(why=why, fix=Set(key=kept)) from None

    def _asked(self, question: Mapping[str, Any], account: str | None) -> dict[str, Any]:
        paying = account or self._account
        return {"dataset": self._dataset, **question, **({} if paying is None else {"account": paying})}

    def _stored(self, asked: Mapping[str, Any]) -> Mapping[str, JSON] | None:
        """Return the release that is stored and paid for, if there is one: the card says so."""
        card = self._calls.post("/plans", asked, again=True).document
        match card.get("stored"):
            case {"release": str(release)} if release:
                return self._document(self._calls.get(path_of("releases", release)))
            case {"paid": True}:  # a question that is paid for is answered at once, and is free
                asked = {**asked, "purpose": "stored answer"}
                return self._awaited(self._calls.post("/queries", asked, key=uuid.uuid4().hex))
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
        code, what = _ENDED[state]
        raise TacitError(code, what, fix="ask the people who run the service")

    def _document(self, found: Mapping[str, Any]) -> Mapping[str, JSON]:
        """Return the document of a release: it stands there, or the release is named."""
        match found:
            case {"document": dict() as document} | {"release": {"document": dict() as document}}:
                return document
            case {"release": str(release)} if "certificate" not in found:
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
            found = paying_account(document, self._account)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise not_from_a_service(self._calls.address, "its accounts cannot be read") from None
        if found is None:
            raise TacitError(
                "unknown-account",
                f"you have no allotment {self._account!r} for {self._dataset!r}",
                why="questions are paid from an allotment",
                fix="ask the curator for an allotment",
            )
        return found

    def remaining(self, account: str, *, block: str | None = None) -> Remaining:
        """Return what is left of the account that pays."""
        if block is not None:
            raise TacitError(
                "not-allowed",
                "a service does not show what is left of one block",
                fix="ask for what is left of the whole account",
            )
        return self.account(account).remaining

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


def elsewhere(what: str, fix: str) -> TacitError:
    """Return the refusal of what only the service can do."""
    return TacitError("not-allowed", what, why="the ledger and the data are at the service", fix=fix)
