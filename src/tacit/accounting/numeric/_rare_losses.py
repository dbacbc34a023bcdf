"""Rare losses in numeric accounting: without common losses in the sum, rounding does not hide the result.

If delta is far below Chernoff's bound, most of M(z)^k belongs to compositions of common losses only. They add
up to less than epsilon and contribute nothing. In the sum over the line they cancel, and only their rounding
errors remain. Let M = B + R, where B holds the losses roughly below a level. Then ``M^k - B^k`` is again the
transform of a positive measure (compositions with at least one rare loss), so every statement on aliases
holds for it, and Chernoff's bound covers ``B^k``. The proof is docs/proofs/accounting.md, section 3.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting.numeric._atoms import Atoms
from tacit.accounting.numeric._bracket import U
from tacit.accounting.numeric._loss_sum import peak
from tacit.accounting.numeric._sampled_gaussian import SampledGaussianMgf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.accounting.numeric._mgf import Complexes, Factor, Reals

_LEVELS = (0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.02, 0.01)
_VISIBLE = (0.5, 0.35, 0.25, 0.15)
_TILTS = (1.3, 1.7, 2.5, 4.0, 6.0, 10.0, 16.0, 25.0, 40.0, 65.0, 100.0, 160.0, 250.0, 400.0)


class LossCut(NamedTuple):
    """Which factor is split where; the common part adds at most exp(log_bulk - tilt * e) to delta(e)."""

    which: int
    level: float
    tilt: float
    log_bulk: float


def choose_cut(
    factors: tuple[tuple[Factor, int], ...], e: float, c: float, period: float, log_delta: float
) -> LossCut | None:
    """Return the highest cut whose common part provably adds less than 1e-7 of delta near e, or None."""
    able = _able(factors, e, c)
    if able is None:
        return None
    which, law, times = able
    others = [pair for i, pair in enumerate(factors) if i != which]
    rest = {tilt: _log_moment(others, c * tilt) for tilt in _TILTS}
    for share in _LEVELS:
        level = share * e
        if not _cuts(law, level):
            continue
        for tilt, other in rest.items():
            z = c * tilt
            log = times * law.log_bulk(z, level) + other + peak(z) - math.log(-math.expm1(-(z - c) * period))
            if log - z * e * (1 - 8 * U) + 1e-6 < log_delta - 16:
                return LossCut(which, level, z, log + 1e-6 * (1 + abs(log) * 1e-6))
    return None


def visible_cuts(
    factors: tuple[tuple[Factor, int], ...], e: float, c: float, period: float
) -> Iterator[LossCut]:
    """Yield cuts whose common part may matter at e: its delta has a line of its own; bound its aliases."""
    able = _able(factors, e, c)
    if able is None:
        return
    which, law, times = able
    others = [pair for i, pair in enumerate(factors) if i != which]
    for share in _VISIBLE:
        level = share * e
        if not _cuts(law, level):
            continue
        found = []
        for tilt in _TILTS:
            z = c * tilt
            log = times * law.log_bulk(z, level) + _log_moment(others, z) + peak(z)
            found.append((log - z * e - (z - c) * period, z, log - math.log(-math.expm1(-(z - c) * period))))
        _, z, log = min(found)
        yield LossCut(which, level, z, log + 1e-6 * (1 + abs(log) * 1e-6))


def _able(
    factors: tuple[tuple[Factor, int], ...], e: float, c: float
) -> tuple[int, Atoms | SampledGaussianMgf, int] | None:
    """Return the factor that can be split here, if there is exactly one."""
    able = [i for i, (law, _) in enumerate(factors) if isinstance(law, Atoms | SampledGaussianMgf)]
    if len(able) != 1 or e <= 0:
        return None
    law, times = factors[able[0]]
    if not isinstance(law, Atoms | SampledGaussianMgf) or (
        isinstance(law, SampledGaussianMgf) and (law.add or (c + 1) * law.q > 5)
    ):
        return None
    return able[0], law, times


def _cuts(law: Atoms | SampledGaussianMgf, level: float) -> bool:
    """Return whether there are losses on both sides of the level."""
    if isinstance(law, Atoms):
        return bool(law.losses[0] < level < law.losses[-1])
    return law.cut(level) > 1


def splittable(factor: Factor) -> Atoms | SampledGaussianMgf:
    """Return a factor that can be split into common and rare losses; raise TypeError for others."""
    if isinstance(factor, Atoms | SampledGaussianMgf):
        return factor
    raise TypeError(type(factor).__name__)


def _log_moment(factors: list[tuple[Factor, int]], c: float) -> float:
    total = 0.0
    for factor, times in factors:
        line = factor.line(c, 0.0, 0)
        total += times * (line.log_norm + line.norm_error + 8 * U * abs(line.log_norm))
    return total


def difference(bulk: Complexes, rest: Complexes, k: int) -> Complexes:
    """Return (bulk + rest)^k - bulk^k without cancellation."""
    safe = np.where(np.abs(bulk) < 1e-150, 1e-150, bulk)
    ratio = rest / safe
    near = np.abs(ratio) < 0.3
    s = np.where(near, ratio / (2 + ratio), 0.0)
    logs = np.zeros_like(s)
    for n in range(25, 0, -2):  # log(1 + r) = 2 (s + s^3/3 + ...), |s| < 0.18
        logs = logs * s * s + 2.0 / n
    raised = k * logs * s
    with np.errstate(over="ignore", invalid="ignore"):
        inner = np.exp(k * np.log(safe)) * np.expm1(raised)
        whole = np.where(np.abs(bulk + rest) < 1e-150, 1e-150, bulk + rest)
        plain = np.exp(k * np.log(whole)) - np.exp(k * np.log(safe))
    found: Complexes = np.where(near, inner, plain)
    return found


def difference_bound(bulk: Reals, rest: Reals, k: int) -> Reals:
    """Return (bulk + rest)^k - bulk^k for non-negative numbers."""
    with np.errstate(divide="ignore", over="ignore"):
        found: Reals = np.exp(k * np.log(np.maximum(bulk, 1e-150))) * np.expm1(
            np.minimum(k * np.log1p(rest / np.maximum(bulk, 1e-150)), 600.0)
        )
    return found
