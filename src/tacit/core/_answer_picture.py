"""An answer as a picture: one column with error bars over its groups, and a title that says what it shows."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tacit.core._answer_display import nothing_to_show
from tacit.core._display import shown_key
from tacit.core._safe_text import visible
from tacit.errors import TacitError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core._answer_table import AnswerTable
    from tacit.core._certificate import Certificate

__all__ = ["figure_width", "plot_answer"]

_MOST = 60  # groups in one picture: more cannot be told apart
_LONG = 24  # letters of a group's label
_LETTERS = 14  # letters of the title in an inch
_COLOUR = "#0b7285"


def figure_width(answer: AnswerTable) -> float:
    """Return a width in inches at which the labels of the groups can be read."""
    return min(max(5.5, 0.6 * len(answer)), 0.35 * _MOST)


def plot_answer(answer: AnswerTable, column: str | None, ax: Axes | None, certificate: Certificate) -> Axes:
    """Draw one column with error bars over its groups."""
    from matplotlib.figure import Figure

    name = column or next(iter(answer.columns))
    cells = answer[name]
    values = [v for v in cells.value if isinstance(v, int | float)][:_MOST]
    if len(values) != len(cells.value[:_MOST]):
        raise TacitError("bad-parameter", f"{name} does not hold numbers", fix="name a column of numbers")
    axes = Figure(figsize=(figure_width(answer), 3.8), layout="constrained").subplots() if ax is None else ax
    letters = max(40, int(_LETTERS * axes.figure.bbox.width / axes.figure.dpi))
    said = (_about(answer, name, certificate), _covers(answer, name))
    title = "\n".join(textwrap.fill(visible(line), letters) for line in said)
    axes.set_title(_plain(title), fontsize=9, loc="left")
    axes.set_ylabel(_plain(visible(name)))
    axes.spines[["top", "right"]].set_visible(False)
    if not values:
        words = textwrap.fill(nothing_to_show(()), 50)
        axes.text(0.5, 0.5, _plain(words), ha="center", va="center", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
        return axes
    ends = [(cells.low[i], cells.high[i]) for i in range(len(values))]
    below = [v - low if low is not None else 0.0 for v, (low, _) in zip(values, ends, strict=True)]
    above = [high - v if high is not None else 0.0 for v, (_, high) in zip(values, ends, strict=True)]
    bars = None if None in cells.low else [below, above]
    axes.errorbar(range(len(values)), values, yerr=bars, fmt="o", capsize=4, color=_COLOUR)
    labels = [_label(answer, i) or visible(name) for i in range(len(values))]
    slanted = len(labels) > 4 or max(map(len, labels)) > 12
    axes.set_xticks(
        range(len(values)),
        [_plain(label) for label in labels],
        rotation=45 if slanted else 0,
        ha="right" if slanted else "center",
    )
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.grid(axis="y", alpha=0.3)
    axes.set_xlabel(_plain(visible(", ".join(answer.keys))))
    return axes


def _about(answer: AnswerTable, name: str, certificate: Certificate) -> str:
    """Say which dataset, which column, by which keys, at which cost."""
    promised = certificate.fields.get("promised")
    cost = (
        ", ".join(f"{key} {_short(str(value))}" for key, value in promised.items())
        if isinstance(promised, Mapping)
        else ""
    )
    by = f" by {', '.join(answer.keys)}" if answer.keys else ""
    return ", ".join(part for part in (f"{certificate.names}: {name}{by}".strip(": "), cost) if part)


def _covers(answer: AnswerTable, name: str) -> str:
    cells = answer[name]
    stands_for = answer.notes.get(name, "")
    interval = f"bars: {answer.confidence * 100:g} % interval for the noise only"
    bars = "no interval" if None in cells.low else interval
    more = [f"first {_MOST} of {len(answer)} groups"] if len(answer) > _MOST else []
    return "; ".join(part for part in (stands_for, bars if len(answer) else "", *more) if part)


def _label(answer: AnswerTable, i: int) -> str:
    label = " / ".join(visible(shown_key(values[i])) for values in answer.keys.values())
    return label if len(label) <= _LONG else label[: _LONG - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _short(exact: str) -> str:
    """Write an exact fraction in a few digits."""
    from fractions import Fraction

    return f"{float(Fraction(exact)):g}"


def _plain(text: str) -> str:
    """Keep names from being read as formulae."""
    return text.replace("$", r"\$")
