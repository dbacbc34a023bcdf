"""The function ``tc.graph``: declare a graph, who is protected in it, and what is public about it.

`GRAPH` says how a service declares a graph: on its source, and on a stand-in without edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget
from tacit.core import Argument, DatasetKind, Unit, budget_of, open_account, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Choose, Code, Either, Say, Set
from tacit.graphs._edges import GraphReader
from tacit.graphs._graph import QUESTIONS, Graph
from tacit.graphs._graph_facts import GraphFacts, NodeFacts, read_groups, read_nodes, read_weight
from tacit.parameters import Anything, ColumnName, Flag, Integer, Listed, Omitted

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tacit.exact import Number
    from tacit.graphs._graph_facts import NodesGiven
    from tacit.ledger import Ledger


_OF_ONE_WAY = Omitted(
    "for a bipartite graph", why="its edges lead from the first column to the second", absent=False
)
_OF_ONE_SIDE = Omitted("for a bipartite graph", why="the same name may stand for a node on each side")
_SIDES = Listed(
    "sets of nodes: the sources, then the targets", "(1000, 50)", least=2, most=2,
    why="a bipartite graph has two kinds of nodes",
)  # fmt: skip


def graph(
    source: object,
    *,
    name: str = "graph",
    unit: str | Unit,
    budget: Budget,
    nodes: NodesGiven | tuple[NodesGiven, NodesGiven] = None,
    degree_bound: int | None = None,
    promised: bool = False,
    directed: bool = False,
    bipartite: bool = False,
    groups: Mapping[str, Any] | None = None,
    weight: tuple[str, tuple[Number, Number]] | None = None,
    mean_degree: Number | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    version: int = 1,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    parent: str | None = None,
) -> Graph:
    """Declare a graph: who is protected, which nodes there are, and what else is public.

    Guarantee
    ---------
    All releases together are private within the budget for one unit: an edge (``"edge"``: a connection
    between two nodes, with all rows that mention it; which nodes there are is public), or a node with all its
    edges (``"node"``). The proofs are in ``docs/proofs/graphs.md``. An edge from a node to itself and an edge
    with a missing end are dropped, and a pair that is listed several times counts once.

    Parameters
    ----------
    source
        An edge list with two columns of names (CSV, Parquet, DuckDB, pandas, Polars, Arrow), a list or an
        array of pairs, or a graph of NetworkX, igraph or scipy.sparse. Nothing but the names of columns, the
        type and the shape is read before the first charge. The edges are read once, at the first release, and
        kept: later changes of the source do not count in this session.
    name, version
        Declared identity, to which the budget is bound.
    unit
        ``"edge"`` or ``"node"``.
    budget
        What may be learned in total.
    nodes
        The public nodes: a list of names, or their number. With a list, edges with other nodes are dropped,
        and noise can be smaller. Of a bipartite graph, a pair: the sources and the targets.
    degree_bound
        A public bound on the edges of one node. If nodes are protected, edges above it are dropped; if edges
        are protected, intervals may rest on it.
    promised
        If nodes are protected: whether the curator promises that no node has more than ``degree_bound``
        edges. More questions are then possible. The guarantee rests on the promise, and every certificate
        says so.
    directed
        Whether (u, v) and (v, u) are two edges.
    bipartite
        Whether the two columns name two kinds of nodes, such as people and books.
    groups
        Public groups of nodes by name: ``{"class": {"ana": "1A", "ben": "1B"}}``.
    weight
        The column, or the attribute of the edges, with their weights, and the range to which the weight of a
        pair is clipped: ``("minutes", (0, 60))``.
    mean_degree
        A public guess of how many edges a node has on average. Only verdicts use it.
    source_column, target_column
        The two columns of a table; by default the first two, apart from the weights. They are needed if the
        first two look like something else, such as a number of the row or a date.
    ledger
        A `Ledger`, or where to open one; None keeps it in memory.
    parent
        An account that several graphs share, such as the days of a contact log: it pays for every question to
        any of them, so that its budget holds for a pair in all of them together.

    Examples
    --------
    >>> import tacit as tc
    >>> friends = tc.graph(
    ...     [("ana", "ben"), ("ben", "eva"), ("eva", "ana")],
    ...     name="friends", unit="edge", nodes=["ana", "ben", "eva", "tom"], budget=tc.Budget(epsilon=3),
    ... )
    >>> plan = friends.triangles().plan(epsilon=1)
    >>> plan.asked, float(plan.promised["epsilon"])
    ('the number of triangles', 1.0)
    """
    from tacit.graphs._edge_sources import open_edges
    from tacit.ledger import open_books, source_places

    whom = _read_unit(unit, bipartite=bool(bipartite))
    by_node = whom == Unit.node()
    if bipartite:
        _OF_ONE_WAY.read("directed", bool(directed))
    if directed and by_node:
        raise TacitError(
            "not-allowed",
            "nodes of a directed graph cannot be protected",
            why="the bounds on what one node changes are proven for undirected graphs only",
            fix=Either(Set(directed=False), Set(unit="edge")),
        )
    nodes_declared, targets_declared = _read_sides(nodes, bipartite=bool(bipartite))
    weighed = read_weight(weight)
    if bipartite:
        _OF_ONE_SIDE.read("groups", groups or None)
    edges = open_edges(
        source, ends=(source_column, target_column), weight=weighed, directed=bool(directed),
        bipartite=bool(bipartite),
    )  # fmt: skip
    facts = GraphFacts(
        nodes_declared, targets_declared, by_node, bool(directed), bool(bipartite), _read_bound(degree_bound),
        _read_promise(promised, degree_bound, by_node=by_node), read_groups(groups, nodes_declared), weighed,
        None if mean_degree is None else float(rational("mean_degree", mean_degree, fix=Set(mean_degree=5))),
        edges.ends, edges.positions,
    )  # fmt: skip
    identity = read_identity(name=name, version=version, unit=whom)
    opened_ledger = open_books(ledger, identity.name, source)
    declared = Graph(identity, opened_ledger, facts, GraphReader(edges, facts, weighed))
    open_account(identity, budget, opened_ledger, parent=parent, places=source_places(source))
    return declared


def _read_unit(unit: object, *, bipartite: bool) -> Unit:
    """Read who is protected, or refuse."""
    units = {"edge": Unit.edge(), "node": Unit.node()}
    whom = units.get(unit) if isinstance(unit, str) else unit
    if bipartite and whom != Unit.edge():
        raise TacitError(
            "not-allowed",
            "nodes of a bipartite graph are not protected here",
            why="a graph of people and items, in which each person is protected, is a table with one row for "
            "each edge, and tables have more questions",
            fix=Either(Code('tc.protect("loans.csv", unit="person", ...)'), Set(unit="edge")),
        )
    if not isinstance(whom, Unit) or whom not in units.values():
        raise bad_parameter(
            "unit",
            "edge or node",
            unit,
            why="a graph protects one connection, or one node with all its connections; rows that belong to "
            "one person each are a table",
            fix=Either(Choose(("edge", "node"), given=str(unit)), Code('tc.protect(..., unit="person")')),
        )
    return whom


def _read_sides(nodes: Any, *, bipartite: bool) -> tuple[NodeFacts, NodeFacts | None]:
    """Read the nodes; of a bipartite graph, those of each side."""
    if not bipartite:
        return read_nodes(nodes), None
    if nodes is None:
        return NodeFacts(), NodeFacts()
    sources, targets = _SIDES.read("nodes", nodes)
    return read_nodes(sources), read_nodes(targets)


def _read_bound(degree_bound: int | None) -> int | None:
    if degree_bound is None:
        return None
    return count("degree_bound", degree_bound, zero=False, fix=Set(degree_bound=20))


def _read_promise(promised: object, bound: object, *, by_node: bool) -> bool:
    """Read whether the degree bound is a promise: only where it is needed, and only with a bound."""
    promised = Flag().read("promised", promised)
    if promised and (bound is None or not by_node):
        raise TacitError(
            "bad-parameter",
            "a promise needs a degree bound and the unit node",
            why="if edges are protected, privacy does not depend on the degrees",
            fix=Set(unit="node", degree_bound=20, promised=True) if bound is None else Say("remove promised"),
        )
    return promised


def _declare(
    source: object, *, name: str, policy: Mapping[str, Any], facts: Mapping[str, Any], ledger: Ledger
) -> Graph:
    """Declare a graph, whose neighbours differ by one edge or one node more or less."""
    if policy.get("adjacency", "add/remove") != "add/remove" or policy.get("limits"):
        raise TacitError(
            "not-allowed",
            "a graph hides whether one edge or one node is added or removed, and it has no limits on rows",
            fix="choose add/remove, leave the limits out, and declare degree_bound if everybody knows one",
        )
    return graph(
        source, name=name, unit=policy["unit"], budget=budget_of(policy), nodes=facts.get("nodes"),
        degree_bound=facts.get("degree_bound"), directed=facts.get("directed", False),
        source_column=facts["source_column"], target_column=facts["target_column"],
        version=int(policy.get("version", 1)), ledger=ledger,
    )  # fmt: skip


def _stand_in(facts: Mapping[str, Any]) -> object:
    """Return a table without rows that has the two columns of an edge list."""
    from tacit.engines import empty_table

    return empty_table({facts["source_column"]: "VARCHAR", facts["target_column"]: "VARCHAR"})


def _trial() -> Graph:
    """Return a few invented edges, with budget for one question of each kind."""
    invented = [("a", "b"), ("b", "c"), ("a", "c")]
    return graph(invented, unit="edge", nodes=4, degree_bound=3, budget=Budget(epsilon=100))


GRAPH = DatasetKind(
    name="graph",
    label="a graph",
    questions=QUESTIONS,
    facts=(
        Argument("source_column", ColumnName(), needed=True, words="the column of the first node"),
        Argument("target_column", ColumnName(), needed=True, words="the column of the second node"),
        Argument("degree_bound", Integer(1), words="the largest number of edges of a node"),
        Argument("directed", Flag(), words="whether edges have a direction"),
        Argument("nodes", Anything("the number of nodes, or their names"), served=Integer(1)),
    ),
    declare=_declare,
    stand_in=_stand_in,
    trial=_trial,
)
