"""Strategies of an ordered column: the whole-number sums of cells that are measured, and how to read them."""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tacit.strategies._factorisation import MOST_CELLS, factorise, whole_factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.strategies._workloads import Workload

_BRANCHINGS = (2, 3, 4, 6, 8, 10, 16)
_FEW = (2, 4, 8, 16)
_LARGEST, _EXACT = (
    2**24,
    2**52,
)  # of an entry, so that 64 bits hold squared norms; of these, so that floats do
_MANY = 300  # cells from which fewer branchings are tried


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
        small = self.matrix.size and -_LARGEST < self.matrix.min() <= self.matrix.max() < _LARGEST
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
        own = self.gram.diagonal()
        return int((own[:, None] + own - 2 * self.gram).max())

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
            held = unpacking.decompress(packed, size)
        except zlib.error as error:
            raise ValueError("not a strategy") from error
        if len(held) != size:
            raise ValueError("not a strategy")
        matrix = np.zeros((n, n), np.int64)
        matrix[np.triu_indices(n)] = np.frombuffer(held, "<i4")
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
    for branching in _BRANCHINGS if cells <= _MANY else _FEW:
        tallest = 1
        while branching**tallest < cells:
            tallest += 1
        shapes |= {(branching, levels) for levels in (tallest, tallest + 1) if levels > 1}
    return [tree_of_cells(cells, *shape) for shape in sorted(shapes)]
