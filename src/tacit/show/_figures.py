"""Figures as plain data: what a chart, a matrix or a map shows, in numbers and words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.show._scales import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from tacit.show._matplotlib import Picture

Mark: TypeAlias = Literal["points", "joined", "line", "steps", "bars", "bounds", "across", "upright"]
AxisKind: TypeAlias = Literal["numbers", "logarithmic", "dates", "shares"]
Ring: TypeAlias = "tuple[tuple[float, float], ...]"
#: Places in the palette that stand for something; other series take the colours in their order.
BLUE, ORANGE, GREEN, RED, GREY = 0, 1, 2, 3, 5
MOST_SERIES = 8  # colours that can be told apart
MOST_WRITTEN = 400  # cells of a matrix that have room for their words


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """One axis: its name, and how its numbers are to be read.

    Parameters
    ----------
    name
        What the axis shows.
    names
        What stands at the places 0, 1, 2 ... of an axis without numbers.
    kind
        ``"numbers"``, ``"logarithmic"``, ``"shares"`` (0.5 is written 50 %) or ``"dates"`` (days since 1970).
    ends
        Where the axis begins and ends, if that is fixed.
    ticks
        Places with their words, if they are fixed.
    """

    name: str = ""
    names: tuple[str, ...] = ()
    kind: AxisKind = "numbers"
    ends: tuple[float | None, float | None] = (None, None)
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """Values that belong together, and the interval of each where it has one.

    Parameters
    ----------
    mark
        ``"points"`` with intervals, ``"joined"`` points, a ``"line"`` or ``"steps"`` with a band, ``"bars"``,
        ``"bounds"`` (short lines), or a line ``"across"`` the chart at ``y``, or ``"upright"`` at ``x``.
    x, y
        Places and values. Steps have one place more than values: the edges.
    low, high
        The ends of the intervals; empty if there are none, None where an end is open or unknown.
    label
        The name of the series in the legend; a series without one is not in it.
    colour
        The place in the palette.
    dashed
        Whether the line is dashed. Bars that are dashed have an outline only.
    base
        Where each bar begins; empty for bars from zero.
    width
        The width of a bar.
    """

    mark: Mark
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    label: str = ""
    colour: int = 0
    dashed: bool = False
    base: Sequence[float] = ()
    width: float = 0.8

    @classmethod
    def of(cls, mark: Mark, x: Sequence[float], parts: Iterable[Iterable[Any]], **more: Any) -> ChartSeries:
        """Return a series from three columns: values, and the low and the high ends of their intervals."""
        y, low, high = map(numbers, parts)
        return cls(mark, x, y, low, high, **more)


@dataclass(frozen=True, slots=True)
class Chart:
    """Series on two axes.

    Parameters
    ----------
    series
        What is drawn, from back to front.
    x, y
        The axes.
    title
        What this chart shows, where a figure has several.
    legend
        The heading of the legend.
    note
        Words that stand in the chart, such as why it is empty.
    sideways
        Whether a picture has its names from top to bottom too, as a drawing on a page always has.
    """

    series: tuple[ChartSeries, ...]
    x: ChartAxis = ChartAxis()
    y: ChartAxis = ChartAxis()
    title: str = ""
    legend: str = ""
    note: str = ""
    sideways: bool = False

    @property
    def alt(self) -> str:
        """Say from where to where each series goes."""
        sentences = [f"{self.y.name or 'Values'} by {self.x.name}" if self.x.name else self.y.name]
        for series in self.series:
            numbers = [float(value) for value in series.y if value is not None and np.isfinite(value)]
            if numbers and series.mark not in {"across", "upright"}:
                ends = f"from {shown(min(numbers))} to {shown(max(numbers))}"
                one = len(numbers) == 1
                label = series.label or ("value" if one else "values")
                sentences.append(f"{label} {shown(numbers[0]) if one else ends}")
        return ", ".join(part for part in (*sentences, self.note) if part) + "."


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """Numbers in rows and columns, shown as colours.

    Parameters
    ----------
    values
        The numbers.
    rows, columns
        The names of rows and columns; empty for images.
    row_name, column_name, label
        What the rows, the columns and the numbers are.
    unclear
        The cells whose number may be noise alone; they are hatched.
    form
        How the number of each cell is written into it, where there is room.
    words
        What is written into each cell instead.
    title
        What this matrix shows, where a figure has several.
    top
        The number with the strongest colour; the largest one if None.
    spots
        Points of interest: a label, and their rows and columns.
    """

    values: npt.NDArray[np.float64]
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    row_name: str = ""
    column_name: str = ""
    label: str = ""
    unclear: npt.NDArray[np.bool_] | None = None
    form: str = ""
    words: tuple[tuple[str, ...], ...] = ()
    title: str = ""
    top: float | None = None
    spots: tuple[tuple[str, npt.NDArray[np.int64]], ...] = ()

    @property
    def written(self) -> tuple[tuple[str, ...], ...]:
        """What is written into the cells; nothing where they are too many."""
        if self.words or not self.form or self.values.size > MOST_WRITTEN:
            return self.words
        return tuple(tuple(format(float(value), self.form) for value in row) for row in self.values)

    @property
    def alt(self) -> str:
        """Say how large the matrix is, and where its largest number stands."""
        down, across = self.values.shape
        if not self.values.size:
            return "An empty matrix."
        row, column = np.unravel_index(int(np.nanargmax(self.values)), self.values.shape)
        at = f" ({self.rows[row]}, {self.columns[column]})" if self.rows and self.columns else ""
        largest = f"the largest number is {shown(float(self.values[row, column]))}{at}"
        return f"{self.label or 'Numbers'} in {down} x {across} cells; {largest}."


@dataclass(frozen=True, slots=True, eq=False)
class RegionMap:
    """Numbers of regions on a map, shown as colours.

    Parameters
    ----------
    shapes
        The rings of each region, as longitudes and latitudes; empty for a grid.
    values
        The number of each region.
    names
        The name of each region.
    label
        What the numbers are.
    unclear
        The regions whose interval contains zero; they are hatched.
    grid
        For a grid: the edges of its columns (longitudes) and of its rows (latitudes, upwards).
    ends
        The numbers with the weakest and the strongest colour; if the first is negative, colours go both ways.
    title
        What this map shows, where a figure has several.
    """

    shapes: tuple[tuple[Ring, ...], ...]
    values: npt.NDArray[np.float64]
    names: Callable[[int], str]
    label: str
    unclear: npt.NDArray[np.bool_]
    ends: tuple[float, float]
    grid: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None = None
    title: str = ""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """West, south, east and north of the map."""
        if self.grid is not None:
            (lon, lat) = self.grid
            return float(lon[0]), float(lat[0]), float(lon[-1]), float(lat[-1])
        corners = np.array([corner for shape in self.shapes for ring in shape for corner in ring])
        (west, south), (east, north) = corners.min(axis=0), corners.max(axis=0)
        return float(west), float(south), float(east), float(north)

    @property
    def alt(self) -> str:
        """Say how many regions there are, and which has the largest number."""
        largest_index = int(np.argmax(self.values))
        largest = (
            f"the largest number is {shown(float(self.values[largest_index]))} in {self.names(largest_index)}"
        )
        return f"{self.label} in {self.values.size:,} regions; {largest}. North is at the top."


Panel: TypeAlias = Chart | Matrix | RegionMap


@dataclass(frozen=True, slots=True)
class Figure:
    """What one figure shows: a title, words that say what its intervals cover, and panels of numbers.

    A figure is data. It prints as a preview, a notebook shows it as SVG, and `save` writes an SVG file, or
    with matplotlib (extra ``plot``) a PNG or a PDF.

    Parameters
    ----------
    title
        What is shown, of which data, at which cost.
    panels
        The charts, matrices or maps.
    words
        What the bars, bands and hatches mean.
    name
        The name by which ``plot`` finds the figure.
    across
        How many panels a picture may have side by side.

    Examples
    --------
    >>> wards = ChartAxis("ward", ("A", "B"))
    >>> points = ChartSeries("points", (0, 1), (4, 9), (1, 6), (7, 12))
    >>> figure = Figure("visits: n by ward", (Chart((points,), wards, ChartAxis("n")),))
    >>> figure.alt
    'n by ward, values from 4 to 9.'
    """

    title: str
    panels: tuple[Panel, ...]
    words: tuple[str, ...] = ()
    name: str = ""
    across: int = 1

    @property
    def alt(self) -> str:
        """The figure in words, for whoever cannot see it."""
        return " ".join([*(f"{line}." for line in self.words), *(panel.alt for panel in self.panels)][-9:])

    def svg(self, *, file: bool = False) -> str:
        """Return the figure as SVG: for a page, or as a file with its own background."""
        from tacit.show._svg import figure_svg

        return str(figure_svg(self, file=file))

    def picture(self, ax: Any = None) -> Picture:
        """Return the figure as a matplotlib picture (extra ``plot``), or draw it on these axes."""
        from tacit.show._matplotlib import draw_figure

        picture: Picture = draw_figure(self, ax)
        return picture

    def text(self, width: int = 80) -> str:
        """Return a preview of the figure for a terminal."""
        from tacit.show._text import figure_text

        return figure_text(self, width)

    def save(self, path: str | Path) -> None:
        """Write the figure to a file: ``.svg`` needs no extra; ``.png`` and ``.pdf`` need matplotlib."""
        if Path(path).suffix.lower() == ".svg":
            Path(path).write_text(self.svg(file=True), encoding="utf-8")
        else:
            self.picture().savefig(path, dpi=150)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f'<div style="max-width:36rem">{self.svg()}</div>'


def together(figures: Sequence[Figure], title: str = "") -> Figure:
    """Return one figure with the panels of several; the first panel of each has its title and words."""
    if len(figures) == 1:
        return figures[0]
    panels: list[Panel] = []
    for figure in figures:
        heads = [*(line for line in (figure.title, *figure.words) if line)]
        panel = replace(figure.panels[0], title="\n".join([*heads, figure.panels[0].title]).strip())
        panels += [panel, *figure.panels[1:]]
    return Figure(title, tuple(panels))


def needed_package(path: str | Path) -> str | None:
    """Return the package that drawing into this file needs; an SVG needs none.

    Examples
    --------
    >>> needed_package("n.png"), needed_package("n.svg")
    ('matplotlib', None)
    """
    return None if Path(path).suffix.lower() == ".svg" else "matplotlib"


def chosen(what: object, made: Mapping[str, Callable[[], Figure]], most: int = 12) -> tuple[Figure, ...]:
    """Return the figure of this name, or without a name the first ones; refuse a name that is unknown."""
    if what is None:
        return tuple(replace(make(), name=name) for name, make in list(made.items())[:most])
    if str(what) not in made:
        raise TacitError(
            "unknown-column",
            f"there is no picture {what!r} of this release",
            fix=Choose(tuple(made), given=str(what)) if made else "print the release instead",
        )
    return (replace(made[str(what)](), name=str(what)),)


def block_means(values: npt.NDArray[np.float64], down: int, across: int) -> npt.NDArray[np.float64]:
    """Return the means of blocks of cells; the last blocks may have fewer.

    Examples
    --------
    >>> block_means(np.array([[1.0, 3, 5], [1, 3, 7]]), 2, 2).tolist()
    [[2.0, 6.0]]
    """
    for axis, step in ((0, down), (1, across)):
        starts = np.arange(0, values.shape[axis], step)
        sizes = np.diff([*starts, values.shape[axis]])
        values = np.add.reduceat(values, starts, axis) / (sizes[:, None] if axis == 0 else sizes)
    return values


def shortened(label: str, letters: int = 24) -> str:
    """Cut a label that is too long for an axis; its end stays, because that is often what differs.

    Examples
    --------
    >>> shortened("a label of many letters", 16)
    'a label o\N{HORIZONTAL ELLIPSIS}etters'
    """
    if len(label) <= letters:
        return label
    end = 3 * letters // 8
    return label[: letters - end - 1] + "\N{HORIZONTAL ELLIPSIS}" + label[-end:]


def numbers(values: Iterable[Any]) -> tuple[float | None, ...]:
    """Return values as numbers; None where one is missing, no number or not finite."""
    return tuple(
        float(one) if isinstance(one, int | float | np.number) and np.isfinite(float(one)) else None
        for one in values
    )


class Drawn:
    """A result that shows itself as figures, and draws the first of them."""

    __slots__ = ()

    def figures(self) -> tuple[Figure, ...]:
        """Return what the result shows as figures: plain data, which prints, saves and shows itself."""
        raise NotImplementedError

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the result (extra ``plot``).

        Returns a picture that a notebook shows and ``savefig`` saves to a file; with ``ax``, returns these
        axes.
        """
        return self.figures()[0].picture(ax)
