"""Ranges of an ordered column: workloads, and the strategies that answer them best.

A workload holds the ranges that are asked together. A strategy holds the whole-number sums of cells that are
measured, and says how to read them. The best measurements come with a certificate that they are the best.

W x are the questions about n cells x, and V = W^T W. Measurements A x with noise of the same size on each
answer them by least squares with the mean variance tr(V X^-1), X = A^T A; one row in cell i moves A x by
sqrt(X_ii). So the best measurements minimise tr(V X^-1) subject to X_ii <= 1. With D = diag(v) and
S = (D^1/2 V D^1/2)^1/2 the fixed point v = diag(S) is the optimum (Denisov et al. 2022), X = D^-1/2 S D^-1/2.
Every v gives two certified bounds: the upper one, tr(S) max(S_ii/v_i), is reached by X / max(X_ii); the lower
one, tr(S)^2 / sum(v), is the value of the dual. docs/proofs/ranges.md writes both out.
"""

from __future__ import annotations

import base64
import hashlib
import math
import zlib
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from tacit.parameters import Integer

if TYPE_CHECKING:
    from numpy.typing import NDArray


_SINGLE = 1e-3  # the weight of each cell by itself, beside given ranges
MOST_CELLS = 1024
_GAP = 1e-6  # between the bounds on the variance
_STEPS = 60
# Heavy-ball steps in log v. S is a root, so the map has slopes of 1/2 to about 0.9: what is left to go
# shrinks by the factor sqrt(_PULL) in each step. Fixed numbers, not fitted ones, keep rounding errors small.
_LARGEST, _SMALLEST = 0.5, 0.1
_BETA = 4 / (math.sqrt(_LARGEST) + math.sqrt(_SMALLEST)) ** 2
_PULL = ((math.sqrt(_LARGEST / _SMALLEST) - 1) / (math.sqrt(_LARGEST / _SMALLEST) + 1)) ** 2
_MIN_SCALE, _MAX_SCALE = 2**9, 2**20
_MAX_LOSS = 2e-4  # of the root mean square error, by rounding to whole numbers
_BRANCHINGS = (2, 3, 4, 6, 8, 10, 16)
_FEW_BRANCHINGS = (2, 4, 8, 16)
_MAX_ENTRY, _EXACT = (
    2**24,
    2**52,
)  # of an entry, so that 64 bits hold squared norms; of these, so that floats do
_MANY_CELLS = 300  # cells from which fewer branchings are tried


@dataclass(frozen=True, slots=True)
class Workload:
    """Ranges of cells 0 to n - 1 that are asked together.

    Parameters
    ----------
    cells
        How many cells there are.
    kind
        ``prefixes`` (the first cells, for each number of them), ``ranges`` (all of them) or ``given``.
    given
        Of given ranges: the first cell, the cell after the last one, and the weight of its variance. Every
        cell by itself is asked too, with a thousandth of the mean weight on a cell, so that each can be read.

    Examples
    --------
    >>> Workload(3, "ranges").gram().tolist()
    [[3.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 3.0]]
    >>> Workload(3, "prefixes").questions
    3
    """

    cells: int
    kind: Literal["prefixes", "ranges", "given"]
    given: tuple[tuple[int, int, float], ...] = ()

    def gram(self) -> NDArray[np.float64]:
        """Return V = W^T W: how often, by weight, two cells are in the same question."""
        n = self.cells
        if self.kind == "given":
            v = np.zeros((n, n))
            for start, end, weight in self.given:
                v[start:end, start:end] += weight
            return np.asarray(v + np.eye(n) * (_SINGLE * v.trace() / n))
        at = np.arange(n)
        after = n - np.maximum.outer(at, at).astype(np.float64)
        return after if self.kind == "prefixes" else (np.minimum.outer(at, at) + 1) * after

    @property
    def questions(self) -> float:
        """How many questions there are, by weight."""
        if self.kind == "given":
            return sum(weight for _, _, weight in self.given)
        return self.cells if self.kind == "prefixes" else self.cells * (self.cells + 1) / 2

    def asked(self) -> NDArray[np.int64]:
        """Return the questions, one for each line: first cell and the cell after the last one."""
        n = self.cells
        if self.kind == "given":
            return np.array([[start, end] for start, end, _ in self.given])
        if self.kind == "prefixes":
            return np.stack([np.zeros(n, np.int64), np.arange(1, n + 1)], axis=1)
        start, final = np.triu_indices(n)
        return np.stack([start, final + 1], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Factorisation:
    """The matrix X of the best measurements, and the bounds on the sum of variances that it certifies.

    Parameters
    ----------
    gram
        X, with a diagonal of at most 1.
    upper, lower
        tr(V X^-1), and a number that no other measurements can beat.
    """

    gram: NDArray[np.float64]
    upper: float
    lower: float


def factorise(workload: NDArray[np.float64], gap: float = _GAP) -> Factorisation:
    """Return the best measurements for the questions W, given V = W^T W.

    Parameters
    ----------
    workload
        V, symmetric and positive definite, with at most 1,024 rows.
    gap
        Stop when the upper bound is at most this part above the lower one.

    Examples
    --------
    >>> prefixes = np.tril(np.ones((4, 4)))
    >>> best = factorise(prefixes.T @ prefixes)
    >>> round((best.upper / 4) ** 0.5, 5), round((best.lower / 4) ** 0.5, 5)
    (1.31093, 1.31093)
    """
    Integer(1, MOST_CELLS).read("cells", len(workload))
    x = np.log(np.diag(workload)) / 2
    before = x
    best, lower = None, 0.0
    for _ in range(_STEPS):
        v, half = np.exp(x), np.exp(x / 2)
        powers, vectors = np.linalg.eigh(half[:, None] * workload * half)
        roots = np.sqrt(np.maximum(powers, 0.0))
        diagonal = (vectors**2) @ roots
        total, largest = roots.sum(), (diagonal / v).max()
        upper, lower = float(total * largest), float(total**2 / v.sum())
        if best is None or upper < best.upper:
            root = (vectors * roots) @ vectors.T
            best = Factorisation(
                root / (half[:, None] * half) / largest, upper, max(lower, getattr(best, "lower", 0))
            )
        if best.upper <= lower * (1 + gap):
            break
        way = np.log(diagonal / v)
        x, before = x + _BETA * (way - way.mean()) + _PULL * (x - before), x
    assert best is not None  # noqa: S101 - the first step makes one
    return replace(best, lower=max(best.lower, lower))


def whole_factor(best: Factorisation, workload: NDArray[np.float64]) -> tuple[NDArray[np.int64], int, float]:
    """Return whole-number measurements B = round(s A), s and what rounding loses of the error.

    A is the triangular factor of X. s is the smallest power of two at which the root mean square error of
    least squares with B, at the sensitivity of B itself, is less than 0.02 % above that of X.

    Examples
    --------
    >>> prefixes = np.tril(np.ones((4, 4)))
    >>> v = prefixes.T @ prefixes
    >>> matrix, scale, lost = whole_factor(factorise(v), v)
    >>> scale, lost < 2e-4, bool((matrix == np.triu(matrix)).all())
    (2048, True, True)
    """
    real = np.linalg.cholesky(best.gram).T
    scale = _MIN_SCALE
    while True:
        matrix = np.rint(scale * real)
        gram = matrix.T @ matrix
        inverse = np.linalg.inv(gram)
        lost = math.sqrt(gram.diagonal().max() * float((workload * inverse).sum()) / best.upper) - 1
        if lost < _MAX_LOSS or scale >= _MAX_SCALE:
            return matrix.astype(np.int64), scale, lost
        scale *= 2


@dataclass(frozen=True, eq=False, repr=False)
class RangeStrategy:
    """Whole-number measurements B of n ordered cells; estimates are least squares with B itself.

    Guarantee: `column_squared` and `column_sum` are those of the whole numbers that are measured, not of the
    real matrix from which they were rounded.

    Parameters
    ----------
    matrix
        B: one line for each measurement, one column for each cell; of full column rank.
    branching, levels
        Of a tree: how many blocks make a block, and how many levels there are; 0 for a factored strategy.
    scale, lost
        Of a factored one: what the real matrix was multiplied by, and what rounding costs of the error.
    """

    matrix: NDArray[np.int64]
    branching: int = 0
    levels: int = 0
    scale: int = 1
    lost: float = field(default=0.0)

    def __post_init__(self) -> None:
        small = self.matrix.size and -_MAX_ENTRY < self.matrix.min() <= self.matrix.max() < _MAX_ENTRY
        if not small or self.column_squared > _EXACT:
            raise ValueError("the whole numbers of a strategy are too large for exact norms")

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(self.matrix.shape[1])

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """B^T B; no partial sum exceeds the largest squared norm of a column, so the entries are exact."""
        real = self.matrix.astype(np.float64)
        return np.asarray(real.T @ real)

    @cached_property
    def column_squared(self) -> int:
        """The largest squared norm of a column: how far one row moves the measurements, squared."""
        return int((self.matrix**2).sum(axis=0).max())

    @cached_property
    def column_sum(self) -> int:
        """The largest sum of absolute values of a column."""
        return int(np.abs(self.matrix).sum(axis=0).max())

    @cached_property
    def move_squared(self) -> int:
        """The largest squared distance of two columns: one row that goes from one cell to another."""
        diagonal = self.gram.diagonal()
        return int((diagonal[:, None] + diagonal - 2 * self.gram).max())

    @cached_property
    def move_sum(self) -> int:
        """The largest sum of absolute differences of two columns."""
        columns = self.matrix.T
        return max(int(np.abs(columns - one).sum(axis=1).max()) for one in columns)

    @cached_property
    def inverse(self) -> NDArray[np.float64]:
        """The matrix that reads cells off measurements: (B^T B)^-1 B^T."""
        real = self.matrix.astype(np.float64)
        if real.shape[0] == real.shape[1]:
            return np.asarray(np.linalg.inv(real))
        return np.asarray(np.linalg.solve(self.gram, real.T))

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """The weights of the measurements in the first 0, 1, ..., n cells together."""
        return np.concatenate([np.zeros((1, len(self.matrix))), np.cumsum(self.inverse, axis=0)])

    def mean_variance(self, workload: Workload) -> float:
        """Return the mean variance of the questions where the noise on each measurement has variance 1."""
        spread = np.linalg.inv(self.gram)
        return float((workload.gram() * spread).sum()) / workload.questions

    def weights(self, first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of the measurements in ranges of cells, from a first one to before an end."""
        return np.asarray(self.sums[end] - self.sums[first])

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the whole numbers; it is part of a plan's identity."""
        shape = f"{self.matrix.shape}".encode()
        return hashlib.sha256(shape + self.matrix.astype("<i8").tobytes()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the strategy as a release stores it: a tree by its shape, another one with its numbers."""
        if self.levels:
            return {"cells": self.cells, "branching": self.branching, "levels": self.levels}
        upper = self.matrix[np.triu_indices(self.cells)].astype("<i4").tobytes()
        packed = base64.b64encode(zlib.compress(upper, 9)).decode()
        return {"cells": self.cells, "scale": self.scale, "lost": self.lost, "triangle": packed}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the strategy back; raises ``ValueError`` where it is not one."""
        n = document["cells"]
        if type(n) is not int or not 0 < n <= MOST_CELLS:
            raise ValueError("not a strategy")
        if "triangle" not in document:
            branching, levels = document["branching"], document["levels"]
            if not (type(branching) is type(levels) is int and branching >= 2 and 1 <= levels <= 10):
                raise ValueError("not a strategy")
            return cls(_tree(n, branching, levels), branching, levels)
        size = 4 * (n * (n + 1) // 2)
        unpacking = zlib.decompressobj()
        packed = base64.b64decode(document["triangle"], validate=True)
        try:
            matrix_bytes = unpacking.decompress(packed, size)
        except zlib.error as error:
            raise ValueError("not a strategy") from error
        if len(matrix_bytes) != size:
            raise ValueError("not a strategy")
        matrix = np.zeros((n, n), np.int64)
        matrix[np.triu_indices(n)] = np.frombuffer(matrix_bytes, "<i4")
        if (matrix.diagonal() == 0).any():
            raise ValueError("not a strategy")
        return cls(matrix, scale=int(document["scale"]), lost=float(document["lost"]))

    def describe(self) -> str:
        """Return the strategy in a few words."""
        if self.levels == 1:
            return "each cell by itself"
        if self.levels:
            return f"sums in a tree of {self.levels} levels, {self.branching} to a block"
        return "the optimal factorisation in whole numbers"

    def __repr__(self) -> str:
        return f"RangeStrategy({self.describe()}; {self.cells} cells, {len(self.matrix)} measurements)"


@lru_cache(maxsize=32)
def factored(workload: Workload) -> RangeStrategy:
    """Return the best strategy for a workload with Gaussian noise, in whole numbers.

    Examples
    --------
    >>> import math
    >>> from tacit.strategies import Workload
    >>> work = Workload(16, "prefixes")
    >>> best = factored(work)
    >>> round(math.sqrt(best.mean_variance(work) * best.column_squared), 3), best.lost < 0.001
    (1.69, True)
    """
    v = workload.gram()
    matrix, scale, lost = whole_factor(factorise(v), v)
    return RangeStrategy(matrix, scale=scale, lost=lost)


@lru_cache(maxsize=32)
def tree_of_cells(cells: int, branching: int, levels: int) -> RangeStrategy:
    """Return sums of single cells, of blocks of them, of blocks of blocks; one level is the cells alone.

    Examples
    --------
    >>> tree_of_cells(4, 2, 2).matrix.tolist()
    [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
    """
    return RangeStrategy(_tree(cells, branching, levels), branching, levels)


def _tree(cells: int, branching: int, levels: int) -> NDArray[np.int64]:
    blocks = [np.arange(cells) // branching**level for level in range(levels)]
    return np.concatenate([(at == np.arange(at[-1] + 1)[:, None]).astype(np.int64) for at in blocks])


def trees_for(cells: int) -> list[RangeStrategy]:
    """Return the trees that are worth trying: cells alone, and of each branching the tallest two."""
    shapes = {(2, 1)}
    for branching in _BRANCHINGS if cells <= _MANY_CELLS else _FEW_BRANCHINGS:
        tallest = 1
        while branching**tallest < cells:
            tallest += 1
        shapes |= {(branching, levels) for levels in (tallest, tallest + 1) if levels > 1}
    return [tree_of_cells(cells, *shape) for shape in sorted(shapes)]
