"""Counts of a public tree: every level is measured, and least squares makes them add up.

One unit with at most k rows moves the counts of one level by at most k in L1 and in L2, because each row is
in one node of a level. Each level is one mechanism, and the costs of the levels add up.
docs/proofs/ranges.md, "Hierarchies", has the argument.

The content, `HierarchyCounts`, has a count for every node of the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.accounting import rho_cap
from tacit.core import AnswerTable, Cells, Content, Draft, Forecast, Goal, Step
from tacit.errors import TacitError
from tacit.exact import rational, read_fraction
from tacit.fixes import Choose
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace, MeasurementNoise, linear_half_width
from tacit.strategies import alike, consistent, level_shares, variances_of, whole_down
from tacit.tables.planning._pricing import goal_within
from tacit.tables.questions._rows_questions import read_rows, rows_document
from tacit.tables.reading._captions import counted_in_words
from tacit.tables.workloads._axes import ALL, PublicTree, TreeGiven, in_order, read_axes, read_tree
from tacit.tables.workloads._coded_rows import counted_question

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Value
    from tacit.exact import Number
    from tacit.show import Figure
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._rows import Rows
    from tacit.tables.workloads._axes import Axis
    from tacit.tables.workloads._coded_rows import CountedQuestion


_SLACK = 1 - Fraction(1, 2**20)  # so that the certified accounting, which rounds up, reads the promise


def hierarchy_design(
    rows: Rows, levels: Sequence[str], *, tree: TreeGiven, weights: Mapping[str, Number] | None = None
) -> HierarchyDesign:
    """Read a question for the counts of a public tree; see `Rows.hierarchy`."""
    public_tree = read_tree(levels, tree)
    weight_texts = {
        str(name): str(rational(f"the weight of {name}", one)) for name, one in (weights or {}).items()
    }
    for name in weight_texts:
        if name not in public_tree.names:
            raise TacitError(
                "unknown-column",
                f"weights names {name!r}, which is not a level",
                fix=Choose(public_tree.names, given=name),
            )
    lowest = [path[-1] for path in public_tree.paths[: public_tree.leaves]]
    (axis,) = read_axes(rows, [levels[-1]], keys={levels[-1]: lowest}, missing=False)
    return HierarchyDesign(rows, tuple(levels), public_tree, in_order(axis, lowest), weight_texts)


def read_hierarchy(dataset: TableDataset, request: Any) -> tuple[HierarchyDesign, Goal]:
    """Read the counts of a tree back from a request."""
    levels = [str(one) for one in request["levels"]]
    weights = {name: read_fraction(one) for name, one in request["weights"].items()}
    rows = read_rows(dataset, request["rows"])
    design = hierarchy_design(rows, levels, tree=request["tree"], weights=weights)
    return design, Goal.from_json(request["goal"])


@dataclass(frozen=True, slots=True, eq=False)
class HierarchyDesign:
    """Counts of a public tree."""

    rows: Rows
    asked: tuple[str, ...]
    tree: PublicTree
    axis: Axis
    weights: dict[str, str]

    def draft(self, goal: Goal) -> Draft[HierarchyCounts]:
        """Draft the plan.

        Without a delta the noise is Laplace; with it, whichever has the smaller largest error. ``within`` is
        the error of every node.
        """
        question = counted_question(self.rows, (self.axis,))
        if goal.within is not None:
            goal = goal_within(goal, lambda one: self._widths(self._levels(question, one), one).max())
        mechanisms, tree = self._levels(question, goal), self.tree
        level_noise = self._noise(mechanisms)

        def content(noisy: Sequence[Any], confidence: Fraction) -> HierarchyCounts:
            counts = tuple(int(n) for level in noisy for n in level)
            return HierarchyCounts(tree, counts, level_noise, float(confidence), question.left_out())

        steps = [
            Step(noise, partial(_of_level, tree, name), {"statistic": f"counts of the level {name}"})
            for noise, name in zip(mechanisms, tree.names[::-1], strict=True)
        ]
        what = {"asks": "hierarchy", "levels": list(tree.names), "parents": tree.parents.tolist()}
        task = question.task(what, steps, lambda rows: tree.sums(rows.table([0])), content)
        return Draft(
            task=task,
            goal=goal,
            forecast=lambda: self._forecast(mechanisms, goal),
            facts=lambda: [*question.facts, *self._facts(mechanisms)],
            asked=self._words(shape=self.rows._dataset.record == "shape"),
        )

    def request(self, goal: Goal) -> JSON:
        """Return the request of a plan."""
        tree = self.tree
        return {
            "asks": "hierarchy",
            "rows": rows_document(self.rows),
            "levels": list(self.asked),
            "tree": [list(path[-len(self.asked) :]) for path in tree.paths[: tree.leaves]],
            "weights": dict(self.weights),
            "goal": goal.to_json(),
        }

    def _levels(
        self, question: CountedQuestion, goal: Goal
    ) -> tuple[DiscreteLaplace, ...] | tuple[DiscreteGaussian, ...]:
        """Choose the noise of each level, the lowest first."""
        contributed = question.who
        candidates: list[tuple[DiscreteLaplace, ...] | tuple[DiscreteGaussian, ...]] = []
        rho = goal.rho
        if goal.epsilon is not None:
            candidates.append(
                tuple(
                    DiscreteLaplace(
                        epsilon=goal.epsilon * share,
                        sensitivity=contributed.l1(1),
                        adjacency=contributed.adjacency,
                    )
                    for share in self._shares(squared=True)
                )
            )
            rho = rho_cap(goal.epsilon, goal.delta) * _SLACK if goal.delta else None
        if rho:
            candidates.append(
                tuple(
                    DiscreteGaussian(
                        rho=rho * share,
                        sensitivity_squared=contributed.l2_squared(1),
                        adjacency=contributed.adjacency,
                    )
                    for share in self._shares(squared=False)
                )
            )
        if not candidates:
            raise TacitError(
                "bad-parameter", "delta is too small for Gaussian noise", fix="use epsilon alone"
            )
        return min(candidates, key=lambda one: self._widths(one, goal).max())

    def _shares(self, *, squared: bool) -> tuple[Fraction, ...]:
        """Divide the budget among the levels, the lowest first."""
        tree = self.tree
        weights = [float(Fraction(self.weights.get(name, "1"))) for name in tree.names[::-1]]
        below = len(tree.names) - 1 - tree.depth
        return level_shares(tree.parents, below.tolist(), weights, squared=squared)

    def _noise(self, mechanisms: Sequence[DiscreteLaplace | DiscreteGaussian]) -> MeasurementNoise:
        sizes = [int((self.tree.depth == level).sum()) for level in range(len(self.tree.names))][::-1]
        return MeasurementNoise.of(list(zip(mechanisms, sizes, strict=True)), self.tree.parents)

    def _widths(
        self, mechanisms: Sequence[DiscreteLaplace | DiscreteGaussian], goal: Goal
    ) -> NDArray[np.float64]:
        return node_half_widths(self.tree, self._noise(mechanisms), float(1 - goal.confidence))

    def _forecast(
        self, mechanisms: Sequence[DiscreteLaplace | DiscreteGaussian], goal: Goal
    ) -> list[Forecast]:
        widths, depth = self._widths(mechanisms, goal), self.tree.depth
        return [
            Forecast(name, "number of rows, at most", one.describe(), float(widths[depth == level].max()))
            for level, (name, one) in enumerate(zip(self.tree.names, mechanisms[::-1], strict=True))
        ]

    def _facts(self, mechanisms: Sequence[DiscreteLaplace | DiscreteGaussian]) -> list[tuple[str, str]]:
        tree, depth = self.tree, self.tree.depth
        sizes = [f"{int((depth == i).sum()):,} of {name}" for i, name in enumerate(tree.names) if name != ALL]
        squared = isinstance(mechanisms[0], DiscreteLaplace)
        shares = self._shares(squared=squared)[::-1]
        split = ", ".join(
            f"{name} {float(s) * 100:.3g} %" for name, s in zip(tree.names, shares, strict=True)
        )
        return [("nodes", ", ".join(sizes)), ("budget by level", split)]

    @property
    def words(self) -> str:
        """The question in words."""
        return self._words()

    def _words(self, *, shape: bool = False) -> str:
        """Say what is asked; the names of the levels above are not columns, so a shape drops them."""
        more = ", ".join(self.asked[:-1]) if not shape else "?" if len(self.asked) > 1 else ""
        template = "number of rows by {}" + (f" and the level {_escaped(more)}" if more else "")
        return counted_in_words(template, [self.axis.name], self.rows.relation, shape=shape)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _of_level(tree: PublicTree, name: str, counts: NDArray[np.int64], _: object) -> Any:
    """Return the exact counts of one level, from those of all nodes."""
    return counts[tree.depth == tree.names.index(name)]


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
        middle, half_widths = self.estimates, self.half_widths
        values: NDArray[Any] = middle
        low, high = middle - half_widths, middle + half_widths
        if self.notes:
            values = whole_down(middle, self.tree.parents)
            low, high = np.maximum(np.minimum(low, values), 0), np.maximum(high, values)
        paths = [self.tree.paths[i] for i in nodes]
        keys = {
            name: tuple(path[i] if i < len(path) else None for path in paths)
            for i, name in enumerate(self.levels[:depth])
            if name != "(all)" or depth == 1
        }
        cells = Cells(*(tuple(part[nodes].tolist()) for part in (values, low, high)))
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
        counts, confidence = tuple(document["measured"]), float(document["confidence"])
        agree = noise.parents is not None and noise.parents.tolist() == tree.parents.tolist()
        if not agree or len(counts) != len(tree.paths) or not 0 < confidence < 1:
            raise ValueError("not the counts of a hierarchy")
        values = (one for path in tree.paths for one in path)
        has_names = all(isinstance(name, str) for name in tree.names) and len(set(tree.names)) == len(
            tree.names
        )
        plain = all(one is None or isinstance(one, str | int | float) for one in values)
        if any(type(n) is not int for n in counts) or not (has_names and plain):
            raise ValueError("not the counts of a hierarchy")
        texts = [tuple(str(one) for one in document[name]) for name in ("left_out", "notes")]
        return cls(tree, counts, noise, confidence, *texts)

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
        figures = {name: self.level(name).figures("n")[0] for name in levels}
        return tuple(
            replace(figure, name=name, title="n of all rows together" if name == ALL else figure.title)
            for name, figure in figures.items()
        )

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
    _, first_of_kind, kind_index = np.unique(kinds, return_index=True, return_inverse=True)
    under = [_leaves_below(tree, int(node)) for node in first_of_kind]
    return noise.half_widths(under, failing)[kind_index.reshape(-1)]


def _leaves_below(tree: PublicTree, node: int) -> NDArray[np.int64]:
    path = tree.paths[node]
    return np.array([i for i in range(tree.leaves) if tree.paths[i][: len(path)] == path])
