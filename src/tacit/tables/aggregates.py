"""The aggregates an analyst may ask for, as values: ``tc.count()``, ``tc.mean("length_of_stay")`` ..."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.core.facts import read_bounds, read_keys
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.exact import count as whole
from tacit.tables._fluent import Expr, as_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tacit.tables._expressions import Node

__all__ = [
    "Asked",
    "count",
    "count_distinct",
    "count_units",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "most_common",
    "quantile",
    "quantiles",
    "std",
    "sum",
    "variance",
]

_EXTREME = 0.01


@dataclass(frozen=True, slots=True)
class Asked:
    """An aggregate as asked for; it gets its name, and its facts, from the query it is used in."""

    function: str
    argument: Node | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    options: tuple[float | str | bool, ...] = ()
    levels: tuple[float, ...] = ()


def _asked(function: str, column: str | Expr, bounds: Sequence[Number] | None = None) -> Asked:
    return Asked(function, as_node(column), None if bounds is None else read_bounds(function, bounds))


def count(column: str | Expr | None = None) -> Asked:
    """Count rows, or the values of a column that are there (neither NULL nor NaN).

    One unit changes it by at most the rows it may contribute.

    Examples
    --------
    >>> count().function
    'count'
    """
    return Asked("count", None if column is None else as_node(column))


def count_units() -> Asked:
    """Count the units (patients, people ...) that have at least one row.

    One unit changes it by one per group.
    """
    return Asked("count_units")


def count_distinct(column: str | Expr) -> Asked:
    """Count the different values of a column; one unit changes it by at most the rows it may contribute."""
    return _asked("count_distinct", column)


def sum(column: str | Expr, *, bounds: Sequence[Number] | None = None) -> Asked:
    """Sum a column clipped to its bounds; one unit changes it by at most its rows times the larger bound."""
    return _asked("sum", column, bounds)


def mean(column: str | Expr, *, bounds: Sequence[Number] | None = None) -> Asked:
    """Average a column clipped to its bounds.

    Two sums are released, of x - low and of high - x; together one row changes them by high - low. Their
    ratio gives the mean and their total the number of values, for one price.
    """
    return _asked("mean", column, bounds)


def variance(column: str | Expr, *, bounds: Sequence[Number] | None = None) -> Asked:
    """Estimate the sample variance of a column clipped to its bounds (three sums, one price)."""
    return _asked("variance", column, bounds)


def std(column: str | Expr, *, bounds: Sequence[Number] | None = None) -> Asked:
    """Estimate the sample standard deviation of a column clipped to its bounds."""
    return _asked("std", column, bounds)


def quantiles(
    column: str | Expr,
    levels: Sequence[Number],
    *,
    bounds: Sequence[Number] | None = None,
    candidates: Iterable[Number] | None = None,
) -> Asked:
    """Estimate several quantiles at once from one noisy histogram over public candidates."""
    read = tuple(float(_level(q)) for q in levels)
    if not read or len(set(read)) != len(read):
        raise bad_parameter("levels", "a list of different levels", levels, fix="[0.25, 0.5, 0.75]")
    base = _asked("quantiles", column, bounds)
    return Asked(base.function, base.argument, base.bounds, _candidates(candidates), tuple(sorted(read)))


def quantile(
    column: str | Expr,
    level: Number,
    *,
    bounds: Sequence[Number] | None = None,
    candidates: Iterable[Number] | None = None,
) -> Asked:
    """Pick a quantile among public candidates by the exponential mechanism.

    The score of a candidate is minus the imbalance of the rows below and above it; one row changes it by
    max(q, 1-q).
    """
    base = _asked("quantile", column, bounds)
    return Asked(base.function, base.argument, base.bounds, _candidates(candidates), (float(_level(level)),))


def median(
    column: str | Expr, *, bounds: Sequence[Number] | None = None, candidates: Iterable[Number] | None = None
) -> Asked:
    """Pick the median among public candidates: the quantile of level one half."""
    return quantile(column, Fraction(1, 2), bounds=bounds, candidates=candidates)


def min(
    column: str | Expr, *, bounds: Sequence[Number] | None = None, candidates: Iterable[Number] | None = None
) -> Asked:
    """Pick the quantile of level 0.01: the least value itself would show one person."""
    return quantile(column, _EXTREME, bounds=bounds, candidates=candidates)


def max(
    column: str | Expr, *, bounds: Sequence[Number] | None = None, candidates: Iterable[Number] | None = None
) -> Asked:
    """Pick the quantile of level 0.99: the largest value itself would show one person."""
    return quantile(column, 1 - _EXTREME, bounds=bounds, candidates=candidates)


def histogram(column: str | Expr, edges: Sequence[Number]) -> Asked:
    """Count rows between public edges: [e0, e1), [e1, e2) ... the last cell holds its upper edge too."""
    read = tuple(float(rational("edges", e, zero=True, negative=True)) for e in edges)
    if len(read) < 2 or any(a >= b for a, b in itertools.pairwise(read)) or len(read) > 1001:
        raise bad_parameter("edges", "2 to 1,001 increasing numbers", edges, fix="[0, 10, 20, 30]")
    base = _asked("histogram", column)
    return Asked(base.function, base.argument, None, read)


def most_common(column: str | Expr, k: int, candidates: Iterable[object]) -> Asked:
    """Pick the k most frequent of public candidate values by the exponential mechanism."""
    top = whole("k", k, zero=False)
    values = read_keys("candidates", candidates)
    if top > len(values) or len(values) > 10_000:
        raise bad_parameter(
            "k", f"at most the number of candidates ({len(values)}, 10,000 at most)", k, fix="k=1"
        )
    options = tuple(v for v in values if isinstance(v, float | str | bool))
    if len(options) != len(values):
        raise TacitError("bad-parameter", "candidates are texts, numbers or booleans", fix='["A", "B"]')
    base = _asked("most_common", column)
    return Asked(base.function, base.argument, None, options, (float(top),))


def _level(q: Number) -> Fraction:
    level = rational("level", q)
    if not 0 < level < 1:
        raise bad_parameter("level", "between 0 and 1", q, fix="0.5")
    return level


def _candidates(given: Iterable[Number] | None) -> tuple[float, ...]:
    if given is None:
        return ()
    read = tuple(sorted({float(rational("candidates", c, zero=True, negative=True)) for c in given}))
    if not 1 < len(read) <= 10_000:
        raise bad_parameter(
            "candidates", "2 to 10,000 different numbers", f"{len(read)} of them", fix="range(0, 31)"
        )
    return read
