"""Membership: was this person in the data at all? The question that differential privacy is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from tacit.audit.lab.game import Success, curve_grid, from_trials, noisy_counts, read_epsilons, read_trials
from tacit.audit.lab.people import People, synthetic_people
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from tacit.exact import Number

__all__ = ["MembershipAttack", "membership_attack"]


@dataclass(frozen=True, slots=True, repr=False)
class MembershipAttack(Readable):
    """Whether an attacker who knows everyone else can tell that the target is in the data.

    Attributes
    ----------
    people
        How many people are in the data, with the target.
    with_target, without_target
        The exact count of the condition in the two worlds: seeing it, the attacker is certain.
    curve
        The attacker's success against the noisy count, with its bound; here the best attack meets the bound.
    """

    people: int
    with_target: int
    without_target: int
    curve: tuple[Success, ...]

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        lead = (
            (
                f"The attacker knows the secrets of all {self.people - 1:,} others and asks whether the "
                "target is in the data. The exact count says it for certain."
            ),
            (
                "A noisy count cannot: whatever the attacker knows, the advantage stays under tanh(epsilon "
                "/ 2). For this count the best attack reaches that bound, so the bound is no exaggeration."
            ),
        )
        rows = (
            ("without the target", f"{self.without_target:,}", "certain"),
            ("with the target", f"{self.with_target:,}", "certain"),
        )
        note = (
            "What stays allowed: learning that the condition is common among people like the target. That "
            "would be known whether or not the target took part."
        )
        grids = (Grid("exact count", ("world", "answer", "the attacker is"), rows), curve_grid(self.curve))
        return Sheet("Membership attack", lead, grids, (note,))

    @property
    def unprotected(self) -> str:
        """What the release without Tacit gives away, in a few words."""
        return "certain from one exact count"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order asked."""
        return self.curve

    def plot(self) -> Figure:
        """Draw the success curve next to its bound and the exact count."""
        from tacit.explain.pictures import success_curve

        return success_curve(self.curve, "Membership attack", exposed=1.0, exposed_label="exact count")


def membership_attack(
    target: SupportsIndex | None = None,
    *,
    people: People | None = None,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> MembershipAttack:
    """Decide from a count of the condition whether the target is in the data.

    The worlds are: the data with the target, the data without. The count has sensitivity 1 and gets
    discrete Laplace noise; the attacker, who knows everyone else, takes the likelier world.

    Parameters
    ----------
    target
        The row of the target, who must have the condition; the first such person if not given.
    people
        Whom to attack; `synthetic_people()` if not given.
    epsilons
        The costs at which the count is attacked.
    trials
        How often each world is played for each epsilon.

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
        raise bad_parameter("target", "the row of a person with the condition", row, fix="target=None")
    present = int(crowd.condition.sum())
    curve = []
    for epsilon in exact:
        worlds = (noisy_counts(np.full(number, present - gone), epsilon) >= present for gone in (0, 1))
        curve.append(from_trials(epsilon, *worlds))
    return MembershipAttack(len(crowd), present, present - 1, tuple(curve))
