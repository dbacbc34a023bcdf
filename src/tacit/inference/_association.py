"""Tests of tables of counts and of ranks, from a release: independence, fit, G, rank test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Set
from tacit.inference._contingency import fit_p, g_p, independence_p
from tacit.inference._estimate import COVERED, NOISE_AND_SAMPLING, Estimate, p_words
from tacit.inference._measurements import CLEAR, counted, enough_rows, line_of, noisy_lines
from tacit.inference._ranks import rank_p

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import Release
    from tacit.inference._measurements import NoisyLines
    from tacit.inference._sampling_intervals import Floats

#: Deviations of the noise of all cells together that a table must reach.
_TABLE = 5.0


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
    least = _TABLE * math.sqrt(table.size * lines.noise.variance)
    enough_rows(np.array([table.sum()]), max(least, 5.0 * table.size), "the table")
    found, p = (float(one[0]) for one in test(table[None], lines.noise))
    said = "are related" if p < lines.failing else "may be independent"
    return Estimate(
        found, None, None, lines.level, NOISE_AND_SAMPLING, method, p,
        f"{names[0]} and {names[1]} {said} ({p_words(p)}, {COVERED}).",
    )  # fmt: skip


def _table(lines: NoisyLines, keys: list[str]) -> tuple[Floats, tuple[str, str]]:
    """Return the counts as a table of rows and columns, and what these are called."""
    if lines.values.shape[1] > 1 and len(keys) == 1 and len(lines.labels) > 1:
        return lines.values, (keys[0], lines.name)
    if lines.values.shape[1] == 1 and len(keys) == 2:
        first, second = (list(dict.fromkeys(label[i] for label in lines.labels)) for i in (0, 1))
        table = np.full((len(first), len(second)), np.nan)
        for label, value in zip(lines.labels, lines.values[:, 0], strict=True):
            table[first.index(label[0]), second.index(label[1])] = value
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
    least = max(_TABLE * math.sqrt(len(counts) * lines.noise.variance), 5 / float(expected.min()))
    enough_rows(np.array([counts.sum()]), least, "the table")
    found, p = (float(one[0]) for one in fit_p(counts[None], expected, lines.noise))
    said = "do not follow" if p < lines.failing else "may follow"
    return Estimate(
        found, None, None, lines.level, NOISE_AND_SAMPLING, "chi-square test of fit", p,
        f"The counts {said} the given shares ({p_words(p)}, {COVERED}).",
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
    least = CLEAR * math.sqrt(pair.shape[1] * lines.noise.variance)
    enough_rows(pair.sum(axis=1), max(least, 10.0), "the smallest group")
    found, p = (float(one[0]) for one in rank_p(pair[None], lines.noise))
    said = "differ" if p < lines.failing else "may be the same"
    return Estimate(
        found, None, None, lines.level, NOISE_AND_SAMPLING, "rank test on noisy histograms", p,
        f"The values of {lines.name} with {first} and with {second} {said} ({p_words(p)}).",
    )  # fmt: skip
