"""The figures of what model updates give away: recovered pictures, and the areas of membership tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.explain._attack_figures import named_powers
from tacit.show import BLUE, GREEN, GREY, ORANGE, RED, Chart, ChartAxis, ChartSeries, Figure, Matrix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt


def recovered_pictures(rows: Mapping[str, npt.NDArray[np.float64]]) -> Figure:
    """Show one row of square pictures for each kind of update, the patients first."""
    return Figure("", tuple(_row(title, pictures) for title, pictures in rows.items()))


def _row(title: str, pictures: npt.NDArray[np.float64]) -> Matrix:
    """Return pictures side by side, with an empty line between them."""
    side = int(np.sqrt(pictures.shape[1]))
    square = side**2 == pictures.shape[1]
    shapes = [one.reshape(side, side) if square else one[None, :] for one in pictures]
    return Matrix(np.hstack([np.pad(one, ((0, 0), (0, 1))) for one in shapes])[:, :-1], title=title, top=1.0)


def update_areas(
    exact: Mapping[int, float],
    private: Mapping[float, Mapping[int, float]],
    insiders: Sequence[tuple[float, float, float]],
) -> Figure:
    """Show the areas of the simple test by patients, and the insider's: epsilon, measured, bound."""
    blind = ChartSeries("across", (), (0.5,), label="blind guessing", colour=GREEN, dashed=True)
    left = [ChartSeries("joined", list(exact), list(exact.values()), label="exact update", colour=RED)]
    for colour, (epsilon, areas) in zip((BLUE, ORANGE, GREY) * len(private), private.items(), strict=False):
        label = f"Tacit, epsilon {epsilon:g}"
        left.append(ChartSeries("joined", list(areas), list(areas.values()), label=label, colour=colour))
    epsilons, measured, bounds = zip(*sorted(insiders), strict=True)
    right = (
        ChartSeries("across", (), (1.0,), label="exact update", colour=RED, dashed=True),
        ChartSeries("points", epsilons, measured, label="measured against Tacit"),
        ChartSeries("bounds", epsilons, bounds, label="bound", colour=GREY),
        blind,
    )
    area = ChartAxis("area under the curve", ends=(0.4, 1.05))
    patients = named_powers(list(exact), "patients in the update")
    panels = (
        Chart((*left, blind), patients, area, "The simple test"),
        Chart(right, named_powers(epsilons, "epsilon"), area, "An attacker who knows all others"),
    )
    return Figure("", panels, across=2)
