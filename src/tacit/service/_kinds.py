"""The kinds of datasets that the service knows: how each is opened, and the closed list of what it is asked.

A table answers SQL, and the other kinds answer methods with a few checked arguments. The drawer opens a kind
from its source (`open_kind`). A worker opens the same declaration on a source without rows
(`open_kind_facts`): plans depend on declared facts alone, so both make plans of the same hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tacit.core import question_of, registered
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.service._kind_arguments import ChoiceArgument, DayArgument, TextArgument, WholeArgument
from tacit.service._kind_declarations import (
    declare_graph,
    declare_points,
    graph_without_edges,
    points_without_rows,
    try_graph,
    try_points,
)

if TYPE_CHECKING:
    from tacit import core
    from tacit.core import Dataset, Plan
    from tacit.ledger import Ledger
    from tacit.service._kind_arguments import KindArgument

__all__ = [
    "KINDS_OF_DATASETS",
    "facts_of_kind",
    "methods_of",
    "open_kind",
    "open_kind_facts",
    "plan_of_method",
    "prepare_kind",
    "try_methods",
]

KIND_SCHEMA: Final = "tacit/kind/1"
_EPSILON = frozenset({"epsilon", "confidence"})
_ANY_TOTAL = frozenset({"epsilon", "delta", "rho", "confidence"})


@dataclass(frozen=True, slots=True)
class KindMethod:
    """One question that a kind answers: its label, its arguments, and the totals that it takes."""

    label: str
    arguments: Mapping[str, KindArgument]
    totals: frozenset[str] = _ANY_TOTAL


@dataclass(frozen=True, slots=True)
class DatasetKind:
    """A kind of dataset.

    Parameters
    ----------
    label
        What people call it.
    facts
        The declared facts that it needs beside unit, budget and version; and those that it may have.
    methods
        What it answers beside SQL.
    declare
        Declares a source of this kind.
    stand_in
        Returns a source without rows that has the declared columns.
    trial
        Returns an invented dataset, on which a process tries its methods before the first paid question.
    has_columns
        Whether bounds, keys and types of columns are declared as for tables.
    """

    label: str
    facts: tuple[frozenset[str], frozenset[str]]
    methods: Mapping[str, KindMethod]
    declare: Callable[..., Dataset] | None = None
    stand_in: Callable[[Mapping[str, Any]], object] | None = None
    trial: Callable[[], Dataset] | None = None
    has_columns: bool = False


def open_kind(kind: str, place: object, name: str, policy: Mapping[str, Any], ledger: Ledger) -> Dataset:
    """Open a source as its policy declares it; for the drawer, and for kinds other than tables.

    Nothing is written to the ledger: whoever declares the dataset opens its account.

    Parameters
    ----------
    kind, place
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

    known = _kind(kind)
    facts = _declared(known, kind, policy)
    declare = _of_field(kind).declare
    if declare is None:
        raise TacitError("not-allowed", f"datasets of the kind {kind} are not opened here")
    if not known.has_columns:
        _refuse_columns(kind, policy)
    made = declare(place, name=name, policy=policy, facts=facts, ledger=Ledger.memory())
    return replace(made, _ledger=ledger, record=policy.get("record", "words"))


def _refuse_columns(kind: str, policy: Mapping[str, Any]) -> None:
    """Refuse what only tables have: nobody should believe that it counts."""
    given = [fact for fact in ("bounds", "keys", "types", "never_null") if policy.get(fact)]
    if given:
        raise TacitError(
            "not-allowed",
            f"a dataset of the kind {kind} has no {given[0].replace('_', ' ')}",
            fix="leave it out, and write what is public under declared",
        )


def prepare_kind(dataset: Any) -> None:
    """Read the data of a dataset now, so that no answer's time shows how much there is.

    A stream has nothing to read: each day is read once, by the draw that needs it.
    """
    if kind_of_dataset(dataset) != "stream":
        dataset.prepare()


def try_methods(kind: str) -> None:
    """Ask an invented dataset of a kind each of its methods, so that the modules they need are loaded."""
    trial = _of_field(kind).trial
    if trial is None:
        return
    dataset = trial()
    for name, method in _kind(kind).methods.items():
        least = {one: given.least for one, given in method.arguments.items() if given.needed}
        plan = plan_of_method(dataset, name, least, {"epsilon": Fraction(1)})
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
    kept = ["unit", "budget", "version", "adjacency", "limits", "record", "declared"]
    kept += ["bounds", "keys", "types", "never_null"] if _kind(kind).has_columns else []
    return {
        "schema": KIND_SCHEMA,
        "kind": kind,
        "name": name,
        "policy": {one: policy[one] for one in kept if one in policy},
    }


def open_kind_facts(kind: str, facts: Mapping[str, Any], ledger: Ledger) -> Dataset:
    """Open a dataset from its public facts, without its data.

    Guarantee: no source is opened, and its plans have the same hashes as those of the dataset with its data.
    """
    if kind == "table":
        from tacit.tables import open_facts

        return open_facts(facts, ledger)
    stand_in = _of_field(kind).stand_in
    if facts.get("schema") != KIND_SCHEMA or facts.get("kind") != kind or stand_in is None:
        raise TacitError("bad-parameter", "these facts were not written for this kind of dataset")
    policy = facts["policy"]
    return open_kind(kind, stand_in(_with_unit(policy)), facts["name"], policy, ledger)


def methods_of(kind: str) -> list[dict[str, Any]]:
    """Return the methods of a kind for pages and programs."""
    return [
        {
            "name": name,
            "label": method.label,
            "arguments": [
                {"name": one, "what": given.words, "needed": given.needed}
                for one, given in method.arguments.items()
            ],
            "totals": sorted(method.totals),
        }
        for name, method in _kind(kind).methods.items()
    ]


def plan_of_method(
    dataset: Any, method: object, arguments: object, totals: Mapping[str, Fraction]
) -> Plan[Any]:
    """Plan one of the listed methods of a dataset; everything else is refused.

    Examples
    --------
    >>> import tacit as tc
    >>> friends = tc.graph([("ana", "ben")], unit="edge", nodes=3, budget=tc.Budget(epsilon=1))
    >>> plan_of_method(friends, "edges", {}, {"epsilon": Fraction(1)}).asked
    'the number of edges'
    """
    known = _kind(kind_of_dataset(dataset)).methods
    asked = known.get(method) if isinstance(method, str) else None
    if asked is None:
        raise TacitError("not-allowed", "this dataset has no such method", fix=Choose(tuple(sorted(known))))
    if not isinstance(arguments, Mapping) or not set(arguments) <= set(asked.arguments):
        named = ", ".join(asked.arguments) or "none"
        raise TacitError("bad-parameter", f"the method {method} has other arguments", why=f"it has: {named}")
    extra = set(totals) - asked.totals
    if extra:
        raise TacitError(
            "bad-parameter",
            f"the method {method} does not take {min(extra)}",
            why=f"it takes: {', '.join(sorted(asked.totals))}",
        )
    given = {
        name: _argument(name, one, arguments) for name, one in asked.arguments.items() if name in arguments
    }
    missing = [name for name, one in asked.arguments.items() if one.needed and name not in given]
    if missing or ("epsilon" not in totals and asked.totals == _EPSILON):
        lacking = missing[0] if missing else "epsilon"
        raise TacitError("bad-parameter", f"the method {method} needs {lacking}")
    declared = question_of(getattr(dataset, "kind", ""), str(method))
    if declared is not None:
        return declared.ask(dataset, **given).plan(**totals)
    plan: Plan[Any] = getattr(dataset, str(method))(**given, **totals)
    return plan


def kind_of_dataset(dataset: object) -> str:
    """Return the kind of a dataset by its class."""
    known = {"PointMap": "points", "Graph": "graph", "Stream": "stream"}
    return known.get(type(dataset).__name__, "table")


def _argument(name: str, kind: KindArgument, arguments: Mapping[str, object]) -> object:
    try:
        return kind.read(arguments[name])
    except ValueError as error:
        raise TacitError("bad-parameter", f"{name} must be {error}") from None


def _kind(kind: str) -> DatasetKind:
    found = KINDS_OF_DATASETS.get(kind)
    if found is None:
        raise TacitError(
            "not-allowed", "the service does not know this kind of dataset",
            fix=Choose(tuple(sorted(KINDS_OF_DATASETS))),
        )  # fmt: skip
    return found


def _of_field(kind: str) -> core.DatasetKind | DatasetKind:
    """Return how a kind is declared: by its field, if it is registered."""
    known = _kind(kind)
    field: core.DatasetKind | None = registered(f"dataset.{kind}")
    return known if field is None else field


def _declared(known: DatasetKind, kind: str, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a kind; unknown and missing ones are refused."""
    facts = dict(policy.get("declared") or {})
    needed, may = known.facts
    lacking, unknown = needed - set(facts), set(facts) - needed - may
    if lacking or unknown:
        what = f"lacks {min(lacking)}" if lacking else f"has no fact {min(unknown)}"
        raise TacitError(
            "bad-parameter",
            f"a dataset of the kind {kind} {what}",
            fix=f"declare: {', '.join(sorted(needed))}; possible too: {', '.join(sorted(may)) or 'nothing'}",
        )
    return facts


def _with_unit(policy: Mapping[str, Any]) -> dict[str, Any]:
    return {**(policy.get("declared") or {}), "unit": policy["unit"]}


_TABLE = DatasetKind(
    "tables",
    (frozenset(), frozenset()),
    {
        "suggest_limits": KindMethod(
            "How many rows do units have?",
            {"by": TextArgument(), "table": TextArgument(), "most": WholeArgument(1, 100_000)},
            frozenset({"epsilon"}),
        ),
        "measure_cut": KindMethod(
            "What share of rows or values do limits and bounds cut?",
            {"column": TextArgument(), "table": TextArgument(), "cap": WholeArgument(1, 100_000)},
            frozenset({"epsilon"}),
        ),
    },
)
_POINTS = DatasetKind(
    "points on a map",
    (frozenset({"box", "lat", "lon"}), frozenset()),
    {
        "grid": KindMethod(
            "Count points in the cells of a grid",
            {"rows": WholeArgument(1, 256, needed=True), "columns": WholeArgument(1, 256, needed=True)},
        ),
        "tree": KindMethod(
            "Count points in regions that are smaller where there are more points",
            {"depth": WholeArgument(1, 12)},
            _EPSILON,
        ),
        "hottest": KindMethod(
            "Name the cells with the most units", {"k": WholeArgument(1, 50, needed=True)}, _EPSILON
        ),
    },
    declare_points,
    points_without_rows,
    try_points,
)
_GRAPH = DatasetKind(
    "a graph",
    (frozenset({"source_column", "target_column"}), frozenset({"degree_bound", "directed", "nodes"})),
    {
        "edges": KindMethod("Count the edges", {}),
        "degree_histogram": KindMethod(
            "How many nodes have each degree?", {"largest": WholeArgument(1, 1_000)}
        ),
        "triangles": KindMethod("Count the triangles", {"tau": WholeArgument(1, 10**6)}),
        "wedges": KindMethod("Count the paths of two edges", {}),
        "clustering": KindMethod("The clustering coefficient", {}),
        "stars": KindMethod("Count the stars of k edges", {"k": WholeArgument(2, 10, needed=True)}),
    },
    declare_graph,
    graph_without_edges,
    try_graph,
)
_STREAM = DatasetKind(
    "a stream of days",
    (frozenset({"start", "days"}), frozenset({"most_days", "apart"})),
    {
        "series": KindMethod(
            "One figure for each day, for 7 days and for all days so far",
            {
                "measure": ChoiceArgument(("count", "count_units", "sum", "mean"), needed=True),
                "column": TextArgument(words="the column of a sum or a mean"),
                "by": TextArgument(words="a column with public keys"),
                "where": TextArgument(words="a condition in SQL, such as result = 'positive'"),
                "focus": ChoiceArgument(("balanced", "day", "week", "total")),
                "size": WholeArgument(1, 10**12),
                "through": DayArgument(words="the last day to be drawn; the price is the same for all days"),
            },
            _ANY_TOTAL,
        ),
    },
    has_columns=True,
)
#: All kinds by name.
KINDS_OF_DATASETS: Final[dict[str, DatasetKind]] = {
    "table": _TABLE, "points": _POINTS, "graph": _GRAPH, "stream": _STREAM,
}  # fmt: skip
