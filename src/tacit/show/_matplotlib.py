"""Figures as pictures of matplotlib (extra ``plot``): the only module that imports it."""

from __future__ import annotations

import math
import textwrap
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.show._figures import Chart, ChartAxis, ChartSeries, Figure, Matrix, Panel, RegionMap, shortened
from tacit.show._safe_text import visible
from tacit.show._scales import PALETTE, are_between, colour

try:
    from matplotlib.figure import Figure as Canvas
except ImportError as missing:  # pragma: no cover - the test environment has matplotlib
    from tacit.errors import TacitError
    from tacit.fixes import Do

    raise TacitError(
        "missing-extra",
        "pictures need matplotlib, which is not installed",
        why="the base installation does not include it, to stay small",
        fix=Do("install", package="tacit[plot]"),
    ) from missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

_LETTERS = 13  # letters of the title in an inch
_HATCHED = 10_000  # cells; more would be drawn too slowly
_BORDERED = 1000  # regions of different sizes; the borders and hatches of more would hide their colours
_MOST_WIDE = 21.0  # inches
_FEW = 30  # names beside a matrix


class Picture(Canvas):
    """A matplotlib figure that a notebook shows by itself; it needs no window system.

    It is opaque with strong lines, so it stays legible on light and dark pages. A picture with one set of
    axes also has the methods of these axes: ``picture.set_ylim(0, 10)``.

    Examples
    --------
    >>> picture = Picture()
    >>> _ = picture.subplots().set_title("one set of axes")
    >>> picture.get_title()
    'one set of axes'
    """

    def __init__(self, width: float = 7.0, height: float = 4.2) -> None:
        super().__init__(figsize=(width, height), layout="constrained", facecolor="white", dpi=110)

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()

    def __getattr__(self, name: str) -> Any:
        axes = self.__dict__.get("_axstack")
        if name.startswith("_") or axes is None or len(self.axes) != 1:
            raise AttributeError(f"a picture has no attribute {name!r}")
        return getattr(self.axes[0], name)


def draw_figure(figure: Figure, ax: Axes | None = None) -> Any:
    """Return a figure as a picture; with ``ax``, draw its first panel there and return the axes."""
    if ax is not None:
        _draw(ax, figure.panels[0], (figure.title, *figure.words, figure.panels[0].title))
        return ax
    sizes = [_size(panel) for panel in figure.panels]
    across = min(figure.across, len(sizes))
    down = math.ceil(len(sizes) / across)
    small = 1.0 if across == 1 else 0.55 if across > 2 else 0.75
    width, height = (
        max(w for w, _ in sizes) * across * small,
        sum(max(h for _, h in sizes[i * across : (i + 1) * across]) for i in range(down))
        * (small if len(sizes) > 1 and across > 1 else 1.0),
    )
    picture = Picture(min(max(width, 5.5), _MOST_WIDE), height + (0.5 if len(sizes) > 1 else 0))
    picture.set_label(figure.alt)  # for pages that show the picture
    single = len(sizes) == 1 and not figure.panels[0].title
    for position, panel in enumerate(figure.panels, start=1):
        head = (figure.title, *figure.words) if single else ()
        _draw(picture.add_subplot(down, across, position), panel, (*head, panel.title))
    if figure.title and not single:
        letters = int(_LETTERS * picture.get_figwidth())
        lines = [textwrap.fill(visible(line), letters) for line in (figure.title, *figure.words)]
        picture.suptitle(_plain("\n".join(lines)), fontsize=9, x=0.01, ha="left")
    return picture


def _size(panel: Panel) -> tuple[float, float]:
    """Return the inches at which a panel can be read."""
    match panel:
        case Chart(sideways=True):
            return 6.5, 1.6 + 0.4 * len(panel.x.names)
        case Chart():
            beside = max(1, len({one.label for one in panel.series if one.mark == "bars"}))
            return (8.0 if not panel.x.names else max(5.5, 0.6 * len(panel.x.names) * beside)), 3.8
        case Matrix() if panel.rows:
            down, across = panel.values.shape
            width = 1.2 if any("\n" in word for row in panel.words for word in row) else 0.5
            return max(5.5, min(4 + width * across, 14)), max(3.8, min(2.5 + 0.35 * down, 14))
        case Matrix():
            down, across = panel.values.shape
            return 5.5, 5.5 * min(max(down / max(across, 1), 0.2), 2.0)
        case _:
            west, south, east, north = panel.box
            high = 5.6 * (north - south) / (east - west) * _ratio(panel)
            return 7.0, min(max(high + 0.8, 2.5), 9.0)


def _draw(axes: Axes, panel: Panel, head: Sequence[str]) -> None:
    match panel:
        case Chart():
            _draw_chart(axes, panel)
        case Matrix():
            _draw_matrix(axes, panel)
        case _:
            _draw_map(axes, panel)
    canvas: Any = axes.figure
    share = min(1.0, axes.get_position().width / 0.77)
    letters = max(40, int(_LETTERS * share * canvas.bbox.width / canvas.dpi))
    lines = [textwrap.fill(visible(line), letters) for one in head if one for line in one.split("\n")]
    axes.set_title(_plain("\n".join(lines)), fontsize=9, loc="left")


# charts


def _draw_chart(axes: Axes, chart: Chart) -> None:
    """Draw the series of a chart; with ``sideways``, names stand from top to bottom."""
    for series in chart.series:
        _draw_series(axes, series, sideways=chart.sideways)
    across, up = (axes.xaxis, axes.yaxis) if not chart.sideways else (axes.yaxis, axes.xaxis)
    _name(across, chart.x)
    plain = chart.x.kind == "numbers" and not (chart.x.ticks or chart.x.names)
    if plain and are_between(x for one in chart.series for x in one.x):
        from matplotlib.ticker import MaxNLocator

        across.set_major_locator(MaxNLocator("auto", integer=True))
    _name(up, chart.y)
    (axes.set_xlabel if not chart.sideways else axes.set_ylabel)(_plain(visible(chart.x.name)))
    (axes.set_ylabel if not chart.sideways else axes.set_xlabel)(_plain(visible(chart.y.name)))
    if chart.sideways:
        axes.set_ylim(len(chart.x.names) - 0.5, -0.5)
    elif chart.x.names:
        axes.set_xlim(-0.6, len(chart.x.names) - 0.4)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x" if chart.sideways else "y", alpha=0.3)
    if chart.note:
        _write_note(axes, chart)
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    if handles:
        legend = axes.legend(list(handles.values()), list(handles), fontsize=8, framealpha=0.8,
                             edgecolor="none", title=_plain(visible(chart.legend)) or None)  # fmt: skip
        legend.get_title().set_fontsize(8)


def _write_note(axes: Axes, chart: Chart) -> None:
    """Write the note of a chart in a corner, or in the middle of a chart without points."""
    empty = not any(len(series.x) for series in chart.series)
    corner, side = ((0.5, 0.5), "center") if empty else ((0.03, 0.9), "left")
    words = "\n".join(textwrap.fill(visible(line), 50) for line in chart.note.split("\n"))
    axes.text(*corner, _plain(words), ha=side, va="center", fontsize=9, transform=axes.transAxes)
    if empty:
        axes.set(xticks=[], yticks=[])


def _name(side: Any, axis: ChartAxis) -> None:
    """Set the ticks and the ends of an axis."""
    if axis.kind == "logarithmic":
        side._set_axes_scale("log")  # noqa: SLF001 - axes have no method for either side
        _label_powers(side)
    low, high = axis.ends
    if low is not None or high is not None:
        side.axes.set(**{f"{side.axis_name}lim": (low, high)})
    if axis.kind == "dates":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        side.set_major_locator(locator)
        side.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    elif axis.kind == "shares":
        from matplotlib.ticker import PercentFormatter

        side.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    ticks = axis.ticks or tuple(enumerate(axis.names))
    if ticks:
        words = [_plain(shortened(visible(word))) for _, word in ticks]
        many = len(words) > 4 or max(map(len, words)) > 12
        slanted = side.axis_name == "x" and (_are_wide(side, words) if axis.ticks else many)
        turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if slanted else {}
        side.set_ticks([at for at, _ in ticks], words, **turned)
        side.set_tick_params(which="minor", length=0)


def _are_wide(side: Any, words: list[str]) -> bool:
    """Whether words with a space between them are about as wide as their axis."""
    letters = side.axes.get_position().width * side.axes.figure.get_figwidth() * 72 / (0.55 * 10)
    return bool(sum(len(word) + 2 for word in words) > letters)


def _label_powers(side: Any) -> None:
    """Label a logarithmic axis with plain numbers, and with more of them where it spans little."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = side.get_view_interval()
    side.set_major_locator(LogLocator(subs=(1, 2, 5) if low > 0 and high / low < 300 else (1,)))
    side.set_major_formatter(StrMethodFormatter("{x:g}"))
    side.set_minor_formatter(NullFormatter())


def _draw_series(axes: Axes, series: ChartSeries, *, sideways: bool) -> None:
    style: dict[str, Any] = {"color": colour(series.colour), "label": _plain(visible(series.label)) or None}
    x, y = _array(series.x), _array(series.y)
    low, high = (_array(ends) if ends else np.full(len(y), np.nan) for ends in (series.low, series.high))
    match series.mark:
        case "across":
            rule = axes.axvline if sideways else axes.axhline
            rule(float(y[0]), linestyle=_dashes(series), linewidth=1, **style)
        case "upright":
            axes.axvline(float(x[0]), linestyle=_dashes(series), linewidth=1, **style)
        case "line" | "steps":
            _draw_line(axes, series, x, (y, low, high), style)
        case "bars":
            _draw_bars(axes, series, x, y, sideways=sideways)
            if series.low:
                _whiskers(axes, x, (y, low, high), sideways, fmt="none", ecolor="#333333", capsize=3)
        case "bounds":
            axes.plot(x, y, "_", markersize=22, markeredgewidth=2, **style)
        case _:
            style |= {"linewidth": 0.8} if series.mark == "joined" else {}
            style |= {"markersize": 4} if len(x) > 80 else {}
            form = ".-" if series.mark == "joined" else "o"
            _whiskers(axes, x, (y, low, high), sideways, fmt=form, capsize=4 if len(x) <= 60 else 0, **style)


def _dashes(series: ChartSeries) -> str:
    return "--" if series.dashed else "-"


def _draw_line(
    axes: Axes, series: ChartSeries, x: Any, ends: tuple[Any, Any, Any], style: dict[str, Any]
) -> None:
    stairs = series.mark == "steps"
    y, low, high = (np.append(part, part[-1:]) if stairs else part for part in ends)
    drawstyle = "steps-post" if stairs else "default"
    axes.plot(x, y, linestyle=_dashes(series), linewidth=1.6, drawstyle=drawstyle, **style)
    if series.low:
        step = "post" if stairs else None
        axes.fill_between(x, low, high, step=step, color=style["color"], alpha=0.2, linewidth=0)  # type: ignore[arg-type]


def _draw_bars(axes: Axes, series: ChartSeries, x: Any, y: Any, *, sideways: bool) -> None:
    tone, base = colour(series.colour), _array(series.base) if series.base else np.zeros(len(y))
    look = {"color": "none", "edgecolor": tone, "hatch": "//"} if series.dashed else {"color": tone}
    draw: Any = axes.barh if sideways else axes.bar
    draw(x, y - base, series.width, base, label=_plain(visible(series.label)) or None, **look)


def _whiskers(axes: Axes, x: Any, ends: tuple[Any, Any, Any], sideways: bool, **style: Any) -> None:  # noqa: FBT001
    """Draw values with their intervals; a value that the noise hides has its interval only."""
    y, low, high = ends
    middle = np.where(np.isnan(y), (low + high) / 2, y)
    reach = None if np.isnan(low).all() else np.nan_to_num(np.clip([middle - low, high - middle], 0, None))
    visible, hidden = ~np.isnan(y), np.isnan(y) & ~np.isnan(middle)
    for part, form in ((visible, style["fmt"]), (hidden, "none")):
        if part.any() or form == style["fmt"]:
            bars = None if reach is None else reach[:, part]
            places = (middle[part], x[part]) if sideways else (x[part], middle[part])
            whisker_style: dict[str, Any] = {
                **style,
                "fmt": form,
                "label": style.get("label") if form == style["fmt"] else None,
            }
            whisker_style["xerr" if sideways else "yerr"] = bars
            axes.errorbar(*places, **whisker_style)


def _array(values: Sequence[Any]) -> Any:
    return np.array([np.nan if one is None else float(one) for one in values], dtype=np.float64)


# matrices and maps


def _draw_matrix(axes: Axes, matrix: Matrix) -> None:
    """Colour the cells by their numbers; those that may be noise alone are hatched."""
    values, names = matrix.values, bool(matrix.rows)
    diverging = names and values.size > 0 and float(np.nanmin(values)) < 0
    top = matrix.top if matrix.top is not None else max(float(np.nanmax(values, initial=0.0)), 1e-9)
    ramp, low = (_ramp(diverging=True), -top) if diverging else (_ramp(), 0.0) if names else ("gray", 0.0)
    axes.set_axisbelow(False)
    image = axes.imshow(values, cmap=ramp, vmin=low, vmax=top, aspect="auto" if names else "equal",
                        interpolation="nearest")  # fmt: skip
    if matrix.label:
        axes.figure.colorbar(image, ax=axes, label=_plain(visible(matrix.label)), shrink=0.85)
    if matrix.unclear is not None and values.size <= _HATCHED:
        _hatch(axes, matrix.unclear)
    for i, row in enumerate(matrix.written):
        for j, word in enumerate(row):
            axes.text(
                j, i, _plain("\n".join(map(visible, word.split("\n")))), ha="center", va="center", fontsize=7
            )
    for side, labels, name in ((axes.yaxis, matrix.rows, matrix.row_name),
                               (axes.xaxis, matrix.columns, matrix.column_name)):  # fmt: skip
        every = max(1, math.ceil(len(labels) / _FEW))
        words = [_plain(shortened(visible(label))) for label in labels[::every]]
        turned: dict[str, Any] = (
            {"rotation": 45, "ha": "right"}
            if side is axes.xaxis and max(map(len, words), default=0) > 3
            else {}
        )
        side.set_ticks(range(0, len(labels), every), words, fontsize=7, **turned)
        side.set_label_text(_plain(visible(name)))
    for index, (label, spots) in enumerate(matrix.spots):
        round_spot: Any = (
            {"s": 70, "facecolors": "none", "edgecolors": colour(4)}
            if index
            else {"s": 7, "color": colour(1)}
        )
        axes.scatter(spots[:, 1], spots[:, 0], label=label, **round_spot)
    if matrix.spots:
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0), ncol=2, frameon=False)


def _hatch(axes: Axes, unclear: Any) -> None:
    from matplotlib.patches import Rectangle

    for i, j in np.argwhere(unclear):
        axes.add_patch(
            Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, hatch="///", edgecolor="grey", linewidth=0)
        )


def _ramp(*, diverging: bool = False) -> Any:
    """Return colours from white to the first of the palette, or from the second one through white to it."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = [PALETTE[1], "#ffffff", PALETTE[0]] if diverging else ["#ffffff", PALETTE[0]]
    return LinearSegmentedColormap.from_list("tacit", ends)


def _ratio(regions: RegionMap) -> float:
    """Return how much longer a degree of latitude is than a degree of longitude."""
    _, south, _, north = regions.box
    return 1 / max(math.cos(math.radians((south + north) / 2)), 0.05)


def _draw_map(axes: Any, regions: RegionMap) -> None:
    """Draw numbers in colours between two ends, and hatch those that are unclear."""
    (bottom, top), values = regions.ends, regions.values
    ramp = _ramp(diverging=bottom < 0)
    west, south, east, north = regions.box
    cells: Any
    if regions.grid is not None:
        lon, lat = regions.grid
        shape = (len(lat) - 1, len(lon) - 1)
        cells = axes.pcolormesh(lon, lat, values.reshape(shape), cmap=ramp, vmin=bottom, vmax=top)
        unclear: list[Any]
        where = np.argwhere(regions.unclear.reshape(shape)) if values.size <= _HATCHED else ()
        unclear = [(((lon[j], lat[i]), (lon[j + 1], lat[i]), (lon[j + 1], lat[i + 1]), (lon[j], lat[i + 1])),)
                   for i, j in where]  # fmt: skip
    else:
        many = len(regions.shapes) > _BORDERED
        border: Any = (
            {"edgecolor": "face", "linewidth": 0.1} if many else {"edgecolor": "0.6", "linewidth": 0.4}
        )
        cells = _patches(regions.shapes, cmap=ramp, **border)
        cells.set_array(values)
        cells.set_clim(bottom, top)
        axes.add_collection(cells)
        unclear = [] if many else [regions.shapes[i] for i in np.flatnonzero(regions.unclear)]
    axes.add_collection(_patches(unclear, facecolor="none", edgecolor="0.75", linewidth=0, hatch="////"))
    axes.set(
        xlim=(west, east), ylim=(south, north), xlabel="longitude", ylabel="latitude", aspect=_ratio(regions)
    )
    axes.figure.colorbar(cells, ax=axes, label=_plain(visible(regions.label)), shrink=0.85)


def _patches(shapes: Sequence[Any], **style: Any) -> Any:
    """Return regions, holes included, as one collection."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    paths = (
        Path.make_compound_path(*(Path(np.asarray(ring), closed=True) for ring in rings)) for rings in shapes
    )
    return PatchCollection([PathPatch(path) for path in paths], **style)


def _plain(text: str) -> str:
    """Keep names from being read as formulae."""
    return text.replace("$", r"\$")
