"""The attack lab on membership: is this person in the data at all? Differential privacy protects here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from tacit.audit.lab._people import People, synthetic_people
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
from tacit.report import Report, Reportable, ReportTable
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.exact import Number
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, repr=False)
class MembershipAttack(Drawn, Reportable):
    """Whether an attacker who knows everyone else can find out that the target is in the data.

    Attributes
    ----------
    people
        The number of people in the data, including the target.
    with_target, without_target
        The exact count of the condition in the two worlds; an attacker who sees it is certain.
    curve
        The attacker's success against the noisy count, with its bound; the best attack reaches it here.
    """

    people: int
    with_target: int
    without_target: int
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"The attacker knows the secrets of all {self.people - 1:,} other people and asks whether "
                "the target is in the data. The exact count gives the answer with certainty."
            ),
            (
                "A noisy count does not: whatever the attacker knows, the advantage is at most "
                "tanh(epsilon / 2). For this count the best attack reaches the bound, so no smaller bound "
                "is possible."
            ),
        )
        rows = (
            ("without the target", f"{self.without_target:,}", "certain"),
            ("with the target", f"{self.with_target:,}", "certain"),
        )
        note = (
            "An attacker may still learn that the condition is common among people like the target. This "
            "is known whether or not the target takes part."
        )
        exact = ReportTable("exact count", ("world", "answer", "the attacker is"), rows)
        return Report("Membership attack", lead, (exact, curve_table(self.curve)), (note,))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return "certain from one exact count"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against Tacit, its bound, and the success against the exact count."""
        from tacit.explain import success_curve

        return (success_curve(self.curve, "Membership attack", exposed=1.0, exposed_label="exact count"),)


def membership_attack(
    target: SupportsIndex | None = None,
    *,
    people: People | None = None,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> MembershipAttack:
    """Decide from a count of the condition whether the target is in the data.

    The target is in the data of one world and not in the data of the other. The count has sensitivity 1 and
    gets discrete Laplace noise. The attacker, who knows everyone else, chooses the more likely world.

    Parameters
    ----------
    target
        The row of the target, who must have the condition; by default the first person who has it.
    people
        The people to attack; `synthetic_people()` if not given.
    epsilons
        The costs at which the count is attacked.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.membership_attack(epsilons=[1], trials=20_000)
    >>> attack.with_target - attack.without_target, attack.curve[0].within_bound
    (1, True)
    >>> round(attack.curve[0].bound, 4)
    0.4621
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    crowd = synthetic_people() if people is None else people
    row = int(np.argmax(crowd.condition)) if target is None else count("target", target)
    if row >= len(crowd) or not crowd.condition[row]:
        raise bad_parameter("target", "the row of a person with the condition", row, fix=Set(target=None))
    present = int(crowd.condition.sum())
    curve = []
    for epsilon in exact:
        worlds = (noisy_counts(np.full(number, present - gone), epsilon) >= present for gone in (0, 1))
        curve.append(from_trials(epsilon, *worlds))
    return MembershipAttack(len(crowd), present, present - 1, tuple(curve))
