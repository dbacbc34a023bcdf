"""One measure of every day, asked by its name: what services and commands offer of a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.fixes import Choose, Say
from tacit.parameters import Needed, Omitted
from tacit.streams._planning import draft_daily
from tacit.tables import count, count_units, mean
from tacit.tables import sum as sum_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.core import Draft, Goal
    from tacit.streams._choice import Focus
    from tacit.streams._day_question import DayQuestion
    from tacit.streams._series import Series
    from tacit.streams._stream import Stream

#: What a series measures of each day: the name of its column, how it is asked, and whether of a column.
MEASURES: Final[dict[str, tuple[str, Callable[..., Any], bool]]] = {
    "count": ("count", count, False),
    "count_units": ("units", count_units, False),
    "sum": ("sum", sum_of, True),
    "mean": ("mean", mean, True),
}


def draft_series(
    stream: Stream, goal: Goal, *, focus: Focus | None, size: int | None, through: str | None, **asked: Any
) -> Draft[Series]:
    """Draft one measure of every day; columns that were not declared are refused.

    The plan is the same for all days ``through`` which days are to be drawn.
    """
    if through is not None:
        stream.horizon.number(through)
    figures = figures_of_series(stream, **asked)
    unseen = stream._unseen_columns(figures.document)  # noqa: SLF001 - the parts of a stream
    if unseen:
        declared = tuple(sorted(stream._declared_columns))  # noqa: SLF001
        raise TacitError(
            "unknown-column",
            f"the stream declares no column {unseen[0]!r}",
            why="a misspelt column would make the series useless after its charge; nothing was charged",
            fix=Choose(declared, given=unseen[0]) if declared else Say("ask for a column to be declared"),
        )
    sized = replace(goal, size=size)
    draft = draft_daily(stream, sized, figures=figures, focus=focus or "balanced", charge="run")
    return replace(draft, goal=sized)


def figures_of_series(
    stream: Stream, *, measure: str, column: str | None, by: str | None, where: str | None, **_rest: Any
) -> DayQuestion:
    """Return what a series asks of one day."""
    name, aggregate, needs_column = MEASURES[measure]
    if needs_column:
        Needed[str](
            "temp", f"for the measure {measure}", why="it is computed from a column with bounds"
        ).read("column", column)
    else:
        Omitted(f"for the measure {measure}", why="it counts rows or units").read("column", column)
    figure = aggregate(*([] if column is None else [column]))
    return stream._figures({name: figure}, by, where)  # noqa: SLF001
