"""The content of a map's release: a count for every region, which answers questions about any area.

A surface is divided by public denominators to give rates, with the intervals of the counts. It is written to
GeoJSON, GeoParquet, CSV, PNG and an HTML map, each with the facts of its release.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Cells, Content, needs, write_csv
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Choose, Code, Set
from tacit.maps._area_answers import AreaEnds, AreaQuestions
from tacit.maps._regions import Regions
from tacit.mechanisms import MeasurementNoise
from tacit.strategies import nonnegative_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Certificate, Value
    from tacit.exact import Number
    from tacit.maps._surface_difference import SurfaceDifference
    from tacit.show import Figure


_NONNEGATIVE = "counts below 0 were set to 0, and the others lowered so that the total stays"
_SIDES = ("south", "west", "north", "east")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Surface(AreaQuestions, Content):
    """A count for every region of a map, empty ones too, with the law of the noise on every sum of them.

    Questions about areas, differences and layers are free: the surface is private already. An interval holds
    wherever the points lie inside the regions that an area cuts; the value takes them as spread evenly.

    Every file carries the main facts of the certificate: dataset, unit, the promised cost and the plan. A
    release passes its certificate by itself. All regions are written, also those without a point.

    Parameters
    ----------
    regions
        The regions, which are public.
    counts
        The estimate for each region.
    noise
        The law of the noise.
    confidence
        How often each interval covers.
    notes
        What was done to the counts, and what they leave out.
    measured
        What intervals rest on, where that is not ``counts``: the estimates before ``counts`` were changed, or
        all measurements of an adaptive grid.

    Examples
    --------
    >>> import tacit as tc
    >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
    ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
    >>> surface = sites.grid(8, 8).plan(epsilon=1).release()
    >>> answer = surface.rectangle((-24, 133), (-23, 134))
    >>> answer.low <= answer.value <= answer.high
    True
    """

    kind: ClassVar[str] = "surface"
    described: ClassVar[str] = "a surface over a map"
    changes: ClassVar[frozenset[str]] = frozenset({"nonnegative"})
    certified: ClassVar[frozenset[str]] = frozenset(
        {"to_csv", "to_geojson", "to_html", "to_parquet", "to_png"}
    )

    regions: Regions
    counts: NDArray[np.float64]
    noise: MeasurementNoise
    confidence: float
    notes: tuple[str, ...] = ()
    measured: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.regions)

    def __getitem__(self, column: str) -> Cells:
        return self.table[column]

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Iterate over the regions as dictionaries."""
        return iter(self.table)

    @property
    def total(self) -> AnswerTable:
        """The number of points in all regions together."""
        everywhere = np.arange(len(self))
        return self._answered([(everywhere, np.ones(len(self)))])

    @property
    def half_widths(self) -> NDArray[np.float64]:
        """How far the count of each region may lie from the truth, one region at a time."""
        return self.noise.each_half_width(1 - self.confidence)

    @property
    def table(self) -> AnswerTable:
        """All regions, one line for each."""
        return self._lines(np.arange(len(self)))

    def top(self, k: int = 10) -> AnswerTable:
        """Return the k regions with the largest noisy counts.

        The order is that of noisy counts: of many regions with similar counts, those that the noise raised
        come first, so their values are too large on average. The intervals hold for regions that were
        chosen in advance.
        """
        order = np.argsort(-self.counts, kind="stable")[: max(1, min(int(k), len(self)))]
        note = "the largest noisy counts; noise raised some of them, so they are too large on average"
        return replace(self._lines(order), notes={"n": note})

    def level(self, name: str) -> AnswerTable:
        """Return the counts of the larger regions of a hierarchy: each is the sum of its regions."""
        larger = getattr(self.regions, "larger", {})
        if name not in larger:
            fix = (
                Choose(tuple(larger), given=str(name))
                if larger
                else Code('sites.districts(..., parents="region")')
            )
            raise TacitError("unknown-column", f"the surface has no level {name!r}", fix=fix)
        names = sorted(set(larger[name]))
        of = np.array(larger[name])
        answer = self._answered([(np.flatnonzero(of == one), np.ones((of == one).sum())) for one in names])
        return replace(answer, keys={name: tuple(names)})

    def minus(self, other: Surface) -> SurfaceDifference:
        """Return this surface minus another one on the same regions; their noises are independent.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=2))
        >>> one, two = (sites.grid(4, 4).plan(epsilon=e).release() for e in (0.5, 1))
        >>> change = one.minus(two)
        >>> answer = change.rectangle((-24, 133), (-23, 134))
        >>> answer.low <= answer.value <= answer.high
        True
        """
        from tacit.maps._surface_difference import surface_difference

        return surface_difference(self, getattr(other, "content", other))

    def beside(self, layer: object, *, name: str = "name", within_km: float = 0) -> AnswerTable:
        """Return how many points lie in, or near, each place of a public layer.

        Parameters
        ----------
        layer
            GeoJSON features (polygons or points) or a path to them, or pairs of latitude and longitude:
            ranges of a protected species, planned roads, stations.
        name
            The property that names a feature.
        within_km
            Points this near count too; needed for places without an extent.
        """
        from tacit.maps._areas import read_layer

        names, areas = read_layer(layer, name, within_km)
        return replace(self.areas(areas), keys={name: names})

    def rate(self, denominators: Mapping[str, float] | Sequence[float], *, per: Number = 1) -> AnswerTable:
        """Return the count of each region over a public number, such as inhabitants or square kilometres.

        The denominators are public, so each interval is that of the count, divided. A region whose
        denominator is 0 has no rate. Free post-processing.

        Parameters
        ----------
        denominators
            By the name of each region, or one number for each region in their order.
        per
            What the rate is stated for: 1,000 inhabitants.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(),
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> surface = sites.grid(2, 2).plan(epsilon=1).release()
        >>> rates = surface.rate([100, 250, 0, 400], per=1000)
        >>> rates["rate"].value[2] is None, rates["rate"].low[0] <= rates["rate"].value[0]
        (True, True)
        """
        divisors = self._denominators(denominators)
        factor = float(rational("per", per))
        low, high = self._intervals()
        parts = [
            tuple(float(n) * factor / d if d else None for n, d in zip(part, divisors, strict=True))
            for part in (self.counts, low, high)
        ]
        note = f"noisy points per {factor:g} of a public number; a region without one has no rate"
        return AnswerTable(
            self.regions.keys, {"rate": Cells(*parts)}, self.confidence, notes={"rate": note},
            left_out=self.notes,
        )  # fmt: skip

    def nonnegative(self) -> Self:
        """Return the surface with no count below 0 and the same total. Intervals stop at 0.

        Intervals still rest on the counts as they were measured, so they hold as before.

        Examples
        --------
        >>> nonnegative_counts(np.array([5.0, -2.0, 1.0])).tolist()
        [4.0, 0.0, 0.0]
        """
        if self._is_nonnegative:
            return self
        counts = nonnegative_counts(self.counts)
        return replace(self, counts=counts, measured=self._measured(), notes=(*self.notes, _NONNEGATIVE))

    def to_json(self) -> JSON:
        """Return the surface as JSON."""
        return {
            "regions": self.regions.to_json(),
            "counts": _numbers(self.counts),
            "noise": self.noise.to_json(),
            "confidence": self.confidence,
            "notes": list(self.notes),
            **({} if self.measured is None else {"measured": _numbers(self.measured)}),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the surface back; raises ``ValueError`` where it is not one."""
        regions = Regions.from_json(document["regions"])
        noise = MeasurementNoise.from_json(document["noise"])
        counts = np.array(document["counts"], dtype=np.float64)
        raw_counts = document.get("measured")
        raw = None if raw_counts is None else np.array(raw_counts, dtype=np.float64)
        sizes = {len(regions), noise.regions, counts.size}
        confidence = float(document["confidence"])
        if len(sizes) != 1 or not np.isfinite(counts).all() or not 0 < confidence < 1:
            raise ValueError("not a surface")
        expected = len(noise.laplace) if noise.direct else len(regions)
        if (raw is None and noise.direct) or (
            raw is not None and (raw.shape != (expected,) or not np.isfinite(raw).all())
        ):
            raise ValueError("not a surface")
        return cls(regions, counts, noise, confidence, tuple(map(str, document["notes"])), raw)

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
        from tacit.maps._surface_drawing import layers_figure

        facts = self._facts(certificate)
        metadata = {"Title": "Tacit surface", "Software": "Tacit", "Description": json.dumps(facts)}
        layers_figure(self, facts_line(facts)).picture().savefig(path, format="png", metadata=metadata)

    def to_html(
        self, path: str | Path | None = None, *, title: str | None = None,
        certificate: Certificate | None = None,
    ) -> str:  # fmt: skip
        """Return the surface as one HTML file that works without a network, and write it if a path is given.

        The page shows the value and the interval of the region under the pointer, and zooms. Its policy lets
        it run its own script only and reach no address.
        """
        from tacit.maps._surface_drawing import surface_page

        facts = self._facts(certificate)
        page = surface_page(self, facts, title=title or f"Map of {facts.get('dataset', 'points')}")
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the surface for a terminal: a small map of a grid, or the largest regions."""
        from tacit.maps._surface_drawing import surface_text

        return surface_text(self, marks)

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the surface for a notebook: a small picture in cells, or the largest regions."""
        from tacit.maps._surface_drawing import surface_html

        return surface_html(self, marks)

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the table of all counts."""
        yield "", self.table

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the counts (``n``) and the points per square kilometre (``density``) as maps.

        Regions that cannot be told from 0 are hatched.
        """
        from tacit.maps._surface_drawing import surface_figures

        return surface_figures(self, what)

    def __repr__(self) -> str:
        return self.text()

    def _denominators(self, denominators: Mapping[str, float] | Sequence[float]) -> list[float]:
        """Read one finite number of at least 0 for each region."""
        if isinstance(denominators, Mapping):
            sides = {"south", "west", "north", "east"}
            names = next((values for key, values in self.regions.keys.items() if key not in sides), ())
            missing = next((name for name in names if str(name) not in denominators), None)
            if not names or missing is not None:
                raise bad_parameter(
                    "denominators", "a number for each region", f"none for {missing!r}",
                    why="regions have names" if names else "the regions of this surface have no names",
                    fix=Code("surface.rate([...], per=1000) with one number for each region, in their order"),
                )  # fmt: skip
            denominators = [denominators[str(name)] for name in names]
        try:
            numbers = np.array(denominators, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if len(numbers) != len(self.regions) or not np.isfinite(numbers).all() or (numbers < 0).any():
            raise bad_parameter(
                "denominators", f"{len(self.regions):,} finite numbers of at least 0", f"{len(numbers):,}",
                fix=Set(denominators=[1200, 800]),
            )  # fmt: skip
        return [float(number) for number in numbers]

    def _lines(self, chosen: NDArray[np.int64]) -> AnswerTable:
        low, high = self._intervals()
        cells = Cells(*(tuple(part[chosen].tolist()) for part in (self.counts, low, high)))
        keys = {name: tuple(values[i] for i in chosen) for name, values in self.regions.keys.items()}
        return AnswerTable(keys, {"n": cells}, self.confidence, counts=("n",), left_out=self.notes)

    def _intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of each region's own interval."""
        middle, half = self._measured()[: len(self)], self.half_widths
        low, high = middle - half, middle + half
        if self._is_nonnegative:
            low, high = np.maximum(low, 0), np.maximum(high, 0)
        return np.minimum(low, self.counts), np.maximum(high, self.counts)  # a value lies in its interval

    def _measured(self) -> NDArray[np.float64]:
        return self.counts if self.measured is None else self.measured

    @property
    def _is_nonnegative(self) -> bool:
        return _NONNEGATIVE in self.notes

    def _ends(self, inside: NDArray[np.int64], cut: NDArray[np.int64]) -> AreaEnds:
        """Say how an interval is made: what lies inside surely, and what may lie inside."""
        low, surely = self._sum_of(inside, cut[:0])
        high, perhaps = self._sum_of(inside, cut)
        return AreaEnds(low, [(self.noise, surely)], high, [(self.noise, perhaps)])

    def _sum_of(self, inside: NDArray[np.int64], cut: NDArray[np.int64]) -> tuple[float, NDArray[np.int64]]:
        """Return the sum of some regions as measured, and the measurements in it."""
        chosen = self.noise.covering(inside, cut)
        return float(self._measured()[chosen].sum()), chosen

    def _facts(self, certificate: Certificate | None) -> dict[str, JSON]:
        return {
            **({} if certificate is None else certificate.facts),
            "confidence": self.confidence,
            "notes": list(self.notes),
        }


def _numbers(values: NDArray[np.float64]) -> Sequence[float]:
    """Write whole numbers as such."""
    rounded = values == np.round(values)
    if rounded.all() and np.abs(values).max(initial=0) < 2**53:
        return [int(one) for one in values.tolist()]
    return list(values.tolist())


def facts_line(facts: Mapping[str, Any]) -> str:
    """Write the facts in one line for people."""
    promised = facts.get("promised") or {}
    cost = ", ".join(f"{name} {_decimal(value)}" for name, value in promised.items())
    promise = f"protects each {facts['unit']} of {facts['dataset']}" if facts.get("unit") else ""
    plan = f"plan {str(facts['plan'])[:12]}" if facts.get("plan") else ""
    return "; ".join(part for part in (promise, cost, plan) if part)


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
