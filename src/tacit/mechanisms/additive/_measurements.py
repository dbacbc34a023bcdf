"""The noise of many measurements, and the law of every weighted sum of them.

Independent measurements, also of a tree of regions, and the law of every sum of regions. Strategies: exact
whole-number sums of cells, and integer noise on each of them. And how likely noise is to reach a height: for
one noisy number exactly, for a weighted sum an upper bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.exact import count
from tacit.mechanisms._input_values import read_integers, wrong_input
from tacit.mechanisms._mechanism import IntegerMechanism, exactly_one, figure, read_adjacency
from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw
from tacit.mechanisms.additive._integer_noise import DiscreteGaussian, DiscreteLaplace
from tacit.mechanisms.additive._linear_noise import LinearNoise, linear_half_width
from tacit.parameters import RealNumber
from tacit.strategies import alike, weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from tacit.accounting import Adjacency, Cost
    from tacit.exact import Number
    from tacit.strategies import RangeStrategy, Workload


_EXACT = 48  # so many different weights are kept as they are
_STEP = math.log(1.01)  # more are rounded up, by less than this
_FAINTEST = 1e-5  # weights below this part of the largest are rounded up to it


_LARGEST = 1e150  # scales whose squares are numbers
_MAX_TERMS = 12  # Laplace terms that keep their own law; the others join the normal
_ROOM = 2**62
_AT_ONCE = 2**22  # weights in one block
_SLACK = 1e-9  # relative; far above the rounding errors of the sums below
_ROUNDS = 60


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementNoise:
    """Independent whole-number noise on m measurements; the counts of n regions are linear in them.

    Without ``parents`` measurement i is the count of region i. With them the measurements form a forest,
    regions are its leaves and come first, and the counts are the least-squares estimates that are
    consistent: every measurement is worth the sum of its children (Hay et al. 2010).

    Parameters
    ----------
    laplace, normal
        The Laplace scale and the standard deviation of the Gaussian noise on each measurement; one is 0.
    regions
        How many regions there are.
    parents
        The number of each measurement's parent, or -1; None if measurements are regions.
    direct
        Whether the noise of a parent decided which children it has, as in an adaptive grid. The weights of
        least squares then depend on the noise, and intervals rest on single measurements instead: sums are
        of measurements, not of regions (docs/proofs/map_trees.md, "The adaptive grid").

    Examples
    --------
    >>> import tacit as tc
    >>> noise = MeasurementNoise.of([(tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1), 5)])
    >>> noise.half_widths([[0], [0, 1, 2, 3]], 0.05).tolist()
    [3.0, 6.0]
    """

    laplace: NDArray[np.float64]
    normal: NDArray[np.float64]
    regions: int
    parents: NDArray[np.int64] | None = None
    direct: bool = False

    @classmethod
    def of(
        cls, measured: Sequence[tuple[DiscreteLaplace | DiscreteGaussian, int]],
        parents: NDArray[np.int64] | None = None, *, direct: bool = False,
    ) -> Self:  # fmt: skip
        """Return the noise of mechanisms, each with how many measurements it made; leaves come first."""
        scales = np.concatenate([np.full(size, float(one.scale)) for one, size in measured])
        gaussian = np.concatenate(
            [np.full(size, isinstance(one, DiscreteGaussian)) for one, size in measured]
        )
        leaves = len(scales)
        if parents is not None:
            inner = np.unique(parents[parents >= 0])
            leaves = int(inner[0]) if len(inner) else len(scales)
        return cls(np.where(gaussian, 0.0, scales), np.where(gaussian, scales, 0.0), leaves, parents, direct)

    @property
    def variances(self) -> NDArray[np.float64]:
        """The variance of each measurement."""
        return 2 * self.laplace**2 + self.normal**2

    @property
    def mixes(self) -> bool:
        """Whether the count of a region is made from several measurements."""
        return self.parents is not None and not self.direct

    def covering(self, inside: NDArray[np.int64], cut: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the measurements whose sum is that of some regions, for an interval.

        A parent stands for its children if the area contains all of them: that is a fact about the area and
        the parent, however the parent is divided. Elsewhere the children stand for themselves.
        """
        touched = np.concatenate([inside, cut])
        if not self.direct or self.parents is None:
            return touched
        size = len(self.parents)
        has, all_of = (
            np.bincount(self.parents[some][self.parents[some] >= 0], minlength=size)
            for some in (inside, np.arange(self.regions))
        )
        complete = (has == all_of) & (has > 0)
        up = self.parents[touched]
        return np.concatenate([touched[(up < 0) | ~complete[up]], np.flatnonzero(complete)])

    def weights(self, regions: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weight of each measurement in the sum of some regions' counts."""
        chosen = np.zeros(len(self.laplace))
        chosen[np.asarray(regions, dtype=np.int64)] = 1.0
        if self.parents is None or self.direct:
            return chosen

        return weights_of(chosen, self.parents, self.variances)

    def half_widths(
        self, sums: Sequence[Sequence[int] | NDArray[np.int64]], failing: float
    ) -> NDArray[np.float64]:
        """Return for each sum of regions the t with ``P(|noise of the sum| > t)`` at most ``failing``."""
        return half_widths_of([[(self, sum_of)] for sum_of in sums], failing)

    def each_half_width(self, failing: float) -> NDArray[np.float64]:
        """Return the half-width of each region alone; regions that are alike are worked out once."""
        if self.parents is None or self.direct:
            kinds = np.unique(np.stack([self.laplace, self.normal]), axis=1, return_inverse=True)[1]
            kinds = kinds.reshape(-1)[: self.regions]
        else:
            kinds = alike(self.parents, self.variances)[: self.regions]
        _, examples, index = np.unique(kinds, return_index=True, return_inverse=True)
        return self.half_widths([[i] for i in examples.tolist()], failing)[index]

    def to_json(self) -> dict[str, Any]:
        """Return the noise as JSON: runs of equal scales."""
        return {
            "laplace": _runs(self.laplace),
            "normal": _runs(self.normal),
            "regions": self.regions,
            **({} if self.parents is None else {"parents": self.parents.tolist()}),
            **({"direct": True} if self.direct else {}),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the noise back; raises ``ValueError`` where it is not one."""
        laplace, normal = (_from_runs(document[name]) for name in ("laplace", "normal"))
        parents = document.get("parents")
        tree = None if parents is None else np.array([int(one) for one in parents], dtype=np.int64)
        regions = int(document["regions"])
        sizes = {len(laplace), len(normal)} | (set() if tree is None else {len(tree)})
        if len(sizes) != 1 or not 0 < regions <= len(laplace) or (tree is None and regions != len(laplace)):
            raise ValueError("not the noise of a surface")
        if tree is not None:
            # regions are leaves, and a parent stands after its children, so none is its own ancestor
            above = tree >= 0
            inner = tree[above]
            if (
                (inner >= len(tree)).any()
                or (inner < regions).any()
                or (inner <= np.flatnonzero(above)).any()
            ):
                raise ValueError("not the noise of a surface")
        if ((laplace > 0) & (normal > 0)).any():
            raise ValueError("not the noise of a surface")
        return cls(laplace, normal, regions, tree, document.get("direct") is True)


def half_widths_of(
    sums: Sequence[Sequence[tuple[MeasurementNoise, Sequence[int] | NDArray[np.int64]]]], failing: float
) -> NDArray[np.float64]:
    """Return for each sum over one or more independent surfaces the half-width of its noise.

    Noise is whole-numbered, and the law of continuous noise stands for it. Where every weight is 1 the
    half-width is rounded up; elsewhere half of the largest weight is added (docs/proofs/maps.md, section 6).
    """
    RealNumber(above=0, below=1, instead=0.05).read("failing", failing)
    cache: dict[tuple[Any, ...], float] = {}
    half_widths = np.empty(len(sums))
    for i, parts in enumerate(sums):
        key = _key(parts)
        if key is None or key not in cache:
            value = _half_width(parts, failing)
            if key is not None:
                cache[key] = value
        else:
            value = cache[key]
        half_widths[i] = value
    return half_widths


def _key(parts: Sequence[tuple[MeasurementNoise, Any]]) -> tuple[Any, ...] | None:
    """Return what decides the half-width where that is only how many regions are added up."""
    if any(noise.mixes or np.ptp(noise.laplace) or np.ptp(noise.normal) for noise, _ in parts):
        return None
    return tuple((float(n.laplace[0]), float(n.normal[0]), len(chosen)) for n, chosen in parts)


def _half_width(parts: Sequence[tuple[MeasurementNoise, Any]], failing: float) -> float:
    key = _key(parts)
    if key is None:
        return _of_weights(parts, failing)
    used = [(laplace, normal, size) for laplace, normal, size in key if size]
    if not used:
        return 0.0
    if sum(size for *_, size in used) == 1:
        [(laplace, normal, _)] = used
        law = LaplaceLaw(Fraction(laplace)) if laplace else GaussianLaw(Fraction(normal))
        rare = Fraction(failing).limit_denominator(10**9) or Fraction(failing)
        return float(law.half_width(1 - rare))
    terms = np.array([laplace for laplace, _, _ in used])
    times = np.array([float(size) for *_, size in used])
    spread = math.sqrt(sum(size * normal**2 for _, normal, size in used))
    return float(math.ceil(_continuous(failing, terms, times, spread) - 1e-9))


def _of_weights(parts: Sequence[tuple[MeasurementNoise, Any]], failing: float) -> float:
    """Return the half-width of a sum whose weights differ: half of the largest weight is added."""
    weights = [np.abs(noise.weights(chosen)) for noise, chosen in parts]
    laws = [noise for noise, _ in parts]
    scaled = np.concatenate([w * noise.laplace for w, noise in zip(weights, laws, strict=True)])
    spread = math.sqrt(sum(((w * noise.normal) ** 2).sum() for w, noise in zip(weights, laws, strict=True)))
    largest = max((float(w.max(initial=0.0)) for w in weights), default=0.0)
    return _continuous(failing, *_together(scaled), spread) + largest / 2


def _continuous(
    failing: float, terms: NDArray[np.float64], times: NDArray[np.float64], spread: float
) -> float:
    """Return the half-width of continuous noise: Laplace terms, each several times, and a normal one."""
    used = terms > 0
    if not used.any():
        return float(linear_half_width(failing, np.zeros((1, 1)), np.array([spread]))[0]) if spread else 0.0
    return float(linear_half_width(failing, terms[used][None], np.array([spread]), times[used][None])[0])


def _together(scales: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return different scales and how often each occurs; many different ones are rounded up a little."""
    scales = scales[scales > 0]
    if not len(scales):
        return scales, scales
    different, times = np.unique(scales.round(12), return_counts=True)
    if len(different) > _EXACT:
        top = scales.max()
        steps = np.floor(np.log(top / np.maximum(scales, _FAINTEST * top)) / _STEP)
        steps, times = np.unique(steps, return_counts=True)
        different = top * np.exp(-steps * _STEP)
    return different, times.astype(np.float64)


def _runs(values: NDArray[np.float64]) -> list[list[float]]:
    """Write equal neighbours as [value, how many]."""
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    return [
        [float(values[s]), int(n)] for s, n in zip(starts, np.diff(np.r_[starts, len(values)]), strict=True)
    ]


def _from_runs(runs: Any) -> NDArray[np.float64]:
    times = [int(n) for _, n in runs]
    if any(n < 0 for n in times) or sum(times) > 2**26:
        raise ValueError("not the noise of a surface")
    values = np.repeat([float(v) for v, _ in runs], times)
    if not ((values >= 0) & (values < _LARGEST)).all():
        raise ValueError("not the noise of a surface")
    return values


@dataclass(frozen=True, init=False, repr=False)
class StrategyNoise(IntegerMechanism):
    """Release B x + noise for the counts x of ordered cells, where B is a matrix of whole numbers.

    Guarantee: a unit with at most k rows moves B x by at most k times the largest norm of a column of B: each
    row adds one column, and norms add up at most. Several groups, each with cells of its own, change nothing
    in this, because a row is in one group. Where units are replaced, each of k rows goes from one cell to
    another, or comes, or goes, and the largest distance of two columns counts too; rows in two groups are as
    far apart as the root of the sum of their squares. The norms are those of the whole numbers in B, in L2
    for Gaussian noise and in L1 for Laplace noise. docs/proofs/ranges.md has the proof.

    Parameters
    ----------
    strategy
        What is measured.
    rho
        Gaussian noise with this cost; or give `epsilon`.
    epsilon, delta
        Laplace noise of this cost; with `delta` Gaussian noise.
    rows
        How many rows one unit has at most (k).
    grouped
        Whether there are several groups, each with cells of its own.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> from tacit.strategies import Workload, factored
    >>> noise = tc.mechanisms.StrategyNoise(factored(Workload(4, "prefixes")), rho=0.5)
    >>> round(noise.spread(Workload(4, "prefixes")), 3)
    1.311
    >>> np.shape(noise.release([120, 80, 30, 4]))
    (4,)
    """

    additive: ClassVar[bool] = True

    strategy: RangeStrategy
    rows: int
    grouped: bool
    adjacency: Adjacency
    noise: DiscreteGaussian | DiscreteLaplace

    def __init__(
        self,
        strategy: RangeStrategy,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number = 0,
        rows: int = 1,
        grouped: bool = False,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        max_rows, relation = count("rows", rows, zero=False), read_adjacency(adjacency)
        noise: DiscreteGaussian | DiscreteLaplace
        if exactly_one(rho=rho, epsilon=epsilon) == "rho" or delta:
            squared = strategy.column_squared
            if relation == "replace":
                squared = max(squared, strategy.move_squared, 2 * squared if grouped else 0)
            limit = {"rho": rho} if epsilon is None else {"epsilon": epsilon, "delta": delta}
            noise = DiscreteGaussian(**limit, sensitivity_squared=max_rows**2 * squared, adjacency=relation)
        else:
            movement = strategy.column_sum
            if relation == "replace":
                movement = max(movement, strategy.move_sum, 2 * movement if grouped else 0)
            noise = DiscreteLaplace(epsilon=epsilon, sensitivity=max_rows * movement, adjacency=relation)
        for name, value in (
            ("strategy", strategy), ("rows", max_rows), ("grouped", bool(grouped)), ("adjacency", relation),
            ("noise", noise),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def cost(self) -> Cost:
        """What all sums together take from a budget."""
        return self.noise.cost

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each sum."""
        return self.noise.scale

    @property
    def law(self) -> LinearNoise:
        """The noise on each sum, for intervals."""
        size = float(self.scale)
        return LinearNoise(normal=size) if isinstance(self.noise, DiscreteGaussian) else LinearNoise((size,))

    def sums(self, value: object) -> NDArray[Any]:
        """Return the exact sums B x of the counts of cells, which run along the last axis."""
        counts = np.asarray(read_integers(value))
        cells = self.strategy.cells
        if counts.ndim == 0 or counts.shape[-1] != cells:
            raise wrong_input(f"the counts of {cells} cells", counts, fix="count every cell")
        matrix = self.strategy.matrix.T
        largest = max(abs(int(counts.max(initial=0))), abs(int(counts.min(initial=0))))
        if largest * int(np.abs(matrix).max()) * cells < _ROOM:
            return np.asarray(counts.astype(np.int64) @ matrix)
        return np.asarray(counts.astype(object) @ matrix.astype(object))

    def release(self, value: object) -> Any:
        """Return the noisy sums of the counts of cells; groups, if any, run along the first axis."""
        return self.noise.release(self.sums(value))

    def release_many(self, value: object, count: int) -> NDArray[Any]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        return self.noise.release_many(self.sums(value), count)

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return how far one noisy sum may lie from the true sum."""
        return self.noise.half_width(confidence, copies=copies)

    def spread(self, workload: Workload) -> float:
        """Return the root mean square error of the questions of a workload."""
        return math.sqrt(self.noise.variance * self.strategy.mean_variance(workload))

    @property
    def worst_pair(self) -> tuple[list[int], list[int]]:
        """No rows, and all rows of one unit in the cell whose column is the largest."""
        gaussian = isinstance(self.noise, DiscreteGaussian)
        matrix = self.strategy.matrix
        norms = (matrix**2).sum(axis=0) if gaussian else np.abs(matrix).sum(axis=0)
        neighbour = [0] * self.strategy.cells
        neighbour[int(norms.argmax())] = self.rows
        return [0] * self.strategy.cells, neighbour

    def to_json(self) -> dict[str, Any]:
        """Return the fingerprint of the sums, the exact noise and the cost."""
        return {
            "mechanism": "strategy-noise",
            "cells": self.strategy.cells,
            "sums": len(self.strategy.matrix),
            "strategy": self.strategy.digest,
            "rows": self.rows,
            "noise": self.noise.to_json(),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        law = "Gaussian" if isinstance(self.noise, DiscreteGaussian) else "Laplace"
        size = figure(self.scale * unit / self.strategy.scale)
        return f"{self.strategy.describe()}, discrete {law} noise, scale {size}"

    def __repr__(self) -> str:
        return f"StrategyNoise({self.describe()}; {self.strategy.cells} cells)"


def weighted_half_widths(law: LinearNoise, weights: ArrayLike, failing: float) -> NDArray[np.float64]:
    """Return the t with ``P(|sum_i weights_i noise_i| > t)`` at most ``failing``, for many sums of noise.

    The weights run along the last axis. Half of the largest weight is added, because noise is in whole steps
    (docs/proofs/maps.md, section 6). Of Laplace noise the largest terms keep their law, and the others join
    the normal, as in streams.

    Examples
    --------
    >>> weighted_half_widths(LinearNoise(normal=10.0), [[0.1, 0.1]], 0.05).round(2).tolist()
    [2.82]
    """
    w = np.abs(np.atleast_1d(np.asarray(weights, dtype=np.float64)))
    lines = w.reshape(-1, w.shape[-1])
    half_widths = np.empty(len(lines))
    step = max(1, _AT_ONCE // max(1, lines.shape[1]))
    for start in range(0, len(lines), step):
        part = lines[start : start + step]
        normal = law.normal * np.sqrt((part**2).sum(axis=1))
        largest = part.max(axis=1, initial=0.0)
        if law.laplace:
            part = -np.sort(-part, axis=1)
            rest = np.sqrt(2 * (part[:, _MAX_TERMS:] ** 2).sum(axis=1)) * law.laplace[0]
            laplace = part[:, :_MAX_TERMS] * law.laplace[0]
            widths = linear_half_width(failing, laplace, np.hypot(normal, rest))
        else:
            widths = linear_half_width(failing, np.zeros((len(part), 1)), normal)
        half_widths[start : start + step] = np.where(largest > 0, widths + largest / 2, 0.0)
    return half_widths.reshape(w.shape[:-1])


def chance_above(noise: DiscreteGaussian | DiscreteLaplace, weights: ArrayLike, height: float) -> float:
    """Return how likely the weighted sum of independent draws is to reach a height; never too little.

    With one weight this is the exact chance. With several it is Chernoff's bound, from the exact
    moment-generating function of discrete Laplace noise, and from exp(s^2 sigma^2 / 2), which no discrete
    Gaussian exceeds (Canonne, Kamath and Steinke 2020).

    Parameters
    ----------
    noise
        The law of each draw.
    weights
        Numbers; their signs do not matter.
    height
        In the unit of the sum.

    Examples
    --------
    >>> import tacit as tc
    >>> day = tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1)
    >>> round(365 * chance_above(day, [1], 9), 3)
    0.033
    """
    w = np.abs(np.asarray(weights, dtype=np.float64)).ravel()
    w = w[w > 0]
    if height <= 0:
        return 1.0
    if len(w) == 0:
        return 0.0
    if len(w) == 1:
        steps = math.ceil(height / float(w[0]) * (1 - _SLACK))
        return noise.lattice(1)[1].exceeds(steps - 1) / 2
    if isinstance(noise, DiscreteGaussian):
        spread = float(noise.scale) ** 2 * float((w**2).sum())
        return min(1.0, math.exp(-(height**2) / (2 * spread)) * (1 + _SLACK))
    return min(1.0, math.exp(_laplace_exponent(float(noise.scale), w, height)) * (1 + _SLACK))


def _laplace_exponent(scale: float, w: NDArray[np.float64], height: float) -> float:
    """Return the smallest logarithm of Chernoff's bound that a search finds; every tilt gives a bound."""
    rate = 1 / scale
    low, high = 0.0, rate / float(w.max()) * (1 - 1e-9)

    def exponent(tilt: float) -> float:
        # ln of (cosh a - 1) / (cosh a - cosh s), written with sines: no figures cancel
        s = tilt * w
        terms = 2 * _log_sine(np.array([rate / 2])) - _log_sine((rate - s) / 2) - _log_sine((rate + s) / 2)
        return float(terms.sum()) - tilt * height

    for _ in range(_ROUNDS):
        third = (high - low) / 3
        if exponent(low + third) < exponent(high - third):
            high -= third
        else:
            low += third
    return exponent((low + high) / 2)


def _log_sine(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln sinh x for x > 0, also where sinh x is too large for a float."""
    return x + np.log(-np.expm1(-2 * x)) - math.log(2)
