"""What questions about points on a map share: their document, their facts, a source that may be gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tacit.core import Content, Draft, Task
from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.maps._limits import limits_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON, Forecast, Step
    from tacit.maps._point_map import PointMap
    from tacit.maps._point_source import OwnedPoints

D = TypeVar("D")
C = TypeVar("C", bound=Content)


def map_draft(
    point_map: PointMap,
    *,
    asked: Mapping[str, JSON],
    words: str,
    counted: Callable[[OwnedPoints], D],
    steps: Sequence[Step[D]],
    reading: Callable[[Sequence[Any], Fraction], C],
    forecast: Sequence[Forecast] | Callable[[], Sequence[Forecast]],
    facts: Sequence[tuple[str, str]],
) -> Draft[C]:
    """Draft the plan of a question.

    Parameters
    ----------
    asked, words
        The question as a document, to which the columns, the box and the limits are added; and in words.
    counted
        Makes of the points that count what the steps share.
    """
    source, limits = point_map._source, point_map.limits  # noqa: SLF001 - a part of the map
    (south, west), (north, east) = point_map.box.corners
    task = Task(
        document={
            **asked,
            "columns": list(source.names),
            "box": point_map.box.to_json(),
            "limits": {"rows": limits.rows, "groups": limits.groups, "per_group": limits.per_group},
        },
        open=lambda _: counted(source.load()),
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
    if not path:
        return None
    return TacitError(
        "bad-parameter",
        f"the file {path} does not exist",
        why="nothing was charged",
        fix=Say("check the path"),
    )
