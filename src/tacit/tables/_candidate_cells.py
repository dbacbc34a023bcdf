"""The cells of candidates: which values an engine counts at each candidate, from end to end."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.algebra import EvenBins, ListedBins
from tacit.exact import rational

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.algebra import Bins
    from tacit.tables._aggregates import Range

#: The lower and the upper end of every candidate's cell.
CandidateEnds = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


@lru_cache(maxsize=256)
def candidate_ends(bins: Bins, bounds: Range | None) -> CandidateEnds:
    """Return the ends of the values that are counted at each candidate, which is the nearest to them.

    The first and the last cell reach to the bounds, because values beyond them are clipped. Without bounds,
    values beyond the candidates count as the first or the last one, and are clipped to them.

    Examples
    --------
    >>> low, high = candidate_ends(EvenBins(0.0, 2.0, 3), (Fraction(0), Fraction(5)))
    >>> low.tolist(), high.tolist()  # an end moves where an engine rounds the other way
    ([0.0, 0.9999999999999999, 3.0], [1.0, 3.0, 5.0])
    """
    values = [float(value) for value in bins.values]
    low, high = values[0], values[-1]
    if bounds is not None:
        low, high = min(low, float(bounds[0])), max(high, float(bounds[1]))
    if isinstance(bins, EvenBins):
        below, above = _even_middles(bins)
    elif isinstance(bins, ListedBins):
        below = above = np.array(bins.middles)
    else:
        raise TypeError(f"{type(bins).__name__} have no nearest candidate")
    return np.concatenate([[low], below]), np.concatenate([above, [high]])


def _even_middles(bins: EvenBins) -> CandidateEnds:
    """Return the middles between even candidates, each moved by a rounding error where an engine makes one.

    Engines divide in floating point, so a value next to a middle can be counted on the other side of it.
    """
    first, step = rational("first", bins.first, zero=True, negative=True), rational("step", bins.width)
    middles = np.array([float(first + (i + Fraction(1, 2)) * step) for i in range(bins.size - 1)])
    at, last = np.arange(bins.size - 1), bins.first + bins.width * (bins.size - 1)

    def cell(x: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = (np.clip(x, bins.first, last) - bins.first) / bins.width
        return np.asarray(np.floor(inside + 0.5))

    below, above = middles.copy(), middles.copy()
    while (early := cell(np.nextafter(below, -np.inf)) > at).any():
        below[early] = np.nextafter(below[early], -np.inf)
    while (late := cell(np.nextafter(above, np.inf)) <= at).any():
        above[late] = np.nextafter(above[late], np.inf)
    return below, above


def rounding_in_words(bins: Bins) -> str:
    """Say to which candidates values are moved.

    Examples
    --------
    >>> rounding_in_words(EvenBins(0.0, 2.0, 126))
    'candidates 2 apart'
    >>> rounding_in_words(ListedBins((1.0, 2.0, 5.0), (1.5, 3.5)))
    'the nearest of 3 candidates'
    """
    values = np.array([float(value) for value in bins.values])
    gaps = np.diff(values)
    if len(gaps) and np.ptp(gaps) <= 1e-9 * (abs(values).max() + gaps.max()):
        return f"candidates {gaps[0]:.6g} apart"
    return f"the nearest of {len(values):,} candidates"
