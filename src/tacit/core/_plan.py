"""The core's plan: what will be computed, what it costs and how far off it may be. It touches no data.

- A forecast tells a person, before anything is charged, what to expect of each released quantity.
- Draws of a plan, one for each dataset, are charged and run by its ledger, or found there.
- If the ledger is far away, in a service, the plan sends its document and reads the release back.
- A refusal states what the plan promised, where the ledger was charged in other numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from tacit.accounting import Cost, Remaining, Spend
from tacit.core._certificate import Certificate, certificate_body
from tacit.core._plan_run import Member, add_up, check_source, digest_of, run, together_hash
from tacit.core._registry import registered
from tacit.core._release import Content, Release
from tacit.errors import TacitError
from tacit.fixes import Code, Either, Set
from tacit.parameters import Omitted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Budget, Risk
    from tacit.core._dataset import Dataset
    from tacit.core._protocols import JSON, AnsweringService, Charger
    from tacit.core._run import Run
    from tacit.core._task import RunTask, Task
    from tacit.core._unit import Identity, Unit
    from tacit.fixes import Fix


T = TypeVar("T")
#: What a person reads of a plan: given, or worked out when somebody asks for it.
OnDemand: TypeAlias = Sequence[T] | Callable[[], Sequence[T]]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect of one released quantity.

    Parameters
    ----------
    column
        Its name.
    meaning
        What is computed, in words.
    mechanism
        The noise, in words.
    error
        The half-width of its interval, where it follows from public facts.
    note
        Why there is no such error, or what it means.
    caution
        What the quantity is not, where its name may promise more; always shown.
    """

    column: str
    meaning: str
    mechanism: str
    error: float | None
    note: str = ""
    caution: str = ""


def promise_in_words(promised: Mapping[str, Fraction]) -> str:
    """Return what a plan promises.

    Examples
    --------
    >>> from fractions import Fraction
    >>> promise_in_words({"epsilon": Fraction(1, 2), "delta": Fraction(1, 10**6)})
    'epsilon 0.5, delta 1e-06'
    """
    return ", ".join(f"{name} {float(value):g}" for name, value in promised.items())


def in_promised_words(refusal: TacitError, promised: Mapping[str, Fraction]) -> TacitError:
    """Return a ledger's refusal of a plan with the promised epsilon in place of the rho of the charge.

    Gaussian noise is charged by rho, or by a curve of which rho is a rough summary. Who asked for an epsilon
    cannot compare that with an epsilon that is left. Beside a rho that is left, the charge stays.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from tacit.accounting import Budget, Filter, Spend
    >>> from tacit.errors import TacitError
    >>> try:
    ...     Filter.start(Budget(epsilon=0.4)).after(Spend(rho=2.2))
    ... except TacitError as refusal:
    ...     in_promised_words(refusal, {"epsilon": Fraction(1, 2)}).what
    'a plan that promises epsilon 0.5 does not fit into what is left: epsilon 0.4 of 0.4'
    """
    charge, remaining = refusal.facts.get("charge"), refusal.facts.get("left")
    if (
        "epsilon" not in promised
        or not isinstance(charge, Spend)
        or charge.epsilon is not None
        or not charge.rho
    ):
        return refusal
    of = remaining.of if isinstance(remaining, Remaining) else None
    charged = "" if of is None or of.rho is None else f" and is charged with {charge}"
    promise = refusal.facts.get("promise")
    largest = promise if isinstance(promise, int | float) else 0
    where = f"{refusal.facts['where']}: " if "where" in refusal.facts else ""
    plan = f"a plan that promises {promise_in_words(promised)}{charged}"
    message = f"{where}{plan} does not fit into what is left: {remaining}"
    return refusal.but(what=message, fix=_in_epsilon(refusal.fix, promised, largest))


def _in_epsilon(fix: Fix, promised: Mapping[str, Fraction], largest: float) -> Fix:
    """Return a fix with the epsilon that a Gaussian plan of the same delta may have, where it names a rho.

    ``largest`` is the epsilon that still fits by adding up promises.
    """
    if isinstance(fix, Either):
        return Either(*(_in_epsilon(one, promised, largest) for one in fix.fixes))
    if not isinstance(fix, Set) or "rho" not in fix.values or not promised.get("delta"):
        return fix
    sigma = (2 * float(str(fix.values["rho"]))) ** -0.5
    epsilon = Cost.gaussian(sigma=sigma, sensitivity=1).epsilon(delta=promised["delta"])
    short = float(f"{float(epsilon):.3g}")  # three digits, rounded down
    short = short if short <= epsilon else float(f"{short * (1 - 5e-3):.3g}")
    return Set.at_most(epsilon=max(short, largest))


def draw(
    member: Member, *, who: str, purpose: str, account: str | None, key: str | None
) -> tuple[list[Any], Certificate]:
    """Charge one dataset's part of a plan and run it; return the noisy integers with their certificate.

    What the ledger has stored of the same plan is returned instead. A part without a ledger runs at once.
    """
    if member.ledger is None:
        return json.loads(run(cast("Task[Any, Any]", member.task)))["noisy"], Certificate.of_local(member)
    body = certificate_body(member)
    try:
        paid_draw = member.ledger.draw(
            account or member.identity.name,
            member.cost,
            compute=lambda _: run(cast("Task[Any, Any]", member.task), body),
            **_recorded(member, body, who, purpose, key),
        )
    except TacitError as refusal:
        raise in_promised_words(refusal, member.promised) from None
    return _noisy_of(paid_draw, body, member)


def stored_draw(member: Member, account: str | None) -> tuple[list[Any], Certificate] | None:
    """Return what the ledger has stored and this account has paid for; nothing is charged."""
    if member.ledger is None:
        return None
    identity = member.identity
    paid_draw = member.ledger.paid_release(account or identity.name, member.hash, version=identity.version)
    return None if paid_draw is None else _noisy_of(paid_draw, certificate_body(member), member)


def held_run(
    member: Member,
    ledger: Charger,
    instalments: int,
    *,
    who: str,
    purpose: str,
    account: str | None,
    key: str | None,
) -> tuple[Any, Any]:
    """Charge a whole run, or find it if it was charged; return it with the body of its certificate."""
    body = certificate_body(member)
    try:
        run = ledger.run(
            account or member.identity.name,
            member.cost,
            instalments=instalments,
            **_recorded(member, body, who, purpose, key),
        )
    except TacitError as refusal:
        raise in_promised_words(refusal, member.promised) from None
    return run, body


def _recorded(member: Member, body: Any, who: str, purpose: str, key: str | None) -> dict[str, Any]:
    """Return what the ledger records of a charge, whether it pays for one draw or for a run."""
    return {
        "plan": member.hash,
        "who": who,
        "purpose": purpose,
        "asked": member.asked,
        "record": member.record,
        "key": key,
        "dataset": member.identity.name,
        "version": member.identity.version,
        "certificate": digest_of(body),
        **({} if member.promise is None else {"promise": member.promise}),
        **({"blocks": member.blocks} if member.blocks else {}),
    }


def _noisy_of(paid_draw: Any, body: Any, member: Member) -> tuple[list[Any], Certificate]:
    """Return the noisy integers that a ledger has stored, and the certificate with them."""
    stored = json.loads(paid_draw.payload)
    return stored["noisy"], Certificate.of_draw(
        paid_draw.receipt,
        stored.get("certificate"),
        body,
        paid_draw.payload,
        getattr(member.ledger, "kept", ""),
    )


def service_of(members: Sequence[Member]) -> AnsweringService | None:
    """Return the service that charges and draws for a plan; None where this process does."""
    services: list[Any] = [member.ledger for member in members if hasattr(member.ledger, "answer")]
    if not services:
        return None
    if len(members) > 1:
        raise TacitError(
            "not-allowed",
            "datasets of a service cannot be asked together with others",
            why="a service returns the finished answer, and only noisy numbers before that can be added up",
            fix="ask each dataset by itself",
        )
    return services[0]  # type: ignore[no-any-return]


def answer_of(
    service: AnsweringService,
    plan: Plan[Any],
    *,
    who: str = "",
    purpose: str = "",
    account: str | None = None,
    key: str | None = None,
    stored: bool = False,
) -> Release[Any] | None:
    """Send a plan to its service; return the release, or None if only stored ones are asked for.

    Guarantee: the release belongs to this plan; its certificate names the plan's hash.
    """
    Omitted("here", why="the service records who asks by itself", absent="").read("who", who)
    document = service.answer(plan.to_json(), account=account, purpose=purpose, key=key, stored=stored)
    if document is None and stored:
        return None
    release = Release.from_json({} if document is None else document)
    if release.certificate.plan != plan.hash:
        raise TacitError(
            "bad-release",
            "the service returned the answer to another question",
            why="the certificate of the answer names another plan than the one that was sent",
            fix="report this to the people who run the service",
        )
    return release


PLAN_SCHEMA = "tacit/plan/1"
C = TypeVar("C", bound=Content)


#: What people look for in a plan, though only the release has it.
_OF_AN_ANSWER = frozenset({"columns", "high", "keys", "low", "plot", "to_csv", "to_pandas", "value"})


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Plan(Generic[C]):
    """What will be computed, with which mechanisms, at which cost and expected error.

    A plan is a function of the question and of public facts. `release` charges the ledger and only then
    touches the data; the same plan on the same declared version gives the stored release again. Fields make
    plans with `Plan.of`, `Plan.local` and `Plan.together`.

    Parameters
    ----------
    promised
        The total that was asked for: epsilon, delta, rho.
    confidence
        How often each interval covers the noise.
    asked
        The question in words, or its shape if the dataset says so, for the ledger's record.
    risk
        The risk that was asked for, where the total followed from one. It is not part of the plan's identity.
    """

    promised: Mapping[str, Fraction]
    confidence: Fraction
    asked: str
    _members: tuple[Member, ...]
    _disjoint: bool = False
    _forecast: OnDemand[Forecast] = ()
    _facts: OnDemand[tuple[str, str]] = ()
    _request: Callable[[], JSON] | None = None
    _present: Callable[[Release[C]], Release[C]] | None = field(default=None)
    risk: Risk | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        task: Task[Any, C] | RunTask[Any, C],
        *,
        promised: Mapping[str, Fraction],
        forecast: OnDemand[Forecast] = (),
        facts: OnDemand[tuple[str, str]] = (),
        confidence: Fraction = Fraction(95, 100),
        asked: str = "",
        request: Callable[[], JSON] | None = None,
        present: Callable[[Release[C]], Release[C]] | None = None,
        packages: tuple[str, ...] = (),
    ) -> Plan[C]:
        """Make the plan of one dataset.

        Parameters
        ----------
        dataset
            The dataset, whose account pays.
        task
            Question, mechanisms, exact integers and how to read the noisy ones; or those of a run.
        promised, confidence, asked
            See the class.
        forecast, facts
            What the properties ``forecast`` and ``facts`` return, or functions that return it. A function is
            called only when its result is needed.
        request
            Returns what `Dataset.plan_from` rebuilds the plan from, as JSON; called only where it is needed.
        present
            How the release is shown: order, names, arithmetic. It is not part of the plan's identity.
        packages
            The packages outside Tacit that declare the question, with their versions.
        """
        ledger = dataset._ledger  # noqa: SLF001 - the core's own
        member = Member(dataset.identity, task, ledger, promised, asked, dataset.record, packages=packages)
        return cls(
            dict(promised), confidence, asked, (member,),
            _forecast=forecast, _facts=facts, _request=request, _present=present,
        )  # fmt: skip

    @classmethod
    def local(
        cls,
        identity: Identity,
        task: Task[Any, C],
        *,
        promised: Mapping[str, Fraction],
        forecast: OnDemand[Forecast] = (),
        facts: OnDemand[tuple[str, str]] = (),
        confidence: Fraction = Fraction(95, 100),
        asked: str = "",
    ) -> Plan[C]:
        """Make a plan that runs on the device of the person who answers.

        That person does not have to trust anybody, and no ledger is charged; the certificate says so. Each
        further release costs that person the same again.
        """
        member = Member(identity, task, None, promised)
        return cls(dict(promised), confidence, asked, (member,), _forecast=forecast, _facts=facts)

    @classmethod
    def together(cls, plans: Sequence[Plan[C]], *, disjoint: bool) -> Plan[C]:
        """Make one plan from plans of several datasets: each pays and adds noise, then noisy integers add up.

        Parameters
        ----------
        plans
            One plan for each dataset, with the same question. Each task must read sums of all members.
        disjoint
            Whether no unit is in two members: the cost is then that of the largest member, else the sum.
        """
        members = tuple(member for plan in plans for member in plan._members)  # noqa: SLF001
        if any(member.stages for member in members):
            raise _use_instead("a run belongs to one dataset, but several plans were combined", "release")
        if not all(getattr(m, "additive", False) for member in members for m in _one_draw(member).mechanisms):
            raise TacitError(
                "not-allowed",
                "several datasets can add up noisy numbers, but not picked values or selected groups",
                why="each member adds its own noise before anything is shared",
                fix="ask for counts, sums, means, variances, histograms or quantiles, with public keys",
            )
        first_plan = plans[0]
        promised = {
            name: Fraction((max if disjoint else sum)(plan.promised[name] for plan in plans))
            for name in first_plan.promised
        }
        return cls(
            promised, first_plan.confidence, first_plan.asked, members, disjoint,
            first_plan._forecast,  # noqa: SLF001
            first_plan._facts,  # noqa: SLF001
            lambda: [plan.to_json()["request"] for plan in plans],
            first_plan._present,  # noqa: SLF001
        )  # fmt: skip

    @property
    def forecast(self) -> tuple[Forecast, ...]:
        """What to expect of each released quantity."""
        return tuple(self._forecast() if callable(self._forecast) else self._forecast)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What else a person should know about limits, keys, grids and split, as pairs of label and text."""
        return tuple(self._facts() if callable(self._facts) else self._facts)

    @property
    def unit(self) -> Unit:
        """Who is protected; the cost is stated for this unit."""
        return self._members[0].identity.unit

    @property
    def name(self) -> str:
        """The dataset's declared name, or the members' names."""
        return " + ".join(member.identity.name for member in self._members)

    @property
    def promise(self) -> Budget | None:
        """What the plan promises, as a budget in epsilon and delta; None in rho, or for several datasets.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(
        ...     tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1, delta=1e-6)
        ... )
        >>> visits.agg(n=tc.count()).plan(epsilon=0.5, delta=1e-7).promise
        Budget(epsilon=0.5, delta=1e-07)
        """
        return self._members[0].promise if len(self._members) == 1 else None

    @property
    def is_local(self) -> bool:
        """Whether the plan runs on the device of the person who answers, without a ledger."""
        return self._members[0].ledger is None

    @property
    def instalments(self) -> int | None:
        """How many instalments a run has; None for a plan with one draw."""
        stages = self._members[0].stages
        return stages[-1].last if stages else None

    @property
    def cost(self) -> Cost:
        """What one unit pays at most: of disjoint members the largest cost, else the sum."""
        from tacit.accounting import Cost

        costs = [member.cost for member in self._members]
        if not self._disjoint:
            return reduce(add, costs)
        largest = Cost.parallel(*costs)
        return costs[0] if len(set(costs)) == 1 else largest

    @property
    def mechanisms(self) -> tuple[Mapping[str, JSON], ...]:
        """The mechanisms with their exact parameters."""
        return tuple(law for member in self._members for law in member.laws)

    @property
    def question(self) -> JSON:
        """What is asked, as a document of public facts."""
        return self._members[0].task.question

    @property
    def sql(self) -> tuple[str, ...]:
        """The statements that will run, where the field has any."""
        return self._members[0].task.sql

    @property
    def hash(self) -> str:
        """The plan's identity: equal for equal questions of the same declared data with the same noise."""
        hashes = [member.hash for member in self._members]
        if len(hashes) == 1:
            return hashes[0]
        return together_hash(hashes, disjoint=self._disjoint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def to_json(self) -> dict[str, JSON]:
        """Return the plan as a document from which `Dataset.plan_from` rebuilds it, with the same hash."""
        identities = [member.identity.document() for member in self._members]
        return {
            "schema": PLAN_SCHEMA,
            "dataset": identities[0] if len(identities) == 1 else identities,
            "request": None if self._request is None else self._request(),
            "plan": self.hash,
        }

    def release(
        self, *, who: str = "", purpose: str = "", account: str | None = None, key: str | None = None
    ) -> Release[C]:
        """Charge the ledger, compute, add noise, store, return.

        If anything fails after the charge, one error without details is raised, and the charge stays. Asking
        again for the same plan returns the stored release at no further cost to the dataset.

        Parameters
        ----------
        who, purpose
            Recorded in the ledger.
        account
            An account below the dataset's that pays as well; any other is refused.
        key
            Idempotency key, which belongs to the account: asking again with it never charges twice. With a
            key, a charge whose answer was lost stays lost (``spent``) instead of being paid for again.
        """
        self._check_one_draw(account)
        if (service := service_of(self._members)) is not None:
            answer = answer_of(service, self, who=who, purpose=purpose, account=account, key=key)
            return cast("Release[C]", answer)
        for member in self._members:  # before the first of them pays
            check_source(member)
        draws = [draw(member, who=who, purpose=purpose, account=account, key=key) for member in self._members]
        return self._read(draws)

    def stored(self, *, account: str | None = None) -> Release[C] | None:
        """Return the stored release if it is paid for; None if nothing is stored, or this account has to pay.

        Guarantee: nothing is charged, nothing is recorded, and the data is not touched.

        Parameters
        ----------
        account
            The account below the dataset's that has paid; by default the dataset's own.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> plan = visits.agg(n=tc.count()).plan(epsilon=1)
        >>> plan.stored() is None
        True
        >>> release = plan.release()
        >>> plan.stored().value == release.value
        True
        """
        self._check_one_draw(account)
        if (service := service_of(self._members)) is not None:
            return answer_of(service, self, account=account, stored=True)
        draws = []
        for member in self._members:
            if (stored := stored_draw(member, account)) is None:
                return None
            draws.append(stored)
        return self._read(draws)

    def power(self, **assumed: Any) -> Any:
        """Say how often this plan would find an effect, before anything is spent; see `inference.power`."""
        return registered("plan.power")(self, **assumed)

    def _check_one_draw(self, account: str | None) -> None:
        if len(self._members) > 1:
            Omitted("if several datasets pay").read("account", account)
        if self._members[0].stages:
            raise _use_instead(f"the plan is a run of {self.instalments} instalments", "run")

    def run(
        self, *, who: str = "", purpose: str = "", account: str | None = None, key: str | None = None
    ) -> Run[C]:
        """Charge the whole run once, or continue the run of this plan where it stopped.

        `Run.next` then draws one instalment after another. Each account below the dataset's pays once.

        Parameters
        ----------
        who, purpose, account, key
            As in `release`.
        """
        from tacit.core._run import Run

        [member, *_] = self._members
        if self.instalments is None or member.ledger is None:
            raise _use_instead("the plan is one draw and has no instalments", "release")
        ledger_run, body = held_run(
            member, member.ledger, self.instalments, who=who, purpose=purpose, account=account, key=key
        )
        return Run(self, ledger_run, body)

    def _read(self, draws: list[tuple[list[Any], Certificate]]) -> Release[C]:
        noisy, certificate = draws[0]
        if len(draws) > 1:
            noisy = add_up([one for one, _ in draws])
            certificate = Certificate.together(
                [own for _, own in draws], cost=self.cost, plan=self.hash, disjoint=self._disjoint
            )
        content = _one_draw(self._members[0]).reading(noisy, self.confidence)
        release = Release(cast("C", content), certificate, question=self.asked)
        presented = release if self._present is None else self._present(release)
        return presented if self.is_local else presented.bound_by([member.ledger for member in self._members])

    if not TYPE_CHECKING:  # for a type checker, a plan has only what it has

        def __getattr__(self, name: str) -> Any:
            missing = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in _OF_AN_ANSWER:
                raise AttributeError(
                    f"{missing}: .release() charges the budget and gives the answer, which has it"
                )
            raise AttributeError(missing)

    def __repr__(self) -> str:
        from tacit.core._display import plan_text

        return plan_text(self)

    def _repr_html_(self) -> str:
        from tacit.core._display import plan_html

        return plan_html(self)


def _one_draw(member: Member) -> Task[Any, Any]:
    """Return the task of a plan that is drawn at once."""
    return cast("Task[Any, Any]", member.task)


def members_of(plan: Plan[Any]) -> tuple[Member, ...]:
    """Return the parts of a plan, one for each dataset, for those who check it."""
    return plan._members  # noqa: SLF001 - the core's own


def with_audit(plan: Plan[C], found: Mapping[str, JSON]) -> Plan[C]:
    """Return the same plan (same hash, same cost), whose certificate says what an audit found."""
    return replace(plan, _members=tuple(replace(member, audit=found) for member in plan._members))  # noqa: SLF001


def _use_instead(words: str, call: str) -> TacitError:
    return TacitError(
        "release-or-run",
        words,
        why="a plan is either drawn at once or in instalments",
        fix=Code(f"plan.{call}()"),
    )
