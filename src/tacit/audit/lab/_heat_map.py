"""The attack lab on maps: a smoothed heat map gives away the exact cells of its sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, SupportsIndex

import numpy as np

from tacit.audit.lab._worlds import (
    Success,
    curve_table,
    from_trials,
    hashed_uniform,
    noisy_counts,
    read_epsilons,
    read_trials,
)
from tacit.exact import count
from tacit.parameters import Integer, RealNumber
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tacit.exact import Number
    from tacit.show import Figure

    _Grid = npt.NDArray[np.float64]

_SIDE: Final = 256
_HASTE: Final = 1.8  # each round takes a longer step than the textbook; above 2 it diverges
_TOWN: Final = 32  # cells along one side of the map with suppressed counts
_VISITS: Final = 4000


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class HeatMapAttack(Drawn, Reportable):
    """What a smoothed map, a map with suppressed counts and a noisy map give away about single sites.

    Attributes
    ----------
    sites, kernel
        The number of sites on a map of 256 x 256 cells, and the width of the smoothing in cells.
    found
        The share of sites found in their exact cell by sharpening the smoothed map.
    rounded
        The same from a picture of the map with 256 colours.
    found_in_tacit
        The same if noise is added to the cells before smoothing, for each epsilon.
    hidden, undone
        On a map that hides counts below `least`: the share of non-empty cells that are hidden, and the share
        of these whose count is the difference of two rectangles that are both shown.
    least
        The smallest count that is shown.
    curve
        The success of an attacker who knows all sites but one, against noisy cells.
    maps
        The smoothed map, the sharpened one, and the same two with noise at the last epsilon.
    places
        The cells (row, column) of the sites.
    """

    sites: int
    kernel: float
    found: float
    rounded: float
    found_in_tacit: dict[float, float]
    hidden: float
    undone: float
    least: int
    curve: tuple[Success, ...]
    maps: tuple[_Grid, _Grid, _Grid, _Grid]
    places: npt.NDArray[np.int64]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"A map of {self.sites} sites is smoothed with a kernel of {self.kernel:g} cells, so that it "
                "shows only broad spots. The kernel is known or can be guessed, and smoothing can be undone: "
                f"the sharpened map shows {percent(self.found, 0)} of the sites in their exact cell."
            ),
            (
                f"Another map hides every count below {self.least}: {percent(self.hidden, 0)} of its "
                "non-empty cells. Totals of rectangles are still shown. For "
                f"{percent(self.undone, 0)} of the hidden cells, two rectangles differ in this cell only."
            ),
            (
                "Tacit adds noise to the cells before anything else. Smoothing and sharpening are then free, "
                "and cannot reveal more than the noisy cells do."
            ),
        )
        rows = (
            ("smoothed map", percent(self.found)),
            ("picture of it in 256 colours", percent(self.rounded)),
            *(
                (f"Tacit, epsilon {epsilon:g}", percent(share))
                for epsilon, share in self.found_in_tacit.items()
            ),
        )
        tables = (
            ReportTable("sharpening the map", ("the attacker sees", "sites in their exact cell"), rows),
            curve_table(self.curve, "an attacker who knows all other sites, against Tacit"),
        )
        return Report("Heat map attack", lead, tables)

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return f"{percent(self.found, 0)} of sites found in a smoothed map"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the smoothed map and what sharpening shows, without noise and with it."""
        from tacit.explain import sharpened_maps

        epsilon = f"epsilon {list(self.found_in_tacit)[-1]:g}"
        titles = (
            "exact map, smoothed",
            f"sharpened: {percent(self.found, 0)} found",
            f"Tacit at {epsilon}, smoothed",
            f"sharpened: {percent(list(self.found_in_tacit.values())[-1], 0)} found",
        )
        return (sharpened_maps(self.maps, self.places, titles),)

    def to_dict(self) -> dict[str, object]:
        """Return the figures as plain data, ready for JSON, without the maps themselves."""
        return {name: value for name, value in Reportable.to_dict(self).items() if name != "maps"}


def heat_map(
    sites: SupportsIndex = 60,
    *,
    kernel: float = 3.0,
    least: SupportsIndex = 5,
    rounds: SupportsIndex = 400,
    epsilons: Iterable[Number] = (0.1, 1),
    trials: int = 20_000,
) -> HeatMapAttack:
    """Find the sites of a smoothed heat map, undo the suppression of small counts, and attack noisy cells.

    The smoothed map is sharpened by the method of Richardson (1972) and Lucy (1974). Against
    Tacit, each cell gets discrete Laplace noise: a site lies in one cell, so the whole map has sensitivity
    1. The attacker of the curve knows all other sites, and whether one cell holds one more is a guess that
    nobody makes with an advantage above tanh(epsilon / 2).

    Parameters
    ----------
    sites
        The number of sites, from 1 to 1,000.
    kernel
        The standard deviation of the smoothing, in cells, from 0.5 to 20.
    least
        The smallest count that the map with suppression shows.
    rounds
        How many rounds the sharpening runs; 1,000 rounds find a few sites more and take longer.
    epsilons
        The costs of the whole map.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.heat_map(epsilons=[1], trials=1000)
    >>> attack.found > 0.9, attack.found_in_tacit[1.0] < 0.1, attack.curve[0].within_bound
    (True, True, True)
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    size, fewest = Integer(1, 1000, instead=60).read("sites", sites), count("least", least, zero=False)
    work = count("rounds", rounds, zero=False)
    RealNumber(least=0.5, most=20, instead=3).read("kernel", kernel)
    places = np.floor(_SIDE * hashed_uniform(np.arange(2 * size), stream=90)).astype(np.int64).reshape(-1, 2)
    cells = np.zeros((_SIDE, _SIDE), dtype=np.int64)
    np.add.at(cells, tuple(places.T), 1)
    smooth = _blur(cells.astype(np.float64), kernel)
    sharp = _sharpened(smooth, kernel, work)
    painted = np.rint(255 * smooth / smooth.max()) * smooth.max() / 255
    in_tacit = {}
    noisy = picture = smooth
    for epsilon in exact:
        noisy = _blur(noisy_counts(cells, epsilon).astype(np.float64), kernel)
        picture = _sharpened(np.maximum(noisy, 0), kernel, work)
        in_tacit[float(epsilon)] = _found(picture, cells)
    hidden, undone = _undo_suppression(fewest)
    curve = tuple(
        from_trials(epsilon, *(noisy_counts(np.full(number, here), epsilon) >= 1 for here in (1, 0)))
        for epsilon in exact
    )
    return HeatMapAttack(
        sites=size,
        kernel=float(kernel),
        found=_found(sharp, cells),
        rounded=_found(_sharpened(painted, kernel, work), cells),
        found_in_tacit=in_tacit,
        hidden=hidden,
        undone=undone,
        least=fewest,
        curve=curve,
        maps=(smooth, sharp, noisy, picture),
        places=places,
    )


def _blur(cells: _Grid, kernel: float) -> _Grid:
    from scipy.ndimage import gaussian_filter

    blurred: _Grid = gaussian_filter(cells, kernel, mode="constant")
    return blurred


def _sharpened(picture: _Grid, kernel: float, rounds: int) -> _Grid:
    """Undo the smoothing: the most likely map under Poisson counts (Richardson 1972, Lucy 1974)."""
    estimate = np.full_like(picture, max(float(picture.mean()), 1e-9))
    weight = _blur(np.ones_like(picture), kernel)
    for _ in range(rounds):
        estimate *= (_blur(picture / np.maximum(_blur(estimate, kernel), 1e-12), kernel) / weight) ** _HASTE
    return estimate


def _found(picture: _Grid, cells: npt.NDArray[np.int64]) -> float:
    """Return the share of occupied cells among the highest cells, as many as are occupied."""
    occupied = cells.ravel() > 0
    highest = np.argsort(picture, axis=None)[::-1][: int(occupied.sum())]
    return float(occupied[highest].mean())


def _undo_suppression(threshold: int) -> tuple[float, float]:
    """Hide small counts on a map of visits, and recover them from pairs of rectangles that are shown."""
    index = np.arange(_VISITS)
    centre = np.floor(12 * hashed_uniform(index, stream=91))
    where = [
        (hashed_uniform(centre, stream=92 + axis) + 0.25 * (hashed_uniform(index, stream=94 + axis) - 0.5))
        for axis in (0, 1)
    ]
    row, column = (np.clip(_TOWN * side, 0, _TOWN - 1).astype(np.int64) for side in where)
    visits = np.zeros((_TOWN, _TOWN), dtype=np.int64)
    np.add.at(visits, (row, column), 1)
    hidden = (visits > 0) & (visits < threshold)
    undone = sum(_two_rectangles(visits, int(r), int(c), threshold) for r, c in np.argwhere(hidden))
    return float(hidden.sum() / (visits > 0).sum()), float(undone / max(1, hidden.sum()))


def _two_rectangles(visits: npt.NDArray[np.int64], row: int, column: int, threshold: int) -> bool:
    """Say whether a strip beside the cell is shown; the strip with the cell is then shown, too."""
    beside = (
        visits[row, column + 1 :],
        visits[row, :column],
        visits[row + 1 :, column],
        visits[:row, column],
    )
    return any(int(strip.sum()) >= threshold for strip in beside)
