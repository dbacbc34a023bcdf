"""Bounds for clipping and limits of rows, read from noisy counts.

Bounds are read from counts of octaves, cells whose ends are powers of two.

Nothing here reads data or draws noise. A caller counts rows in public cells (`OctaveCells`), adds noise of a
law that it states (`CellNoise`), and hands over the noisy counts. What the functions return is
post-processing of these counts: it costs nothing more than the counts did.

What the counts cost: a row is in exactly one cell, so a unit with at most L rows changes the counts by at
most L if it is added or removed, in the L1 and in the L2 norm (all its rows can be in one cell). If a unit is
replaced, they change by at most 2 L in the L1 norm and sqrt(2) L in the L2 norm. docs/proofs/found_bounds.md
has the argument, and the reason why the draws of one plan add up to its cost whether or not the second one is
needed.

The rule, in the order in which it is applied:

1. *Sure cells*: windows of 1, 2, 4 and 8 neighbouring octaves of one sign that noise alone fills with
   probability at most 1/200, all windows together. The fullest cell of such a window is sure. Without a sure
   cell, no range is returned. If some windows are so full that noise alone fills any with probability at most
   1/2,000, cells that lie far beyond those are sure only by such a window, too.
2. *Reach*: outwards from the outermost sure cell of a sign, further cells count if noise alone fills them
   rarely; the more octaves they are away, the more rarely, because a false cell d octaves away makes the
   range 2^d times as wide.
3. *Inner end*: if all values have one sign and lie in the outermost octaves, the other end is not 0.
4. *Narrowing*: such a range is divided into 16 equal cells, which are counted once more.
5. *Half an octave more*: outer ends that were not narrowed are multiplied by 3/2, unless the outermost octave
   holds 16 times the rows with which the next one would have been accepted: then few rows lie beyond it.
   Where values beyond the ends shall be rare, they are multiplied by 4 in any case.

Limits: how many rows of one unit should count, read from a noisy histogram of the rows that units have. The
unit of this histogram is one row: a unit adds 1 to the cell of its number of rows, whatever this number is.
So its sensitivity is 1 when a unit is added or removed, and 2 when one is replaced; the limit has no part in
it. A larger limit means more noise, a smaller one cuts more rows. The rule takes the candidate for which the
square of the noise and the square of the cut, as far as the noisy counts show it, have the smallest sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import bad_parameter
from tacit.fixes import Say
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

#: The shares of a plan's cost: the octaves, the narrowing, and the answer if there was a narrowing.
OCTAVE_SHARE, NARROWING_SHARE, ANSWER_SHARE = Fraction(17, 80), Fraction(3, 80), Fraction(3, 4)
#: The share of a plan's cost that the histogram of rows per unit gets; the answer gets the rest.
LIMIT_SHARE = Fraction(1, 5)
#: By how much outer ends are multiplied: usually, and where values beyond them shall be rare.
WIDENING = {"usual": Fraction(3, 2), "rare": Fraction(4)}
#: Up to so many groups, each has its own counts; beyond that, all groups share the counts of all rows.
MAX_GROUPS = 1_000

_SMALLEST, _LARGEST = -30, 60  # exponents of the lower ends of octaves
_WINDOWS = (1, 2, 4, 8)
_FALSE_RANGE = 0.005  # the chance that noise alone makes any window sure
_FALSE_CELL = 0.005  # the chance that noise alone fills the cell of zero, or an octave next to the range
_FAR_CELL = 0.0005  # the chance that noise alone fills any cell, however far away
_FAR = 4  # octaves beyond which a cell is far away
_UNLIKELY = 100  # of a group: how much more rarely noise alone may fill cells far beyond those of all groups
_NEXT_CELL = 1 / 12  # the chance for a cell 0 octaves away; 2^-1.5 times as large for each octave
_DECAY = 1.5
_FULL = 16  # an outermost octave with so many times the rows that the next one lacks is full
_PARTS = 16
_FALSE_PART = 1 / 320  # the chance that noise alone fills one of the 16 cells: 1/20 for all
_FALSE_LIMIT = 0.0005  # the chance that noise alone fills any cell of limits, however far away
_FINE, _COARSE = (12, 15, 20, 30, 40, 50, 70), (1, 1.5, 2, 3, 5, 7)


def answer_share(*, narrowed: bool) -> Fraction:
    """Return the share of a plan's cost that the answer gets: all that the search for bounds did not take.

    Examples
    --------
    >>> answer_share(narrowed=True), answer_share(narrowed=False)
    (Fraction(3, 4), Fraction(63, 80))
    """
    return ANSWER_SHARE if narrowed else ANSWER_SHARE + NARROWING_SHARE


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The law of the noise on each of many counts: independent, symmetric, and the same for all.

    Parameters
    ----------
    scale
        b of (discrete) Laplace noise, or the standard deviation of (discrete) Gaussian noise, in rows.
    gaussian
        Whether the noise is Gaussian.
    groups
        How many noisy counts were added up to make each count.

    Examples
    --------
    >>> [round(CellNoise(1).upper(0.005 / (4 * 184), w), 2) for w in (1, 2, 4, 8)]
    [11.21, 13.24, 16.22, 20.64]
    """

    scale: float
    gaussian: bool = False
    groups: int = 1

    def __post_init__(self) -> None:
        """Refuse a scale that is not positive."""
        RealNumber(above=0).read("scale", self.scale)

    def upper(self, tail: float, cells: int = 1) -> float:
        """Return what the noise of a sum of so many counts exceeds with probability `tail`, below 1/2.

        That of discrete Laplace noise exceeds it with at most twice this probability.
        """
        terms = cells * self.groups
        return self.scale * (_normal_upper(tail, terms) if self.gaussian else _laplace_upper(tail, terms))

    def pooled(self, groups: int) -> CellNoise:
        """Return the law for sums of the counts of so many groups."""
        return replace(self, groups=self.groups * groups)


@lru_cache(maxsize=4096)
def _normal_upper(tail: float, terms: int) -> float:
    """Return the upper point of a sum of standard normal variables."""
    from scipy.special import ndtri

    return -math.sqrt(terms) * float(ndtri(tail))


@lru_cache(maxsize=4096)
def _laplace_upper(tail: float, terms: int) -> float:
    """Return the upper point of a sum of standard Laplace variables."""
    if terms == 1:
        return math.log(0.5 / tail)
    from scipy.optimize import brentq

    high = 4.0 * math.sqrt(terms)
    while laplace_tail(high, terms) > tail:
        high *= 2
    return float(brentq(lambda x: math.log(laplace_tail(x, terms) / tail), 1e-9, high, xtol=1e-10))


def laplace_tail(x: float, terms: int) -> float:
    """Return the probability that a sum of standard Laplace variables exceeds a positive number.

    The sum is X - Y, where X and Y are the times of the n-th arrivals of two independent Poisson processes.
    It exceeds x if the first process has j < n arrivals up to x, and its n - j remaining arrivals then take
    longer than all n of the second: among the next 2n - j - 1 arrivals of both, at least n are of the
    second.

    Examples
    --------
    >>> round(laplace_tail(2.0, 1), 6), round(math.exp(-2) / 2, 6)
    (0.067668, 0.067668)
    >>> round(laplace_tail(2.0, 2), 6), round(math.exp(-2) * (2 + 2) / 4, 6)  # (2 + x) e^-x / 4
    (0.135335, 0.135335)
    """
    from scipy.special import bdtrc, gammaln

    early = np.arange(terms)
    arrivals = np.exp(early * math.log(x) - x - gammaln(early + 1))
    return float(arrivals @ bdtrc(terms - 1, 2 * terms - early - 1, 0.5))


@dataclass(frozen=True, slots=True)
class OctaveCells:
    """The public cells: zero, the numbers next to it, and the octaves of both signs up to 2^61.

    Cells are half-open, (a, b], and their ends are exact: cell number i of a value is the number of `cuts`
    that are smaller than the value. So an engine compares a value with constants, and never takes a
    logarithm. Each value is in exactly one cell: infinities and values beyond 2^61 are in the outermost
    cells. What is missing or not a number is in none.

    Parameters
    ----------
    integer
        Whether all values are integers (days count as integers): the smallest octave is then (1, 2].

    Examples
    --------
    >>> cells = OctaveCells()
    >>> cells.size, [str(end) for end in cells.ends(cells.index(37))]
    (184, ['32', '64'])
    >>> [OctaveCells(integer=True).index(x) - OctaveCells(integer=True).zero for x in (-2, -1, 0, 1, 2, 3)]
    [-2, -1, 0, 1, 2, 3]
    """

    integer: bool = False

    @property
    def smallest(self) -> int:
        """The exponent of the smallest octave's lower end."""
        return 0 if self.integer else _SMALLEST

    @property
    def cuts(self) -> tuple[Fraction, ...]:
        """The ends between the cells, rising: dyadic rationals, exact as doubles."""
        return _cuts(self.smallest)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.cuts) + 1

    @property
    def zero(self) -> int:
        """The index of the cell of zero."""
        return len(self.cuts) // 2

    def index(self, value: float) -> int | None:
        """Return the index of a value's cell, None if it is not a number."""
        return None if math.isnan(value) else sum(cut < value for cut in self.cuts)

    def indices(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the indices of the cells of many values that are numbers."""
        cuts = np.array([float(cut) for cut in self.cuts])
        return np.searchsorted(cuts, np.asarray(values, dtype=np.float64), side="left").astype(np.int64)

    def ends(self, index: int) -> tuple[Fraction, Fraction]:
        """Return the two ends of a cell; those of the outermost cells are at 2^61."""
        ends = (-(Fraction(2) ** (_LARGEST + 1)), *self.cuts, Fraction(2) ** (_LARGEST + 1))
        return ends[index], ends[index + 1]


@lru_cache(maxsize=2)
def _cuts(smallest: int) -> tuple[Fraction, ...]:
    """Return the ends between the cells."""
    powers = [Fraction(2) ** k for k in range(smallest, _LARGEST + 1)]
    return (*(-power for power in reversed(powers)), Fraction(0), *powers)


@dataclass(frozen=True, slots=True)
class OctaveRange:
    """A range whose ends are ends of octaves, or 0.

    Parameters
    ----------
    low, high
        The ends.
    integer
        Whether all values are integers.
    pooled
        Whether the range is that of all groups together.
    full
        For each end, whether its octave holds so many rows that few can lie beyond it.

    Examples
    --------
    >>> ages = OctaveRange(Fraction(16), Fraction(64))
    >>> ages.narrows, [str(end) for end in ages.parts[:4]]
    (True, ['16', '19', '22', '25'])
    >>> [str(end) for end in OctaveRange(Fraction(-16), Fraction(256)).bounds()]
    ['-24', '384']
    """

    low: Fraction
    high: Fraction
    integer: bool = False
    pooled: bool = False
    full: tuple[bool, bool] = (False, False)

    @property
    def narrows(self) -> bool:
        """Whether a second count may narrow the range: 0 is neither in it nor an end of it."""
        return self.low > 0 or self.high < 0

    @property
    def parts(self) -> tuple[Fraction, ...]:
        """The ends of the equal cells (a, b] that a second count uses: 16 of them; fewer for few integers."""
        width = self.high - self.low
        step = Fraction(math.ceil(width / _PARTS)) if self.integer else width / _PARTS
        return tuple(self.low + i * step for i in range(int(width / step) + 1))

    def bounds(self, widening: Fraction = WIDENING["usual"]) -> tuple[Fraction, Fraction]:
        """Return the range with its outer ends, those away from zero, multiplied by `widening`.

        By the usual widening, a full end stays where it is. Bounds of integers are integers: the outermost
        ones inside.
        """
        low_stays, high_stays = self.full if widening == WIDENING["usual"] else (False, False)
        low = self.low * widening if self.low < 0 and not low_stays else self.low
        high = self.high * widening if self.high > 0 and not high_stays else self.high
        return (Fraction(math.ceil(low)), Fraction(math.floor(high))) if self.integer else (low, high)

    def narrow(
        self, counts: Sequence[float] | NDArray[np.float64], noise: CellNoise,
        widening: Fraction = WIDENING["usual"],
    ) -> tuple[Fraction, Fraction]:  # fmt: skip
        """Return the bounds that noisy counts of the `parts` leave.

        They reach from the first to the last part that noise alone seldom fills, and are half as wide again
        on each side, within the old ends: a part at the edge may hold fewer rows than noise. If no part
        stands out, these are the bounds without a second count.

        Guarantee: post-processing of the noisy counts. A row is in at most one part, so the counts have the
        same sensitivity as those of the octaves.

        Parameters
        ----------
        counts
            One for each part.
        noise
            The law of their noise.
        widening
            By how much an outer end is multiplied that is not narrowed.

        Examples
        --------
        >>> constant = OctaveRange(Fraction(32), Fraction(64))
        >>> [str(end) for end in constant.narrow([0, 0, 2000, *[0] * 13], CellNoise(27))]
        ['35', '39']
        """
        ends = self.parts
        numbers = checked_counts(counts, len(ends) - 1)
        full = np.flatnonzero(numbers > noise.upper(_FALSE_PART))
        if not len(full):
            return self.bounds(widening)
        low, high = ends[full[0]], ends[full[-1] + 1]
        more = (high - low) / 2
        low, high = max(self.low, low - more), min(self.high, high + more)
        return (Fraction(math.floor(low)), Fraction(math.ceil(high))) if self.integer else (low, high)


def checked_counts(counts: ArrayLike, cells: int) -> NDArray[np.float64]:
    """Return the counts as numbers, refuse another number of them."""
    numbers = np.asarray(counts, dtype=np.float64)
    if numbers.shape != (cells,):
        fix = Say("count the rows in each of the cells")
        raise bad_parameter("counts", f"{cells} numbers, one for each cell", numbers.shape, fix=fix)
    return numbers


def find_bounds(
    counts: Sequence[float] | NDArray[np.float64], noise: CellNoise, cells: OctaveCells | None = None
) -> OctaveRange | None:
    """Read a range from the noisy counts of octaves; None if no cell is surely filled.

    Guarantee: post-processing of the noisy counts. Their sensitivity under add/remove is L, the number of
    rows that one unit may have, in the L1 and in the L2 norm; under replace it is 2 L and sqrt(2) L.

    If there are no rows, or only zeros, a range is returned with probability at most 1/200 (1/100 for
    discrete noise with a small scale).

    Parameters
    ----------
    counts
        The noisy count of each cell.
    noise
        The law of the noise.
    cells
        What was counted; by default the cells of real numbers.

    Examples
    --------
    >>> cells = OctaveCells(integer=True)
    >>> counts = [0] * cells.size
    >>> counts[cells.index(37)], counts[cells.index(70)] = 900, 30
    >>> outer = find_bounds(counts, CellNoise(5), cells)
    >>> outer.narrows, [str(end) for end in outer.bounds()]
    (True, ['32', '192'])
    >>> find_bounds([9] * cells.size, CellNoise(5), cells) is None
    True
    """
    cells = OctaveCells() if cells is None else cells
    numbers = checked_counts(counts, cells.size)
    zero, size = cells.zero, cells.size
    negative, positive = numbers[:zero][::-1], numbers[zero + 1 :]
    sure_negative, sure_positive = _sure_of_both(negative, positive, noise, size)
    below = _reach(negative, sure_negative, noise, size)
    above = _reach(positive, sure_positive, noise, size)
    if below < 0 and above < 0:
        return None
    low = cells.ends(zero - 1 - below)[0] if below >= 0 else Fraction(0)
    high = cells.ends(zero + 1 + above)[1] if above >= 0 else Fraction(0)
    if numbers[zero] <= noise.upper(_FALSE_CELL / size):
        if below < 0 and (foot := _foot(positive, sure_positive, above, noise)) >= 0:
            low = cells.ends(zero + 1 + foot)[0]
        if above < 0 and (foot := _foot(negative, sure_negative, below, noise)) >= 0:
            high = cells.ends(zero - 1 - foot)[1]
    many = _FULL * noise.upper(far_tail(1, _FALSE_CELL / size))
    full = (below >= 0 and bool(negative[below] > many), above >= 0 and bool(positive[above] > many))
    return OctaveRange(low, high, cells.integer, full=full)


def sure_cells(
    side: NDArray[np.float64], noise: CellNoise, size: int, false: float = _FALSE_RANGE
) -> NDArray[np.bool_]:
    """Return which cells of one sign are the fullest of a window that noise alone seldom fills."""
    sure = np.zeros(len(side), dtype=bool)
    tail = false / (len(_WINDOWS) * size)
    for length in _WINDOWS:
        windows = np.lib.stride_tricks.sliding_window_view(side, length)
        for start in np.flatnonzero(windows.sum(axis=1) > noise.upper(tail, length)).tolist():
            sure[start + int(windows[start].argmax())] = True
    return sure


def _sure_of_both(
    negative: NDArray[np.float64], positive: NDArray[np.float64], noise: CellNoise, size: int
) -> list[NDArray[np.bool_]]:
    """Return the sure cells of both signs, without those that are far beyond what is known for certain.

    A false cell far away would make the range, and with it the noise of the answer, absurdly large.
    """
    sides = (negative, positive)
    sure = [sure_cells(side, noise, size) for side in sides]
    certain = [sure_cells(side, noise, size, _FAR_CELL) for side in sides]
    outermost = max(_reach(side, cells, noise, size) for side, cells in zip(sides, certain, strict=True))
    if outermost >= 0:
        for cells, others in zip(sure, certain, strict=True):
            cells[outermost + _FAR + 1 :] &= others[outermost + _FAR + 1 :]
    return sure


def _reach(side: NDArray[np.float64], sure: NDArray[np.bool_], noise: CellNoise, size: int) -> int:
    """Return the outermost cell that counts, of the cells of one sign; -1 if none is sure.

    A cell further out needs fewer rows once a nearer one is reached, so the order of the search does not
    matter.
    """
    if not sure.any():
        return -1
    end = int(np.flatnonzero(sure)[-1])
    thresholds = _thresholds(noise, size, len(side))
    while True:
        beyond = np.flatnonzero(side[end + 1 :] > thresholds[: len(side) - end - 1])
        if not len(beyond):
            return end
        end += 1 + int(beyond[0])


@lru_cache(maxsize=256)
def _thresholds(noise: CellNoise, size: int, octaves: int) -> NDArray[np.float64]:
    """Return what the count of a cell must exceed that is 1, 2, ... octaves beyond the range so far."""
    return np.array([noise.upper(far_tail(d, _FAR_CELL / size)) for d in range(1, octaves + 1)])


def far_tail(octaves: float, least: float) -> float:
    """Return how often noise alone may fill a cell so many octaves beyond the range so far.

    The probability falls faster than the cost of a false cell, 2^octaves, rises; it never falls below
    `least`.

    Examples
    --------
    >>> [round(math.log(1 / (2 * far_tail(d, 0.0005 / 184))), 2) for d in (1, 2, 10)]
    [2.83, 3.87, 12.12]
    """
    return max(least, _NEXT_CELL * math.exp2(-_DECAY * octaves))


def _foot(side: NDArray[np.float64], sure: NDArray[np.bool_], end: int, noise: CellNoise) -> int:
    """Return the innermost cell of the range; -1 if the range begins at 0.

    Of the three outermost cells, those are taken that noise alone seldom fills. If the innermost of the three
    is one of them, or a cell further in is sure, values lie near 0.
    """
    third = end - 2
    threshold = noise.upper(_NEXT_CELL / math.e)
    taken = [i for i in range(max(third, 0), end + 1) if sure[i] or side[i] > threshold]
    return -1 if third in taken or sure[: max(third, 0)].any() else taken[0]


def find_group_bounds(
    counts: NDArray[np.float64], noise: CellNoise, cells: OctaveCells | None = None
) -> list[OctaveRange | None]:
    """Read a range for each group from its noisy counts; groups without a sure cell share one range.

    This range is read from the sums of all groups' noisy counts, so it costs nothing more. Where it lies is
    also evidence for each group: a group's cells far beyond it must be fuller than others, by as much as
    noise alone reaches a hundred times as rarely. Among many groups, the noise of some is large somewhere.

    Guarantee: post-processing of the noisy counts. A row is in one group and one cell, so the sensitivity is
    that of one histogram (`find_bounds`), where L counts the rows of one unit in all groups together.

    Parameters
    ----------
    counts
        A line for each group, a column for each cell.
    noise
        The law of the noise.
    cells
        What was counted; by default the cells of real numbers.

    Examples
    --------
    >>> counts = np.zeros((3, OctaveCells().size))
    >>> counts[:2, OctaveCells().index(37)] = 900
    >>> [(float(r.low), float(r.high), r.pooled) for r in find_group_bounds(counts, CellNoise(5))]
    [(32.0, 64.0, False), (32.0, 64.0, False), (32.0, 64.0, True)]
    """
    if not len(counts):
        return []
    cells = OctaveCells() if cells is None else cells
    shared = find_bounds(counts.sum(axis=0), noise.pooled(len(counts)), cells)
    evidence = counts if shared is None else counts - _missing_evidence(shared, noise, cells)
    ranges = [find_bounds(line, noise, cells) for line in evidence]
    return [own or (shared and replace(shared, pooled=True)) for own in ranges]


def _missing_evidence(shared: OctaveRange, noise: CellNoise, cells: OctaveCells) -> NDArray[np.float64]:
    """Return by how much a group's count of each cell must be larger than without the range of all groups."""
    tail = _FALSE_RANGE / (len(_WINDOWS) * cells.size)
    more = noise.upper(tail / _UNLIKELY) - noise.upper(tail)
    ends = [cells.ends(i) for i in range(cells.size)]
    lowest, highest = 2**_FAR * min(shared.low, 0), 2**_FAR * max(shared.high, 0)
    far = [low >= highest or high <= lowest for low, high in ends]
    far[cells.zero] = False
    return np.where(far, more, 0.0)


def narrow_group_bounds(
    ranges: Sequence[OctaveRange | None], counts: Sequence[Sequence[float] | NDArray[np.float64]],
    noise: CellNoise, widening: Fraction = WIDENING["usual"],
) -> list[tuple[Fraction, Fraction] | None]:  # fmt: skip
    """Return the bounds of each group; groups that share a range share the counts of its parts.

    Guarantee: post-processing of the noisy counts; see `OctaveRange.narrow`.

    Parameters
    ----------
    ranges
        What `find_group_bounds` returned.
    counts
        For each group, the noisy counts of its range's parts; not read if the range does not narrow.
    noise
        The law of their noise.
    widening
        By how much outer ends are multiplied that are not narrowed.
    """
    sharing = [(own, counts[i]) for i, own in enumerate(ranges) if own is not None and own.pooled]
    shared: tuple[Fraction, Fraction] | None = None
    for pooled, _ in sharing[:1]:
        shared = pooled.bounds(widening)
        if pooled.narrows:
            sums = np.sum([checked_counts(line, len(pooled.parts) - 1) for _, line in sharing], axis=0)
            shared = pooled.narrow(sums, noise.pooled(len(sharing)), widening)
    return [
        None if own is None
        else shared if own.pooled
        else own.narrow(counts[i], noise, widening) if own.narrows
        else own.bounds(widening)
        for i, own in enumerate(ranges)
    ]  # fmt: skip


def round_numbers(max_number: int) -> tuple[int, ...]:
    """Return the candidates for limits: all numbers to 10, then round ones, so that few share the noise.

    They are also the cells: a number of rows belongs to the first candidate that is not smaller, and numbers
    beyond the last one belong to the last one.

    Examples
    --------
    >>> round_numbers(25)[9:]
    (10, 12, 15, 20, 25)
    """
    numbers = {*range(1, 11), *_FINE}
    numbers |= {int(digit * 10**power) for power in range(2, len(str(max_number))) for digit in _COARSE}
    return tuple(sorted({n for n in numbers if n < max_number} | {max_number}))


def choose_limit(
    counts: Sequence[float] | NDArray[np.float64], noise: CellNoise,
    candidates: Sequence[int], deviation: float,
) -> int:  # fmt: skip
    """Choose the limit that makes the noise and the cut of a count small together.

    Guarantee: post-processing of the noisy counts. Their sensitivity is 1 under add/remove and 2 under
    replace.

    Cells count from the first one to the outermost that noise alone seldom fills, by the rule for octaves
    (`find_bounds`); the chance of a false cell is ten times smaller here, because the square of the noise is
    what a false cell costs. A cell of numbers from a to b is taken to hold units with (a + b)/2 rows each.

    Parameters
    ----------
    counts
        The noisy number of units in each cell.
    noise
        The law of the noise.
    candidates
        The largest number of rows in each cell: `round_numbers`.
    deviation
        The standard deviation that the noise of the answer would have with a limit of 1.

    Examples
    --------
    >>> candidates = round_numbers(1000)
    >>> counts = [900, 500, 300, 100, 40, *[0] * (len(candidates) - 5)]
    >>> [choose_limit(counts, CellNoise(5), candidates, deviation) for deviation in (1.8, 90, 900)]
    [5, 3, 1]
    """
    largest = np.asarray(candidates, dtype=np.float64)
    numbers = checked_counts(counts, len(largest))
    end = _outermost(numbers, noise, largest)
    middles = (np.concatenate(([1.0], largest[:-1] + 1)) + largest) / 2
    units = np.maximum(numbers[: end + 1], 0.0)
    beyond = np.maximum(middles[None, : end + 1] - largest[: end + 1, None], 0.0)
    errors = (deviation * largest[: end + 1]) ** 2 + (beyond @ units) ** 2
    return int(candidates[int(errors.argmin())])


def _outermost(numbers: NDArray[np.float64], noise: CellNoise, largest: NDArray[np.float64]) -> int:
    """Return the outermost cell that noise alone seldom fills; the first cell always counts."""
    sure = np.flatnonzero(sure_cells(numbers, noise, len(numbers)))
    end = int(sure[-1]) if len(sure) else 0
    while True:
        thresholds = [
            noise.upper(far_tail(math.log2(number / largest[end]), _FALSE_LIMIT / len(numbers)))
            for number in largest[end + 1 :].tolist()
        ]
        beyond = np.flatnonzero(numbers[end + 1 :] > np.array(thresholds))
        if not len(beyond):
            return end
        end += 1 + int(beyond[0])
