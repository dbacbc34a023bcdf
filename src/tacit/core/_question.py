"""A question: what is asked of a dataset, before anybody has said what it may cost.

A field declares each question once, as a `QuestionKind`: its name, its arguments and one function that turns
arguments and a goal into a draft. From the declaration follow the call in Python, the plan, batches, the wire
form, the forms of a service and the options of the command.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from tacit.calls import refusing
from tacit.core._goal import ANY_TOTAL, Goal
from tacit.core._plan import Plan
from tacit.core._registry import packages_of
from tacit.core._release import Content
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from tacit.core._dataset import Dataset
    from tacit.core._plan import Forecast, OnDemand
    from tacit.core._protocols import JSON
    from tacit.core._release import Release
    from tacit.core._task import RunTask, Task
    from tacit.exact import Number
    from tacit.parameters import Parameter

C = TypeVar("C", bound=Content)
P = ParamSpec("P")
#: What the old way of asking, which returned a plan at once, took beside a question's arguments.
_GOAL = ("epsilon", "delta", "rho", "confidence", "sigma")
#: What people look for in a question, though only its release has it.
_OF_AN_ANSWER = frozenset(
    {"columns", "high", "keys", "low", "plot", "release", "to_csv", "to_pandas", "value"}
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a question.

    Parameters
    ----------
    name
        Its name.
    accepts
        Which values it accepts, and how they are read.
    default
        What holds where nothing is given; it is not read.
    needed
        Whether it must be given.
    words
        What it means, for commands and forms; by default what it accepts.
    served
        What a service accepts, where that is less.
    brief
        Whether a plan's document leaves it out where nothing is given.
    """

    name: str
    accepts: Parameter
    default: object = None
    needed: bool = False
    words: str = ""
    served: Parameter | None = None
    brief: bool = False

    def read(self, value: object) -> object:
        """Return the value as the question uses it, or refuse it."""
        return value if value is None and not self.needed else self.accepts.read(self.name, value)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Draft(Generic[C]):
    """What a field makes of a question and a goal: everything that a plan has beside its dataset.

    Parameters
    ----------
    task
        Steps, and how their results are read.
    asked
        The question in words, or its shape if the dataset says so, for the ledger's record.
    forecast, facts
        What to expect of each released quantity, and what else a person should know; or functions.
    goal
        The goal that the plan keeps, where the question does not need all of what was given.
    promised
        What the plan promises in total, where it is not what the goal names.
    present
        How the release is shown: order, names, arithmetic. It is not part of the plan's identity.
    """

    task: Task[Any, C] | RunTask[Any, C]
    asked: str
    forecast: OnDemand[Forecast] = ()
    facts: OnDemand[tuple[str, str]] = ()
    goal: Goal | None = None
    promised: Mapping[str, Fraction] | None = None
    present: Callable[[Release[C]], Release[C]] | None = None


@dataclass(frozen=True, slots=True)
class WireForm:
    """How a question is written in a plan's document where that is not the common form.

    Parameters
    ----------
    write
        Returns the request of a question with a goal; None if the plan cannot be rebuilt.
    read
        Reads a request of this question back into arguments and goal; returns None if it is of another one.
    """

    write: Callable[[Question[Any], Goal], JSON]
    read: Callable[[Any, Mapping[str, Any]], tuple[Mapping[str, Any], Goal] | None]

    @classmethod
    def none(cls) -> WireForm:
        """Return the form of a question whose plans cannot be rebuilt, such as one with a model's code."""
        return cls(lambda _question, _goal: None, lambda _dataset, _request: None)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class QuestionKind(Generic[C]):
    """One question of a field, declared once.

    Parameters
    ----------
    name
        The method that asks it, and its name in plans, commands and services.
    words
        What it asks, in words for a menu: "Count the triangles".
    draft
        Makes the draft of a plan: ``draft(dataset, goal, **arguments)``.
    arguments
        What it takes.
    takes
        What its `plan` takes beside epsilon and the confidence; see `Goal.read`.
    served
        Whether services and commands offer it: all arguments can be typed, and none is private.
    inner
        Whether functions of its field alone ask it, because they check arguments that it takes as they are.
    wire
        How it is written in a plan's document, if not in the common form.
    example
        A goal that its `plan` takes, as hints show it.
    """

    name: str
    words: str
    draft: Callable[..., Draft[C]]
    arguments: tuple[Argument, ...] = ()
    takes: frozenset[str] = ANY_TOTAL
    served: bool = True
    inner: bool = False
    wire: WireForm | None = None
    example: str = "epsilon=0.5"

    def ask(self, dataset: Dataset, **given: Any) -> Question[C]:
        """Return the question with these arguments, or refuse them."""
        return Question(dataset, self, self.read(given))

    def read(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Read the arguments of a question: all of them, with defaults, each refused by its declaration."""
        arguments = {argument.name: argument for argument in self.arguments}
        for name in given:
            if name not in arguments:
                names = tuple(arguments)
                raise TacitError(
                    "bad-parameter",
                    f"{self.name} has no argument {name!r}",
                    why=f"it takes: {', '.join(names) or 'none'}",
                    fix=Choose(names, given=name) if names else Code(f".{self.name}()"),
                )
        for argument in self.arguments:
            if argument.needed and given.get(argument.name) is None:
                raise bad_parameter(
                    argument.name, argument.accepts.words, None,
                    fix=Set(**{argument.name: argument.accepts.example}),
                )  # fmt: skip
        return {name: one.read(given.get(name, one.default)) for name, one in arguments.items()}

    def written(self, question: Question[C], goal: Goal) -> JSON:
        """Return the request from which the question's plan is rebuilt."""
        if self.wire is not None:
            return self.wire.write(question, goal)
        arguments = {}
        for argument in self.arguments:
            value = question.arguments[argument.name]
            if value is not None or not argument.brief:
                arguments[argument.name] = None if value is None else argument.accepts.to_json(value)
        return {"ask": self.name, "goal": goal.to_json(), "given": arguments}

    def _given(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a question in the common form; an unknown one is a ``KeyError``."""
        accepted = {argument.name: argument.accepts for argument in self.arguments}
        return {
            name: None if value is None else accepted[name].from_json(value)
            for name, value in document.items()
        }

    def rebuilt(self, dataset: Dataset, request: Mapping[str, Any]) -> Plan[C] | None:
        """Make a plan from its request again; None if the request is of another question."""
        if self.wire is not None:
            request_of_question = self.wire.read(dataset, request)
        elif request.get("ask") == self.name:
            request_of_question = self._given(request["given"]), Goal.from_json(request["goal"], self.takes)
        else:
            request_of_question = None
        return (
            None
            if request_of_question is None
            else self.ask(dataset, **request_of_question[0]).planned(request_of_question[1])
        )


@dataclass(frozen=True, repr=False, eq=False)
class Question(Generic[C]):
    """What is asked of a dataset; ``plan`` states what it costs. Nothing was read or charged yet.

    Parameters
    ----------
    dataset
        The dataset that is asked.
    kind
        The declaration of the question.
    arguments
        What it was asked with.
    """

    dataset: Dataset
    kind: QuestionKind[C] = field(repr=False)
    arguments: Mapping[str, Any]

    @property
    def words(self) -> str:
        """The question in words, with the arguments whose text says something."""
        names = [one.name for one in self.kind.arguments if getattr(one.accepts, "shown", True)]
        values = {name: self.arguments[name] for name in names}
        arguments = ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
        return f"{self.kind.words}{f' ({arguments})' if arguments else ''}"

    def __repr__(self) -> str:
        return (
            f"question to {self.dataset.name}: {self.words}\n"
            f"not planned yet, and nothing was read: .plan({self.kind.example}) shows the cost and the "
            "expected error"
        )

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        within: Any = None,
        confidence: Number = 0.95,
        size: int | None = None,
        weights: Mapping[str, Number] | None = None,
        advantage: Number | None = None,
        attack: tuple[Number, Number] | None = None,
        belief: tuple[Number, Number] | None = None,
        total: str | None = None,
    ) -> Plan[C]:
        """Plan the question and state its cost and the expected error. Touches no data.

        Guarantee: the cost is a function of the question and of public facts alone.

        Parameters
        ----------
        epsilon, delta
            The total for this plan. Without ``delta`` the plan is pure.
        rho
            Instead of epsilon: the total in zCDP (Gaussian noise).
        within
            Instead of a total, where the question allows it: the smallest epsilon at which every value stays
            within this error.
        confidence
            How often each interval covers the noise.
        size
            A public guess of the number of rows in each group, where the question uses it for planning.
        weights
            How much of the budget each column gets, relative to the others, where there are several.
        advantage
            Instead of a total: the most by which hits of an attacker may exceed false alarms. The plan is the
            one with the least noise that keeps this risk.
        attack
            Instead: a false-alarm rate and the largest hit rate at it, such as ``(0.01, 0.02)``.
        belief
            Instead: a belief before the answer and the largest belief afterwards, such as ``(0.01, 0.02)``.
            It holds for every answer, or with ``delta`` except with this probability.
        total
            Of a risk: ``"rho"`` for Gaussian noise without a delta; by default the total is an epsilon.

        Examples
        --------
        >>> import tacit as tc
        >>> friends = tc.graph([("ana", "ben")], unit="edge", nodes=3, budget=tc.Budget(epsilon=1))
        >>> friends.edges().plan(epsilon=0.5).cost.spend.epsilon
        Fraction(1, 2)
        >>> friends.edges().plan(advantage=0.05).cost.advantage <= 0.05
        True
        """
        goal = Goal.read(
            epsilon=epsilon, delta=delta, rho=rho, within=within, confidence=confidence, size=size,
            weights=weights, advantage=advantage, attack=attack, belief=belief, total=total,
            takes=self.kind.takes,
        )  # fmt: skip
        return self.planned(goal)

    def planned(self, goal: Goal) -> Plan[C]:
        """Plan the question for a goal that was read; see `plan`."""
        if goal.risk is not None:
            return goal.planned(self.planned)
        return self.plan_of(self.kind.draft(self.dataset, goal, **self.arguments), goal)

    def plan_of(self, draft: Draft[C], goal: Goal) -> Plan[C]:
        """Return the plan of a draft that was made for a goal; see `plan`."""
        self.dataset.check_question(self.kind)
        goal_of_draft = goal if draft.goal is None else draft.goal
        return Plan.of(
            self.dataset,
            draft.task,
            promised=goal_of_draft.promised if draft.promised is None else draft.promised,
            forecast=draft.forecast,
            facts=draft.facts,
            confidence=goal_of_draft.confidence,
            asked=draft.asked,
            request=lambda: self.kind.written(self, goal_of_draft),
            present=draft.present,
            packages=packages_of(self.kind.draft.__module__, type(self.dataset).__module__),
        )

    if not TYPE_CHECKING:  # for a type checker, a question has only what it has

        def __getattr__(self, name: str) -> Any:
            missing = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in _OF_AN_ANSWER:
                missing += f": .plan({self.kind.example}).release() charges the budget and gives the answer"
            raise AttributeError(missing)


def plannable(method: Callable[P, Question[C]]) -> Callable[P, Question[C]]:
    """Let a method that returns a question also be called as before, with the goal of a plan.

    The former ``friends.edges(epsilon=1)`` then warns, shows the new line and returns the plan.
    """

    @wraps(method)
    def asked(*args: P.args, **arguments: P.kwargs) -> Question[C]:
        goal: dict[str, Any] = {name: arguments.pop(name) for name in _GOAL if name in arguments}
        question = method(*args, **arguments)
        if not goal:
            return question
        told = ", ".join(f"{name}={value!r}" for name, value in goal.items())
        warnings.warn(
            f"a question is planned in a second step now: .{method.__name__}(...).plan({told})",
            DeprecationWarning,
            stacklevel=3,
        )
        return question.plan(**goal)  # type: ignore[return-value]

    return refusing(asked)


def questions_by_name(kinds: Sequence[QuestionKind[Any]]) -> dict[str, QuestionKind[Any]]:
    """Return declared questions by their names."""
    return {kind.name: kind for kind in kinds}
