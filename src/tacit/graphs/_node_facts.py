"""The public facts of a graph about its nodes: their names or their number, and groups of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Set
from tacit.parameters import Integer, Mapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON

#: What a curator declares about the nodes: their names, or their number.
NodesGiven: TypeAlias = "int | Iterable[object] | None"
_MOST_NODES = 2**31
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


def read_nodes(given: NodesGiven) -> NodeFacts:
    """Read the declared nodes, or refuse with what is wrong."""
    if given is None:
        return NodeFacts()
    if isinstance(given, str | bytes | Mapping) or hasattr(given, "columns"):
        raise bad_parameter("nodes", "a number, or a list of names", given, fix=Set(nodes=1000))
    if not isinstance(given, Iterable):
        return NodeFacts(Integer(2, _MOST_NODES, instead=1000).read("nodes", given))
    names = [None if hasattr(one, "__len__") and not isinstance(one, str | tuple) else node_name(one)
             for one in given]  # fmt: skip
    listed = tuple(name for name in names if name is not None)
    if isinstance(given, AbstractSet):
        listed = tuple(sorted(listed))  # a set has no order, and the order is part of every plan
    places = {name: place for place, name in enumerate(listed)}
    if len(listed) != len(names) or len(places) != len(listed) or len(listed) < 2:
        raise TacitError(
            "bad-parameter",
            "nodes must be a list of at least 2 different names, none of them missing",
            why="1, 1.0 and '1' are the same name",
            fix=Code('nodes=["ana", "ben", "eva"]'),
        )
    return NodeFacts(len(listed), listed, places)


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


def read_groups(given: Mapping[str, Any] | None, nodes: NodeFacts) -> dict[str, NodeGroups]:
    """Read public groupings: labels by name of the node, or one label for each listed node."""
    if given is None:
        return {}
    named: object = given
    if isinstance(named, Mapping):
        named = {str(name): labels for name, labels in named.items()}
    groupings = _GROUPINGS.read("groups", named)
    return {name: _read_group(name, labels, nodes) for name, labels in groupings.items()}


def _read_group(name: str, given: Any, nodes: NodeFacts) -> NodeGroups:
    """Read one grouping, or refuse it."""
    fix = Code(f'groups={{"{name}": {{"ana": "1A", "ben": "1B"}}}}')
    if name in _COLUMNS:
        raise bad_parameter(
            "the name of a grouping", "another word than the columns of the answers", name,
            why="answers have the grouping and their own columns side by side",
            fix=Code(f'groups={{"{name or "class"}_group": {{"ana": "1A", "ben": "1B"}}}}'),
        )  # fmt: skip
    if not isinstance(given, Mapping):
        listed, labels = nodes.listed, _as_list(given)
        if listed is None or labels is None or len(labels) != len(listed):
            raise TacitError(
                "bad-parameter",
                f"the grouping {name!r} does not have one label for each node of a public list",
                why="labels belong to nodes, either by their names or in the order of the list of nodes",
                fix=fix,
            )
        given = dict(zip(listed, labels, strict=True))
    pairs = [(node_name(node), node_name(label)) for node, label in given.items()]
    kept = [(node, label) for node, label in pairs if node is not None and label is not None]
    found = tuple(dict.fromkeys(label for _, label in kept))
    if not kept or len({node for node, _ in kept}) != len(kept):
        raise bad_parameter(f"the grouping {name!r}", "one label for each node", given, fix=fix)
    if (
        nodes.listed is not None
        and (other := next((n for n, _ in kept if n not in nodes.places), None)) is not None
    ):
        raise TacitError(
            "bad-parameter",
            f"the grouping {name!r} names the node {other!r}, which is not among the declared nodes",
            fix=Choose(nodes.listed[:40], given=other),
        )
    place = {label: i for i, label in enumerate(found)}
    return NodeGroups(name, found, {node: place[label] for node, label in kept})


def _as_list(given: Any) -> list[object] | None:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else None


def _digest(listed: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(list(listed)).encode()).hexdigest()
