"""Losses with finitely many values in numeric accounting: moment generating functions, and finite pairs.

A finite pair dominates a curve of delta. Straight lines in exp(epsilon) join the upper values of the curve on
a grid. Delta is convex in exp(epsilon), so the lines lie above it (Doroshenko et al. 2022). The proof is
docs/proofs/accounting.md, section 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting.numeric._arithmetic import NotConverged, U
from tacit.accounting.numeric._mgf import MgfLine, SplitLine, no_decay
from tacit.accounting.numeric._quadrature import dot, transform

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tacit.accounting.numeric._curve import Curve
    from tacit.accounting.numeric._mgf import Reals


_MAX_STEERED = 512  # points of a lattice law that steers the search
_LARGEST = 700.0  # the exponential of more overflows a double


@dataclass(frozen=True, slots=True)
class Atoms:
    """Finitely many losses with their P-masses, each with a relative error of at most ``slack``."""

    losses: Reals
    masses: Reals
    slack: float = 4 * U

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        exponents = np.multiply.outer(c, self.losses) + np.log(self.masses)
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        weights /= total[:, None]
        mean = weights @ self.losses
        return top + np.log(total), mean, np.maximum(weights @ self.losses**2 - mean**2, 0.0)

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        exponents = c * self.losses + np.log(self.masses)
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        slip = self.slack + 4 * U * (
            4 + dot(weights, np.abs(exponents)) + c * dot(weights, np.abs(self.losses))
        )
        phase = 6 * U * h * np.arange(nodes + 1) * dot(weights, np.abs(self.losses))
        phi, rough = transform(self.losses, weights, h, nodes)
        error = rough + 2 * slip + phase
        norm_error = slip + len(self.losses) * U + 4 * U * (abs(top) + 1)
        return MgfLine(top + math.log(total), norm_error, phi, error)

    def split(self, c: float, h: float, nodes: int, level: float) -> SplitLine:
        """Return M in two parts, for losses below and above the level."""
        line = self.line(c, h, nodes)
        exponents = c * self.losses + np.log(self.masses)
        weights = np.exp(exponents - line.log_norm)
        parts = []
        for side in (self.losses <= level, self.losses > level):
            share = float(weights[side].sum())
            if not share > 0:
                raise NotConverged
            phi, rough = transform(self.losses[side], weights[side] / share, h, nodes)
            size = dot(weights[side], np.abs(self.losses[side])) / share
            slip = self.slack + 4 * U * (8 + dot(weights[side], np.abs(exponents[side])) / share + c * size)
            error = rough + 4 * slip + 6 * U * h * np.arange(nodes + 1) * size
            parts.append((share * phi, share * (error + line.norm_error), share))
        (bulk, bulk_error, _), (rest, rest_error, share) = parts
        return SplitLine(line.log_norm, line.norm_error, bulk, bulk_error, rest, rest_error, share)

    def common(self, level: float) -> Atoms:
        """Return the losses below the level, of mass below one."""
        some = self.losses <= level
        return Atoms(self.losses[some], self.masses[some], self.slack)

    def log_bulk(self, c: float, level: float) -> float:
        """Return an upper value of the logarithm of the moment of the losses below the level."""
        some = self.losses <= level
        exponents = c * self.losses[some] + np.log(self.masses[some])
        top = float(exponents.max())
        return top + math.log(float(np.exp(exponents - top).sum())) + 1e-9 * (1 + abs(top))

    def bulk_decay(self, _: float, __: float) -> Callable[[float], float]:
        return no_decay

    def decay(self, _: float) -> Callable[[float], float]:
        return no_decay


@dataclass(frozen=True, slots=True)
class LatticeAtoms:
    """Losses offset + i * stride * step; one FFT gives the nodes of one period of the lattice."""

    offset: float
    step: float
    stride: int
    masses: Reals
    slack: float

    def _atoms(self) -> Atoms:
        support = np.flatnonzero(self.masses)
        return Atoms(self.offset + self.step * self.stride * support, self.masses[support], self.slack)

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        """Return the cumulants; of neighbours taken together, if there are many points."""
        few = -(-len(self.masses) // _MAX_STEERED)
        if few == 1:
            return self._atoms().cumulants(c)
        masses = np.pad(self.masses, (0, -len(self.masses) % few)).reshape(-1, few).sum(axis=1)
        support = np.flatnonzero(masses)
        losses = self.offset + self.step * self.stride * (few * support + (few - 1) / 2)
        return Atoms(losses, masses[support], self.slack).cumulants(c)

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        if nodes * len(self.masses) < 1 << 14:
            return self._atoms().line(c, h, nodes)
        points = round(2 * math.pi / (h * self.step))
        support = np.flatnonzero(self.masses)
        rises = self.step * self.stride * support
        exponents = c * rises + np.log(self.masses[support])
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        t = h * np.arange(nodes + 1)
        first_index = round(self.offset / self.step)
        is_integer_offset = abs(self.offset - first_index * self.step) <= 4 * U * abs(self.offset)
        folded = np.bincount(
            (support * self.stride + (first_index if is_integer_offset else 0)) % points, weights, points
        )
        phi = np.fft.rfft(folded)[: nodes + 1].conj()
        if not is_integer_offset:  # the offset turns the phases by itself
            phi *= np.exp(1j * t * self.offset)
        size = dot(weights, rises)
        slip = self.slack + 4 * U * (4 + dot(weights, np.abs(exponents)) + c * size)
        error = (
            2 * slip
            + U * (16 * math.log2(points) + len(support) + 16)
            + 8 * U * t * (size + abs(self.offset))
        )
        norm_error = slip + len(support) * U + 4 * U * (abs(top) + c * abs(self.offset) + 1)
        return MgfLine(top + math.log(total) + c * self.offset, norm_error, phi, error)

    def decay(self, _: float) -> Callable[[float], float]:
        return no_decay


class FinitePair(NamedTuple):
    """A finite pair that dominates a curve: losses, P-masses, how much they were raised, infinite loss."""

    losses: Reals
    masses: Reals
    slack: float
    infinite: float


def connect_dots(curve: Curve, grid: Reals) -> FinitePair:
    """Return a pair whose delta is at least the curve's, from its upper values on an increasing grid."""
    if not np.abs(grid).max() < _LARGEST:
        raise NotConverged
    x = np.concatenate([[-1.0], np.expm1(grid)])  # exp(epsilon) - 1 keeps the digits of tiny losses
    y = np.concatenate([[1.0], np.clip(curve.upper(grid), 0.0, 1.0)])
    if not np.isfinite(y).all():
        raise NotConverged
    keep = _hull(x, y)  # the hull of upper values of a convex curve lies above the curve, and is convex
    x, y = x[keep], y[keep]
    ratios = 1 + x[1:]
    masses = ratios * np.diff(np.append(np.minimum(np.diff(y) / np.diff(x), 0.0), 0.0))
    # Make up for rounding: delta of the pair on the grid is an accurate sum of positive terms.
    beyond = np.append(np.cumsum((masses / ratios)[::-1])[::-1][1:], 0.0)  # Q-mass above each point
    steps = beyond * np.append(np.diff(x[1:]), 0.0)
    reached = y[-1] + np.cumsum(steps[::-1])[::-1]
    positive = y[1:] > 0
    good = masses > 0
    if not good.any() or not (reached[positive] > 0).all():  # all that is left lies below the smallest float
        raise NotConverged
    short = float(np.max(y[1:][positive] / reached[positive], initial=1.0))
    raised = max(1.0, short) * (1 + 4 * len(x) * U)
    losses = grid[keep[1:] - 1]
    return FinitePair(losses[good], raised * masses[good], 2 * (raised - 1), float(y[-1]))


def _hull(x: Reals, y: Reals) -> NDArray[np.integer[Any]]:
    """Return the corners of the lower convex hull of points with increasing x.

    A point on or above the line between its neighbours is not a corner, so all such points go at once. What
    is left after some rounds is walked from left to right.
    """
    indices = np.arange(len(x))
    for _ in range(24):
        dx, dy = np.diff(x[indices]), np.diff(y[indices])
        bent = np.concatenate([[True], dy[:-1] * dx[1:] < dy[1:] * dx[:-1], [True]])
        if bent.all():
            return indices
        indices = indices[bent]
    return indices[_walked(x[indices], y[indices])]


def _walked(x: Reals, y: Reals) -> list[int]:
    keep = [0]
    for i in range(1, len(x)):
        while len(keep) > 1:
            a, b = keep[-2], keep[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            keep.pop()
        keep.append(i)
    return keep
