"""The rows of examples that count, as arrays of numbers: read by tasks, after the charge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.learn._whole_features import as_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.learn._examples import Examples


def counted_rows(data: Examples) -> list[NDArray[Any]]:
    """Return the features, as float64, and the targets of the rows that count, at most so many of a unit.

    Private. A sum over these rows moves by at most ``per_unit`` rows where one unit comes or goes.
    """
    places = data.units()
    kept = places[places >= 0]
    features, *targets = data._arrays  # noqa: SLF001 - the parts of examples
    return [as_numbers(np.asarray(features)[kept]), *(np.asarray(one)[kept] for one in targets)]
