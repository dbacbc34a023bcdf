"""The attack lab's linking: two k-anonymous tables together are not; costs of private releases add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit.audit.lab._k_anonymity import Anonymised, k_anonymise
from tacit.audit.lab._people import DIAGNOSES, People, synthetic_people
from tacit.audit.lab._success import (
    Success,
    curve_table,
    from_trials,
    noisy_counts,
    read_epsilons,
    read_trials,
)
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from tacit.exact import Number
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, repr=False)
class LinkingAttack(Drawn, Reportable):
    """What two k-anonymous tables of the same people give away together.

    Attributes
    ----------
    k, people
        The smallest allowed size of a class in each table, and the number of people in both.
    alone
        The share of people who alone fit both their classes: they are re-identified, as if k were 1.
    pinned_first, pinned_second, pinned_both
        The share of people whose diagnosis is certain from the first table, the second table, and both.
    right
        The share of the people in `pinned_both` for whom the attacker is right.
    curve
        The attacker's success against two noisy releases from Tacit; epsilon is the total of both.
    """

    k: int
    people: int
    alone: float
    pinned_first: float
    pinned_second: float
    pinned_both: float
    right: float
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"Two tables hold the same {self.people:,} people, and each is {self.k}-anonymous: one shows "
                "ranges of age, sex and education, the other of age, sex and postcode. A neighbour knows "
                f"all four. With both tables, {percent(self.alone)} of the people can be singled out: "
                "nobody else is in both of their classes."
            ),
            (
                "The costs of two releases from Tacit add up: the cost of both is the sum of their "
                "epsilons, known in advance."
            ),
        )
        rows = (
            ("first table", percent(self.pinned_first)),
            ("second table", percent(self.pinned_second)),
            ("both tables", percent(self.pinned_both)),
        )
        header = ("the attacker sees", "share of people")
        tables = (
            ReportTable("diagnosis known with certainty", header, rows),
            curve_table(self.curve, "against two releases from Tacit"),
        )
        return Report("Linking attack", lead, tables)

    @property
    def unprotected(self) -> str:
        """What the tables give away without Tacit, in a few words."""
        return f"{percent(self.alone)} of people re-identified by two {self.k}-anonymous tables"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against Tacit, its bound, and the share of people whom the tables identify."""
        from tacit.explain import success_curve

        figure = success_curve(
            self.curve,
            "Linking attack",
            exposed=self.alone,
            exposed_label="re-identified by two k-anonymous tables",
        )
        return (figure,)


def linking_attack(
    k: SupportsIndex = 5,
    *,
    people: People | None = None,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> LinkingAttack:
    """Combine two k-anonymous tables (Ganta, Kasiviswanathan, Smith 2008), then two releases from Tacit.

    Against Tacit, the target is in the data of one world and not in the data of the other. Each release
    counts people with the target's diagnosis, one by age band and one by postcode, so one person changes one
    count in each release by one; each release costs half of epsilon. The attacker knows everyone else, so
    each count votes for one world, and the votes are added.

    Parameters
    ----------
    k
        The smallest allowed size of a class in each table.
    people
        The people to attack; `synthetic_people()` if not given.
    epsilons
        The total costs of the two releases together.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.linking_attack(k=5, epsilons=[1], trials=1000)
    >>> attack.alone > 0.5, attack.pinned_both > 10 * attack.pinned_first, attack.right
    (True, True, 1.0)
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    crowd = synthetic_people() if people is None else people
    first = k_anonymise(crowd.known("age", "sex", "education"), k)
    second = k_anonymise(crowd.known("age", "sex", "postcode"), k)
    seen_first, seen_second = _seen(first, crowd), _seen(second, crowd)
    both = seen_first & seen_second
    pinned = both.sum(axis=1) == 1
    target = int(np.flatnonzero(pinned)[0]) if pinned.any() else 0
    others = _others(crowd, target)
    return LinkingAttack(
        k=first.k,
        people=len(crowd),
        alone=_alone(first, second),
        pinned_first=float((seen_first.sum(axis=1) == 1).mean()),
        pinned_second=float((seen_second.sum(axis=1) == 1).mean()),
        pinned_both=float(pinned.mean()),
        right=float((both.argmax(axis=1) == crowd.diagnosis)[pinned].mean()) if pinned.any() else 0.0,
        curve=tuple(_attack_tacit(others, epsilon, number) for epsilon in exact),
    )


def _seen(groups: Anonymised, crowd: People) -> npt.NDArray[np.bool_]:
    """Return, for each person, which diagnoses occur in the published class."""
    found = np.zeros((len(groups.low), len(DIAGNOSES)), dtype=bool)
    found[groups.label, crowd.diagnosis] = True
    return found[groups.label]


def _alone(first: Anonymised, second: Anonymised) -> float:
    """Return the share of people who alone fit both their classes."""
    pair = first.label * len(second.low) + second.label
    _, cell, size = np.unique(pair, return_inverse=True, return_counts=True)
    return float((size[cell] == 1).mean())


def _others(crowd: People, target: int) -> npt.NDArray[np.int64]:
    """Count the other people with the target's diagnosis, in the target's age band and postcode."""
    same = crowd.diagnosis == crowd.diagnosis[target]
    band = same & (crowd.age // 10 == crowd.age[target] // 10)
    place = same & (crowd.postcode == crowd.postcode[target])
    return np.array([band.sum() - 1, place.sum() - 1])


def _attack_tacit(others: npt.NDArray[np.int64], epsilon: Fraction, trials: int) -> Success:
    """Guess from two noisy counts, each at half of epsilon, whether the target is in the data."""
    votes = (
        (noisy_counts(np.tile(others + here, (trials, 1)), epsilon / 2) > others).sum(axis=1)
        for here in (1, 0)
    )
    return from_trials(epsilon, *(vote > 1 for vote in votes))
