"""How far the integer noise of a step may lie: read off the law that is sampled."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.mechanisms import GaussianLaw, LaplaceLaw

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.tables.budgeting import Share

__all__ = ["half_width"]


def half_width(share: Share, confidence: Fraction) -> int:
    """Return an m with P(|noise| <= m) at least the confidence: the smallest, where one noise is added.

    The sum of k noises stays within k times the half-width of each at 1 - (1 - confidence)/k; and within a
    tail bound: sub-Gaussian, or Chan, Shi and Song 2011, Lemma 2.8. The smaller of the two is taken.
    """
    k = share.copies
    each = k * _half_width(share.law, share.scale, 1 - (1 - confidence) / k)
    if k == 1:
        return each
    log = math.log(2 / float(1 - confidence))
    scale = float(share.scale)
    together = scale * (
        math.sqrt(2 * k * log)
        if share.law == "gaussian"
        else math.sqrt(8 * log) * max(math.sqrt(k), math.sqrt(log))
    )
    return min(each, math.ceil(together))


@lru_cache(maxsize=4096)
def _half_width(name: str, scale: Fraction, confidence: Fraction) -> int:
    law = GaussianLaw(scale) if name == "gaussian" else LaplaceLaw(scale)
    return law.half_width(confidence)
