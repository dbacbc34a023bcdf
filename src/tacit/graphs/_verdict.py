"""A verdict before anything is spent: whether a graph of a declared size is too small for its triangles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tacit.exact import rational
from tacit.mechanisms import LadderNoise
from tacit.report import short_percent

if TYPE_CHECKING:
    from tacit.exact import Number

_ROUGH, _TOO_SMALL = 0.05, 0.25


@dataclass(frozen=True, slots=True, repr=False)
class SizeVerdict:
    """What to expect of the triangles of a graph of a declared size. It is a guess.

    Parameters
    ----------
    nodes, mean_degree, epsilon
        What was declared, and the promise.
    triangles
        The number of triangles that such a graph usually has.
    relative_error
        The median error of the noisy count divided by this number; infinite if there are none to expect.
    """

    nodes: int
    mean_degree: float
    epsilon: float
    triangles: float
    relative_error: float

    @property
    def word(self) -> Literal["fine", "rough", "too small"]:
        """The verdict in a word: an error above 25 % is too small, one above 5 % is rough."""
        if self.relative_error > _TOO_SMALL:
            return "too small"
        return "rough" if self.relative_error > _ROUGH else "fine"

    @property
    def text(self) -> str:
        """The verdict as a sentence."""
        share = self.relative_error
        size = f"with about {self.nodes:,} nodes of mean degree {self.mean_degree:g}"
        if not math.isfinite(share):
            return f"{size}, there are hardly any triangles to count: {self.word}"
        percent = f"{100 * share:,.0f} %" if share >= 0.02 else short_percent(share, 2)
        off = f"half of all answers will be off by less than {percent}"
        return f"{size}, {off} at epsilon {self.epsilon:g}: {self.word}"

    def __repr__(self) -> str:
        return self.text


def verdict_of(
    nodes: int,
    mean_degree: float,
    *,
    epsilon: Number,
    clustering: float = 0.3,
    variance_ratio: float = 0.5,
) -> SizeVerdict:
    """Predict the error of the number of triangles from declared figures alone.

    A graph with n nodes of mean degree d has W = n (d^2 (1 + k) - d) / 2 wedges, where k is the variance of
    the degrees over d^2, and c W / 3 triangles, where c is the share of wedges that are closed. No two nodes
    are expected to have more than 2 d common neighbours. The noise is the ladder's at that width.

    Guarantee: it reads no data. Graphs with a few very large degrees have more triangles and a larger local
    sensitivity: for them it is a guess.

    Examples
    --------
    >>> verdict_of(34, 4.6, epsilon=1).text.partition(", ")[2]
    'half of all answers will be off by less than 20 % at epsilon 1: rough'
    >>> verdict_of(34, 4.6, epsilon=0.1).word, verdict_of(242, 69, epsilon=1).word
    ('too small', 'fine')
    """
    spent = rational("epsilon", epsilon)
    wedges = nodes * (mean_degree**2 * (1 + variance_ratio) - mean_degree) / 2
    triangles = max(0.0, clustering * wedges / 3)
    error = math.inf
    if triangles > 0 and nodes > 2:
        noise = LadderNoise(spent, most=nodes - 2)
        error = noise.median_error(min(math.ceil(2 * mean_degree), nodes - 2)) / triangles
    return SizeVerdict(nodes, mean_degree, float(spent), triangles, error)
