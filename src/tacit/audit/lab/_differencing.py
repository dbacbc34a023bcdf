"""The attack lab's differencing: two counts that look harmless, but whose difference is one person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.exact import Number
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, repr=False)
class DifferencingAttack(Drawn, Reportable):
    """What two exact counts give away, and what two noisy counts give away.

    Attributes
    ----------
    people
        The number of people in the data.
    exposed
        The share of people whose age, sex, postcode and education are unique; each of them can be attacked.
    right
        The share of these people whose condition the difference of two exact counts gives correctly.
    example
        The description of one person, the two exact counts, and the person's secret.
    curve
        The attacker's success against the same two counts from Tacit; epsilon is the total of both.
    """

    people: int
    exposed: float
    right: float
    example: tuple[str, int, int, bool]
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        who, everyone, without, has = self.example
        lead = (
            (
                f"Each of the two answers counts about {self.people:,} people and looks harmless, but their "
                f"difference is one person. {percent(self.exposed)} of the people can be singled out in this "
                f"way, and the exact answers give away the condition of {percent(self.right, 0)} of them."
            ),
            (
                "Tacit adds noise with a typical size of 2 / epsilon to each answer, which hides the "
                "difference of one person."
            ),
        )
        rows = (
            ("people with the condition", str(everyone)),
            (f"... without the person with {who}", str(without)),
            ("difference", "has the condition" if has else "does not have the condition"),
        )
        exact = ReportTable("two exact answers", ("question", "answer"), rows)
        return Report("Differencing attack", lead, (exact, curve_table(self.curve)))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return f"{percent(self.exposed)} of people exposed by two exact counts"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against Tacit, its bound, and the success against exact answers."""
        from tacit.explain import success_curve

        return (success_curve(self.curve, "Differencing attack", exposed=1.0, exposed_label="exact counts"),)


def differencing_attack(
    *,
    people: People | None = None,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> DifferencingAttack:
    """Ask for a count with and without one person, first exactly and then from Tacit.

    Against Tacit, the target has the condition in one world and not in the other. Both counts have
    sensitivity 1 and each costs half of epsilon. The attacker says yes if the first noisy count is larger
    than the second.

    Parameters
    ----------
    people
        The people to attack; `synthetic_people()` if not given.
    epsilons
        The total costs of the two answers together.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.differencing_attack(epsilons=[1], trials=1000)
    >>> attack.right, attack.curve[0].within_bound
    (1.0, True)
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    crowd = synthetic_people() if people is None else people
    described = np.column_stack(list(crowd.known().values()))
    _, cell, size = np.unique(described, axis=0, return_inverse=True, return_counts=True)
    cell = cell.reshape(-1)  # NumPy 2.0.0 returns a column
    everyone = int(crowd.condition.sum())
    without = everyone - np.bincount(cell, crowd.condition).astype(np.int64)[cell]
    single = size[cell] == 1
    target = int(np.argmax(single & (crowd.condition == 1))) if single.any() else 0
    rest = everyone - int(crowd.condition[target])
    curve = []
    for epsilon in exact:
        worlds = []
        for has in (1, 0):
            answers = noisy_counts(np.tile([rest + has, rest], (number, 1)), epsilon / 2)
            worlds.append(answers[:, 0] > answers[:, 1])
        curve.append(from_trials(epsilon, *worlds))
    names = zip(crowd.known(), described[target].tolist(), strict=True)
    return DifferencingAttack(
        people=len(crowd),
        exposed=float(single.mean()),
        right=float((everyone - without == crowd.condition)[single].mean()) if single.any() else 0.0,
        example=(
            ", ".join(f"{name} {value}" for name, value in names),
            everyone,
            int(without[target]),
            bool(crowd.condition[target]),
        ),
        curve=tuple(curve),
    )
