"""The ``tacit graph`` command: ask a question about the edges in a file, with a price first if wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._context import note_dataset, note_ledger
from tacit.cli._first_budget import check_first_charge, given_budget, left_now, whole_budget
from tacit.cli._output import JsonOption, exact_text, say, show_json
from tacit.cli._output_files import OutputFiles
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Say

if TYPE_CHECKING:
    from tacit.accounting import Budget
    from tacit.core import Plan
    from tacit.graphs import Graph
    from tacit.ledger import Ledger

#: Each question with the options that it takes.
_ASKS: dict[str, tuple[str, ...]] = {
    "edges": (), "degrees": ("of",), "degree-histogram": ("largest", "of"), "triangles": ("tau",),
    "wedges": (), "clustering": (), "stars": ("k",), "mixing": ("group",),
    "degrees-by": ("group", "largest", "of"), "densest": ("group",), "weights": (), "reciprocity": (),
    "verdict": (),
}  # fmt: skip
_GraphFile = Annotated[
    Path,
    typer.Argument(
        metavar="EDGES", help="The edge list: a .csv or .parquet with one connection in each row."
    ),
]
_GraphAsk = Annotated[str, typer.Argument(metavar="QUESTION", help=f"One of: {', '.join(_ASKS)}.")]
_GraphUnit = Annotated[
    str,
    typer.Option(
        "--unit", help="Who is protected: edge (one connection), or node (a person with all connections)."
    ),
]
_GraphNodes = Annotated[
    str | None, typer.Option("--nodes", help="The number of nodes, or @FILE with one name on each line.")
]
_GraphBound = Annotated[int | None, typer.Option("--degree-bound", help="The most edges of a node.")]
_GraphPromise = Annotated[
    bool, typer.Option("--promised", help="You promise the degree bound; certificates say so.")
]
_GraphDirected = Annotated[bool, typer.Option("--directed", help="Edges have a direction.")]
_GraphGroups = Annotated[
    list[str] | None,
    typer.Option("--group", help='Public groups: "class=classes.csv", a file of nodes and labels.'),
]
_GraphWeight = Annotated[
    str | None, typer.Option("--weight", help='A column and the largest weight of a pair: "minutes=60".')
]
_GraphDegree = Annotated[
    float | None,
    typer.Option("--mean-degree", help="A public guess: how many edges a node has; for the verdict."),
]
_GraphColumns = Annotated[
    str | None,
    typer.Option("--columns", help='The columns with the two nodes: "from,to"; by default the first two.'),
]
_GraphBy = Annotated[str | None, typer.Option("--by", help="The grouping, for mixing and similar questions.")]
_GraphK = Annotated[int | None, typer.Option("--k", help="How many edges a star has.")]
_GraphTau = Annotated[int | None, typer.Option("--tau", help="How many triangles of a node count.")]
_GraphLargest = Annotated[int | None, typer.Option("--largest", help="The last degree of a histogram.")]
_GraphOf = Annotated[str | None, typer.Option("--of", help="source or target, in a directed graph.")]
_GraphEpsilon = Annotated[float | None, typer.Option("--epsilon", "-e", help="What the answer costs.")]
_GraphDelta = Annotated[float, typer.Option("--delta", help="Allow a delta.")]
_GraphRho = Annotated[float | None, typer.Option("--rho", help="Instead of epsilon: the cost in rho.")]
_GraphConfidence = Annotated[float, typer.Option("--confidence", help="How often intervals cover the noise.")]
_GraphBudget = Annotated[
    float | None,
    typer.Option(
        "--budget", help="The whole budget, in epsilon (or in rho, with --rho); needed the first time."
    ),
]
_GraphBudgetDelta = Annotated[
    float, typer.Option("--budget-delta", help="The budget's delta; by default that of the question.")
]
_GraphLedger = Annotated[str, typer.Option("--ledger", help="Where the budget is kept.")]
_GraphName = Annotated[str | None, typer.Option("--name", help="By default the name of the file.")]
_GraphPlan = Annotated[bool, typer.Option("--plan", help="Show the price and the error; charge nothing.")]
_GraphOut = Annotated[Path | None, typer.Option("--out", help="Write the answer here (.csv, .parquet).")]
_GraphPlot = Annotated[Path | None, typer.Option("--plot", help="Draw it here (.png, .svg, .pdf).")]
_GraphCertificate = Annotated[
    Path | None, typer.Option("--certificate", help="Write the certificate here (.json).")
]
_GraphWho = Annotated[str, typer.Option("--who", help="Who asks; recorded in the ledger.")]
_GraphPurpose = Annotated[str, typer.Option("--purpose", help="For which purpose; recorded too.")]


@app.command()
def graph(
    edges: _GraphFile, ask: _GraphAsk, *, unit: _GraphUnit, nodes: _GraphNodes = None,
    degree_bound: _GraphBound = None, promised: _GraphPromise = False, directed: _GraphDirected = False,
    group: _GraphGroups = None, weight: _GraphWeight = None, mean_degree: _GraphDegree = None,
    columns: _GraphColumns = None, by: _GraphBy = None, k: _GraphK = None, tau: _GraphTau = None,
    largest: _GraphLargest = None, of: _GraphOf = None, epsilon: _GraphEpsilon = None,
    delta: _GraphDelta = 0, rho: _GraphRho = None, confidence: _GraphConfidence = 0.95,
    budget: _GraphBudget = None, budget_delta: _GraphBudgetDelta = 0, ledger: _GraphLedger = "tacit.ledger",
    name: _GraphName = None, plan: _GraphPlan = False, out: _GraphOut = None, plot: _GraphPlot = None,
    certificate: _GraphCertificate = None, who: _GraphWho = "", purpose: _GraphPurpose = "",
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Ask about friendships, contacts or other connections; the same question again is free."""
    from tacit.ledger import Ledger

    files = OutputFiles(out, plot, certificate)
    files.check()
    called = name or edges.stem
    note_dataset(None, None, called)
    note_ledger(ledger)
    ends = _columns(columns)
    facts: dict[str, Any] = {
        "name": called, "unit": unit, "nodes": _nodes(nodes), "degree_bound": degree_bound,
        "promised": promised, "directed": directed, "groups": _groups(group), "weight": _weight(weight),
        "mean_degree": mean_degree, "source_column": ends[0], "target_column": ends[1],
    }  # fmt: skip
    given = _given(ask, group=by, k=k, tau=tau, largest=largest, of=of)
    goal = {"epsilon": epsilon, "delta": delta, "rho": rho, "confidence": confidence}
    with Ledger.memory() as trial:  # a wrong question is refused before a ledger is made
        opened = _declared(edges, facts, trial, given_budget(budget or 1, goal, budget_delta))
        if ask == "verdict":
            _show_verdict(opened, epsilon, as_json=as_json)
            return
        planned = _planned(opened, ask, given, goal)
        if plan:
            _show_plan(planned, left_now(called, ledger), as_json=as_json)
            return
        whole = whole_budget(called, ledger, budget, goal, budget_delta)
        check_first_charge(called, ledger, planned, trial)
    with Ledger.open(ledger) as books:
        opened = _declared(edges, facts, books, whole)
        release = _planned(opened, ask, given, goal).release(who=who, purpose=purpose)
        left = opened.remaining
    files.save(release.content, release.certificate, lambda path: release.plot().savefig(path))
    if as_json:
        show_json({
            "rows": list(release.content), "confidence": release.content.confidence,
            "certificate": dict(release.certificate.fields),
            "left": {part: exact_text(getattr(left, part)) for part in ("epsilon", "delta", "rho")},
        })  # fmt: skip
        return
    say(repr(release), f"left: {left}", *opened.account_notes)
    files.report()


def _declared(edges: Path, facts: dict[str, Any], ledger: Ledger, budget: Budget) -> Graph:
    import tacit as tc

    if not edges.exists():
        raise TacitError("unknown-table", f"there is no file {edges}", fix=Say("check its name and folder"))
    return tc.graph(edges, budget=budget, ledger=ledger, **facts)


def _given(ask: str, **options: Any) -> dict[str, Any]:
    """Return the arguments of a question; refuse one that it does not take, or that is missing."""
    if ask not in _ASKS:
        raise bad_parameter("QUESTION", "one of those below", ask, fix=Choose(tuple(_ASKS), given=ask))
    shown = {"group": "by"}
    for name, value in options.items():
        option = f"--{shown.get(name, name)}"
        if value is not None and name not in _ASKS[ask]:
            raise bad_parameter(option, f"omitted with {ask}", value, fix=Say(f"leave {option} out"))
        if value is None and name in {"group", "k"} and name in _ASKS[ask]:
            example = f"{option} {'3' if name == 'k' else 'class'}"
            raise bad_parameter(option, f"given with {ask}", None, fix=Say(example))
    return {name: value for name, value in options.items() if value is not None}


def _planned(opened: Graph, ask: str, given: dict[str, Any], goal: dict[str, Any]) -> Plan[Any]:
    plan: Plan[Any] = getattr(opened, ask.replace("-", "_"))(**given).plan(**goal)
    return plan


def _show_verdict(opened: Graph, epsilon: float | None, *, as_json: bool) -> None:
    if epsilon is None:
        raise bad_parameter("--epsilon", "given with verdict", None, fix=Say("--epsilon 1"))
    found = opened.verdict(epsilon=epsilon)
    if as_json:
        show_json({"verdict": found.word, "text": found.text, "relative_error": found.relative_error})
        return
    say(found.text)


def _show_plan(planned: Plan[Any], left: list[str], *, as_json: bool) -> None:
    from tacit.core import plan_text

    if as_json:
        show_json({
            "asked": planned.asked, "columns": list(planned.forecast), "facts": dict(planned.facts),
            "promised": {name: float(value) for name, value in planned.promised.items()},
            "mechanisms": [dict(one) for one in planned.mechanisms],
        })  # fmt: skip
        return
    say(plan_text(planned, left=False), *left)


def _columns(given: str | None) -> tuple[str | None, str | None]:
    if given is None:
        return None, None
    first, comma, second = given.partition(",")
    if not comma or not first.strip() or not second.strip():
        raise bad_parameter("--columns", "two names with a comma", given, fix=Say("--columns from,to"))
    return first.strip(), second.strip()


def _nodes(given: str | None) -> int | list[str] | None:
    """Read the number of nodes, or a file of their names."""
    if given is None:
        return None
    if given.startswith("@"):
        return [line.strip() for line in _text(Path(given[1:])).splitlines() if line.strip()]
    try:
        return int(given)
    except ValueError:
        raise bad_parameter("--nodes", "a number, or @FILE", given, fix=Say("--nodes 1000")) from None


def _groups(given: list[str] | None) -> dict[str, dict[str, str]] | None:
    """Read files of nodes and labels, each with a header."""
    import csv

    found: dict[str, dict[str, str]] = {}
    for text in given or ():
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            fix = Say("--group class=classes.csv")
            raise bad_parameter("--group", "a name and a file with = between them", text, fix=fix)
        rows = list(csv.reader(_text(Path(path)).splitlines()))[1:]
        found[name] = {row[0].strip(): row[1].strip() for row in rows if len(row) > 1}
    return found or None


def _weight(given: str | None) -> tuple[str, tuple[int, float]] | None:
    if given is None:
        return None
    column, _, most = given.rpartition("=")
    try:
        return column, (0, float(most))
    except ValueError:
        fix = Say("--weight minutes=60")
        raise bad_parameter("--weight", "COLUMN=LARGEST", given, fix=fix) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        raise TacitError(
            "bad-parameter", f"the file {path} cannot be read as text", fix=Say("check its name and folder")
        ) from None
