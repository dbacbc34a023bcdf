"""Pictures of what the updates of hospitals give away: recovered patients, and areas under the curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.explain._axes import BLUE, GREEN, GREY, ORANGE, RED, add_axes, legend_below, new_picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from tacit.picture import Picture


def recovered_pictures(rows: Mapping[str, npt.NDArray[np.float64]]) -> Picture:
    """Draw one row of square pictures for each kind of update, the patients first."""
    across = max(len(pictures) for pictures in rows.values())
    picture = new_picture(1.05 * across, 1.35 * len(rows))
    for line, (title, pictures) in enumerate(rows.items()):
        for place, pixels in enumerate(pictures):
            ax = picture.add_subplot(len(rows), across, line * across + place + 1)
            side = int(np.sqrt(len(pixels)))
            shown = pixels.reshape(side, side) if side**2 == len(pixels) else pixels[None, :]
            ax.imshow(shown, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            ax.set_xticks([])
            ax.set_yticks([])
            if place == 0:
                ax.set_title(title, loc="left", fontsize=9, fontweight="bold")
    return picture


def update_areas(
    exact: Mapping[int, float],
    private: Mapping[float, Mapping[int, float]],
    insiders: Sequence[tuple[float, float, float]],
) -> Picture:
    """Draw the areas of the simple test by patients, and the insider's: epsilon, measured, bound."""
    picture = new_picture(10, 4.2)
    left = add_axes(picture, "The simple test", "patients in the update", "area under the curve", (1, 2, 1))
    left.plot(list(exact), list(exact.values()), "o-", color=RED, label="exact update")
    for color, (epsilon, areas) in zip((BLUE, ORANGE, GREY) * len(private), private.items(), strict=False):
        left.plot(list(areas), list(areas.values()), "s-", color=color, label=f"Tacit, epsilon {epsilon:g}")
    right = add_axes(picture, "An attacker who knows all others", "epsilon", "", (1, 2, 2))
    epsilons, measured, bounds = zip(*sorted(insiders), strict=True)
    right.axhline(1, color=RED, linestyle="--", label="exact update")
    right.plot(epsilons, measured, "o", color=BLUE, label="measured against Tacit")
    right.plot(epsilons, bounds, "_", color=GREY, markersize=22, markeredgewidth=2, label="bound")
    for ax, ticks in ((left, list(exact)), (right, list(epsilons))):
        ax.axhline(0.5, color=GREEN, linestyle=":", label="blind guessing")
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{value:g}" for value in ticks])
        ax.minorticks_off()
        ax.set_ylim(0.4, 1.05)
        legend_below(ax)
    return picture
