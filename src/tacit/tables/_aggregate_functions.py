"""The aggregate functions of tables: ``tc.count()``, ``tc.mean("length_of_stay")``, ``tc.median("age")``."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.core import read_bounds, read_keys
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.exact import count as whole
from tacit.fixes import Code, Set
from tacit.tables._aggregates import (
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    ExtremeOf,
    HistogramOf,
    MeanOf,
    MedianOf,
    MostCommonOf,
    PopulationStdOf,
    PopulationVarianceOf,
    QuantileOf,
    QuantilesOf,
    StdOf,
    SumOf,
    VarianceOf,
)
from tacit.tables._python_expressions import Expr, as_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tacit.tables._aggregates import Range

__all__ = [
    "count", "count_distinct", "count_units", "histogram", "max", "mean", "median", "min", "most_common",
    "quantile", "quantiles", "std", "sum", "variance",
]  # fmt: skip

_EXTREME = Fraction(1, 100)


def count(column: str | Expr | None = None) -> Aggregate:
    """Count rows, or the values of a column that are not missing (NULL or NaN).

    One unit changes the count by at most the number of rows that it may contribute.

    Examples
    --------
    >>> count().word
    'count'
    """
    return CountRows(None if column is None else as_node(column))


def count_units() -> Aggregate:
    """Count the units (patients, people ...) that have at least one row.

    One unit changes the count by one in each group.
    """
    return CountUnits()


def count_distinct(column: str | Expr) -> Aggregate:
    """Count the different values of a column; one unit changes it by at most the rows it may contribute."""
    return CountDistinct(as_node(column))


def sum(column: str | Expr, *, bounds: Sequence[Number] | None = None) -> Aggregate:
    """Sum a column clipped to its bounds; one unit changes it by at most its rows times the larger bound."""
    return SumOf(as_node(column), _bounds("sum", bounds))


def mean(column: str | Expr, *, bounds: Sequence[Number] | None = None) -> Aggregate:
    """Average a column clipped to its bounds.

    Two sums are released, of x - low and of high - x; together one row changes them by high - low. Their
    ratio gives the mean and their total the number of values, for one price.
    """
    return MeanOf(as_node(column), _bounds("mean", bounds))


def variance(
    column: str | Expr, *, bounds: Sequence[Number] | None = None, population: bool = False
) -> Aggregate:
    """Estimate the variance of a column clipped to its bounds (three sums, one price).

    The values are a sample unless ``population`` is true.
    """
    kind = PopulationVarianceOf if population else VarianceOf
    return kind(as_node(column), _bounds("variance", bounds))


def std(column: str | Expr, *, bounds: Sequence[Number] | None = None, population: bool = False) -> Aggregate:
    """Estimate the standard deviation of a column clipped to its bounds.

    The values are a sample unless ``population`` is true.
    """
    kind = PopulationStdOf if population else StdOf
    return kind(as_node(column), _bounds("std", bounds))


def quantiles(
    column: str | Expr,
    levels: Sequence[Number],
    *,
    bounds: Sequence[Number] | None = None,
    candidates: Iterable[Number] | None = None,
) -> Aggregate:
    """Estimate several quantiles at once from one noisy histogram over public candidates."""
    read = tuple(sorted(_level(q) for q in levels))
    if not read or len(set(read)) != len(read):
        raise bad_parameter("levels", "a list of different levels", levels, fix=Set(levels=[0.25, 0.5, 0.75]))
    return QuantilesOf(as_node(column), _bounds("quantiles", bounds), _candidates(candidates), read)


def quantile(
    column: str | Expr,
    level: Number,
    *,
    bounds: Sequence[Number] | None = None,
    candidates: Iterable[Number] | None = None,
) -> Aggregate:
    """Pick a quantile from public candidates with the exponential mechanism.

    The score of a candidate is minus the imbalance of the rows below and above it; one row changes it by
    max(q, 1-q).
    """
    return QuantileOf(as_node(column), _bounds("quantile", bounds), _candidates(candidates), (_level(level),))


def median(
    column: str | Expr, *, bounds: Sequence[Number] | None = None, candidates: Iterable[Number] | None = None
) -> Aggregate:
    """Pick the median from public candidates: the quantile of level one half."""
    return MedianOf(as_node(column), _bounds("median", bounds), _candidates(candidates), (Fraction(1, 2),))


def min(
    column: str | Expr, *, bounds: Sequence[Number] | None = None, candidates: Iterable[Number] | None = None
) -> Aggregate:
    """Pick the quantile of level 0.01: the smallest value itself would reveal one person."""
    return ExtremeOf(as_node(column), _bounds("min", bounds), _candidates(candidates), (_EXTREME,))


def max(
    column: str | Expr, *, bounds: Sequence[Number] | None = None, candidates: Iterable[Number] | None = None
) -> Aggregate:
    """Pick the quantile of level 0.99: the largest value itself would reveal one person."""
    return ExtremeOf(
        as_node(column), _bounds("max", bounds), _candidates(candidates), (1 - _EXTREME,), largest=True
    )


def histogram(column: str | Expr, edges: Sequence[Number]) -> Aggregate:
    """Count rows between public edges: [e0, e1), [e1, e2) ... the last cell includes its upper edge."""
    read = tuple(float(rational("edges", e, zero=True, negative=True)) for e in edges)
    if len(read) < 2 or any(a >= b for a, b in itertools.pairwise(read)) or len(read) > 1001:
        raise bad_parameter("edges", "2 to 1,001 increasing numbers", edges, fix=Set(edges=[0, 10, 20, 30]))
    return HistogramOf(as_node(column), read)


def most_common(column: str | Expr, k: int, candidates: Iterable[object]) -> Aggregate:
    """Pick the k most frequent of public candidate values with the exponential mechanism."""
    top = whole("k", k, zero=False)
    values = read_keys("candidates", candidates)
    if top > len(values) or len(values) > 10_000:
        raise bad_parameter(
            "k", f"at most the number of candidates ({len(values)}, 10,000 at most)", k, fix=Set(k=1)
        )
    options = tuple(v for v in values if isinstance(v, float | str | bool))
    if len(options) != len(values):
        raise TacitError(
            "bad-parameter", "candidates must be text, numbers or booleans", fix=Set(candidates=["A", "B"])
        )
    return MostCommonOf(as_node(column), options, top)


def _bounds(name: str, given: Sequence[Number] | None) -> Range | None:
    return None if given is None else read_bounds(name, given)


def _level(q: Number) -> Fraction:
    level = rational("level", q)
    if not 0 < level < 1:
        raise bad_parameter("level", "between 0 and 1", q, fix=Set(level=0.5))
    return level


def _candidates(given: Iterable[Number] | None) -> tuple[float, ...]:
    if given is None:
        return ()
    read = tuple(sorted({float(rational("candidates", c, zero=True, negative=True)) for c in given}))
    if not 1 < len(read) <= 10_000:
        raise bad_parameter(
            "candidates", "2 to 10,000 different numbers", f"{len(read)} of them",
            fix=Code("candidates=range(0, 31)"),
        )  # fmt: skip
    return read
