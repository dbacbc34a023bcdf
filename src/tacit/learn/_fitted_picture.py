"""The picture of fitted numbers: coefficients as points, with their intervals where there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.core import about_release
from tacit.errors import bad_parameter
from tacit.fixes import Choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.learn._fitted_numbers import FittedNumbers
    from tacit.picture import Picture


def draw_numbers(
    fitted: FittedNumbers, what: str | None, ax: Axes | None, certificate: Certificate
) -> Axes | Picture:
    """Draw one array, by default the first: a point for each number, a line for each row."""
    if ax is None:
        from tacit.picture import Picture

        picture = Picture()
        draw_numbers(fitted, what, picture.subplots(), certificate)
        return picture
    names = list(fitted.numbers)
    name = names[0] if what is None else what
    if name not in names:
        raise bad_parameter(
            "column", "one of the learned arrays", what, fix=Choose(tuple(names), given=str(what))
        )
    lines = np.atleast_2d(fitted.numbers[name])
    lines = lines.reshape(-1, lines.shape[-1])
    for line in lines:
        ax.plot(np.arange(len(line)), line, marker=".", linestyle="none")
    if name == names[0] and {"low", "high"} <= set(names) and len(lines) == 1:
        ax.vlines(np.arange(len(lines[0])), fitted.numbers["low"], fitted.numbers["high"], linewidth=1)
    ax.axhline(0, color="0.6", linewidth=0.8)
    about = about_release(f"{fitted.estimator}, {name}", certificate).replace("$", r"\$")
    ax.set_title(about, fontsize=9, loc="left")
    ax.set_ylabel(name)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
