"""The noise of independent measurements, also of a tree of them, and the law of every sum of regions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tacit.mechanisms._discrete_gaussian import DiscreteGaussian
from tacit.mechanisms._linear_noise import linear_half_width
from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw
from tacit.parameters import RealNumber
from tacit.strategies import alike, weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.mechanisms._discrete_laplace import DiscreteLaplace


_EXACT = 48  # so many different weights are kept as they are
_STEP = math.log(1.01)  # more are rounded up, by less than this
_FAINTEST = 1e-5  # weights below this part of the largest are rounded up to it


_LARGEST = 1e150  # scales whose squares are numbers


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
        whole = (has == all_of) & (has > 0)
        up = self.parents[touched]
        return np.concatenate([touched[(up < 0) | ~whole[up]], np.flatnonzero(whole)])

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
        _, first, place = np.unique(kinds, return_index=True, return_inverse=True)
        return self.half_widths([[i] for i in first.tolist()], failing)[place]

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
        read = None if parents is None else np.array([int(one) for one in parents], dtype=np.int64)
        regions = int(document["regions"])
        sizes = {len(laplace), len(normal)} | (set() if read is None else {len(read)})
        if len(sizes) != 1 or not 0 < regions <= len(laplace) or (read is None and regions != len(laplace)):
            raise ValueError("not the noise of a surface")
        if read is not None:
            # regions are leaves, and a parent stands after its children, so none is its own ancestor
            above = read >= 0
            inner = read[above]
            if (
                (inner >= len(read)).any()
                or (inner < regions).any()
                or (inner <= np.flatnonzero(above)).any()
            ):
                raise ValueError("not the noise of a surface")
        if ((laplace > 0) & (normal > 0)).any():
            raise ValueError("not the noise of a surface")
        return cls(laplace, normal, regions, read, document.get("direct") is True)


def half_widths_of(
    sums: Sequence[Sequence[tuple[MeasurementNoise, Sequence[int] | NDArray[np.int64]]]], failing: float
) -> NDArray[np.float64]:
    """Return for each sum over one or more independent surfaces the half-width of its noise.

    Noise is whole-numbered, and the law of continuous noise stands for it. Where every weight is 1 the
    half-width is rounded up; elsewhere half of the largest weight is added (docs/proofs/maps.md, section 6).
    """
    RealNumber(above=0, below=1, instead=0.05).read("failing", failing)
    made: dict[tuple[Any, ...], float] = {}
    found = np.empty(len(sums))
    for i, parts in enumerate(sums):
        key = _key(parts)
        if key is None or key not in made:
            value = _half_width(parts, failing)
            if key is not None:
                made[key] = value
        else:
            value = made[key]
        found[i] = value
    return found


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
