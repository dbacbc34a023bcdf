"""The kinds of datasets of a service: how each is opened, and which declared questions it answers.

A table answers SQL, and every kind answers the questions that its field declares and serves. The runner opens
a kind from its source (`open_kind`). A worker opens the same declaration on a source without rows
(`open_kind_facts`): plans depend on declared facts alone, so both make plans of the same hash. A question
about a stream also says which day it asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tacit.accounting import RISKS
from tacit.core import DELTA, RHO, dataset_kinds, question_of, questions_of, registered
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.service._bodies import read_field

if TYPE_CHECKING:
    from tacit.core import Dataset, DatasetKind, Plan, QuestionKind
    from tacit.ledger import Ledger
    from tacit.parameters import Parameter


KIND_SCHEMA: Final = "tacit/kind/1"
#: What a question's `plan` may take beside epsilon and the confidence, by its name in a request.
_TOTALS = {DELTA: "delta", RHO: "rho"}


def kind_names() -> list[str]:
    """Return the names of the kinds that a service can open."""
    return [name for name in dataset_kinds() if name == "table" or _kind(name).declare is not None]


def open_kind(kind: str, source: object, name: str, policy: Mapping[str, Any], ledger: Ledger) -> Dataset:
    """Open a source as its policy declares it; for the runner, and for kinds other than tables.

    Nothing is written to the ledger: whoever declares the dataset opens its account.

    Parameters
    ----------
    kind, source
        The kind, and where the source is.
    name
        The dataset's name, which is its account's.
    policy
        ``unit``, ``budget``, ``version``, ``adjacency``, ``limits``, and under ``declared`` the facts of the
        kind: the box of a map, the columns of an edge list.
    ledger
        The ledger that pays.
    """
    from tacit.ledger import Ledger

    declared = _kind(kind)
    facts = _declared(declared, policy)
    if declared.declare is None:
        raise TacitError("not-allowed", f"datasets of the kind {kind} are not opened here")
    if not declared.has_columns:
        _refuse_columns(kind, policy)
    dataset = declared.declare(source, name=name, policy=policy, facts=facts, ledger=Ledger.memory())
    return replace(dataset, _ledger=ledger, record=policy.get("record", "words"))


def _refuse_columns(kind: str, policy: Mapping[str, Any]) -> None:
    """Refuse what only tables have: nobody should believe that it counts."""
    column_facts = [fact for fact in ("bounds", "keys", "types", "never_null") if policy.get(fact)]
    if column_facts:
        raise TacitError(
            "not-allowed",
            f"a dataset of the kind {kind} has no {column_facts[0].replace('_', ' ')}",
            fix="leave it out, and write what is public under declared",
        )


def prepare_kind(dataset: Any) -> None:
    """Read the data of a dataset now, so that no answer's time shows how much there is.

    A stream has nothing to read: each day is read once, by the draw that needs it.
    """
    if hasattr(dataset, "prepare"):
        dataset.prepare()


def try_questions(kind: str) -> None:
    """Ask an invented dataset of a kind each served question, so that the modules they need are loaded."""
    declared = _kind(kind)
    if declared.trial is None:
        return
    dataset = declared.trial()
    for question in served_questions(kind):
        arguments = {
            one.name: (one.served or one.accepts).example for one in question.arguments if one.needed
        }
        try:
            plan = plan_of_question(dataset, question.name, arguments, {"epsilon": Fraction(1)})
        except TacitError as refusal:
            if refusal.code != "not-allowed":  # of a graph without directions, for example
                raise
            continue
        if plan.instalments is None:
            plan.release()
        else:
            _draw_first(dataset, plan)


def _draw_first(dataset: Any, plan: Plan[Any]) -> None:
    """Draw the first day of an invented stream."""
    from tacit.streams import draw_days

    draw_days(dataset, plan, dataset.horizon.start).to_json()


def facts_of_kind(kind: str, name: str, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a worker needs to open the same dataset without its data."""
    fact_names = ["unit", "budget", "version", "adjacency", "limits", "record", "declared"]
    fact_names += ["bounds", "keys", "types", "never_null"] if _kind(kind).has_columns else []
    return {
        "schema": KIND_SCHEMA,
        "kind": kind,
        "name": name,
        "policy": {one: policy[one] for one in fact_names if one in policy},
    }


def open_kind_facts(kind: str, facts: Mapping[str, Any], ledger: Ledger) -> Dataset:
    """Open a dataset from its public facts, without its data.

    Guarantee: no source is opened, and its plans have the same hashes as those of the dataset with its data.
    """
    if kind == "table":
        from tacit.tables import open_facts

        return open_facts(facts, ledger)
    declared = _kind(kind)
    if facts.get("schema") != KIND_SCHEMA or facts.get("kind") != kind or declared.stand_in is None:
        raise TacitError("bad-parameter", "these facts were not written for this kind of dataset")
    policy = facts["policy"]
    return open_kind(kind, declared.stand_in(_with_unit(policy)), facts["name"], policy, ledger)


def served_questions(kind: str) -> list[QuestionKind[Any]]:
    """Return the declared questions of a kind that a service offers, in their order."""
    return [question for question in questions_of(kind) if question.served]


def methods_of(kind: str) -> list[dict[str, Any]]:
    """Return the served questions of a kind for pages and programs."""
    return [
        {
            "name": question.name,
            "label": question.words,
            "arguments": [
                {
                    "name": one.name,
                    "what": one.words or (one.served or one.accepts).words,
                    "needed": one.needed,
                }
                for one in question.arguments
            ],
            "totals": _totals(question),
        }
        for question in served_questions(kind)
    ]


def _totals(question: QuestionKind[Any]) -> list[str]:
    """Return what a question can be planned with, by its names in a request."""
    further = (name for one, name in _TOTALS.items() if one in question.takes)
    return sorted(["epsilon", "confidence", "total", *RISKS, *further])


def plan_of_question(
    dataset: Dataset, name: object, arguments: object, totals: Mapping[str, Any]
) -> Plan[Any]:
    """Plan one of the served questions of a dataset; everything else is refused.

    Examples
    --------
    >>> import tacit as tc
    >>> friends = tc.graph([("ana", "ben")], unit="edge", nodes=3, budget=tc.Budget(epsilon=1))
    >>> plan_of_question(friends, "edges", {}, {"epsilon": Fraction(1)}).asked
    'the number of edges'
    """
    question = question_of(dataset.kind, name) if isinstance(name, str) else None
    if question is None or not question.served:
        offered = tuple(one.name for one in served_questions(dataset.kind))
        raise TacitError("not-allowed", "this dataset has no such method", fix=Choose(offered))
    if not isinstance(arguments, Mapping):
        raise TacitError("bad-parameter", f"the arguments of {name} are values by name")
    if extra := set(totals) - set(_totals(question)):
        raise TacitError(
            "bad-parameter",
            f"the method {name} does not take {min(extra)}",
            why=f"it takes: {', '.join(_totals(question))}",
        )
    exact_totals: dict[str, Any] = dict(totals)
    plan: Plan[Any] = question.ask(dataset, **_read(question, arguments)).plan(**exact_totals)
    return plan


def _read(question: QuestionKind[Any], arguments: Mapping[str, object]) -> dict[str, object]:
    """Check the arguments of a request, of which services accept fewer values; none is repeated."""
    argument_names = [one.name for one in question.arguments]
    lacking = [one.name for one in question.arguments if one.needed and arguments.get(one.name) is None]
    if not set(arguments) <= set(argument_names) or lacking:
        differs = (
            "has other arguments" if not set(arguments) <= set(argument_names) else f"needs {lacking[0]}"
        )
        raise TacitError(
            "bad-parameter", f"the method {question.name} {differs}",
            why=f"it has: {', '.join(argument_names) or 'none'}",
        )  # fmt: skip
    _read_values({one.name: one.served or one.accepts for one in question.arguments}, arguments)
    return dict(arguments)


def _read_values(declared: Mapping[str, Parameter], values: Mapping[str, object]) -> dict[str, Any]:
    """Read declared values by name; a refusal does not repeat the value."""
    return {
        name: read_field(accepts, name, values[name])
        for name, accepts in declared.items()
        if values.get(name) is not None
    }


def _kind(kind: str) -> DatasetKind:
    declared: DatasetKind | None = registered(f"dataset.{kind}")
    if declared is None:
        raise TacitError(
            "not-allowed", "the service does not know this kind of dataset", fix=Choose(tuple(kind_names()))
        )
    return declared


def _declared(kind: DatasetKind, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a kind; unknown, missing and wrong ones are refused."""
    facts = dict(policy.get("declared") or {})
    needed = {one.name for one in kind.facts if one.needed}
    optional = {one.name for one in kind.facts} - needed
    lacking, unknown = needed - set(facts), set(facts) - needed - optional
    if lacking or unknown:
        difference = f"lacks {min(lacking)}" if lacking else f"has no fact {min(unknown)}"
        raise TacitError(
            "bad-parameter",
            f"a dataset of the kind {kind.name} {difference}",
            fix=f"declare: {', '.join(sorted(needed))}; "
            f"possible too: {', '.join(sorted(optional)) or 'nothing'}",
        )
    return _read_values({one.name: one.accepts for one in kind.facts}, facts)


def _with_unit(policy: Mapping[str, Any]) -> dict[str, Any]:
    return {**(policy.get("declared") or {}), "unit": policy["unit"]}


def day_asked(ask: Mapping[str, Any]) -> str:
    """Return the day up to which a question asks for a series; empty text for every other question.

    Examples
    --------
    >>> day_asked({"method": "series", "arguments": {"measure": "count", "through": "2026-01-31"}})
    '2026-01-31'
    >>> day_asked({"sql": "SELECT COUNT(*) FROM visits"})
    ''
    """
    arguments = ask.get("arguments") or {}
    return str(arguments.get("through", "")) if ask.get("method") == "series" else ""
