"""The design of survival curves: the cells of the time, the event and the groups, and the draft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.algebra import Call, Column, Literal, RowCounts, TableQuestion, lit, resolve, scope
from tacit.core import Draft, Forecast, Goal
from tacit.errors import TacitError
from tacit.fixes import Code, Set
from tacit.inference._measured_rows import check_one_row, count_noise, noise_of, task_of
from tacit.inference._survival import SurvivalCurves
from tacit.parameters import Listed, Omitted, RealNumber
from tacit.tables import read_axes, read_rows, rows_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from tacit.algebra import Node, Relation
    from tacit.core import JSON
    from tacit.exact import Number
    from tacit.tables import Axis, Rows, TableDataset

_MOST_BINS = 200
_CUTS = Listed(
    "cuts of the time", "[0, 13, 26, 39, 52]", least=2, most=_MOST_BINS + 1, rising=True,
    each=RealNumber(zero=True, negative=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SurvivalDesign:
    """Survival curves of rows.

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

    @property
    def words(self) -> str:
        """The question in words."""
        by = "" if self.group is None else f" by {self.group.name}"
        return f"survival curves of {self.time} until {self.event}{by}"

    def draft(self, goal: Goal) -> Draft[SurvivalCurves]:
        """Draft the plan.

        Guarantee: each unit is in one cell, so one charge pays for all curves, medians and tests together.
        """
        cells = [float(i) for i in range(2 * len(self.cuts) - 1)]
        group = self.group
        by = (("cell", self.cell),) if group is None else ((group.name, group.node), ("cell", self.cell))
        heads: list[tuple[object, ...]] = [()] if group is None else [(value,) for value in group.values]
        keys = tuple((*head, cell) for head in heads for cell in cells)
        question = TableQuestion(self.rows.relation, by, keys, (), None, None)
        mechanism = count_noise(self.rows, question, goal)
        noise = noise_of(mechanism)
        groups, name = (("all",), "") if group is None else (group.labels, group.name)

        def reading(integers: list[int], level: Fraction) -> SurvivalCurves:
            return SurvivalCurves(
                self.time, self.event, name, groups, self.cuts, tuple(integers), noise, float(level)
            )

        needed = reading([0] * len(keys), goal.confidence).rows_needed
        return Draft(
            task=task_of(self.rows, question, RowCounts(), mechanism, asks="survival", reading=reading),
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
            asked=self.words,
        )  # fmt: skip

    def request(self, goal: Goal) -> JSON:
        """Return the request of a plan."""
        return {"asks": "survival", "rows": rows_document(self.rows), "goal": goal.to_json(), **self.given}


def survival_design(
    rows: Rows,
    *,
    time: str,
    event: str,
    bins: Sequence[Number],
    by: str | None = None,
    keys: Sequence[object] | None = None,
) -> SurvivalDesign:
    """Read a question for survival curves; see `survival`."""
    check_one_row(rows, "a survival curve")
    cuts = [float(cut) for cut in _CUTS.read("bins", bins)]
    if by is None:
        Omitted("where by is omitted", fix=Set(by="arm")).read("keys", keys)
    group = None
    if by is not None:
        own_keys = None if keys is None else {by: keys}
        [group] = read_axes(rows, [by], keys=own_keys, missing=False)
    arguments = {
        "time": time, "event": event, "bins": cuts, "by": by, "keys": None if keys is None else list(keys),
    }  # fmt: skip
    cell = _cell(rows.relation, time, event, tuple(cuts))
    return SurvivalDesign(rows, time, event, tuple(cuts), cell, group, arguments)


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
    present = Call("and", tuple(Call("not", (Call("is_null", (one,)),)) for one in (value, happened)))
    return resolve(Call("case", (present, inner, Literal(None, "number"))), facts, "number")


def read_survival(dataset: TableDataset, request: Any) -> tuple[SurvivalDesign, Goal]:
    """Read survival curves back from a request."""
    arguments = {name: request[name] for name in ("time", "event", "bins", "by", "keys")}
    design = survival_design(read_rows(dataset, request["rows"]), **arguments)
    return design, Goal.from_json(request["goal"])
