"""The design of synthetic rows: which tables may be measured, and how the budget is shared. Public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.mechanisms import DiscreteGaussian, Exponential
from tacit.synth._junction_tree import tree_cells
from tacit.synth._model import model_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.mechanisms import AdaptiveTables
    from tacit.synth._model import Columns

MOST_CELLS = 2_000_000  # that a model, or a table, may have
KEPT_SHARE = Fraction(1, 5)  # of rho, for the tables that are kept
NOISE_L1 = math.sqrt(2 / math.pi)  # the mean of |noise|, in standard deviations
_ROUNDS = 16  # a round may first take one part in so many of rho, for each column


@dataclass(frozen=True, eq=False)
class SynthDesign:
    """What decides which steps are taken, apart from noisy results.

    Parameters
    ----------
    sizes
        How many places each column has.
    method
        ``"aim"``, ``"mst"`` or ``"tables"``.
    up_to
        The most columns of a table that counts: of the workload of AIM, or of the tables measured.
    size
        The most cells of the model.
    keep
        The tables that are measured first, whatever happens.
    zeros
        For some sets of columns, where nothing can be.
    """

    sizes: tuple[int, ...]
    method: str
    up_to: int
    size: int
    keep: tuple[Columns, ...] = ()
    zeros: Mapping[Columns, NDArray[np.bool_]] = field(default_factory=dict)

    def cells(self, columns: Columns) -> int:
        """Return how many cells a table has."""
        return math.prod(self.sizes[c] for c in columns)

    def fits(self, sets: list[Columns], share: float = 1.0) -> bool:
        """Return whether a model of these tables stays within a share of its size."""
        return tree_cells([*sets, *self.zeros], self.sizes) <= self.size * share

    @property
    def possible(self) -> bool:
        """Whether what was declared impossible fits into the model and leaves something."""
        return self.fits([], 4.0) and model_of({}, self.zeros, self.sizes, 1.0) is not None

    def workload(self) -> dict[Columns, int]:
        """Return the tables that may be chosen, each with its weight.

        The weight of a table is how many columns it shares with the wanted tables, summed over these: each
        of its columns is in equally many of them.

        Examples
        --------
        >>> SynthDesign((2, 3, 4), "aim", 2, 100).workload()[0, 1]  # shares 2 + 1 + 1 with the three pairs
        4
        """
        every = range(len(self.sizes))
        wide = min(self.up_to, len(self.sizes))
        each = math.comb(len(self.sizes) - 1, wide - 1)
        tables = [c for n in range(1, wide + 1) for c in combinations(every, n)]
        return {c: len(c) * each for c in tables if self.cells(c) <= self.size}

    @property
    def many_tables(self) -> int:
        """How many tables are measured or may be chosen, at most; counted without listing them."""
        wide = min(self.up_to, len(self.sizes))
        if self.method == "tables":
            return math.comb(len(self.sizes), wide)
        return sum(math.comb(len(self.sizes), n) for n in range(1, (2 if self.method == "mst" else wide) + 1))

    def all_tables(self) -> list[Columns]:
        """Return the tables of the method "tables": all of the widest kind, and those kept."""
        wide = min(self.up_to, len(self.sizes))
        made = [*combinations(range(len(self.sizes)), wide)]
        return [*made, *(c for c in self.keep if not any(set(c) <= set(one) for one in made))]

    def parts(self) -> int:
        """Return how many pairs of a table of the method "tables" and a set of its columns there are."""
        wide = min(self.up_to, len(self.sizes))
        return (math.comb(len(self.sizes), wide) << wide) + sum(1 << len(one) for one in self.keep)

    def certain(self, mechanism: AdaptiveTables) -> list[tuple[Columns, Fraction]]:
        """Return the tables that AIM and MST measure for certain, in their order, each with its sigma."""
        rho = mechanism.rho
        kept = [(c, mechanism.sigma_for(rho * KEPT_SHARE / len(self.keep))) for c in self.keep]
        sigma = mechanism.sigma_for(self.one_way_rho(mechanism))
        return [*kept, *(((i,), sigma) for i in range(len(self.sizes)) if (i,) not in self.keep)]

    def free_rho(self, mechanism: AdaptiveTables) -> Fraction:
        """Return the rho that is not reserved for the tables that are kept."""
        return mechanism.rho * (1 - KEPT_SHARE) if self.keep else mechanism.rho

    def one_way_rho(self, mechanism: AdaptiveTables) -> Fraction:
        """Return the rho of each column's own table."""
        free, columns = self.free_rho(mechanism), len(self.sizes)
        if columns == 1:
            return free
        return free / (3 * columns) if self.method == "mst" else self.round_rho(mechanism) * Fraction(9, 10)

    def round_rho(self, mechanism: AdaptiveTables) -> Fraction:
        """Return the rho of the first rounds of AIM."""
        return self.free_rho(mechanism) / (_ROUNDS * len(self.sizes))

    def choice_rho(self, mechanism: AdaptiveTables) -> Fraction:
        """Return the least rho of a choice; of MST, that of each choice."""
        if self.method == "mst":
            return self.free_rho(mechanism) / (3 * max(1, len(self.sizes) - 1))
        return self.round_rho(mechanism) / 10

    def check_noise(self, mechanism: AdaptiveTables) -> None:
        """Refuse a rho so small that the noise of some step cannot be drawn: before anything is charged."""
        for sigma in {sigma for _, sigma in self.certain(mechanism)}:
            DiscreteGaussian(sigma=sigma, sensitivity_squared=mechanism.moved_squared)
        weight = max(self.workload().values()) if self.method == "aim" else 1
        epsilon = mechanism.epsilon_for(self.choice_rho(mechanism))
        Exponential(epsilon, sensitivity=mechanism.moved * weight, grid=1)

    def to_json(self) -> dict[str, JSON]:
        """Return the design as JSON; impossible cells by their numbers."""
        return {
            "sizes": list(self.sizes),
            "method": self.method,
            "up_to": self.up_to,
            "size": self.size,
            "keep": [list(one) for one in self.keep],
            "never": [[list(c), np.flatnonzero(mask).tolist()] for c, mask in self.zeros.items()],
        }

    @classmethod
    def from_json(cls, document: Any) -> SynthDesign:
        """Read the design back; raises ``ValueError`` where it is not one."""
        sizes = tuple(_whole(one, 1) for one in document["sizes"])
        method, zeros = document["method"], {}
        if method not in {"aim", "mst", "tables"} or not sizes:
            raise ValueError("not a design")
        for written, cells in document["never"]:
            columns = columns_in(written, len(sizes))
            many = math.prod(sizes[c] for c in columns)
            places = [_whole(cell, 0) for cell in cells]
            if many > MOST_CELLS or not all(place < many for place in places):
                raise ValueError("not the cells of a table")
            mask = np.zeros(many, bool)
            mask[places] = True
            zeros[columns] = mask.reshape([sizes[c] for c in columns])
        keep = tuple(columns_in(one, len(sizes)) for one in document["keep"])
        up_to, size = _whole(document["up_to"], 1), _whole(document["size"], 1)
        made = cls(sizes, method, min(up_to, len(sizes)), size, keep, zeros)
        if size > MOST_CELLS or not made.possible:
            raise ValueError("not a design")
        return made


def columns_in(written: Any, many: int) -> Columns:
    """Read rising numbers of columns from a document."""
    columns = tuple(_whole(one, 0) for one in written)
    if not columns or list(columns) != sorted(set(columns)) or columns[-1] >= many:
        raise ValueError("not the columns of a table")
    return columns


def _whole(given: Any, least: int) -> int:
    if type(given) is not int or given < least:
        raise ValueError("not a whole number")
    return given


def subsets_of(columns: Columns, sizes: tuple[int, ...]) -> list[Columns]:
    """Return all subsets of the columns that have more than one place.

    Examples
    --------
    >>> subsets_of((0, 1), (2, 1))
    [(), (0,)]
    """
    wide = [c for c in columns if sizes[c] > 1]
    return [part for n in range(len(wide) + 1) for part in combinations(wide, n)]
