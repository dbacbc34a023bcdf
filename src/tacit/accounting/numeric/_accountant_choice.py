"""The choice of a numeric accountant for a sum of laws, and of another where the first cannot answer."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from tacit.accounting._laws import (
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    GroupLoss,
    LaplaceLoss,
    LossLaw,
    Parts,
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
from tacit.accounting.numeric._atoms import Atoms
from tacit.accounting.numeric._bracket import Bracket, NotConverged, as_float, root
from tacit.accounting.numeric._curve import curve
from tacit.accounting.numeric._factors import Factors, factors_of
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._lattice import lattice_accountant, listed_accountant, two_point_accountant
from tacit.accounting.numeric._lattice_laws import on_lattice
from tacit.accounting.numeric._mgf import (
    DiscreteGaussianMgf,
    DiscreteLaplaceMgf,
    GaussianMgf,
    LaplaceMgf,
    ResponseMgf,
)
from tacit.accounting.numeric._range_blocks import block_accountants
from tacit.accounting.numeric._rare_lattice import is_rare, rare_accountant
from tacit.accounting.numeric._sampled_gaussian import SampledGaussianMgf
from tacit.accounting.numeric._sampled_laplace import SampledLaplaceMgf
from tacit.accounting.numeric._shuffled_lattice import shuffled_accountant
from tacit.accounting.numeric._small_samples import small_sample_accountant
from tacit.accounting.numeric._snapped import are_few, can_snap, snapped_accountant
from tacit.accounting.numeric._sum_facts import gaussian_mu2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tacit.accounting.numeric._fourier_line import Spectrum
    from tacit.accounting.numeric._loss_sum import LossSum

#: Pairs of probabilities without infinite loss; with a unit added, each is its own mirror image.
_PROPER = (
    DiscreteGaussianMgf, DiscreteLaplaceMgf, GaussianMgf, LaplaceMgf, ResponseMgf,
    SampledGaussianMgf, SampledLaplaceMgf,
)  # fmt: skip

_DITHERS = tuple(partial(DitheredAccountant, times=times) for times in (0.4, 1.5, 6.0, 36.0))


def answer(parts: Parts, ask: Callable[[Accountant], Bracket], *, add: int, lower: bool = True) -> Bracket:
    """Return the best bounds; families of mechanisms get their lower value from one of their members.

    Without `lower`, a family that is known by its moments gets none: the member would be read for nothing.
    """
    found = _first(parts, ask, add=add)
    if any(isinstance(law, BoundedRangeLoss) for law, _ in parts):
        known = canonical(
            (ZCDPLoss(law.epsilon**2 / 8) if isinstance(law, BoundedRangeLoss) else law, k)
            for law, k in parts
        )
        for other in (_first(known, ask, add=add), _by_blocks(parts, ask, add=add)):
            found = found if found.upper <= other.upper else other
    if not lower and found.method == "renyi":
        return found
    if any(isinstance(law, BoundedRangeLoss | ZCDPLoss | RenyiLoss) for law, _ in parts):
        member = canonical(pair for law, k in parts for pair in _member(law, k))
        least = _first(member, ask, add=add).lower if member else 0.0
        found = Bracket(min(least, found.upper), found.upper, found.method)
    return found


def mirrored(parts: Parts, e: float) -> float:
    """Return an upper value of delta(e) if a unit is added, from what was computed for one removed.

    It is infinite if nothing at hand tells.
    """
    found = factors_of(parts, add=0)
    if found.leak or not all(isinstance(law, _PROPER) for law, _ in found.loss_sum.factors):
        return math.inf
    for make in (small_sample_accountant, FourierInversion):
        if make in found.kept:
            try:
                upper: float = found.kept[make].mirrored(e)
            except NotConverged:
                continue
            return upper
    return math.inf


def alike(parts: Parts, e: float) -> float:
    """Return an upper value of delta(e) if a unit is added, on the line that served e if one is removed.

    The choice of the line is the only thing that is shared, and every line is valid. It is infinite if no
    line served.
    """
    if served(parts, e) is None:
        return math.inf
    found = factors_of(parts, add=1)
    if found.leak:
        return math.inf
    if alike not in found.kept:
        like = factors_of(parts, add=0).kept[FourierInversion]
        found.kept[alike] = FourierInversion(found.loss_sum, like=like)
    upper: float = found.kept[alike].delta(e).upper
    return upper


def served(parts: Parts, e: float) -> Spectrum | None:
    """Return the plain line that served e if a unit is removed; None if there is none."""
    found = factors_of(parts, add=0)
    inversion: FourierInversion | None = found.kept.get(FourierInversion)
    return None if inversion is None or found.leak else inversion.served(e)


def _first(parts: Parts, ask: Callable[[Accountant], Bracket], *, add: int) -> Bracket:
    """Return the answer of the first accountant that has one."""
    for make in _candidates(parts, add=add):
        try:
            found = ask(make())
        except NotConverged:
            continue
        if found.lower <= found.upper:
            return found
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
        yield lambda: _on(RenyiAccountant, factors_of(parts, add=add))
        return
    mu2 = gaussian_mu2(parts)
    if mu2 is not None:
        yield lambda: GaussianAccountant(root(mu2))
        return
    if len(parts) == 1 and parts[0][1] == 1 and not isinstance(parts[0][0], DiscreteGaussianLoss):
        yield lambda: SingleLawAccountant(curve(parts[0][0], add=add))
    whole = all(on_lattice(law) for law, _ in parts)
    smooth = any(isinstance(law, LaplaceLoss | BoundedRangeLoss) for law, _ in parts)
    if whole and not smooth:
        yield lambda: lattice_accountant(parts)
    yield from _for_sampled_or_shuffled(parts, add=add)
    if can_snap(parts):
        yield lambda: snapped_accountant(parts)
    yield lambda: _on(FourierInversion, factors_of(parts, add=add))
    yield lambda: _rare(parts, add=add)
    if whole and smooth:
        yield lambda: lattice_accountant(parts)
    finite = any(isinstance(law, SampledLoss | GroupLoss) for law, _ in parts)
    if finite:
        yield lambda: _on(FourierInversion, factors_of(parts, add=add, finite=True))
    if whole and smooth and are_few(parts):
        yield lambda: snapped_accountant(parts)
    for dither in _DITHERS:
        yield partial(_dithered, dither, parts, add, finite)
    yield lambda: _on(RenyiAccountant, factors_of(parts, add=add))


def _for_sampled_or_shuffled(parts: Parts, *, add: int) -> Iterator[Callable[[], Accountant]]:
    """Yield builders of accountants for sums only sampled or only shuffled, or of few finite laws."""
    if all(isinstance(law, ShuffledLoss | ShuffledResponseLoss) for law, _ in parts):
        for coarser in (1.0, 4.0, 16.0):
            yield partial(shuffled_accountant, parts, coarser)
    if any(isinstance(law, SampledLoss | ShuffledLoss | ShuffledResponseLoss) for law, _ in parts):
        yield lambda: _on(_listed, factors_of(parts, add=add))
    if len(parts) == 1 and isinstance(parts[0][0], SampledLoss):
        yield lambda: _on(small_sample_accountant, factors_of(parts, add=add))


def _rare(parts: Parts, *, add: int) -> Accountant:
    if not is_rare(parts):
        raise NotConverged
    return rare_accountant(parts, add=add)


def _dithered(dither: Callable[[LossSum], Accountant], parts: Parts, add: int, finite: bool) -> Accountant:  # noqa: FBT001
    return _on(dither, factors_of(parts, add=add, finite=finite))


def _listed(loss_sum: LossSum) -> Accountant:
    """Return the accountant for few finite laws: their losses are listed."""
    laws = [(law, times) for law, times in loss_sum.factors if isinstance(law, Atoms)]
    if len(laws) < len(loss_sum.factors):
        raise NotConverged
    if len(laws) == 1 and len(laws[0][0].losses) == 2:
        return two_point_accountant(*laws[0])
    return listed_accountant(laws)


def _on(accountant: Callable[[LossSum], Accountant], found: Factors) -> Accountant:
    """Return the accountant for the factors; the part outside them is added as infinite loss."""
    if accountant not in found.kept:
        found.kept[accountant] = accountant(found.loss_sum)
    inner: Accountant = found.kept[accountant]
    return inner if found.exact and not found.leak else LeakyAccountant(inner, found.leak, found.exact)


def _member(law: LossLaw, times: int) -> list[tuple[LossLaw, int]]:
    """Return one member of the family of laws that a law stands for."""
    match law:
        case BoundedRangeLoss(epsilon):
            return [(RandomizedResponseLoss(epsilon / 2), times)]
        case ZCDPLoss(rho):
            return [(GaussianLoss(Fraction(1), Fraction(math.sqrt(as_float(2 * rho)) * (1 - 1e-12))), times)]
        case RenyiLoss():
            return []
    return [(law, times)]
