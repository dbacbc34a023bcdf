"""Maps: where people and places are, released as surfaces that give no single one away.

Modules, in reading order:

_declaration         the function ``tc.points``, and how a service declares points and trips
_point_map           the dataset of points and its questions in Python
_point_source        reading points, cut to each unit's limit
_trips               the dataset of trips, and the function ``tc.maps.trips``
_questions           all questions and their forms in a plan's document
_map_draft           what questions about points share: limits, facts, documents
_areas               boxes, rectangles, circles, polygons, public layers
_regions             grids, boxes, polygons and H3 cells as regions of a surface
_public_regions      districts from GeoJSON, and H3 cells over a box
_region_counts       counts of public regions, and the hottest cells
_adaptive_regions    trees and adaptive grids
_flows               trips from zone to zone
_surface             the content of a release: counts that answer about any area
_area_answers        answers about areas, with honest intervals
_surface_difference  one surface minus another
_surface_drawing     text, figures and the offline page of a surface
_examples            invented points
"""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.maps._areas import Box
from tacit.maps._declaration import POINTS, TRIPS, points
from tacit.maps._examples import EXAMPLE_BOX, example_districts, example_ranges, example_sites
from tacit.maps._flows import FlowTable
from tacit.maps._point_map import PointMap
from tacit.maps._regions import BoxRegions, GridRegions, PolygonRegions, Regions
from tacit.maps._surface import Surface
from tacit.maps._surface_difference import SurfaceDifference
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
