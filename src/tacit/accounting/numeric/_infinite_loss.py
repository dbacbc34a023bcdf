"""Infinite loss in numeric accounting, split off from a sum of laws: delta = m + (1 - m) delta_rest.

The proof is docs/proofs/accounting.md, section 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.accounting._laws import ApproximateLoss, LossLaw, Parts, PureLoss, SampledLoss, canonical
from tacit.accounting.numeric._bracket import U, as_float
from tacit.accounting.numeric._sum_facts import plain


class InfiniteLossSplit(NamedTuple):
    """The part with finite loss, bounds on the mass of infinite loss, and a bound on the mass without any.

    At every real e, delta(e) of the whole is at most ``most + (1 - most) delta_rest(e)`` and at least ``least
    + good delta_rest(e)``.
    """

    rest: Parts
    least: float
    most: float
    good: float


def split_infinite_loss(parts: Parts, *, add: int) -> InfiniteLossSplit:
    """Split off infinite loss: all of it for approximate parts, q times it for samples."""
    if not can_be_infinite(parts):
        return InfiniteLossSplit(parts, 0.0, 0.0, 1.0)
    kept: list[tuple[LossLaw, int]] = []
    least = most = good = 0.0  # logarithms of the mass that stays
    for law, times in parts:
        match law:
            case ApproximateLoss(epsilon, delta):
                stays = times * _log_stays(as_float(delta))
                least, most, good = least + stays, most + stays, good + stays
                if epsilon:
                    kept.append((PureLoss(epsilon), times))
            case SampledLoss(q, inner) if can_be_infinite(inner):
                within, rate = split_infinite_loss(plain(inner), add=add), as_float(q)
                least += 0.0 if add else times * _log_stays(rate * within.least)
                most += times * _log_stays(rate * within.most)
                good += times * (math.log(within.good) if within.good > 0 else -math.inf)
                if within.rest:
                    kept.append((SampledLoss(q, within.rest), times))
            case _:
                kept.append((law, times))
    slip = 64 * U
    return InfiniteLossSplit(
        canonical(kept),
        max(0.0, -math.expm1(least) * (1 - slip)),
        -math.expm1(most) * (1 + slip),
        math.exp(good) * (1 - slip * (1 - good)) if good > -700 else 0.0,
    )


def can_be_infinite(parts: Parts) -> bool:
    """Return whether some loss is infinite."""
    return any(
        isinstance(law, ApproximateLoss) or (isinstance(law, SampledLoss) and can_be_infinite(law.parts))
        for law, _ in parts
    )


def _log_stays(leak: float) -> float:
    return math.log1p(-leak) if leak < 1 else -math.inf
