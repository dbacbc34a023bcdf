"""The design of a linear regression: its columns, what is measured of them, and the draft of its plan.

Up to five columns are measured by the products of their parts, more by sums of products; where both can be,
the one with the smaller predicted noise is taken (docs/proofs/regression.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.algebra import (
    Call,
    Column,
    Literal,
    MomentProducts,
    PartProducts,
    TableQuestion,
    bounds_of,
    grid_for,
    lit,
    resolve,
    scope,
)  # fmt: skip
from tacit.core import Draft, Forecast
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Choose, Declare, Either, Set
from tacit.inference._linear_fit import LinearFit, MeasuredColumn
from tacit.inference._measured_rows import check_one_row, contribution_of, noise_of, task_of
from tacit.inference._regression_table import RegressionTable
from tacit.tables import read_axes, rows_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.algebra import Contribution, Node
    from tacit.core import JSON, Goal
    from tacit.exact import Number
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace
    from tacit.tables import Rows

_MOST_PARTS = 5  # columns whose products of parts are measured
_MOST_COLUMNS = 30
_FINEST, _COARSEST = 9, 4  # bits of a column's grid
_PAIR_BITS, _PAIR_ONE = 10, 2**20  # of sums of products


@dataclass(frozen=True, slots=True)
class LinearDesign:
    """A linear regression of one column on others.

    Parameters
    ----------
    rows
        The rows that are read, one for each unit.
    columns
        The columns that explain and, last, the outcome.
    nodes
        Their expressions.
    given
        What was asked, for the plan's document.
    """

    rows: Rows
    columns: tuple[MeasuredColumn, ...]
    nodes: tuple[Node, ...]
    given: Mapping[str, Any]

    @property
    def words(self) -> str:
        """The question in words."""
        *on, outcome = (one.name for one in self.columns)
        return f"a linear regression of {outcome} on {', '.join(on)}"

    def draft(self, goal: Goal) -> Draft[RegressionTable]:
        """Draft the plan.

        Guarantee: one charge pays for the number of rows and all coefficients together. The cost and the
        noise follow from public facts.
        """
        asked = TableQuestion(self.rows.relation, (), None, (), None, None)
        statistic, mechanism = _chosen(self.nodes, self.columns, goal, contribution_of(self.rows, asked))
        noise = noise_of(mechanism)
        noun = self.rows.unit.noun

        def reading(integers: list[int], level: Fraction) -> RegressionTable:
            fit = LinearFit.measured(self.columns, statistic, integers, noise, float(level))
            return RegressionTable(fit)

        empty = LinearFit.measured(
            self.columns, statistic, [0] * statistic.size, noise, float(goal.confidence)
        )
        return Draft(
            task=task_of(self.rows, asked, statistic, mechanism, asks="regress", reading=reading),
            forecast=lambda: [
                Forecast(
                    one.label,
                    f"change of {self.columns[-1].name} for each unit of {one.label}",
                    mechanism.describe(statistic.step),
                    None,
                    f"an interval needs about {empty.rows_needed:,} rows",
                )
                for one in self.columns[:-1]
            ],
            facts=lambda: [
                ("measured", f"{statistic.size:,} integers, {statistic.word}; noise hides one {noun} in all"),
                ("columns", "; ".join(one.words for one in self.columns)),
                ("intervals", "for privacy noise and for chance in who was included"),
            ],
            asked=self.words,
        )

    def request(self, goal: Goal) -> JSON:
        """Return the request of a plan."""
        return {"asks": "regress", "rows": rows_document(self.rows), "goal": goal.to_json(), **self.given}


def linear_design(
    rows: Rows,
    outcome: str,
    on: Sequence[str],
    bounds: Mapping[str, tuple[Number, Number]],
    keys: Mapping[str, Sequence[object]] | None,
) -> LinearDesign:
    """Read the columns of a linear regression, or refuse those that are not public enough."""
    check_one_row(rows, "a regression")
    names = [*on, outcome]
    if len(names) > _MOST_COLUMNS:
        raise bad_parameter("on", f"at most {_MOST_COLUMNS - 1} columns", len(on), fix="leave some out")
    read = [_column(rows, name, bounds, keys) for name in names]
    columns, nodes = tuple(one for one, _ in read), tuple(node for _, node in read)
    if columns[-1].key:
        raise TacitError(
            "bad-parameter",
            f"the outcome of a linear regression is a number, and {outcome} is text",
            fix=Either(Set(kind="logistic"), Choose(tuple(on), given=outcome)),
        )
    exact = {
        name: [str(rational("bounds", end, zero=True, negative=True)) for end in ends]
        for name, ends in bounds.items()
    }
    listed = {name: list(values) for name, values in (keys or {}).items()}
    given = {"outcome": outcome, "on": list(on), "bounds": exact, "keys": listed, "kind": "linear"}
    return LinearDesign(rows, columns, nodes, given)


def _column(
    rows: Rows,
    name: str,
    bounds: Mapping[str, tuple[Number, Number]],
    keys: Mapping[str, Sequence[object]] | None,
) -> tuple[MeasuredColumn, Node]:
    """Read one column: a number in public bounds, or one with two public values."""
    facts = scope(rows.relation)
    resolve(Column(name), facts)
    fact = facts[name]
    if name in bounds:
        low, high = (rational(f"a bound of {name}", end, zero=True, negative=True) for end in bounds[name])
        if not low < high:
            raise bad_parameter(
                f"the bounds of {name}", "rising", bounds[name], fix=Set(bounds={name: (0, 100)})
            )
        return MeasuredColumn(name, float(low), float(high)), resolve(Column(name), facts, "number")
    listed = name in (keys or {}) or fact.keys is not None or fact.stored == "boolean"
    if listed:
        return _two_values(rows, name, keys)
    node = resolve(Column(name), facts, "number") if fact.kind in {None, "number"} else None
    found = None if node is None else bounds_of(node, facts)
    if node is None or found is None or not found[0] < found[1]:
        raise TacitError(
            "missing-bounds",
            f"{name} has neither declared bounds nor two declared values",
            why="the noise hides one person only if a value's range is public",
            fix=Either(
                Declare("bounds", (0, 100), column=name),
                Declare("keys", ["A", "B"], column=name),
                Set(keys={name: [False, True]}),
            ),
        )
    return MeasuredColumn(name, float(found[0]), float(found[1])), node


def _two_values(
    rows: Rows, name: str, keys: Mapping[str, Sequence[object]] | None
) -> tuple[MeasuredColumn, Node]:
    """Read a column with two public values as 0 and 1, or as two numbers."""
    own = None if keys is None or name not in keys else {name: keys[name]}
    [axis] = read_axes(rows, [name], keys=own, missing=False)
    if axis.size != 2:
        raise TacitError(
            "bad-parameter",
            f"{name} has {axis.size} values, and a column of a linear regression is a number or has two",
            fix=Set(on=[f"{name} as yes/no columns made with with_columns"]),
        )
    first, second = axis.values
    number = isinstance(first, float) and isinstance(second, float)
    if number and float(str(first)) > float(str(second)):
        first, second = second, first
    parts: list[Node] = []
    for value, step in ((first, 0.0), (second, 1.0)):
        if isinstance(value, bool):
            held: Node = axis.node if value else Call("not", (axis.node,))
        else:
            held = Call("eq", (axis.node, lit(value)))
        parts += [held, Literal(step, "number")]
    node = resolve(Call("case", (*parts, Literal(None, "number"))), scope(rows.relation), "number")
    if number:
        return MeasuredColumn(name, float(str(first)), float(str(second)), two=True), node
    key = "" if isinstance(first, bool) else str(second)
    return MeasuredColumn(name, 0.0, 1.0, two=True, key=key, against="" if not key else str(first)), node


def _chosen(
    nodes: tuple[Node, ...], columns: tuple[MeasuredColumn, ...], goal: Goal, who: Contribution
) -> tuple[PartProducts | MomentProducts, DiscreteLaplace | DiscreteGaussian]:
    """Choose what is measured by the predicted noise of the products with the outcome, in rows."""
    found = [_noisy(MomentProducts(nodes, _grids(columns, _PAIR_BITS), _PAIR_ONE), goal, who)]
    threes = sum(not one.two for one in columns)
    if len(columns) <= _MOST_PARTS:
        for bits in range(min(_FINEST, 51 // max(1, 2 * threes)), _COARSEST - 1, -1):
            if made := _noisy(PartProducts(nodes, _grids(columns, bits)), goal, who):
                found.append(made)
                break
    priced = [
        (_predicted(columns, statistic, mechanism), place, (statistic, mechanism))
        for place, (statistic, mechanism) in enumerate(one for one in found if one is not None)
    ]
    if not priced:
        raise bad_parameter(
            "epsilon", "larger for so many columns", goal.epsilon or goal.rho, fix=Set(epsilon=0.1)
        )
    return min(priced)[2]


def _noisy(statistic: Any, goal: Goal, who: Contribution) -> Any:
    """Return a statistic with its noise; None where integers of 64 bits cannot hold it."""
    l1, l2_squared = statistic.sensitivity(who)
    try:
        return statistic, goal.noise(l1=l1, l2_squared=l2_squared, adjacency=who.adjacency)
    except TacitError:
        if isinstance(statistic, MomentProducts):
            raise
        return None


def _grids(columns: tuple[MeasuredColumn, ...], bits: int) -> tuple[Any, ...]:
    """Return the grid of each column; a column with two values has one step."""
    one = (Fraction(0), Fraction(1))
    return tuple(
        grid_for(one, 0) if c.two else grid_for((Fraction(c.low), Fraction(c.high)), bits) for c in columns
    )


def _predicted(
    columns: tuple[MeasuredColumn, ...], statistic: Any, mechanism: DiscreteLaplace | DiscreteGaussian
) -> float:
    """Return the mean noise variance of a column's product with the outcome, in squared rows."""
    fit = LinearFit.measured(columns, statistic, [0] * statistic.size, noise_of(mechanism), 0.95)
    return float(2 * fit.noise.scale**2 * np.mean((fit.combinations[1:-1, -1] ** 2).sum(axis=-1)))
