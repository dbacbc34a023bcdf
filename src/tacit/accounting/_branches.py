"""The branches of a cost in accounting, written out: all sums of laws in which one unit may take part."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product

from tacit.accounting._algebra import can_sample, dominates
from tacit.accounting._charge import charge
from tacit.accounting._display import words
from tacit.accounting._laws import (
    ApproximateLoss,
    BestOfLoss,
    DiscreteGaussianVectorLoss,
    GroupLoss,
    LossLaw,
    ParallelLoss,
    Parts,
    PureLoss,
    RenyiLoss,
    SampledLoss,
    ZCDPLoss,
    canonical,
)
from tacit.accounting._renyi_curve import divergence_of_sum
from tacit.accounting._selection import ORDERS
from tacit.errors import TacitError

_MOST = 64
_WHOLE = tuple(Fraction(k) for k in (*range(2, 65), 80, 96, 128, 192, 256, 384, 512))
_LARGEST_VALUE = 1000  # a Renyi divergence that guarantees nothing


@lru_cache(maxsize=256)
def sums_without_branches(parts: Parts, *, every: bool = False) -> tuple[tuple[Parts, ...], bool]:
    """Return sums without branches, the largest of which is the cost, and whether they are the exact choices.

    A unit is in one branch of each `ParallelLoss`, fixed before any answer. So the possible sums are exactly
    the combinations of branches. Dominated sums are dropped, unless ``every`` sum is requested. If there are
    more than 64 combinations, one law that dominates all branches replaces them.

    Examples
    --------
    >>> from fractions import Fraction
    >>> one, two = PureLoss(Fraction(1)), PureLoss(Fraction(2))
    >>> both = ParallelLoss((((one, 1),), ((two, 1),)))
    >>> sums, exact = sums_without_branches(((both, 3),))
    >>> [(law.epsilon, times) for ((law, times),) in sums]
    [(Fraction(2, 1), 3)]
    """
    if parts and all(_is_single(law) for law, _ in parts):
        return (parts,), True
    choices: list[list[Parts]] = []
    size, exact = 1, True
    for law, times in parts:
        options, exactly = _options(law, every=every)
        exact &= exactly
        ways = math.comb(times + len(options) - 1, times)
        if ways > 1 and size * ways > _MOST:
            options, ways, exact = [_envelope(options)], 1, False
        size *= ways
        if len(options) == 1:
            choices.append([tuple((part, often * times) for part, often in options[0])])
        else:
            picks = combinations_with_replacement(options, times)
            choices.append([canonical(part for option in pick for part in option) for pick in picks])
    sums = [canonical(part for option in pick for part in option) for pick in product(*choices)]
    return tuple(dict.fromkeys(sums) if every else _undominated(sums)), exact


def _is_single(law: LossLaw) -> bool:
    """Return whether a law stands for itself: no branches and no vectors, also inside a sample."""
    if isinstance(law, SampledLoss):
        return all(_is_single(inner) for inner, _ in law.parts) and can_sample(law.parts)
    return not isinstance(law, ParallelLoss | DiscreteGaussianVectorLoss | GroupLoss | BestOfLoss)


def _options(law: LossLaw, *, every: bool) -> tuple[list[Parts], bool]:
    match law:
        case ParallelLoss(branches):
            found = [sums_without_branches(branch, every=every) for branch in branches]
            options = [one for sums, _ in found for one in sums]
            exact = all(exact for _, exact in found)
            return list(dict.fromkeys(options)) if every else _undominated(options), exact
        case DiscreteGaussianVectorLoss():
            return [((ZCDPLoss(law.squared / (2 * law.sigma**2)), 1),)], True
        case SampledLoss(_, inner) if _has_vector(inner):
            return [_at_orders(law, _WHOLE)], False
        case BestOfLoss():
            return [_at_orders(law, ORDERS)], False
        case SampledLoss(q, inner):
            sums, exact = sums_without_branches(inner, every=every)
            if not all(can_sample(one) for one in sums):
                raise _too_many()
            return [((SampledLoss(q, one), 1),) for one in sums], exact
        case _:
            return [((law, 1),)], True


def _has_vector(parts: Parts) -> bool:
    """Return whether a part is a vector of discrete Gaussian noise, which has no single pair to mix."""
    for law, _ in parts:
        match law:
            case DiscreteGaussianVectorLoss():
                return True
            case SampledLoss(_, inner) | GroupLoss(_, inner) if _has_vector(inner):
                return True
            case ParallelLoss(branches) if any(_has_vector(branch) for branch in branches):
                return True
    return False


@lru_cache(maxsize=256)
def _at_orders(law: LossLaw, orders: tuple[Fraction, ...]) -> Parts:
    """Return a law as its Renyi divergences of these orders, and its delta."""
    curve: list[tuple[Fraction, Fraction]] = []
    for order in orders:
        value = divergence_of_sum(((law, 1),), order)
        if value is None or value > _LARGEST_VALUE:
            break
        curve.append((order, value))
    delta = charge(((law, 1),)).delta
    leak: Parts = ((ApproximateLoss(Fraction(0), delta), 1),) if delta else ()
    if not curve or delta >= 1:
        raise TacitError(
            "no-guarantee",
            f"{words(law)} has no finite Renyi divergence here",
            why="its noise is too small for a guarantee",
            fix="add more noise",
        )
    if not curve[-1][1]:  # divergences rise with the order: apart from the leak, nothing is revealed
        return leak
    return canonical((*leak, (RenyiLoss(tuple(one for one in curve if one[1])), 1)))


def _undominated(options: list[Parts]) -> list[Parts]:
    kept: list[Parts] = []
    for option in dict.fromkeys(options):
        if not any(dominates(other, option) for other in kept):
            kept = [other for other in kept if not dominates(option, other)] + [option]
    return kept


def _envelope(options: list[Parts]) -> Parts:
    """Return one sum that dominates every option: by epsilon and delta, or else by rho and delta."""
    charges = [charge(option) for option in options]
    delta = max(one.delta for one in charges)
    leak: Parts = ((ApproximateLoss(Fraction(0), delta), 1),) if 0 < delta < 1 else ()
    epsilons = [one.epsilon for one in charges if one.epsilon is not None]
    rhos = [one.rho for one in charges if one.rho is not None]
    if len(epsilons) == len(charges) and delta < 1:
        return canonical((*leak, (PureLoss(max(epsilons)), 1)))
    if len(rhos) == len(charges) and delta < 1:
        return canonical((*leak, (ZCDPLoss(max(rhos)), 1)))
    raise _too_many()


def _too_many() -> TacitError:
    return TacitError(
        "no-guarantee",
        f"there are more than {_MOST} combinations of branches, and no single epsilon or rho covers them",
        why="a unit may take part in each of these combinations",
        fix="state branches with a finite rho or epsilon, or state one cost that covers them all",
    )
