"""The axes, legends and colours that all pictures of `explain` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from tacit.picture import Picture

BLUE, ORANGE, GREEN, RED, GREY = "#1f5fa8", "#c25e00", "#1b7f4b", "#b3261e", "#555555"


def new_picture(width: float = 7.0, height: float = 4.2) -> Picture:
    """Return an empty picture of this size in inches; matplotlib is imported only here."""
    from tacit.picture import Picture

    return Picture(width, height)


def add_axes(
    picture: Picture, title: str, xlabel: str, ylabel: str, place: tuple[int, int, int] = (1, 1, 1)
) -> Axes:
    """Add one plain set of axes: `place` is (rows, columns, number) as in matplotlib."""
    ax: Axes = picture.add_subplot(*place)
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(visible=True, color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend_below(ax: Axes, columns: int = 3, title: str | None = None) -> None:
    """Put the legend below the axes, where it hides nothing."""
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncol=columns,
        fontsize=8,
        frameon=False,
        title=title,
        title_fontsize=8,
    )


def label_logarithmic(*sides: Axis) -> None:
    """Label logarithmic axes with plain numbers, and with more of them where an axis spans little."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for side in sides:
        low, high = side.get_view_interval()
        side.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 300 else (1,)))
        side.set_major_formatter(StrMethodFormatter("{x:g}"))
        side.set_minor_formatter(NullFormatter())
