"""Homogeneity: hiding in a crowd does not help when the whole crowd has the same secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from tacit.audit.lab.game import Success, curve_grid, from_trials, noisy_counts, read_epsilons, read_trials
from tacit.audit.lab.mondrian import k_anonymise
from tacit.audit.lab.people import People, synthetic_people
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from tacit.exact import Number

__all__ = ["HomogeneityAttack", "homogeneity_attack"]


@dataclass(frozen=True, slots=True, repr=False)
class HomogeneityAttack(Readable):
    """What an attacker is sure of after a k-anonymous release, and how sure Tacit lets anyone be.

    Attributes
    ----------
    k, people, classes
        The release: its promise, how many people, how many classes.
    sure
        The share of people whose condition the release gives away with certainty.
    right
        The share of those certainties that are true.
    example
        One such class as printed, its size and what it gives away.
    curve
        The attacker's success against noisy counts of Tacit, with its bound.
    """

    k: int
    people: int
    classes: int
    sure: float
    right: float
    example: tuple[str, int, bool] | None
    curve: tuple[Success, ...]

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        lead = [
            (
                f"A {self.k}-anonymous table of {self.people:,} people in {self.classes:,} classes. In some "
                "classes everybody has the same secret, so whoever is known to be in the class is exposed: "
                f"{self.sure:.1%} of all people, and the attacker is right in {self.right:.0%} of these "
                "cases."
            )
        ]
        if self.example:
            where, size, has = self.example
            lead.append(
                f"Example: {where}: all {size} people {'have' if has else 'do not have'} the condition."
            )
        lead.append(
            "Tacit publishes noisy counts of the condition instead. The attacker may know everybody else's "
            "secret; the odds about the last person still move by at most exp(epsilon)."
        )
        rows = (("the table", "certain", f"{self.sure:.1%} of people", f"{self.right:.0%} right"),)
        grid = Grid("against k-anonymity", ("attacked", "the attacker is", "about", "and is"), rows)
        return Sheet("Homogeneity attack", tuple(lead), (grid, curve_grid(self.curve)))

    @property
    def unprotected(self) -> str:
        """What the release without Tacit gives away, in a few words."""
        return f"{self.sure:.1%} of people certain in a {self.k}-anonymous table"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order asked."""
        return self.curve

    def plot(self) -> Figure:
        """Draw the success curve against Tacit next to its bound and the certainty under k-anonymity."""
        from tacit.explain.pictures import success_curve

        return success_curve(
            self.curve, "Homogeneity attack", exposed=1.0, exposed_label=f"{self.k}-anonymous class"
        )


def homogeneity_attack(
    k: SupportsIndex = 5,
    *,
    people: People | None = None,
    known: Iterable[str] = ("age", "sex", "postcode", "education"),
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> HomogeneityAttack:
    """Attack a k-anonymous table by its uniform classes, then noisy counts of the same people.

    The k-anonymous table prints ranges and each person's condition. Against Tacit the two worlds are: the
    target has
    the condition or not, everyone else known to the attacker; the release is the number of people with the
    condition in
    the target's place (sensitivity 1, whether a person is added or a condition flipped), with discrete
    Laplace noise. The attacker takes the likelier world, which is the best that anyone can do.

    Parameters
    ----------
    k
        The smallest class of the k-anonymous table.
    people
        Whom to attack; `synthetic_people()` if not given.
    known
        The quasi-identifiers that the table coarsens and the attacker knows.
    epsilons
        The costs at which Tacit's release is attacked.
    trials
        How often each world is played for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.homogeneity_attack(k=3, people=lab.village(), known=["postcode"], trials=1000)
    >>> attack.example
    ('postcode 1003', 3, True)
    >>> attack.right, attack.curve[0].within_bound
    (1.0, True)
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    crowd = synthetic_people() if people is None else people
    groups = k_anonymise(crowd.known(*known), k)
    sizes, cases = groups.sizes, np.bincount(groups.label, crowd.condition).astype(np.int64)
    uniform = (cases == 0) | (cases == sizes)
    exposed = uniform[groups.label]
    guessed = (cases > 0)[groups.label]
    best = np.flatnonzero(uniform)
    example = None
    if best.size:
        cls = int(best[np.argmax(cases[best] * len(crowd) + sizes[best])])
        example = (groups.shown(cls), int(sizes[cls]), bool(cases[cls]))
    target = np.flatnonzero(exposed)[0] if best.size else 0
    place = crowd.postcode == crowd.postcode[target]
    others = int(crowd.condition[place].sum() - crowd.condition[target])
    curve = []
    for epsilon in exact:
        worlds = (noisy_counts(np.full(number, others + has), epsilon) > others for has in (1, 0))
        curve.append(from_trials(epsilon, *worlds))
    return HomogeneityAttack(
        k=groups.k,
        people=len(crowd),
        classes=len(sizes),
        sure=float(exposed.mean()),
        right=float((guessed == crowd.condition)[exposed].mean()) if best.size else 0.0,
        example=example,
        curve=tuple(curve),
    )
