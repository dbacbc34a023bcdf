"""Correlations with sampling: from the moments of a regression, or from a released correlation."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.inference._estimate import NOISE_AND_SAMPLING, Estimate, percent_words
from tacit.inference._linear_fit import LinearFit
from tacit.inference._regression_table import RegressionTable
from tacit.parameters import Choice

if TYPE_CHECKING:
    from tacit.core import Release

_MOST = 1 - 1e-9


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
    content = release.content
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
    for one in (name, rows):
        Choice(tuple(table.columns)).read("a column", one)
    cells, counted = table.columns[name], table.columns[rows]
    r, low, high, n = (
        float(x[group] or math.nan) for x in (cells.value, cells.low, cells.high, counted.value)
    )
    level, method = table.confidence, "Fisher's z, and the interval for the noise"
    if math.isnan(r) or not n > 4 or low <= -_MOST or high >= _MOST:
        said = "The noise hides the correlation."
        return Estimate(None, None, None, level, NOISE_AND_SAMPLING, method, None, said)
    z, at = NormalDist().inv_cdf((1 + level) / 2) / math.sqrt(n - 3), math.atanh(r)
    ends = (
        math.tanh(at - math.hypot(z, at - math.atanh(low))),
        math.tanh(at + math.hypot(z, math.atanh(high) - at)),
    )
    said = (
        f"The correlation is {r:.3g} ({percent_words(level)} confidence interval {ends[0]:.3g} to "
        f"{ends[1]:.3g}, for privacy noise and chance in who was included)."
    )
    return Estimate(r, *ends, level, NOISE_AND_SAMPLING, method, None, said)
