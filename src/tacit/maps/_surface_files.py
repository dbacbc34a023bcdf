"""Files of a surface: GeoJSON, GeoParquet, CSV, PNG and an HTML map, each with the facts of its release."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from tacit.core import needs, write_csv

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import JSON, AnswerTable, Certificate
    from tacit.maps._regions import Regions


class SurfaceFiles:
    """What writes a surface to files; `Surface` inherits it.

    Every file carries the main facts of the certificate: dataset, unit, the promised cost and the plan. A
    release passes its certificate by itself. All regions are written, also those without a point.
    """

    __slots__ = ()
    certified: ClassVar[frozenset[str]] = frozenset(
        {"to_csv", "to_geojson", "to_html", "to_parquet", "to_png"}
    )

    if TYPE_CHECKING:
        regions: Regions
        counts: Any
        confidence: float
        notes: tuple[str, ...]

        @property
        def table(self) -> AnswerTable: ...
        def _intervals(self) -> tuple[Any, Any]: ...

    def to_geojson(self, path: str | Path | None = None, *, certificate: Certificate | None = None) -> JSON:
        """Return the surface as GeoJSON, one feature for each region, and write it if a path is given.

        A feature has ``n``, ``low`` and ``high``. The facts of the release stand under ``tacit``.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(),
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> document = sites.grid(2, 2).plan(epsilon=1).release().to_geojson()
        >>> len(document["features"]), document["tacit"]["promised"]
        (4, {'epsilon': '1'})
        """
        low, high = self._intervals()
        names = {key: values for key, values in self.regions.keys.items() if key not in _SIDES}
        features: list[JSON] = [
            {
                "type": "Feature",
                "geometry": outline,
                "properties": {
                    **{key: values[i] for key, values in names.items()},
                    "n": _short(self.counts[i]), "low": _short(low[i]), "high": _short(high[i]),
                },
            }
            for i, outline in enumerate(self.regions.outlines())
        ]  # fmt: skip
        document: dict[str, JSON] = {
            "type": "FeatureCollection",
            "tacit": self._facts(certificate),
            "features": features,
        }
        if path is not None:
            Path(path).write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
        return document

    def to_parquet(self, path: str | Path, *, certificate: Certificate | None = None) -> None:
        """Write the surface to a GeoParquet file (extra ``pandas``): ``n``, ``low``, ``high``, ``geometry``.

        The facts of the release stand in the file's metadata under ``tacit``.
        """
        needs("to_parquet", "pyarrow", "tacit[pandas]")
        import pyarrow as pa
        from pyarrow import parquet

        low, high = self._intervals()
        outlines = self.regions.outlines()
        boxes = self.regions.boxes
        names = {key: list(values) for key, values in self.regions.keys.items()}
        table = pa.table(
            names
            | {"n": self.counts, "low": low, "high": high, "geometry": [wkb_of(one) for one in outlines]}
        )
        south, west = boxes[:, :2].min(axis=0).tolist()
        north, east = boxes[:, 2:].max(axis=0).tolist()
        geo = {
            "version": "1.1.0",
            "primary_column": "geometry",
            "columns": {
                "geometry": {
                    "encoding": "WKB",
                    "geometry_types": sorted({str(one["type"]) for one in outlines}),
                    "bbox": [west, south, east, north],
                }
            },
        }
        marked = {"geo": json.dumps(geo), "tacit": json.dumps(self._facts(certificate))}
        parquet.write_table(table.replace_schema_metadata(marked), path)

    def to_csv(self, path: str | Path | None = None, *, certificate: Certificate | None = None) -> str:
        """Return the regions as CSV text, and write them if a path is given.

        The facts of the release are written beside the file, as ``NAME.csv-metadata.json`` (the place that
        the W3C names for metadata of CSV files).
        """
        text = self.table.to_csv()
        if path is not None:
            write_csv(path, text, self._facts(certificate))
        return text

    def to_png(self, path: str | Path, *, certificate: Certificate | None = None) -> None:
        """Draw the surface twice (extra ``plot``): the estimates, and what is there despite the noise.

        The second picture shows the lower end of each interval. The facts of the release stand in the text
        of the file.
        """
        from tacit.maps._surface_figures import layers_figure

        facts = self._facts(certificate)
        said = {"Title": "Tacit surface", "Software": "Tacit", "Description": json.dumps(facts)}
        layers_figure(cast("Any", self), facts_line(facts)).picture().savefig(
            path, format="png", metadata=said
        )

    def to_html(
        self, path: str | Path | None = None, *, title: str | None = None,
        certificate: Certificate | None = None,
    ) -> str:  # fmt: skip
        """Return the surface as one HTML file that works without a network, and write it if a path is given.

        The page shows the value and the interval of the region under the pointer, and zooms. Its policy lets
        it run its own script only and reach no address.
        """
        from tacit.maps._surface_page import surface_page

        facts = self._facts(certificate)
        page = surface_page(self, facts, title=title or f"Map of {facts.get('dataset', 'points')}")
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _facts(self, certificate: Certificate | None) -> dict[str, JSON]:
        return {
            **({} if certificate is None else certificate.facts),
            "confidence": self.confidence,
            "notes": list(self.notes),
        }


_SIDES = ("south", "west", "north", "east")


def facts_line(facts: Mapping[str, Any]) -> str:
    """Write the facts in one line for people."""
    promised = facts.get("promised") or {}
    cost = ", ".join(f"{name} {_decimal(value)}" for name, value in promised.items())
    who = f"protects each {facts['unit']} of {facts['dataset']}" if facts.get("unit") else ""
    plan = f"plan {str(facts['plan'])[:12]}" if facts.get("plan") else ""
    return "; ".join(part for part in (who, cost, plan) if part)


def _decimal(value: object) -> str:
    from fractions import Fraction

    return f"{float(Fraction(str(value))):.6g}"


def _short(value: float) -> float:
    """Write a whole number as such."""
    number = float(value)
    return int(number) if number.is_integer() else number


def wkb_of(outline: Any) -> bytes:
    """Write a GeoJSON polygon or multipolygon as well-known binary, little-endian.

    Examples
    --------
    >>> square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    >>> wkb_of(square)[:9].hex()
    '010300000001000000'
    """
    if outline["type"] == "MultiPolygon":
        parts = [wkb_of({"type": "Polygon", "coordinates": part}) for part in outline["coordinates"]]
        return struct.pack("<BII", 1, 6, len(parts)) + b"".join(parts)
    rings = [np.asarray(ring, dtype="<f8")[:, :2] for ring in outline["coordinates"]]
    body = b"".join(struct.pack("<I", len(ring)) + ring.tobytes() for ring in rings)
    return struct.pack("<BII", 1, 3, len(rings)) + body
