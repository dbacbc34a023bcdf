"""Averaging: fresh noise for every repetition of a question can be averaged away; a stored answer cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from tacit.audit.lab.game import CONFIDENCE, Success, from_trials, noisy_counts, read_trials
from tacit.errors import bad_parameter
from tacit.exact import count, rational
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from tacit.exact import Number

__all__ = ["AveragingAttack", "averaging_attack"]


@dataclass(frozen=True, slots=True, repr=False)
class AveragingAttack(Readable):
    """What asking again gains, if noise is drawn afresh and if the first answer is stored.

    Attributes
    ----------
    epsilon
        The cost of one answer.
    repeats
        How often the question was asked.
    redrawn
        The attacker's success if every repetition gets fresh noise; its epsilon is repeats x epsilon.
    stored
        The attacker's success if a repetition returns the stored answer; its epsilon stays epsilon.
    """

    epsilon: float
    repeats: tuple[int, ...]
    redrawn: tuple[Success, ...]
    stored: tuple[Success, ...]

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        lead = (
            (
                f"One count at epsilon {self.epsilon:g}, asked again and again. With fresh noise each time "
                "the average homes in on the truth, and the honest price is the number of repetitions "
                "times epsilon."
            ),
            (
                "The ledger closes this road: the same question on the same data is answered with the "
                "stored answer, identical and free, so that a thousand copies tell no more than one."
            ),
        )
        rows = tuple(
            (
                f"{again:,}",
                f"{fresh.advantage:.3f}",
                f"{fresh.bound:.3f} (epsilon {fresh.epsilon:g})",
                f"{kept.advantage:.3f}",
                f"{kept.bound:.3f} (epsilon {kept.epsilon:g})",
            )
            for again, fresh, kept in zip(self.repeats, self.redrawn, self.stored, strict=True)
        )
        header = ("asked", "advantage, fresh noise", "bound", "advantage, stored answer", "bound")
        widest = max(point.high - point.low for point in (*self.redrawn, *self.stored)) / 2
        note = (
            f"Measured over {self.redrawn[0].trials:,} trials in each world; {CONFIDENCE:.1%} intervals "
            f"within +/- {widest:.3f}."
        )
        return Sheet("Averaging attack", lead, (Grid("", header, rows),), (note,))

    @property
    def unprotected(self) -> str:
        """What the release without Tacit gives away, in a few words."""
        return f"advantage {self.redrawn[-1].advantage:.2f} after {self.repeats[-1]:,} fresh answers"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order asked."""
        return self.stored

    def plot(self) -> Figure:
        """Draw the success over the number of repetitions, fresh and stored, next to the bounds."""
        from tacit.explain.pictures import repeated_questions

        return repeated_questions(self.repeats, self.redrawn, self.stored, self.epsilon)


def averaging_attack(
    epsilon: Number = 0.1,
    *,
    repeats: Iterable[SupportsIndex] = (1, 3, 10, 30, 100, 300, 1000),
    trials: int = 2000,
) -> AveragingAttack:
    """Ask the same count many times and average.

    The worlds are: one person more, or not. A count has sensitivity 1 and gets discrete Laplace noise. The
    attacker says "one more" if the average lies nearer to that world.

    Parameters
    ----------
    epsilon
        The cost of one answer.
    repeats
        How often to ask.
    trials
        How often each world is played.

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
            "some numbers whose largest, times trials, is at most 10^8",
            asked,
            fix="repeats=(1, 10, 100)",
        )
    totals = [noisy_counts(np.full((number, max(asked)), here), exact).cumsum(axis=1) for here in (1, 0)]
    redrawn, stored = [], []
    for again in asked:
        redrawn.append(from_trials(again * exact, *(2 * total[:, again - 1] > again for total in totals)))
        stored.append(from_trials(exact, *(2 * total[:, 0] > 1 for total in totals)))
    return AveragingAttack(float(exact), asked, tuple(redrawn), tuple(stored))
