"""The design of a logistic regression: the cells of its table, and the draft of its plan."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, Any

from tacit.algebra import Column, RowCounts, TableQuestion, resolve, scope
from tacit.core import Draft, Forecast
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Declare, Either, Set
from tacit.inference._logistic import LogisticColumn, LogisticFit
from tacit.inference._measured_rows import check_one_row, count_noise, noise_of, task_of
from tacit.inference._regression_table import RegressionTable
from tacit.tables import read_axes, rows_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON, Goal
    from tacit.tables import Axis, BinsGiven, Rows

_MOST_CELLS = 4096


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
        asked = TableQuestion(self.rows.relation, by, keys, (), None, None)
        mechanism = count_noise(self.rows, asked, goal)
        noise, outcome, event = noise_of(mechanism), self.axes[-1].name, _event(self.axes[-1])

        def reading(integers: list[int], level: Fraction) -> RegressionTable:
            return RegressionTable(LogisticFit(event, self.columns, tuple(integers), noise, float(level)))

        empty = LogisticFit(outcome, self.columns, (0,) * len(keys), noise, float(goal.confidence))
        return Draft(
            task=task_of(self.rows, asked, RowCounts(), mechanism, asks="regress", reading=reading),
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
    if alone := [axis.name for axis in axes[:-1] if axis.size < 2]:
        raise bad_parameter("on", "columns with at least two values", alone, fix=Choose(tuple(on)))
    given = {
        "outcome": outcome, "on": list(on), "kind": "logistic",
        "bins": {name: cuts if isinstance(cuts, int) else list(cuts) for name, cuts in (bins or {}).items()},
        "keys": {name: list(values) for name, values in (keys or {}).items()},
    }  # fmt: skip
    return LogisticDesign(rows, axes, tuple(map(_variables, axes[:-1])), given)


def _check_outcome(rows: Rows, outcome: str, given: Sequence[str]) -> None:
    """Refuse an outcome whose two values are not public; the fix offers those that its kind can have."""
    facts = scope(rows.relation)
    resolve(Column(outcome), facts)  # refuses a column that does not exist
    fact = facts[outcome]
    if outcome in given or fact.keys is not None or "boolean" in {fact.kind, fact.stored}:
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
    first, *others = axis.labels
    each = [tuple(float(label == other) for other in others) for label in axis.labels]
    meaning = tuple(f"where {name} is {other} as where it is {first}" for other in others)
    return LogisticColumn(name, tuple(f"{name} {other}" for other in others), tuple(each), meaning)
