"""The public facts of a graph that its questions need, and the words in which plans state them.

They are about nodes (their names or their number, and groups of them), about the weights of edges (clipped to
a public range and rounded to a public grid, pair by pair), and about bounds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Choose, Code, Either, Fix, Say, Set
from tacit.parameters import Integer, Mapped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.fixes import Fix
    from tacit.graphs._edges import EdgeArrays


#: How many steps of the grid the largest weight has.
WEIGHT_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class WeightFact:
    """The column or attribute with the weights, and the largest weight of a pair that counts."""

    column: str
    most: Fraction

    @property
    def step(self) -> Fraction:
        """The public grid."""
        return self.most / WEIGHT_STEPS

    def steps(
        self,
        edges: EdgeArrays,
        ends: tuple[NDArray[np.int64], NDArray[np.int64]],
        weights: NDArray[np.float64],
        *,
        symmetric: bool,
    ) -> NDArray[np.int64]:
        """Return the weight of each edge in steps of the grid.

        Each row is clipped to [0, most]; what is missing or not a number weighs nothing. The rows of a pair
        are added up (of a matrix, the larger of its two entries counts), and the sum is clipped again. So a
        pair's weight depends on its own rows alone, and lies between 0 and `WEIGHT_STEPS` steps.
        """
        top = float(self.most)
        rows = np.clip(np.nan_to_num(weights, nan=0.0, posinf=top, neginf=0.0), 0.0, top)
        positions = edges.places(*ends)
        present = positions >= 0
        total = np.zeros(edges.size)
        with np.errstate(over="ignore"):  # a warning about a value would say something about it
            (np.maximum if symmetric else np.add).at(total, positions[present], rows[present])
        rounded = np.floor(np.minimum(total, top) / top * WEIGHT_STEPS + 0.5).astype(np.int64)
        return np.clip(rounded, 0, WEIGHT_STEPS)


def read_weight(weight: Any) -> WeightFact | None:
    """Read ``("minutes", (0, 60))``, or refuse it."""
    if weight is None:
        return None
    try:
        column, (low, high) = weight
    except (TypeError, ValueError):
        raise _wrong_weight("it must be the name of a column and a range") from None
    if not isinstance(column, str) or not column:
        raise _wrong_weight("it must be the name of a column and a range")
    fix = Set(weight=("minutes", (0, 60)))
    if rational("weight", low, zero=True, negative=True, fix=fix) != 0:
        raise _wrong_weight("the range must start at 0, the weight of a pair that is not connected")
    return WeightFact(column, rational("weight", high, fix=fix))


def _wrong_weight(why: str) -> TacitError:
    return TacitError(
        "missing-bounds",
        "weight is not a column with a range that starts at 0",
        why=f"{why}; noise hides a weight only if the largest one is public",
        fix=Set(weight=("minutes", (0, 60))),
    )


#: What a curator declares about the nodes: their names, or their number.
NodesGiven: TypeAlias = "int | Iterable[object] | None"
_MAX_NODES = 2**31
_COLUMNS = frozenset(
    {"", "degree", "edges", "nodes", "or_more"}
)  # of answers, which a grouping stands beside

_GROUPINGS = Mapped("groupings by name", 'groups={"class": {"ana": "1A", "ben": "1B"}}')


def node_name(value: object) -> str | None:
    """Return the name of a node as text: 1, 1.0 and "1" are one name; None and NaN are not names.

    No value makes it fail, because it runs on paid data too: what cannot be written is a missing name.

    Examples
    --------
    >>> node_name(1.0), node_name("ana"), node_name(float("nan"))
    ('1', 'ana', None)
    """
    try:
        if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
            value = value.item()
        if value is None or value != value:
            return None
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
            return str(int(value))
        return str(value)
    except Exception:  # noqa: BLE001 - no value makes a paid release fail
        return None


def name_rank(name: str) -> tuple[bool, int, str]:
    """Return the key that sorts names: whole numbers by their size, then all other names as text.

    Guarantee: the order of two names depends on these two alone. It also stays the same if they are positions
    that fall together because a node before them left. The order of text does neither for positions: "101" is
    before "11", but "100" is after "10".

    Examples
    --------
    >>> sorted(["ana", "11", "101", "9", "011"], key=name_rank)
    ['9', '11', '101', '011', 'ana']
    """
    is_number = name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")
    return not is_number, len(name) if is_number else 0, name


@dataclass(frozen=True, slots=True, eq=False)
class NodeFacts:
    """Which nodes there are: a public list of names, their number, or nothing.

    A list is a rule: an edge with a node that is not on it is dropped. A number is a statement, which no
    guarantee of privacy rests on.
    """

    number: int | None = None
    listed: tuple[str, ...] | None = None
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def document(self) -> JSON:
        """What a plan's identity holds of it: a list by its digest."""
        return self.number if self.listed is None else {"listed": self.number, "digest": _digest(self.listed)}

    @property
    def most(self) -> int | None:
        """The number of nodes, where the list guarantees that there are no more."""
        return None if self.listed is None else self.number

    @property
    def words(self) -> str:
        """The fact in words, for a plan."""
        if self.number is None:
            return "not declared"
        if self.listed is None:
            return f"{self.number:,} nodes, as declared"
        return f"{self.number:,} nodes, by a public list; edges with other nodes are dropped"

    def codes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the place of each name in the list; -1 where it is not there. Without a list, all stay."""
        if self.listed is None:
            return np.arange(len(names), dtype=np.int64)
        return np.fromiter((self.places.get(name, -1) for name in names), dtype=np.int64, count=len(names))


def read_nodes(nodes: NodesGiven) -> NodeFacts:
    """Read the declared nodes, or refuse with what is wrong."""
    if nodes is None:
        return NodeFacts()
    if isinstance(nodes, str | bytes | Mapping) or hasattr(nodes, "columns"):
        raise bad_parameter("nodes", "a number, or a list of names", nodes, fix=Set(nodes=1000))
    if not isinstance(nodes, Iterable):
        return NodeFacts(Integer(2, _MAX_NODES, instead=1000).read("nodes", nodes))
    names = [None if hasattr(one, "__len__") and not isinstance(one, str | tuple) else node_name(one)
             for one in nodes]  # fmt: skip
    ordered = tuple(name for name in names if name is not None)
    if isinstance(nodes, AbstractSet):
        ordered = tuple(sorted(ordered))  # a set has no order, and the order is part of every plan
    places = {name: place for place, name in enumerate(ordered)}
    if len(ordered) != len(names) or len(places) != len(ordered) or len(ordered) < 2:
        raise TacitError(
            "bad-parameter",
            "nodes must be a list of at least 2 different names, none of them missing",
            why="1, 1.0 and '1' are the same name",
            fix=Code('nodes=["ana", "ben", "eva"]'),
        )
    return NodeFacts(len(ordered), ordered, places)


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroups:
    """A public grouping of nodes: the label of each node that has one.

    Parameters
    ----------
    name
        What the grouping is called.
    labels
        The groups, in the order in which they were declared.
    of
        The place of each node's group in ``labels``, by the node's name.
    """

    name: str
    labels: tuple[str, ...]
    of: Mapping[str, int]

    @property
    def document(self) -> JSON:
        """What a plan's identity holds of it."""
        pairs = [[name, self.labels[place]] for name, place in sorted(self.of.items())]
        return {"by": self.name, "labels": list(self.labels), "digest": _digest(pairs)}

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many nodes each group has."""
        return np.bincount(list(self.of.values()), minlength=len(self.labels))

    def codes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the group of each node; -1 for a node without one."""
        return np.fromiter((self.of.get(name, -1) for name in names), dtype=np.int64, count=len(names))


def read_groups(groups: Mapping[str, Any] | None, nodes: NodeFacts) -> dict[str, NodeGroups]:
    """Read public groupings: labels by name of the node, or one label for each listed node."""
    if groups is None:
        return {}
    by_name: object = groups
    if isinstance(by_name, Mapping):
        by_name = {str(name): labels for name, labels in by_name.items()}
    groupings = _GROUPINGS.read("groups", by_name)
    return {name: _read_group(name, labels, nodes) for name, labels in groupings.items()}


def _read_group(name: str, grouping: Any, nodes: NodeFacts) -> NodeGroups:
    """Read one grouping, or refuse it."""
    if name in _COLUMNS:
        raise bad_parameter(
            "the name of a grouping", "another word than the columns of the answers", name,
            why="answers have the grouping and their own columns side by side",
            fix=Code(f'groups={{"{name or "class"}_group": {{"ana": "1A", "ben": "1B"}}}}'),
        )  # fmt: skip
    if not isinstance(grouping, Mapping):
        node_names, labels = nodes.listed, _as_list(grouping)
        if node_names is None or labels is None or len(labels) != len(node_names):
            raise _wrong_group(name, "does not have one label for each node of a public list")
        grouping = dict(zip(node_names, labels, strict=True))
    pairs = [(node_name(node), node_name(label)) for node, label in grouping.items()]
    labelled = [(node, label) for node, label in pairs if node is not None and label is not None]
    group_names = tuple(dict.fromkeys(label for _, label in labelled))
    if not labelled or len({node for node, _ in labelled}) != len(labelled):
        raise _wrong_group(name, "does not have one label for each node")
    if (
        nodes.listed is not None
        and (other := next((n for n, _ in labelled if n not in nodes.places), None)) is not None
    ):
        problem = f"names the node {other!r}, which is not among the declared nodes"
        raise _wrong_group(name, problem, Choose(nodes.listed[:40], given=other))
    index = {label: i for i, label in enumerate(group_names)}
    return NodeGroups(name, group_names, {node: index[label] for node, label in labelled})


def _wrong_group(name: str, problem: str, fix: Fix | None = None) -> TacitError:
    why = "labels belong to nodes, either by their names or in the order of the list of nodes"
    usual = Code(f'groups={{"{name}": {{"ana": "1A", "ben": "1B"}}}}')
    return TacitError("bad-parameter", f"the grouping {name!r} {problem}", why=why, fix=fix or usual)


def _as_list(labels: Any) -> list[object] | None:
    return list(labels) if isinstance(labels, Iterable) and not isinstance(labels, str | bytes) else None


def _digest(entries: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(list(entries)).encode()).hexdigest()


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
        names = () if self.nodes.listed is None else self.nodes.listed
        fixed = {*names} == {str(place) for place in range(self.positions or 0)}
        if self.by_node and self.positions is not None and (names or self.groups) and not fixed:
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
        columns = {} if self.columns is None else {"columns": list(self.columns)}
        return {"graph": kind, "nodes": self.nodes.document, **side, **columns}

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
        source = (
            []
            if self.columns is None
            else [("edges", "from the columns {!r} and {!r}".format(*self.columns))]
        )
        return [("neighbours", changed), *promise, *source, ("nodes", nodes)]

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

    def bound(self, question: str) -> int:
        """Return the degree bound of a node-level question, or refuse where there is none."""
        if self.degree_bound is None:
            raise TacitError(
                "missing-limit",
                f"{question} of a graph that protects nodes need a degree bound",
                why="one node can have an edge to every other node, and nothing hides that many edges",
                fix=Set(degree_bound=20),
            )
        return self.degree_bound

    def edge_level(self, question: str, witness: str, also: Fix | None = None) -> None:
        """Refuse a question that no projection makes private for a node, unless degrees are promised.

        Parameters
        ----------
        question
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
            f"{question} cannot be released if nodes are protected",
            why=f"{witness}; dropping edges above a degree bound does not help, because one node decides "
            "which edges of others are dropped",
            fix=Either(*ways),
        )

    def undirected(self, question: str) -> None:
        """Refuse a question that only an undirected graph has an answer to."""
        if self.bipartite:
            raise TacitError(
                "not-allowed",
                f"a bipartite graph has no {question}",
                why="its edges lead from one side to the other, never between nodes of the same side",
                fix=Say("ask for edges, degrees or a mixing matrix"),
            )
        if self.directed:
            raise TacitError(
                "not-allowed",
                f"Tacit counts {question} of undirected graphs only",
                why="how far one arrow moves the count depends on the direction of the others, for which "
                "there is no proof here",
                fix=Set(directed=False),
            )
