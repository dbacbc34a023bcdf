"""The content of a map's release: a count for every region, which answers questions about any area."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Cells, Content
from tacit.errors import TacitError
from tacit.fixes import Choose, Code
from tacit.maps._area_answers import AreaEnds, AreaQuestions
from tacit.maps._rates import SurfaceRates
from tacit.maps._regions import Regions
from tacit.maps._surface_files import SurfaceFiles
from tacit.mechanisms import MeasurementNoise
from tacit.strategies import nonnegative_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Value
    from tacit.maps._difference import SurfaceDifference
    from tacit.show import Figure


_NONNEGATIVE = "counts below 0 were set to 0, and the others lowered so that the total stays"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Surface(AreaQuestions, SurfaceFiles, SurfaceRates, Content):
    """A count for every region of a map, empty ones too, with the law of the noise on every sum of them.

    Questions about areas, differences and layers are free: the surface is private already. An interval holds
    wherever the points lie inside the regions that an area cuts; the value takes them as spread evenly.

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
        from tacit.maps._difference import surface_difference

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
        from tacit.maps._layers import read_layer

        names, areas = read_layer(layer, name, within_km)
        return replace(self.areas(areas), keys={name: names})

    def _lines(self, chosen: NDArray[np.int64]) -> AnswerTable:
        low, high = self._intervals()
        cells = Cells(*(tuple(part[chosen].tolist()) for part in (self.counts, low, high)))
        keys = {name: tuple(values[i] for i in chosen) for name, values in self.regions.keys.items()}
        return AnswerTable(keys, {"n": cells}, self.confidence, counts=("n",), left_out=self.notes)

    def _intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of each region's own interval."""
        middle, wide = self._measured()[: len(self)], self.half_widths
        low, high = middle - wide, middle + wide
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
        measured = document.get("measured")
        raw = None if measured is None else np.array(measured, dtype=np.float64)
        sizes = {len(regions), noise.regions, counts.size}
        confidence = float(document["confidence"])
        if len(sizes) != 1 or not np.isfinite(counts).all() or not 0 < confidence < 1:
            raise ValueError("not a surface")
        wanted = len(noise.laplace) if noise.direct else len(regions)
        if (raw is None and noise.direct) or (
            raw is not None and (raw.shape != (wanted,) or not np.isfinite(raw).all())
        ):
            raise ValueError("not a surface")
        return cls(regions, counts, noise, confidence, tuple(map(str, document["notes"])), raw)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the surface for a terminal: a small map of a grid, or the largest regions."""
        from tacit.maps._surface_text import surface_text

        return surface_text(self, marks)

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the surface for a notebook: a small picture in cells, or the largest regions."""
        from tacit.maps._surface_text import surface_html

        return surface_html(self, marks)

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the table of all counts."""
        yield "", self.table

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the counts (``n``) and the points per square kilometre (``density``) as maps.

        Regions that cannot be told from 0 are hatched.
        """
        from tacit.maps._surface_figures import surface_figures

        return surface_figures(self, what)

    def __repr__(self) -> str:
        return self.text()


def _numbers(values: NDArray[np.float64]) -> Sequence[float]:
    """Write whole numbers as such."""
    whole = values == np.round(values)
    if whole.all() and np.abs(values).max(initial=0) < 2**53:
        return [int(one) for one in values.tolist()]
    return list(values.tolist())
