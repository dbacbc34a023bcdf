"""The ``tacit map`` command: points of a file as a private map, in any of the map's formats."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._field_command import Terms
from tacit.cli._options import read_limit_option, with_options
from tacit.cli._output import OutputFiles
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.core import Question
    from tacit.maps import PointMap

_FORMATS = (".html", ".geojson", ".parquet", ".csv", ".png", ".json")
_KINDS = "--grid 64x64, --tree, --adaptive, --h3 7, --districts FILE or --hottest 5"


_MapSource = Annotated[Path, typer.Argument(metavar="FILE", help="A .csv or .parquet file with points.")]
_MapBox = Annotated[
    tuple[float, float, float, float],
    typer.Option(
        metavar="S W N E",
        help="The public box: south, west, north, east, in degrees. Across the 180th meridian, give an east "
        "above 180.",
    ),
]
_MapLat = Annotated[str, typer.Option(help="The column of latitudes.")]
_MapLon = Annotated[str, typer.Option(help="The column of longitudes.")]
_MapUnit = Annotated[
    str | None, typer.Option(help="The column that says whose point it is; by default, each row is a unit.")
]
_MapLimits = Annotated[
    list[str] | None,
    typer.Option("--limit", help="rows=5: how many points of one unit count; may be repeated."),
]
_MapGrid = Annotated[str | None, typer.Option(metavar="ROWSxCOLUMNS", help="Count in a grid: 64x64.")]
_MapTree = Annotated[bool, typer.Option("--tree", help="Use smaller regions where there are more points.")]
_MapAdaptive = Annotated[bool, typer.Option("--adaptive", help="An adaptive grid of two levels.")]
_MapH3 = Annotated[int | None, typer.Option(help="Count in H3 cells of this resolution.")]
_MapDistricts = Annotated[Path | None, typer.Option(help="Count in public polygons: a GeoJSON file.")]
_MapDistrictName = Annotated[str, typer.Option(help="The property that names a polygon.")]
_MapHottest = Annotated[
    int | None, typer.Option(help="Show this many hottest cells of --grid, without counts.")
]


@app.command("map")
@with_options
def map_(
    source: _MapSource, terms: Terms, files: OutputFiles, *, box: _MapBox, lat: _MapLat = "lat",
    lon: _MapLon = "lon",
    unit: _MapUnit = None, limits: _MapLimits = None, grid: _MapGrid = None, tree: _MapTree = False,
    adaptive: _MapAdaptive = False, h3: _MapH3 = None, districts: _MapDistricts = None,
    district_name: _MapDistrictName = "name", hottest: _MapHottest = None,
) -> None:  # fmt: skip
    """Release the points of a file as a private map. The same map again is free."""
    import tacit as tc

    files.check(*(_FORMATS if hottest is None else (".csv", ".parquet", ".json")))
    dataset_name = terms.begin(source)
    south, west, north, east = box
    declare = partial(
        tc.points, source, lat, lon, unit=tc.Unit(unit) if unit else tc.Unit.row(), name=dataset_name,
        box=((south, west), (north, east)),
        limits=dict(read_limit_option(text) for text in limits or ()) or None,
    )  # fmt: skip
    ask = partial(
        _asked, grid=grid, tree=tree, adaptive=adaptive, h3=h3, hottest=hottest,
        districts=None if districts is None else (districts, district_name),
    )  # fmt: skip
    terms.answer(dataset_name, declare, ask, files, lambda _: {})


def _asked(points: PointMap, **arguments: Any) -> Question[Any]:
    """Ask for the one kind of map that was named."""
    kinds = {kind: value for kind, value in arguments.items() if value is not None and value is not False}
    shape = kinds.pop("grid", None)
    if (shape is not None) + len(kinds) - ("hottest" in kinds and shape is not None) != 1:
        raise TacitError(
            "bad-parameter",
            "a map needs one kind of regions, got " + ("none" if not kinds and shape is None else "several"),
            why="each kind is a separate question with its own cost",
            fix=Say(f"give one of {_KINDS}"),
        )
    match kinds:
        case {"hottest": k}:
            return points.hottest(k, cells=_read_shape(shape or "64x64"))
        case {"tree": _}:
            return points.tree()
        case {"adaptive": _}:
            return points.adaptive_grid()
        case {"h3": resolution}:
            return points.h3(resolution)
        case {"districts": (path, called)}:
            return points.districts(path, name=called)
        case _:
            rows, columns = _read_shape(str(shape))
            return points.grid(rows, columns)


def _read_shape(text: str) -> tuple[int, int]:
    shape = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text)
    if shape is None:
        raise TacitError(
            "bad-parameter", f"--grid must be ROWSxCOLUMNS, got {text!r}", fix=Say("--grid 64x64")
        )
    return int(shape[1]), int(shape[2])
