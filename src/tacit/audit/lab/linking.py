"""Linking: two releases that are each k-anonymous are together not; private releases add up their costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit.audit.lab.game import Success, curve_grid, from_trials, noisy_counts, read_epsilons, read_trials
from tacit.audit.lab.mondrian import Anonymised, k_anonymise
from tacit.audit.lab.people import DIAGNOSES, People, synthetic_people
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from tacit.exact import Number

__all__ = ["LinkingAttack", "linking_attack"]


@dataclass(frozen=True, slots=True, repr=False)
class LinkingAttack(Readable):
    """What two k-anonymous releases of the same people give away together.

    Attributes
    ----------
    k, people
        The promise of each release, and how many people are in both.
    alone
        The share of people who are the only one that fits both their classes: re-identified, k is down to 1.
    pinned_first, pinned_second, pinned_both
        The share of people whose diagnosis is certain from the first, the second, and both releases.
    right
        The share of the certainties of both together that are true.
    curve
        The attacker's success against two noisy releases of Tacit; epsilon is the total of both.
    """

    k: int
    people: int
    alone: float
    pinned_first: float
    pinned_second: float
    pinned_both: float
    right: float
    curve: tuple[Success, ...]

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        lead = (
            (
                f"Two tables of the same {self.people:,} people, each {self.k}-anonymous: one coarsens age, "
                "sex and education, the other age, sex and postcode. A neighbour knows all four. Put side "
                f"by side, {self.alone:.1%} of the people are the only one who fits both their classes."
            ),
            (
                "Two releases of Tacit simply add up: the price of both is the sum of their epsilons, "
                "known beforehand."
            ),
        )
        rows = (
            ("first table", f"{self.pinned_first:.1%}"),
            ("second table", f"{self.pinned_second:.1%}"),
            ("both tables", f"{self.pinned_both:.1%}"),
        )
        grid = Grid("diagnosis known for certain", ("the attacker sees", "share of people"), rows)
        return Sheet("Linking attack", lead, (grid, curve_grid(self.curve, "against two releases of Tacit")))

    @property
    def unprotected(self) -> str:
        """What the release without Tacit gives away, in a few words."""
        return f"{self.alone:.1%} of people alone in two {self.k}-anonymous tables"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order asked."""
        return self.curve

    def plot(self) -> Figure:
        """Draw the success curve against Tacit next to its bound."""
        from tacit.explain.pictures import success_curve

        return success_curve(
            self.curve,
            "Linking two releases",
            exposed=self.alone,
            exposed_label="alone in both k-anonymous tables",
        )


def linking_attack(
    k: SupportsIndex = 5,
    *,
    people: People | None = None,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> LinkingAttack:
    """Intersect two k-anonymous tables (Ganta, Kasiviswanathan, Smith 2008), then two noisy ones of Tacit.

    Against Tacit the worlds are: the target is in the data, or not. Each release counts the target's
    diagnosis in
    one cell of a partition (by age band, by postcode), so one person changes one count by one; each costs
    half of
    epsilon. The attacker knows everyone else, so each count votes for one world, and the votes are added.

    Parameters
    ----------
    k
        The smallest class of each table.
    people
        Whom to attack; `synthetic_people()` if not given.
    epsilons
        The total costs of the two releases together.
    trials
        How often each world is played for each epsilon.

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
    pair = first.label * len(second.low) + second.label
    _, cell, size = np.unique(pair, return_inverse=True, return_counts=True)
    seen_first, seen_second = _seen(first, crowd), _seen(second, crowd)
    both = seen_first & seen_second
    pinned = both.sum(axis=1) == 1
    target = int(np.flatnonzero(pinned)[0]) if pinned.any() else 0
    same = crowd.diagnosis == crowd.diagnosis[target]
    band = same & (crowd.age // 10 == crowd.age[target] // 10)
    place = same & (crowd.postcode == crowd.postcode[target])
    others = np.array([band.sum() - 1, place.sum() - 1])
    curve = []
    for epsilon in exact:
        votes = (
            (noisy_counts(np.tile(others + here, (number, 1)), epsilon / 2) > others).sum(axis=1)
            for here in (1, 0)
        )
        curve.append(from_trials(epsilon, *(vote > 1 for vote in votes)))
    return LinkingAttack(
        k=first.k,
        people=len(crowd),
        alone=float((size[cell] == 1).mean()),
        pinned_first=float((seen_first.sum(axis=1) == 1).mean()),
        pinned_second=float((seen_second.sum(axis=1) == 1).mean()),
        pinned_both=float(pinned.mean()),
        right=float((both.argmax(axis=1) == crowd.diagnosis)[pinned].mean()) if pinned.any() else 0.0,
        curve=tuple(curve),
    )


def _seen(groups: Anonymised, crowd: People) -> npt.NDArray[np.bool_]:
    """For each person, which diagnoses occur in the published class."""
    found = np.zeros((len(groups.low), len(DIAGNOSES)), dtype=bool)
    found[groups.label, crowd.diagnosis] = True
    return found[groups.label]
