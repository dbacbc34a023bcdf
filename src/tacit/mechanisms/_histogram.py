"""The histogram mechanism: counts per public cell."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.mechanisms._aggregates import counting_noise
from tacit.mechanisms._input_rows import collected, rows_of
from tacit.mechanisms._mechanism import exactly_one, read_adjacency
from tacit.mechanisms._roots import square_root_up
from tacit.mechanisms._row_mechanism import Noised
from tacit.parameters import Listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency
    from tacit.mechanisms._discrete_gaussian import DiscreteGaussian
    from tacit.mechanisms._discrete_laplace import DiscreteLaplace


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Histogram(Noised):
    """The number of rows in each public cell, plus integer noise on every cell, empty ones included.

    Guarantee: one row is in at most one cell. Added or removed, it moves one count by 1: sensitivity 1 over
    the whole histogram. Replaced, it moves two: 2 in L1, sqrt(2) in L2. Cells are public. A row that fits
    none of them is not counted.

    Parameters
    ----------
    epsilon
        Discrete Laplace noise; with `delta`, or with `rho` instead, discrete Gaussian noise.
    categories
        The public values, one cell each; or give `edges`.
    edges
        Public increasing cut points e0 < e1 < ... < em: cells [e0, e1), ..., [e(m-1), em], the last one
        closed.
    adjacency
        ``"add/remove"`` or ``"replace"``.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Histogram(epsilon=1, categories=["A", "B", "AB", "0"])
    >>> m.release(["A", "0", "0", "B", "unknown"]).shape
    (4,)
    >>> tc.mechanisms.Histogram(epsilon=1, edges=[0, 18, 65, 120], adjacency="replace").noise.sensitivity
    Fraction(2, 1)
    """

    categories: tuple[Any, ...] | None
    edges: tuple[Fraction, ...] | None
    adjacency: Adjacency
    noise: DiscreteLaplace | DiscreteGaussian  # type: ignore[assignment]

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        categories: Sequence[Any] | None = None,
        edges: Sequence[Number] | None = None,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        near = read_adjacency(adjacency)
        labels, cuts = None, None
        if exactly_one(categories=categories, edges=edges) == "categories":
            labels = tuple(
                Listed("values", '["A", "B"]', different=True).read("categories", tuple(categories or ()))
            )
        else:
            example = Set(edges=[0, 18, 65, 120])
            cuts = tuple(
                rational("an edge", edge, zero=True, negative=True, fix=example) for edge in edges or ()
            )
            if len(cuts) < 2 or any(a >= b for a, b in itertools.pairwise(cuts)):
                raise bad_parameter("edges", "increasing, at least two", edges, fix=example)
        pure = delta is None and rho is None
        moved = 1 if near == "add/remove" else 2 if pure else square_root_up(Fraction(2))
        added = counting_noise(moved, epsilon=epsilon, delta=delta, rho=rho, adjacency=near)
        for name, value in (("categories", labels), ("edges", cuts), ("adjacency", near), ("noise", added)):
            object.__setattr__(self, name, value)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.categories) if self.categories is not None else len(self.edges or ()) - 1

    def exact(self, value: Any) -> NDArray[np.int64]:
        """Return the exact counts: private."""
        if self.categories is not None:
            place = {label: cell for cell, label in enumerate(self.categories)}
            rows = value.tolist() if isinstance(value, np.ndarray) else collected(value)
            found = np.array([_cell(place, one) for one in rows], dtype=np.int64)
        else:
            numbers = rows_of(value)
            cuts = np.array([float(edge) for edge in self.edges or ()])
            found = np.searchsorted(cuts, numbers, side="right") - 1
            found = np.where(numbers == cuts[-1], len(cuts) - 2, found)
            found = np.where(np.isnan(numbers) | (numbers > cuts[-1]), -1, found)
        return np.bincount(found[found >= 0], minlength=self.cells).astype(np.int64)

    def release(self, value: Any) -> NDArray[np.int64]:
        """Return the noisy count of every cell; negative counts are not an error (see `truncate`)."""
        return np.asarray(self.noise.release(self.exact(value)))

    def error(self, confidence: Number, *, together: bool = False) -> float:
        """Return the half-width that the noise of one cell (or of all cells together) stays within."""
        return self.noise.error(confidence, size=self.cells, together=together)

    @property
    def worst_pair(self) -> tuple[list[Any], list[Any]]:
        """Nobody and one person; or one person in one cell and in another."""
        first, last = self._example(0), self._example(self.cells - 1)
        return ([], [first]) if self.adjacency == "add/remove" else ([first], [last])

    def _example(self, cell: int) -> Any:
        return self.categories[cell] if self.categories is not None else float((self.edges or ())[cell])

    def __repr__(self) -> str:
        return f"Histogram({self.cells} cells, {self.adjacency}; {self.noise!r})"


def _cell(place: dict[Any, int], one: Any) -> int:
    """Return the cell of a row, or -1: whatever a row raises when it is looked up, it is in no cell."""
    try:
        return place.get(one, -1)
    except Exception:  # noqa: BLE001 - nothing may raise on a row
        return -1
