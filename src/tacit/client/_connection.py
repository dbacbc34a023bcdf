"""The function ``tc.connect``: datasets of a service, asked like those of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

from tacit.accounting import Budget
from tacit.client._http_calls import HttpCalls, not_from_a_service, path_of, read_address, read_token
from tacit.client._ledgers import SandboxLedger, ServiceLedger, check_purpose
from tacit.core import Release
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Choose, Code
from tacit.parameters import Instance

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from datetime import date

    from tacit.client._ledgers import ServiceAccount
    from tacit.core import Plan
    from tacit.exact import Number
    from tacit.tables import TableDataset

_PAGE = 100
_MAX_PAGES = 1000


def connect(
    url: str,
    *,
    token: str | os.PathLike[str] | None = None,
    account: str | None = None,
    insecure: bool = False,
    timeout: float = 30.0,
    patience: float = 600.0,
) -> Connection:
    """Connect to a service: its datasets are planned with and asked like those of this machine.

    Guarantee
    ---------
    Plans are made here, from public facts. The data stays at the service, which charges before it reads. The
    token is sent to this address alone, in a header; redirects are not followed. A question that is sent
    again with the same ``key`` is charged at most once.

    Parameters
    ----------
    url
        The address of the service. Plain ``http`` is refused, except for this machine.
    token
        Your token, or the file that holds it; by default what ``TACIT_TOKEN`` holds, or the file that
        ``TACIT_TOKEN_FILE`` names.
    account
        The allotment that pays; needed only if you have several for one dataset.
    insecure
        Allow plain ``http`` to another machine. Everybody on the way can then read the token.
    timeout
        Seconds to wait for a sign of life from the service.
    patience
        Seconds to wait for the answer to a question.

    Examples
    --------
    >>> import tacit as tc
    >>> tc.connect("http://stats.example.org", token="tct_secret")
    Traceback (most recent call last):
    tacit.errors.TacitError: the address of stats.example.org starts with http, ...
    ...
    """
    address = read_address(url, insecure=insecure)
    calls = HttpCalls(address, read_token(token), timeout=_seconds("timeout", timeout))
    return Connection(calls, account, _seconds("patience", patience))


def _seconds(name: str, seconds: float) -> float:
    return float(rational(name, seconds))


class Connection:
    """A service, as one person or program sees it; made by `connect`."""

    def __init__(self, calls: HttpCalls, account: str | None, patience: float) -> None:
        self._calls = calls
        self._account = account
        self._patience = patience

    def __repr__(self) -> str:
        return (
            f"connection to {self._calls.address}\n"
            'ask: .datasets lists the names; connection["..."] opens one, to be asked like a local dataset\n'
            'rehearse: connection.sandbox("...") has invented rows, free and unlimited'
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a connection is not copied or stored: connect again where it is needed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection to the service; the next question opens it again."""
        self._calls.close()

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets that you may see."""
        return tuple(str(one.get("name")) for one in self.catalogue())

    def catalogue(self) -> list[Mapping[str, Any]]:
        """Return the datasets that you may see, as the service describes them."""
        return list(self._pages("/datasets", "datasets"))

    def describe(self, name: str) -> Mapping[str, Any]:
        """Return a dataset as the service describes it, with its public facts."""
        try:
            return self._calls.get(path_of("datasets", self._known(name)))
        except TacitError as refusal:
            if refusal.code != "not-found":
                raise
            sentence, fix = (
                f"there is no dataset {name!r} that you may see",
                Choose(self.datasets, given=name),
            )
            raise refusal.but(what=sentence, fix=fix) from None

    def __getitem__(self, name: str) -> TableDataset:
        return self.dataset(name)

    def dataset(self, name: str, *, account: str | None = None) -> TableDataset:
        """Open a dataset: `sql`, `group_by`, `plan` and `release` behave as on this machine.

        Parameters
        ----------
        name
            Its name at the service.
        account
            The allotment that pays, if it is another one than the connection's.
        """
        ledger = ServiceLedger(self._calls, name, account or self._account, self._patience)
        return self._opened(self.describe(name), ledger)

    def sandbox(self, name: str) -> TableDataset:
        """Open the sandbox of a dataset: invented rows with its columns, bounds and keys; free and unlimited.

        The rows are invented on this machine, from public facts; nothing is sent to the service. Answers look
        like real ones and say nothing about anybody.
        """
        document = self.describe(name)
        return self._opened(document, SandboxLedger(document.get("facts") or {}))

    def account(self, dataset: str) -> ServiceAccount:
        """Return the account that pays for your questions: its name, purpose, budget and what is left."""
        return ServiceLedger(self._calls, self._known(dataset), self._account).account(dataset)

    def card(self, plan: Plan[Any], *, account: str | None = None) -> Mapping[str, Any]:
        """Return the price card of a plan: what it costs you, what is left after it, whether it is stored.

        Nothing is charged or recorded.
        """
        paying = account or self._account
        question = {"dataset": plan.name, "plan": plan.to_json()}
        return self._calls.post(
            "/plans", question if paying is None else {**question, "account": paying}, again=True
        ).document

    def _opened(self, document: Mapping[str, Any], ledger: ServiceLedger | SandboxLedger) -> TableDataset:
        from tacit.tables import open_facts

        if document.get("kind", "table") != "table":
            raise TacitError(
                "not-allowed",
                "only datasets of tables can be planned on this machine",
                why=f"this dataset is of the kind {str(document.get('kind'))[:40]!r}",
                fix=Code("connection.ask(dataset, method, epsilon=...)"),
            )
        try:
            return open_facts(document["facts"], ledger)
        except (LookupError, TacitError):
            raise not_from_a_service(self._calls.address, "its public facts cannot be read") from None

    def _known(self, name: str) -> str:
        """Refuse a name that is not text; whether it exists, the service says."""
        dataset_name: object = name
        if not isinstance(dataset_name, str) or not dataset_name:
            raise bad_parameter("name", "the name of a dataset", dataset_name, fix=Choose(self.datasets))
        return name

    def ask(
        self,
        dataset: str,
        method: str,
        *,
        arguments: Mapping[str, Any] | None = None,
        purpose: str = "",
        key: str | None = None,
        **totals: Number,
    ) -> Release[Any]:
        """Ask a dataset of another kind than tables: points, graphs and others that answer methods.

        The service plans, charges and draws; its page of the dataset lists the methods. The answer is a
        release of its kind, such as a surface over a map.

        Parameters
        ----------
        dataset, method, arguments
            Which dataset, what of it, and the method's arguments.
        purpose, key
            As in `Plan.release`.
        totals
            What is promised: epsilon, delta, rho.
        """
        question = {
            "method": method,
            **({} if arguments is None else {"arguments": dict(arguments)}),
            **{name: str(rational(name, value, zero=True)) for name, value in totals.items()},
        }
        ledger = ServiceLedger(self._calls, self._known(dataset), self._account, self._patience)
        return Release.from_json(ledger.ask(question, account=None, purpose=purpose, key=key))

    # Requests -----------------------------------------------------------------------------------------------

    def request_allotment(
        self, dataset: str, *, budget: Budget, purpose: str, last_day: date | str | None = None
    ) -> BudgetRequest:
        """Ask the curator for an allotment: a budget of your own for one purpose.

        Parameters
        ----------
        dataset
            The dataset's name.
        budget
            How much you ask for.
        purpose
            What for; the allotment is bound to it.
        last_day
            The last day on which it can be spent.
        """
        allotment: object = budget
        allotment = Instance(Budget, "tc.Budget(epsilon=0.5)").read("budget", allotment)
        amounts = (("epsilon", budget.epsilon), ("delta", budget.delta), ("rho", budget.rho))
        numbers = {name: str(value) for name, value in amounts if value}
        return self._requested("allotment", self._known(dataset), purpose, last_day, numbers)

    def request_plan(
        self, plan: Plan[Any], *, purpose: str, last_day: date | str | None = None
    ) -> BudgetRequest:
        """Ask the curator to pay for one plan, and nothing else; the curator sees its price card.

        Once it is approved, ``plan.release()`` is paid for in this way.

        Parameters
        ----------
        plan
            A plan of a dataset of this service.
        purpose, last_day
            As in `request_allotment`.
        """
        question = {"ask": {"dataset": plan.name, "plan": plan.to_json()}}
        return self._requested("plan", plan.name, purpose, last_day, question)

    def _requested(
        self, kind: str, dataset: str, purpose: str, last_day: date | str | None, fields: Mapping[str, Any]
    ) -> BudgetRequest:
        check_purpose(purpose)
        day = {} if last_day is None else {"last_day": str(last_day)}
        body = {"kind": kind, "dataset": dataset, **fields, "purpose": purpose, **day}
        return self._request({**body, **self._calls.post("/requests", body).document})

    @property
    def requests(self) -> list[BudgetRequest]:
        """Your requests for allotments and plans, and what was decided, the newest first."""
        return [
            self._request(one)
            for one in self._pages("/requests", "requests")
            if one.get("kind") in {"allotment", "plan"} and one.get("is_own", True)
        ]

    def _request(self, document: Mapping[str, Any]) -> BudgetRequest:
        texts = [
            document.get(name, "") for name in ("request", "kind", "dataset", "state", "purpose", "reason")
        ]
        if not isinstance(texts[0], str) or not texts[0]:
            raise not_from_a_service(self._calls.address, "its request has no name")
        return BudgetRequest(*(str(one or "") for one in texts))

    # Answers ------------------------------------------------------------------------------------------------

    def answers(self, dataset: str | None = None) -> list[Mapping[str, Any]]:
        """Return what you have asked, the newest first: query, state, question, purpose, release."""
        return [
            one
            for one in self._pages("/queries", "queries")
            if dataset is None or one.get("dataset") == dataset
        ]

    def release(self, release: str) -> Release[Any]:
        """Return a release that you have paid for, by its name; nothing is charged."""
        document = self._calls.get(path_of("releases", release)).get("document")
        if not isinstance(document, dict):
            raise not_from_a_service(self._calls.address, "its release cannot be read")
        return Release.from_json(document)

    def _pages(self, path: str, field: str) -> Iterator[Mapping[str, Any]]:
        """Read a list page by page."""
        after: str | None = None
        for _ in range(_MAX_PAGES):
            page = self._calls.get(path, after=after, limit=_PAGE)
            entries = page.get(field)
            if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
                raise not_from_a_service(self._calls.address, f"its list of {field} cannot be read")
            yield from entries
            following = page.get("next")
            if not following or str(following) == after:
                return
            after = str(following)


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """A request for an allotment or for one plan: ``open``, ``approved``, ``declined`` or ``withdrawn``."""

    name: str
    kind: str
    dataset: str
    state: str
    purpose: str = ""
    reason: str = ""
