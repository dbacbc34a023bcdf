"""Rate and distortion, which explain a count: information about one person against the squared error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit import mechanisms
from tacit.accounting import Cost
from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.report import Report, Reportable, ReportTable
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.show import Figure


@dataclass(frozen=True, slots=True)
class RatePoint:
    """At one epsilon: the information given away (KL, in nats) and the error (MSE), drawn and by textbook."""

    epsilon: float
    kl: float
    mse: float
    textbook_kl: float
    textbook_mse: float


@dataclass(frozen=True, slots=True, repr=False)
class RateDistortion(Drawn, Reportable):
    """A count as a channel: the fewer nats about one person it lets through, the larger its squared error.

    For small epsilon the product tends to 1 for Laplace noise. For Gaussian noise it is 1/2 at every sigma,
    but Gaussian noise has no pure epsilon.
    """

    points: tuple[RatePoint, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                "The information about one person is the rate, and the squared error is the distortion. "
                "Half the epsilon lets through a quarter of the information and makes the squared error of "
                "a count four times as large."
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
        return Report("Rate and distortion of a count", lead, (ReportTable("", header, rows),))

    def figures(self) -> tuple[Figure, ...]:
        """Return MSE over epsilon and MSE over KL."""
        from tacit.explain._cost_figures import rate_distortion_curves

        return (rate_distortion_curves(self),)


def rate_distortion(epsilons: Iterable[Number] = (0.01, 0.03, 0.1, 0.3, 1, 3)) -> RateDistortion:
    """Compare the information about one person with the error of a count, for several epsilons.

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
        raise bad_parameter("epsilons", "at least one number", (), fix=Set(epsilons=(0.1, 1)))
    return RateDistortion(tuple(sorted(points, key=lambda point: point.epsilon)))
