"""How much work a plan's document asks of a worker: cross tables, ranges and synthetic rows are limited.

Planning them takes time, and a worker plans for people whom nobody trusts. The library's own limits are for
people who wait for their own machine.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_TABLES: Final = 500  # cross tables in one document
_MOST_CELLS: Final = 200_000  # of all cross tables in one document
_MOST_RANGE_CELLS: Final = 200  # of all ordered columns in one document
_MOST_CHOICES: Final = 2_000  # tables among which synthetic rows choose
_MOST_SIZE: Final = 200_000  # cells of a model


def range_cells(document: Mapping[str, Any]) -> int:
    """Check what a document asks for, and return how many cells each ordered column in it may have.

    What has another form than plans have is left to the library, which refuses it.
    """
    tables = cells = choices = columns = 0
    for request in _requests(document):
        match request:
            case {"asks": "crosstabs", "tables": list(listed)}:
                tables += len(listed)
                cells += _cells(request, listed)
            case {"asks": "ranges" | "prefixes"}:
                columns += 1
            case {"asks": "synthesize", "columns": list(listed)}:
                choices += _choices(request, len(listed))
                size = request.get("size")
                if isinstance(size, int) and size > _MOST_SIZE:
                    raise _too_large(f"a model of more than {_MOST_SIZE:,} cells", f"size={_MOST_SIZE}")
    if tables > _MOST_TABLES:
        raise _too_large(
            f"more than {_MOST_TABLES} cross tables", "ask for fewer tables, or in smaller parts"
        )
    if cells > _MOST_CELLS:
        raise _too_large(f"more than {_MOST_CELLS:,} cells", "use fewer bins, or fewer tables")
    if choices > _MOST_CHOICES:
        raise _too_large(
            f"synthetic rows that choose among more than {_MOST_CHOICES:,} tables", "use fewer columns"
        )
    return max(2, _MOST_RANGE_CELLS // max(1, columns))


def _requests(document: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the requests of a document: its own, or those of the members of a batch."""
    match document:
        case {"request": {"batch": list(members)}}:
            for member in members:
                match member:
                    case [_, request]:
                        yield request
        case {"request": request}:
            yield request


def _cells(request: Mapping[str, Any], tables: list[Any]) -> int:
    """Return about how many cells the tables have, from the places of their columns."""
    places: dict[Any, int] = {}
    for part, more in (
        ("bins", 0),
        ("keys", 2),
    ):  # n cuts make n - 1 cells; missing and other values have one
        given = request.get(part)
        if isinstance(given, dict):
            places |= {name: len(one) + more for name, one in given.items() if isinstance(one, list)}
            places |= {name: abs(one) + 1 for name, one in given.items() if type(one) is int}  # so many bins
    total = 0
    for table in tables:
        if isinstance(table, list):
            total += math.prod(places.get(one, 1) for one in table if isinstance(one, str))
    return total


def _choices(request: Mapping[str, Any], columns: int) -> int:
    """Return among how many tables a method chooses: those of up to ``up_to`` columns; a tree has pairs."""
    if columns > _MOST_CHOICES:
        return columns
    wide = request.get("up_to")
    most = 2 if request.get("method") == "mst" else wide if isinstance(wide, int) and wide > 0 else 3
    return sum(math.comb(columns, k) for k in range(1, min(most, columns, 10) + 1))


def _too_large(what: str, fix: str) -> TacitError:
    return TacitError(
        "question-too-large",
        f"the plan asks for {what}",
        why="planning takes time, and others wait for the same service",
        fix=fix,
    )
