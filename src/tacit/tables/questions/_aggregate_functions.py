"""The aggregate functions of tables: ``tc.count()``, ``tc.mean("length_of_stay")``, ``tc.median("age")``."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tacit.algebra import words_of
from tacit.core import read_bounds, read_keys
from tacit.fixes import Do, Set
from tacit.parameters import Flag, Listed, RealNumber, refuse_auto
from tacit.tables.questions._aggregates import (
    AUTO,
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    MeanOf,
    PopulationStdOf,
    PopulationVarianceOf,
    StdOf,
    SumOf,
    VarianceOf,
    cut_without_search,
    read_cut,
)
from tacit.tables.questions._choice_aggregates import (
    MAX_SCORED,
    BestOf,
    ExtremeOf,
    HistogramOf,
    MedianOf,
    MostCommonOf,
    QuantileIntervalOf,
    QuantileOf,
    QuantilesOf,
    read_picks,
)
from tacit.tables.questions._pair_aggregates import (
    CorrelationOf,
    CovarianceOf,
    DeterminationOf,
    InterceptOf,
    SlopeOf,
)
from tacit.tables.questions._python_expressions import MAX_CANDIDATES, Expr, as_node, as_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tacit.exact import Number
    from tacit.fixes import Fix
    from tacit.tables.questions._aggregates import Cut, Range, RangeOrAuto

#: RangeOrAuto as they are given with a question: a pair, ``"auto"``, or None where the dataset declares them.
BoundsGiven: TypeAlias = 'Sequence[Number] | Literal["auto"] | None'
#: The bounds of two columns; None where they are declared with the dataset.
PairBounds: TypeAlias = "tuple[Sequence[Number] | None, Sequence[Number] | None]"

_EXTREME = Fraction(1, 100)
_LEVEL = RealNumber(above=0, below=1)
_LEVELS = Listed("levels", "[0.25, 0.5, 0.75]", different=True, each=_LEVEL)
_ANY_NUMBER = RealNumber(zero=True, negative=True)
_EDGES = Listed("numbers", "[0, 10, 20, 30]", least=2, most=1001, rising=True, each=_ANY_NUMBER)
_NUMBERS = Listed("different numbers", "range(0, 31)", least=2, most=MAX_CANDIDATES, each=_ANY_NUMBER)
_PAIR_BOUNDS = Listed("pairs of bounds, one for each column", "((0, 100), (0, 30))", least=2, most=2)


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


def sum(column: str | Expr, *, bounds: BoundsGiven = None, cut: Cut | None = None) -> Aggregate:
    """Sum a column clipped to its bounds; one unit changes it by at most its rows times the larger bound."""
    return SumOf(as_node(column), _found_or_given("sum", bounds, cut), cut=cut)


def mean(
    column: str | Expr, *, bounds: BoundsGiven = None, cut: Cut | None = None, spread: bool | None = None
) -> Aggregate:
    """Average a column clipped to its bounds.

    Two sums are released, of x - low and of high - x; together one row changes them by high - low. Their
    ratio gives the mean and their total the number of values, for one cost.

    Parameters
    ----------
    column
        The column, or an expression.
    bounds
        The public range; by default the one that is declared. ``"auto"``: the plan finds it privately.
    cut
        ``"rare"``: bounds that the plan finds reach further out (outer ends times 4), so that few values lie
        beyond them. This is a frequency and not a guarantee; who needs one declares a hard maximum.
    spread
        Whether three sums are released, of which the variance can be read too. Intervals and tests that
        cover sampling need it (`tacit.inference`). The noise grows by 0 to 12 %, and values are rounded to
        1/65,536 of the range. By default this is done where each unit adds at most one row.
    """
    if spread is not None:
        Flag("True, False or None").read("spread", spread)
    return MeanOf(as_node(column), _found_or_given("mean", bounds, cut), spread, cut=cut)


def variance(
    column: str | Expr, *, bounds: BoundsGiven = None, cut: Cut | None = None, population: bool = False
) -> Aggregate:
    """Estimate the variance of a column clipped to its bounds (three sums, one cost).

    The values count as a sample of something larger, unless ``population`` is true.
    """
    kind = PopulationVarianceOf if population else VarianceOf
    return kind(as_node(column), _found_or_given("variance", bounds, cut), cut=cut)


def std(
    column: str | Expr, *, bounds: BoundsGiven = None, cut: Cut | None = None, population: bool = False
) -> Aggregate:
    """Estimate the standard deviation of a column clipped to its bounds.

    The values count as a sample of something larger, unless ``population`` is true.
    """
    kind = PopulationStdOf if population else StdOf
    return kind(as_node(column), _found_or_given("std", bounds, cut), cut=cut)


def correlation(x: str | Expr, y: str | Expr, *, bounds: PairBounds = (None, None)) -> Aggregate:
    """Estimate Pearson's correlation of two columns, each clipped to its bounds.

    Tacit releases nine sums: the products of three parts of x and three parts of y. One row changes the nine
    sums together by at most a fixed public amount. Tacit computes every quantity of the same two columns from
    these sums, so you pay for them once. It does not count rows in which one of the two values is missing.
    ``bounds`` holds the bounds of x and the bounds of y.

    Examples
    --------
    >>> correlation("age", "length_of_stay").words
    'correlation(age, length_of_stay)'
    """
    return CorrelationOf(as_node(x), as_node(y), *_pair_bounds("correlation", (x, y), bounds))


def covariance(
    x: str | Expr, y: str | Expr, *, bounds: PairBounds = (None, None), population: bool = False
) -> Aggregate:
    """Estimate the covariance of two clipped columns: of a sample, or of the rows themselves (population).

    It shares the nine sums of `correlation`, at the same sensitivity.

    Examples
    --------
    >>> covariance("age", "length_of_stay", population=True).word
    'covariance'
    """
    pair_bounds = _pair_bounds("covariance", (x, y), bounds)
    return CovarianceOf(as_node(x), as_node(y), *pair_bounds, population=bool(population))


def slope(y: str | Expr, x: str | Expr, *, bounds: PairBounds = (None, None)) -> Aggregate:
    """Estimate how much y changes when x grows by 1, on the line of least squares (REGR_SLOPE).

    It shares the nine sums of `correlation`, at the same sensitivity. ``bounds`` holds the bounds of y and
    the bounds of x.

    Examples
    --------
    >>> slope("length_of_stay", "age").words
    'slope(length_of_stay, age)'
    """
    return SlopeOf(as_node(y), as_node(x), *_pair_bounds("slope", (y, x), bounds))


def intercept(y: str | Expr, x: str | Expr, *, bounds: PairBounds = (None, None)) -> Aggregate:
    """Estimate y at x = 0 on the line of least squares (REGR_INTERCEPT).

    It shares the nine sums of `correlation`, at the same sensitivity.

    Examples
    --------
    >>> intercept("length_of_stay", "age").word
    'intercept'
    """
    return InterceptOf(as_node(y), as_node(x), *_pair_bounds("intercept", (y, x), bounds))


def r_squared(y: str | Expr, x: str | Expr, *, bounds: PairBounds = (None, None)) -> Aggregate:
    """Estimate the part of the variance of y that the line of least squares explains (REGR_R2).

    It shares the nine sums of `correlation`, at the same sensitivity.

    Examples
    --------
    >>> r_squared("length_of_stay", "age").word
    'r_squared'
    """
    return DeterminationOf(as_node(y), as_node(x), *_pair_bounds("r_squared", (y, x), bounds))


def quantiles(
    column: str | Expr,
    levels: Sequence[Number],
    *,
    bounds: BoundsGiven = None,
    cut: Cut | None = None,
    candidates: Iterable[Number] | None = None,
) -> Aggregate:
    """Estimate several quantiles at once from one noisy histogram over public candidates.

    The quantile of level q is the smallest value that at least a share q of the rows do not exceed. Every
    value counts at its nearest candidate, and a candidate is shown. The interval allows for this: it ends
    halfway between two candidates or at a bound, and holds the quantile of the rows, clipped to the bounds,
    in at least 95 % of releases.

    Parameters
    ----------
    column
        The column, or an expression.
    levels
        The levels, between 0 and 1.
    bounds
        The public range; by default the one that is declared. ``"auto"``: the plan finds it privately.
    cut
        ``"rare"``: bounds that the plan finds reach further out (outer ends times 4), so that few values lie
        beyond them. This is a frequency and not a guarantee; who needs one declares a hard maximum.
    candidates
        The values that may be shown; by default at most 200, evenly spaced between the bounds. Closer
        candidates make narrower intervals.
    """
    sorted_levels = tuple(sorted(_LEVELS.read("levels", levels)))
    return QuantilesOf(
        as_node(column),
        _found_or_given("quantiles", bounds, cut),
        _candidates(candidates),
        sorted_levels,
        cut=cut,
    )


def quantile(
    column: str | Expr,
    level: Number,
    *,
    bounds: BoundsGiven = None,
    cut: Cut | None = None,
    candidates: Iterable[Number] | None = None,
    interval: bool = False,
) -> Aggregate:
    """Pick a quantile from public candidates with the exponential mechanism.

    The score of a candidate is minus the imbalance of the rows below and above it; one row changes it by
    max(q, 1-q). One pick has no interval for its value: no released number shows how far apart the rows lie.
    With ``interval=True`` Tacit makes two picks, each at half of the cost. The value is the middle of the two
    picks, which is less accurate than one pick at the whole cost. Every value counts at its nearest
    candidate. The interval allows for this: it ends halfway between a pick and the next candidate, or at a
    bound, and holds the quantile of the rows, clipped to the bounds, in at least 95 % of releases. The
    quantile of level q is the smallest value that at least a share q of the rows do not exceed.

    Examples
    --------
    >>> quantile("age", 0.9, interval=True).word
    'quantile'
    """
    kind = QuantileIntervalOf if interval else QuantileOf
    return kind(
        as_node(column),
        _found_or_given("quantile", bounds, cut),
        _candidates(candidates),
        (_level(level),),
        cut=cut,
    )


def median(
    column: str | Expr,
    *,
    bounds: BoundsGiven = None,
    cut: Cut | None = None,
    candidates: Iterable[Number] | None = None,
    interval: bool = False,
) -> Aggregate:
    """Pick the median from public candidates: the quantile of level one half.

    With ``interval=True`` it has an interval from two picks, as for `quantile`. The median is the smallest
    value that at least half of the rows do not exceed.
    """
    kind = QuantileIntervalOf if interval else MedianOf
    return kind(
        as_node(column),
        _found_or_given("median", bounds, cut),
        _candidates(candidates),
        (Fraction(1, 2),),
        cut=cut,
    )


def min(
    column: str | Expr,
    *,
    bounds: BoundsGiven = None,
    cut: Cut | None = None,
    candidates: Iterable[Number] | None = None,
) -> Aggregate:
    """Pick the quantile of level 0.01: the smallest value itself would reveal one person."""
    return ExtremeOf(
        as_node(column), _found_or_given("min", bounds, cut), _candidates(candidates), (_EXTREME,), cut=cut
    )


def max(
    column: str | Expr,
    *,
    bounds: BoundsGiven = None,
    cut: Cut | None = None,
    candidates: Iterable[Number] | None = None,
) -> Aggregate:
    """Pick the quantile of level 0.99: the largest value itself would reveal one person."""
    return ExtremeOf(
        as_node(column),
        _found_or_given("max", bounds, cut),
        _candidates(candidates),
        (1 - _EXTREME,),
        largest=True,
        cut=cut,
    )


def histogram(column: str | Expr, edges: Sequence[Number]) -> Aggregate:
    """Count rows between public edges: [e0, e1), [e1, e2) ... the last cell includes its upper edge."""
    refuse_auto("a histogram", edges, Set(edges=[0, 10, 20]))
    return HistogramOf(as_node(column), tuple(float(edge) for edge in _EDGES.read("edges", edges)))


def most_common(column: str | Expr, k: int = 1, candidates: Iterable[object] | None = None) -> Aggregate:
    """Pick the k most frequent of public candidate values with the exponential mechanism.

    Without candidates, they are the declared keys of the column, or the whole numbers between its bounds. One
    row changes the number of rows of one candidate by 1.

    Examples
    --------
    >>> most_common("hospital", 2, ["A", "B", "C"]).words
    'most_common(hospital)'
    """
    top = read_picks(k, MAX_CANDIDATES)
    if candidates is None:
        return MostCommonOf(as_node(column), (), top)
    options = _options(candidates, 1, MAX_CANDIDATES, '["A", "B"]')
    return MostCommonOf(as_node(column), options, read_picks(k, len(options)))


def best(
    candidates: Iterable[object],
    score: Callable[[Any], Expr | Number],
    *,
    bounds: Sequence[Number] | None = None,
) -> Aggregate:
    """Pick one of several public candidates by your own score, with the exponential mechanism.

    ``score(candidate)`` is an expression, clipped to its bounds [low, high]. Tacit derives the bounds from
    the form of the expression if it can; otherwise give ``bounds``. The utility of a candidate is the sum of
    its score over all rows. A row changes the difference of two utilities by at most
    D = max(high, 0) - min(low, 0). The probability of a candidate grows with exp(epsilon utility / (D r)),
    where r is the largest number of rows of one unit.

    Examples
    --------
    The price that earns most, where everybody who offers at least the price buys:

    >>> import tacit as tc
    >>> tc.best([5, 10, 20], lambda price: tc.when(tc.col("offer") >= price, price, 0)).words
    'best(case(offer >= 5, 5, 0), case(offer >= 10, 10, 0), ...)'
    """
    options = _options(candidates, 2, MAX_SCORED, "range(5, 50, 5)")
    return BestOf(options, tuple(as_value(score(value)) for value in options), _bounds("best", bounds))


def _bounds(name: str, bounds: Sequence[Number] | None, fix: Fix | None = None) -> Range | None:
    """Read bounds that must be given."""
    refuse_auto(name, bounds, Set(bounds=(0, 100)) if fix is None else fix)
    return None if bounds is None else read_bounds(name, bounds)


def _found_or_given(name: str, bounds: BoundsGiven, cut: Cut | None) -> RangeOrAuto | None:
    """Read bounds, or that the plan finds them; ``cut`` is only for those, given here or declared."""
    read_cut(cut)
    if isinstance(bounds, str) and bounds == AUTO:
        return AUTO
    if bounds is not None and cut is not None:
        raise cut_without_search(Set(bounds=AUTO, cut=cut))
    return _bounds(name, bounds)


def _options(
    candidates: Iterable[object], least: int, most: int, example: str
) -> tuple[float | str | bool, ...]:
    """Read public candidates: text, numbers or booleans, all of one kind."""
    parameter = Listed("values", example, least=least, most=most)
    values = parameter.read("candidates", read_keys("candidates", candidates))
    return tuple(value for value in values if isinstance(value, float | str | bool))


def _pair_bounds(
    name: str, columns: tuple[str | Expr, str | Expr], bounds: PairBounds
) -> tuple[Range | None, Range | None]:
    first = [Do("find-bounds-first", expression=words_of(as_node(one))) for one in columns]
    refuse_auto(name, bounds, first[0])
    x, y = _PAIR_BOUNDS.read("bounds", bounds)
    return _bounds(name, x, first[0]), _bounds(name, y, first[1])


def _level(q: Number) -> Fraction:
    return _LEVEL.read("level", q)


def _candidates(candidates: Iterable[Number] | None) -> tuple[float, ...]:
    if candidates is None:
        return ()
    different = {float(number) for number in _NUMBERS.read("candidates", candidates)}
    _NUMBERS.read("candidates", different)  # refuses too few that differ
    return tuple(sorted(different))
