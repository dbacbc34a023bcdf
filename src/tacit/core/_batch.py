"""Batches: several questions about one dataset as one plan, with one charge and one certificate.

The task of a batch runs several tasks one after the other in one paid draw. Its content has the answers to
all questions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, overload

from tacit.accounting import Budget
from tacit.core._batch_split import split
from tacit.core._goal import ANY_TOTAL, RHO_WITH_DELTA, Goal
from tacit.core._plan import Plan
from tacit.core._release import Content, Release, content_named
from tacit.core._tabular import lacking
from tacit.core._task import Task
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational, read_fraction
from tacit.fixes import Choose, Code, Set
from tacit.parameters import Listed, Mapped, Omitted
from tacit.show import together, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tacit.core._answer_table import AnswerTable
    from tacit.core._certificate import Certificate
    from tacit.core._plan import Forecast
    from tacit.core._plan_run import Member
    from tacit.core._protocols import JSON, Noisy
    from tacit.core._task import SharedReadings
    from tacit.show import Figure


_MAX_QUESTIONS = 1_000  # questions in one batch
_EXAMPLE = Code("tc.batch(stays=visits.agg(n=tc.count()), cost=visits.agg(m=tc.mean('cost')))")


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """One answer of a batch: its name, its content, and what was done to it."""

    name: str
    content: Content
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class AnswerBatch(Content):
    """The answers to several questions, in the order in which they were asked.

    Parameters
    ----------
    answers
        The name and the content of each answer. A release returns each answer as a separate release, by
        position or by name: ``release[0]``, ``release["stays"]``.
    """

    kind: ClassVar[str] = "batch"
    described: ClassVar[str] = "several answers that were paid for together"
    answers: tuple[BatchAnswer, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the answers, in their order."""
        return tuple(answer.name for answer in self.answers)

    def place(self, which: int | str) -> int:
        """Return the position of an answer, from its position or its name."""
        position: object = which
        if isinstance(position, int) and not isinstance(position, bool):
            if not -len(self.answers) <= position < len(self.answers):
                raise IndexError(f"the batch has {len(self.answers)} answers")  # ends a loop over positions
            return position % len(self.answers)
        if which in self.names:
            return self.names.index(str(which))
        raise TacitError(
            "unknown-column",
            f"the batch has no answer {which!r}",
            fix=Choose(self.names, given=str(which)),
        )

    def listed(self, certificate: Certificate) -> BatchReleases:
        """Return the answers as releases with the certificate of the whole batch."""
        return BatchReleases(self, certificate)

    def to_pandas(self) -> dict[str, Any]:
        """Return the answers that are tables as data frames, by name (extra ``pandas``)."""
        contents: list[tuple[str, Any]] = [(one.name, one.content) for one in self.answers]
        return {name: content.to_pandas() for name, content in contents if hasattr(content, "to_pandas")}

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write every answer below its name."""
        parts = [f"{visible(one.name)}:\n{one.content.text(one.marks).rstrip()}" for one in self.answers]
        return "\n\n".join([*parts, *marks])

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write every answer below its name, for a notebook."""
        parts = [f"<h4>{escape(visible(one.name))}</h4>{one.content.html(one.marks)}" for one in self.answers]
        return "".join([*parts, *(f"<p>{escape(mark)}</p>" for mark in marks)])

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the tables of every answer, below its name."""
        for answer in self.answers:
            for caption, table in answer.content.answer_tables():
                yield f"{answer.name}: {caption}" if caption else answer.name, table

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return one figure with every answer that has one, or the figure of the answer of this name.

        Parameters
        ----------
        what
            The name of an answer. For a certain column, draw that answer: ``release["stays"].plot("mean")``.
        """
        if what is not None:
            return self.answers[self.place(what)].content.figures()[:1]
        figures = [
            replace(figure, title=f"{one.name}: {figure.title}")
            for one in self.answers
            for figure in one.content.figures()[:1]
        ]
        several = len(self.answers) > 1
        if not figures:
            return ()
        words = ("the cost is that of all answers of the batch together",) if several else ()
        joint_figure = together(figures)
        return (replace(joint_figure, words=(*joint_figure.words, *words)),)

    def without_figure(self) -> TacitError:
        """Say that no answer has a figure."""
        return lacking("this batch", "picture of its own", Code("release[0]"))

    def to_json(self) -> JSON:
        """Return the batch as JSON."""
        return [
            {
                "name": one.name,
                "kind": one.content.kind,
                "content": one.content.to_json(),
                "marks": list(one.marks),
            }
            for one in self.answers
        ]

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read a batch back; raises ``ValueError`` if the document is not a batch."""
        answers = []
        for entry in document:
            kind = content_named(str(entry["kind"]))
            if kind is None or kind is cls:
                raise ValueError("not a content of a batch")
            marks = tuple(str(mark) for mark in entry["marks"])
            answers.append(BatchAnswer(str(entry["name"]), kind.from_json(entry["content"]), marks))
        if not answers or len({entry.name for entry in answers}) < len(answers):
            raise ValueError("a batch has answers with different names")
        return cls(tuple(answers))


@dataclass(frozen=True, slots=True)
class BatchReleases:
    """The answers of a batch as releases; each states in its marks that its certificate is that of all."""

    batch: AnswerBatch
    certificate: Certificate

    def __len__(self) -> int:
        return len(self.batch.answers)

    def __iter__(self) -> Iterator[Release[Any]]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, which: int | str) -> Release[Any]:
        answer = self.batch.answers[self.batch.place(which)]
        size = len(self)
        mark = f"one of {size} answers of a batch; the certificate states what they cost together"
        return Release(answer.content, self.certificate, (*answer.marks, *([mark] if size > 1 else [])))


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """How one answer of a batch is read: its name, whose noisy integers, by which task, how confidently.

    Questions that differ in the names of their columns alone are measured once and read each in its own way.
    """

    name: str
    place: int
    reader: Task[Any, Any]
    level: Fraction


def batch_task(parts: Sequence[Task[Any, Any]], answers: Sequence[ShownAnswer]) -> Task[Any, AnswerBatch]:
    """Return the task that draws several tasks about one dataset, each of which is measured once.

    Names and order of the answers are not part of the question.

    Parameters
    ----------
    parts
        The tasks, in an order that does not depend on the order of the questions.
    answers
        The answers, in the order in which they were asked.
    """

    def read(noisy: Sequence[Noisy], confidence: Fraction) -> AnswerBatch:
        del confidence  # each answer has its own
        noisy_of_task, start = [], 0
        for part in parts:
            noisy_of_task.append(noisy[start : start + len(part.steps)])
            start += len(part.steps)
        return AnswerBatch(
            tuple(
                BatchAnswer(one.name, one.reader.reading(noisy_of_task[one.place], one.level))
                for one in answers
            )
        )

    def unavailable() -> TacitError | None:
        return next((refusal for part in parts if (refusal := part.unavailable())), None)

    return Task(
        document=lambda: {"batch": [part.question for part in parts]},
        open=_read_nothing,
        steps=(),
        reading=read,
        parts=tuple(parts),
        blocks=_blocks(parts),
        statements=lambda: [statement for part in parts for statement in part.sql],
        left_out=lambda: tuple(dict.fromkeys(line for part in parts for line in part.omissions)),
        unavailable=unavailable,
    )


def _read_nothing(_readings: SharedReadings) -> None:
    """Read nothing: a batch has no data beside its parts."""


def _blocks(parts: Sequence[Task[Any, Any]]) -> tuple[str, ...]:
    """Return the blocks that any part reads; none, which stands for all data, if one part names none."""
    if not all(part.blocks for part in parts):
        return ()
    return tuple(sorted({block for part in parts for block in part.blocks}))


@overload
def batch(*questions: Plan[Any], weights: None = None, **named: Plan[Any]) -> Plan[AnswerBatch]: ...


@overload
def batch(
    *questions: Any, weights: Mapping[str, Number] | Sequence[Number] | None = None, **named: Any
) -> BatchQuestion: ...


def batch(
    *questions: Any, weights: Mapping[str, Number] | Sequence[Number] | None = None, **named: Any
) -> BatchQuestion | Plan[AnswerBatch]:
    """Ask several questions about one dataset as one: one charge, one certificate, one stored release.

    Guarantee
    ---------
    The costs of all mechanisms add up, and the sum stays within what the plan promises; the certified
    accounting checks this after the split. A question that is in the batch twice is measured once.

    Parameters
    ----------
    questions, named
        Questions (everything that has a method ``plan``), or functions that make a plan from ``epsilon=``,
        ``delta=`` or ``rho=``. The release has each answer by its position, and by its name if it has one.
        Or plans that are ready: the result is then the plan of all of them, at the cost of all.
    weights
        How much of the budget each question gets, relative to the others: in the order of the questions, or
        by name. By default, all get the same. A question of twice the weight has about half the error.

    Returns
    -------
    BatchQuestion or Plan
        A question, whose ``plan`` splits a budget; for ready plans, their common plan.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> places = visits.group_by("hospital", keys={"hospital": ["A", "B"]}).agg(n=tc.count())
    >>> both = tc.batch(all=visits.agg(n=tc.count()), places=places, weights={"all": 2})
    >>> release = both.plan(epsilon=0.5).release()
    >>> release["all"].low <= release[0].value <= release["all"].high
    True
    >>> visits.remaining
    epsilon 0.5 of 1
    """
    members = [*((f"q{number}", question) for number, question in enumerate(questions, 1)), *named.items()]
    if not members or len(members) > _MAX_QUESTIONS:
        raise bad_parameter("questions", f"1 to {_MAX_QUESTIONS:,} questions", len(members), fix=_EXAMPLE)
    if len({name for name, _ in members}) < len(members):
        raise bad_parameter("names", "different from q1, q2 and so on", sorted(named), fix=_EXAMPLE)
    ready = [isinstance(question, Plan) for _, question in members]
    if all(ready):
        Omitted("for plans, which have their cost already").read("weights", weights)
        return _joint_plan(members, None)
    for name, question in members:
        if isinstance(question, Plan) or not (
            callable(getattr(question, "plan", None)) or callable(question)
        ):
            raise TacitError(
                "bad-parameter",
                f"{name} is {'a plan' if isinstance(question, Plan) else 'not a question'}, but others are "
                "questions"
                if any(ready)
                else f"{name} is not a question: it has no method plan",
                why="a batch splits a budget over questions, or joins plans that have their parts already",
                fix=_EXAMPLE,
            )
    return BatchQuestion(tuple(members), _read_weights([name for name, _ in members], weights))


@dataclass(frozen=True, slots=True, repr=False)
class BatchQuestion:
    """Several questions that are planned as one; ``plan`` splits a budget over them."""

    members: tuple[tuple[str, Any], ...]
    weights: tuple[Fraction, ...]

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.members)
        return (
            f"batch of {len(self.members)} questions: {names}\n"
            "not planned yet, and nothing was read: .plan(epsilon=0.5) shows the cost and the expected errors"
        )

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        confidence: Number = 0.95,
        advantage: Number | None = None,
        attack: tuple[Number, Number] | None = None,
        belief: tuple[Number, Number] | None = None,
        total: str | None = None,
    ) -> Plan[AnswerBatch]:
        """Plan all questions within one total, and state the cost. Touches no data.

        A pure epsilon is split in proportion to the weights. With delta or rho, rho is split in proportion
        to the squares of the weights. With equal weights, the error of every question then grows by the same
        factor, compared with asking it alone. Whatever
        the composition of all mechanisms then leaves over is given to all in the same proportions.

        Guarantee: the composed cost is within the total, by the certified accounting.

        Parameters
        ----------
        epsilon, delta, rho
            The total for the batch.
        confidence
            How often each interval covers the noise.
        advantage, attack, belief, total
            Instead of a total: the risk of all answers together, as in `tacit.core.Question.plan`.
        """
        goal = Goal.read(
            epsilon=epsilon, delta=delta, rho=rho, confidence=confidence, advantage=advantage, attack=attack,
            belief=belief, total=total, takes=ANY_TOTAL | {RHO_WITH_DELTA},
        )  # fmt: skip
        return goal.planned(self._planned)

    def _planned(self, goal: Goal) -> Plan[AnswerBatch]:
        plans = split([one for _, one in self.members], self.weights, goal)
        names = [name for name, _ in self.members]
        return _joint_plan(list(zip(names, plans, strict=True)), goal.promised)


def rebuilt_batch(request: Mapping[str, Any], rebuild: Callable[[Any], Plan[Any]]) -> Plan[AnswerBatch]:
    """Make the plan of a batch from its request, with the function that makes those of its members.

    The promised total is part of the certificate, so it is checked against the cost.
    """
    plans, total = request["batch"], request["promised"]
    if not isinstance(plans, list) or not 0 < len(plans) <= _MAX_QUESTIONS:
        raise ValueError("not the members of a batch")
    names = [name for name, _ in plans]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("not the names of a batch")
    if not set(total) <= {"epsilon", "delta", "rho"}:
        raise ValueError("not the total of a batch")
    promised = {name: read_fraction(value) for name, value in total.items()}
    return _joint_plan([(name, rebuild(one)) for name, one in plans], promised)


def _joint_plan(
    members: Sequence[tuple[str, Plan[Any]]], promised: Mapping[str, Fraction] | None
) -> Plan[Any]:
    """Make the plan of all members; without a promise, the promise follows from theirs."""
    plans = [plan for _, plan in members]
    each = [_member(name, plan) for name, plan in members]
    _check_one_dataset(each)
    if len({plan.confidence for plan in plans}) > 1:
        raise TacitError(
            "bad-parameter",
            "the intervals of the plans have different confidences",
            why="a plan states its errors at one confidence",
            fix=Set(confidence=float(plans[0].confidence)),
        )
    distinct = sorted({one.hash: one for one in each}.items())
    places = {digest: place for place, (digest, _) in enumerate(distinct)}
    answers = tuple(
        ShownAnswer(name, places[one.hash], _task(one), plan.confidence)
        for (name, plan), one in zip(members, each, strict=True)
    )
    task = batch_task([_task(one) for _, one in distinct], answers)
    words = f"{len(members)} questions at once: " + "; ".join(dict.fromkeys(one.asked for one in each))
    packages = tuple(sorted({package for one in each for package in one.packages}))
    joint = replace(each[0], task=task, promised=promised or {}, asked=words, audit=None, packages=packages)
    if promised is None:
        promised = _promise_of({one.hash: one for one in plans}.values(), joint)
        joint = replace(joint, promised=promised)
    if not joint.cost.fits(
        Budget(promised.get("epsilon"), promised.get("delta", 0), rho=promised.get("rho"))
    ):
        raise TacitError(
            "plan-differs",
            "the batch costs more than it promises",
            why="the promised total stands in the certificate, so the composed cost must be within it",
            fix="plan the batch again",
        )
    return Plan(
        dict(promised), plans[0].confidence, words, (joint,),
        _forecast=lambda: _forecasts(members),
        _facts=lambda: _facts(members),
        _request=lambda: _request(members, promised),
        _present=lambda release: _present(release, plans),
    )  # fmt: skip


def _task(member: Member) -> Task[Any, Any]:
    """Return the task of a member that is drawn at once."""
    return cast("Task[Any, Any]", member.task)


def _member(name: str, plan: Plan[Any]) -> Member:
    """Return the part of a plan's only dataset, or refuse a plan that cannot be in a batch."""
    [member, *others] = plan._members  # noqa: SLF001 - the core's own
    why = (
        "it asks several datasets, and each of them pays from its own ledger" if others
        else "it runs on the device of the person who answers, and no ledger is charged" if not member.ledger
        else "it is a run of instalments, which are drawn one by one" if member.stages
        else "it is a batch already" if _task(member).parts
        else "its noise is shared with other datasets" if any("shares" in law for law in member.laws)
        else ""
    )  # fmt: skip
    if why:
        fix = "put all questions into one batch" if "already" in why else "leave it out, and ask it by itself"
        raise TacitError("not-allowed", f"{name} cannot be part of a batch", why=why, fix=fix)
    return member


def _check_one_dataset(members: Sequence[Member]) -> None:
    member = members[0]
    for other in members[1:]:
        if other.identity != member.identity or not (
            other.ledger is member.ledger or other.ledger == member.ledger
        ):
            raise TacitError(
                "not-allowed",
                "a batch asks one dataset, but its questions belong to several: "
                f"{member.identity.name} and {other.identity.name}",
                why="one charge is made to one ledger for one declared dataset and version",
                fix="make one batch for each dataset",
            )


def _promise_of(plans: Any, joint: Member) -> dict[str, Fraction]:
    """Return what ready plans promise together: the sums, or what their composition allows if it is less."""
    stated = [plan.promised for plan in plans]
    delta = sum((one.get("delta", Fraction(0)) for one in stated), Fraction(0))
    cost, small = joint.cost, {"delta": delta} if delta else {}
    if all("epsilon" in one for one in stated):
        total = sum((one["epsilon"] for one in stated), Fraction(0))
        if delta and delta < 1:
            tight = rational("epsilon", float(f"{cost.epsilon(delta=delta) * (1 + 1e-5):.6g}"), zero=True)
            if tight < total and cost.fits(Budget(tight, delta)):
                total = tight
        return {"epsilon": total, **small}
    if all("rho" in one for one in stated):
        return {"rho": sum((one["rho"] for one in stated), Fraction(0)), **small}
    spend = cost.spend
    if spend.rho is None:
        raise TacitError(
            "not-allowed",
            "plans in epsilon and plans in rho cannot be joined, because their cost has no finite rho",
            fix="plan all questions in epsilon, or all in rho",
        )
    return {"rho": spend.rho, **({"delta": spend.delta} if spend.delta else {})}


def _forecasts(members: Sequence[tuple[str, Plan[Any]]]) -> list[Forecast]:
    return [replace(one, column=f"{name}.{one.column}") for name, plan in members for one in plan.forecast]


def _facts(members: Sequence[tuple[str, Plan[Any]]]) -> list[tuple[str, str]]:
    """Say what each question gets, and what else its own plan says; what all say is said once."""
    from tacit.core._plan import promise_in_words

    each = [(name, plan, plan.facts) for name, plan in members]
    same = [pair for pair in each[0][2] if all(pair in facts for _, _, facts in each)]
    parts = "; ".join(f"{name} as if asked alone with {promise_in_words(p.promised)}" for name, p, _ in each)
    return [
        ("batch", f"{len(members)} questions, charged once: {parts}"),
        *same,
        *((f"{name}, {label}", text) for name, _, facts in each for label, text in facts
          if (label, text) not in same),
    ]  # fmt: skip


def _request(members: Sequence[tuple[str, Plan[Any]]], promised: Mapping[str, Fraction]) -> JSON:
    """Return the requests of all members; None if one of them cannot be rebuilt."""
    each = [(name, plan.to_json()["request"]) for name, plan in members]
    if any(request is None for _, request in each):
        return None
    total = {name: str(value) for name, value in promised.items()}
    return {"batch": [[name, request] for name, request in each], "promised": total}


def _present(release: Release[Any], plans: Sequence[Plan[Any]]) -> Release[Any]:
    """Show every answer as its own plan shows it: order, names, arithmetic."""
    content = release.content
    answers = []
    for answer, plan in zip(content.answers, plans, strict=True):
        release_of_answer = Release(answer.content, release.certificate)
        if plan._present is not None:  # noqa: SLF001 - the core's own
            release_of_answer = plan._present(release_of_answer)  # noqa: SLF001
        answers.append(replace(answer, content=release_of_answer.content, marks=release_of_answer.marks))
    return replace(release, content=replace(content, answers=tuple(answers)))


def _read_weights(
    names: Sequence[str], weights_given: Mapping[str, Number] | Sequence[Number] | None
) -> tuple[Fraction, ...]:
    """Read the weights in the order of the questions; 1 where nothing is said."""
    from collections.abc import Mapping as Named

    if weights_given is None:
        return (Fraction(1),) * len(names)
    if isinstance(weights_given, Named):
        example = f"weights={{{names[0]!r}: 2}}"
        weights = Mapped("numbers by name", example, names=tuple(names)).read("weights", weights_given)
        return tuple(rational(f"the weight of {name}", weights.get(name, 1)) for name in names)
    words = "numbers in the order of the questions (or numbers by name)"
    numbers = Listed(words, str([1] * len(names)), len(names), len(names)).read("weights", weights_given)
    return tuple(rational(f"the weight of {name}", one) for name, one in zip(names, numbers, strict=True))
