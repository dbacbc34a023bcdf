"""The task of a map's plan: count the points of every region, one mechanism for each level of regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.maps._limits import count_regions
from tacit.maps._surface import Surface
from tacit.mechanisms import MeasurementNoise
from tacit.strategies import consistent

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, Limits
    from tacit.maps._point_source import OwnedPoints, PointSource
    from tacit.maps._regions import Regions
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

__all__ = ["Locator", "RegionTask", "missing_source"]


class Locator(Protocol):
    """Public regions that know which of them holds a point."""

    @property
    def regions(self) -> Regions:
        """The regions."""

    def locate(self, points: OwnedPoints) -> NDArray[np.int64]:
        """Return the region of each point, -1 for none: a function of the point alone."""


class _MayBeMissing(Protocol):
    @property
    def missing_file(self) -> str: ...


@dataclass(frozen=True, slots=True)
class RegionTask:
    """Count the points of every region, and of the larger regions above them.

    Parameters
    ----------
    source
        Where the points are.
    locator
        Which region holds a point.
    limits
        What one unit may add.
    asked
        The question as a document.
    noises
        One mechanism for each level, the regions themselves first.
    above
        For each further level the number of the larger region of each region; empty without a hierarchy.
    parents
        The parent of each measurement, if there is a hierarchy.
    notes
        What the surface leaves out.
    """

    source: PointSource
    locator: Locator
    limits: Limits
    asked: Mapping[str, JSON]
    noises: tuple[DiscreteLaplace | DiscreteGaussian, ...]
    above: tuple[NDArray[np.int64], ...] = ()
    parents: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()

    @property
    def question(self) -> JSON:
        """The regions, the box and the limits."""
        return dict(self.asked)

    @property
    def mechanisms(self) -> Sequence[DiscreteLaplace | DiscreteGaussian]:
        """The noise of each level."""
        return self.noises

    def unavailable(self) -> TacitError | None:
        """Return the refusal if the file of points does not exist."""
        return missing_source(self.source)

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the exact counts of the regions, then those of the larger ones: sums of the first."""
        points = self.source.load()
        counts = count_regions(points, self.locator.locate(points), len(self.locator.regions), self.limits)
        yield counts
        for level in self.above:
            yield np.bincount(level, weights=counts, minlength=int(level.max()) + 1).round().astype(np.int64)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> Surface:
        """Read the surface off the noisy counts; those of a hierarchy are made consistent."""
        sizes = [len(level) for level in noisy]
        law = MeasurementNoise.of(list(zip(self.noises, sizes, strict=True)), self.parents)
        raw = np.concatenate([np.array(level, dtype=np.float64) for level in noisy])
        counts = raw if self.parents is None else consistent(raw, self.parents, law.variances)
        return Surface(self.locator.regions, counts[: sizes[0]], law, float(confidence), self.notes)


def missing_source(source: _MayBeMissing) -> TacitError | None:
    """Return the refusal for a file that does not exist; whether it exists is no secret."""
    path = source.missing_file
    if not path:
        return None
    return TacitError(
        "bad-parameter",
        f"the file {path} does not exist",
        why="nothing was charged",
        fix=Say("check the path"),
    )
