"""The attack lab on markers: how few of them single out one person."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, SupportsIndex

import numpy as np

from tacit.audit.lab._markers import genotypes
from tacit.audit.lab._success import (
    Success,
    curve_table,
    from_trials,
    noisy_counts,
    read_epsilons,
    read_trials,
)
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from tacit.exact import Number
    from tacit.show import Figure

_SURE: Final = 0.95
_STEP: Final = 0.005  # of the logarithm of a probability
_MOST_MARKERS: Final = 120
#: The frequencies of the rarer allele: as informative as possible, and spread between 0.05 and 0.5.
_KINDS: Final = {"0.5": (0.5, 0.5), "0.05 to 0.5": (0.05, 0.5)}


@dataclass(frozen=True, slots=True, repr=False)
class SinglingOut(Drawn, Reportable):
    """How many genetic markers are enough to tell one person from all others.

    Attributes
    ----------
    crowds
        The numbers of people in the crowd.
    one
        For each kind of marker (by the frequency of its rarer allele), the number of markers that make one
        person unique in each crowd, with probability 95 %.
    everybody
        The same for all people of the crowd at once.
    alone
        The share of people who are unique by their first markers in a crowd of `simulated` people, for each
        number of markers of frequency 0.5: by the formula, and counted.
    simulated
        The number of simulated people.
    curve
        The attacker's success against Tacit: a noisy count of the people who have the target's markers.
    """

    crowds: tuple[int, ...]
    one: dict[str, tuple[int, ...]]
    everybody: dict[str, tuple[int, ...]]
    alone: dict[int, tuple[float, float]]
    simulated: int
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        largest, common = self.crowds[-1], next(iter(self.one))
        lead = (
            (
                "A marker is a place in the genome where people differ: each person has 0, 1 or 2 copies of "
                f"an allele. {self.one[common][-1]} markers are enough to single out one person among "
                f"{largest:,}, and {self.everybody[common][-1]} tell all {largest:,} apart. A table without "
                "names that contains these markers is not anonymous."
            ),
            (
                "The exact number of people with all these markers is 1 or 0, and reveals whether the target "
                "is in the data. A noisy count from Tacit hides the difference of one person."
            ),
        )
        sizes = tuple(
            (f"{crowd:,}", kind, f"{self.one[kind][place]}", f"{self.everybody[kind][place]}")
            for place, crowd in enumerate(self.crowds)
            for kind in self.one
        )
        header = ("people", "frequency of the rarer allele", "to single out one", "to tell all apart")
        shares = tuple(
            (f"{markers}", percent(formula), percent(counted))
            for markers, (formula, counted) in self.alone.items()
        )
        tables = (
            ReportTable(f"markers needed, to be {percent(_SURE, 0)} sure", header, sizes),
            ReportTable(
                f"unique people among {self.simulated:,}", ("markers", "by the formula", "counted"), shares
            ),
            curve_table(self.curve),
        )
        note = "The markers are independent, and the people are unrelated. Relatives need a few markers more."
        return Report("Singling-out attack", lead, tables, (note,))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return f"{next(iter(self.one.values()))[-1]} markers single out one of {self.crowds[-1]:,} people"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the share of unique people over the number of markers, and the success against Tacit."""
        from tacit.explain import unique_people

        return (unique_people(self.alone, self.simulated, self.curve),)


def singling_out(
    crowds: Iterable[SupportsIndex] = (1000, 1_000_000),
    *,
    simulated: SupportsIndex = 1000,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> SinglingOut:
    """Count the markers that single out one person, in closed form and among simulated people.

    A person whose genotypes together have probability P is unique among N unrelated people with probability
    (1 - P)^(N - 1); the figures average this over people (Hardy-Weinberg, independent markers). All N people
    differ with probability about exp(-N (N - 1) / 2 x M), where M is the probability that two people agree.

    Parameters
    ----------
    crowds
        The numbers of people, each from 10 to ten billion.
    simulated
        The number of people to simulate, from 10 to 20,000.
    epsilons
        The costs of the noisy count.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.singling_out(epsilons=[1], trials=1000)
    >>> attack.one["0.5"], attack.everybody["0.5"]
    ((11, 17), (17, 31))
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    sizes = sorted({count("crowds", crowd) for crowd in crowds})
    few = count("simulated", simulated)
    if not sizes or not 10 <= sizes[0] <= sizes[-1] <= 10**10 or not 10 <= few <= 20_000:
        raise bad_parameter(
            "crowds",
            "numbers from 10 to ten billion, and simulated from 10 to 20,000",
            (sizes, few),
            fix=Set(crowds=(1000, 1_000_000), simulated=1000),
        )
    curve = tuple(
        from_trials(epsilon, *(noisy_counts(np.full(number, here), epsilon) >= 1 for here in (1, 0)))
        for epsilon in exact
    )
    people = genotypes(np.full(16, 0.5), few, stream=80)
    alone = {}
    for markers in (4, 6, 8, 10, 12, 16):
        _, size = np.unique(people[:, :markers], axis=0, return_counts=True)
        alone[markers] = (unique_share(spread(markers, (0.5, 0.5)), few), float((size == 1).sum() / few))
    return SinglingOut(
        crowds=tuple(sizes),
        one=_fewest(sizes, unique_share),
        everybody=_fewest(sizes, all_apart),
        alone=alone,
        simulated=few,
        curve=curve,
    )


def spread(markers: int, ends: tuple[float, float]) -> npt.NDArray[np.float64]:
    """Return the frequencies of this many markers, evenly spread between two ends."""
    low, high = ends
    return low + (high - low) * (np.arange(markers) + 0.5) / markers


def unique_share(frequency: npt.NDArray[np.float64], crowd: int) -> float:
    """Return the expected share of people who are unique in a crowd, by markers of these frequencies."""
    whole = np.ones(1)
    for rare in frequency:
        chances = np.array([rare**2, 2 * rare * (1 - rare), (1 - rare) ** 2])
        whole = np.convolve(whole, np.bincount(np.rint(-np.log(chances) / _STEP).astype(np.int64), chances))
    probability = np.exp(-_STEP * np.arange(whole.size))
    with np.errstate(divide="ignore"):
        return float((whole * np.exp((crowd - 1) * np.log1p(-probability))).sum())


def all_apart(frequency: npt.NDArray[np.float64], crowd: int) -> float:
    """Return the probability that all people of a crowd differ, by markers of these frequencies."""
    agree = (frequency**4 + (2 * frequency * (1 - frequency)) ** 2 + (1 - frequency) ** 4).prod()
    return math.exp(-crowd * (crowd - 1) / 2 * float(agree))


def _fewest(
    crowds: list[int], chance: Callable[[npt.NDArray[np.float64], int], float]
) -> dict[str, tuple[int, ...]]:
    """Return the least number of markers with which `chance` is at least 95 %, for each kind and crowd."""

    def enough(crowd: int, ends: tuple[float, float]) -> int:
        low, high = 1, _MOST_MARKERS
        while low < high:  # more markers never make people less distinct
            middle = (low + high) // 2
            reached = chance(spread(middle, ends), crowd) >= _SURE
            low, high = (low, middle) if reached else (middle + 1, high)
        return low

    return {kind: tuple(enough(crowd, ends) for crowd in crowds) for kind, ends in _KINDS.items()}
