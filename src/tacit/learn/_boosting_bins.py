"""Bins of explainable boosting: public cuts for each feature, and one more bin for missing values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.learn._declared_bounds import read_feature_bounds
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MOST = 1_000
_CUTS = Code('cuts={"age": [30, 40, 50, 60]}, or one list for each feature')
_CATEGORIES = Code('categories={"sex": ["female", "male"]}')


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
    def declared(
        cls, names: Sequence[str], bounds: Any, bins: int, cuts: Any, categories: Any
    ) -> FeatureBins:
        """Read what is declared of each feature: the words of its categories, its cuts, or else its bounds.

        Examples
        --------
        >>> FeatureBins.declared(["age", "sex"], ([0, 0], [90, 1]), 3, None, {"sex": ["f", "m"]}).features
        (('age', (30.0, 60.0)), ('sex', (0.5,)))
        """
        words = read_categories(categories, names)
        listed = _by_name("cuts", cuts, names)
        rest = [name for name in names if name not in words and name not in listed]
        low, high = read_feature_bounds(bounds, len(names)) if rest else (None, None)
        if rest:
            Integer(2, _MOST, instead=16).read("bins", bins)
        found: list[tuple[str, tuple[float, ...]]] = []
        for j, name in enumerate(names):
            if name in words:
                own = tuple(k + 0.5 for k in range(len(words[name]) - 1))
            elif name in listed:
                own = _read_cuts(listed[name])
            else:
                own = tuple(float(low[j] + (high[j] - low[j]) * k / bins) for k in range(1, bins))  # type: ignore[index]
            found.append((name, own))
        return cls(tuple(found))

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


def read_categories(categories: Any, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read the words for the values 0, 1, 2 ... of features that are categories, by the feature's name."""
    if not isinstance(categories, Mapping | None):
        raise bad_parameter("categories", "words by feature", categories, fix=_CATEGORIES)
    read = {str(name): tuple(str(one) for one in words) for name, words in (categories or {}).items()}
    for name, words in read.items():
        if name not in names or not 1 <= len(words) <= _MOST or len(set(words)) < len(words):
            raise bad_parameter(
                "categories", "different words for a feature by its name", {name: words}, fix=_CATEGORIES
            )
    return read


def _by_name(what: str, given: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return lists by the name of their feature; they may be given so, or one for each feature in order."""
    if given is None:
        return {}
    named = dict(given) if isinstance(given, Mapping) else None
    if named is None:
        if isinstance(given, str) or len(given) != len(names):
            raise bad_parameter(what, f"{len(names)} lists, one for each feature", len(given), fix=_CUTS)
        named = dict(zip(names, given, strict=True))
    unknown = [name for name in named if name not in names]
    if unknown:
        raise bad_parameter(what, "lists by the names of features", unknown[0], fix=_CUTS)
    return named


def _read_cuts(given: Any) -> tuple[float, ...]:
    """Read the cuts of one feature: finite, increasing numbers."""
    try:
        cuts = tuple(float(cut) for cut in given)
    except (TypeError, ValueError):
        raise bad_parameter("cuts", "lists of numbers", given, fix=_CUTS) from None
    if not (np.isfinite(cuts).all() and all(a < b for a, b in pairwise(cuts)) and len(cuts) < _MOST):
        raise bad_parameter("cuts", "finite and increasing", list(cuts), fix=_CUTS)
    return cuts
