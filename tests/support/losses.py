"""Short names for the loss laws that accounting tests use."""

from fractions import Fraction

from tacit.accounting._laws import GaussianLoss, LaplaceLoss, RandomizedResponseLoss, SampledLoss

F = Fraction


def gauss(sigma: object) -> GaussianLoss:
    return GaussianLoss(F(str(sigma)), F(1))


def lap(e: object) -> LaplaceLoss:
    return LaplaceLoss(F(1), F(str(e)))


def coin(e: object) -> RandomizedResponseLoss:
    return RandomizedResponseLoss(F(str(e)))


def sampled(q: object, *parts: object) -> SampledLoss:
    return SampledLoss(F(str(q)), tuple((law, 1) for law in parts))
