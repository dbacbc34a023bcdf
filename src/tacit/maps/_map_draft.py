"""What questions about points on a map share: limits, their document, their facts, a source that may be gone.

Limits say which points of a unit count in regions, and how far one unit can move the counts: at most `rows`
in all, in at most `groups` regions, at most `per_group` in each. The rules and the sensitivities are those of
tables (docs/proofs/maps.md, section 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from tacit.core import Content, Draft, Limits, Task
from tacit.errors import TacitError, bad_parameter, missing_file
from tacit.fixes import Code, Declare, Say, Set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency
    from tacit.core import JSON, Forecast, Step, Unit
    from tacit.maps._point_map import PointMap
    from tacit.maps._point_source import OwnedPoints
    from tacit.tables import Contribution


def check_owner(unit: Unit, columns: tuple[str, ...] = ()) -> None:
    """Refuse a unit that rows of points or trips do not have; ``columns`` say where they are."""
    why = "" if unit.kind in {"row", "column"} else "points and trips have no edges, nodes or clients"
    if why or set(unit.columns) & set(columns):
        exception = f" other than {' and '.join(columns)}" if columns else ""
        raise bad_parameter(
            "unit", f"a column{exception}, or single rows", unit, why=why, fix=Set(unit="user_id")
        )


def read_limits(limits_given: object, unit: Unit) -> Limits:
    """Read the limits of a map; single rows have none."""
    if unit.is_row:
        if limits_given is not None:
            raise TacitError(
                "not-allowed",
                "single rows have no limits",
                why="each point is one unit in one region",
                fix=Say("remove the limits, or name the column that says to whom a point belongs"),
            )
        return Limits(rows=1)
    limits = Limits.read(limits_given)  # type: ignore[arg-type]
    if limits.of_tables or limits.joined is not None:
        raise TacitError(
            "not-allowed",
            "a map has the limits rows, groups and per_group",
            why="it has one table, and no joins",
            fix=Code('limits={"rows": 5, "groups": 3}'),
        )
    return limits


def contribution_of(limits: Limits, adjacency: Adjacency, regions: int) -> Contribution:
    """Bound what one unit adds to the counts of so many regions, or refuse where nothing bounds it."""
    from tacit.tables import Contribution

    groups = min(x for x in (limits.groups, regions, limits.rows) if x is not None)
    per_group = min((x for x in (limits.per_group, limits.rows) if x is not None), default=None)
    if per_group is None:
        raise TacitError(
            "missing-limit",
            "nothing bounds how many points one unit can add",
            why="noise can hide one unit only if there is a bound on what this unit can change",
            fix=Declare("limits", 10, column="rows", function="tc.points"),
        )
    total = groups * per_group if limits.rows is None else min(limits.rows, groups * per_group)
    return Contribution(total, min(per_group, total), groups, adjacency, grouped=True)


def count_regions(
    points: OwnedPoints, region: NDArray[np.int64], regions: int, limits: Limits
) -> NDArray[np.int64]:
    """Count the points in each region under the limits on groups and per group; -1 is no region.

    The regions of a unit that count are those with its lowest ranks, and a rank is a function of one point.
    The points of one unit stand beside each other, in the order of their ranks and, should two collide, of
    their coordinates.
    """
    if points.owner is None or (limits.groups is None and limits.per_group is None):
        return np.bincount(region[region >= 0], minlength=regions).astype(np.int64)
    cells, times = _is_counted(points, region, regions, limits)
    return np.bincount(cells, weights=times, minlength=regions).round().astype(np.int64)


def _is_counted(
    points: OwnedPoints, region: NDArray[np.int64], regions: int, limits: Limits
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of a unit and a region that count: the region, and how many points count in it."""
    assert points.owner is not None  # noqa: S101 - checked by the caller
    within = region >= 0
    owner, cells = points.owner[within], region[within]
    _, first_rows, times = np.unique(owner * regions + cells, return_index=True, return_counts=True)
    if limits.per_group is not None:
        times = np.minimum(times, limits.per_group)
    if limits.groups is None or not len(first_rows):
        return cells[first_rows], times
    order = np.argsort(first_rows, kind="stable")  # owner by owner, and within one by the lowest rank
    first_rows, times = first_rows[order], times[order]
    starts = np.flatnonzero(np.r_[True, owner[first_rows][1:] != owner[first_rows][:-1]])
    ranks = np.arange(len(first_rows)) - np.repeat(starts, np.diff(np.r_[starts, len(first_rows)]))
    is_counted = ranks < limits.groups
    return cells[first_rows[is_counted]], times[is_counted]


def limits_in_words(limits: Limits, unit: Unit) -> str:
    """Say how much one unit counts, for a plan."""
    if unit.is_row:
        return "each point stands for itself"
    parts = []
    if limits.rows is not None:
        parts.append(f"{limits.rows:,} point{'' if limits.rows == 1 else 's'}")
    if limits.groups is not None:
        parts.append(f"{limits.groups:,} region{'' if limits.groups == 1 else 's'}")
    if limits.per_group is not None:
        parts.append(f"{limits.per_group:,} point{'' if limits.per_group == 1 else 's'} in a region")
    default = " (the default)" if limits.is_default else ""
    return f"at most {', '.join(parts)} of each {unit.noun} count{default}"


D = TypeVar("D")
C = TypeVar("C", bound=Content)


def map_draft(
    point_map: PointMap,
    *,
    question: Mapping[str, JSON],
    words: str,
    counts: Callable[[OwnedPoints], D],
    steps: Sequence[Step[D]],
    reading: Callable[[Sequence[Any], Fraction], C],
    forecast: Sequence[Forecast] | Callable[[], Sequence[Forecast]],
    facts: Sequence[tuple[str, str]],
) -> Draft[C]:
    """Draft the plan of a question.

    Parameters
    ----------
    question, words
        The question as a document, to which the columns, the box and the limits are added; and in words.
    counts
        Makes of the points that count what the steps share.
    """
    source, limits = point_map._source, point_map.limits  # noqa: SLF001 - a part of the map
    (south, west), (north, east) = point_map.box.corners
    task = Task(
        document={
            **question,
            "columns": list(source.names),
            "box": point_map.box.to_json(),
            "limits": {"rows": limits.rows, "groups": limits.groups, "per_group": limits.per_group},
        },
        open=lambda _: counts(source.load()),
        steps=tuple(steps),
        reading=reading,
        unavailable=lambda: missing_source(source),
    )
    common = [
        ("limits", limits_in_words(limits, point_map.unit)),
        ("box", (f"latitude {south:g} to {north:g}, longitude {west:g} to {east:g}; points outside it, "
                "or with a missing coordinate, do not count")),
    ]  # fmt: skip
    return Draft(task=task, asked=words, forecast=forecast, facts=[*facts, *common])


class _MayBeMissing(Protocol):
    @property
    def missing_file(self) -> str: ...


def missing_source(source: _MayBeMissing) -> TacitError | None:
    """Return the refusal for a file that does not exist; whether it exists is no secret."""
    path = source.missing_file
    return missing_file(path, why="nothing was charged") if path else None
