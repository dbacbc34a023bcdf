"""Selection by exact noise: chances proportional to exp(score / scale), for whole-number scores."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Either, Say, Set
from tacit.noise import _bits, _floats
from tacit.noise._intervals import IntegerInterval, below, exp_minus, minus_log
from tacit.noise._parameters import read, read_single, read_size, spread
from tacit.noise._uniform import uniform_below
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.exact import Number
    from tacit.noise._parameters import DrawShape, NumberOrArray

_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True)
class _Gaps:
    """How far each score lies below the best score, in units of the scale."""

    gap: NDArray[Any]  # best - score, unsigned or Python ints
    scale: Fraction

    def near(self, start: int, end: int) -> NDArray[np.float64]:
        """Return gap / scale in doubles, with a relative error below 2^-51, and at most 2^500."""
        part = self.gap[start:end]
        if part.dtype == object:
            part = np.array([float(min(gap, 2**1000)) for gap in part])
        with np.errstate(over="ignore"):
            return np.minimum(part / float(self.scale), 2.0**500)

    def exact(self, i: int) -> Fraction:
        return int(self.gap[i]) / self.scale


def _gaps(scores: Sequence[int] | NDArray[Any], scale: Fraction) -> _Gaps:
    """Read the scores."""
    items = scores if isinstance(scores, np.ndarray) and scores.dtype != object else _whole(scores)
    if items.ndim != 1 or items.size == 0:
        raise _bad_scores(f"the shape {items.shape}")
    if items.dtype == object:
        best = max(items)
        return _Gaps(np.array([best - item for item in items], dtype=object), scale)
    if items.dtype.kind == "i":
        words = items.astype(np.int64, copy=False).view(np.uint64)
        return _Gaps(np.uint64(int(items.max()) % 2**64) - words, scale)  # exact: below 2^64, and modulo 2^64
    if items.dtype.kind == "u":
        return _Gaps(items.max().astype(np.uint64) - items.astype(np.uint64), scale)
    raise _bad_scores(f"the type {items.dtype.name}")


def _whole(scores: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """Read a sequence of whole numbers, as 64-bit integers if they fit."""
    integers = []
    try:
        for item in scores:
            if not isinstance(item, int | np.integer) or isinstance(item, bool):
                raise _bad_scores(f"one of type {type(item).__name__}")
            integers.append(int(item))
    except TypeError:
        raise _bad_scores(f"the type {type(scores).__name__}") from None
    try:
        return np.array(integers, np.int64)
    except OverflowError:
        return np.array(integers, dtype=object)


def _bad_scores(got: str) -> TacitError:
    """Build the error for wrong scores; it shows none of them, because they may be private."""
    must_be = "a non-empty sequence of whole numbers"
    return TacitError(
        "bad-parameter",
        f"scores must be {must_be}, got {got}",
        fix=Either(Set(scores=[3, 1, 2]), Say("round the scores to a grid first")),
    )


@overload
def select(scores: Sequence[int] | NDArray[Any], scale: Number = 1, size: None = None) -> int: ...
@overload
def select(
    scores: Sequence[int] | NDArray[Any], scale: NumberOrArray = 1, *, size: int | tuple[int, ...]
) -> NDArray[np.int64]: ...
@overload
def select(
    scores: Sequence[int] | NDArray[Any], scale: NumberOrArray, size: int | tuple[int, ...]
) -> NDArray[np.int64]: ...
@overload
def select(
    scores: Sequence[int] | NDArray[Any], scale: Sequence[Any] | np.ndarray[Any, Any], size: DrawShape = None
) -> NDArray[np.int64]: ...
def select(
    scores: Sequence[int] | NDArray[Any], scale: NumberOrArray = 1, size: DrawShape = None
) -> int | NDArray[np.int64]:
    """Draw an index i with probability exactly proportional to exp(scores[i] / scale).

    Each candidate gets a whole number of tickets, at least its weight. A uniform ticket wins if it lies under
    the true weight; exact arithmetic decides this for the last tickets of a candidate. Otherwise another
    ticket is drawn.

    Parameters
    ----------
    scores
        Whole numbers, at least one: an integer array or a sequence of Python ints.
    scale
        A positive number up to 2^60, exact (a float at its decimal reading), or one per draw.
    size
        None for one Python int, or the shape of an array of independent draws.

    Examples
    --------
    >>> select([0, 10_000, 0])
    1
    """
    value = read("scale", scale)
    shape = read_size(size)
    if isinstance(value, Fraction):
        choices = _select(_gaps(scores, value), 1 if shape is None else math.prod(shape))
        return int(choices[0]) if shape is None else choices.reshape(shape)
    values, shape = spread("scale", value, shape)
    out = np.empty(values.near.size, np.int64)
    _, examples, label = np.unique(values.labels, return_index=True, return_inverse=True)
    for group, start in enumerate(examples):
        mine = np.flatnonzero(label == group)
        out[mine] = _select(_gaps(scores, values.exact(int(start))), mine.size)
    return out.reshape(shape)


def _select(gaps: _Gaps, count: int) -> NDArray[np.int64]:
    """Draw tickets until every draw has a winner."""
    n = len(gaps.gap)
    bits = min(50, 61 - n.bit_length())  # a weight of 1 has 2^bits tickets
    tickets = _tickets(gaps, bits)
    ends = np.cumsum(tickets)
    total = int(ends[-1])
    choices = np.empty(count, np.int64)
    pending = np.arange(choices.size)
    while pending.size:
        ticket = uniform_below(total, size=pending.size)
        chosen = np.searchsorted(ends, ticket, side="right")
        above = ticket - ends[chosen] + tickets[chosen]  # the ticket's place among its candidate's
        won = above < tickets[chosen] - 3 - (tickets[chosen] >> 38)  # certainly under the weight
        for i in np.flatnonzero(~won):
            won[i] = below(int(above[i]), 0, functools.partial(_weight, gaps.exact(int(chosen[i])), bits))
        choices[pending[won]] = chosen[won]
        pending = pending[~won]
    return choices


def _tickets(gaps: _Gaps, bits: int) -> NDArray[np.int64]:
    """Return a whole number above 2^bits exp(-gap) for each candidate, by less than 1 and a part in 2^39."""
    gap = gaps.gap
    if gap.dtype != object and gap.size >= _BLOCK and int(gap.max()) < gap.size // 4:
        each = _Gaps(
            np.arange(int(gap.max()) + 1, dtype=np.uint64), gaps.scale
        )  # few different gaps: compute each once
        return _tickets(each, bits)[gap.astype(np.intp)]
    tickets = np.empty(len(gaps.gap), np.int64)
    for start in range(0, tickets.size, _BLOCK):
        weight = _floats.exp_minus(gaps.near(start, start + _BLOCK))
        weight *= 2.0**bits * (1 + 2.0**-40)
        tickets[start : start + _BLOCK] = weight
    tickets += 1
    return tickets


def _weight(x: Fraction, tickets: int, bits: int) -> IntegerInterval:
    """Return the interval of 2^tickets exp(-x)."""
    return exp_minus(x, tickets + bits)


def select_top(scores: Sequence[int] | NDArray[Any], k: int, scale: Number = 1) -> NDArray[np.int64]:
    """Draw k different indices in order, as if by `select`, removing the winner and selecting again.

    The draw is a race: candidate i arrives at an exponential time of rate exp(scores[i] / scale). The order
    of arrival has the law of repeated selection without replacement, because exponential times have no memory
    (Yellott 1977). Times are drawn to 64 bits. Where two lie closer than the error bounds, more bits and
    exact arithmetic decide.

    Parameters
    ----------
    scores
        Whole numbers, at least k: an integer array or a sequence of Python ints.
    k
        How many to draw.
    scale
        A positive number up to 2^60, exact (a float at its decimal reading).

    Examples
    --------
    >>> select_top([0, 20_000, 10_000], 2).tolist()
    [1, 2]
    """
    gaps = _gaps(scores, read_single("scale", scale))
    n = len(gaps.gap)
    number = Integer(0, n, f"the number of scores is {n:,}", instead=n).read("k", k)
    if number == 0:
        return np.empty(0, np.int64)
    uniform = np.empty(n, np.uint64)
    _bits.fill(uniform)
    early, late = np.empty(n), np.empty(n)
    for start in range(0, n, _BLOCK):
        part = slice(start, start + _BLOCK)
        early[part], late[part] = _arrival(uniform[part], gaps.near(start, start + _BLOCK))
    # drop every candidate that certainly arrives after k others
    cutoff = np.partition(late, number - 1)[number - 1]
    racers = np.flatnonzero(early <= cutoff)
    order = racers[np.argsort(early[racers], kind="stable")]
    return _settle(order, early, late, gaps, uniform)[:number].astype(np.int64)


def _arrival(
    uniform: NDArray[np.uint64], gap: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds of the log arrival times, log(-log U) + gap."""
    middle = _floats.log(_floats.minus_log_uniform(uniform)) + gap
    slack = 2.0**-36 + gap * 2.0**-48
    thin = np.flatnonzero(
        (uniform < 2**44) | (uniform > 2**64 - 2**44)
    )  # 64 bits determine these only roughly
    uniforms = np.minimum(uniform[thin], ~uniform[thin]).astype(np.float64)
    slack[thin] += 4.0 / np.maximum(uniforms, 1.0)
    early, late = middle - slack, middle + slack
    thin = thin[uniforms < 4]
    early[thin], late[thin] = -np.inf, np.inf
    late[gap == 2.0**500] = np.inf
    return early, late


class _Racer:
    """One candidate's exponential time, with as many bits as the comparisons have needed so far."""

    def __init__(self, index: int, gap: Fraction, digits: int) -> None:
        self.index, self.gap, self.digits, self.bits = index, gap, digits, 64

    def extend(self) -> None:
        self.digits = (self.digits << 64) | _bits.word()
        self.bits += 64

    def time(self, bits: int) -> tuple[int, int | None]:
        """Return the interval of -log U; the upper end is None while U may be 0."""
        unit = 1 << self.bits
        low = minus_log(Fraction(self.digits + 1, unit), bits)[0]
        return low, minus_log(Fraction(self.digits, unit), bits)[1] if self.digits else None


def _before(a: _Racer, b: _Racer) -> int:
    """Compare arrival times exactly: -1 if a arrives first, else 1."""
    if a.gap > b.gap:
        return -_before(b, a)
    # a's time times exp(-(b.gap - a.gap)) against b's
    while True:
        bits = min(a.bits, b.bits)
        low_w, high_w = exp_minus(b.gap - a.gap, bits)
        low_a, high_a = a.time(bits)
        low_b, high_b = b.time(bits)
        if high_a is not None and high_a * high_w < low_b << bits:
            return -1
        if high_b is not None and low_a * low_w > high_b << bits:
            return 1
        a.extend()
        b.extend()


def _settle(
    order: NDArray[np.intp],
    early: NDArray[np.float64],
    late: NDArray[np.float64],
    gaps: _Gaps,
    uniform: NDArray[np.uint64],
) -> NDArray[np.intp]:
    """Put racers whose bounds overlap into their exact order; `order` is sorted by `early`."""
    reached = np.maximum.accumulate(late[order])
    certain = early[order][1:] > reached[:-1]  # the order across these places is certain
    if certain.all():
        return order
    cuts = np.concatenate(([0], np.flatnonzero(certain) + 1, [order.size]))
    for start, end in itertools.pairwise(cuts.tolist()):
        if end - start > 1:
            racers = [_Racer(int(i), gaps.exact(int(i)), int(uniform[i])) for i in order[start:end]]
            racers.sort(key=functools.cmp_to_key(_before))
            order[start:end] = [racer.index for racer in racers]
    return order
