"""The content of a hierarchy: a count for every node of a public tree, and all levels add up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Cells, Content
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.mechanisms import MeasurementNoise, linear_half_width
from tacit.strategies import alike, consistent, variances_of, whole_down
from tacit.tables._public_tree import PublicTree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tacit.core import JSON, Value
    from tacit.show import Figure

_WHOLE = (
    "whole numbers that are not negative and add up, from the top down: small counts are too large on "
    "average, and large ones too small"
)


@dataclass(frozen=True, eq=False, repr=False)
class HierarchyCounts(Content):
    """A count with an interval for every node of a public tree; the children of a node add up to it.

    All levels were measured. Least squares over all of them gives each node's value (Hay et al. 2010). The
    intervals hold one at a time, for the noise alone.

    Parameters
    ----------
    tree
        The nodes, which are public.
    measured
        The noisy count of each node as it was measured, the lowest level first.
    noise
        The law of the noise.
    confidence
        How often each interval covers.
    left_out
        Which rows are not counted.
    notes
        What was done to the counts.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> tree = {"east": ["Ahorn", "Birke", "Buche"], "west": ["Eiche", "Erle"]}
    >>> release = visits.hierarchy(["region", "hospital"], tree=tree).plan(epsilon=1).release()
    >>> east, west = release.level("region")["n"].value
    >>> abs(east + west - release.level("(all)").value) < 1e-6
    True
    """

    kind: ClassVar[str] = "hierarchy-counts"
    described: ClassVar[str] = "counts of areas and their parts"
    changes: ClassVar[frozenset[str]] = frozenset({"whole"})

    tree: PublicTree
    measured: tuple[int, ...]
    noise: MeasurementNoise
    confidence: float
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.tree.paths)

    def __getitem__(self, column: str) -> Cells:
        return self.table[column]

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Iterate over the nodes as dictionaries, from the top down."""
        return iter(self.table)

    @cached_property
    def estimates(self) -> NDArray[np.float64]:
        """The least-squares estimate of each node, the lowest level first."""
        y = np.array(self.measured, dtype=np.float64)
        return consistent(y, self.tree.parents, self.noise.variances)

    @cached_property
    def half_widths(self) -> NDArray[np.float64]:
        """How far the estimate of each node may lie from the truth."""
        return node_half_widths(self.tree, self.noise, 1 - self.confidence)

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels from the top down."""
        return self.tree.names

    @property
    def table(self) -> AnswerTable:
        """All nodes from the top down; levels below a node are empty."""
        order = np.argsort(self.tree.depth, kind="stable")
        return self._table(order, len(self.levels))

    def level(self, name: str) -> AnswerTable:
        """Return the counts of one level, with the levels above it."""
        if name not in self.levels:
            raise TacitError(
                "unknown-column",
                f"the hierarchy has no level {name!r}",
                fix=Choose(self.levels, given=str(name)),
            )
        depth = self.levels.index(name)
        return self._table(np.flatnonzero(self.tree.depth == depth), depth + 1)

    def whole(self) -> Self:
        """Return non-negative whole numbers that add up, made from the top of the tree down.

        They are for print and for programs that need such numbers. Intervals still rest on the estimates.
        """
        return self if self.notes else replace(self, notes=(_WHOLE,))

    def _table(self, nodes: NDArray[np.int64], depth: int) -> AnswerTable:
        middle, wide = self.estimates, self.half_widths
        shown: NDArray[Any] = middle
        low, high = middle - wide, middle + wide
        if self.notes:
            shown = whole_down(middle, self.tree.parents)
            low, high = np.maximum(np.minimum(low, shown), 0), np.maximum(high, shown)
        paths = [self.tree.paths[i] for i in nodes]
        keys = {
            name: tuple(path[i] if i < len(path) else None for path in paths)
            for i, name in enumerate(self.levels[:depth])
            if name != "(all)" or depth == 1
        }
        cells = Cells(*(tuple(part[nodes].tolist()) for part in (shown, low, high)))
        notes = {"n": self.notes[0]} if self.notes else {}
        return AnswerTable(
            keys,
            {"n": cells},
            self.confidence,
            notes,
            self.left_out,
            ("n",),
            totals=depth == len(self.levels),
        )

    def to_json(self) -> JSON:
        """Return the counts as JSON: the noisy counts, the tree and the noise."""
        return {
            "levels": list(self.levels),
            "paths": [list(path) for path in self.tree.paths[: self.tree.leaves]],
            "measured": list(self.measured),
            "noise": self.noise.to_json(),
            "confidence": self.confidence,
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the counts back; raises ``ValueError`` where they are not such counts."""
        tree = PublicTree.from_paths(tuple(document["levels"]), [tuple(one) for one in document["paths"]])
        noise = MeasurementNoise.from_json(document["noise"])
        measured, confidence = tuple(document["measured"]), float(document["confidence"])
        agree = noise.parents is not None and noise.parents.tolist() == tree.parents.tolist()
        if not agree or len(measured) != len(tree.paths) or not 0 < confidence < 1:
            raise ValueError("not the counts of a hierarchy")
        values = (one for path in tree.paths for one in path)
        named = all(isinstance(name, str) for name in tree.names) and len(set(tree.names)) == len(tree.names)
        plain = all(one is None or isinstance(one, str | int | float) for one in values)
        if any(type(n) is not int for n in measured) or not (named and plain):
            raise ValueError("not the counts of a hierarchy")
        texts = [tuple(str(one) for one in document[name]) for name in ("left_out", "notes")]
        return cls(tree, measured, noise, confidence, *texts)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the nodes for a terminal."""
        return self.table.text(marks)

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the nodes for a notebook."""
        return self.table.html(marks)

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the table of all counts."""
        yield "", self.table

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the counts of each level with their intervals, the lowest level first."""
        levels = self.levels[::-1] if what is None else (what,)
        return tuple(replace(self.level(name).figures("n")[0], name=name) for name in levels)

    def __repr__(self) -> str:
        return self.text()


def node_half_widths(tree: PublicTree, noise: MeasurementNoise, failing: float) -> NDArray[np.float64]:
    """Return the half-width of every node; nodes that are alike are worked out once.

    Gaussian noise has a closed form, to which half a step is added because noise is whole.
    """
    spread = variances_of(tree.parents, noise.variances)
    if not noise.laplace.any():
        z = float(linear_half_width(failing, np.zeros((1, 1)), np.ones(1))[0])
        return np.asarray(z * np.sqrt(spread) + 0.5)
    kinds = alike(tree.parents, noise.variances)
    _, first, place = np.unique(kinds, return_index=True, return_inverse=True)
    under = [_leaves_below(tree, int(node)) for node in first]
    return noise.half_widths(under, failing)[place.reshape(-1)]


def _leaves_below(tree: PublicTree, node: int) -> NDArray[np.int64]:
    path = tree.paths[node]
    return np.array([i for i in range(tree.leaves) if tree.paths[i][: len(path)] == path])
