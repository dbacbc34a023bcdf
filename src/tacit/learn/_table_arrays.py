"""Tables of pandas in learning: as arrays whose type follows from the declared types alone."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain_array(held: Any) -> Any:
    """Return a table or a column of pandas as an array; anything else comes back as it is.

    Nullable columns become floats or objects whether a value is missing or not: the type is read before a
    charge, so it must not depend on the data.

    Examples
    --------
    >>> plain_array([1, 2])
    [1, 2]
    """
    if not hasattr(held, "iloc"):
        return held
    types = [held.dtype] if hasattr(held, "dtype") else list(held.dtypes)
    if all(isinstance(one, np.dtype) for one in types):
        return held.to_numpy()
    if all(one.kind in "biuf" for one in types):
        return held.to_numpy(dtype=np.float64, na_value=np.nan)
    return held.to_numpy(dtype=object)
