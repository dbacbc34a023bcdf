"""The algebra of privacy laws in accounting: groups, samples, and which law dominates which.

`docs/proofs/costs.md` proves each rule.
"""

from __future__ import annotations

from tacit.accounting._charge import charge
from tacit.accounting._laws import (
    ApproximateLoss,
    BestOfLoss,
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
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
    RenyiLoss,
    SampledLoss,
    ShuffledLoss,
    ShuffledResponseLoss,
    ZCDPLoss,
)


def can_sample(parts: Parts) -> bool:
    """Return whether every part has a pair of distributions to mix; a rho or a Renyi curve has none."""
    for law, _ in parts:
        match law:
            case ZCDPLoss() | RenyiLoss() | ShuffledLoss() | ShuffledResponseLoss() | BestOfLoss():
                return False
            case SampledLoss(_, inner) | GroupLoss(_, inner) if not can_sample(inner):
                return False
            case ParallelLoss(branches) if not all(can_sample(branch) for branch in branches):
                return False
    return True


def grouped(law: LossLaw, m: int) -> LossLaw:
    """Return what a law reveals about m units together, as a law of the same kind where possible."""
    match law:
        case GaussianLoss(sigma, s):
            return GaussianLoss(sigma, m * s)
        case DiscreteGaussianLoss(sigma, s):
            return DiscreteGaussianLoss(sigma, m * s)
        case DiscreteGaussianVectorLoss(sigma, squared):
            return DiscreteGaussianVectorLoss(sigma, m * m * squared)
        case LaplaceLoss(scale, s):
            return LaplaceLoss(scale, m * s)
        case DiscreteLaplaceLoss(scale, s):
            return DiscreteLaplaceLoss(scale, m * s)
        case GDPLoss(mu):
            return GDPLoss(m * mu)
        case ZCDPLoss(rho):
            return ZCDPLoss(m * m * rho)
        case PureLoss(epsilon) | RandomizedResponseLoss(epsilon) | CategoricalResponseLoss(epsilon):
            return PureLoss(m * epsilon)
        case BoundedRangeLoss(epsilon):
            return BoundedRangeLoss(m * epsilon)
        case ApproximateLoss(epsilon, delta) if not epsilon and m * delta < 1:
            return ApproximateLoss(epsilon, m * delta)  # the distance of laws, which adds up
        case GroupLoss(already, parts):
            return GroupLoss(m * already, parts)
        case _:
            return GroupLoss(m, ((law, 1),))


def dominates(large: Parts, small: Parts) -> bool:
    """Return whether ``large`` reveals at least as much at every epsilon; False if that is not evident."""
    have = dict(large)
    if all(have.get(law, 0) >= times for law, times in small):
        return True
    if len(large) == len(small) == 1:
        (big, often), (little, seldom) = large[0], small[0]
        return often >= seldom and _stronger(big, little)
    return False


def _stronger(big: LossLaw, little: LossLaw) -> bool:
    match big, little:
        case (
            (GaussianLoss(a, s) | DiscreteGaussianLoss(a, s)),
            (GaussianLoss(b, t) | DiscreteGaussianLoss(b, t)),
        ):
            return type(big) is type(little) and (
                s / a >= t / b if isinstance(big, GaussianLoss) else a == b and s >= t
            )
        case LaplaceLoss(a, s), LaplaceLoss(b, t):
            return s / a >= t / b
        case DiscreteLaplaceLoss(a, s), DiscreteLaplaceLoss(b, t):
            return a == b and s >= t
        case GDPLoss(a), GDPLoss(b):
            return a >= b
        case ZCDPLoss(a), ZCDPLoss(b):
            return a >= b
        case BoundedRangeLoss(a), BoundedRangeLoss(b):
            return a >= b
        case CategoricalResponseLoss(a, k), CategoricalResponseLoss(b, n):
            return a >= b and k <= n
        case ((PureLoss(a) | RandomizedResponseLoss(a)), _):
            epsilon = charge(((little, 1),))
            return epsilon.delta == 0 and epsilon.epsilon is not None and a >= epsilon.epsilon
        case ApproximateLoss(a, d), ApproximateLoss(b, e):
            return a >= b and d >= e
        case _:
            return False
