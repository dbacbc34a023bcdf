"""Synthetic rows as CSV text."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def csv_text(columns: Mapping[str, NDArray[Any]]) -> str:
    r"""Return columns as CSV; a missing value is an empty field.

    Text that a spreadsheet would compute gets an apostrophe in front, as in every CSV file of a release.

    Examples
    --------
    >>> csv_text({"age": np.array([41.0, np.nan]), "sex": np.array(["F", None], object)}).split()
    ['age,sex', '41,F', ',']
    """
    from tacit.core import for_spreadsheet

    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([for_spreadsheet(name) for name in columns])
    shown = [[for_spreadsheet(one) for one in _texts(values)] for values in columns.values()]
    writer.writerows(zip(*shown, strict=True))
    return out.getvalue()


def _texts(values: NDArray[Any]) -> list[str]:
    if values.dtype.kind == "M":
        return ["" if np.isnat(one) else str(one) for one in values]
    if values.dtype.kind == "f":
        return ["" if np.isnan(one) else repr(float(one)).removesuffix(".0") for one in values]
    return ["" if one is None else str(one) for one in values.tolist()]
