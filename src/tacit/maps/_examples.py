"""Invented points to try things on: nobody needs protection while learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EXAMPLE_BOX", "example_sites"]

#: The box of the invented sites: the south-western corner, then the north-eastern one.
EXAMPLE_BOX = ((-25.0, 132.0), (-22.0, 136.0))
#: Where the invented sites gather: latitude, longitude, how far they spread (degrees), how many.
_GROUPS = ((-23.6, 133.4, 0.10, 900), (-24.3, 134.9, 0.14, 700), (-22.7, 135.2, 0.07, 350))
_ALONG, _SCATTERED = 650, 400


def example_sites() -> NDArray[np.float64]:
    """Return 3,000 invented sites as an array of latitude and longitude: three groups, a river, the rest.

    Examples
    --------
    >>> example_sites().shape
    (3000, 2)
    """
    draw = np.random.default_rng(20261115)
    parts = [draw.normal((lat, lon), spread, (size, 2)) for lat, lon, spread, size in _GROUPS]
    east = draw.uniform(132.2, 135.8, _ALONG)
    river = -23.2 - 0.35 * np.sin((east - 132) * 1.9) - 0.25 * (east - 134)
    parts.append(np.column_stack([river + draw.normal(0, 0.03, _ALONG), east]))
    (south, west), (north, east_end) = EXAMPLE_BOX
    parts.append(draw.uniform((south, west), (north, east_end), (_SCATTERED, 2)))
    sites = np.concatenate(parts)
    return np.clip(sites, (south, west), (north, east_end)).round(5)
