"""Score intervals of an estimated share: they cover the randomizer, and where asked the sampling as well.

The variance of an unbiased estimate is a quadratic function of the true share, ``a + b f + c f**2``. The
interval holds every share f with ``(estimate - f)**2 <= z**2 (a + b f + c f**2)``, so it uses the variance at
f and not at the estimate. For one group of respondents from a population this is Wilson's interval for the
rate of reports, mapped to the share; the argument is in docs/proofs/surveys.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from tacit.errors import bad_parameter
from tacit.fixes import Choose
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: What an interval covers: a population from which the respondents are a sample, or these respondents only.
Covers: TypeAlias = Literal["population", "respondents"]


class ShareVariance(NamedTuple):
    """The variance of an estimated share as a function of the true share f: a + b f + c f**2."""

    a: float
    b: float
    c: float

    def at(self, share: ArrayLike) -> NDArray[np.float64]:
        """Return the variance at a true share."""
        f = np.asarray(share, dtype=float)
        return self.a + self.b * f + self.c * f**2

    def weighted(self, weight: float) -> ShareVariance:
        """Return the variance of ``weight`` times the estimate."""
        return ShareVariance(*(weight**2 * part for part in self))

    def plus(self, other: ShareVariance) -> ShareVariance:
        """Return the variance of the sum with an independent estimate of the same share."""
        return ShareVariance(self.a + other.a, self.b + other.b, self.c + other.c)


def variance_of(p: float, q: float, respondents: int, *, covers: Covers, draws: int = 1) -> ShareVariance:
    """Return the variance of (N/n - q)/(p - q), where N of n reports support a value.

    Where each respondent tosses the coin ``draws`` times (Kuk's design), N is the average over the tosses.

    Guarantee: exact. For a population L(1-L)/(n(p-q)^2) with L = q + f(p-q); for these respondents
    [f p(1-p) + (1-f) q(1-q)]/(n(p-q)^2). The two differ by f(1-f)/n.

    Examples
    --------
    >>> both = [variance_of(0.75, 0.25, 100, covers=c).at(0.3) for c in ("population", "respondents")]
    >>> round(float(both[0] - both[1]), 6)
    0.0021
    """
    scale = draws * respondents * (p - q) ** 2
    a, b = q * (1 - q) / scale, (p * (1 - p) - q * (1 - q)) / scale
    if covers == "respondents":
        return ShareVariance(a, b, 0.0)
    return ShareVariance(a, b + 1 / respondents, -1 / respondents)


def score_interval(
    estimate: ArrayLike, variance: ShareVariance, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both ends: the shares f with (estimate - f)^2 <= z^2 variance(f). They are not cut to [0, 1].

    Examples
    --------
    >>> low, high = score_interval(0.324, variance_of(0.75, 0.25, 1000, covers="population"), 0.95)
    >>> round(float(low), 4), round(float(high), 4)
    (0.2638, 0.3856)
    """
    f = np.asarray(estimate, dtype=float)
    z2 = normal_quantile(confidence) ** 2
    lead = 1 - z2 * variance.c
    middle = f + z2 * variance.b / 2
    room = middle**2 - lead * (f**2 - z2 * variance.a)
    # far outside [0, 1] no share fits the estimate: the variance at the nearest share takes its place
    near = np.sqrt(z2 * np.maximum(variance.at(np.clip(f, 0, 1)), 0))
    root = np.sqrt(np.maximum(room, 0))
    low, high = (middle - root) / lead, (middle + root) / lead
    return np.where(room < 0, f - near, low), np.where(room < 0, f + near, high)


def normal_quantile(confidence: float) -> float:
    """Return how many standard deviations hold a normal number with this probability."""
    from scipy.special import ndtri

    RealNumber(above=0, below=1, instead=0.95).read("confidence", confidence)
    return float(-ndtri((1 - confidence) / 2))


def read_covers(of: str) -> Covers:
    """Read what an interval is to cover, or refuse."""
    if of == "population":
        return "population"
    if of == "respondents":
        return "respondents"
    raise bad_parameter(
        "of", "population or respondents", of, fix=Choose(("population", "respondents"), str(of))
    )
