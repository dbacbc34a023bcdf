"""Genotypes in an array of people x variants: NumPy, nested lists, or anything with a shape and slices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.genomes._blocks import MISSING, GenotypeBlock, GenotypeSource, pack
from tacit.genomes._sites import SiteList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class ArrayGenotypes(GenotypeSource):
    """An array of people x variants: 0, 1 or 2 copies of the counted allele.

    Everything else is a missing call: -1, NaN, 3, a masked cell, and 0.7 (Tacit does not round dosages).
    """

    def __init__(self, array: Any, sites: SiteList | None) -> None:
        shape: tuple[int, ...] = tuple(getattr(array, "shape", ()))
        if len(shape) != 2 or not shape[1]:
            raise bad_parameter(
                "source", "an array of people x variants, with at least one variant",
                f"an array with {len(shape)} axes" if len(shape) != 2 else "an array without variants",
                fix=Code("tc.genotypes(array.reshape(people, variants), ...)"),
            )  # fmt: skip
        if sites is not None and len(sites) != shape[1]:
            raise bad_parameter(
                "variants", f"a table of {shape[1]:,} lines, one for each column of the array",
                f"one of {len(sites):,}", fix=Code("variants=table.iloc[columns]"),
            )  # fmt: skip
        self._array = array
        self.sites = SiteList.of_number(int(shape[1])) if sites is None else sites

    def people(self) -> int:
        """Return the number of rows."""
        return int(self._array.shape[0])

    def blocks(self, size: int | None = None) -> Iterator[GenotypeBlock]:
        """Return blocks of columns."""
        people = self.people()
        step = min(self.rows_at_once(people, size), 256)
        for start in range(0, len(self.sites), step):
            held = self._array[:, start : start + step]
            held = held.toarray() if hasattr(held, "toarray") else held  # scipy.sparse
            if np.ma.isMaskedArray(held):
                number = held.dtype.kind in "biuf"
                held = np.ma.filled(held.astype(np.float64 if number else object), np.nan)
            part = as_genotypes(np.asarray(held))
            yield GenotypeBlock(np.arange(start, start + part.shape[1]), pack(part.T), people)


def as_genotypes(values: NDArray[Any]) -> NDArray[np.int8]:
    """Return 0, 1, 2, and -1 for everything else.

    Examples
    --------
    >>> as_genotypes(np.array([[0, 2.0, 0.7, float("nan"), 300]])).tolist()
    [[0, 2, -1, -1, -1]]
    """
    if values.dtype == np.int8:
        return np.where((values < 0) | (values > 2), np.int8(MISSING), values)
    found = np.full(values.shape, MISSING, np.int8)
    if values.dtype.kind not in "biuf":
        values = _as_numbers(values)
    for copies in (0, 1, 2):
        found[values == copies] = copies
    return found


def _as_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Read cells of any type as numbers; NaN where one is not a number."""
    return np.array([as_number(cell) for cell in values.ravel()], np.float64).reshape(values.shape)


def as_number(cell: object) -> float:
    """Return a cell as a number, NaN if it is not one; no cell makes it fail or warn.

    Python reads an array of one cell, a complex number and a masked cell as numbers, but it warns. A warning
    would say something about this cell.

    Examples
    --------
    >>> as_number("2"), as_number(np.ma.masked), as_number(np.array([1.0])), as_number(10**400)
    (2.0, nan, nan, nan)
    """
    if isinstance(cell, np.ndarray | np.complexfloating):
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - no value makes a paid release fail
        return math.nan
