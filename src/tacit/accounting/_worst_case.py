"""The worst case of a cost over units in accounting: certified bounds, the largest over all branches.

Numeric accounting reads sums without branches and groups. So branches are written out first, as all sums of
laws in which one unit may take part (a unit is in one of them), and groups become statements about m units.
Every step only enlarges the bound (`docs/proofs/costs.md`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING

from tacit.accounting import numeric
from tacit.accounting._algebra import can_sample, dominates
from tacit.accounting._charge import ORDERS, charge
from tacit.accounting._display import words
from tacit.accounting._laws import (
    ApproximateLoss,
    BestOfLoss,
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
    canonical,
)
from tacit.accounting._renyi_curve import divergence_of_sum
from tacit.accounting.numeric import Bracket, float_down, float_up
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_MAX_SUMS = 64
_WHOLE = tuple(Fraction(k) for k in (*range(2, 65), 80, 96, 128, 192, 256, 384, 512))
_PARABOLAS = 5  # between the points of a miss rate
_LARGEST_VALUE = 1000  # a Renyi divergence that guarantees nothing
_STATED = (
    GaussianLoss
    | LaplaceLoss
    | DiscreteLaplaceLoss
    | DiscreteGaussianLoss
    | RandomizedResponseLoss
    | CategoricalResponseLoss
)
_WITH_CURVE = SampledLoss | ShuffledLoss | ShuffledResponseLoss | BestOfLoss
_UP = 1 + 1e-13  # covers the few roundings of this module


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
        if ways > 1 and size * ways > _MAX_SUMS:
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
            sums_of_branches = [sums_without_branches(branch, every=every) for branch in branches]
            options = [one for sums, _ in sums_of_branches for one in sums]
            exact = all(exact for _, exact in sums_of_branches)
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
    options_left: list[Parts] = []
    for option in dict.fromkeys(options):
        if not any(dominates(other, option) for other in options_left):
            options_left = [other for other in options_left if not dominates(option, other)] + [option]
    return options_left


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
        f"there are more than {_MAX_SUMS} combinations of branches, and no single epsilon or rho covers them",
        why="a unit may take part in each of these combinations",
        fix="state branches with a finite rho or epsilon, or state one cost that covers them all",
    )


@lru_cache(maxsize=4096)
def delta_bounds(parts: Parts, epsilon: Fraction, *, lower: bool = False) -> Bracket:
    """Return certified bounds on delta at epsilon, the largest over branches and directions.

    The lower one may be 0 where nobody asks for it.
    """
    sums, exact = sums_without_branches(parts)
    brackets = [_delta_of_sum(one, float_down(epsilon), lower=lower) for one in sums]
    upper = charge(parts)
    if upper.epsilon is not None and upper.epsilon <= epsilon:
        cap = float_up(upper.delta)
        brackets = [Bracket(min(one.lower, cap), min(one.upper, cap), one.method) for one in brackets]
    bracket = _largest(brackets, exact=exact)
    if not epsilon and upper.rho is not None and (cap := _distance(upper.rho, upper.delta)) < bracket.upper:
        return Bracket(min(bracket.lower, cap), cap, "Pinsker")
    return bracket


def _distance(rho: Fraction, delta: Fraction) -> float:
    """Return an upper value of the total variation of rho-zCDP, except with probability delta.

    The Kullback-Leibler divergence is at most rho: Pinsker's inequality, or Bretagnolle's and Huber's.
    """
    distance = min(math.sqrt(float_up(rho / 2)), math.sqrt(-math.expm1(-float_up(rho))))
    return min(1.0, float_up(delta) + distance * _UP)


@lru_cache(maxsize=4096)
def epsilon_bounds(parts: Parts, delta: Fraction, *, lower: bool = False) -> Bracket:
    """Return certified bounds on epsilon at delta, the largest over branches and directions.

    The lower one may be 0 where nobody asks for it.
    """
    sums, exact = sums_without_branches(parts)
    brackets = [_epsilon_of_sum(one, float_down(delta), lower=lower) for one in sums]
    if exact and sums == (parts,) and not _may_cap(parts, brackets[0].upper):
        return brackets[0]
    upper = charge(parts)
    if upper.epsilon is not None and upper.delta <= delta:
        cap = float_up(upper.epsilon)
        brackets = [Bracket(min(one.lower, cap), min(one.upper, cap), one.method) for one in brackets]
    return _largest(brackets, exact=exact)


def _may_cap(parts: Parts, epsilon: float) -> bool:
    """Return whether the sum of the largest losses may be below epsilon; if not, nobody needs to round it."""
    if any(_is_unbounded(law) for law, _ in parts):
        return False
    if has_group(parts):
        return True
    largest = numeric.largest_loss(parts, add=0)
    return not epsilon < largest * (1 - 1e-9) < math.inf


def _is_unbounded(law: LossLaw) -> bool:
    """Return whether a law has no largest loss."""
    if isinstance(law, SampledLoss):
        return any(_is_unbounded(inner) for inner, _ in law.parts)
    return isinstance(law, GaussianLoss | DiscreteGaussianLoss | GDPLoss)


@lru_cache(maxsize=4096)
def loss_exceeds(parts: Parts, level: Fraction) -> float:
    """Return an upper value of P(L > t): of the stated pair, or of all pairs that the law admits.

    A law that is known only by what dominates it (`PureLoss`, `ZCDPLoss`, ...) determines no more than
    delta(epsilon). There P(L > t) <= delta(e) / (1 - exp(e - t)) for every e < t (Markov's inequality).
    Domination does not order P(L > t), so every combination of branches is read.
    """
    worst, t = 0.0, float_down(level)
    for parts_of_unit in sums_without_branches(parts, every=True)[0]:
        worst = max(
            worst,
            numeric.loss_exceeds(parts_of_unit, t)
            if _is_stated(parts_of_unit)
            else _dominated_loss(parts_of_unit, t),
        )
    return min(1.0, worst)


@lru_cache(maxsize=4096)
def renyi_divergence(parts: Parts, order: float) -> float:
    """Return an upper value of a Renyi divergence, the largest over branches and directions."""
    divergence = max(
        (
            min((numeric.renyi_divergence(way, order) for way in _with_moments(one)), default=math.inf)
            for one in sums_without_branches(parts)[0]
        ),
        default=0.0,
    )
    if divergence == 0 or charge(parts).delta or not any(isinstance(law, _WITH_CURVE) for law, _ in parts):
        return divergence
    charged = divergence_of_sum(parts, Fraction(repr(order)))  # the curve that a ledger charges
    return divergence if charged is None else min(divergence, float_up(charged))


def _largest(brackets: list[Bracket], *, exact: bool) -> Bracket:
    if not brackets:
        return Bracket(0.0, 0.0, "closed form")
    top = max(brackets, key=lambda one: one.upper)
    return Bracket(max(bracket.lower for bracket in brackets) if exact else 0.0, top.upper, top.method)


def _delta_of_sum(parts: Parts, epsilon: float, *, lower: bool = False) -> Bracket:
    if not has_group(parts):
        return numeric.delta_bounds(parts, epsilon, lower=lower)
    tight = _in_samples(parts)
    if tight is not None:
        bracket = numeric.delta_bounds(tight, epsilon)
        if bracket.method != "renyi":
            return bracket
    upper = min(
        (numeric.delta_bounds(way, epsilon).upper for way in _sums_without_groups(parts, epsilon)),
        default=1.0,
    )
    return Bracket(0.0, upper, "group")


def _epsilon_of_sum(parts: Parts, delta: float, *, lower: bool) -> Bracket:
    if not has_group(parts):
        return _sharpened(parts, delta, numeric.epsilon_bounds(parts, delta, lower=lower))
    tight = _in_samples(parts)
    if tight is not None:
        bracket = numeric.epsilon_bounds(tight, delta)
        if bracket.method != "renyi":
            return bracket
    low, high = 0.0, 1.0
    while _delta_of_sum(parts, high).upper > delta:
        low, high = high, 2 * high
        if high > 1e6:
            return Bracket(0.0, math.inf, "group")
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _delta_of_sum(parts, middle).upper <= delta else (middle, high)
    return Bracket(0.0, high, "group")


def _sharpened(parts: Parts, delta: float, bracket: Bracket) -> Bracket:
    """Narrow the bounds on epsilon by reading delta, if they are further apart than a millionth."""
    low, high = bracket.lower, bracket.upper
    if bracket.method in {"renyi", "rare losses"} or not (math.isfinite(high) and high - low > 1e-6 * high):
        return bracket
    certain, method = low, bracket.method
    step, failed = 1e-6, False
    below = high * (1 - step)
    for _ in range(40):
        bracket_below = numeric.delta_bounds(parts, below)
        if bracket_below.upper <= delta:
            high, method, step = below, bracket_below.method, 8 * step
        else:
            low, failed = below, True
        if bracket_below.lower >= delta:
            certain = max(certain, below)
        if high - low <= 1e-6 * high:
            break
        middle = (low + high) / 2  # but first by growing steps: epsilons nearby are quick to read
        below = middle if failed else max(middle, high * (1 - step))
    return Bracket(min(certain, high), high, method)


def has_group(parts: Parts) -> bool:
    """Return whether a part, or a part that is sampled, is a group without a law of its own."""
    return any(
        isinstance(law, GroupLoss) or (isinstance(law, SampledLoss) and has_group(law.parts))
        for law, _ in parts
    )


def _in_samples(parts: Parts) -> Parts | None:
    """Return the parts with groups of one size, each in one sampled Gaussian; None if there are others.

    A group of m units is then m removed or added units, in any share, and the share is the same everywhere.
    """
    single: list[tuple[LossLaw, int]] = []
    for law, times in parts:
        if isinstance(law, GroupLoss):
            single.extend((GroupLoss(law.m, ((inner, 1),)), k * times) for inner, k in law.parts)
        else:
            single.append((law, times))
    sizes = {law.m for law, _ in single if isinstance(law, GroupLoss)}
    if len(sizes) != 1 or any(
        isinstance(law, SampledLoss) or (isinstance(law, GroupLoss) and not numeric.in_one_sample(law))
        for law, _ in single
    ):
        return None
    return canonical(single)


def _sums_without_groups(parts: Parts, epsilon: float) -> Iterator[Parts]:
    """Yield sums without groups that dominate the given sum: groups become epsilon, delta or rho."""
    yield from _known_by_one_number(parts)
    for share in (1.0, 0.75, 0.5, 0.25, 0.125):
        way = _without_groups(parts, share * epsilon)
        if way is not None:
            yield way


def _without_groups(parts: Parts, epsilon: float) -> Parts | None:
    """Replace all groups by statements that share this epsilon; None if one of them has delta 1."""
    laws: list[tuple[LossLaw, int]] = []
    hard: dict[int, list[tuple[LossLaw, int]]] = {}
    for law, times in parts:
        if isinstance(law, GroupLoss):
            hard.setdefault(law.m, []).extend((inner, k * times) for inner, k in law.parts)
        elif isinstance(law, SampledLoss) and has_group(law.parts):
            inside = _without_groups(law.parts, math.log1p(math.expm1(min(epsilon, 600.0)) / float(law.q)))
            if inside is None:
                return None
            laws.append((SampledLoss(law.q, inside), times))
        else:
            laws.append((law, times))
    for m, inner in hard.items():
        stated = _grouped_at(m, canonical(inner), epsilon / len(hard))
        if stated is None:
            return None
        laws.append((stated, 1))
    return canonical(laws)


def _grouped_at(m: int, inner: Parts, epsilon: float) -> LossLaw | None:
    """Return (epsilon, delta) for m units, delta(epsilon/m) (1 + e^(epsilon/m) + ...), if below 1."""
    delta_of_one = delta_bounds(inner, Fraction(repr(epsilon)) / m).upper
    steps = math.fsum(math.exp(min(700.0, j * epsilon / m)) for j in range(m)) if m <= 1000 else math.inf
    delta = delta_of_one * steps * _UP if delta_of_one else 0.0
    if delta >= 1 or not math.isfinite(delta):
        return None
    exact = Fraction(repr(epsilon))
    if delta == 0:
        return PureLoss(exact) if exact else None
    return ApproximateLoss(exact, Fraction(repr(max(delta, 1e-300))))


def _known_by_one_number(parts: Parts) -> Iterator[Parts]:
    """Yield the parts with every group replaced by its epsilon, and by its rho, if they are finite."""
    if not has_group(parts):
        yield parts
        return
    for by_rho in (False, True):
        replaced: list[tuple[LossLaw, int]] = []
        for law, times in parts:
            if not has_group(((law, times),)):
                replaced.append((law, times))
                continue
            upper = charge(((law, 1),))
            value = upper.rho if by_rho else upper.epsilon
            if value is None or upper.delta >= 1:
                break
            if upper.delta:
                replaced.append((ApproximateLoss(Fraction(0), upper.delta), times))
            replaced.append((ZCDPLoss(value) if by_rho else PureLoss(value), times))
        else:
            yield canonical(replaced)


def _with_moments(parts: Parts) -> Iterator[Parts]:
    """Yield sums with Renyi divergences that dominate the given sum."""
    yield from _known_by_one_number(parts)
    tight = _in_samples(parts) if has_group(parts) else None
    if tight is not None:
        yield tight


def _is_stated(parts: Parts) -> bool:
    """Return whether the parts name one pair of distributions, not a family dominated by a pair."""
    return all(
        isinstance(law, _STATED) or (isinstance(law, SampledLoss) and _is_stated(law.parts))
        for law, _ in parts
    )


def _dominated_loss(parts: Parts, t: float) -> float:
    best = 1.0
    upper = charge(parts)
    tries = [t - x for x in (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 8.0)]
    if upper.epsilon is not None and upper.delta == 0:
        if Fraction(repr(t)) >= upper.epsilon:
            return 0.0
        tries.append(-float_up(upper.epsilon))
    for e in tries:
        if e >= t:
            continue
        delta = _delta_of_sum(parts, abs(e)).upper
        if e < 0:  # H_g(P, Q) = 1 - g + g H_1/g(Q, P)
            delta = -math.expm1(e) + math.exp(e) * delta
        best = min(best, delta / -math.expm1(e - t) * _UP)
    return best


def miss_rate(parts: Parts, alpha: float) -> float:
    """Return the smallest miss rate of any attacker whose false-alarm rate is at most alpha, rounded down."""

    def room(epsilon: float) -> float:
        return 1 - delta_bounds(parts, Fraction(repr(epsilon))).upper

    epsilons = _epsilons(parts)
    best = max(
        _peak(lambda epsilon: room(epsilon) - math.exp(epsilon) * alpha, epsilons),
        _peak(lambda epsilon: math.exp(-epsilon) * (room(epsilon) - alpha), epsilons),
    )
    return max(0.0, best - 1e-13)


def _peak(value: Callable[[float], float], points: list[float]) -> float:
    """Return the largest value of a function with one peak: at rising points, and between by parabolas.

    Delta is convex in e^epsilon, so both bounds on a miss rate have one peak. Every value is a bound, so a
    peak that is missed only makes the bound weaker.
    """
    values = [value(point) for point in points]
    peak = min(max(values.index(max(values)), 1), len(points) - 2)
    known = list(zip(points, values, strict=True))[peak - 1 : peak + 2]
    for _ in range(_PARABOLAS):
        (a, at_a), (b, at_b), (c, at_c) = known
        left, right = (b - a) * (at_b - at_c), (b - c) * (at_b - at_a)
        if left == right:
            break
        vertex = b - ((b - a) * left - (b - c) * right) / (2 * (left - right))
        if not a < vertex < c or vertex == b:
            break
        known = sorted([*known, (vertex, value(vertex))])
        highest = max(range(1, 3), key=lambda i: known[i][1])
        known = known[highest - 1 : highest + 2]
    return max([*values, *(at for _, at in known)])


def _epsilons(parts: Parts) -> list[float]:
    """Return epsilons at which to read the curve: up to the pure epsilon, or until delta is negligible."""
    upper = charge(parts)
    if upper.epsilon is not None:
        highest = float_up(upper.epsilon)
    else:
        highest = epsilon_bounds(parts, max(Fraction(1, 10**9), 2 * upper.delta)).upper
    highest = min(highest, 700.0)
    return [highest * step / 32 for step in range(33)]
