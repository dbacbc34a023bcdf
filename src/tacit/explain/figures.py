"""Classic figures, computed by the mechanisms: error over epsilon, too small a crowd, rate and distortion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit import mechanisms
from tacit.accounting import Cost
from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.explain.pictures import Picture

__all__ = ["RateDistortion", "RatePoint", "SmallCrowd", "rate_distortion", "small_crowd"]


@dataclass(frozen=True, slots=True)
class RatePoint:
    """At one epsilon: information given away (KL, in nats) and error (MSE), textbook and as drawn."""

    epsilon: float
    kl: float
    mse: float
    textbook_kl: float
    textbook_mse: float


@dataclass(frozen=True, slots=True, repr=False)
class RateDistortion(Readable):
    """A count as a channel: the fewer nats about one person, the larger the mean squared error.

    For small epsilon the product tends to 1 for Laplace noise; for Gaussian noise it is 1/2 at every sigma,
    but without a pure epsilon.
    """

    points: tuple[RatePoint, ...]

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        lead = (
            (
                "Privacy as a rate, accuracy as a distortion: halving epsilon makes the squared error of a "
                "count four times as large and lets through a quarter of the information about one person."
            ),
        )
        rows = tuple(
            (
                f"{p.epsilon:g}",
                f"{p.kl:.5g}",
                f"{p.mse:.5g}",
                f"{p.kl * p.mse:.4f}",
                f"{p.textbook_kl * p.textbook_mse:.4f}",
            )
            for p in self.points
        )
        header = ("epsilon", "KL in nats", "MSE", "product", "product, textbook")
        return Sheet("Rate and distortion of a count", lead, (Grid("", header, rows),))

    def plot(self) -> Picture:
        """Draw MSE over epsilon and MSE over KL."""
        from tacit.explain.pictures import rate_distortion_curves

        return rate_distortion_curves(self)


@dataclass(frozen=True, slots=True, repr=False)
class SmallCrowd(Readable):
    """A sum over so few people that the noise drowns it.

    Attributes
    ----------
    truth, bound, epsilon
        The true sum, the cap of one person's value, and the cost.
    useless, useless_textbook
        The chance that the answer is negative or off by more than 100 %: of the noise drawn, and of the
        textbook law.
    needed
        The epsilon at which this chance falls to 5 %.
    """

    truth: float
    bound: float
    epsilon: float
    useless: float
    useless_textbook: float
    needed: float

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        lead = (
            (
                f"The true sum is {self.truth:g}, each person can add up to {self.bound:g}, epsilon is "
                f"{self.epsilon:g}. The answer is negative or off by more than 100 % with probability "
                f"{self.useless:.4f}."
            ),
            f"A useful answer (at most 5 %) would need epsilon {self.needed:.3g}, or more people.",
        )
        note = f"By the textbook formula exp(-epsilon x truth / bound): {self.useless_textbook:.4f}."
        return Sheet("Too small a crowd", lead, (), (note,))

    def plot(self) -> Picture:
        """Draw the density of the answer with the useless part shaded."""
        from tacit.explain.pictures import small_crowd_density

        return small_crowd_density(self)


def rate_distortion(epsilons: Iterable[Number] = (0.01, 0.03, 0.1, 0.3, 1, 3)) -> RateDistortion:
    """Compare information about one person with the error of a count, over epsilon.

    Examples
    --------
    >>> point = rate_distortion([0.01]).points[0]
    >>> round(point.textbook_kl * point.textbook_mse, 2), round(point.kl * point.mse, 2)
    (1.0, 1.0)
    """
    points = []
    for value in epsilons:
        epsilon = rational("epsilons", value)
        drawn = mechanisms.DiscreteLaplace(epsilon=epsilon, sensitivity=1)
        book = mechanisms.Laplace(epsilon=epsilon, sensitivity=1).textbook
        kl = Cost.discrete_laplace(scale=1 / epsilon, sensitivity=1).kl
        points.append(RatePoint(float(epsilon), kl, drawn.variance, book.kl, book.variance))
    if not points:
        raise bad_parameter("epsilons", "at least one number", (), fix="epsilons=(0.1, 1)")
    return RateDistortion(tuple(sorted(points, key=lambda point: point.epsilon)))


def small_crowd(*, truth: Number = 100, bound: Number = 100, epsilon: Number = 0.5) -> SmallCrowd:
    """Show what noise does to a sum over few people.

    Examples
    --------
    >>> ages = small_crowd(truth=100, bound=100, epsilon=0.5)  # two people, ages capped at 100
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
