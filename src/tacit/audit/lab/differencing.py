"""Differencing: two harmless counts whose difference is one person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.audit.lab.game import Success, curve_grid, from_trials, noisy_counts, read_epsilons, read_trials
from tacit.audit.lab.people import People, synthetic_people
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from tacit.exact import Number

__all__ = ["DifferencingAttack", "differencing_attack"]


@dataclass(frozen=True, slots=True, repr=False)
class DifferencingAttack(Readable):
    """What two exact counts give away, and what two noisy ones do.

    Attributes
    ----------
    people
        How many people are counted.
    exposed
        The share of people whom age, sex, postcode and education single out: all of them can be attacked.
    right
        The share of those whose condition the difference of two exact counts gives correctly.
    example
        The description of one person, the two exact counts, and the person's secret.
    curve
        The attacker's success against the same two counts asked of Tacit; epsilon is the total of both.
    """

    people: int
    exposed: float
    right: float
    example: tuple[str, int, int, bool]
    curve: tuple[Success, ...]

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        who, everyone, without, has = self.example
        lead = (
            (
                f"Each of the two answers is a count over about {self.people:,} people and looks harmless. "
                f"Their difference is one person: {self.exposed:.1%} of the people can be singled out so, "
                f"and the exact answers give away the condition of {self.right:.0%} of them."
            ),
            (
                "Tacit answers both with noise of a typical size of 2 / epsilon each; the difference of "
                "one drowns in it."
            ),
        )
        rows = (
            ("people with the condition", str(everyone)),
            (f"... leaving out {who}", str(without)),
            ("the difference says", "has the condition" if has else "does not have it"),
        )
        grids = (Grid("two exact answers", ("question", "answer"), rows), curve_grid(self.curve))
        return Sheet("Differencing attack", lead, grids)

    @property
    def unprotected(self) -> str:
        """What the release without Tacit gives away, in a few words."""
        return f"{self.exposed:.1%} of people exposed by two exact counts"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order asked."""
        return self.curve

    def plot(self) -> Figure:
        """Draw the success curve against Tacit next to its bound and the exact answers."""
        from tacit.explain.pictures import success_curve

        return success_curve(self.curve, "Differencing attack", exposed=1.0, exposed_label="exact counts")


def differencing_attack(
    *,
    people: People | None = None,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> DifferencingAttack:
    """Ask for a count with and without one person, exactly and of Tacit.

    Against Tacit the worlds are: the target has the condition, or not. Both counts have sensitivity 1 and
    cost half of epsilon each. The attacker says yes if the first noisy count exceeds the second.

    Parameters
    ----------
    people
        Whom to attack; `synthetic_people()` if not given.
    epsilons
        The total costs of the two answers together.
    trials
        How often each world is played for each epsilon.

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
