"""Adaptive clipping: the clip follows a quantile of the gradients' norms, which is measured privately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.exact import Number, rational
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.core import JSON


@dataclass(frozen=True, slots=True)
class AdaptiveClip:
    """A clip that moves towards a quantile of the norms of the units' gradients (Andrew et al. 2021).

    Guarantee: a step costs what it costs with a fixed clip. Next to the sum of gradients, each divided by the
    clip, each step measures how many norms are below the clip. One unit moves both together by at most 1, and
    one Gaussian covers both: the gradients get ``1 - share`` of the squared sensitivity, the count gets
    ``share``. The clip is computed from noisy counts alone.

    Parameters
    ----------
    start
        The first clip.
    quantile
        The share of norms that should be below the clip.
    rate
        How fast the clip moves: by a factor of at most exp(rate / 2) or so in a step.
    share
        The part of the squared sensitivity that the count gets. With 0.01, the noise of the gradients grows
        by 0.5 %.

    Examples
    --------
    >>> AdaptiveClip(start=0.5).quantile
    Fraction(1, 2)
    """

    start: Fraction
    quantile: Fraction
    rate: Fraction
    share: Fraction

    def __init__(
        self, start: Number = 1, *, quantile: Number = 0.5, rate: Number = 0.2, share: Number = 0.01
    ) -> None:
        for name, given, usual in (("quantile", quantile, 0.5), ("share", share, 0.01)):
            RealNumber(above=0, below=1, instead=usual).read(name, given)
        object.__setattr__(self, "start", rational("start", start))
        object.__setattr__(self, "quantile", rational("quantile", quantile))
        object.__setattr__(self, "rate", rational("rate", rate))
        object.__setattr__(self, "share", rational("share", share))

    def to_json(self) -> dict[str, JSON]:
        """Return the settings, exactly."""
        return {name: str(getattr(self, name)) for name in ("start", "quantile", "rate", "share")}
