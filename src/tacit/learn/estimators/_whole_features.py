"""Whole features: declared bounds turn each feature and target into a whole number, row by row.

The rows of examples that count are read as arrays of numbers by tasks, after the charge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.learn._examples import Examples


#: How many grid steps reach from the middle of a feature's bounds to either bound.
FEATURE_STEPS = 2**12


@np.errstate(all="ignore")  # a warning would say something about one value
def as_numbers(array: Any) -> NDArray[np.float64]:
    """Return the array as float64; a cell that is not a number becomes NaN, and nothing is refused.

    Examples
    --------
    >>> as_numbers(np.array([["1", "x"]], dtype=object)).tolist()
    [[1.0, nan]]
    """
    cells = np.asarray(array)
    if cells.dtype.kind in "biuf":
        return np.asarray(cells, dtype=np.float64)

    def read(cell: object) -> float:
        try:
            return np.nan if isinstance(cell, np.ndarray | np.complexfloating) else float(cell)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return np.nan

    return np.array([read(cell) for cell in cells.ravel()], np.float64).reshape(cells.shape)


@np.errstate(all="ignore")  # a warning would say something about one value
def whole_features(
    features: Any, low: NDArray[np.float64], high: NDArray[np.float64], *, intercept: bool
) -> NDArray[np.float64]:
    """Return whole numbers from -FEATURE_STEPS to FEATURE_STEPS, as float64, and a last column of ones.

    Values beyond the bounds count as the bound. An example with a feature that is not a finite number is a
    line of zeros, also in the last column, so that it adds nothing to any sum. Each line is a function of
    that line alone: only elementwise operations are used, and IEEE 754 fixes the result of each of them.

    Examples
    --------
    >>> low, high = np.array([0.0]), np.array([10.0])
    >>> whole_features([[5.0], [10.0], [np.nan]], low, high, intercept=True).tolist()
    [[0.0, 4096.0], [4096.0, 4096.0], [0.0, 0.0]]
    """
    numbers = as_numbers(features)
    middle, half = (low + high) / 2, (high - low) / 2
    scaled = np.clip((numbers - middle) / half, -1.0, 1.0)
    good = np.asarray((np.isfinite(numbers) & np.isfinite(scaled)).all(axis=1))
    steps = np.floor(scaled * FEATURE_STEPS + 0.5)
    if intercept:
        steps = np.concatenate([steps, np.full((len(steps), 1), float(FEATURE_STEPS))], axis=1)
    return np.where(good[:, None], steps, 0.0)


@np.errstate(all="ignore")  # a warning would say something about one value
def scaled_features(
    features: Any, low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return features from -1 to 1 for a prediction; a missing value counts as the middle of its bounds.

    Examples
    --------
    >>> scaled_features([[5.0], [12.0], [np.nan]], np.array([0.0]), np.array([10.0])).tolist()
    [[0.0], [1.0], [0.0]]
    """
    numbers, middle = as_numbers(features), (low + high) / 2
    return np.clip((np.where(np.isnan(numbers), middle, numbers) - middle) / (high - low) * 2, -1.0, 1.0)


def whole_classes(labels: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each label among the declared classes; -1 for a label that was not declared.

    A text that spells the number of a class is this class, and the other way round: a reader of files that
    finds one word in a column of numbers hands over all of them as texts.

    Examples
    --------
    >>> whole_classes(["yes", "no", "maybe"], np.array(["no", "yes"])).tolist()
    [1, 0, -1]
    """
    places = {one: place for place, one in enumerate(classes.tolist())}
    spelled = {_number(one): place for one, place in places.items() if isinstance(one, str)}

    def place(label: object) -> int:
        try:
            if label in places:
                return places[label]
            return places.get(_number(label), -1) if isinstance(label, str) else spelled.get(label, -1)  # type: ignore[call-overload]
        except TypeError:  # a label that cannot be looked up, such as a list
            return -1

    return np.fromiter(map(place, np.asarray(labels).ravel().tolist()), np.int64)


def _number(text: str) -> float:
    """Return the number that a text spells, or one that equals nothing."""
    try:
        return float(text)
    except ValueError:
        return np.nan


@np.errstate(all="ignore")  # a warning would say something about one value
def whole_targets(targets: Any, low: float, high: float, steps: int) -> NDArray[np.float64]:
    """Return each target as a whole number of 1/steps of the wider side of the bounds; NaN where it has none.

    Examples
    --------
    >>> whole_targets([5.0, 99.0, np.inf], 0.0, 10.0, 100).tolist()
    [0.0, 100.0, nan]
    """
    numbers = as_numbers(targets).ravel()
    middle, half = (low + high) / 2, (high - low) / 2
    scaled = np.floor(np.clip((numbers - middle) / half, -1.0, 1.0) * steps + 0.5)
    return np.where(np.isfinite(numbers), scaled, np.nan)


def counted_rows(data: Examples) -> list[NDArray[Any]]:
    """Return the features, as float64, and the targets of the rows that count, at most so many of a unit.

    Private. A sum over these rows moves by at most ``per_unit`` rows where one unit comes or goes.
    """
    places = data.units()
    counting = places[places >= 0]
    features, *targets = data._arrays  # noqa: SLF001 - the parts of examples
    return [as_numbers(np.asarray(features)[counting]), *(np.asarray(one)[counting] for one in targets)]
