"""Counts of a public tree: every level is measured, and least squares makes them add up.

One unit with at most k rows moves the counts of one level by at most k in L1 and in L2, because each row is
in one node of a level. Each level is one mechanism, and the costs of the levels add up.
docs/proofs/ranges.md, "Hierarchies", has the argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from tacit.accounting import rho_cap
from tacit.core import Draft, Forecast, Goal, Step
from tacit.errors import TacitError
from tacit.exact import rational, read_fraction
from tacit.fixes import Choose
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace, MeasurementNoise
from tacit.strategies import level_shares
from tacit.tables._axes import in_order, read_axes
from tacit.tables._counted_subject import counted_question
from tacit.tables._hierarchy_counts import HierarchyCounts, node_half_widths
from tacit.tables._pricing import goal_within
from tacit.tables._public_tree import ALL, TreeGiven, read_tree
from tacit.tables._rows_questions import read_rows, rows_document
from tacit.tables._words import counted_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.exact import Number
    from tacit.tables._axes import Axis
    from tacit.tables._counted_subject import CountedQuestion
    from tacit.tables._dataset import TableDataset
    from tacit.tables._public_tree import PublicTree
    from tacit.tables._rows import Rows

_SLACK = 1 - Fraction(1, 2**20)  # so that the certified accounting, which rounds up, reads the promise


def hierarchy_design(
    rows: Rows, levels: Sequence[str], *, tree: TreeGiven, weights: Mapping[str, Number] | None = None
) -> HierarchyDesign:
    """Read a question for the counts of a public tree; see `Rows.hierarchy`."""
    read = read_tree(levels, tree)
    given = {str(name): str(rational(f"the weight of {name}", one)) for name, one in (weights or {}).items()}
    for name in given:
        if name not in read.names:
            raise TacitError(
                "unknown-column",
                f"weights names {name!r}, which is not a level",
                fix=Choose(read.names, given=name),
            )
    lowest = [path[-1] for path in read.paths[: read.leaves]]
    (axis,) = read_axes(rows, [levels[-1]], keys={levels[-1]: lowest}, missing=False)
    return HierarchyDesign(rows, tuple(levels), read, in_order(axis, lowest), given)


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
        counted = counted_question(self.rows, (self.axis,))
        if goal.within is not None:
            goal = goal_within(goal, lambda one: self._widths(self._levels(counted, one), one).max())
        mechanisms, tree = self._levels(counted, goal), self.tree
        left = self._noise(mechanisms)

        def content(noisy: Sequence[Any], confidence: Fraction) -> HierarchyCounts:
            measured = tuple(int(n) for level in noisy for n in level)
            return HierarchyCounts(tree, measured, left, float(confidence), counted.left_out())

        steps = [
            Step(noise, partial(_of_level, tree, name), {"statistic": f"counts of the level {name}"})
            for noise, name in zip(mechanisms, tree.names[::-1], strict=True)
        ]
        what = {"asks": "hierarchy", "levels": list(tree.names), "parents": tree.parents.tolist()}
        task = counted.task(what, steps, lambda rows: tree.sums(rows.table([0])), content)
        return Draft(
            task=task,
            goal=goal,
            forecast=lambda: self._forecast(mechanisms, goal),
            facts=lambda: [*counted.facts, *self._facts(mechanisms)],
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
        self, counted: CountedQuestion, goal: Goal
    ) -> tuple[DiscreteLaplace, ...] | tuple[DiscreteGaussian, ...]:
        """Choose the noise of each level, the lowest first."""
        who = counted.who
        made: list[tuple[DiscreteLaplace, ...] | tuple[DiscreteGaussian, ...]] = []
        rho = goal.rho
        if goal.epsilon is not None:
            made.append(
                tuple(
                    DiscreteLaplace(
                        epsilon=goal.epsilon * share, sensitivity=who.l1(1), adjacency=who.adjacency
                    )
                    for share in self._shares(squared=True)
                )
            )
            rho = rho_cap(goal.epsilon, goal.delta) * _SLACK if goal.delta else None
        if rho:
            made.append(
                tuple(
                    DiscreteGaussian(
                        rho=rho * share, sensitivity_squared=who.l2_squared(1), adjacency=who.adjacency
                    )
                    for share in self._shares(squared=False)
                )
            )
        if not made:
            raise TacitError(
                "bad-parameter", "delta is too small for Gaussian noise", fix="use epsilon alone"
            )
        return min(made, key=lambda one: self._widths(one, goal).max())

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
        said = "number of rows by {}" + (f" and the level {_escaped(more)}" if more else "")
        return counted_in_words(said, [self.axis.name], self.rows.relation, shape=shape)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _of_level(tree: PublicTree, name: str, counts: NDArray[np.int64], _: object) -> Any:
    """Return the exact counts of one level, from those of all nodes."""
    return counts[tree.depth == tree.names.index(name)]
