"""Neighbour pairs for audits: neighbouring lists with values at the bounds, near them, and not numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit import noise
from tacit.exact import Number, count, rational
from tacit.parameters import Choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.accounting import Adjacency

_ADJACENCIES = ("add/remove", "replace")


def neighbouring_rows(
    low: Number, high: Number, *, rows: int = 10, adjacency: Adjacency = "add/remove"
) -> Iterator[tuple[list[float | None], list[float | None]]]:
    """Yield an endless series of pairs of neighbouring lists, for `neighbours`.

    Values lie at the bounds, near them, between them or far outside, or they are NaN, infinite or None. Rows
    are added or replaced at any position, which reveals operations that depend on positions.

    Parameters
    ----------
    low, high
        The declared bounds of a value.
    rows
        The largest number of rows in a list; with "replace" every list has this many rows.
    adjacency
        With "add/remove" the second list has one more row; with "replace" one of its rows is different.

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
    Choice(_ADJACENCIES).read("adjacency", adjacency)
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
        # in half of the lists all values are equal, because that is where extremes occur
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
