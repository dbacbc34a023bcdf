"""The attack lab's averaging: the average of many answers removes fresh noise, but not stored noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from tacit.audit.lab._success import CONFIDENCE, Success, from_trials, noisy_counts, read_trials
from tacit.errors import bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Set
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.exact import Number
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, repr=False)
class AveragingAttack(Drawn, Reportable):
    """What an attacker gains by asking again, with fresh noise and with a stored answer.

    Attributes
    ----------
    epsilon
        The cost of one answer.
    repeats
        The numbers of times that the question was asked.
    redrawn
        The attacker's success if every repetition gets fresh noise; the total cost is repeats x epsilon.
    stored
        The attacker's success if every repetition returns the stored answer; the total cost stays epsilon.
    """

    epsilon: float
    repeats: tuple[int, ...]
    redrawn: tuple[Success, ...]
    stored: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"The attacker asks for one count at epsilon {self.epsilon:g} many times. With fresh noise "
                "each time, the average comes closer and closer to the truth, and the true cost is the "
                "number of repetitions times epsilon."
            ),
            (
                "The ledger prevents this attack: the same question on the same data gets the stored "
                "answer, identical and free, so a thousand copies reveal no more than one."
            ),
        )
        rows = tuple(
            (
                f"{again:,}",
                f"{fresh.advantage:.3f} ({fresh.low:.3f} to {fresh.high:.3f})",
                f"{fresh.bound:.3f} (epsilon {fresh.epsilon:g})",
                f"{kept.advantage:.3f} ({kept.low:.3f} to {kept.high:.3f})",
                f"{kept.bound:.3f} (epsilon {kept.epsilon:g})",
            )
            for again, fresh, kept in zip(self.repeats, self.redrawn, self.stored, strict=True)
        )
        header = ("times asked", "advantage, fresh noise", "bound", "advantage, stored answer", "bound")
        note = (
            f"Measured in {self.redrawn[0].trials:,} trials in each world, each with its "
            f"{percent(CONFIDENCE)} interval. A bound is broken only if a whole interval lies above it."
        )
        return Report("Averaging attack", lead, (ReportTable("", header, rows),), (note,))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return f"advantage {self.redrawn[-1].advantage:.2f} after {self.repeats[-1]:,} fresh answers"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `repeats`."""
        return self.stored

    def figures(self) -> tuple[Figure, ...]:
        """Return the success and the bounds over the number of repetitions, for fresh and stored answers."""
        from tacit.explain import repeated_questions

        return (repeated_questions(self.repeats, self.redrawn, self.stored, self.epsilon),)


def averaging_attack(
    epsilon: Number = 0.1,
    *,
    repeats: Iterable[SupportsIndex] = (1, 3, 10, 30, 100, 300, 1000),
    trials: int = 2000,
) -> AveragingAttack:
    """Ask for the same count many times and take the average.

    The data of one world has one more person than the data of the other. A count has sensitivity 1 and gets
    discrete Laplace noise. The attacker says "one more" if the average is closer to that world.

    Parameters
    ----------
    epsilon
        The cost of one answer.
    repeats
        The numbers of times to ask.
    trials
        The number of trials in each world.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.averaging_attack(0.5, repeats=[1, 200], trials=500)
    >>> attack.redrawn[-1].advantage > 0.9, attack.stored[-1].advantage < 0.5
    (True, True)
    """
    exact, number = rational("epsilon", epsilon), read_trials(trials)
    asked = tuple(count("repeats", again, zero=False) for again in repeats)
    if not asked or max(asked) * number > 100_000_000:
        raise bad_parameter(
            "repeats",
            "at least one number, and the largest times trials at most 10^8",
            asked,
            fix=Set(repeats=(1, 10, 100)),
        )
    totals = [noisy_counts(np.full((number, max(asked)), here), exact).cumsum(axis=1) for here in (1, 0)]
    redrawn, stored = [], []
    for again in asked:
        redrawn.append(from_trials(again * exact, *(2 * total[:, again - 1] > again for total in totals)))
        stored.append(from_trials(exact, *(2 * total[:, 0] > 1 for total in totals)))
    return AveragingAttack(float(exact), asked, tuple(redrawn), tuple(stored))
