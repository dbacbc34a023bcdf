"""A consortium of tables: one question; each dataset pays from its own budget, noisy integers are added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.core import PLAN_SCHEMA, AnswerTable, Goal, Plan, Question
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.parameters import Instance, Listed, Mapped
from tacit.tables._dataset import TableDataset
from tacit.tables.planning._drafts import drafts_of
from tacit.tables.questions._question_kinds import TABLE, read_member
from tacit.tables.questions._rows import Query

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.core import JSON
    from tacit.tables.planning._drafts import TableMember
    from tacit.tables.questions._aggregates import Aggregate
    from tacit.tables.questions._keys import KeysGiven, MissingKeys
    from tacit.tables.questions._python_expressions import Expr
    from tacit.tables.questions._rows import GroupedRows, Rows

#: One number for all members, or one for each, by name or in their order.
PerMember: TypeAlias = Number | Mapping[str, Number] | Sequence[Number] | None


def consortium(members: Sequence[TableDataset], *, disjoint: bool = False) -> Consortium:
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
    >>> float(both.agg(n=tc.count()).plan(epsilon=0.5).cost.epsilon(delta=0))
    0.5
    """
    members = Listed("datasets", "[north, south]", least=2).read("members", members)
    for member in members:
        Instance(TableDataset, "tc.consortium([north, south], disjoint=True)").read("a member", member)
    facts = {(str(m.unit), m.adjacency) for m in members}
    if len(facts) > 1:
        raise bad_parameter(
            "members",
            "datasets with the same unit and the same adjacency",
            sorted(facts),
            fix="declare the same unit and adjacency for all members",
        )
    if disjoint and members[0].adjacency == "replace":
        raise TacitError(
            "not-allowed",
            "members can be declared disjoint only with the adjacency add/remove",
            why="a unit that is replaced can leave one member and enter another, so two members change",
            fix=Set(disjoint=False),
        )
    names = [m.name for m in members]
    if len({(id(m._ledger), m.name) for m in members}) != len(members):
        raise bad_parameter(
            "members",
            "different datasets",
            names,
            fix="list each dataset once; two datasets of one ledger need different names",
        )
    return Consortium(tuple(members), disjoint)


@dataclass(frozen=True, slots=True)
class Consortium:
    """Several datasets that answer together."""

    members: tuple[TableDataset, ...]
    disjoint: bool

    def ask(self, question: Callable[[TableDataset], Query]) -> ConsortiumQuery:
        """Ask every member the same question, written as a function of a dataset."""
        queries = tuple(question(m) for m in self.members)
        example = queries[0]
        return ConsortiumQuery(
            example.dataset, example.kind, example.arguments, consortium=self, queries=queries
        )

    def sql(self, query: str) -> ConsortiumQuery:
        """Ask every member the same question in SQL; tables are named as in each member."""
        return self.ask(lambda member: member.sql(query))

    def where(self, condition: Expr | str) -> ConsortiumRows:
        """Keep rows by a condition, in every member."""
        return self._rows().where(condition)

    def with_columns(self, **columns: Expr | str | float) -> ConsortiumRows:
        """Add or redefine columns, in every member."""
        return self._rows().with_columns(**columns)

    def group_by(
        self,
        *by: str | Expr,
        keys: KeysGiven = None,
        missing: MissingKeys = "drop",
        **expressions: Expr | str,
    ) -> ConsortiumGroups:
        """Group by columns; the keys are public and the same in every member."""
        return self._rows().group_by(*by, keys=keys, missing=missing, **expressions)

    def agg(self, **aggregates: Aggregate) -> ConsortiumQuery:
        """Aggregate all rows of all members into one line."""
        return self._rows().agg(**aggregates)

    def plan_from(self, document: Mapping[str, JSON]) -> Plan[AnswerTable]:
        """Rebuild a plan of this consortium from the document that `Plan.to_json` returned."""
        plan_document: Any = document
        identities = [member.identity.document() for member in self.members]
        plan: Plan[AnswerTable] | None = None
        try:
            requests = plan_document["request"] if plan_document["dataset"] == identities else []
            questions = [read_member(member, one) for member, one in zip(self.members, requests, strict=True)]
            plan = planned_together(questions, disjoint=self.disjoint)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, TacitError):
            plan = None
        if (
            plan is None
            or plan.hash != plan_document.get("plan")
            or plan_document.get("schema") != PLAN_SCHEMA
        ):
            raise TacitError(
                "plan-differs",
                "the plan does not belong to these datasets with these public facts",
                why="a plan is bound to the declared facts of every member",
                fix="plan the question again",
            )
        return plan

    def _rows(self) -> ConsortiumRows:
        return ConsortiumRows(self, lambda member: member[member.main])


@dataclass(frozen=True, slots=True)
class ConsortiumRows:
    """Rows of every member, on their way to a question."""

    consortium: Consortium
    of: Callable[[TableDataset], Rows]

    def where(self, condition: Expr | str) -> ConsortiumRows:
        """Keep rows by a condition, in every member."""
        return ConsortiumRows(self.consortium, lambda member: self.of(member).where(condition))

    def with_columns(self, **columns: Expr | str | float) -> ConsortiumRows:
        """Add or redefine columns, in every member."""
        return ConsortiumRows(self.consortium, lambda member: self.of(member).with_columns(**columns))

    def group_by(
        self,
        *by: str | Expr,
        keys: KeysGiven = None,
        missing: MissingKeys = "drop",
        **expressions: Expr | str,
    ) -> ConsortiumGroups:
        """Group by columns; the keys are public and the same in every member."""
        return ConsortiumGroups(
            self.consortium,
            lambda member: self.of(member).group_by(*by, keys=keys, missing=missing, **expressions),
        )

    def agg(self, **aggregates: Aggregate) -> ConsortiumQuery:
        """Aggregate all rows of all members into one line."""
        return self.consortium.ask(lambda member: self.of(member).agg(**aggregates))


@dataclass(frozen=True, slots=True)
class ConsortiumGroups:
    """Rows of every member in groups."""

    consortium: Consortium
    of: Callable[[TableDataset], GroupedRows]

    def agg(self, **aggregates: Aggregate) -> ConsortiumQuery:
        """Name the aggregates of each group."""
        return self.consortium.ask(lambda member: self.of(member).agg(**aggregates))


def planned_together(members: Sequence[TableMember], *, disjoint: bool) -> Plan[AnswerTable]:
    """Plan one question for all members, whose noisy integers are added."""
    drafts = drafts_of(members)
    plans = [
        Question(dataset, TABLE, {"question": question, "post": post}).plan_of(draft, goal)
        for (dataset, question, goal, post), draft in zip(members, drafts, strict=True)
    ]
    return Plan.together(plans, disjoint=disjoint)


@dataclass(frozen=True, repr=False)
class ConsortiumQuery(Query):
    """A complete question to a consortium; ``plan`` states its cost.

    Parameters
    ----------
    consortium, queries
        Who is asked, and the question to each member; the first member's is the question itself.
    """

    consortium: Consortium = field(kw_only=True)
    queries: tuple[Query, ...] = field(kw_only=True)

    def __hash__(self) -> int:
        return hash(self.queries)

    def __repr__(self) -> str:
        names = ", ".join(member.name for member in self.consortium.members)
        return f"question to {names}: {self.words}\nnot planned yet, and nothing was read"

    def plan(
        self,
        *,
        epsilon: PerMember = None,
        delta: Number = 0,
        rho: PerMember = None,
        within: Number | None = None,
        confidence: Number = 0.95,
        size: int | None = None,
        weights: Mapping[str, Number] | None = None,
        advantage: Number | None = None,
        attack: tuple[Number, Number] | None = None,
        belief: tuple[Number, Number] | None = None,
        total: str | None = None,
    ) -> Plan[AnswerTable]:
        """Plan the question: one number is the total cost for one unit at most, over all members.

        Parameters
        ----------
        epsilon, rho
            The total; or what each member pays, by name (``{"north": 0.5, "south": 1}``) or in their order.
            A unit of disjoint members then pays what its own member pays.
        delta, within, confidence, size, weights, advantage, attack, belief, total
            As for a single dataset; ``within`` and ``size`` are about all members together.
        """
        risks = {"advantage": advantage, "attack": attack, "belief": belief}
        asked = {name: value for name, value in risks.items() if value is not None}
        options = {"within": within, "confidence": confidence, "size": size, "weights": weights}
        if asked or total is not None:
            takes = self.kind.takes
            goal = Goal.read(
                epsilon=epsilon, delta=delta, rho=rho, total=total, takes=takes, **asked, **options  # type: ignore[arg-type]
            )  # fmt: skip
            planned = self._planned_with
            return goal.planned(
                lambda one: planned(options, epsilon=one.epsilon, delta=one.delta, rho=one.rho)
            )
        return self._planned_with(options, epsilon=epsilon, delta=delta, rho=rho)

    def _planned_with(
        self, options: Mapping[str, Any], *, epsilon: PerMember, delta: Number, rho: PerMember
    ) -> Plan[AnswerTable]:
        """Plan the question for a total over all members."""
        parts = 1 if self.consortium.disjoint else len(self.queries)
        small = rational("delta", delta, zero=True) / parts
        budgets = zip(self._each("epsilon", epsilon, parts), self._each("rho", rho, parts), strict=True)
        goals = [
            Goal.read(epsilon=own, rho=own_rho, delta=small, takes=self.kind.takes, **options)
            for own, own_rho in budgets
        ]
        members = [
            (member, query.question, goal, query.post)
            for member, query, goal in zip(self.consortium.members, self.queries, goals, strict=True)
        ]
        return planned_together(members, disjoint=self.consortium.disjoint)

    def _each(self, name: str, amount: PerMember, parts: int) -> list[Number | None]:
        """Return what each member pays."""
        names = [member.name for member in self.consortium.members]
        if isinstance(amount, Mapping):
            example = f"{name}={dict.fromkeys(names, 0.5)}"
            numbers = Mapped("numbers by member", example, tuple(names), whole=True).read(name, amount)
            return [numbers[member] for member in names]
        if isinstance(amount, Sequence):
            n = len(names)
            return Listed("numbers", str([0.5] * n), least=n, most=n).read(name, amount)
        return [None if amount is None else rational(name, amount) / parts] * len(names)
