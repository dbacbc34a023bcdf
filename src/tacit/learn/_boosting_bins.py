"""Bins of explainable boosting: public cuts for each feature, and one more bin for missing values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.fixes import Code, Set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["FeatureBins"]

_MOST = 1_000


@dataclass(frozen=True, slots=True)
class FeatureBins:
    """The public cuts of each feature. A value at a cut is in the bin above it; the last bin is for missing.

    Examples
    --------
    >>> bins = FeatureBins((("age", (40.0, 65.0)),))
    >>> bins.sizes, bins.places(np.array([[40.0], [12.0], [np.nan]])).tolist()
    ((4,), [[1], [0], [3]])
    """

    features: tuple[tuple[str, tuple[float, ...]], ...]

    @classmethod
    def even(
        cls, names: Sequence[str], low: NDArray[np.float64], high: NDArray[np.float64], bins: int
    ) -> FeatureBins:
        """Cut the declared range of each feature into bins of equal width."""
        if not 2 <= bins <= _MOST:
            raise bad_parameter("bins", f"between 2 and {_MOST:,}", bins, fix=Set(bins=16))
        steps = np.arange(1, bins) / bins
        return cls(
            tuple(
                (name, tuple(float(a + (b - a) * step) for step in steps))
                for name, a, b in zip(names, low, high, strict=True)
            )
        )

    @classmethod
    def at(cls, names: Sequence[str], cuts: Any) -> FeatureBins:
        """Read declared cuts: one increasing list of finite numbers for each feature."""
        fix = Code("cuts=[[30, 40, 50, 60], [0.5]], one list for each feature")
        try:
            read = [tuple(float(cut) for cut in one) for one in cuts]
        except (TypeError, ValueError):
            raise bad_parameter("cuts", "one list of numbers for each feature", cuts, fix=fix) from None
        if len(read) != len(names):
            raise bad_parameter("cuts", f"{len(names)} lists, one for each feature", len(read), fix=fix)
        for one in read:
            if not (np.isfinite(one).all() and all(a < b for a, b in pairwise(one)) and len(one) < _MOST):
                raise bad_parameter("cuts", "finite and increasing", list(one), fix=fix)
        return cls(tuple(zip(names, read, strict=True)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of bins of each feature, with the one for missing values."""
        return tuple(len(cuts) + 2 for _, cuts in self.features)

    def places(self, features: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the bin of each value, one column for each feature."""
        found = np.empty(features.shape, np.int64)
        for j, (_, cuts) in enumerate(self.features):
            column = features[:, j]
            found[:, j] = np.searchsorted(np.asarray(cuts), column, side="right")
            found[np.isnan(column), j] = len(cuts) + 1
        return found
