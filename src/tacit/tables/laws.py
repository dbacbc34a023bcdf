"""How far the integer noise of a step may lie: read off the law that is sampled."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.mechanisms._lattice import GaussianLaw, LaplaceLaw

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.tables.budgeting import Share

__all__ = ["half_width"]


def half_width(share: Share, confidence: Fraction) -> int:
    """Return the smallest m with P(|noise| <= m) at least the confidence."""
    return _half_width(share.law, share.scale, confidence)


@lru_cache(maxsize=4096)
def _half_width(name: str, scale: Fraction, confidence: Fraction) -> int:
    law = GaussianLaw(scale) if name == "gaussian" else LaplaceLaw(scale)
    return law.half_width(confidence)
