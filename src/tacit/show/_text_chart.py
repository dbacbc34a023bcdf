"""A curve drawn with characters, for terminals and logs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def draw_curve(
    x: Sequence[float],
    y: Sequence[float],
    *,
    xlabel: str,
    ylabel: str,
    mark: tuple[float, float] | None = None,
    width: int = 60,
    height: int = 14,
) -> str:
    """Draw positive points on two logarithmic axes; `mark` is drawn as ``X``.

    Examples
    --------
    >>> print(draw_curve([1, 10, 100], [100, 10, 1], xlabel="n", ylabel="error", width=21, height=3))
    error
        100 |*
            |          *
          1 |                    *
            +---------------------
             1                 100   n
    """
    lows, highs = (min(x), min(y)), (max(x), max(y))
    rows = [[" "] * width for _ in range(height)]

    def put(px: float, py: float, sign: str) -> None:
        across = _cell(px, lows[0], highs[0], width)
        up = _cell(py, lows[1], highs[1], height)
        rows[height - 1 - up][across] = sign

    for px, py in zip(x, y, strict=True):
        put(px, py, "*")
    if mark is not None and lows[0] <= mark[0] <= highs[0] and lows[1] <= mark[1] <= highs[1]:
        put(*mark, "X")
    top, bottom = f"{highs[1]:.3g}", f"{lows[1]:.3g}"
    labels = [top, *[""] * (height - 2), bottom]
    lines = [
        ylabel,
        *(f"{label:>7} |{''.join(row)}".rstrip() for label, row in zip(labels, rows, strict=True)),
    ]
    left, right = f"{lows[0]:.3g}", f"{highs[0]:.3g}"
    lines += ["        +" + "-" * width, "         " + left + right.rjust(width - len(left)) + "   " + xlabel]
    return "\n".join(lines)


def _cell(value: float, low: float, high: float, cells: int) -> int:
    """Return the number of the cell that holds a value on a logarithmic axis."""
    if low == high:
        return 0
    share = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    return min(cells - 1, max(0, round(share * (cells - 1))))
