"""Where the edges of a graph come from: tables, arrays, NetworkX, igraph, scipy.sparse.

Opening a source reads the names of its columns, its type and its shape, and nothing else. No value makes
`read` fail: whatever is not a pair of names has a missing end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tacit.engines import ReadColumns, SourceColumns, read_source
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Either, Fix, Say, Set
from tacit.graphs._graph_facts import name_rank, node_name
from tacit.parameters import Needed, Omitted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tacit.graphs._graph_facts import WeightFact

#: Names of neighbouring columns that surely are the two nodes, and names that no column of nodes has.
_PAIRS = frozenset({
    ("ego", "alter"), ("from", "to"), ("i", "j"), ("node1", "node2"), ("person", "friend"),
    ("sender", "receiver"), ("source", "target"), ("src", "dst"), ("u", "v"),
})  # fmt: skip
_NOT_NODES = frozenset({
    "", "column0", "count", "date", "day", "edge_id", "id", "index", "no", "nr", "number", "row", "time",
    "timestamp", "unnamed: 0", "weight", "year",
})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NamedPairs:
    """The rows of an edge list: two codes into a list of names, -1 where a name is missing.

    Parameters
    ----------
    names
        The names that occur, each once, in any order.
    source, target
        The two ends of each row.
    weights
        The weight of each row, NaN where it is missing; None where there are no weights.
    symmetric
        Whether both rows (u, v) and (v, u) stand for one edge with one weight, as in a matrix.
    """

    names: tuple[str, ...]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    symmetric: bool = False

    def in_order(self) -> NamedPairs:
        """Return the same rows with the names in the order of `name_rank`.

        The projection takes edges in this order, so one more node must not change the order of two others.
        """
        order = sorted(range(len(self.names)), key=lambda code: name_rank(self.names[code]))
        codes = np.full(len(order) + 1, -1, dtype=np.int64)  # the last one stands for a missing name
        codes[np.array(order, dtype=np.int64)] = np.arange(len(order))
        names = tuple(self.names[code] for code in order)
        return replace(self, names=names, source=codes[self.source], target=codes[self.target])


class EdgeSource(Protocol):
    """What the room asks of a source of edges."""

    @property
    def ends(self) -> tuple[str, str] | None:
        """The two columns that are read; None where there are none."""

    @property
    def positions(self) -> int | None:
        """The number of nodes of a source that has no names and calls nodes 0, 1, 2 ...; None for others."""

    @property
    def missing_file(self) -> str:
        """The path of the file if it does not exist now; empty for every other source."""

    def read(self) -> NamedPairs:
        """Read all edges: only after a charge."""


@dataclass(frozen=True, slots=True, eq=False)
class _TableEdges:
    """Two columns of a file, a frame or a table of DuckDB."""

    columns: SourceColumns
    ends: tuple[str, str]
    weight: str | None
    positions: None = None

    @property
    def missing_file(self) -> str:
        return self.columns.missing_file

    def read(self) -> NamedPairs:
        rows: ReadColumns = self.columns.read()
        weights = None if self.weight is None else rows.numbers[self.weight]
        return NamedPairs(rows.names, rows.codes[self.ends[0]], rows.codes[self.ends[1]], weights)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _ObjectEdges:
    """Edges of an object in memory, by the function that lists them."""

    given: Any
    listing: Any
    weight: str | None
    positions: int | None = None
    missing_file: str = ""
    ends: None = None

    def read(self) -> NamedPairs:
        pairs: NamedPairs = self.listing(self.given, self.weight)
        return pairs


def open_edges(
    source: object, *, ends: tuple[str | None, str | None], weight: WeightFact | None, directed: bool,
    bipartite: bool = False,
) -> EdgeSource:  # fmt: skip
    """Open a source of edges, or refuse it; reads names of columns, types and shapes only.

    Parameters
    ----------
    source
        A path, a frame, a DuckDB connection, a pair of these with a table, an array or a list of pairs, or a
        graph of NetworkX, igraph or scipy.sparse.
    ends
        The two columns with the names of nodes; by default the first two, apart from the weights.
    weight
        The column, or the attribute of the edges, with their weights.
    directed, bipartite
        Whether the graph is declared as directed, which a graph object must be too; or as bipartite.
    """
    column = None if weight is None else weight.column
    listing = _listing_of(source, directed=directed)
    if bipartite and listing not in {None, _of_array, _of_list}:
        raise _wrong_source(
            "a bipartite graph is read from a table, an array or a list of pairs",
            "the first column says which of the two nodes is a source, and graph objects do not say it",
            Code("tc.graph(pd.DataFrame(pairs), bipartite=True, ...)"),
        )
    if listing is not None:
        Omitted("unless the source is a table").read("source_column", ends[0])
        Omitted("unless the source is a table").read("target_column", ends[1])
        if listing in {_of_array, _of_list}:
            Omitted("unless the source is a table or a graph", fix=Code("pd.DataFrame(...)")).read(
                "weight", column
            )
        return _ObjectEdges(source, listing, column, _positions(source, listing))
    table = read_source(source)
    names = table.columns()
    if names is None and (schema := table.schema("rows")) is not None:
        names = tuple(name for name, _ in schema)
    source_column, target_column = _two_columns(ends, names, column)
    roles: dict[str, Any] = {source_column: "name", target_column: "name"} | (
        {column: "number"} if column else {}
    )
    return _TableEdges(SourceColumns(table, roles), (source_column, target_column), column)


def _two_columns(
    ends: tuple[str | None, str | None], names: Sequence[str] | None, weight: str | None
) -> tuple[str, str]:
    """Return the columns with the two ends, by default the first two beside the weight; or refuse."""
    source_column, target_column = ends
    if weight is not None and weight in ends:
        fix = Set(source_column="from", target_column="to", weight=("minutes", (0, 60)))
        raise _same_column("weight", "the ends of the edges", weight, fix)
    names = None if names is None else [name for name in names if name != weight]
    if source_column is not None:
        target_column = Needed[str]("to", "if source_column is given").read("target_column", target_column)
    if target_column is not None:
        source_column = Needed[str]("from", "if target_column is given").read("source_column", source_column)
    if source_column is None or target_column is None:
        if names is None or len(names) < 2:
            raise TacitError(
                "unknown-column",
                "the two columns with the ends of the edges are not known",
                why="the source is not available now, or it has fewer than two columns",
                fix=Set(source_column="from", target_column="to"),
            )
        _check_first_two(names)
        source_column, target_column = names[0], names[1]
    if source_column == target_column:
        choice = Choose(tuple(names or ()), given=target_column)
        raise _same_column("target_column", "source_column", target_column, choice)
    return source_column, target_column


def _same_column(parameter: str, other: str, column: str, fix: Fix) -> TacitError:
    return bad_parameter(parameter, f"another column than {other}", column, fix=fix)


def _check_first_two(columns: Sequence[str]) -> None:
    """Refuse a table whose first two columns, by their names, are not the two nodes."""
    names = [one.strip().lower() for one in columns]
    pairs = [(i, i + 1) for i in range(len(names) - 1) if (names[i], names[i + 1]) in _PAIRS]
    if len(columns) == 2 or pairs[:1] == [(0, 1)] or not (pairs or _NOT_NODES & {*names[:2]}):
        return
    i, j = pairs[0] if pairs else (len(columns) - 2, len(columns) - 1)
    raise TacitError(
        "unknown-column",
        f"the first two columns, {columns[0]!r} and {columns[1]!r}, do not look like the two nodes of an "
        "edge",
        why="with the wrong columns the answer would be wrong, and the budget would be spent",
        fix=Either(Set(source_column=columns[i], target_column=columns[j]), Choose(tuple(columns))),
    )


def _listing_of(source: object, *, directed: bool) -> Any:
    """Return the function that lists the edges of an object in memory; None for tables."""
    if isinstance(source, np.ndarray):
        if source.ndim != 2 or source.shape[1] != 2:
            raise _wrong_shape("an array of edges has two columns, one for each end")
        return _of_array
    if isinstance(source, list):
        return _of_list
    is_graph = all(hasattr(source, name) for name in ("edges", "nodes", "is_directed", "adj"))
    if is_graph or (hasattr(source, "get_edgelist") and hasattr(source, "is_directed")):
        _check_direction(bool(source.is_directed()), directed=directed)  # type: ignore[attr-defined]
        return _of_networkx if is_graph else _of_igraph
    if hasattr(source, "tocoo") and hasattr(source, "shape"):
        if len(source.shape) != 2 or source.shape[0] != source.shape[1]:
            raise _wrong_shape("an adjacency matrix is square, with a row and a column for each node")
        return _of_matrix
    return None


def _positions(source: Any, listing: Any) -> int | None:
    """Return the number of nodes of a matrix, or of an igraph graph without names."""
    if listing is _of_matrix:
        return int(source.shape[0])
    unnamed = listing is _of_igraph and "name" not in source.vs.attributes()
    return int(source.vcount()) if unnamed else None


def _wrong_source(problem: str, why: str, fix: Fix) -> TacitError:
    return TacitError("bad-parameter", problem, why=why, fix=fix)


def _wrong_shape(why: str) -> TacitError:
    fix = Code("tc.graph(edges[:, :2], ...)")
    return _wrong_source("the source does not have the shape of a graph", why, fix)


def _check_direction(has: bool, *, directed: bool) -> None:  # noqa: FBT001 - a fact, not an option
    """Refuse a directed graph that is declared as undirected, and the other way around."""
    if has == directed:
        return
    mismatch = ("the graph is directed, but it is declared as undirected", Set(directed=True))
    other = ("the graph is undirected, but it is declared as directed", Set(directed=False))
    problem, fix = mismatch if has else other
    raise _wrong_source(
        problem,
        "in a directed graph the unit is one arrow; in an undirected one it is a connection, whichever "
        "way it points",
        Either(fix, Say("convert the graph first")),
    )


def _coded(pairs: Iterable[tuple[str | None, str | None]], weights: list[float] | None) -> NamedPairs:
    """Replace names by their places in the order of bytes, which for text is that of Python."""
    rows = list(pairs)
    names = tuple(sorted({name for row in rows for name in row if name is not None}))
    code_of: dict[str | None, int] = {name: i for i, name in enumerate(names)}
    codes = np.array([[code_of.get(end, -1) for end in row] for row in rows], dtype=np.int64).reshape(-1, 2)
    numbers = None if weights is None else np.array(weights, dtype=np.float64)
    return NamedPairs(names, codes[:, 0].copy(), codes[:, 1].copy(), numbers)


def _of_array(edges: NDArray[Any], weight: str | None) -> NamedPairs:
    """List the rows of an array of two columns; whole numbers stay numbers until they are names."""
    del weight
    if edges.dtype.kind not in "iu":
        return _of_list(edges.tolist(), None)
    numbers, codes = np.unique(edges, return_inverse=True)
    coded = codes.reshape(-1, 2).astype(np.int64)
    return NamedPairs(tuple(map(str, numbers.tolist())), coded[:, 0].copy(), coded[:, 1].copy())


def _of_list(edges: list[Any], weight: str | None) -> NamedPairs:
    """List pairs of names; what is not a row of at least two names is an edge without ends."""
    del weight
    return _coded((_pair(one) for one in edges), None)


def _pair(edge: Any) -> tuple[str | None, str | None]:
    """Return the first two names of a row, such as the ends in (ana, ben, 30)."""
    is_row = isinstance(edge, tuple | list) or (isinstance(edge, np.ndarray) and edge.ndim == 1)
    if is_row and len(edge) >= 2:
        return node_name(edge[0]), node_name(edge[1])
    return None, None


def _of_networkx(graph: Any, weight: str | None) -> NamedPairs:
    """List the edges of a NetworkX graph; nodes without edges are not read."""
    if weight is None:
        return _coded(((node_name(u), node_name(v)) for u, v in graph.edges()), None)
    rows = list(graph.edges(data=weight))
    return _coded(((node_name(u), node_name(v)) for u, v, _ in rows), [_number(w) for *_, w in rows])


def _of_igraph(graph: Any, weight: str | None) -> NamedPairs:
    """List the edges of an igraph graph, by the attribute ``name`` of its vertices, or by their numbers."""
    ends = np.asarray(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    if "name" in graph.vs.attributes():
        names = [node_name(one) for one in graph.vs["name"]]
        pairs = _coded(((names[u], names[v]) for u, v in ends.tolist()), None)
    else:
        pairs = _of_array(ends, None)
    if weight is None:
        return pairs
    numbers = graph.es[weight] if weight in graph.es.attributes() else [None] * len(ends)
    weights = np.array([_number(one) for one in numbers], dtype=np.float64)
    return NamedPairs(pairs.names, pairs.source, pairs.target, weights)


def _of_matrix(matrix: Any, weight: str | None) -> NamedPairs:
    """List the entries of a sparse matrix that are not zero; rows and columns are nodes 0, 1, 2 ..."""
    entries = matrix.tocoo()
    values = np.asarray(entries.data)
    nonzero = values != 0
    ends = np.stack([np.asarray(entries.row)[nonzero], np.asarray(entries.col)[nonzero]], axis=1).astype(
        np.int64
    )
    pairs = _of_array(ends, None)
    weights = None
    if weight is not None:
        weights = np.array([_number(one) for one in values[nonzero].tolist()], dtype=np.float64)
    return NamedPairs(pairs.names, pairs.source, pairs.target, weights, symmetric=True)


def _number(value: object) -> float:
    """Return a weight as a float; NaN where it is not a number."""
    try:
        return float(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - no value makes a paid release fail
        return float("nan")
