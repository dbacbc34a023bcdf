"""A consortium: one question of several datasets; each pays from its own budget, noisy integers are added."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from tacit.accounting import Cost
from tacit.core.certificate import Certificate
from tacit.core.release import Release
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.tables.answering import Answering
from tacit.tables.dataset import Dataset
from tacit.tables.planning import Target, make_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.core.plan import Forecast, Plan
    from tacit.tables._fluent import Expr
    from tacit.tables.aggregates import Asked
    from tacit.tables.group_keys import KeysGiven
    from tacit.tables.query import Answer, Grouped, Rows

__all__ = ["Consortium", "ConsortiumAnswer", "ConsortiumPlan", "consortium"]


def consortium(members: Sequence[Dataset], *, disjoint: bool = False) -> Consortium:
    """Ask several datasets one question.

    Guarantee
    ---------
    Each member adds its own noise and pays from its own ledger before anything is added up. If no unit is
    in two members (``disjoint=True``, asserted by the curators), a plan of total epsilon costs each unit
    epsilon: parallel composition, valid under add/remove. Otherwise every member gets an equal part, and
    the parts add up to the total.

    Parameters
    ----------
    members
        Datasets with the same unit and adjacency, and with the facts that the question needs.
    disjoint
        Whether it is asserted that no unit has rows in two of them.

    Examples
    --------
    >>> import tacit as tc
    >>> north, south = (
    ...     tc.protect(f"{n}.csv", name=n, unit="pid", budget=tc.Budget(1), ledger=tc.Ledger.memory())
    ...     for n in ("north", "south")
    ... )
    >>> both = consortium([north, south], disjoint=True)
    >>> both.agg(n=tc.count()).plan(epsilon=0.5).cost
    Cost.pure(0.5)
    """
    if len(members) < 2 or not all(isinstance(m, Dataset) for m in members):
        raise bad_parameter(
            "members", "at least two datasets", members, fix="tc.consortium([a, b], disjoint=True)"
        )
    identities = {(str(m.unit), m.home.identity.adjacency) for m in members}
    if len(identities) > 1:
        raise bad_parameter(
            "members", "datasets with one unit and adjacency", sorted(identities), fix='unit="patient_id"'
        )
    if disjoint and members[0].home.identity.adjacency == "replace":
        raise TacitError(
            "not-allowed",
            "disjoint members need add/remove neighbours",
            why="a unit that is replaced can leave one member and enter another, so two members change",
            fix="tc.consortium([...], disjoint=False)",
        )
    names = [m.name for m in members]
    if len({(id(m.ledger), m.name) for m in members}) != len(members):
        raise bad_parameter("members", "different datasets", names, fix="each member once")
    return Consortium(tuple(members), disjoint)


@dataclass(frozen=True, slots=True)
class Consortium:
    """Several datasets that answer together."""

    members: tuple[Dataset, ...]
    disjoint: bool

    def ask(self, question: Callable[[Dataset], Answer]) -> ConsortiumAnswer:
        """Ask every member the same question, written as a function of a dataset."""
        return ConsortiumAnswer(self, tuple(question(m) for m in self.members))

    def sql(self, query: str) -> ConsortiumAnswer:
        """Ask every member the same question in SQL; tables are named as in each member."""
        return self.ask(lambda member: member.sql(query))

    def where(self, condition: Expr | str) -> ConsortiumRows:
        """Keep rows by a condition, in every member."""
        return self._rows().where(condition)

    def with_columns(self, **columns: Expr | str | float) -> ConsortiumRows:
        """Add or redefine columns, in every member."""
        return self._rows().with_columns(**columns)

    def group_by(self, *by: str | Expr, keys: KeysGiven = None, **named: Expr | str) -> ConsortiumGroups:
        """Group by columns; the keys are public and the same in every member."""
        return self._rows().group_by(*by, keys=keys, **named)

    def agg(self, **aggregates: Asked) -> ConsortiumAnswer:
        """Aggregate all rows of all members into one line."""
        return self._rows().agg(**aggregates)

    def _rows(self) -> ConsortiumRows:
        return ConsortiumRows(self, lambda member: member[member.main])


@dataclass(frozen=True, slots=True)
class ConsortiumRows:
    """Rows of every member, on their way to a question."""

    consortium: Consortium
    of: Callable[[Dataset], Rows]

    def where(self, condition: Expr | str) -> ConsortiumRows:
        """Keep rows by a condition, in every member."""
        return ConsortiumRows(self.consortium, lambda member: self.of(member).where(condition))

    def with_columns(self, **columns: Expr | str | float) -> ConsortiumRows:
        """Add or redefine columns, in every member."""
        return ConsortiumRows(self.consortium, lambda member: self.of(member).with_columns(**columns))

    def group_by(self, *by: str | Expr, keys: KeysGiven = None, **named: Expr | str) -> ConsortiumGroups:
        """Group by columns; the keys are public and the same in every member."""
        return ConsortiumGroups(
            self.consortium, lambda member: self.of(member).group_by(*by, keys=keys, **named)
        )

    def agg(self, **aggregates: Asked) -> ConsortiumAnswer:
        """Aggregate all rows of all members into one line."""
        return self.consortium.ask(lambda member: self.of(member).agg(**aggregates))


@dataclass(frozen=True, slots=True)
class ConsortiumGroups:
    """Rows of every member in groups."""

    consortium: Consortium
    of: Callable[[Dataset], Grouped]

    def agg(self, **aggregates: Asked) -> ConsortiumAnswer:
        """Name the aggregates of each group."""
        return self.consortium.ask(lambda member: self.of(member).agg(**aggregates))


@dataclass(frozen=True, slots=True)
class ConsortiumAnswer:
    """A complete question to a consortium; ``plan`` prices it."""

    consortium: Consortium
    answers: tuple[Answer, ...]

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        within: Number | None = None,
        confidence: Number = 0.95,
        size: int | None = None,
        weights: Mapping[str, Number] | None = None,
    ) -> ConsortiumPlan:
        """Price the question: the total that one unit pays at most, over all members.

        The parameters are those of a single dataset's plan; ``within`` and ``size`` are about all members
        together.
        """
        parts = 1 if self.consortium.disjoint else len(self.answers)
        target = Target(
            epsilon=None if epsilon is None else rational("epsilon", epsilon) / parts,
            delta=rational("delta", delta, zero=True) / parts,
            rho=None if rho is None else rational("rho", rho) / parts,
            within=within,
            confidence=confidence,
            size=size,
            weights=weights,
            copies=len(self.answers),
        )
        plans = tuple(make_plan(a.home, a.question, target, a.post) for a in self.answers)
        return ConsortiumPlan(plans, self.consortium.disjoint)


@dataclass(frozen=True, slots=True)
class ConsortiumPlan:
    """One plan per member, and the cost of all of them for one unit."""

    plans: tuple[Plan, ...]
    disjoint: bool

    def __post_init__(self) -> None:
        tasks = [_task(p) for p in self.plans]
        first = tasks[0]
        for task in tasks:
            if [s.step.mechanism for s in task.shares] != ["noise"] * len(task.shares):
                raise TacitError(
                    "not-allowed",
                    "a consortium adds noisy numbers, not picked values or privately selected groups",
                    why="each member adds its own noise before anything is shared",
                    fix="counts, sums, means, variances, histograms and quantiles, with public keys",
                )
            same = (task.question.keys, task.readings, [s.step for s in task.shares])
            if same != (first.question.keys, first.readings, [s.step for s in first.shares]):
                raise TacitError(
                    "not-allowed",
                    "the members understand the question differently",
                    why="their keys or bounds differ, so their numbers cannot be added",
                    fix="declare the same bounds and keys with every member",
                )

    @property
    def cost(self) -> Cost:
        """What one unit pays at most: the largest member's cost if disjoint, else the sum."""
        costs = [p.cost for p in self.plans]
        return Cost.parallel(*costs) if self.disjoint else reduce(add, costs)

    @property
    def columns(self) -> tuple[Forecast, ...]:
        """What to expect of each column: the noise of all members adds up."""
        return self.plans[0].columns

    def release(self, *, who: str = "", purpose: str = "") -> Release:
        """Let every member charge, compute and store; then add up the noisy integers."""
        drawn = [plan.draw(who=who, purpose=purpose) for plan in self.plans]
        payloads: list[Any] = [json.loads(d.payload) for d in drawn]
        first = _task(self.plans[0])
        summed = {
            "keys": payloads[0]["keys"],
            "steps": [
                [
                    [sum(cells) for cells in zip(*vectors, strict=True)]
                    for vectors in zip(*groups, strict=True)
                ]
                for groups in zip(*(p["steps"] for p in payloads), strict=True)
            ],
        }
        confidence = self.plans[0].confidence
        certificate = self._certificate([p.certificate(d) for p, d in zip(self.plans, drawn, strict=True)])
        read = first.read(summed, confidence)
        return self.plans[0].told(Release.from_payload(read, confidence, certificate, self.plans[0].notes))

    def _certificate(self, members: list[Certificate]) -> Certificate:
        first = dict(members[0].fields)
        first["cost"] = self.cost.to_json()  # type: ignore[assignment]
        first["members"] = [m.fields for m in members]
        first["disjoint"] = self.disjoint
        return Certificate(first)


def _task(plan: Plan) -> Answering:
    if not isinstance(plan.task, Answering):
        raise bad_parameter("plans", "plans of tables", type(plan.task).__name__, fix="a question of tables")
    return plan.task
