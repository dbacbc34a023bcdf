"""Quadrature for numeric accounting: scalar products on one thread, exponential sums, and Gauss's rule.

Exponential sums at many frequencies are computed by two tables if they are small, and by an FFT if they are
large. Gauss's rule on panels has a certified error. With n points, the error on [-1, 1] is at most (64/15) M
r^(2-2n) / (1 - r^-2), where M is the largest modulus of the integrand on the ellipse with foci -1 and 1 whose
half-axes add up to r (Trefethen 2019, theorem 19.3).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.accounting.numeric._arithmetic import NotConverged, U

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from tacit.accounting.numeric._mgf import Complexes, Reals


_LONG = 8192  # BLAS starts its threads a bit above this length
_LARGE = 1 << 16  # products in one transform: beyond it, spread and FFT
_MAX_POINTS, _MAX_LOSSES = 1 << 18, 1 << 15
_HALF = 16
_MANY = 256  # losses
#: Nodes and weights with 16 points on [-1, 1], the positive half.
_GAUSS = np.array([
    (0.09501250983763744, 0.1894506104550685), (0.2816035507792589, 0.18260341504492358),
    (0.45801677765722737, 0.16915651939500254), (0.6178762444026438, 0.14959598881657674),
    (0.755404408355003, 0.12462897125553388), (0.8656312023878318, 0.09515851168249279),
    (0.9445750230732326, 0.062253523938647894), (0.9894009349916499, 0.027152459411754096),
])  # fmt: skip
_NODES = np.concatenate([-_GAUSS[::-1, 0], _GAUSS[:, 0]])
_WEIGHTS = np.concatenate([_GAUSS[::-1, 1], _GAUSS[:, 1]])
#: Logarithms of r of the ellipses on which integrands are bounded, one in each row.
ELLIPSES = np.array([0.8, 1.1, 1.5, 1.9])[:, None]
_FALL = np.log(64 / 15) - 2 * (len(_NODES) - 1) * ELLIPSES - np.log(-np.expm1(-2 * ELLIPSES))


def dot(vector: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the scalar product of two vectors.

    Long ones do not go through BLAS: its threads save a few microseconds, and wait for milliseconds if the
    machine is busy. The error bounds of all callers hold for sums in any order.
    """
    return float(vector @ other) if len(vector) <= _LONG else float(np.einsum("i,i", vector, other))


def transform(losses: Reals, weights: Reals, h: float, nodes: int) -> tuple[Complexes, Reals | float]:
    """Return sum_a weights[a] exp(i j h losses[a]), j = 0 .. nodes, and its error without that of the phases.

    Small sums: j = block * r + s splits the table of exponentials into two small tables and one matrix
    product; tables of many losses are powers of one row. Large sums: a Gaussian spreads each weight over a
    uniform grid, one FFT follows, and the Gaussian is divided out (Greengard and Lee 2004). The weights are
    positive and sum to one (proofs, section 3).
    """
    if nodes == 0:
        return np.ones(1, dtype=complex), len(losses) * U
    if nodes * len(losses) > _LARGE:
        return _spread_transform(losses, weights, h, nodes)
    block = max(1, math.isqrt(nodes + 1))
    rows = -(-(nodes + 1) // block)
    angles = h * losses
    if len(losses) > _MANY:
        fine, coarse = _powers(angles, block), _powers(block * angles, rows)
        coarse *= weights
        rough = 16 + 6.5 * (block + rows - 2)
    else:
        fine = np.exp(1j * np.multiply.outer(np.arange(block), angles))
        coarse, rough = np.exp(1j * np.multiply.outer(block * np.arange(rows), angles)) * weights, 32.0
    # Not by BLAS: at this size its threads cost more than they save.
    return np.einsum("ra,sa->rs", coarse, fine).ravel()[: nodes + 1], (len(losses) + rough) * U


def _powers(angles: Reals, rows: int) -> Complexes:
    """Return exp(i j angles), j = 0 .. rows - 1, as powers: the j-th row errs by at most 6.5 j U.

    Sine and cosine err by 4 U, and a product of complex numbers by the root of 5, times U.
    """
    powers = np.ones((rows, len(angles)), dtype=complex)
    if rows > 1:
        np.cos(angles, out=powers[1].real)
        np.sin(angles, out=powers[1].imag)
    for j in range(2, rows):
        np.multiply(powers[j - 1], powers[1], out=powers[j])
    return powers


def _spread_transform(losses: Reals, weights: Reals, h: float, nodes: int) -> tuple[Complexes, Reals]:
    """Return the same sum by spreading over 16 points on each side; the method error is below 1e-14."""
    points = 1 << (4 * nodes + 3).bit_length()  # at least 4 x the highest frequency
    if points > _MAX_POINTS or len(losses) > _MAX_LOSSES:
        raise NotConverged
    tau = _HALF * math.pi / (3 * (points / 2) ** 2)
    index = np.mod(h * losses, 2 * math.pi) * (points / (2 * math.pi))
    base = np.floor(index)
    offset = (index - base) * (2 * math.pi / points)
    where = base.astype(np.int64)
    grid = np.zeros(points)
    shifts = np.arange(1 - _HALF, _HALF + 1)
    for some in np.array_split(
        shifts, max(1, 2 * _HALF * len(losses) >> 20)
    ):  # at most a million weights at a time
        away = offset - some[:, None] * (2 * math.pi / points)
        nearest = (where + some[:, None]) % points
        grid += np.bincount(nearest.ravel(), (weights * np.exp(away * away * (-0.25 / tau))).ravel(), points)
    j = np.arange(nodes + 1)
    growth = np.exp(
        tau * j * j
    )  # dividing by the Gaussian enlarges the rounding errors of the grid and the FFT
    counts = np.bincount(where % points, minlength=points)
    ahead = np.cumsum(np.concatenate([counts, counts[: 4 * _HALF]]))  # a cell sums what lies within 16 cells
    window = ahead[4 * _HALF :] - ahead[:points]
    crowd = dot(weights, window[(where - 2 * _HALF) % points]) + dot(weights, counts[where % points])
    error = 1e-14 + 16 * U * j + growth * (U * (16 * math.log2(points) + crowd + 128))
    return np.fft.rfft(grid)[: nodes + 1].conj() * (growth * (math.sqrt(math.pi / tau) / points)), error


def gauss_rule(edges: Reals) -> tuple[Reals, Reals]:
    """Return the nodes and weights of the rule on the panels between the edges."""
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    return (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()


def gauss_log_error(logs: Reals, half: Reals) -> float:
    """Return the log of the error on all panels, of half-widths ``half``.

    ``logs`` bounds the log of the integrand on each ellipse (rows) of each panel; infinite where unknown.
    """
    best = (logs + _FALL).min(axis=0) + np.log(half)
    top = float(best.max())
    return top + math.log(float(np.exp(best - top).sum())) if math.isfinite(top) else math.inf
