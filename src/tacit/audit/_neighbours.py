"""Neighbour search: neighbouring lists with hostile values, and the largest change of a query."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from tacit import noise
from tacit.exact import Number, count, rational
from tacit.parameters import Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
    max_rows = count("rows", rows, zero=False)
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
    return _pairs(values, max_rows, adjacency)


def _pairs(
    values: list[float | None], max_rows: int, adjacency: str
) -> Iterator[tuple[list[float | None], list[float | None]]]:
    while True:
        size = noise.uniform_below(max_rows) if adjacency == "add/remove" else max_rows
        # in half of the lists all values are equal, because that is where extremes occur
        same = noise.uniform_below(2)
        added = values[noise.uniform_below(len(values))]
        a = [added if same else values[noise.uniform_below(len(values))] for _ in range(size)]
        other = values[noise.uniform_below(len(values))]
        b = list(a)
        if adjacency == "add/remove":
            b.insert(noise.uniform_below(size + 1), other)
        else:
            b[noise.uniform_below(size)] = other
        yield a, b


_Data = TypeVar("_Data")
ChangeNorm: TypeAlias = Literal["l1", "l2", "max"]


@dataclass(frozen=True, slots=True)
class NeighbourResult:
    """The largest change that was found between neighbours, compared with the declared sensitivity.

    Attributes
    ----------
    largest
        The largest change, exact up to one rounding; infinite where the answers for two neighbours differ in
        shape, where only one of them is NaN, or where the query raises an error for only one of them.
    pair
        The two neighbours with the largest change.
    declared
        The declared sensitivity; None if there is none.
    tried
        The number of pairs that were tried.
    """

    largest: float
    pair: tuple[object, object] | None
    declared: float | None
    tried: int
    _broken: bool

    @property
    def holds(self) -> bool:
        """Whether no pair changed the query by more than declared; true if nothing was declared."""
        return not self._broken

    def __repr__(self) -> str:
        verdict = (
            ""
            if self.declared is None
            else f", declared {self.declared:g}: {'holds' if self.holds else 'BROKEN'}"
        )
        example = (
            "" if self.pair is None else f"\n  pair: {_short(self.pair[0])}\n        {_short(self.pair[1])}"
        )
        return f"largest change {self.largest:g} over {self.tried:,} pairs{verdict}{example}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def neighbours(
    query: Callable[[_Data], object],
    generator: Iterable[tuple[_Data, _Data]] | Callable[[], tuple[_Data, _Data]],
    declared_sensitivity: Number | None = None,
    *,
    tries: int = 1000,
    norm: ChangeNorm = "l1",
) -> NeighbourResult:
    """Search neighbouring data for a change that exceeds the declared sensitivity.

    Guarantee: the verdict "broken" is a proof, because the change for the reported pair is computed in exact
    arithmetic. The verdict "holds" is not a proof.

    Parameters
    ----------
    query
        A function without randomness that takes data and returns a number or an array.
    generator
        Pairs of neighbours: an iterable, or a function that returns one pair per call.
    declared_sensitivity
        The declared upper bound on the change of the query.
    tries
        The largest number of pairs to try.
    norm
        The measure of the change of an array: the sum of absolute changes, the Euclidean length or the
        largest change.

    Examples
    --------
    >>> pairs = [([1, 2], [1, 2, 9]), ([1, 9], [1, 9, 9])]
    >>> neighbours(lambda rows: sum(min(x, 5) for x in rows), pairs, 5).holds
    True
    >>> neighbours(lambda rows: sum(rows), pairs, 5)
    largest change 9 over 2 pairs, declared 5: BROKEN
      pair: [1, 2]
            [1, 2, 9]
    """
    pairs_wanted = count("tries", tries, zero=False)
    norms = get_args(ChangeNorm)
    Choice(norms).read("norm", norm)
    declared = (
        None
        if declared_sensitivity is None
        else rational("declared_sensitivity", declared_sensitivity, zero=True)
    )
    power = 2 if norm == "l2" else 1
    largest: Fraction | None = Fraction(0)  # None means infinite; squared for the Euclidean length
    worst: tuple[object, object] | None = None
    tried = 0
    for a, b in islice(_examined_pairs(generator), pairs_wanted):
        tried += 1
        change = _change(query, a, b, norm)
        if largest is not None and (change is None or change > largest):
            largest, worst = change, (a, b)
    broken = declared is not None and (largest is None or largest > declared**power)
    size = math.inf if largest is None else float(largest) ** (1 / power)
    return NeighbourResult(size, worst, None if declared is None else float(declared), tried, broken)


def _examined_pairs(
    generator: Iterable[tuple[_Data, _Data]] | Callable[[], tuple[_Data, _Data]],
) -> Iterator[tuple[_Data, _Data]]:
    if callable(generator):
        while True:
            yield generator()
    yield from generator


def _change(query: Callable[[_Data], object], a: _Data, b: _Data, norm: ChangeNorm) -> Fraction | None:
    """Return the change of the query (squared for l2), or None if it is infinite."""
    of_a, of_b = _answer(query, a), _answer(query, b)
    if of_a is None and of_b is None:
        return Fraction(0)
    if of_a is None or of_b is None or len(of_a) != len(of_b):
        return None
    moves = []
    for x, y in zip(of_a, of_b, strict=True):
        if not (math.isfinite(x) and math.isfinite(y)):
            if x == y or (math.isnan(x) and math.isnan(y)):
                continue
            return None
        moves.append(abs(Fraction(x) - Fraction(y)))
    if not moves:
        return Fraction(0)
    match norm:
        case "l1":
            return sum(moves, Fraction(0))
        case "l2":
            return sum((move**2 for move in moves), Fraction(0))
        case "max":
            return max(moves)


def _answer(query: Callable[[_Data], object], data: _Data) -> list[int | float | Fraction] | None:
    """Return the numbers of the answer, or None if the query raises an error; an observer sees errors too."""
    try:
        answer = query(data)
    except Exception:  # noqa: BLE001 - an observer sees every kind of error
        return None
    if isinstance(answer, int | float | Fraction):
        return [answer]
    return list(np.asarray(answer, dtype=object).ravel())


def _short(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 100 else text[:97] + "..."
