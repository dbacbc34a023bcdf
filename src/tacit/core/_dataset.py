"""The core's dataset, on which every field builds: identity, unit, budget and ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tacit.core._plan import PLAN_SCHEMA
from tacit.core._registry import questions_of
from tacit.core._unit import notes_on
from tacit.errors import TacitError
from tacit.fixes import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.accounting import Adjacency, Budget, Left
    from tacit.core._plan import Plan
    from tacit.core._protocols import JSON, Charger
    from tacit.core._question import QuestionKind
    from tacit.core._unit import Identity, Unit

#: What reading a request raises if it was written by another field, or was changed.
_ILLEGIBLE = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """Data, the unit that is protected, and public facts; made by `protect` and similar functions.

    A dataset answers through plans only. Within one Python process this is an agreement, not a boundary:
    whoever can run Python there can reach the rows through private attributes.
    """

    #: The kind of dataset, by which its questions are registered.
    kind: ClassVar[str] = ""
    #: The questions that its own field declares.
    questions: ClassVar[tuple[QuestionKind[Any], ...]] = ()

    identity: Identity
    _ledger: Charger
    record: Literal["words", "shape"] = field(default="words", kw_only=True)

    @property
    def name(self) -> str:
        """The declared name."""
        return self.identity.name

    @property
    def version(self) -> int:
        """The declared version of the data."""
        return self.identity.version

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.identity.unit

    @property
    def adjacency(self) -> Adjacency:
        """Which datasets are neighbours: with one unit more or less, or with one unit replaced."""
        return self.identity.adjacency

    @property
    def budget(self) -> Budget:
        """What may be learned in total."""
        budget: Budget = self._ledger.account(self.identity.name).budget
        return budget

    @property
    def remaining(self) -> Any:
        """What is left of the budget; of a dataset that is one block, what is left for this block."""
        if self.identity.block:
            return self._ledger.remaining(self.identity.name, block=self.identity.block)
        return self._ledger.remaining(self.identity.name)

    def left(self, plan: Plan[Any] | None = None) -> Left:
        """Return what is left for questions: one more of a size, *or* how many more like a plan.

        Both numbers come from the sums by which the ledger decides, so a question of either kind is admitted.
        They do not add up. Accounts above this one, which also pay, are counted.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> visits.left(visits.agg(n=tc.count()).plan(epsilon=0.25))
        one more question of up to epsilon 1; or 4 more like this one
        """
        cost, promise = (None, None) if plan is None else (plan.cost, plan.promise)
        left: Left = self._ledger.left(
            self.identity.name, cost, promise=promise, block=self.identity.block or None
        )
        return left

    if not TYPE_CHECKING:  # for a type checker, a dataset has the methods that its field wrote

        def __getattr__(self, name: str) -> Any:
            """Ask a declared question that has no method of its own, such as one of another package."""
            if not name.startswith("_"):
                for kind in chain(self.questions, questions_of(self.kind)):
                    if kind.name == name and not kind.inner:
                        return partial(kind.ask, self)
            if (further := getattr(super(Dataset, self), "__getattr__", None)) is not None:
                return further(name)
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message)

    def __repr__(self) -> str:
        notes = "".join(f"\n{note}" for note in self.account_notes)
        return f"{type(self).__name__}({self.name!r}, unit={self.unit!r}){notes}"

    @property
    def account_notes(self) -> list[str]:
        """Say what the curator should know of the account that pays."""
        return notes_on(self._ledger, self.name)

    def check_question(self, kind: QuestionKind[Any]) -> None:
        """Refuse a question that the curator's declarations rule out; by default there is none."""

    def plan_from(self, document: Mapping[str, JSON], *others: Dataset) -> Plan[Any]:
        """Rebuild a plan from the document that `Plan.to_json` returned.

        Guarantee: the plan that comes back has the hash that the document names, so it costs the same, draws
        the same noise and finds the same stored answer. Anything else is refused.

        Parameters
        ----------
        document
            The document.
        others
            For a batch over several fields: the other datasets that it asks, which have the same account.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect("visits.csv", unit="pid", budget=tc.Budget(epsilon=1))
        >>> plan = visits.agg(n=tc.count()).plan(epsilon=0.5)
        >>> visits.plan_from(plan.to_json()) == plan
        True
        """
        source: object = document
        if not isinstance(source, Mapping) or source.get("schema") != PLAN_SCHEMA:
            raise TacitError(
                "plan-differs",
                "this is not a plan that this version of Tacit can read",
                why=f"a plan is a document with the schema {PLAN_SCHEMA}",
                fix=Code("plan.to_json()"),
            )
        if document.get("dataset") != self.identity.document():
            raise TacitError(
                "plan-differs",
                f"the plan belongs to another dataset, not to {self.name!r}",
                why="a plan is bound to a dataset's declared name, version, unit and adjacency",
                fix="open the dataset that the plan names",
            )
        if document.get("request", "") is None:
            raise TacitError(
                "plan-differs",
                "a plan of this kind cannot be rebuilt from a document",
                why="it needs what the document does not hold, such as a model with its code; the document "
                "only names the plan",
                fix="make the plan again, with the same data and settings: it is then the same plan",
            )
        try:
            plan = self._from_request(document["request"], others)
        except (*_ILLEGIBLE, TacitError) as e:
            if isinstance(e, TacitError) and e.code == "question-too-large":  # readable, but not here
                raise
            raise _unreadable() from None
        if plan.hash != document.get("plan"):
            raise TacitError(
                "plan-differs",
                "the saved plan no longer matches this dataset",
                why="the question, the noise or the cost would be different now, because the dataset's "
                "public facts have changed",
                fix="plan the question again",
            )
        return plan

    def _from_request(self, request: Any, others: Sequence[Dataset]) -> Plan[Any]:
        """Make a plan from its request: of a batch, from those of its members."""
        if isinstance(request, Mapping) and "batch" in request:
            from tacit.core._batch import rebuilt_batch

            return rebuilt_batch(request, lambda one: self._rebuild(one, *others))
        return self._rebuild(request)

    def _rebuild(self, request: Any, *others: Dataset) -> Plan[Any]:
        """Make a plan from its request: the question that recognises it does, here or in the others."""
        try:
            for kind in chain(self.questions, questions_of(self.kind)):
                if (plan := kind.rebuilt(self, request)) is not None:
                    return plan
        except _ILLEGIBLE:
            if not others:
                raise
        if others:
            return others[0]._rebuild(request, *others[1:])  # noqa: SLF001 - a dataset as well
        raise _unreadable()


def _unreadable() -> TacitError:
    return TacitError(
        "plan-differs",
        "the plan's request cannot be read for this kind of dataset",
        why="it was written by another field, or it was changed",
        fix="plan the question again",
    )
