"""Pairs of neighbouring rows to attack with: bounds, what lies around them, and what is no number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from tacit import noise
from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["neighbouring_rows"]


def neighbouring_rows(
    low: Number, high: Number, *, rows: int = 10, adjacency: Literal["add/remove", "replace"] = "add/remove"
) -> Iterator[tuple[list[float | None], list[float | None]]]:
    """Yield pairs of neighbouring lists without end, for `neighbours`.

    Values lie at the bounds, around them, between them, far outside, or are NaN, infinite or None. Rows are
    added and replaced at any position, so that an operation that depends on positions shows.

    Parameters
    ----------
    low, high
        The declared bounds of a value.
    rows
        The most rows of a list (replace: of every list).
    adjacency
        Whether the second list has one row more, or one row changed.

    Examples
    --------
    >>> from itertools import islice
    >>> pairs = neighbouring_rows(0, 30, rows=4)
    >>> all(len(b) == len(a) + 1 for a, b in islice(pairs, 100))
    True
    """
    bottom, top = (
        float(rational(name, x, zero=True, negative=True)) for name, x in (("low", low), ("high", high))
    )
    most = count("rows", rows, zero=False)
    if adjacency not in {"add/remove", "replace"}:
        raise bad_parameter("adjacency", '"add/remove" or "replace"', adjacency, fix='adjacency="add/remove"')
    values: list[float | None] = [bottom, top, bottom, top, (bottom + top) / 2, 0.0, -0.0, None]
    values += [math.nextafter(end, way) for end in (bottom, top) for way in (-math.inf, math.inf)]
    values += [
        bottom + (top - bottom) / 3,
        top * 1e6 + 1,
        math.nan,
        math.inf,
        -math.inf,
        1e308,
        -1e308,
        5e-324,
    ]
    return _pairs(values, most, adjacency)


def _pairs(
    values: list[float | None], most: int, adjacency: str
) -> Iterator[tuple[list[float | None], list[float | None]]]:
    while True:
        size = noise.uniform_below(most) if adjacency == "add/remove" else most
        # half of the lists hold one value throughout, which is where extremes are reached
        same = noise.uniform_below(2)
        first = values[noise.uniform_below(len(values))]
        a = [first if same else values[noise.uniform_below(len(values))] for _ in range(size)]
        other = values[noise.uniform_below(len(values))]
        b = list(a)
        if adjacency == "add/remove":
            b.insert(noise.uniform_below(size + 1), other)
        else:
            b[noise.uniform_below(size)] = other
        yield a, b
