"""Means, proportions and their differences in the population, and tests of equal means, from a release.

Where an answer is wider than it need be, a caution names the rows or the epsilon that would do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import HIDDEN, is_hidden
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.inference._estimate import COVERED, NOISE_AND_SAMPLING, Estimate, p_words
from tacit.inference._mean_tests import anova_p, means_apart, two_means_p, two_shares_p
from tacit.inference._measurements import CLEAR, counted, enough_rows, line_of, spread_lines
from tacit.inference._sampling_intervals import (
    difference_sets,
    mean_noise,
    moments_of,
    proportion_p,
    proportion_sets,
    sampled_mean_sets,
    variance_noise,
)
from tacit.parameters import RealNumber
from tacit.report import short_percent

if TYPE_CHECKING:
    from tacit.core import Release
    from tacit.inference._measurements import NoisyLines
    from tacit.inference._sampling_intervals import Floats, Sets
    from tacit.mechanisms import LinearNoise


_CLEAR_SPREAD = 2.0  # deviations of its noise that the variance by sampling must reach
_SWAMPED = 10.0  # times that deviation from which the noise of the means hides all doubt about the spread
_CLEAR_GROUPS = 6.0  # deviations of its noise that the rows of each compared group must reach
_BORROWED = 0.1  # a part of the variance that may come from the other group
_OWN_ROWS = 100  # rows of a group with which next to none does


def caution_words(parts: Floats, noise: LinearNoise, width: float = 1.0) -> str:
    """Say why an answer about the means of these groups is cautious, and what would do; else nothing.

    Parameters
    ----------
    parts
        The three noisy parts of each group, in rows.
    noise
        The noise on each of them.
    width
        The width of the column's range.
    """
    rows = np.maximum(moments_of(parts)[0], 2.0)
    fewest = _CLEAR_GROUPS * math.sqrt(3 * noise.variance)
    if len(parts) > 1 and rows.min() < fewest:
        return (
            f"; cautious, because the noise on the number of rows is large: {_two_digits(fewest):,} rows in "
            f"each group or {fewest / rows.min():.2g} times the epsilon would be enough"
        )
    sampling, doubt, noisy = _spreads(parts, rows, noise)
    if sampling < _CLEAR_SPREAD * doubt and noisy < _SWAMPED * doubt:
        per_row = float((1 / rows).sum()) if len(parts) < 3 else 1.0
        clear = width * math.sqrt(_CLEAR_SPREAD * doubt / per_row)
        where = "in the group" if len(parts) == 1 else "in these groups together"
        return (
            "; cautious, because noise hides the spread of the values: exact for a standard deviation of "
            f"{clear:.2g} or more; for one of {clear / 2:.2g}, about {_two_digits(4 * rows.sum()):,} rows "
            f"{where} or 4 times the epsilon would be enough"
        )
    if len(parts) == 2:
        borrowed = float(means_apart(parts[None], noise).borrowed[0]) * sampling
        if borrowed > _BORROWED * (sampling + noisy):
            return (
                "; cautious, because the smaller group has few rows and its spread was read with rows of "
                f"both groups: {_OWN_ROWS} rows in each group would be enough"
            )
    return ""


def _two_digits(x: float) -> int:
    unit = 10 ** max(0, math.floor(math.log10(max(x, 1.0))) - 1)
    return int(math.ceil(x / unit) * unit)


def _spreads(parts: Floats, n: Floats, noise: LinearNoise) -> tuple[float, float, float]:
    """Return the variance by sampling as it was read, the deviation of its noise, and the noise of the means.

    Of one or two groups these are the variances of the mean or the difference; of more groups those of one
    row, as the analysis of variance pools them.
    """
    rows, total, squares = moments_of(parts)
    mean = np.full(len(n), np.clip(total.sum() / n.sum(), 0.0, 1.0))
    v = (squares - 2 * mean * total + mean**2 * rows) / n
    around = variance_noise(n, mean, np.clip(v, 0.0, mean * (1 - mean)), noise)
    weights = 1 / n if len(n) < 3 else n / n.sum()
    noisy = mean_noise(n, mean, noise)
    return (
        float((weights * v).sum()),
        math.sqrt(float((weights**2 * around).sum())),
        float(noisy.sum() if len(n) < 3 else (n * noisy).mean()),
    )


def mean_ends(lines: NoisyLines) -> Sets:
    """Return the mean of every group with its interval, in the column's own units."""
    low, width = lines.bounds
    sets = (
        proportion_sets(lines.values[:, 1], lines.values[:, 0], lines.noise, lines.failing)
        if lines.measured.statistic == "moments"
        else sampled_mean_sets(lines.values, lines.noise, lines.failing)
    )
    value, low_end, high_end = (low + width * end for end in sets)
    return value, low_end, high_end


def mean(release: Release[Any], group: Any = None, *, column: str | None = None) -> Estimate:
    """Estimate a mean in the population that the units come from.

    Guarantee: the interval covers noise and sampling together, as often as the release says. The target is
    the mean of the clipped values. It reads released integers only and charges nothing.

    Parameters
    ----------
    release
        A release with a mean, of a dataset in which each unit adds one row.
    group
        The group; a tuple where there are several keys; None where there is one line.
    column
        The name of the mean, where there are several.

    Examples
    --------
    >>> import tacit as tc
    >>> people = tc.inference.example_trial(budget=tc.Budget(epsilon=100))
    >>> release = people.group_by("arm").agg(sbp=tc.mean("sbp")).plan(epsilon=20).release()
    >>> found = tc.inference.mean(release, "drug")
    >>> found.low < found.value < found.high, found.covers
    (True, 'noise and sampling')
    """
    lines = spread_lines(release, column)
    at = line_of(lines, group)
    value, low, high = (float(end[at]) for end in mean_ends(lines))
    where = "" if group is None else f" with {_shown(group)}"
    hidden = lines.measured.hidden[at]
    sentence = HIDDEN if hidden else _number(value, low, high)
    return Estimate(
        None if hidden else value,
        low,
        high,
        lines.level,
        NOISE_AND_SAMPLING,
        _method(lines, [at], "score interval of a mean"),
        None,
        f"The mean of {lines.name}{where} was {sentence} {_interval(lines, low, high)}.",
    )


def proportion(
    release: Release[Any], group: Any = None, *, column: str | None = None, against: float | None = None
) -> Estimate:
    """Estimate a proportion in the population: of a yes/no mean, or of one group among all groups.

    Of a mean of a condition (``tc.mean(tc.col("stay") > 7)``) it is the share of yes in the group. Of counts
    by group it is the share of this group among all groups of the release.

    Parameters
    ----------
    release
        A release with the mean of a condition, or with counts by group.
    group
        The group.
    column
        The name of the column, where there are several.
    against
        A public proportion to test the found one against; the answer then has a p-value.

    Examples
    --------
    >>> import tacit as tc
    >>> people = tc.inference.example_trial(budget=tc.Budget(epsilon=100))
    >>> release = people.group_by("arm").agg(n=tc.count()).plan(epsilon=20).release()
    >>> found = tc.inference.proportion(release, "drug")
    >>> 0 < found.low < found.value < found.high < 1
    True
    """
    lines = counted(release, column)
    at = line_of(lines, group)
    if lines.measured.statistic == "moments":
        yes, no, others, noun = *lines.values[at, ::-1], 1, f"of yes in {lines.name}"
        hidden = lines.measured.hidden[at]
    else:
        totals = lines.values.sum(axis=1)
        cells = lines.values.shape[1]
        yes, no, noun = totals[at], totals.sum() - totals[at], f"of {_shown(group)}"
        if cells > 1:
            raise _cells_have_no_share()
        others = len(totals) - 1
        hidden = is_hidden(float(totals.sum()), lines.noise.variance * len(totals))
    if against is not None:
        RealNumber(above=0, below=1).read("against", against)
    pair = np.array([yes]), np.array([no])
    ends = proportion_sets(*pair, lines.noise, lines.failing, max(others, 1))
    value, low, high = (float(end[0]) for end in ends)
    p = None if against is None else float(proportion_p(*pair, against, lines.noise, max(others, 1))[0])
    tested = "" if p is None else f"; {p_words(p)} against {100 * (against or 0):.3g} %"
    shown_share = HIDDEN if hidden else short_percent(value, 3)
    return Estimate(
        None if hidden else value,
        low,
        high,
        lines.level,
        NOISE_AND_SAMPLING,
        "score interval of a proportion, binomial where there are few cases",
        p,
        f"The proportion {noun} was {shown_share} ({short_percent(lines.level)} confidence interval "
        f"{100 * low:.3g} to {short_percent(high, 3)}, {COVERED}){tested}.",
    )


def difference(release: Release[Any], first: Any, second: Any, *, column: str | None = None) -> Estimate:
    """Compare two groups: the first mean minus the second, with its interval and a p-value.

    Of a yes/no column it compares two proportions. The groups must not share units.

    Parameters
    ----------
    release
        A release with a mean by group, of a dataset in which each unit adds one row.
    first, second
        The two groups.
    column
        The name of the mean, where there are several.

    Examples
    --------
    >>> import tacit as tc
    >>> people = tc.inference.example_trial(budget=tc.Budget(epsilon=100))
    >>> release = people.group_by("arm").agg(sbp=tc.mean("sbp")).plan(epsilon=20).release()
    >>> found = tc.inference.difference(release, "drug", "placebo")
    >>> found.low < found.value < found.high, 0 <= found.p_value <= 1
    (True, True)
    """
    lines = spread_lines(release, column)
    places = [line_of(lines, first), line_of(lines, second)]
    parts = lines.values[places]
    _enough(lines, places)
    sets = mean_ends(lines)
    base, other = (tuple(end[[at]] for end in sets) for at in places)
    value, low, high = (float(end[0]) for end in difference_sets(base, other))  # type: ignore[arg-type]
    test = two_shares_p if lines.measured.statistic == "moments" else two_means_p
    p = float(test(parts[None], lines.noise)[0])
    way = "higher" if value >= 0 else "lower"
    size = (value, low, high) if value >= 0 else (-value, -high, -low)
    return Estimate(
        value,
        low,
        high,
        lines.level,
        NOISE_AND_SAMPLING,
        _method(lines, places, "two groups, noise and sampling in one law"),
        p,
        f"The mean of {lines.name} was {_number(*size)} {way} with {_shown(first)} than with "
        f"{_shown(second)} {_interval(lines, size[1], size[2])}; {p_words(p)}.",
    )


def anova(release: Release[Any], *, column: str | None = None) -> Estimate:
    """Test whether all groups have the same mean (analysis of variance).

    Parameters
    ----------
    release
        A release with a mean by group, of a dataset in which each unit adds one row.
    column
        The name of the mean, where there are several.

    Examples
    --------
    >>> import tacit as tc
    >>> people = tc.inference.example_trial(budget=tc.Budget(epsilon=100))
    >>> release = people.group_by("site").agg(sbp=tc.mean("sbp")).plan(epsilon=20).release()
    >>> 0 <= tc.inference.anova(release).p_value <= 1
    True
    """
    lines = spread_lines(release, column)
    if lines.measured.statistic == "moments":  # a yes/no value is y = y^2: nothing lies between the bounds
        raise _yes_no_needs_a_table(lines.name)
    places = list(range(len(lines.labels)))
    _enough(lines, places)
    statistic, p = (float(one[0]) for one in anova_p(lines.values[None], lines.noise))
    verdict = "differ" if p < lines.failing else "may all be the same"
    return Estimate(
        statistic,
        None,
        None,
        lines.level,
        NOISE_AND_SAMPLING,
        _method(lines, places, f"analysis of variance of {len(places)} groups, by draws"),
        p,
        f"The means of {lines.name} in {len(places)} groups {verdict} ({p_words(p)}).",
    )


def _enough(lines: NoisyLines, places: list[int]) -> None:
    rows = lines.values[places].sum(axis=-1)
    fewest = CLEAR * math.sqrt(lines.values.shape[1] * lines.noise.variance)
    enough_rows(rows, max(fewest, 10.0), "the smallest group")


def _method(lines: NoisyLines, places: list[int], name: str) -> str:
    """Name the method, and say where its answer is wider than needed."""
    if lines.measured.statistic != "squares":
        return name
    return name + caution_words(lines.values[places], lines.noise, lines.bounds[1])


def _shown(group: Any) -> str:
    return ", ".join(str(one) for one in group) if isinstance(group, tuple) else str(group)


def _number(value: float, low: float, high: float) -> str:
    """Write a number with the digits that its interval lets mean something."""
    digits = max(0, 1 - math.floor(math.log10(max((high - low) / 2, 1e-12))))
    return f"{value:.{min(digits, 12)}f}"


def _interval(lines: NoisyLines, low: float, high: float) -> str:
    ends = f"{_number(low, low, high)} to {_number(high, low, high)}"
    return f"({short_percent(lines.level)} confidence interval {ends}, {COVERED})"


def _cells_have_no_share() -> TacitError:
    return TacitError(
        "bad-parameter",
        "a histogram has many cells, but a proportion has only two values, yes and no",
        fix=Code('tc.mean(tc.col("stay") > 7)'),
    )


def _yes_no_needs_a_table(name: str) -> TacitError:
    return TacitError(
        "bad-parameter",
        f"{name} is yes or no: proportions in several groups are compared as a table",
        fix=Code(f"tc.inference.independence(release, column={name!r})"),
    )
