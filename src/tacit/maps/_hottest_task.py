"""The task of the hottest cells: the k cells that most units visit, picked with noise, without counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells
from tacit.maps._task import missing_source

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON
    from tacit.errors import TacitError
    from tacit.maps._point_source import PointSource
    from tacit.maps._regions import GridRegions
    from tacit.mechanisms import TopK

__all__ = ["HottestTask"]


@dataclass(frozen=True, slots=True)
class HottestTask:
    """Pick cells by how many different units have a point in them.

    A unit raises the score of any number of cells by 0 or 1 each, so scores are monotone with sensitivity 1,
    however many cells a unit visits (docs/proofs/map_trees.md, "The hottest cells").
    """

    source: PointSource
    regions: GridRegions
    asked: Mapping[str, JSON]
    top: TopK
    #: What is counted, in a word.
    counted: str = "visitors"

    @property
    def question(self) -> JSON:
        """The grid, the box and the limits."""
        return dict(self.asked)

    @property
    def mechanisms(self) -> Sequence[TopK]:
        """The k picks together."""
        return [self.top]

    def unavailable(self) -> TacitError | None:
        """Return the refusal if the file of points does not exist."""
        return missing_source(self.source)

    def integers(self) -> Generator[Any, Any, None]:
        """Yield how many units have a point in each cell."""
        points = self.source.load()
        rows, columns = self.regions.shape
        cells = self.regions.box.cells(points.lat, points.lon, rows=rows, columns=columns)
        if points.owner is not None:
            cells = np.unique(points.owner * (rows * columns) + cells) % (rows * columns)
        yield np.bincount(cells, minlength=rows * columns).astype(np.int64)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        """Read the picked cells, best first."""
        chosen = [int(one) for one in noisy[0]]
        sides = self.regions.boxes[chosen].T.tolist()
        behind = self.top.half_width(confidence, candidates=len(self.regions))
        note = (
            f"the place in the order of the picks; with {float(confidence) * 100:g} % confidence, every "
            f"picked cell has at most {behind:,} {self.counted} fewer than the best cell left"
        )
        ranks = tuple(range(1, len(chosen) + 1))
        empty = (None,) * len(chosen)
        return AnswerTable(
            dict(zip(("south", "west", "north", "east"), map(tuple, sides), strict=True)),
            {"place": Cells(ranks, empty, empty)},
            float(confidence),
            notes={"place": note},
        )
