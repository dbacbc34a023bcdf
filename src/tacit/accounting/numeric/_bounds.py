"""Numeric accounting's bounds on epsilon and delta for any sum of laws, by the accountant that fits it.

| content | accountant |
| --- | --- |
| Gaussian, GDP | closed form |
| one law, once | its own curve |
| randomized response, lattice noise; Laplace and bounded range if no part is smooth | lattice |
| sums with a Gaussian part, sampled Gaussians, many Laplace | Fourier inversion |
| losses without a common lattice or a smooth part | Fourier inversion, with a tiny Gaussian added |
| a part known only by rho or a Renyi curve; sums for which the others do not converge | Renyi divergences |

If the accountant of a sum cannot answer, another one is chosen. Infinite loss is kept apart: delta = m + (1 -
m) delta_rest. Both directions are read. Branches and groups are resolved before they come here. The proofs
are in docs/proofs/accounting.md.

Losses of bounded range are composed in blocks, whatever depends on answers. One loss of range epsilon is
largest at a threshold for two values, t and t - epsilon, and the t that is worst depends on the threshold.
Composing the law that is worst at *every* threshold is loose. A block of k such losses is read at once
instead: F_k(x), the largest delta at threshold x over all rules that choose each t by the earlier answers,
follows from F_(k-1) by one maximum over t. F_k is convex in exp(x), so upper values on a grid, joined by
straight lines, stay upper values, and on each line the maximum has a closed form. A block is then a finite
pair like any other. The proof is docs/proofs/accounting.md, section 6.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tacit.accounting._laws import (
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    GroupLoss,
    LaplaceLoss,
    LossLaw,
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
from tacit.accounting.numeric._accountants import (
    Accountant,
    DitheredAccountant,
    GaussianAccountant,
    LeakyAccountant,
    RenyiAccountant,
    SingleLawAccountant,
)
from tacit.accounting.numeric._arithmetic import Bracket, NotConverged, U, as_float, larger, root
from tacit.accounting.numeric._atoms import Atoms, connect_dots
from tacit.accounting.numeric._curve import Curve, both_sides, curve
from tacit.accounting.numeric._factors import Factors, factors_of
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._gaussian import SampledGaussianMgf, gaussian_tail
from tacit.accounting.numeric._lattice import (
    Pmf,
    are_few,
    can_snap,
    composed,
    convolved,
    lattice_accountant,
    listed_accountant,
    on_lattice,
    snapped_accountant,
    two_point_accountant,
)
from tacit.accounting.numeric._mgf import (
    DiscreteGaussianMgf,
    DiscreteLaplaceMgf,
    GaussianMgf,
    LaplaceMgf,
    LossSum,
    ResponseMgf,
    log_moment,
    peak,
    spread,
    steer,
)
from tacit.accounting.numeric._rare_losses import is_rare, rare_accountant
from tacit.accounting.numeric._sampled_laplace import SampledLaplaceMgf
from tacit.accounting.numeric._shuffled_lattice import shuffled_accountant
from tacit.accounting.numeric._small_samples import small_sample_accountant
from tacit.accounting.numeric._sum_facts import (
    can_be_infinite,
    exact_largest_loss,
    gaussian_mu2,
    largest_loss,
    plain,
    split_infinite_loss,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tacit.accounting.numeric._fourier import Spectrum
    from tacit.accounting.numeric._mgf import Reals


_WORK = 7e5  # cells^2 times size^1.5 of one block: about a tenth of a second
_CELLS = (32, 24, 16, 12, 8, 6)  # grid steps in one epsilon
_WIDTH = 11.5  # standard deviations on either side of the grid
_MIN_EPSILON, _MAX_EPSILON = 1e-6, 4.0  # epsilons: below, rounding matters; above, few losses are composed
_LOOSE = 0.06  # estimated excess from which the zCDP reading is better anyway
#: Pairs of probabilities without infinite loss; with a unit added, each is its own mirror image.
_PROPER = (
    DiscreteGaussianMgf, DiscreteLaplaceMgf, GaussianMgf, LaplaceMgf, ResponseMgf,
    SampledGaussianMgf, SampledLaplaceMgf,
)  # fmt: skip
_DITHERS = tuple(partial(DitheredAccountant, times=times) for times in (0.4, 1.5, 6.0, 36.0))
_FIRST = np.array([1e-9])  # a tilt at which the loss has about its own mean and spread
_NEARLY = 1.5  # difference of log-moments
_SPAN = np.exp(np.linspace(math.log(0.3), math.log(60.0), 16))  # tilts, times epsilon


class _Plan(NamedTuple):
    """How many losses make one block, how many blocks there are, and the grid steps in one epsilon."""

    size: int
    blocks: int
    cells: int


@lru_cache(maxsize=64)
def block_accountants(parts: Parts, *, add: int) -> tuple[Accountant, ...]:
    """Return accountants, the best first, for a sum in which one bounded-range law occurs at least twice.

    They read this law by blocks. Other laws keep their own pairs. Upper values only.
    """
    law, times = max(
        ((law, times) for law, times in parts if isinstance(law, BoundedRangeLoss)),
        key=lambda part: part[1] * part[0].epsilon ** 2,
    )
    plan = _plan(times)
    epsilon = as_float(law.epsilon) * (1 + 4 * U)
    if times < 2 or plan is None or not _MIN_EPSILON < epsilon < _MAX_EPSILON:
        raise NotConverged
    step, curves = _curves(epsilon, plan.size, plan.cells)
    last_size = times - (plan.blocks - 1) * plan.size
    sizes = {plan.size: plan.blocks - 1}
    sizes[last_size] = sizes.get(last_size, 0) + 1
    block_laws = [(_pmf(curves[size], step), often) for size, often in sizes.items() if often]
    leak = -math.expm1(sum(often * math.log1p(-leak) for (_, leak), often in block_laws)) * (1 + 64 * U)
    blocks = [(pmf, often) for (pmf, _), often in block_laws]
    others: list[tuple[LossLaw, int]] = [part for part in parts if part[0] != law]
    if others:
        return _blocks_with_others(blocks, tuple(others), leak, add=add)
    total = convolved(blocks, step) if plan.blocks == 1 else composed(blocks, step)
    return (LeakyAccountant(total, leak, exact=False),)


def _blocks_with_others(
    blocks: list[tuple[Pmf, int]], others: Parts, leak: float, *, add: int
) -> tuple[Accountant, ...]:
    factors = factors_of(others, add=add)
    atoms = [
        (Atoms(as_float(pmf.offset) + as_float(pmf.step) * kept, pmf.masses[kept], pmf.slack), often)
        for pmf, often in blocks
        for kept in [np.flatnonzero(pmf.masses)]
    ]
    loss_sum = LossSum((*factors.loss_sum.factors, *atoms))
    leak = (leak + factors.leak) * (1 + 4 * U)
    ways: list[Accountant] = [
        FourierInversion(loss_sum),
        *(DitheredAccountant(loss_sum, times) for times in (0.4, 6.0)),
    ]
    return tuple(LeakyAccountant(way, leak, exact=False) for way in ways)


def _plan(times: int) -> _Plan | None:
    """Choose size and grid by their estimated excess: 1/(2 cells^2), and 0.0035 for each further block."""
    best, plan = _LOOSE, None
    for cells in _CELLS:
        max_size = math.floor((_WORK / cells**2) ** (2 / 3))
        blocks = -(-times // max_size)
        excess = 0.5 / cells**2 + 0.0035 * (blocks - 1)
        if excess < best:
            best, plan = excess, _Plan(-(-times // blocks), blocks, cells)
    return plan


class _Grid(NamedTuple):
    """The thresholds j g for whole numbers j from -reach to reach, g = epsilon / cells."""

    epsilon: float
    cells: int
    reach: int

    def y(self, margin: int = 0) -> Reals:
        """Return exp(x) on the grid, with a margin of further points on both sides."""
        ends = self.reach + margin
        powers: Reals = np.exp(self.epsilon / self.cells * np.arange(-ends, ends + 1))
        return powers


@lru_cache(maxsize=16)
def _curves(epsilon: float, size: int, cells: int) -> tuple[Fraction, dict[int, Reals]]:
    """Return the grid step, and for each number of losses up to the size the upper values, around 0."""
    curves: dict[int, Reals] = {}
    values = np.array([1 - math.exp(-epsilon / cells), 0.0, 0.0])  # no loss at all, on three points
    for number in range(1, size + 1):
        reach = (_WIDTH * math.sqrt(number) / 2 + number * epsilon / 8 + 1) * cells
        grid = _Grid(epsilon, cells, min(math.ceil(reach), number * cells))
        values = _one_more(grid, _extended(values, grid))
        places = np.arange(-grid.reach, grid.reach + 1)
        values = np.minimum(np.where(places >= number * cells, 0.0, values), 1.0)
        curves[number] = values
    return Fraction(epsilon) / cells, curves


def _extended(values: Reals, grid: _Grid) -> Reals:
    """Continue upper values by one epsilon beyond the grid: on the left 1 - y and a bit, level on the right.

    F(y) - (1 - y) rises in y, because the slope of F is at least -1, and F itself falls.
    """
    y = grid.y(grid.cells)
    more = (len(y) - len(values)) // 2
    ahead = max(float(values[0] - (1 - y[more])), 0.0) + 4 * U
    return np.concatenate([1 - y[:more] + ahead, values, np.full(more, values[-1])])


def _one_more(grid: _Grid, before: Reals) -> Reals:
    """Return upper values for one more loss, the largest over t.

    Between two grid points F is at most a line a - b y. For t in one cell of the grid, r = exp(t) and E =
    exp(epsilon), (E - 1) times delta is C - alpha r - beta / r. With the lines (a0, b0) of the cell around
    x - t and (a1, b1) of the cell around x - t + epsilon, alpha = a0 - a1 and beta = E y (b0 - b1).
    """
    cells, g, e = grid.cells, grid.epsilon / grid.cells, math.exp(grid.epsilon)
    y, around = grid.y(), grid.y(cells)
    slopes = np.diff(before) / -np.diff(around)
    heads = sliding_window_view(before[:-1] + slopes * around[:-1], len(y))
    slopes = sliding_window_view(slopes, len(y))
    near_cells, far_cells = (
        slice(cells - 1, None, -1),
        slice(2 * cells - 1, cells - 1, -1),
    )  # cells of t from 0 upwards
    low, high = (np.exp(g * np.arange(first, cells + first))[:, None] for first in (0, 1))
    a0, b0, a1, b1 = heads[near_cells], slopes[near_cells] * y, heads[far_cells], slopes[far_cells] * (y * e)
    alpha, beta = a0 - a1, e * b0 - b1
    constant = e * a0 + b0 - a1 - b1
    # Of a convex function both are positive. Where rounding made one of them negative, the largest value is
    # at the end that the clipping finds; where it made both negative, it may be at the high end.
    r = np.clip(np.sqrt(np.maximum(beta, 0.0) / np.maximum(alpha, 1e-300)), low, high)
    largest: Reals = (constant - alpha * r - beta / r).max(axis=0)
    if ((alpha < 0) & (beta < 0)).any():
        largest = np.maximum(largest, (constant - alpha * high - beta / high).max(axis=0))
    rounding = (96 + 8 * g * grid.reach) * U * e * (heads[0] + slopes[0] * y)
    values_after: Reals = (largest + rounding) / (e - 1)
    return values_after


def _pmf(values: Reals, step: Fraction) -> tuple[Pmf, float]:
    """Return a finite pair above the upper values, on the grid, and its infinite loss."""
    first_index = -(len(values) // 2)
    grid = as_float(step) * (first_index + np.arange(len(values)))
    pair = connect_dots(Curve(lambda _: values, lambda _: values, grid[0], grid[-1]), grid)
    masses = np.zeros(len(values))
    masses[np.round((pair.losses - grid[0]) / as_float(step)).astype(int)] = pair.masses
    return Pmf(first_index * step, step, masses, 4 * U + pair.slack), pair.infinite


def best_bracket(
    parts: Parts, ask: Callable[[Accountant], Bracket], *, add: int, lower: bool = True
) -> Bracket:
    """Return the best bounds; families of mechanisms get their lower value from one of their members.

    Without `lower`, a family that is known by its moments gets none: the member would be read for nothing.
    """
    bracket = _first_bracket(parts, ask, add=add)
    if any(isinstance(law, BoundedRangeLoss) for law, _ in parts):
        known_parts = canonical(
            (ZCDPLoss(law.epsilon**2 / 8) if isinstance(law, BoundedRangeLoss) else law, k)
            for law, k in parts
        )
        for other in (_first_bracket(known_parts, ask, add=add), _by_blocks(parts, ask, add=add)):
            bracket = bracket if bracket.upper <= other.upper else other
    if not lower and bracket.method == "renyi":
        return bracket
    if any(isinstance(law, BoundedRangeLoss | ZCDPLoss | RenyiLoss) for law, _ in parts):
        member = canonical(pair for law, k in parts for pair in _member_of_family(law, k))
        lower_bound = _first_bracket(member, ask, add=add).lower if member else 0.0
        bracket = Bracket(min(lower_bound, bracket.upper), bracket.upper, bracket.method)
    return bracket


def mirrored_upper(parts: Parts, e: float) -> float:
    """Return an upper value of delta(e) if a unit is added, from what was computed for one removed.

    It is infinite if nothing at hand tells.
    """
    factors = factors_of(parts, add=0)
    if factors.leak or not all(isinstance(law, _PROPER) for law, _ in factors.loss_sum.factors):
        return math.inf
    for make in (small_sample_accountant, FourierInversion):
        if make in factors.kept:
            try:
                upper: float = factors.kept[make].mirrored(e)
            except NotConverged:
                continue
            return upper
    return math.inf


def upper_on_line(parts: Parts, e: float) -> float:
    """Return an upper value of delta(e) if a unit is added, on the line that served e if one is removed.

    The choice of the line is the only thing that is shared, and every line is valid. It is infinite if no
    line served.
    """
    if serving_line(parts, e) is None:
        return math.inf
    factors = factors_of(parts, add=1)
    if factors.leak:
        return math.inf
    if upper_on_line not in factors.kept:
        like = factors_of(parts, add=0).kept[FourierInversion]
        factors.kept[upper_on_line] = FourierInversion(factors.loss_sum, like=like)
    upper: float = factors.kept[upper_on_line].delta(e).upper
    return upper


def serving_line(parts: Parts, e: float) -> Spectrum | None:
    """Return the plain line that served e if a unit is removed; None if there is none."""
    factors = factors_of(parts, add=0)
    inversion: FourierInversion | None = factors.kept.get(FourierInversion)
    return None if inversion is None or factors.leak else inversion.served(e)


def _first_bracket(parts: Parts, ask: Callable[[Accountant], Bracket], *, add: int) -> Bracket:
    """Return the answer of the first accountant that has one."""
    for make in _candidates(parts, add=add):
        try:
            bracket = ask(make())
        except NotConverged:
            continue
        if bracket.lower <= bracket.upper:
            return bracket
    return Bracket(0.0, math.inf, "none")


def _by_blocks(parts: Parts, ask: Callable[[Accountant], Bracket], *, add: int) -> Bracket:
    """Return the upper value by blocks of a bounded-range law, if it is repeated."""
    if any(isinstance(law, ZCDPLoss | RenyiLoss) for law, _ in parts):
        return Bracket(0.0, math.inf, "none")
    try:
        accountants = block_accountants(parts, add=add)
    except NotConverged:
        return Bracket(0.0, math.inf, "none")
    for accountant in accountants:
        try:
            return ask(accountant)
        except NotConverged:
            continue
    return Bracket(0.0, math.inf, "none")


def _candidates(parts: Parts, *, add: int) -> Iterator[Callable[[], Accountant]]:
    """Yield builders of accountants, the best first, for parts without `ApproximateLoss`.

    The last one always answers.
    """
    if any(isinstance(law, ZCDPLoss | RenyiLoss) for law, _ in parts):
        yield lambda: _with_leak(RenyiAccountant, factors_of(parts, add=add))
        return
    mu2 = gaussian_mu2(parts)
    if mu2 is not None:
        yield lambda: GaussianAccountant(root(mu2))
        return
    if len(parts) == 1 and parts[0][1] == 1 and not isinstance(parts[0][0], DiscreteGaussianLoss):
        yield lambda: SingleLawAccountant(curve(parts[0][0], add=add))
    all_on_lattice = all(on_lattice(law) for law, _ in parts)
    smooth = any(isinstance(law, LaplaceLoss | BoundedRangeLoss) for law, _ in parts)
    if all_on_lattice and not smooth:
        yield lambda: lattice_accountant(parts)
    yield from _for_sampled_or_shuffled(parts, add=add)
    if can_snap(parts):
        yield lambda: snapped_accountant(parts)
    yield lambda: _with_leak(FourierInversion, factors_of(parts, add=add))
    yield lambda: _rare_loss_accountant(parts, add=add)
    if all_on_lattice and smooth:
        yield lambda: lattice_accountant(parts)
    finite = any(isinstance(law, SampledLoss | GroupLoss) for law, _ in parts)
    if finite:
        yield lambda: _with_leak(FourierInversion, factors_of(parts, add=add, finite=True))
    if all_on_lattice and smooth and are_few(parts):
        yield lambda: snapped_accountant(parts)
    for dither in _DITHERS:
        yield partial(_dithered, dither, parts, add, finite)
    yield lambda: _with_leak(RenyiAccountant, factors_of(parts, add=add))


def _for_sampled_or_shuffled(parts: Parts, *, add: int) -> Iterator[Callable[[], Accountant]]:
    """Yield builders of accountants for sums only sampled or only shuffled, or of few finite laws."""
    if all(isinstance(law, ShuffledLoss | ShuffledResponseLoss) for law, _ in parts):
        for coarser in (1.0, 4.0, 16.0):
            yield partial(shuffled_accountant, parts, coarser)
    if any(isinstance(law, SampledLoss | ShuffledLoss | ShuffledResponseLoss) for law, _ in parts):
        yield lambda: _with_leak(_finite_accountant, factors_of(parts, add=add))
    if len(parts) == 1 and isinstance(parts[0][0], SampledLoss):
        yield lambda: _with_leak(small_sample_accountant, factors_of(parts, add=add))


def _rare_loss_accountant(parts: Parts, *, add: int) -> Accountant:
    if not is_rare(parts):
        raise NotConverged
    return rare_accountant(parts, add=add)


def _dithered(dither: Callable[[LossSum], Accountant], parts: Parts, add: int, finite: bool) -> Accountant:  # noqa: FBT001
    return _with_leak(dither, factors_of(parts, add=add, finite=finite))


def _finite_accountant(loss_sum: LossSum) -> Accountant:
    """Return the accountant for few finite laws: their losses are listed."""
    laws = [(law, times) for law, times in loss_sum.factors if isinstance(law, Atoms)]
    if len(laws) < len(loss_sum.factors):
        raise NotConverged
    if len(laws) == 1 and len(laws[0][0].losses) == 2:
        return two_point_accountant(*laws[0])
    return listed_accountant(laws)


def _with_leak(accountant: Callable[[LossSum], Accountant], factors: Factors) -> Accountant:
    """Return the accountant for the factors; the part outside them is added as infinite loss."""
    if accountant not in factors.kept:
        factors.kept[accountant] = accountant(factors.loss_sum)
    inner: Accountant = factors.kept[accountant]
    return (
        inner if factors.exact and not factors.leak else LeakyAccountant(inner, factors.leak, factors.exact)
    )


def _member_of_family(law: LossLaw, times: int) -> list[tuple[LossLaw, int]]:
    """Return one member of the family of laws that a law stands for."""
    match law:
        case BoundedRangeLoss(epsilon):
            return [(RandomizedResponseLoss(epsilon / 2), times)]
        case ZCDPLoss(rho):
            return [(GaussianLoss(Fraction(1), Fraction(math.sqrt(as_float(2 * rho)) * (1 - 1e-12))), times)]
        case RenyiLoss():
            return []
    return [(law, times)]


def delta_bounds(parts: Parts, epsilon: float, *, lower: bool = True) -> Bracket:
    """Return certified bounds on delta at epsilon, the larger of both directions (`answer` has `lower`)."""
    worst = Bracket(0.0, 0.0, "closed form")
    for add in _directions(parts):
        mirror = _from_other_side(mirrored_upper, parts, epsilon, add=add)
        if mirror > worst.upper:
            mirror = min(mirror, _from_other_side(upper_on_line, parts, epsilon, add=add))
        if mirror <= worst.upper:
            continue
        bracket = delta_of(parts, epsilon, add=add, lower=lower)
        worst = larger(worst, bracket._replace(upper=min(bracket.upper, mirror)))
    return Bracket(min(worst.lower, worst.upper), worst.upper, worst.method)


def epsilon_bounds(parts: Parts, delta: float, *, lower: bool = True) -> Bracket:
    """Return certified bounds on the smallest epsilon >= 0 with delta(epsilon) <= delta, both directions."""
    worst = Bracket(0.0, 0.0, "closed form")
    for add in _directions(parts):
        if worst.upper == math.inf or (worst.upper > 0 and _covers(parts, worst.upper, delta, add=add)):
            continue
        worst = larger(worst, _epsilon(parts, delta, add=add, lower=lower))
    return Bracket(min(worst.lower, worst.upper), worst.upper, worst.method)


def loss_exceeds(parts: Parts, t: float) -> float:
    """Return an upper value of P(L > t) of the stated pairs, the larger of both directions."""
    return max(_tail(parts, t, add=add) for add in _directions(parts))


def renyi_divergence(parts: Parts, order: float) -> float:
    """Return an upper value of the Renyi divergence of this order, the larger of both directions."""
    if not order > 1 or can_be_infinite(parts):
        return math.inf
    worst = 0.0
    for add in _directions(parts):
        try:
            loss_sum, leak, *_ = factors_of(_bounded(plain(parts)), add=add, bounded=True)
            worst = max(
                worst, math.inf if leak else log_moment(loss_sum, order - 1) / (order - 1) * (1 + 8 * U)
            )
        except NotConverged:
            return math.inf
    return worst


def _bounded(parts: Parts) -> Parts:
    """Replace laws without moments by laws with moments that dominate them."""
    laws: list[tuple[LossLaw, int]] = []
    for law, times in parts:
        match law:
            case ShuffledLoss(_, epsilon):
                laws.append((PureLoss(epsilon), times))
            case ShuffledResponseLoss(_, epsilon, k):
                laws.append((CategoricalResponseLoss(epsilon, k), times))
            case SampledLoss(_, inner) if (
                not math.isfinite(largest_loss(plain(inner), add=False)) and gaussian_mu2(inner) is None
            ):
                laws.extend((one, times * often) for one, often in _bounded(plain(inner)))
            case _:
                laws.append((law, times))
    return canonical(laws)


def _directions(parts: Parts) -> tuple[int, ...]:
    """Return the directions to read (how many units are added); they differ only if a part is sampled."""
    units = max((law.m for law, _ in parts if isinstance(law, GroupLoss)), default=1)
    sampled = any(
        isinstance(law, GroupLoss) or (isinstance(law, SampledLoss) and law.q < 1) for law, _ in plain(parts)
    )
    return tuple(range(units + 1)) if sampled else (0,)


def delta_of(parts: Parts, e: float, *, add: int, lower: bool = True) -> Bracket:
    """Return bounds on delta at any real epsilon in one direction."""
    parts = plain(parts)
    add = add and len(_directions(parts)) > 1
    if e < 0:
        return both_sides(parts, e, add=add)
    rest, lowest, highest, good = split_infinite_loss(parts, add=add)
    if not rest or e >= largest_loss(rest, add=add):
        bracket = Bracket(0.0, 0.0, "closed form")
    else:
        bracket = best_bracket(rest, lambda accountant: accountant.delta(e), add=add, lower=lower)
    upper = min(1.0, bracket.upper)
    upper = min(1.0, (highest + (1 - highest) * upper) * (1 + 8 * U)) if highest else upper
    return Bracket(max(0.0, (lowest + good * bracket.lower) * (1 - 8 * U)), upper, bracket.method)


def _epsilon(parts: Parts, delta: float, *, add: int, lower: bool) -> Bracket:
    parts = plain(parts)
    rest, lowest, highest, good = split_infinite_loss(parts, add=add)
    if delta < highest:
        return Bracket(math.inf if delta < lowest else 0.0, math.inf, "closed form")
    sup = largest_loss(rest, add=add)
    target = (delta - highest) / (1 - highest) * (1 - 8 * U) if highest else delta
    if target <= 0 or not rest:
        return Bracket(0.0, sup, "basic composition" if rest else "closed form")
    bracket = best_bracket(rest, lambda accountant: accountant.epsilon(target), add=add, lower=lower)
    if highest:
        looser = (delta - lowest) / good * (1 + 8 * U) if good > 0 else 1.0
        low = 0.0
        if looser < 1:
            low = best_bracket(
                rest, lambda accountant: accountant.epsilon(looser), add=add, lower=lower
            ).lower
        bracket = Bracket(min(low, bracket.upper), bracket.upper, bracket.method)
    return Bracket(bracket.lower, sup, "basic composition") if sup < bracket.upper else bracket


def _covers(parts: Parts, e: float, delta: float, *, add: int) -> bool:
    """Return whether delta(e) <= delta in this direction: by what is known, or else by reading delta."""
    return (
        _from_other_side(mirrored_upper, parts, e, add=add) <= delta
        or _is_certified(parts, e, delta, add=add)
        or _from_other_side(upper_on_line, parts, e, add=add) <= delta
        or delta_of(parts, e, add=add, lower=False).upper <= delta
    )


def _from_other_side(reading: Callable[[Parts, float], float], parts: Parts, e: float, *, add: int) -> float:
    """Return an upper value of delta(e) if one unit is added, from the other direction; or infinity."""
    if add != 1 or any(isinstance(law, GroupLoss) for law, _ in parts) or can_be_infinite(parts):
        return math.inf
    try:
        return reading(plain(parts), e)
    except NotConverged:
        return math.inf


def _is_certified(parts: Parts, e: float, delta: float, *, add: int) -> bool:
    """Return whether Chernoff's bound alone certifies delta(e) <= delta."""
    rest, _, highest, _ = split_infinite_loss(plain(parts), add=add)
    try:
        loss_sum, leak, *_ = factors_of(rest, add=add)
        if not (loss_sum.factors and e > 1e-280):
            return False
        line = serving_line(rest, e) if add == 1 else None
        if line is not None and abs(log_moment(loss_sum, line.choice.c) - line.log_norm) < _NEARLY:
            return False  # both directions are nearly alike, and Chernoff's bound is too loose for that
        c, bound, width, normal = _best_tilt(loss_sum, _SPAN / e, e)
        if not bound < math.log(delta):
            if normal > math.log(delta):
                return False  # not even a normal loss of this spread is that unlikely
            c = _best_tilt(loss_sum, np.exp(np.linspace(-5.0, 9.0, 36)) / width, e)[0]
        exponent = log_moment(loss_sum, c) - c * e + peak(c)
    except NotConverged:
        return False
    bound = math.exp(min(0.0, exponent + 16 * U * (4 + abs(exponent) + c * e)))
    return highest + leak + bound <= delta * (1 - 1e-12)


def _best_tilt(loss_sum: LossSum, c: Reals, e: float) -> tuple[float, float, float, float]:
    """Return the c with the smallest Chernoff bound on delta(e), and about the logarithm of that bound.

    With them come the spread of the loss and the bound for a normal loss of this spread.
    """
    log_m, mean, bend = steer(loss_sum, np.concatenate([_FIRST, c]))
    bounds = log_m[1:] - c * e + c * np.log(c / (1 + c)) - np.log1p(c)
    at = int(np.where(np.isfinite(bounds), bounds, np.inf).argmin())
    width, away = math.sqrt(float(bend[0])) + 1e-150, max(e - float(mean[0]), 0.0)
    tilt = (away + math.hypot(away, 2 * width)) / 2 / width / width
    normal = tilt * (tilt * width * width / 2 - away) + peak(tilt) if 0 < tilt < 1e300 else -math.inf
    return float(c[at]), float(bounds[at]), width, normal


def _tail(parts: Parts, t: float, *, add: int) -> float:
    """Return an upper value of P(L > t) = delta(t) - delta'(t), by convexity in exp(t)."""
    parts = plain(parts)
    rest, _, highest, _ = split_infinite_loss(parts, add=add)
    if not rest:
        return min(1.0, highest + float(t < 0))
    top = exact_largest_loss(rest)
    if t >= largest_loss(rest, add=add) or (top is not None and Fraction(repr(t)) >= top):
        return min(1.0, highest)
    mu2 = gaussian_mu2(rest)
    finite = _slope_tail(rest, t, add=add) if mu2 is None else gaussian_tail(root(mu2), t)
    return min(1.0, (highest + (1 - highest) * finite) * (1 + 8 * U))


def _slope_tail(rest: Parts, t: float, *, add: int) -> float:
    if all(on_lattice(law) and not isinstance(law, LaplaceLoss | BoundedRangeLoss) for law, _ in rest):
        try:
            exact = lattice_accountant(rest).tail(t)
        except NotConverged:
            exact = None
        if exact is not None:
            return exact
    here = both_sides(rest, t, add=add)
    step = 1e-4 * spread(factors_of(rest, add=add).loss_sum)
    best = 1.0
    for _ in range(3):
        tail_left = both_sides(rest, t - step, add=add)
        best = min(best, here.upper + (tail_left.upper - here.lower) / -math.expm1(-step) * (1 + 16 * U))
        step *= 8
    return best
