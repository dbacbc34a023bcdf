"""A small crowd, explained: what noise does to a sum over a few people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit import mechanisms
from tacit.exact import Number, rational
from tacit.report import Report, Reportable
from tacit.show import Drawn

if TYPE_CHECKING:
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, repr=False)
class SmallCrowd(Drawn, Reportable):
    """A sum over so few people that the noise hides it.

    Attributes
    ----------
    truth, bound, epsilon
        The true sum, the largest value of one person, and the cost.
    useless, useless_textbook
        The probability that the answer is negative or wrong by more than 100 %: for the noise that Tacit
        draws, and for the textbook law.
    needed
        The epsilon at which this probability falls to 5 %.
    """

    truth: float
    bound: float
    epsilon: float
    useless: float
    useless_textbook: float
    needed: float

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"The true sum is {self.truth:g}, each person can add up to {self.bound:g}, and epsilon is "
                f"{self.epsilon:g}. The answer is negative or wrong by more than 100 % with probability "
                f"{self.useless:.4f}."
            ),
            (f"To lower this probability to 5 %, the sum needs epsilon {self.needed:.3g}, or more people."),
        )
        note = f"By the textbook formula exp(-epsilon x truth / bound): {self.useless_textbook:.4f}."
        return Report("Too small a crowd", lead, (), (note,))

    def figures(self) -> tuple[Figure, ...]:
        """Return the density of the answer, with the useless part shaded."""
        from tacit.explain._cost_figures import small_crowd_density

        return (small_crowd_density(self),)


def small_crowd(*, truth: Number = 100, bound: Number = 100, epsilon: Number = 0.5) -> SmallCrowd:
    """Show what noise does to a sum over a few people.

    Examples
    --------
    >>> ages = small_crowd(truth=100, bound=100, epsilon=0.5)  # two people, ages up to 100
    >>> round(ages.useless_textbook, 4), round(ages.useless, 4)
    (0.6065, 0.6065)
    """
    true, cap, spent = rational("truth", truth), rational("bound", bound), rational("epsilon", epsilon)
    drawn = mechanisms.Laplace(epsilon=spent, sensitivity=cap)
    return SmallCrowd(
        truth=float(true),
        bound=float(cap),
        epsilon=float(spent),
        useless=drawn.exceeds(true),
        useless_textbook=drawn.textbook.exceeds(true),
        needed=mechanisms.Laplace.accuracy_to_epsilon(true, 0.95, sensitivity=cap),
    )
