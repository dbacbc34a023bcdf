"""Naive Bayes: noisy counts of the declared classes and noisy sums of their rows; the spread is declared."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Step
from tacit.learn._counted_rows import counted_rows
from tacit.learn._declared_bounds import bounds_document
from tacit.learn._fit_noise import share_of_noise
from tacit.learn._fit_steps import FitSteps
from tacit.learn._row_grid import sums_by
from tacit.learn._row_moments import MOVED_MEANS, RADIUS, around, centre_and_radius, moment_step
from tacit.learn._whole_features import whole_classes
from tacit.mechanisms import RoundedGaussian

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn._row_grid import RowGrid

    #: Whole rows, and the code of the class of each.
    RowsWithClasses = tuple[NDArray[np.int64], NDArray[np.int64]]


COUNTED = RADIUS // 3  # what one row adds to the count of its class: a tenth of the squared total
_MEANS = Fraction(1, 10)  # the share of the moments of all rows
_REACH = Fraction(5, 4)  # the radius of rows around the mean, in roots of the total variance
MOVED = math.isqrt(RADIUS**2 + COUNTED**2) + 1


def class_integers(rows: NDArray[np.int64], codes: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return a count and the sum of the rows for each class; a row is in one class."""
    held = np.concatenate([np.full((len(rows), 1), COUNTED), rows], axis=1)
    return sums_by(codes, held, classes)


def class_steps(
    data: Examples, noise: Fraction, grid: RowGrid, classes: NDArray[Any]
) -> FitSteps[RowsWithClasses]:
    """Return the steps of naive Bayes.

    Moments of all rows come first. Around their noisy mean a row has at most RADIUS steps, and it is in one
    class, so it moves counts and sums by at most MOVED.
    """
    moved = MOVED_MEANS * data.per_unit, MOVED * data.per_unit
    means = share_of_noise(noise, _MEANS, moved[0])
    sums = share_of_noise(noise, 1 - _MEANS, moved[1])

    def load() -> RowsWithClasses:
        features, targets = counted_rows(data)[:2]
        rows, good = grid.whole(features)
        codes = whole_classes(targets, classes)
        kept = good & (codes >= 0)
        return rows[kept], codes[kept]

    def sums_of(held: RowsWithClasses, noisy: Sequence[Any]) -> NDArray[np.int64]:
        rows, codes = held
        _, centre, radius = centre_and_radius(noisy[0])
        return class_integers(around(rows, centre, math.ceil(_REACH * radius)), codes, len(classes))

    def reading(noisy: Sequence[Any], confidence: Fraction) -> Mapping[str, NDArray[Any]]:
        del confidence
        _, centre, radius = centre_and_radius(noisy[0])
        step = math.ceil(_REACH * radius) / RADIUS
        numbers = np.asarray(noisy[1], np.float64)
        counts = np.maximum(numbers[:, 0] / COUNTED, 1.0)
        means = grid.features(centre + numbers[:, 1:] * step / counts[:, None])
        error = float(sums) * step / counts[:, None] * grid.units * (grid.clip / grid.steps)
        return {
            "class_count": numbers[:, 0] / COUNTED,
            "class_prior": counts / counts.sum(),
            "theta": np.clip(means, grid.low, grid.high),
            "theta_error": error,
            "spread": grid.units,
        }

    return FitSteps(
        settings={
            "classes": classes.tolist(), "bounds": bounds_document(grid.low, grid.high), "clip": grid.clip,
            "spread": grid.units.tolist(), "per_unit": data.per_unit, "features": len(grid.low),
        },
        load=load,
        steps=(
            moment_step(means, data.per_unit, of=lambda held: held[0]),
            Step(RoundedGaussian(sigma=sums, sensitivity=moved[1]), sums_of,
                 {"statistic": "counts of the classes and sums of their rows around the noisy mean"}),
        ),
        reading=reading,
    )  # fmt: skip
