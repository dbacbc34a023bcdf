"""Declared bounds of features and targets, in learning: read from what a user gives, never from data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code
from tacit.parameters import Listed, refuse_auto

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import JSON

_SHOWN = 8  # features whose bounds a message repeats
_NARROWEST = 2.0**-1000  # of half a range: scaling by it gives finite numbers


def read_feature_bounds(bounds: Any, features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read a pair of numbers, or a pair of lists with one number for each feature.

    Lists hold the lowest and then the highest values. A pair for each feature, as other libraries write it,
    is refused with the lists that it stands for. For exactly two features, pairs could be read as lists too.
    So two tuples are refused if both readings make sense.

    Examples
    --------
    >>> low, high = read_feature_bounds(([0, 0], 10), 2)
    >>> low.tolist(), high.tolist()
    ([0.0, 0.0], [10.0, 10.0])
    """
    refuse_auto("an estimator", bounds, Code("bounds=([0, 18], [1, 99])"))
    if bounds is None:
        raise TacitError(
            "missing-bounds",
            "the features have no public bounds",
            why="values outside the bounds count as the bound, so that one unit cannot move a sum far",
            fix=Code("bounds=([0, 18], [1, 99])"),
        )
    try:
        low, high = (np.broadcast_to(np.asarray(one, dtype=np.float64), (features,)) for one in bounds)
    except (TypeError, ValueError):
        raise _in_lists(
            bounds, features, f"bounds must be two numbers, or two lists of {features} numbers"
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        refusal = "bounds must be finite, and each lower bound must be below its upper bound"
        raise _in_lists(bounds, features, refusal)
    tuples = isinstance(bounds, list | tuple) and all(isinstance(one, tuple) for one in bounds)
    if features == 2 and tuples and _as_pairs(bounds, features) is not None and high[0] != low[1]:
        raise _in_lists(bounds, features, "two pairs of bounds for two features can be read in two ways")
    if not _usable(low, high):
        raise _wrong("bounds", "neither extremely wide nor extremely narrow")
    return low.copy(), high.copy()


def declared_classes(classes: Any, max_classes: int | None = None, why: str = "") -> list[Any]:
    """Read the declared classes, at least two, each once; labels are never read to find them.

    Examples
    --------
    >>> declared_classes(["ill", "healthy"])
    ['ill', 'healthy']
    """
    why = why or "which labels occur in the data is not public, so they are declared and never read"
    parameter = Listed("classes", '["healthy", "ill"]', least=2, most=max_classes, different=True, why=why)
    return parameter.read("classes", [] if classes is None else classes)


def refuse_wide(features: int, max_features: int) -> None:
    """Refuse a table with more features than an estimator can keep exact.

    Examples
    --------
    >>> refuse_wide(20, 10)
    Traceback (most recent call last):
    tacit.errors.TacitError: X must be a table with at most 10 features, got 20
      fix: X[:, :10]
      code: bad-parameter
    """
    if features > max_features:
        must_be = f"a table with at most {max_features:,} features"
        raise bad_parameter("X", must_be, features, fix=Code(f"X[:, :{max_features}]"))


def _as_pairs(bounds: Any, features: int) -> NDArray[np.float64] | None:
    """Return bounds as one pair of lowest and highest value for each feature, or None if they are not."""
    try:
        pairs = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    complete = pairs.shape == (features, 2) and np.isfinite(pairs).all()
    return pairs if complete and (pairs[:, 0] < pairs[:, 1]).all() else None


def _in_lists(bounds: Any, features: int, sentence: str) -> TacitError:
    """Refuse bounds; if they are pairs, one for each feature, show them as the two lists that are read."""
    pairs = _as_pairs(bounds, features)
    example = "([0, 18], [1, 99])"
    if pairs is not None and features <= _SHOWN:
        low, high = ([int(x) if x == int(x) else x for x in one.tolist()] for one in pairs.T)
        example = f"({low}, {high})"
    return TacitError(
        "bad-parameter",
        sentence,
        why="the first list holds the lowest value of each feature, the second list the highest",
        fix=Code(f"bounds={example}"),
    )


def read_target_bounds(bounds: Any) -> tuple[float, float]:
    """Read the bounds of a target.

    Examples
    --------
    >>> read_target_bounds((25, 346))
    (25.0, 346.0)
    """
    refuse_auto("an estimator", bounds, Code("target_bounds=(0, 100)"))
    if bounds is None:
        raise TacitError(
            "missing-bounds",
            "the target has no public bounds",
            why="values outside the bounds count as the bound, so that one unit cannot move a sum far",
            fix=Code("target_bounds=(0, 100)"),
        )
    try:
        low, high = (float(one) for one in bounds)
    except (TypeError, ValueError):
        raise _wrong("target_bounds", "two numbers") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise _wrong("target_bounds", "finite, and the lower bound must be below the upper bound")
    if not _usable(low, high):
        raise _wrong("target_bounds", "neither extremely wide nor extremely narrow")
    return low, high


def bounds_document(low: NDArray[np.float64], high: NDArray[np.float64]) -> list[JSON]:
    """Return bounds as JSON: two numbers where they are the same for all features.

    Examples
    --------
    >>> bounds_document(np.zeros(3), np.ones(3))
    [0.0, 1.0]
    """
    if (low == low[0]).all() and (high == high[0]).all():
        return [float(low[0]), float(high[0])]
    return [low.tolist(), high.tolist()]


@np.errstate(over="ignore")
def _usable(low: Any, high: Any) -> bool:
    """Return whether bounds have a finite middle and a finite half-range above zero, in floating point."""
    half = (high - low) / 2
    return bool(np.all(np.isfinite((low + high) / 2) & np.isfinite(half) & (half >= _NARROWEST)))


def _wrong(name: str, must_be: str) -> TacitError:
    return TacitError("bad-parameter", f"{name} must be {must_be}", fix=Code(f"{name}=(0, 1)"))
