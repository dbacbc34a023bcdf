"""The attack lab on homogeneity: a crowd protects nobody if the whole crowd has the same secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit.audit.lab._k_anonymity import Anonymised, k_anonymise
from tacit.audit.lab._people import People, synthetic_people
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
class HomogeneityAttack(Drawn, Reportable):
    """What an attacker knows with certainty from a k-anonymous table, and the success against Tacit.

    Attributes
    ----------
    k, people, classes
        The smallest allowed size of a class, the number of people, and the number of classes.
    sure
        The share of people whose condition the table gives away with certainty.
    right
        The share of these people for whom the attacker is right.
    example
        One such class as published, its size, and whether its people have the condition.
    curve
        The attacker's success against noisy counts from Tacit, with its bound.
    """

    k: int
    people: int
    classes: int
    sure: float
    right: float
    example: tuple[str, int, bool] | None
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = [
            (
                f"A {self.k}-anonymous table puts {self.people:,} people into {self.classes:,} classes. In "
                "some classes everybody has the same secret, so anyone who is known to be in the class is "
                f"exposed. These are {percent(self.sure)} of all people, and the attacker is right in "
                f"{percent(self.right, 0)} of these cases."
            )
        ]
        if self.example:
            where, size, has = self.example
            lead.append(
                f"Example: {where}: all {size} people {'have' if has else 'do not have'} the condition."
            )
        lead.append(
            "Tacit publishes noisy counts of the condition instead. Even if the attacker knows everybody "
            "else's secret, the odds about the last person move by at most a factor of exp(epsilon)."
        )
        rows = (
            ("the table", "certain", f"{percent(self.sure)} of people", f"{percent(self.right, 0)} right"),
        )
        header = ("attacked", "the attacker is", "about", "and is")
        against = ReportTable("against k-anonymity", header, rows)
        return Report("Homogeneity attack", tuple(lead), (against, curve_table(self.curve)))

    @property
    def unprotected(self) -> str:
        """What the table gives away without Tacit, in a few words."""
        return f"{percent(self.sure)} of people exposed by a {self.k}-anonymous table"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against Tacit, its bound, and the success against the k-anonymous table."""
        from tacit.explain import success_curve

        figure = success_curve(
            self.curve, "Homogeneity attack", exposed=1.0, exposed_label=f"{self.k}-anonymous class"
        )
        return (figure,)


def homogeneity_attack(
    k: SupportsIndex = 5,
    *,
    people: People | None = None,
    known: Iterable[str] = ("age", "sex", "postcode", "education"),
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> HomogeneityAttack:
    """Attack a k-anonymous table through its uniform classes, then noisy counts of the same people.

    The k-anonymous table shows ranges and each person's condition. Against Tacit, the target has the
    condition in one world and not in the other, and the attacker knows everyone else. The release is the
    number of people with the condition in the target's postcode, with discrete Laplace noise; its sensitivity
    is 1, whether a person is added or a condition changes. The attacker chooses the more likely world, which
    is the best possible attack.

    Parameters
    ----------
    k
        The smallest allowed size of a class in the k-anonymous table.
    people
        The people to attack; `synthetic_people()` if not given.
    known
        The quasi-identifiers, which the table shows as ranges and the attacker knows.
    epsilons
        The costs at which the counts from Tacit are attacked.
    trials
        The number of trials in each world, for each epsilon.

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
    cases = np.bincount(groups.label, crowd.condition).astype(np.int64)
    uniform = (cases == 0) | (cases == groups.sizes)
    exposed = uniform[groups.label]
    guessed = (cases > 0)[groups.label]
    target = np.flatnonzero(exposed)[0] if uniform.any() else 0
    place = crowd.postcode == crowd.postcode[target]
    others = int(crowd.condition[place].sum() - crowd.condition[target])
    return HomogeneityAttack(
        k=groups.k,
        people=len(crowd),
        classes=len(groups.sizes),
        sure=float(exposed.mean()),
        right=float((guessed == crowd.condition)[exposed].mean()) if uniform.any() else 0.0,
        example=_example(groups, cases, uniform),
        curve=tuple(_attack_tacit(others, epsilon, number) for epsilon in exact),
    )


def _example(
    groups: Anonymised, cases: npt.NDArray[np.int64], uniform: npt.NDArray[np.bool_]
) -> tuple[str, int, bool] | None:
    """Return the uniform class with the most cases, and among equals the largest; None if there is none."""
    best = np.flatnonzero(uniform)
    if not best.size:
        return None
    cls = int(best[np.argmax(cases[best] * len(groups.label) + groups.sizes[best])])
    return groups.shown(cls), int(groups.sizes[cls]), bool(cases[cls])


def _attack_tacit(others: int, epsilon: Fraction, trials: int) -> Success:
    """Guess from a noisy count, with everyone else known, whether the target has the condition."""
    worlds = (noisy_counts(np.full(trials, others + has), epsilon) > others for has in (1, 0))
    return from_trials(epsilon, *worlds)
