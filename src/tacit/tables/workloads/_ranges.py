"""Ranges and prefixes of one ordered column: what is asked, what it costs, and the plan.

The exact counts x of the cells go to one mechanism, which releases B x with noise; B is chosen for the asked
ranges from public facts alone. docs/proofs/ranges.md has the argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.algebra import kind_of
from tacit.core import Draft, Forecast, Goal, Step
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational, read_fraction
from tacit.fixes import Set
from tacit.mechanisms import StrategyNoise, weighted_half_widths
from tacit.parameters import Listed
from tacit.strategies import MOST_CELLS, Workload, factored, trees_for
from tacit.tables.planning._pricing import goal_within
from tacit.tables.questions._keys import cell_limit
from tacit.tables.questions._rows_questions import read_rows, rows_document
from tacit.tables.reading._captions import counted_in_words
from tacit.tables.workloads._axes import in_order, read_axes
from tacit.tables.workloads._coded_rows import CodedRows, counted_question
from tacit.tables.workloads._ordered_counts import OrderedCounts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.strategies import RangeStrategy
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._rows import Rows
    from tacit.tables.workloads._axes import Axis
    from tacit.tables.workloads._coded_rows import CountedQuestion

_MAX_RANGES = 10_000  # ranges
_MAX_RATIO = 10**9  # weights
_HUGE = 2**64  # a weight beyond which all are divided by the largest
_LONG = 400  # cuts that fit into one expression
#: The ends of ranges, or their ends with how much the error of each matters.
RangesGiven = "Sequence[tuple[object, object]] | Mapping[tuple[object, object], Number] | None"


def ranges_design(
    rows: Rows,
    column: str,
    *,
    bins: int | Sequence[object] | None = None,
    values: Sequence[object] | None = None,
    ranges: RangesGiven = None,  # type: ignore[valid-type]
    by: str | None = None,
    keys: Sequence[object] | None = None,
) -> RangesDesign:
    """Read a question for all ranges of an ordered column, or for given ones; see `Rows.ranges`."""
    arguments = {"bins": bins, "values": values, "by": by, "keys": keys, "ranges": _listed(ranges)}
    return _design(rows, "ranges", column, arguments)


def prefixes_design(
    rows: Rows,
    column: str,
    *,
    bins: int | Sequence[object] | None = None,
    values: Sequence[object] | None = None,
    by: str | None = None,
    keys: Sequence[object] | None = None,
) -> RangesDesign:
    """Read a question for the distribution of an ordered column; see `Rows.prefixes`."""
    arguments = {"bins": bins, "values": values, "by": by, "keys": keys, "ranges": None}
    return _design(rows, "prefixes", column, arguments)


def read_ranges(dataset: TableDataset, request: Any) -> tuple[RangesDesign, Goal]:
    """Read ranges or prefixes back from a request."""
    arguments = {name: request["given"][name] for name in ("bins", "values", "by", "keys", "ranges")}
    design = _design(read_rows(dataset, request["rows"]), request["asks"], str(request["column"]), arguments)
    return design, Goal.from_json(request["goal"])


def _listed(ranges: Any) -> list[list[JSON]] | None:
    """Write given ranges as a list of low, high and weight."""
    if ranges is None:
        return None
    pairs = ranges.items() if hasattr(ranges, "items") else [(pair, 1) for pair in ranges]
    try:
        triples = [
            [_written(low), _written(high), str(rational("the weight of a range", weight))]
            for (low, high), weight in pairs
        ]
    except (TypeError, ValueError):
        triples = []
    if not triples:
        raise bad_parameter(
            "ranges", "pairs of a low and a high end", ranges, fix=Set(ranges=[(0, 18), (18, 65)])
        )
    return triples


def _written(value: Any) -> JSON:
    return value if isinstance(value, str | int | float) else str(value)


def _design(rows: Rows, asks: str, column: str, arguments: dict[str, Any]) -> RangesDesign:
    bins, values, by, keys = (arguments[name] for name in ("bins", "values", "by", "keys"))
    lists = {name: list(one) for name, one in ((column, values), (by, keys)) if one is not None and name}
    axes = read_axes(
        rows,
        [column, by] if by else [column],
        bins=None if bins is None else {column: bins if isinstance(bins, int | str) else list(bins)},
        keys=lists,
        missing=False,
    )
    axis = _ordered(axes[0], values)
    max_cells = cell_limit(MOST_CELLS)
    if axis.size > max_cells:
        raise TacitError(
            "question-too-large",
            f"{column} has {axis.size:,} cells, and at most {max_cells:,} are allowed",
            why="the best sums of more cells take too long to find",
            fix=Set(bins=max_cells),
        )
    if axis.size < 2:
        raise bad_parameter(f"the cells of {column}", "at least two", axis.size, fix=Set(bins=10))
    if arguments["ranges"] is not None:
        _check_given(arguments["ranges"])
    arguments_kept = {
        name: arguments[name] if not isinstance(arguments[name], tuple) else list(arguments[name])
        for name in arguments
    }
    return RangesDesign(rows, asks, (axis, *axes[1:]), arguments_kept)


def _check_given(ranges: list[list[Any]]) -> None:
    """Refuse no ranges, too many of them, and weights that are not positive or too far apart."""
    Listed("pairs of a low and a high end", "None", most=_MAX_RANGES).read("ranges", ranges)
    weights = [read_fraction(weight) for _, _, weight in ranges]
    if min(weights) <= 0 or max(weights) > _MAX_RATIO * min(weights):
        raise bad_parameter(
            "the weights of ranges", f"positive, and at most a factor of {_MAX_RATIO:,} apart",
            f"{float(min(weights)):g} and {float(max(weights)):g}", fix="leave out ranges that matter less",
        )  # fmt: skip


def _ordered(axis: Axis, values: Sequence[object] | None) -> Axis:
    """Put listed values in the order in which they were given; text has no other order."""
    if axis.cuts:
        return axis
    if values is None:
        if kind_of(axis.node) == "text":
            raise TacitError(
                "bad-parameter",
                f"{axis.name} is text, so the order of its values is not known",
                why="a range of values needs an order, and the alphabet is rarely the one that is meant",
                fix=Set(values=list(axis.values)),
            )
        return axis
    return in_order(axis, values)


@dataclass(frozen=True, slots=True, eq=False)
class RangesDesign:
    """Ranges or prefixes of one ordered column."""

    rows: Rows
    asks: str
    axes: tuple[Axis, ...]
    given: dict[str, Any]

    @property
    def workload(self) -> Workload:
        """The ranges of cells that are asked, with their weights."""
        cells, ranges = self.axes[0].size, self.given["ranges"]
        if ranges is None:
            return Workload(cells, "prefixes" if self.asks == "prefixes" else "ranges")
        max_weight = max(read_fraction(weight) for *_, weight in ranges)
        unit = (
            1 if 1 / _HUGE < max_weight < _HUGE else max_weight
        )  # only their ratios count, and floats have an end
        frame = _frame(self.axes[0])
        weighed = [(*frame.cells_of(a, b), float(read_fraction(weight) / unit)) for a, b, weight in ranges]
        return Workload(cells, "given", tuple(weighed))

    def draft(self, goal: Goal) -> Draft[OrderedCounts]:
        """Draft the plan.

        Without a delta the noise is Laplace, on cells or on a tree of sums. With it, Tacit takes Gaussian
        noise on the optimal factorisation where that has the smaller error. ``within`` is the error of every
        range that is asked.
        """
        question = self._counted()
        if goal.within is not None:
            goal = goal_within(
                goal, lambda one: self._widest(self._mechanism(question, one), float(one.confidence))
            )
        noise, axis = self._mechanism(question, goal), self.axes[0]
        by, groups = ("", ("",)) if len(self.axes) == 1 else (self.axes[1].name, self.axes[1].shown)

        def content(noisy: Sequence[Any], confidence: Fraction) -> OrderedCounts:
            counts = tuple(tuple(int(n) for n in line) for line in noisy[0])
            return OrderedCounts(
                axis.name, axis.shown, axis.cuts, by, groups, noise.strategy, counts, noise.law,
                float(confidence), question.left_out(),
            )  # fmt: skip

        label = {"statistic": f"sums of cells of {axis.name}"}
        task = question.task(
            {"asks": self.asks, "ranges": self.given["ranges"]},
            [Step(noise, lambda cells, _: cells, label)],
            lambda rows: _exact(rows, self.axes),
            content,
        )
        return Draft(
            task=task,
            goal=goal,
            forecast=lambda: self._forecast(noise, float(goal.confidence)),
            facts=lambda: [*question.facts, *self._facts(noise)],
            asked=self._words(shape=self.rows._dataset.record == "shape"),
        )

    def request(self, goal: Goal) -> JSON:
        """Return the request of a plan."""
        return {
            "asks": self.asks,
            "rows": rows_document(self.rows),
            "column": self.axes[0].name,
            "given": self.given,
            "goal": goal.to_json(),
        }

    def _counted(self) -> CountedQuestion:
        """Return the rows with their cells; many cells are read as two parts, because SQL has its limits."""
        axis, *by = self.axes
        if len(axis.cuts) <= _LONG:
            return counted_question(self.rows, self.axes)
        half = len(axis.cuts) // 2
        parts = [
            read_axes(self.rows, [axis.name], bins={axis.name: list(cuts)}, missing=False)[0]
            for cuts in (axis.cuts[: half + 2], axis.cuts[half:])
        ]
        return counted_question(self.rows, (*parts, *by))

    def _mechanism(self, question: CountedQuestion, goal: Goal) -> StrategyNoise:
        """Choose the sums and the noise with the smaller mean error on the asked ranges."""
        work = self.workload
        shared: dict[str, Any] = {
            "rows": question.who.total,
            "grouped": len(self.axes) > 1,
            "adjacency": question.who.adjacency,
        }
        mechanisms = []
        if goal.rho is not None:
            mechanisms.append(StrategyNoise(factored(work), rho=goal.rho, **shared))
        elif goal.delta:
            mechanisms.append(StrategyNoise(factored(work), epsilon=goal.epsilon, delta=goal.delta, **shared))
        if goal.epsilon is not None:
            mechanisms.append(StrategyNoise(_best_tree(work), epsilon=goal.epsilon, **shared))
        return min(mechanisms, key=lambda one: one.spread(work))

    def _widest(self, noise: StrategyNoise, confidence: float) -> float:
        """Return the largest half-width of the asked ranges."""
        start, end = _worst(noise.strategy, self.workload)
        return _wide(noise, start, end, confidence)

    def _forecast(self, noise: StrategyNoise, confidence: float) -> list[Forecast]:
        work, law = self.workload, noise.describe()
        cells = Workload(work.cells, "given", tuple((i, i + 1, 1.0) for i in range(work.cells)))
        words = {"prefixes": "each running total, at most", "ranges": "each range, at most"}
        ranges_in_words = words.get(work.kind, "each range that was asked, at most")
        lines = [
            (ranges_in_words, _worst(noise.strategy, work)),
            ("each cell, at most", _worst(noise.strategy, cells)),
        ]
        lines.append(("all rows", (0, work.cells)))
        return [Forecast("n", said, law, _wide(noise, *ends, confidence)) for said, ends in lines]

    def _facts(self, noise: StrategyNoise) -> list[tuple[str, str]]:
        work, axis = self.workload, self.axes[0]
        spread = f"root mean square error of the asked ranges: {noise.spread(work):.4g}"
        lost = noise.strategy.lost
        exact = "" if noise.strategy.levels else f"; whole numbers cost {lost * 100:.2g} % of it"
        ends = f"{axis.size:,}; the first is {axis.labels[0]}, the last {axis.labels[-1]}"
        facts = [("cells", ends), ("error", spread + exact)]
        if axis.cuts:
            facts.append(("ends", "values outside the cuts are counted in the first or in the last cell"))
        if len(self.axes) > 1:
            facts.append(("groups", f"{self.axes[1].size:,} of {self.axes[1].name}, each with its own cells"))
        return facts

    @property
    def words(self) -> str:
        """The question in words."""
        return self._words()

    def _words(self, *, shape: bool = False) -> str:
        axis, ranges = self.axes[0], self.given["ranges"]
        noun = "running totals" if self.asks == "prefixes" else "ranges" if ranges is None else "given ranges"
        by = " by {}" if len(self.axes) > 1 else ""
        template = f"{noun} of {{}} in {'?' if shape else axis.size} cells{by}"
        return counted_in_words(template, [one.name for one in self.axes], self.rows.relation, shape=shape)


def _exact(rows: CodedRows, axes: tuple[Axis, ...]) -> NDArray[np.int64]:
    """Return the counts of the cells: one line for each group.

    Of two parts of the cuts, c_0 to c_(h+1) and c_h to c_n, the places add up to the cell: below c_h the
    second is 0, and from there on the first is h.
    """
    if len(rows.sizes) > len(axes):
        rows = CodedRows(
            (axes[0].size, *rows.sizes[2:]),
            np.concatenate([rows.codes[:, :2].sum(axis=1, keepdims=True), rows.codes[:, 2:]], axis=1),
            rows.counts,
        )
    return rows.table([0])[None] if len(axes) == 1 else rows.table([1, 0])


@lru_cache(maxsize=32)
def _best_tree(work: Workload) -> RangeStrategy:
    """Return the tree of sums, or the cells alone, with the smallest mean error under Laplace noise."""
    return min(trees_for(work.cells), key=lambda tree: tree.column_sum**2 * tree.mean_variance(work))


def _worst(strategy: RangeStrategy, work: Workload) -> tuple[int, int]:
    """Return the asked range with the largest variance: its first cell, and the one after its last."""
    ranges = work.asked()
    products = strategy.sums @ strategy.sums.T
    squares = products.diagonal()
    starts, end = ranges[:, 0], ranges[:, 1]
    at = int((squares[starts] + squares[end] - 2 * products[starts, end]).argmax())
    return int(starts[at]), int(end[at])


def _wide(noise: StrategyNoise, start: int, end: int, confidence: float) -> float:
    weights = noise.strategy.weights(np.array([start]), np.array([end]))
    return float(weighted_half_widths(noise.law, weights, 1 - confidence)[0])


def _frame(axis: Axis) -> OrderedCounts:
    """Return a content without numbers, which knows the places of the axis."""
    from tacit.mechanisms import LinearNoise
    from tacit.strategies import tree_of_cells

    none = tree_of_cells(axis.size, 2, 1)
    return OrderedCounts(axis.name, axis.shown, axis.cuts, "", ("",), none, (), LinearNoise(), 0.5)
