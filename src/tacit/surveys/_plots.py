"""Pictures of a survey's results: bars with intervals, raw rates of reports against corrected shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.core import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.surveys._results import CrossTable, MeanTable, ShareRow, ShareTable

_MOST = 40  # bars in one picture; more cannot be read
_COLOURS = ("#0b7285", "#c25e00", "#1b7f4b", "#b3261e", "#5f3dc4", "#555555", "#a61e4d", "#7a5c00")


def plot_shares(table: ShareTable, ax: Axes | None) -> Any:
    """Draw shares as bars with intervals, and the rate of reports behind each as a mark."""
    needs("plot", "matplotlib", "tacit[plot]")
    groups = list(dict.fromkeys(row.group for row in table.rows))[: len(_COLOURS)]
    answers = _shown_answers(table)
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(min(max(5.5, 0.5 * len(answers) * len(groups)), 20), 3.8)
        plot_shares(table, picture.subplots())
        return picture
    width = 0.8 / len(groups)
    for number, group in enumerate(groups):
        rows = {row.answer: row for row in table.rows if row.group == group}
        shift = width * (number - (len(groups) - 1) / 2)
        name = _plain(group) if table.by else "estimated"
        _draw_bars(ax, [rows[a] for a in answers if a in rows], shift, width, name, _COLOURS[number])
    _name_answers(ax, [_name(answer) for answer in answers])
    _titled(ax, table, "share in %", below=table.question)
    ax.axhline(0, color="black", linewidth=0.8)
    handles, labels = ax.get_legend_handles_labels()
    found = dict(zip(labels, handles, strict=True))  # the mark of the reports is named once
    ax.legend(found.values(), found.keys(), fontsize=8, frameon=False, title=_plain(table.by))
    return ax


def _shown_answers(table: ShareTable) -> list[Any]:
    """Return the answers in their order, or the most common ones if there are too many."""
    answers = list(dict.fromkeys(row.answer for row in table.rows))
    if len(answers) <= _MOST:
        return answers
    best = sorted(table.rows, key=lambda row: -row.value)
    return list(dict.fromkeys(row.answer for row in best))[:_MOST]


def _draw_bars(ax: Axes, rows: list[ShareRow], shift: float, width: float, name: str, colour: str) -> None:
    x = [place + shift for place in range(len(rows))]
    heights = [100 * row.value for row in rows]
    below = [100 * max(row.value - row.low, 0) for row in rows]
    above = [100 * max(row.high - row.value, 0) for row in rows]
    ax.bar(x, heights, 0.9 * width, color=colour, alpha=0.75, label=name)
    ax.errorbar(x, heights, yerr=[below, above], fmt="none", ecolor="black", capsize=3)
    raw = [100 * row.raw for row in rows]
    ax.plot(x, raw, "x", color="#555555", markersize=6, label="in the reports (raw)")


def _name_answers(ax: Axes, names: list[str]) -> None:
    slanted = len(names) > 4 or max(map(len, names)) > 12
    ax.set_xticks(
        range(len(names)),
        [_plain(name) for name in names],
        rotation=45 if slanted else 0,
        ha="right" if slanted else "center",
    )


def plot_means(table: MeanTable, ax: Axes | None) -> Any:
    """Draw means with their intervals, one for each group."""
    needs("plot", "matplotlib", "tacit[plot]")
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(min(max(4.5, 0.6 * len(table.rows)), 20), 3.8)
        plot_means(table, picture.subplots())
        return picture
    rows = table.rows[:_MOST]
    values = [row.value for row in rows]
    errors = [[row.value - row.low for row in rows], [row.high - row.value for row in rows]]
    ax.errorbar(range(len(rows)), values, yerr=errors, fmt="o", color=_COLOURS[0], capsize=4)
    ax.set_xticks(range(len(rows)), [_plain(row.group or "all") for row in rows])
    ax.set_xlim(-0.6, len(rows) - 0.4)
    _titled(ax, table, "mean", below=table.by)
    return ax


def plot_cells(table: CrossTable, ax: Axes | None) -> Any:
    """Draw a cross-table as a heat map: one cell for each pair of answers, with its share and interval."""
    needs("plot", "matplotlib", "tacit[plot]")
    down = list(dict.fromkeys(cell.row for cell in table.rows))[:_MOST]
    across = list(dict.fromkeys(cell.column for cell in table.rows))[:_MOST]
    if ax is None:
        from tacit.picture import Picture

        size = (2 + 1.4 * len(across), 1.8 + 0.6 * len(down))
        picture = Picture(min(max(5.5, size[0]), 20), min(max(3.8, size[1]), 20))
        plot_cells(table, picture.subplots())
        return picture
    cells = {(cell.row, cell.column): cell for cell in table.rows}
    values = [[100 * cells[r, c].value for c in across] for r in down]
    top = max(1.0, *(value for row in values for value in row))
    ax.imshow(values, cmap="Blues", vmin=0, vmax=1.6 * top, aspect="auto")  # dark text stays readable
    if len(across) <= 8:
        for y, row in enumerate(down):
            for x, column in enumerate(across):
                cell = cells[row, column]
                shown = f"{100 * cell.value:z.1f} %\n[{100 * cell.low:.1f}, {100 * cell.high:.1f}]"
                ax.text(x, y, shown, ha="center", va="center", fontsize=8)
    _name_answers(ax, [_name(answer) for answer in across])
    ax.set_yticks(range(len(down)), [_plain(_name(answer)) for answer in down])
    ax.set_title(_plain(_title(table, " by ".join(table.questions))), fontsize=9, loc="left")
    ax.set_ylabel(_plain(table.questions[0]))
    ax.set_xlabel(_plain(table.questions[1]))
    return ax


def _title(table: ShareTable | MeanTable | CrossTable, name: str) -> str:
    covered = "coins and sampling" if table.of == "population" else "coins"
    return f"{name}: epsilon {table.epsilon:g}\n{table.confidence * 100:g} % intervals for {covered}"


def _titled(ax: Axes, table: ShareTable | MeanTable, label: str, *, below: str) -> None:
    ax.set_title(_plain(_title(table, table.question)), fontsize=9, loc="left")
    ax.set_ylabel(label)
    ax.set_xlabel(_plain(below))
    ax.grid(axis="y", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)


def _name(answer: Any) -> str:
    text = ", ".join(map(str, answer)) if isinstance(answer, tuple) else str(answer)
    return text if len(text) <= 24 else text[:23] + "\N{HORIZONTAL ELLIPSIS}"


def _plain(text: str) -> str:
    """Return text that matplotlib does not read as a formula."""
    return text.replace("$", r"\$")
