"""Power before spending: how often a plan would find an effect, and what it would take; touches no data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import members_of
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Choose, Code, Do, Either, Set
from tacit.inference._mean_tests import means_apart
from tacit.inference._sampling_intervals import plausible
from tacit.parameters import RealNumber
from tacit.tables import FoundBoundsSubject, TableSubject, is_yes_no

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.core import Plan
    from tacit.inference._sampling_intervals import Floats
    from tacit.mechanisms import LinearNoise

_WANTED = 0.8
_MOST = 1e9
_REACH = (math.log(1e-6), math.log(_MOST))


@dataclass(frozen=True, slots=True, repr=False)
class PowerForecast:
    """How often a plan would find an effect of a given size.

    Parameters
    ----------
    power
        The chance of a p-value below ``alpha``.
    effect, n, alpha
        What was assumed: the difference, the rows of each group, the level of the test.
    n_needed
        The rows of each group, in the same proportion, with which 80 % would be reached.
    epsilon_factor
        How many times the epsilon would reach 80 % with the assumed rows; None where sampling alone prevents
        it, and below 1 where less would do.
    sentence
        The answer in words.
    """

    power: float
    effect: float
    n: tuple[int, ...]
    alpha: float
    n_needed: tuple[int, ...]
    epsilon_factor: float | None
    sentence: str

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in self.sentence.splitlines())


def power(
    plan: Plan[Any],
    *,
    effect: float,
    n: int | Sequence[int],
    sd: float | None = None,
    around: float | None = None,
    column: str | None = None,
    alpha: float = 0.05,
) -> PowerForecast:
    """Say how often a plan would find a difference between two groups, before anything is spent.

    Guarantee: a function of the plan and of what is assumed; no data is touched and nothing is charged.

    Parameters
    ----------
    plan
        A plan with a mean by group, in which each unit adds one row.
    effect
        The difference of the two means, in the column's own units; of a yes/no column, of the proportions.
    n
        The rows of each of the two groups, or of both; a guess from public knowledge.
    sd
        The standard deviation of the values; not needed for a yes/no column.
    around
        The mean around which the values lie; by default the middle of the range. Of a yes/no column, the
        proportion.
    column
        The name of the mean, where there are several.
    alpha
        The level of the test.

    Examples
    --------
    >>> import tacit as tc
    >>> people = tc.inference.example_trial(budget=tc.Budget(epsilon=1))
    >>> plan = people.group_by("arm").agg(sbp=tc.mean("sbp")).plan(epsilon=1)
    >>> tc.inference.power(plan, effect=5, sd=18, n=(400, 400))
    finds a difference of 5 in 95 of 100 such trials (p below 0.05)
    80 of 100 need 256 and 256 rows, or 0.4 times the epsilon
    """
    statistic, noise = _measured(plan, column)
    low, width = (
        float(statistic.grid.lo * statistic.grid.step),
        float(statistic.grid.width * statistic.grid.step),
    )
    sizes = _sizes(n)
    if not math.isfinite(effect) or not 0 < abs(effect) <= width:
        raise bad_parameter("effect", f"not 0, and at most {width:g}", effect, fix=Set(effect=width / 20))
    RealNumber(above=0, below=1, instead=0.05).read("alpha", alpha)
    if around is not None:
        RealNumber(least=low, most=low + width, instead=low + width / 2).read("around", around)
    middle = 0.5 if around is None else (around - low) / width
    v, distance = _variance(statistic, sd, width, middle), abs(effect) / width

    def quick(times: float, quieter: float) -> float:
        return _normal_power(middle, distance, v, [times * m for m in sizes], noise.over(quieter), alpha)

    def chance(times: float, quieter: float) -> float:
        if statistic.size == 2:
            return quick(times, quieter)
        return _test_power(middle, distance, v, [times * m for m in sizes], noise.over(quieter), alpha)

    probability = chance(1, 1)
    grown = _smallest(lambda times: chance(times, 1), lambda times: quick(times, 1)) or _MOST
    factor = _smallest(lambda quieter: chance(1, quieter), lambda quieter: quick(1, quieter))
    needed = tuple(math.ceil(grown * m) for m in sizes)
    return PowerForecast(
        probability, effect, sizes, alpha, needed, factor, _said(probability, effect, alpha, needed, factor)
    )


def _normal_power(
    middle: float, distance: float, v: float, sizes: Sequence[float], noise: LinearNoise, alpha: float
) -> float:
    """Return the power if noise and sampling are normal and the variance is known; of shares that is close.

    Two parts, so this is the law of yes and no; three parts have a little more noise (`_test_power`).
    """
    per_row = noise.variance * ((1 - middle) ** 2 + middle**2)
    spread = math.sqrt(sum(v / m + per_row / m**2 for m in sizes))
    z, edge = distance / spread, NormalDist().inv_cdf(1 - alpha / 2)
    return NormalDist().cdf(z - edge) + NormalDist().cdf(-z - edge)


def _test_power(
    middle: float, distance: float, v: float, sizes: Sequence[float], noise: LinearNoise, alpha: float
) -> float:
    """Return the power of the test of two means (`two_means_p`), with the law and the doubts that it has.

    The test reads the variance around the mean of both groups from noisy parts, and averages its p-value over
    likely values of it. So its edge is computed for likely readings, and the chance to exceed it is averaged.
    """
    means = np.clip([middle + distance / 2, middle - distance / 2], 0.0, 1.0)
    square = v + means**2
    parts = np.stack([1 - 2 * means + square, 2 * (means - square), square], axis=-1)
    gaps = means_apart((parts * np.array(sizes)[:, None])[None], noise)
    readings = np.concatenate(plausible(gaps.sampling, gaps.doubt))
    likely = np.minimum(plausible(readings, np.broadcast_to(gaps.doubt, readings.shape)), gaps.most)
    edge = _edge(gaps.weights[0], np.sqrt(likely), noise, alpha)
    deviation = math.sqrt(sum(v / m for m in sizes))

    def above(at: Floats) -> Floats:
        tails = noise.tail(np.abs(at), np.broadcast_to(gaps.weights[0], (len(at), 6)), deviation)
        return np.where(at > 0, tails / 2, 1 - tails / 2)

    return float(np.mean(above(edge - distance) + above(edge + distance)))


def _edge(weights: Floats, deviations: Floats, noise: LinearNoise, alpha: float) -> Floats:
    """Return for each column of deviations the difference at which the mean of the p-values is alpha."""
    rates = np.broadcast_to(weights, (*deviations.shape, len(weights)))
    low = np.zeros(deviations.shape[1])
    high = np.full_like(
        low, 20 * math.hypot(deviations.max(), math.sqrt(noise.variance * (weights @ weights)))
    )
    for _ in range(24):
        middle = (low + high) / 2
        p = noise.tail(np.broadcast_to(middle, deviations.shape), rates, deviations).mean(axis=0)
        low, high = np.where(p > alpha, middle, low), np.where(p > alpha, high, middle)
    return high


def _said(chance: float, effect: float, alpha: float, needed: tuple[int, ...], factor: float | None) -> str:
    rows = " and ".join(f"{m:,}" for m in needed)
    quieter = f", or {factor:.2g} times the epsilon" if factor is not None else "; no epsilon is enough"
    return (
        f"finds a difference of {effect:g} in {100 * chance:.0f} of 100 such trials (p below {alpha:g})\n"
        f"{100 * _WANTED:.0f} of 100 need {rows} rows{quieter}"
    )


def _sizes(n: int | Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(count("n", m, zero=False) for m in ((n, n) if isinstance(n, int) else n))
    if len(sizes) != 2 or min(sizes) < 2:
        raise bad_parameter("n", "a whole number from 2 on, or two of them", n, fix=Set(n=(400, 400)))
    return sizes


def _variance(statistic: Any, sd: float | None, width: float, middle: float) -> float:
    if statistic.size == 2:
        return max(middle * (1 - middle), 1e-6)
    why = "it is the standard deviation of the values"
    spread = RealNumber(above=0, most=width / 2, instead=width / 8, why=why).read("sd", sd)
    return (float(spread) / width) ** 2


def _smallest(chance: Callable[[float], float], quick: Callable[[float], float]) -> float | None:
    """Return the smallest factor at which the wanted power is reached; None where none is.

    The search starts where the quick forecast reaches it.
    """
    from scipy.optimize import brentq

    if min(quick(_MOST), chance(_MOST)) < _WANTED:
        return None
    start = float(brentq(lambda x: quick(math.exp(x)) - _WANTED, *_REACH, xtol=1e-6))
    low = high = start
    while chance(math.exp(high)) < _WANTED:
        high += 0.2
    while chance(math.exp(low)) >= _WANTED:
        low -= 0.2
    return math.exp(float(brentq(lambda x: chance(math.exp(x)) - _WANTED, low, high, xtol=1e-3)) + 1e-3)


def _measured(plan: Plan[Any], column: str | None) -> tuple[Any, Any]:
    """Return the statistic of a mean and its noise in rows, or refuse a plan without one."""
    table = members_of(plan)[0].task.subject
    if not isinstance(table, TableSubject):
        raise _no_mean({}, column)
    if isinstance(table, FoundBoundsSubject):
        raise TacitError(
            "not-allowed",
            "the power of a plan that finds bounds is not known before",
            why="the noise is a share of the range, and the range is found when the plan is released",
            fix=Do("find-bounds-first", expression=table.searched[0]),
        )
    means = [one for one in table.columns if one.aggregate.word == "mean"]
    noises = {one.name: table.noises[one.step] for one in means}
    if column is None and len(noises) == 1:
        [column] = noises
    if column not in noises:
        raise _no_mean(noises, column)
    noise = noises[column]
    is_measured = noise.statistic.word == "squares" or is_yes_no(noise.statistic.argument)
    if not is_measured or table.rows_per_unit != 1:
        raise TacitError(
            "not-allowed",
            f"no test of {column} can follow from this plan",
            why="several rows of one unit count, or the spread will not be measured",
            fix=Either(Code("dataset.limit(rows=1)"), Code('tc.mean("sbp", spread=True)')),
        )
    return noise.statistic, noise.linear.over(noise.statistic.weight)


def _no_mean(noises: Mapping[str, object], column: str | None) -> TacitError:
    """Refuse a plan without a mean of this name."""
    return TacitError(
        "unknown-column",
        "the plan has no mean of this name" if noises else "the plan has no mean",
        fix=Choose(tuple(noises), given=column or "")
        if noises
        else Code('dataset.group_by("arm").agg(sbp=tc.mean("sbp"))'),
    )
