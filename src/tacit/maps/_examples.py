"""Invented points to try things on: nobody needs protection while learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


def _feature(south: float, west: float, north: float, east: float, **properties: str) -> dict[str, Any]:
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    polygon = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "properties": properties, "geometry": polygon}


def example_districts() -> dict[str, Any]:
    """Return twelve invented districts in three regions, as a GeoJSON feature collection.

    Examples
    --------
    >>> example_districts()["features"][0]["properties"]
    {'name': 'south 1', 'region': 'south'}
    """
    features = [
        _feature(lat, lon, lat + 1, lon + 1, name=f"{region} {i + 1}", region=region)
        for lat, region in ((-25.0, "south"), (-24.0, "middle"), (-23.0, "north"))
        for i, lon in enumerate((132.0, 133.0, 134.0, 135.0))
    ]
    return {"type": "FeatureCollection", "features": features}


def example_ranges() -> dict[str, Any]:
    """Return the invented ranges of two protected species, as a GeoJSON feature collection: a public layer.

    Examples
    --------
    >>> [feature["properties"]["species"] for feature in example_ranges()["features"]]
    ['black-footed wallaby', 'great desert skink']
    """
    features = [
        _feature(-23.95, 133.05, -23.3, 133.8, species="black-footed wallaby"),
        _feature(-24.9, 132.2, -24.2, 133.1, species="great desert skink"),
    ]
    return {"type": "FeatureCollection", "features": features}
