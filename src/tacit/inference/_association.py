"""Tests of association from a release: independence, fit and G of counts, ranks, and correlations.

The rank test (Mann and Whitney) compares two groups by noisy histograms over the same public cells.
Correlations with sampling come from the moments of a regression, or from a released correlation.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Set
from tacit.inference._contingency import (
    DRAWS,
    corrected,
    coupled_noise,
    fit_p,
    g_p,
    generator,
    independence_p,
)
from tacit.inference._estimate import COVERED, NOISE_AND_SAMPLING, Estimate, p_words
from tacit.inference._linear_regression import LinearFit
from tacit.inference._measurements import CLEAR, counted, enough_rows, line_of, noisy_lines
from tacit.inference._regression_table import RegressionTable
from tacit.parameters import Choice
from tacit.report import short_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import Release
    from tacit.inference._measurements import NoisyLines
    from tacit.inference._sampling_intervals import Floats
    from tacit.mechanisms import LinearNoise


_HARDLY = 0.01  # a part of the variance that is noise up to which the normal law serves
#: Deviations of the noise of all cells together that a table must reach.
_TABLE = 5.0
_MOST = 1 - 1e-9


def rank_p(histograms: Floats, noise: LinearNoise, draws: int = DRAWS) -> tuple[Floats, Floats]:
    """Return P(a value of group 2 is larger) - P(smaller), and the p-value that both groups have one law.

    Of histograms h1 and h2 (tests, 2, cells), U = h1' K h2 with K the sign of the distance of two cells. With
    one law p, U has the variance n1 n2 (n1 + n2) Var_p(Kp) + tau^2 (n1^2 + n2^2) |Kp|^2 + tau^4 |K|^2. The
    product of two noises is not normal, so the p-value of the normal law is corrected by draws.
    """
    cells = histograms.shape[-1]
    sign = np.sign(np.arange(cells)[None, :] - np.arange(cells)[:, None]).astype(float)
    draw = generator(4, cells)
    normal = draw.standard_normal((draws, 2))
    noises = coupled_noise(draw, noise, (draws, 2, cells))
    pooled = np.maximum(histograms.sum(axis=1), 0.0) + 1e-9
    shares = pooled / pooled.sum(axis=-1, keepdims=True)
    statistics, p = np.empty(len(histograms)), np.empty(len(histograms))
    for i, (first, second) in enumerate(histograms):
        n1, n2 = max(float(first.sum()), 1.0), max(float(second.sum()), 1.0)
        u = float(first @ sign @ second)
        statistics[i] = np.clip(u / (n1 * n2), -1, 1)
        p[i] = _one_p(u, (n1, n2), shares[i], sign, noise, normal, noises)
    return statistics, p


def _one_p(
    u: float,
    sizes: tuple[float, float],
    p: Floats,
    sign: Floats,
    noise: LinearNoise,
    normal: Floats,
    noises: tuple[Floats, Floats],
) -> float:
    from scipy.special import ndtr

    n1, n2 = sizes
    ranks = sign @ p
    among = float(p @ ranks**2 - (p @ ranks) ** 2)  # the variance of a value's rank
    sampled = n1 * n2 * (n1 + n2) * among
    linear = noise.variance * (n1**2 + n2**2) * float(ranks @ ranks)
    spread = np.sqrt(sampled + linear + noise.variance**2 * float((sign**2).sum()))
    plain = 2 * ndtr(-abs(u) / spread)
    if not noise.laplace or sampled > (1 - _HARDLY) * spread**2:
        return float(plain)
    base = np.sqrt(sampled) * normal[:, 0]
    true, smooth = noises
    simulated = base + n1 * true[:, 1] @ ranks - n2 * true[:, 0] @ ranks
    simulated = simulated + ((true[:, 0] @ sign) * true[:, 1]).sum(axis=-1)
    like = base + n1 * smooth[:, 1] @ ranks - n2 * smooth[:, 0] @ ranks
    rest = np.sqrt(noise.variance**2 * float((sign**2).sum())) * normal[:, 1]
    return float(corrected(np.asarray(plain), np.asarray(abs(u)), np.abs(simulated), np.abs(like + rest)))


def independence(release: Release[Any], *, column: str | None = None) -> Estimate:
    """Test whether two things are independent: a table of counts by two keys, or groups by cells.

    The table has the first key as its rows and, as its columns, the second key, the cells of a histogram, or
    no and yes of a condition. Chi-square with the noise in its variance; the bootstrap of the mechanism where
    noise is large (docs/proofs/inference.md).

    Parameters
    ----------
    release
        A release of counts by two keys, or of a histogram or a yes/no mean by one key.
    column
        The name of the column, where there are several.

    Examples
    --------
    >>> import tacit as tc
    >>> people = tc.inference.example_trial(budget=tc.Budget(epsilon=100))
    >>> release = people.group_by("arm", "site").agg(n=tc.count()).plan(epsilon=20).release()
    >>> 0 < tc.inference.independence(release).p_value <= 1
    True
    """
    return _table_test(release, column, independence_p, "chi-square test of independence")


def g_test(release: Release[Any], *, column: str | None = None) -> Estimate:
    """Test independence by the likelihood ratio G, with the bootstrap of the mechanism.

    Tables are drawn under independence, get noise of the same law, and their G is compared. Parameters as in
    `independence`.

    Examples
    --------
    >>> import tacit as tc
    >>> people = tc.inference.example_trial(budget=tc.Budget(epsilon=100))
    >>> release = people.group_by("arm", "site").agg(n=tc.count()).plan(epsilon=20).release()
    >>> 0 < tc.inference.g_test(release).p_value <= 1
    True
    """
    return _table_test(release, column, g_p, "G test by the bootstrap of the mechanism")


def _table_test(
    release: Release[Any], column: str | None, test: Callable[..., tuple[Floats, Floats]], method: str
) -> Estimate:
    lines = counted(release, column)
    table, names = _table(lines, list(release.keys))
    fewest = _TABLE * math.sqrt(table.size * lines.noise.variance)
    enough_rows(np.array([table.sum()]), max(fewest, 5.0 * table.size), "the table")
    statistic, p = (float(one[0]) for one in test(table[None], lines.noise))
    verdict = "are related" if p < lines.failing else "may be independent"
    return Estimate(
        statistic, None, None, lines.level, NOISE_AND_SAMPLING, method, p,
        f"{names[0]} and {names[1]} {verdict} ({p_words(p)}, {COVERED}).",
    )  # fmt: skip


def _table(lines: NoisyLines, keys: list[str]) -> tuple[Floats, tuple[str, str]]:
    """Return the counts as a table of rows and columns, and what these are called."""
    if lines.values.shape[1] > 1 and len(keys) == 1 and len(lines.labels) > 1:
        return lines.values, (keys[0], lines.name)
    if lines.values.shape[1] == 1 and len(keys) == 2:
        rows, second = (list(dict.fromkeys(label[i] for label in lines.labels)) for i in (0, 1))
        table = np.full((len(rows), len(second)), np.nan)
        for label, value in zip(lines.labels, lines.values[:, 0], strict=True):
            table[rows.index(label[0]), second.index(label[1])] = value
        if min(table.shape) > 1 and not np.isnan(table).any():
            return table, (keys[0], keys[1])
    raise TacitError(
        "bad-parameter",
        "a test of independence needs a full table: counts by two keys, or cells by one key",
        fix=Code('dataset.group_by("arm", "outcome").agg(n=tc.count())'),
    )


def fit(release: Release[Any], shares: Mapping[Any, float], *, column: str | None = None) -> Estimate:
    """Test whether counts follow given public shares.

    Parameters
    ----------
    release
        A release of counts by one key.
    shares
        The share of each group; they must add up to 1 and must not come from this data.
    column
        The name of the column, where there are several.

    Examples
    --------
    >>> import tacit as tc
    >>> people = tc.inference.example_trial(budget=tc.Budget(epsilon=100))
    >>> release = people.group_by("arm").agg(n=tc.count()).plan(epsilon=20).release()
    >>> 0 < tc.inference.fit(release, {"drug": 0.5, "placebo": 0.5}).p_value <= 1
    True
    """
    lines = counted(release, column)
    labels = list(lines.labels)
    if set(shares) != set(labels) or len(labels) < 2 or lines.values.shape[1] > 1:
        example = dict.fromkeys(labels, round(1 / max(len(labels), 1), 3))
        raise bad_parameter(
            "shares", "a share for each group of the release", shares, fix=Set(shares=example)
        )
    expected = np.array([float(shares[label]) for label in labels])
    if (expected <= 0).any() or abs(expected.sum() - 1) > 1e-6:
        raise bad_parameter(
            "shares",
            "positive numbers that add up to 1",
            shares,
            fix=Set(shares={"drug": 0.5, "placebo": 0.5}),
        )
    counts = lines.values[:, 0]
    fewest = max(_TABLE * math.sqrt(len(counts) * lines.noise.variance), 5 / float(expected.min()))
    enough_rows(np.array([counts.sum()]), fewest, "the table")
    statistic, p = (float(one[0]) for one in fit_p(counts[None], expected, lines.noise))
    verdict = "do not follow" if p < lines.failing else "may follow"
    return Estimate(
        statistic, None, None, lines.level, NOISE_AND_SAMPLING, "chi-square test of fit", p,
        f"The counts {verdict} the given shares ({p_words(p)}, {COVERED}).",
    )  # fmt: skip


def rank_test(release: Release[Any], first: Any, second: Any, *, column: str | None = None) -> Estimate:
    """Test whether values of two groups have the same law, by their ranks in public cells (Mann, Whitney).

    The value of the answer is P(the second is larger) - P(the first is larger), ties by cell.

    Parameters
    ----------
    release
        A release of a histogram by one key.
    first, second
        The two groups.
    column
        The name of the histogram, where there are several.

    Examples
    --------
    >>> import tacit as tc
    >>> people = tc.inference.example_trial(budget=tc.Budget(epsilon=100))
    >>> histogram = tc.histogram("sbp", range(80, 221, 10))
    >>> release = people.group_by("arm").agg(sbp=histogram).plan(epsilon=20).release()
    >>> found = tc.inference.rank_test(release, "drug", "placebo")
    >>> -1 <= found.value <= 1, 0 <= found.p_value <= 1
    (True, True)
    """
    lines = noisy_lines(release, column, lambda one: one.statistic == "cells", "histogram")
    places = [line_of(lines, first), line_of(lines, second)]
    pair = lines.values[places]
    fewest = CLEAR * math.sqrt(pair.shape[1] * lines.noise.variance)
    enough_rows(pair.sum(axis=1), max(fewest, 10.0), "the smallest group")
    statistic, p = (float(one[0]) for one in rank_p(pair[None], lines.noise))
    verdict = "differ" if p < lines.failing else "may be the same"
    return Estimate(
        statistic, None, None, lines.level, NOISE_AND_SAMPLING, "rank test on noisy histograms", p,
        f"The values of {lines.name} with {first} and with {second} {verdict} ({p_words(p)}).",
    )  # fmt: skip


def correlation(release: Release[Any], first: str, second: str, *, group: int = 0) -> Estimate:
    """Return Pearson's correlation for the population: with an interval for noise and sampling.

    Guarantee: free post-processing of a release. Fisher's z, for columns that are roughly normal: long tails
    make the interval too short, with or without noise.

    Parameters
    ----------
    release
        A linear regression, or a table with a `tacit.correlation` and a `tacit.count` of the same rows.
    first, second
        Of a regression two of its columns; of a table the column with the correlation and that with the
        count.
    group
        Of a table with groups: which line.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import tacit as tc
    >>> x, y = ([i % k for i in range(2000)] for k in (50, 40))
    >>> table = pa.table({"id": list(range(2000)), "x": x, "y": y})
    >>> people = tc.protect(
    ...     table, unit="id", limits={"rows": 1}, bounds={"x": (0, 50), "y": (0, 40)},
    ...     budget=tc.Budget(epsilon=9),
    ... )
    >>> release = people.regress("y", on=["x"]).plan(epsilon=9).release()
    >>> found = tc.inference.correlation(release, "x", "y")
    >>> found.low < found.value < found.high, found.covers
    (True, 'noise and sampling')
    """
    content = getattr(release, "content", None)
    if isinstance(content, RegressionTable) and isinstance(content.model, LinearFit):
        return content.model.correlation(first, second)
    if isinstance(content, AnswerTable):
        return _with_sampling(content, first, second, group)
    raise TacitError(
        "bad-parameter",
        "a correlation is read off a linear regression, or off a table with a correlation and a count",
        fix=Code('rows.agg(r=tc.correlation("x", "y"), n=tc.count())'),
    )


def _with_sampling(table: AnswerTable, name: str, rows: str, group: int) -> Estimate:
    """Add the sampling error to a correlation that has its interval for the noise."""
    for name_in_table in (name, rows):
        Choice(tuple(table.columns)).read("a column", name_in_table)
    cells, row_counts = table.columns[name], table.columns[rows]
    r, low, high, n = (
        float(x[group] or math.nan) for x in (cells.value, cells.low, cells.high, row_counts.value)
    )
    level, method = table.confidence, "Fisher's z, and the interval for the noise"
    if math.isnan(r) or not n > 4 or low <= -_MOST or high >= _MOST:
        sentence = "The noise hides the correlation."
        return Estimate(None, None, None, level, NOISE_AND_SAMPLING, method, None, sentence)
    z, at = NormalDist().inv_cdf((1 + level) / 2) / math.sqrt(n - 3), math.atanh(r)
    ends = (
        math.tanh(at - math.hypot(z, at - math.atanh(low))),
        math.tanh(at + math.hypot(z, math.atanh(high) - at)),
    )
    sentence = (
        f"The correlation is {r:.3g} ({short_percent(level)} confidence interval {ends[0]:.3g} to "
        f"{ends[1]:.3g}, {COVERED})."
    )
    return Estimate(r, *ends, level, NOISE_AND_SAMPLING, method, None, sentence)
