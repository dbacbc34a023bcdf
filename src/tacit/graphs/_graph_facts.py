"""The public facts of a graph that its questions need, and the words in which plans state them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Either, Say, Set

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import JSON
    from tacit.fixes import Fix
    from tacit.graphs._edge_weights import WeightFact
    from tacit.graphs._node_facts import NodeFacts, NodeGroups


@dataclass(frozen=True, slots=True, eq=False)
class GraphFacts:
    """What is declared about a graph, beside its name, its unit and its budget.

    Parameters
    ----------
    nodes, target_nodes
        The nodes; of a bipartite graph, those of each side.
    degree_bound, promised
        The largest number of edges of a node; whether it is a promise of the curator.
    mean_degree
        A public guess of how many edges a node has on average, for verdicts.
    columns
        The two columns of a table that are read.
    positions
        How many nodes a source without names has; it calls them 0, 1, 2 and so on.
    """

    nodes: NodeFacts
    target_nodes: NodeFacts | None = None
    by_node: bool = False
    directed: bool = False
    bipartite: bool = False
    degree_bound: int | None = None
    promised: bool = False
    groups: Mapping[str, NodeGroups] = field(default_factory=dict)
    weight: WeightFact | None = None
    mean_degree: float | None = None
    columns: tuple[str, str] | None = None
    positions: int | None = None

    def __post_init__(self) -> None:
        """Refuse facts about single nodes if a node that leaves would change which nodes they are about."""
        known = () if self.nodes.listed is None else self.nodes.listed
        fixed = {*known} == {str(place) for place in range(self.positions or 0)}
        if self.by_node and self.positions is not None and (known or self.groups) and not fixed:
            raise TacitError(
                "bad-parameter",
                "nodes and groups speak of single nodes, but the source has no names of nodes",
                why="the source calls nodes by their positions; if one node leaves, the nodes behind it get "
                "other positions, and so other groups",
                fix=Either(
                    Say("give a table or a list of pairs with names"),
                    Say(
                        "make the positions public: declare as nodes all whole numbers from 0 to the last "
                        "position; a node that leaves then keeps its position without edges"
                    ),
                ),
            )

    @property
    def document(self) -> dict[str, JSON]:
        """What every question's document holds of the facts: the rules by which edges are read."""
        side = {} if self.target_nodes is None else {"target_nodes": self.target_nodes.document}
        kind = "bipartite" if self.bipartite else "directed" if self.directed else "undirected"
        read = {} if self.columns is None else {"columns": list(self.columns)}
        return {"graph": kind, "nodes": self.nodes.document, **side, **read}

    @property
    def projection(self) -> dict[str, JSON]:
        """What the document of a question under a degree bound holds: the bound, and the order of edges."""
        if not self.by_node or self.degree_bound is None:
            return {}
        # positions were once ordered as text, and answers from then did not have the sensitivity they claimed
        order = {} if self.positions is None else {"order": "positions"}
        return {"degree_bound": self.degree_bound, **order}

    @property
    def assumes(self) -> dict[str, JSON]:
        """The label of each mechanism whose guarantee rests on the promised degree."""
        if not (self.by_node and self.promised):
            return {}
        return {"assumes": f"no node has more than {self.degree_bound:,} edges"}

    def words(self, *, assumed: bool) -> list[tuple[str, str]]:
        """Return the facts in words, for a plan; ``assumed``: whether its guarantee rests on the promise."""
        if self.by_node:
            changed = "one node is added or removed, with all its edges"
        elif self.directed:
            changed = "one edge is added or removed; an edge leads from one node to another"
        else:
            changed = "one edge is added or removed: a pair of nodes with all its rows"
        nodes = self.nodes.words
        if self.target_nodes is not None:
            nodes = f"sources: {nodes}; targets: {self.target_nodes.words}"
        promise = [("holds if", str(text)) for text in self.assumes.values() if assumed]
        read = (
            []
            if self.columns is None
            else [("edges", "from the columns {!r} and {!r}".format(*self.columns))]
        )
        return [("neighbours", changed), *promise, *read, ("nodes", nodes)]

    def number(self) -> int:
        """Return the declared number of nodes, or refuse where there is none."""
        if self.nodes.number is None:
            raise TacitError(
                "missing-limit",
                "the nodes of the graph are not declared",
                why="degrees count nodes without edges too, and how many of them there are must be public",
                fix=Set(nodes=1000),
            )
        return self.nodes.number

    def group(self, name: str) -> NodeGroups:
        """Return a public grouping, or refuse an unknown name."""
        if name not in self.groups:
            fix: Fix = Choose(tuple(self.groups), given=str(name))
            if not self.groups:
                fix = Code('groups={"class": {"ana": "1A", "ben": "1B"}}')
            raise TacitError(
                "unknown-column",
                f"the graph has no public grouping {name!r}",
                why="groups of nodes must be declared, because which node is in which group must be public",
                fix=fix,
            )
        return self.groups[name]

    def bound(self, what: str) -> int:
        """Return the degree bound of a node-level question, or refuse where there is none."""
        if self.degree_bound is None:
            raise TacitError(
                "missing-limit",
                f"{what} of a graph that protects nodes need a degree bound",
                why="one node can have an edge to every other node, and nothing hides that many edges",
                fix=Set(degree_bound=20),
            )
        return self.degree_bound

    def edge_level(self, what: str, witness: str, also: Fix | None = None) -> None:
        """Refuse a question that no projection makes private for a node, unless degrees are promised.

        Parameters
        ----------
        what
            The statistic.
        witness
            Graphs that show why: one node changes the answer as far as one likes.
        also
            Another way out.
        """
        if not self.by_node:
            return
        if self.promised and self.degree_bound is not None:
            return
        promise = Code("tc.graph(..., degree_bound=20, promised=True)")
        ways = [Set(unit="edge"), promise] if also is None else [also, Set(unit="edge"), promise]
        raise TacitError(
            "missing-limit",
            f"{what} cannot be released if nodes are protected",
            why=f"{witness}; dropping edges above a degree bound does not help, because one node decides "
            "which edges of others are dropped",
            fix=Either(*ways),
        )

    def undirected(self, what: str) -> None:
        """Refuse a question that only an undirected graph has an answer to."""
        if self.bipartite:
            raise TacitError(
                "not-allowed",
                f"a bipartite graph has no {what}",
                why="its edges lead from one side to the other, never between nodes of the same side",
                fix=Say("ask for edges, degrees or a mixing matrix"),
            )
        if self.directed:
            raise TacitError(
                "not-allowed",
                f"Tacit counts {what} of undirected graphs only",
                why="how far one arrow moves the count depends on the direction of the others, for which "
                "there is no proof here",
                fix=Set(directed=False),
            )
