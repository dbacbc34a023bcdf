"""The question of survival curves: the cells of the time, the event and the groups, and the plan."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tacit.algebra import Call, Column, Literal, RowCounts, TableQuestion, lit, resolve, scope
from tacit.core import Forecast, Plan, Goal
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Code, Set
from tacit.inference._measured_rows import check_one_row, contribution_of, noise_of, task_of
from tacit.inference._survival_curves import SurvivalCurves
from tacit.tables import read_axes, read_rows, rows_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.algebra import Node, Relation
    from tacit.exact import Number
    from tacit.tables import Axis, Rows, TableDataset

__all__ = ["SurvivalQuestion", "rebuild_survival", "survival"]

_MOST_BINS = 200


@dataclass(frozen=True, slots=True)
class SurvivalQuestion:
    """Survival curves, before they are planned.

    Parameters
    ----------
    rows
        The rows that are read, one for each unit.
    time, event
        The columns of the time and of the event.
    cuts
        The public cuts of the time.
    cell
        The expression of a row's cell.
    group
        The groups, or None.
    given
        What was asked, for the plan's document.
    """

    rows: Rows
    time: str
    event: str
    cuts: tuple[float, ...]
    cell: Node
    group: Axis | None
    given: Mapping[str, Any]

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
    ) -> Plan[SurvivalCurves]:
        """Plan the curves; nothing is charged.

        Guarantee: each unit is in one cell, so one charge pays for all curves, medians and tests together.

        Parameters
        ----------
        epsilon, delta, rho
            The total cost: epsilon, epsilon and delta, or rho.
        confidence
            How often intervals cover, at each time by itself.
        """
        goal = Goal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        cells = [float(i) for i in range(2 * len(self.cuts) - 1)]
        group = self.group
        by = (("cell", self.cell),) if group is None else ((group.name, group.node), ("cell", self.cell))
        heads: list[tuple[object, ...]] = [()] if group is None else [(value,) for value in group.values]
        keys = tuple((*head, cell) for head in heads for cell in cells)
        asked = TableQuestion(self.rows.relation, by, keys, (), None, None)
        dataset = self.rows._dataset  # noqa: SLF001 - a question of its rows
        statistic = RowCounts()
        who = contribution_of(dataset, asked)
        l1, squared = statistic.sensitivity(who)
        mechanism = goal.noise(l1=l1, l2_squared=squared, adjacency=who.adjacency)
        noise = noise_of(mechanism)
        groups, name = (("all",), "") if group is None else (group.labels, group.name)

        def reading(integers: list[int], level: Fraction) -> SurvivalCurves:
            return SurvivalCurves(
                self.time, self.event, name, groups, self.cuts, tuple(integers), noise, float(level)
            )

        needed = reading([0] * len(keys), goal.confidence).rows_needed
        task = task_of(self.rows, asked, statistic, mechanism, asks="survival", reading=reading)
        return Plan.of(
            dataset,
            task,
            promised=goal.promised,
            forecast=lambda: [
                Forecast(
                    one, f"share without {self.event} by {self.time}", mechanism.describe(), None,
                    f"a curve needs about {needed:,} rows in its group",
                )
                for one in groups
            ],
            facts=lambda: [
                ("measured", f"{len(keys):,} counts: event or not in each bin, and who stays to the end"),
                ("intervals", "for privacy noise and for chance in who was included"),
            ],
            confidence=float(goal.confidence),
            asked=f"survival curves of {self.time} until {self.event}" + (f" by {name}" if name else ""),
            request=lambda: {
                "asks": "survival", "rows": rows_document(self.rows), "goal": goal.to_json(), **self.given,
            },
        )  # fmt: skip


def survival(
    rows: Rows,
    *,
    time: str,
    event: str,
    bins: Sequence[Number],
    by: str | None = None,
    keys: Sequence[object] | None = None,
) -> SurvivalQuestion:
    """Ask for survival curves on public time bins.

    Guarantee: nothing is charged; `SurvivalQuestion.plan` gives the cost.

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
    check_one_row(rows, "a survival curve")
    cuts = [float(rational("a cut", cut, zero=True, negative=True)) for cut in bins]
    if len(cuts) < 2 or any(b <= a for a, b in pairwise(cuts)) or len(cuts) > _MOST_BINS + 1:
        raise bad_parameter(
            "bins", f"2 to {_MOST_BINS + 1} rising cuts of the time", bins, fix=Set(bins=[0, 13, 26, 39, 52])
        )
    if keys is not None and by is None:
        raise bad_parameter("keys", "given together with by", keys, fix=Set(by="arm"))
    group = None
    if by is not None:
        own = None if keys is None else {by: keys}
        [group] = read_axes(rows, [by], keys=own, missing=False)
    given = {
        "time": time, "event": event, "bins": cuts, "by": by, "keys": None if keys is None else list(keys),
    }  # fmt: skip
    cell = _cell(rows.relation, time, event, tuple(cuts))
    return SurvivalQuestion(rows, time, event, tuple(cuts), cell, group, given)


def _cell(relation: Relation, time: str, event: str, cuts: tuple[float, ...]) -> Node:
    """Write the number of a row's cell: in bin j 2j for an event, 2j + 1 for censored; then the rest."""
    facts = scope(relation)
    value = resolve(Column(time), facts, "number")
    resolve(Column(event), facts)  # refuses a column that does not exist
    if facts[event].kind == "text":
        raise TacitError(
            "bad-parameter",
            f"{event} is text; an event is true or false, or 1 or 0",
            fix=Code(f"rows.with_columns(happened=\"{event} = 'yes'\")"),
        )
    number = facts[event].kind == "number" and facts[event].stored != "boolean"
    happened = resolve(Column(event), facts, "number" if number else "boolean")
    if number:
        happened = Call("eq", (happened, lit(1)))
    parts: list[Node] = []
    for j, cut in enumerate(cuts[1:]):
        inside = Call("lt", (value, Literal(cut, "number")))
        yes = Call("case", (happened, Literal(2.0 * j, "number"), Literal(2.0 * j + 1, "number")))
        parts += [inside, yes]
    inner = Call("case", (*parts, Literal(2.0 * len(cuts) - 2, "number")))
    known = Call("and", tuple(Call("not", (Call("is_null", (one,)),)) for one in (value, happened)))
    return resolve(Call("case", (known, inner, Literal(None, "number"))), facts, "number")


def rebuild_survival(dataset: TableDataset, request: Any) -> Plan[SurvivalCurves]:
    """Rebuild a plan from its document."""
    rows = read_rows(dataset, request["rows"])
    names = ("time", "event", "bins", "by", "keys")
    goal = Goal.from_json(request["goal"])
    return survival(rows, **{name: request[name] for name in names}).plan(
        epsilon=goal.epsilon, delta=goal.delta, rho=goal.rho, confidence=goal.confidence
    )
