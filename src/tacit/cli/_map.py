"""The ``tacit map`` command: points of a file as a private map, in any of the map's formats."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._context import note_dataset, note_ledger
from tacit.cli._fact_options import read_limit_option
from tacit.cli._first_budget import check_first_charge, given_budget, left_now, whole_budget
from tacit.cli._output import JsonOption, exact_text, say, show_json, typed, write_file
from tacit.cli._output_files import OutputFiles
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from tacit.core import Plan
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
_MapEpsilon = Annotated[float | None, typer.Option("--epsilon", "-e", help="What the map may cost.")]
_MapDelta = Annotated[float, typer.Option("--delta", help="Allow Gaussian noise, with this delta.")]
_MapRho = Annotated[float | None, typer.Option("--rho", help="Instead of epsilon: the cost in rho.")]
_MapConfidence = Annotated[float, typer.Option(help="How often intervals cover the noise.")]
_MapBudget = Annotated[
    float | None,
    typer.Option(help="The whole budget, in epsilon (or in rho, with --rho); needed the first time."),
]
_MapName = Annotated[str | None, typer.Option(help="By default the name of the file.")]
_MapLedger = Annotated[str, typer.Option(help="Where the budget is kept.")]
_MapOut = Annotated[
    list[Path] | None,
    typer.Option("--out", help=f"Write the map to this file ({', '.join(_FORMATS)}); may be repeated."),
]
_MapPlot = Annotated[Path | None, typer.Option("--plot", help="Draw it here (.png, .svg, .pdf).")]
_MapCertificate = Annotated[
    Path | None, typer.Option("--certificate", help="Write the certificate here (.json).")
]
_MapPlanOnly = Annotated[bool, typer.Option("--plan", help="Show the cost and the error; charge nothing.")]
_MapWho = Annotated[str, typer.Option("--who", help="Who asks; recorded in the ledger.")]
_MapPurpose = Annotated[str, typer.Option("--purpose", help="For which purpose; recorded too.")]


@app.command("map")
def map_(
    source: _MapSource, *, box: _MapBox, lat: _MapLat = "lat", lon: _MapLon = "lon", unit: _MapUnit = None,
    limits: _MapLimits = None, grid: _MapGrid = None, tree: _MapTree = False,
    adaptive: _MapAdaptive = False, h3: _MapH3 = None, districts: _MapDistricts = None,
    district_name: _MapDistrictName = "name", hottest: _MapHottest = None, epsilon: _MapEpsilon = None,
    delta: _MapDelta = 0, rho: _MapRho = None, confidence: _MapConfidence = 0.95,
    budget: _MapBudget = None, name: _MapName = None, ledger: _MapLedger = "tacit.ledger",
    out: _MapOut = None, plot: _MapPlot = None, certificate: _MapCertificate = None,
    plan_only: _MapPlanOnly = False, who: _MapWho = "", purpose: _MapPurpose = "",
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Release the points of a file as a private map. The same map again is free."""
    import tacit as tc
    from tacit.core import plan_text

    called = name or source.stem
    note_dataset(None, None, called)
    note_ledger(ledger)
    files = list(out or ())
    _check_files(files, answers=hottest is not None)
    beside = OutputFiles(None, plot, certificate)
    beside.check()
    south, west, north, east = box
    facts: dict[str, Any] = {
        "lat": lat, "lon": lon, "unit": tc.Unit(unit) if unit else tc.Unit.row(), "name": called,
        "box": ((south, west), (north, east)),
        "limits": dict(read_limit_option(text) for text in limits or ()) or None,
    }  # fmt: skip
    goal = {"epsilon": epsilon, "delta": delta, "rho": rho, "confidence": confidence}
    asked = {
        "grid": grid, "tree": tree, "adaptive": adaptive, "h3": h3, "hottest": hottest,
        "districts": None if districts is None else (districts, district_name),
    }  # fmt: skip
    with tc.Ledger.memory() as trial:  # a wrong question is refused before a ledger is made
        tried = tc.points(source, **facts, budget=given_budget(budget or 1, goal), ledger=trial)
        made = _planned(tried, goal, **asked)
        if plan_only:
            show_json(_facts_of(made)) if as_json else say(
                plan_text(made, left=False), *left_now(called, ledger)
            )
            return
        whole = whole_budget(called, ledger, budget, goal)
        check_first_charge(called, ledger, made, trial)
    points = tc.points(source, **facts, budget=whole, ledger=ledger)
    made = _planned(points, goal, **asked)
    release = made.release(who=who, purpose=purpose)
    beside.save(release.content, release.certificate, lambda path: release.plot().savefig(path))
    _write(release, files)
    if as_json:
        left = {part: exact_text(getattr(points.remaining, part)) for part in ("epsilon", "delta", "rho")}
        written = [str(path) for path in (*files, plot, certificate) if path is not None]
        show_json({**_facts_of(made), "files": written, "left": left})
        return
    notes = [*points.account_notes, *(f"written: {path}" for path in files)]
    say(repr(release), f"left: {points.remaining}", *notes)
    beside.report()


def _planned(points: PointMap, goal: dict[str, Any], **asked: Any) -> Plan[Any]:
    """Make the plan of the one kind of map that was asked for."""
    kinds = {kind: value for kind, value in asked.items() if value is not None and value is not False}
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
            return points.hottest(k, cells=_read_shape(shape or "64x64")).plan(**_pure(goal))
        case {"tree": _}:
            return points.tree().plan(**_pure(goal))
        case {"adaptive": _}:
            return points.adaptive_grid().plan(**_pure(goal))
        case {"h3": resolution}:
            return points.h3(resolution).plan(**goal)
        case {"districts": (path, called)}:
            return points.districts(path, name=called).plan(**goal)
        case _:
            rows, columns = _read_shape(str(shape))
            return points.grid(rows, columns).plan(**goal)


def _pure(goal: dict[str, Any]) -> dict[str, Any]:
    """Return epsilon and confidence; refuse delta and rho where only pure epsilon is possible."""
    if goal["delta"] or goal["rho"] is not None or goal["epsilon"] is None:
        raise TacitError(
            "bad-parameter",
            "this kind of map costs pure epsilon",
            why="its regions are chosen by a mechanism that has no Gaussian form",
            fix=Say("give --epsilon alone"),
        )
    return {name: goal[name] for name in ("epsilon", "confidence")}


def _read_shape(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text)
    if found is None:
        raise TacitError(
            "bad-parameter", f"--grid must be ROWSxCOLUMNS, got {text!r}", fix=Say("--grid 64x64")
        )
    return int(found[1]), int(found[2])


def _check_files(files: list[Path], *, answers: bool) -> None:
    """Refuse what cannot be written, before anything is charged."""
    known = (".csv", ".parquet", ".json") if answers else _FORMATS
    for path in files:
        if path.suffix.lower() not in known:
            raise TacitError(
                "bad-parameter", f"--out must be a file that ends in {', '.join(known)}, got {str(path)!r}",
                fix=f"--out map{known[0]}",
            )  # fmt: skip
        if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
            raise TacitError(
                "cannot-write", f"{path} cannot be written",
                why="its folder is missing or read-only, or it is a folder itself; nothing was charged",
                fix=f"--out {typed('./' + path.name)}",
            )  # fmt: skip


def _write(release: Any, files: list[Path]) -> None:
    """Write the map into each file, in the format that its name says."""
    for path in files:
        kind = path.suffix[1:].lower()
        write = release.save if kind == "json" else getattr(release, f"to_{kind}")
        write_file(path, write, "the map", "--out")


def _facts_of(made: Plan[Any]) -> dict[str, object]:
    return {
        "asked": made.asked,
        "columns": list(made.forecast),
        "promised": {name: float(value) for name, value in made.promised.items()},
        "facts": dict(made.facts),
        "mechanisms": [dict(one) for one in made.mechanisms],
        "hash": made.hash,
    }
