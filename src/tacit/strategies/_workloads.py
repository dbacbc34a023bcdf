"""Workloads: the ranges of an ordered column that are asked together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SINGLE = 1e-3  # the weight of each cell by itself, beside given ranges


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
            for first, end, weight in self.given:
                v[first:end, first:end] += weight
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
            return np.array([[first, end] for first, end, _ in self.given])
        if self.kind == "prefixes":
            return np.stack([np.zeros(n, np.int64), np.arange(1, n + 1)], axis=1)
        first, last = np.triu_indices(n)
        return np.stack([first, last + 1], axis=1)
