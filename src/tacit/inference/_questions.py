"""Questions about rows whose answers are about the population: regressions, with their designs, and survival.

Up to five columns of a linear regression are measured by the products of their parts, more by sums of
products; where both can be, the one with the smaller predicted noise is taken. A logistic regression is
measured by a noisy table (docs/proofs/regression.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.algebra import (
    Call,
    Column,
    Literal,
    MomentProducts,
    PartProducts,
    RowCounts,
    TableQuestion,
    bounds_of,
    grid_for,
    lit,
    resolve,
    scope,
)  # fmt: skip
from tacit.core import Draft, Forecast, Goal
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational, read_fraction
from tacit.fixes import Choose, Declare, Do, Either, Set
from tacit.inference._linear_regression import LinearFit, MeasuredColumn
from tacit.inference._logistic_regression import LogisticColumn, LogisticFit
from tacit.inference._measured_rows import check_one_row, contribution_of, count_noise, noise_of, task_of
from tacit.inference._regression_table import RegressionTable
from tacit.inference._survival import read_survival, survival_design
from tacit.parameters import Choice, Omitted, refuse_auto
from tacit.tables import read_axes, read_rows, rows_document, rows_question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.algebra import Contribution, Node
    from tacit.core import JSON
    from tacit.exact import Number
    from tacit.inference._survival import SurvivalCurves
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace
    from tacit.tables import Axis, BinsGiven, Rows, RowsQuestion, TableDataset


_MOST_PARTS = 5  # columns whose products of parts are measured
_MOST_COLUMNS = 30
_FINEST, _COARSEST = 9, 4  # bits of a column's grid
_PAIR_BITS, _PAIR_ONE = 10, 2**20  # of sums of products
_MOST_CELLS = 4096


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
        question = TableQuestion(self.rows.relation, (), None, (), None, None)
        statistic, mechanism = _chosen(self.nodes, self.columns, goal, contribution_of(self.rows, question))
        noise = noise_of(mechanism)
        noun = self.rows.unit.noun

        def reading(integers: list[int], level: Fraction) -> RegressionTable:
            fit = LinearFit.measured(self.columns, statistic, integers, noise, float(level))
            return RegressionTable(fit)

        empty = LinearFit.measured(
            self.columns, statistic, [0] * statistic.size, noise, float(goal.confidence)
        )
        return Draft(
            task=task_of(self.rows, question, statistic, mechanism, asks="regress", reading=reading),
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
    measured_columns = [_column(rows, name, bounds, keys) for name in names]
    columns, nodes = tuple(one for one, _ in measured_columns), tuple(node for _, node in measured_columns)
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
    key_lists = {name: list(values) for name, values in (keys or {}).items()}
    arguments = {"outcome": outcome, "on": list(on), "bounds": exact, "keys": key_lists, "kind": "linear"}
    return LinearDesign(rows, columns, nodes, arguments)


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
        refuse_auto("a regression", bounds[name], Do("find-bounds-first", expression=name))
        low, high = (rational(f"a bound of {name}", end, zero=True, negative=True) for end in bounds[name])
        if not low < high:
            raise bad_parameter(
                f"the bounds of {name}", "rising", bounds[name], fix=Set(bounds={name: (0, 100)})
            )
        return MeasuredColumn(name, float(low), float(high)), resolve(Column(name), facts, "number")
    has_keys = name in (keys or {}) or fact.keys is not None or fact.stored == "boolean"
    if has_keys:
        return _two_values(rows, name, keys)
    node = resolve(Column(name), facts, "number") if fact.kind in {None, "number"} else None
    fact_bounds = None if node is None else bounds_of(node, facts)
    if node is None or fact_bounds is None or not fact_bounds[0] < fact_bounds[1]:
        raise TacitError(
            "missing-bounds",
            f"{name} has neither declared bounds nor two declared values",
            why="the noise hides one person only if a value's range is public",
            fix=Either(
                Declare("bounds", (0, 100), column=name),
                Declare("keys", ["A", "B"], column=name),
                Set(keys={name: [False, True]}),
                Do("find-bounds-first", expression=name),
            ),
        )
    return MeasuredColumn(name, float(fact_bounds[0]), float(fact_bounds[1])), node


def _two_values(
    rows: Rows, name: str, keys: Mapping[str, Sequence[object]] | None
) -> tuple[MeasuredColumn, Node]:
    """Read a column with two public values as 0 and 1, or as two numbers."""
    own_keys = None if keys is None or name not in keys else {name: keys[name]}
    [axis] = read_axes(rows, [name], keys=own_keys, missing=False)
    if axis.size != 2:
        raise TacitError(
            "bad-parameter",
            f"{name} has {axis.size} values, and a column of a linear regression is a number or has two",
            fix=Set(on=[f"{name} as yes/no columns made with with_columns"]),
        )
    base, second = axis.values
    number = isinstance(base, float) and isinstance(second, float)
    if number and float(str(base)) > float(str(second)):
        base, second = second, base
    parts: list[Node] = []
    for value, step in ((base, 0.0), (second, 1.0)):
        if isinstance(value, bool):
            indicator: Node = axis.node if value else Call("not", (axis.node,))
        else:
            indicator = Call("eq", (axis.node, lit(value)))
        parts += [indicator, Literal(step, "number")]
    node = resolve(Call("case", (*parts, Literal(None, "number"))), scope(rows.relation), "number")
    if number:
        return MeasuredColumn(name, float(str(base)), float(str(second)), two=True), node
    key = "" if isinstance(base, bool) else str(second)
    return MeasuredColumn(name, 0.0, 1.0, two=True, key=key, against="" if not key else str(base)), node


def _chosen(
    nodes: tuple[Node, ...], columns: tuple[MeasuredColumn, ...], goal: Goal, contribution: Contribution
) -> tuple[PartProducts | MomentProducts, DiscreteLaplace | DiscreteGaussian]:
    """Choose what is measured by the predicted noise of the products with the outcome, in rows."""
    candidates = [_noisy(MomentProducts(nodes, _grids(columns, _PAIR_BITS), _PAIR_ONE), goal, contribution)]
    threes = sum(not one.two for one in columns)
    if len(columns) <= _MOST_PARTS:
        for bits in range(min(_FINEST, 51 // max(1, 2 * threes)), _COARSEST - 1, -1):
            if product_noise := _noisy(PartProducts(nodes, _grids(columns, bits)), goal, contribution):
                candidates.append(product_noise)
                break
    priced = [
        (_predicted(columns, statistic, mechanism), place, (statistic, mechanism))
        for place, (statistic, mechanism) in enumerate(one for one in candidates if one is not None)
    ]
    if not priced:
        raise bad_parameter(
            "epsilon", "larger for so many columns", goal.epsilon or goal.rho, fix=Set(epsilon=0.1)
        )
    return min(priced)[2]


def _noisy(statistic: Any, goal: Goal, contribution: Contribution) -> Any:
    """Return a statistic with its noise; None where integers of 64 bits cannot hold it."""
    l1, l2_squared = statistic.sensitivity(contribution)
    try:
        return statistic, goal.noise(l1=l1, l2_squared=l2_squared, adjacency=contribution.adjacency)
    except TacitError:
        if isinstance(statistic, MomentProducts):
            raise
        return None


def _grids(columns: tuple[MeasuredColumn, ...], bits: int) -> tuple[Any, ...]:
    """Return the grid of each column; a column with two values has one step."""
    unit_interval = (Fraction(0), Fraction(1))
    return tuple(
        grid_for(unit_interval, 0) if c.two else grid_for((Fraction(c.low), Fraction(c.high)), bits)
        for c in columns
    )


def _predicted(
    columns: tuple[MeasuredColumn, ...], statistic: Any, mechanism: DiscreteLaplace | DiscreteGaussian
) -> float:
    """Return the mean noise variance of a column's product with the outcome, in squared rows."""
    fit = LinearFit.measured(columns, statistic, [0] * statistic.size, noise_of(mechanism), 0.95)
    return float(2 * fit.noise.scale**2 * np.mean((fit.combinations[1:-1, -1] ** 2).sum(axis=-1)))


@dataclass(frozen=True, slots=True)
class LogisticDesign:
    """A logistic regression of a yes/no column on others.

    Parameters
    ----------
    rows
        The rows that are read, one for each unit.
    axes
        The columns that explain and, last, the outcome, each with its places.
    columns
        The columns that explain as variables.
    given
        What was asked, for the plan's document.
    """

    rows: Rows
    axes: tuple[Axis, ...]
    columns: tuple[LogisticColumn, ...]
    given: Mapping[str, Any]

    @property
    def words(self) -> str:
        """The question in words."""
        *on, outcome = (axis.name for axis in self.axes)
        return f"a logistic regression of {outcome} on {', '.join(on)}"

    def draft(self, goal: Goal) -> Draft[RegressionTable]:
        """Draft the plan.

        Guarantee: each unit is in one cell of one table, and one charge pays for all coefficients together.
        """
        by = tuple((axis.name, axis.node) for axis in self.axes)
        keys = tuple(product(*(axis.values for axis in self.axes)))
        question = TableQuestion(self.rows.relation, by, keys, (), None, None)
        mechanism = count_noise(self.rows, question, goal)
        noise, outcome, event = noise_of(mechanism), self.axes[-1].name, _event(self.axes[-1])

        def reading(integers: list[int], level: Fraction) -> RegressionTable:
            return RegressionTable(LogisticFit(event, self.columns, tuple(integers), noise, float(level)))

        empty = LogisticFit(outcome, self.columns, (0,) * len(keys), noise, float(goal.confidence))
        return Draft(
            task=task_of(self.rows, question, RowCounts(), mechanism, asks="regress", reading=reading),
            forecast=lambda: [
                Forecast(
                    label, f"log-odds of {outcome} for a step of {label}", mechanism.describe(), None,
                    f"an interval needs about {empty.rows_needed:,} rows",
                )
                for label in empty.labels
            ],
            facts=lambda: [
                ("measured", f"{len(keys):,} counts: a table of {', '.join(a.name for a in self.axes)}"),
                ("intervals", "for privacy noise and for chance in who was included"),
            ],
            asked=self.words,
        )  # fmt: skip

    def request(self, goal: Goal) -> JSON:
        """Return the request of a plan."""
        return {"asks": "regress", "rows": rows_document(self.rows), "goal": goal.to_json(), **self.given}


def logistic_design(
    rows: Rows,
    outcome: str,
    on: Sequence[str],
    bins: BinsGiven,
    keys: Mapping[str, Sequence[object]] | None,
) -> LogisticDesign:
    """Read the columns of a logistic regression: public values, or numbers with public cuts."""
    check_one_row(rows, "a regression")
    _check_outcome(rows, outcome, [*(bins or {}), *(keys or {})])
    axes = read_axes(rows, [*on, outcome], bins=bins, keys=keys, missing=False)
    if axes[-1].size != 2 or axes[-1].cuts:
        raise TacitError(
            "bad-parameter",
            f"the outcome of a logistic regression has two values, and {outcome} has {axes[-1].size}",
            fix=Set(kind="linear"),
        )
    cells = prod(axis.size for axis in axes)
    if cells > _MOST_CELLS:
        raise bad_parameter(
            "the table", f"of at most {_MOST_CELLS:,} cells", f"{cells:,}", fix="use fewer columns or bins"
        )
    if constant_columns := [axis.name for axis in axes[:-1] if axis.size < 2]:
        raise bad_parameter("on", "columns with at least two values", constant_columns, fix=Choose(tuple(on)))
    arguments = {
        "outcome": outcome, "on": list(on), "kind": "logistic",
        "bins": {name: cuts if isinstance(cuts, int) else list(cuts) for name, cuts in (bins or {}).items()},
        "keys": {name: list(values) for name, values in (keys or {}).items()},
    }  # fmt: skip
    return LogisticDesign(rows, axes, tuple(map(_variables, axes[:-1])), arguments)


def _check_outcome(rows: Rows, outcome: str, names: Sequence[str]) -> None:
    """Refuse an outcome whose two values are not public; the fix offers those that its kind can have."""
    facts = scope(rows.relation)
    resolve(Column(outcome), facts)  # refuses a column that does not exist
    fact = facts[outcome]
    if outcome in names or fact.keys is not None or "boolean" in {fact.kind, fact.stored}:
        return
    numbers = fact.kind == "number" or fact.bounds is not None or fact.stored == "number"
    yes_or_no: tuple[Set, ...] = (Set(keys={outcome: [0, 1]}),)
    if not numbers:
        yes_or_no = (Set(keys={outcome: [False, True]}), *yes_or_no)
    raise TacitError(
        "keys-missing",
        f"the two values of the outcome {outcome} are not public",
        why="which values occur is private",
        fix=Declare("keys", ["no", "yes"], column=outcome)
        if fact.kind == "text"
        else Either(*yes_or_no, Declare("keys", ["no", "yes"], column=outcome)),
    )


def _event(outcome: Axis) -> str:
    """Name what the odds are of: the second value of the outcome, unless it is plainly yes."""
    truths = set(outcome.values) <= {False, True}  # 0 and 1 too
    return outcome.name if truths else f"{outcome.name} = {outcome.labels[1]}"


def _variables(axis: Axis) -> LogisticColumn:
    """Return a column as variables: a number is the middle of its cell; text has one for each value."""
    name = axis.name
    numbers = [v for v in axis.values if isinstance(v, float) and not isinstance(v, bool)]
    if axis.cuts and not isinstance(axis.cuts[0], str):
        middles = [(float(a) + float(b)) / 2 for a, b in pairwise(axis.cuts)]
        return LogisticColumn(name, (name,), tuple((m,) for m in middles), (f"for each unit of {name}",))
    if not axis.cuts and len(numbers) == axis.size:
        return LogisticColumn(name, (name,), tuple((v,) for v in numbers), (f"for each unit of {name}",))
    if set(axis.values) == {False, True}:
        places = tuple((float(bool(v)),) for v in axis.values)
        return LogisticColumn(name, (name,), places, (f"where {name} is true",))
    base, *others = axis.labels
    each = [tuple(float(label == other) for other in others) for label in axis.labels]
    meaning = tuple(f"where {name} is {other} as where it is {base}" for other in others)
    return LogisticColumn(name, tuple(f"{name} {other}" for other in others), tuple(each), meaning)


def regress_design(
    rows: Rows,
    outcome: str,
    *,
    on: Sequence[str],
    kind: str = "linear",
    bounds: Mapping[str, tuple[Number, Number]] | None = None,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
) -> LinearDesign | LogisticDesign:
    """Read a question for a regression; see `regress`."""
    names: object = on
    if isinstance(names, str) or not on or len({*on, outcome}) != len(on) + 1:
        raise bad_parameter("on", "different columns, without the outcome", on, fix=Set(on=["age", "sex"]))
    if Choice(("linear", "logistic")).read("kind", kind) == "logistic":
        fix = Set(bins={on[0]: 5})
        Omitted("for a logistic regression, which uses bins", fix=fix).read("bounds", bounds or None)
        return logistic_design(rows, outcome, list(on), bins, keys)
    refuse_auto("a regression", bounds, Do("find-bounds-first", expression=on[0]))
    fix = Set(bounds={on[0]: (0, 100)})
    Omitted("for a linear regression, which uses bounds", fix=fix).read("bins", bins or None)
    return linear_design(rows, outcome, list(on), dict(bounds or {}), keys)


def read_regress(dataset: TableDataset, request: Any) -> tuple[LinearDesign | LogisticDesign, Goal]:
    """Read a regression back from a request."""
    if request["kind"] == "logistic":
        options: dict[str, Any] = {"bins": request["bins"]}
    else:
        pairs = request["bounds"].items()
        options = {"bounds": {name: (read_fraction(low), read_fraction(high)) for name, (low, high) in pairs}}
    design = regress_design(
        read_rows(dataset, request["rows"]),
        request["outcome"],
        on=request["on"],
        kind=request["kind"],
        keys=request["keys"] or None,
        **options,
    )
    return design, Goal.from_json(request["goal"])


REGRESS = rows_question(
    name="regress", words="A regression of a column on others", design=regress_design, read=read_regress
)
SURVIVAL = rows_question(name="survival", words="Survival curves", design=survival_design, read=read_survival)


def regress(
    rows: Rows,
    outcome: str,
    *,
    on: Sequence[str],
    kind: str = "linear",
    bounds: Mapping[str, tuple[Number, Number]] | None = None,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
) -> RowsQuestion[RegressionTable]:
    """Ask for a regression.

    Guarantee: nothing is charged; `plan` of the question gives the cost.

    Parameters
    ----------
    rows
        The rows, one for each unit.
    outcome
        The column that is explained: a number with public bounds, or for a logistic regression a column with
        two values.
    on
        The columns that explain it. Of a linear regression numbers with public bounds, or columns with two
        public values; of a logistic one columns with public values, or numbers with public cuts.
    kind
        ``"linear"`` or ``"logistic"``.
    bounds
        Public bounds of numbers by column; by default those declared with the dataset. Values beyond are
        clipped.
    bins
        Of a logistic regression: how many equally wide cells a number has, or its cuts. The regression takes
        the middle of the cell for the number.
    keys
        Public values by column; by default those declared with the dataset.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import tacit as tc
    >>> table = pa.table({"id": [1, 2, 3], "age": [30.0, 50.0, 70.0], "sbp": [110.0, 120.0, 140.0]})
    >>> people = tc.protect(
    ...     table, unit="id", limits={"rows": 1}, bounds={"age": (18, 80), "sbp": (80, 220)},
    ...     budget=tc.Budget(epsilon=1),
    ... )
    >>> people.regress("sbp", on=["age"]).plan(epsilon=1).cost.epsilon(delta=0)
    1.0
    """
    return REGRESS.of(rows, outcome, on=on, kind=kind, bounds=bounds, bins=bins, keys=keys)


def survival(
    rows: Rows,
    *,
    time: str,
    event: str,
    bins: Sequence[Number],
    by: str | None = None,
    keys: Sequence[object] | None = None,
) -> RowsQuestion[SurvivalCurves]:
    """Ask for survival curves on public time bins.

    Guarantee: nothing is charged; `plan` of the question gives the cost.

    Parameters
    ----------
    rows
        The rows, one for each unit.
    time
        The column of the time that a unit was followed.
    event
        A yes/no column (true or false, or 1 and 0): whether the time ended with the event.
    bins
        Rising public cuts of the time, the first of them the start. A bin holds times from its cut to below
        the next. A time at or after the last cut is followed to the end, whatever happened then.
    by
        A column of groups, or None for one curve.
    keys
        The public groups; by default those declared with the dataset.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import tacit as tc
    >>> table = pa.table({"id": [1, 2, 3], "week": [3.0, 20.0, 52.0], "arrest": [True, True, False]})
    >>> people = tc.protect(table, unit="id", limits={"rows": 1}, budget=tc.Budget(epsilon=1))
    >>> plan = people.survival(time="week", event="arrest", bins=[0, 13, 26, 39, 52]).plan(epsilon=1)
    >>> plan.cost.epsilon(delta=0)
    1.0
    """
    return SURVIVAL.of(rows, time=time, event=event, bins=bins, by=by, keys=keys)
