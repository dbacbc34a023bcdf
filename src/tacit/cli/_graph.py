"""The ``tacit graph`` command: ask a question about the edges in a file, with a price first if wanted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._app import app
from tacit.cli._field_command import Given, Terms, asks, rows_of
from tacit.cli._options import with_options
from tacit.cli._output import OutputFiles, say, show_json
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.graphs import Graph

_GraphFile = Annotated[
    Path,
    typer.Argument(
        metavar="EDGES", help="The edge list: a .csv or .parquet with one connection in each row."
    ),
]
_GraphAsk = Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")]
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


@app.command(cls=asks("graph", also=("verdict",), group="by"))
@with_options
def graph(
    edges: _GraphFile, ask: _GraphAsk, terms: Terms, files: OutputFiles, given: Given, *, unit: _GraphUnit,
    nodes: _GraphNodes = None, degree_bound: _GraphBound = None, promised: _GraphPromise = False,
    directed: _GraphDirected = False, group: _GraphGroups = None, weight: _GraphWeight = None,
    mean_degree: _GraphDegree = None, columns: _GraphColumns = None,
) -> None:  # fmt: skip
    """Ask about friendships, contacts or other connections; the same question again is free."""
    import tacit as tc

    files.check()
    dataset_name = terms.begin(edges)
    if not edges.exists():
        raise TacitError("unknown-table", f"there is no file {edges}", fix=Say("check its name and folder"))
    ends = _columns(columns)
    declare = partial(
        tc.graph, edges, name=dataset_name, unit=unit, nodes=_nodes(nodes), degree_bound=degree_bound,
        promised=promised, directed=directed, groups=_groups(group), weight=_weight(weight),
        mean_degree=mean_degree, source_column=ends[0], target_column=ends[1],
    )  # fmt: skip
    if ask == "verdict":
        _show_verdict(declare(budget=tc.Budget(epsilon=1)), terms)
    else:
        terms.answer(dataset_name, declare, given.question(ask), files, rows_of)


def _show_verdict(opened_graph: Graph, terms: Terms) -> None:
    if terms.epsilon is None:
        raise bad_parameter("--epsilon", "given with verdict", None, fix=Say("--epsilon 1"))
    verdict = opened_graph.verdict(epsilon=terms.epsilon)
    if terms.as_json:
        show_json({"verdict": verdict.word, "text": verdict.text, "relative_error": verdict.relative_error})
        return
    say(verdict.text)


def _columns(text: str | None) -> tuple[str | None, str | None]:
    if text is None:
        return None, None
    source_column, comma, second = text.partition(",")
    if not comma or not source_column.strip() or not second.strip():
        raise bad_parameter("--columns", "two names with a comma", text, fix=Say("--columns from,to"))
    return source_column.strip(), second.strip()


def _nodes(text: str | None) -> int | list[str] | None:
    """Read the number of nodes, or a file of their names."""
    if text is None:
        return None
    if text.startswith("@"):
        return [line.strip() for line in _text(Path(text[1:])).splitlines() if line.strip()]
    try:
        return int(text)
    except ValueError:
        raise bad_parameter("--nodes", "a number, or @FILE", text, fix=Say("--nodes 1000")) from None


def _groups(texts: list[str] | None) -> dict[str, dict[str, str]] | None:
    """Read files of nodes and labels, each with a header."""
    import csv

    groups: dict[str, dict[str, str]] = {}
    for text in texts or ():
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            fix = Say("--group class=classes.csv")
            raise bad_parameter("--group", "a name and a file with = between them", text, fix=fix)
        rows = list(csv.reader(_text(Path(path)).splitlines()))[1:]
        groups[name] = {row[0].strip(): row[1].strip() for row in rows if len(row) > 1}
    return groups or None


def _weight(text: str | None) -> tuple[str, tuple[int, float]] | None:
    if text is None:
        return None
    column, _, largest = text.rpartition("=")
    try:
        return column, (0, float(largest))
    except ValueError:
        fix = Say("--weight minutes=60")
        raise bad_parameter("--weight", "COLUMN=LARGEST", text, fix=fix) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        raise TacitError(
            "bad-parameter", f"the file {path} cannot be read as text", fix=Say("check its name and folder")
        ) from None
