"""The difference of two surfaces on the same regions: where one has more than the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Cells, Content
from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.maps._area_answers import AreaEnds, AreaQuestions
from tacit.maps._surface import Surface
from tacit.mechanisms import half_widths_of
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.maps._regions import Regions
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SurfaceDifference(AreaQuestions, Drawn, Content):
    """One surface minus another, region by region. The two are measured with independent noise.

    Of a region that an area cuts, the first surface may have all its points inside and the second none, or
    the other way round; the interval covers both.

    Parameters
    ----------
    first, second
        The two surfaces, as measured.
    """

    kind: ClassVar[str] = "surface-difference"
    described: ClassVar[str] = "the difference of two surfaces"

    first: Surface
    second: Surface

    @property
    def regions(self) -> Regions:  # type: ignore[override]
        """The regions."""
        return self.first.regions

    @property
    def counts(self) -> NDArray[np.float64]:  # type: ignore[override]
        """The difference in each region."""
        return _estimates(self.first) - _estimates(self.second)

    @property
    def confidence(self) -> float:  # type: ignore[override]
        """How often each interval covers."""
        return min(self.first.confidence, self.second.confidence)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The note that it is a difference."""
        return ("the first surface minus the second",)

    @property
    def _is_nonnegative(self) -> bool:
        return False

    @property
    def _is_difference(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.regions)

    def __getitem__(self, column: str) -> Cells:
        return self.table[column]

    @property
    def table(self) -> AnswerTable:
        """All regions, one line for each."""
        first_noise, second_noise = self.first.noise, self.second.noise
        places = [[i] for i in range(len(self))]
        half = half_widths_of([[(first_noise, i), (second_noise, i)] for i in places], 1 - self.confidence)
        minuend, subtrahend = (each._measured()[: len(self)] for each in (self.first, self.second))  # noqa: SLF001
        middle, counts = minuend - subtrahend, self.counts
        low, high = np.minimum(middle - half, counts), np.maximum(middle + half, counts)
        cells = Cells(*(tuple(v.tolist()) for v in (counts, low, high)))
        return AnswerTable(self.regions.keys, {"n": cells}, self.confidence, left_out=self.notes)

    def _ends(self, inside: NDArray[np.int64], cut: NDArray[np.int64]) -> AreaEnds:
        (surely, first_in), (perhaps, first_all) = (
            self.first._sum_of(inside, more)  # noqa: SLF001
            for more in (cut[:0], cut)
        )
        (second_low, second_in), (second_high, second_all) = (
            self.second._sum_of(inside, more)  # noqa: SLF001
            for more in (cut[:0], cut)
        )
        first_noise, second_noise = self.first.noise, self.second.noise
        return AreaEnds(
            surely - second_high, [(first_noise, first_in), (second_noise, second_all)],
            perhaps - second_low, [(first_noise, first_all), (second_noise, second_in)],
        )  # fmt: skip

    def to_json(self) -> JSON:
        """Return both surfaces as JSON."""
        return {"first": self.first.to_json(), "second": self.second.to_json()}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the difference back."""
        return cls(Surface.from_json(document["first"]), Surface.from_json(document["second"]))

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the table of all counts."""
        yield "", self.table

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return a map of where the first surface has more and where the second has.

        Regions whose interval contains 0 are hatched: the noise alone may explain them.
        """
        from tacit.maps._surface_drawing import difference_figure

        del what
        return (difference_figure(self),)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the differences for a terminal."""
        return self.table.text(marks)

    def __repr__(self) -> str:
        return self.text()


def surface_difference(minuend: Surface, subtrahend: object) -> SurfaceDifference:
    """Return the difference, or refuse surfaces on different regions."""
    if not isinstance(subtrahend, Surface) or minuend.regions.to_json() != subtrahend.regions.to_json():
        raise TacitError(
            "bad-parameter",
            "the two surfaces have different regions",
            why="a difference is taken region by region",
            fix=Say("plan both with the same box and the same regions"),
        )
    return SurfaceDifference(minuend, subtrahend)


def _estimates(surface: Surface) -> NDArray[np.float64]:
    """Return the estimates before negative ones were changed, where they are known."""
    raw_counts = surface.measured
    return surface.counts if raw_counts is None or surface.noise.direct else raw_counts
