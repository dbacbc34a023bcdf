"""Simple facts about a sum of laws in numeric accounting: whether it is Gaussian, and its largest loss.

Infinite loss is split off from a sum of laws: delta = m + (1 - m) delta_rest. The proof is
docs/proofs/accounting.md, section 1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from tacit.accounting._laws import (
    ApproximateLoss,
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GDPLoss,
    GroupLoss,
    LaplaceLoss,
    LossLaw,
    ParallelLoss,
    Parts,
    PureLoss,
    RandomizedResponseLoss,
    SampledLoss,
    ShuffledLoss,
    ShuffledResponseLoss,
    canonical,
)
from tacit.accounting.numeric._arithmetic import U, as_float


def plain(parts: Parts) -> Parts:
    """Replace samples of rate 1 by their parts; refuse groups and branches, which are resolved earlier.

    Only groups in one sampled Gaussian stay.
    """
    for law, _ in parts:
        if isinstance(law, ParallelLoss) or (isinstance(law, GroupLoss) and sampled_gaussian(law) is None):
            raise TypeError(type(law).__name__)
    if not any(isinstance(law, SampledLoss) and law.q == 1 for law, _ in parts):
        return parts
    laws: list[tuple[LossLaw, int]] = []
    for law, times in parts:
        if isinstance(law, SampledLoss) and law.q == 1:
            laws.extend((inner, times * often) for inner, often in plain(law.parts))
        else:
            laws.append((law, times))
    return canonical(laws)


def law_mu2(law: LossLaw) -> Fraction | None:
    """Return mu^2 of a Gaussian law; None for other laws."""
    match law:
        case GaussianLoss(sigma, s):
            return (s / sigma) ** 2
        case GDPLoss(mu):
            return mu**2
    return None


def gaussian_mu2(parts: Parts) -> Fraction | None:
    """Return the sum of mu^2 if every part is Gaussian, else None."""
    total = Fraction(0)
    for law, times in parts:
        part = law_mu2(law)
        if part is None:
            return None
        total += times * part
    return total


def sampled_gaussian(law: LossLaw) -> tuple[Fraction, Fraction] | None:
    """Return q and mu^2 if the law is a group in one sampled Gaussian, else None."""
    match law:
        case GroupLoss(_, ((SampledLoss(q, inner), 1),)) if q < 1:
            if any(isinstance(one, GroupLoss | ParallelLoss) for one, _ in inner):
                return None
            mu2 = gaussian_mu2(plain(inner))
            return None if mu2 is None else (q, mu2)
    return None


def in_one_sample(law: GroupLoss) -> bool:
    """Return whether a group has a law of its own: several units in one sampled Gaussian."""
    return law.m <= 64 and sampled_gaussian(law) is not None


def exact_largest_loss(parts: Parts) -> Fraction | None:
    """Return the largest loss exactly; None if it is infinite or not rational."""
    total = Fraction(0)
    for law, times in parts:
        match law:
            case RandomizedResponseLoss(e) | PureLoss(e) | BoundedRangeLoss(e) | CategoricalResponseLoss(e):
                total += times * e
            case ShuffledLoss(_, e) | ShuffledResponseLoss(_, e):
                total += times * e
            case LaplaceLoss(scale, s) | DiscreteLaplaceLoss(scale, s):
                total += times * s / scale
            case _:
                return None
    return total


def largest_loss(parts: Parts, *, add: int) -> float:
    """Return an upper value of the largest loss."""
    total = 0.0
    for law, times in parts:
        match law:
            case RandomizedResponseLoss(e) | PureLoss(e) | BoundedRangeLoss(e) | CategoricalResponseLoss(e):
                loss = as_float(e)
            case ShuffledLoss(_, e) | ShuffledResponseLoss(_, e):
                loss = as_float(e)
            case LaplaceLoss(scale, s) | DiscreteLaplaceLoss(scale, s):
                loss = as_float(s / scale)
            case SampledLoss(q, inner):
                top = largest_loss(plain(inner), add=add)
                if add:  # -log(1 - q + q exp(-top))
                    loss = -mixed(as_float(q), -top) if q < 1 else top
                else:
                    loss = mixed(as_float(q), top) if math.isfinite(top) else math.inf
            case _:
                return math.inf
        total += times * loss
    return total * (1 + 16 * U)


def mixed(q: float, e: float) -> float:
    """Return log(1 - q + q exp(e)), up to rounding."""
    return e + math.log(q + (1 - q) * math.exp(-e)) if e > 0 else math.log1p(q * math.expm1(e))


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
    laws: list[tuple[LossLaw, int]] = []
    lowest = highest = good = 0.0  # logarithms of the mass that stays
    for law, times in parts:
        match law:
            case ApproximateLoss(epsilon, delta):
                stays = times * _log_stays(as_float(delta))
                lowest, highest, good = lowest + stays, highest + stays, good + stays
                if epsilon:
                    laws.append((PureLoss(epsilon), times))
            case SampledLoss(q, inner) if can_be_infinite(inner):
                within, rate = split_infinite_loss(plain(inner), add=add), as_float(q)
                lowest += 0.0 if add else times * _log_stays(rate * within.least)
                highest += times * _log_stays(rate * within.most)
                good += times * (math.log(within.good) if within.good > 0 else -math.inf)
                if within.rest:
                    laws.append((SampledLoss(q, within.rest), times))
            case _:
                laws.append((law, times))
    slip = 64 * U
    return InfiniteLossSplit(
        canonical(laws),
        max(0.0, -math.expm1(lowest) * (1 - slip)),
        -math.expm1(highest) * (1 + slip),
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
