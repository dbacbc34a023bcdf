"""Explainable boosting: noisy counts of the bins, then noisy sums of residuals, and bands for the noise."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Step
from tacit.learn._boosting_steps import FINE, GRID, MOST, BoostingRates, BoostingSteps
from tacit.learn._counted_rows import counted_rows
from tacit.learn._fit_noise import share_of_noise
from tacit.learn._fit_steps import FitSteps
from tacit.learn._shape_functions import ShapeFunctions
from tacit.learn._whole_features import whole_classes
from tacit.mechanisms import RoundedGaussian, SampledSteps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.learn._boosting_bins import FeatureBins
    from tacit.learn._examples import Examples

    #: The bin of each feature of each row, and the code of its class.
    PlacesWithClasses = tuple[NDArray[np.int64], NDArray[np.int64]]


_COUNTS = Fraction(1, 10)  # the share of the counts


def boosting_steps(
    data: Examples,
    noise: Fraction,
    bins: FeatureBins,
    classes: NDArray[Any],
    passes: int,
    rate: float,
    said: Mapping[str, JSON],
) -> FitSteps[PlacesWithClasses]:
    """Return the steps of boosting: counts of all bins, then passes over all features, one after the other.

    One row is in one bin of each feature and adds at most one to the second class, so it moves the counts by
    at most the root of (features + 1). In a step it is in one bin, with a residual between -1 and 1.
    """
    features = len(bins.features)
    counted = Fraction(math.isqrt((features + 1) * 4**20) + 1, 2**20) * data.per_unit
    counting = RoundedGaussian(sigma=share_of_noise(noise, _COUNTS, counted), sensitivity=counted)
    steps, moved = passes * features, GRID * data.per_unit
    sigma = math.ceil(share_of_noise(noise, (1 - _COUNTS) / steps, moved))
    stepping = SampledSteps(sigma=sigma, sensitivity=moved, rate=1, steps=steps)
    rates = BoostingRates(passes, rate, sigma / GRID)

    def load() -> PlacesWithClasses:
        rows, targets = counted_rows(data)[:2]
        codes = whole_classes(targets, classes)
        return bins.places(rows[codes >= 0]), codes[codes >= 0]

    def residuals(held: PlacesWithClasses, noisy: Sequence[Any]) -> BoostingSteps:
        counts, intercept = read_counts(noisy[0], bins.sizes)
        return BoostingSteps(*held, rates, counts, round(intercept * FINE))

    def reading(noisy: Sequence[Any], confidence: Fraction) -> Mapping[str, NDArray[Any]]:
        counts, intercept = read_counts(noisy[0], bins.sizes)
        wide = NormalDist().inv_cdf((1 + float(confidence)) / 2)
        values, errors, shares, score = [], [], [], intercept
        for held, raw in zip(counts, noisy[1], strict=True):
            share = np.maximum(held, 0)
            share = share / share.sum() if share.sum() > 0 else np.full(len(held), 1 / len(held))
            middle = float(np.asarray(raw) @ share)
            score += middle
            values.append(np.asarray(raw) - middle)
            errors.append(wide * noise_spread(rates, values[-1], held, float(counting.sigma)))
            shares.append(share)
        named = {"values": values, "error": errors, "share": shares}
        return {
            "intercept": np.asarray(score),
            **{name: np.concatenate(parts) for name, parts in named.items()},
        }

    return FitSteps(
        settings={
            "features": features, "names": [name for name, _ in bins.features],
            "cuts": [list(cuts) for _, cuts in bins.features], "classes": classes.tolist(),
            "passes": passes, "learning_rate": rate, "per_unit": data.per_unit,
            **said,
        },
        load=load,
        steps=(
            Step(counting, lambda held, _: bin_counts(*held, bins.sizes), {"statistic": "rows in each bin"}),
            Step(stepping, residuals, {"statistic": "sums of residuals in each bin"}),
        ),
        reading=reading,
        content=ShapeFunctions,
    )  # fmt: skip


def bin_counts(
    places: NDArray[np.int64], codes: NDArray[np.int64], sizes: Sequence[int]
) -> NDArray[np.int64]:
    """Return the number of rows of the second class, then in each bin of each feature."""
    exact = [np.bincount(places[:, j], minlength=size) for j, size in enumerate(sizes)]
    return np.concatenate([[codes.sum()], *exact]).astype(np.int64)


def read_counts(noisy: Any, sizes: Sequence[int]) -> tuple[list[NDArray[np.float64]], float]:
    """Read the noisy counts of each feature's bins, and the log odds of the second class."""
    second, *rest = np.asarray(noisy, np.float64)
    counts = np.split(np.asarray(rest), np.cumsum(sizes)[:-1])
    total = max(3.0, float(np.mean([one.sum() for one in counts])))
    share = min(max(float(second) / total, 1 / total), 1 - 1 / total)
    return counts, min(max(math.log(share / (1 - share)), -MOST / 2), MOST / 2)


def noise_spread(
    rates: BoostingRates, values: NDArray[np.float64], counts: NDArray[np.float64], sigma: float
) -> NDArray[np.float64]:
    """Return the standard deviation of the noise in each bin of a released shape, to first order, from above.

    What is released is the mean over the second half of the passes, less the mean over all rows. A step adds
    its noise; that later steps take a part of it back is not used, because features that go together take
    back less. The noisy counts, of deviation ``sigma``, move the mean over all rows as well.
    """
    held = np.maximum(counts, 0)
    total = max(float(held.sum()), 1.0)
    share = held / total
    first = rates.passes // 2
    kept = np.minimum(rates.passes - np.arange(rates.passes), rates.passes - first) / (rates.passes - first)
    own = (4 * rates.rate * rates.noise / (held + 2 * rates.noise)) ** 2 * float((kept**2).sum())
    middle = float((share**2 * own).sum()) + float((values**2).sum()) * (sigma / total) ** 2
    return np.asarray(np.sqrt(own * (1 - 2 * share) + middle))
