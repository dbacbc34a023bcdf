"""Maps: where people and places are, released as surfaces that give no single one away."""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.maps._box import Box
from tacit.maps._dataset_kind import POINTS, TRIPS
from tacit.maps._declaration import points
from tacit.maps._difference import SurfaceDifference
from tacit.maps._examples import EXAMPLE_BOX, example_districts, example_ranges, example_sites
from tacit.maps._flow_table import FlowTable
from tacit.maps._point_map import PointMap
from tacit.maps._polygon_regions import PolygonRegions
from tacit.maps._regions import BoxRegions, GridRegions, Regions
from tacit.maps._surface import Surface
from tacit.maps._trips import Trips, trips
from tacit.strategies import consistent

__all__ = [
    "EXAMPLE_BOX",
    "POINTS",
    "TRIPS",
    "Box",
    "BoxRegions",
    "FlowTable",
    "GridRegions",
    "PointMap",
    "PolygonRegions",
    "Regions",
    "Surface",
    "SurfaceDifference",
    "Trips",
    "consistent",
    "example_districts",
    "example_ranges",
    "example_sites",
    "points",
    "trips",
]

refuse_wrong_calls(__name__, __all__)
