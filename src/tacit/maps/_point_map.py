"""The dataset of a map: points in a public box, and the questions about them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from tacit.core import Dataset, plannable
from tacit.maps._public_regions import read_districts
from tacit.maps._questions import ADAPTIVE_GRID, DISTRICTS, GRID, H3, HOTTEST, TREE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import AnswerTable, Limits, Question
    from tacit.exact import Number
    from tacit.maps._areas import Box
    from tacit.maps._point_source import PointSource
    from tacit.maps._surface import Surface


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PointMap(Dataset):
    """Points on a map: who is protected, the public box, and what one unit may add. Made by `points`.

    Points outside the box, and those with a missing coordinate, do not count. Every method below asks a
    question. Its `plan` takes ``epsilon`` (with ``delta``) or ``rho``, or where the regions follow the points
    ``epsilon`` alone, and shows the cost and the error; nothing is read before ``release()`` has charged it.

    Parameters
    ----------
    box
        The public box.
    limits
        What one unit may add.
    """

    kind: ClassVar[str] = "points"

    box: Box
    limits: Limits
    _source: PointSource

    def prepare(self) -> None:
        """Read the points now; by default the first release reads them.

        Guarantee: nothing is released. The points are read before anything is charged and stay inside this
        dataset, so whoever calls this must not let others see how long it takes. A service calls it before
        it takes questions.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> sites.prepare()
        >>> sites.remaining
        epsilon 1 of 1
        """
        self._source.load()

    @plannable
    def grid(self, rows: int, columns: int) -> Question[Surface]:
        """Ask for a surface of rows x columns cells over the box; every cell gets a count, empty ones too.

        Guarantee: the cost is that of one unit with all of its points that count. For single points one cell
        moves by 1, however fine the grid is (docs/proofs/maps.md, sections 1 and 2).

        Parameters
        ----------
        rows, columns
            The size of the grid, from south to north and from west to east.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> plan = sites.grid(16, 16).plan(epsilon=0.5)
        >>> len(plan.release())
        256
        """
        return GRID.ask(self, rows=rows, columns=columns)

    @plannable
    def districts(
        self, districts: object, *, name: str = "name", parents: str | Sequence[str] | None = None
    ) -> Question[Surface]:
        """Ask for a surface of public polygons, consistent with larger regions above them (extra ``maps``).

        A point on a border counts in the first polygon, in the order in which they are given; a point in no
        polygon does not count. Polygons that overlap are refused. With ``parents``, each level gets an equal
        part of the cost, and the counts are the least-squares estimates in which districts add up to
        regions (docs/proofs/maps.md, sections 3 and 4).

        Parameters
        ----------
        districts
            A GeoJSON feature collection: a path, or the document.
        name
            The property that names a polygon.
        parents
            The property, or the properties from small to large, that names the larger region of a polygon.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> question = sites.districts(tc.maps.example_districts(), parents="region")
        >>> surface = question.plan(epsilon=1).release()
        >>> [len(surface), len(surface.level("region"))]
        [12, 3]
        """
        return DISTRICTS.ask(self, districts=read_districts(districts, name, parents, self.box))

    @plannable
    def h3(self, resolution: int, *, coarsest: int | None = None) -> Question[Surface]:
        """Ask for a surface of the H3 cells that touch the box (extra ``maps``).

        Parameters
        ----------
        resolution
            Of the cells, from 0 (4 million square kilometres) to 15 (less than 1 square metre).
        coarsest
            The coarsest resolution of a hierarchy above the cells, made by their parents; None for no
            hierarchy. Parents are not exactly the cells of the coarser resolution: a point near a border can
            lie in another one.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> surface = sites.h3(4).plan(epsilon=1).release()
        >>> surface.radius(-23.6, 133.4, km=40).value > 0
        True
        """
        return H3.ask(self, resolution=resolution, coarsest=coarsest)

    @plannable
    def tree(self, *, depth: int = 8, share: Number = Fraction(1, 2)) -> Question[Surface]:
        """Ask for a surface whose regions are the leaves of a tree: small where many points are.

        Guarantee: pure epsilon. A share of it grows the tree (`tacit.mechanisms.SplittingTree`), and the rest
        pays for fresh noise on the count of each leaf, so intervals hold given the tree
        (docs/proofs/map_trees.md, "The splitting tree").

        Parameters
        ----------
        depth
            The deepest level: the finest leaves are those of a grid of 2^depth x 2^depth cells.
        share
            The share of epsilon that may go to the tree. What its exact price leaves goes to the counts.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(),
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> plan = sites.tree(depth=6).plan(epsilon=1)
        >>> float(plan.cost.epsilon(delta=0))
        1.0
        >>> surface = plan.release()
        >>> answer = surface.rectangle((-24, 133), (-23, 134))
        >>> answer.low <= answer.value <= answer.high
        True
        """
        return TREE.ask(self, depth=depth, share=share)

    @plannable
    def adaptive_grid(self, *, points: int | None = None, cells: int = 256) -> Question[Surface]:
        """Ask for a surface from two grids: a coarse one, whose cells are divided by their noisy counts.

        Guarantee: pure epsilon: half of it for each grid, and 2 % for the number of points unless it is
        declared. The two grids are merged by least squares (docs/proofs/map_trees.md, "The adaptive grid").

        Parameters
        ----------
        points
            The number of points, if it is public or guessed from public knowledge; it decides the size of
            the coarse grid only.
        cells
            Rows and columns of the finest grid: all regions end at its borders, so a question along them is
            answered exactly up to the noise wherever the regions are as small.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(),
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> surface = sites.adaptive_grid().plan(epsilon=1).release()
        >>> len(surface) >= 100
        True
        """
        return ADAPTIVE_GRID.ask(self, points=points, cells=cells)

    @plannable
    def hottest(self, k: int, *, cells: tuple[int, int] = (64, 64)) -> Question[AnswerTable]:
        """Ask for the k cells of a grid in which most units have a point, best first, without counts.

        Guarantee: epsilon / k for each pick. A unit counts once in each cell, so it moves every score by at
        most 1, however many cells it is in (docs/proofs/map_trees.md, "The hottest cells").

        Parameters
        ----------
        k
            How many cells.
        cells
            Rows and columns of the grid over the box.

        Examples
        --------
        >>> import tacit as tc
        >>> sites = tc.points(tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(),
        ...                   box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1))
        >>> len(sites.hottest(3, cells=(8, 8)).plan(epsilon=1).release())
        3
        """
        return HOTTEST.ask(self, k=k, cells=cells)
