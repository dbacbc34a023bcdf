"""Answers about graphs with pictures of their own: a mixing matrix, and degrees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import AnswerTable, needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.picture import Picture

_COLOUR = "#0b7285"
_MOST_WRITTEN = 12  # groups up to which each cell of the heat map has its number


class MixingTable(AnswerTable):
    """The number of edges between each two public groups; its picture is a heat map."""

    kind: ClassVar[str] = "mixing-table"
    __slots__ = ()

    def matrix(self) -> tuple[tuple[str, ...], np.ndarray[Any, Any]]:
        """Return the groups and the matrix of the values; an undirected one is symmetric."""
        rows, columns = (list(map(str, values)) for values in self.keys.values())
        labels = tuple(dict.fromkeys(rows + columns))
        place = {label: i for i, label in enumerate(labels)}
        cells = np.full((len(labels), len(labels)), np.nan)
        for row, column, value in zip(rows, columns, self.columns["edges"].value, strict=True):
            cells[place[row], place[column]] = value
        return labels, np.where(np.isnan(cells), cells.T, cells)

    def plot(self, what: str | None, ax: Axes | None, certificate: Certificate) -> Axes | Picture:
        """Draw the matrix as a heat map."""
        needs("plot", "matplotlib", "tacit[plot]")
        labels, cells = self.matrix()
        if ax is None:
            from tacit.picture import Picture

            size = min(max(4.2, 0.45 * len(labels) + 2), 12)
            picture = Picture(size + 0.8, size)
            self.plot(what, picture.subplots(), certificate)
            return picture
        image = ax.imshow(cells, cmap="Blues", vmin=min(0.0, float(cells.min())))
        slanted = max(map(len, labels)) > 3
        ax.set_xticks(range(len(labels)), labels, rotation=45 if slanted else 0)
        ax.set_yticks(range(len(labels)), labels)
        ax.set_xlabel(next(iter(self.keys)))
        ax.set_ylabel(next(iter(self.keys)))
        if len(labels) <= _MOST_WRITTEN:
            dark = cells > (cells.min() + cells.max()) / 2
            for (i, j), value in np.ndenumerate(cells):
                ax.text(j, i, f"{value:,.0f}", ha="center", va="center", fontsize=7,
                        color="white" if dark[i, j] else "black")  # fmt: skip
        ends = self.columns["edges"]
        half = (float(ends.high[0] or 0) - float(ends.low[0] or 0)) / 2
        ax.set_title(_title(certificate, "edges between groups", f"each cell +/- {half:g} at "
                                                                 f"{self.confidence * 100:g} %"),
                     fontsize=9, loc="left")  # fmt: skip
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label="edges")
        return ax


class DegreeTable(AnswerTable):
    """Numbers by degree, or degrees by rank; its picture has a numeric axis and a band for the intervals."""

    kind: ClassVar[str] = "degree-table"
    __slots__ = ()

    def plot(self, what: str | None, ax: Axes | None, certificate: Certificate) -> Axes | Picture:
        """Draw a column; the first one by default, one line for each group."""
        needs("plot", "matplotlib", "tacit[plot]")
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            from tacit.picture import Picture

            picture = Picture(7.0, 3.8)
            self.plot(what, picture.subplots(), certificate)
            return picture
        column = next(iter(self.columns)) if what is None else what
        cells = self[column]
        axis = list(self.keys)[-1]
        groups = self.shown_keys(next(iter(self.keys))) if len(self.keys) > 1 else [""] * len(self)
        for number, group in enumerate(list(dict.fromkeys(groups))[:8]):
            at = [i for i, one in enumerate(groups) if one == group]
            x: Any = [self.keys[axis][i] for i in at]
            y, low, high = ([getattr(cells, end)[i] for i in at] for end in ("value", "low", "high"))
            colour = _COLOUR if len(self.keys) == 1 else f"C{number}"
            ax.step(x, y, where="mid", color=colour, linewidth=1.4, label=group or None)
            ax.fill_between(x, low, high, step="mid", color=colour, alpha=0.2, linewidth=0)
        said = f"the band is the {self.confidence * 100:g} % interval for the noise"
        ax.set_title(_title(certificate, f"{column} by {axis}", said), fontsize=9, loc="left")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel(axis)
        ax.set_ylabel(column)
        ax.set_ylim(bottom=0)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.3)
        if len(self.keys) > 1:
            ax.legend(fontsize=8, frameon=False, title=next(iter(self.keys)))
        return ax


def _title(certificate: Certificate, what: str, said: str) -> str:
    text = f"{certificate.names}: {what}\n{said}"
    return text.replace("$", r"\$")
