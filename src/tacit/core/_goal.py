"""The goal of a plan: the total cost that a user gives, and how often intervals must cover."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational, read_fraction
from tacit.fixes import Either, Set
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

if TYPE_CHECKING:
    from tacit.accounting import Adjacency
    from tacit.core._protocols import JSON

__all__ = ["PlanGoal"]


@dataclass(frozen=True, slots=True)
class PlanGoal:
    """What a user gives to a plan: epsilon (with delta) or rho, and the confidence of intervals.

    Examples
    --------
    >>> goal = PlanGoal.read(epsilon=1)
    >>> goal.noise(l1=2, l2_squared=2).describe()
    'discrete Laplace, scale 2'
    >>> PlanGoal.read(rho=0.125).noise(l1=2, l2_squared=1).describe()
    'discrete Gaussian, sigma 2'
    >>> goal.part(Fraction(1, 4)).promised
    {'epsilon': Fraction(1, 4)}
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    confidence: Fraction

    @classmethod
    def read(
        cls,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        confidence: Number = Fraction(95, 100),
        **more: Any,
    ) -> Self:
        """Read a goal, or refuse with what is wrong in it; ``more`` are the fields of a subclass."""
        if (epsilon is None) == (rho is None):
            raise TacitError(
                "bad-parameter",
                f"a plan needs one of epsilon and rho, got {'none' if epsilon is None else 'both'}",
                why="there is no default epsilon" if epsilon is None else "they could contradict each other",
                fix=Either(Set(epsilon=0.5), Set(rho=0.1)),
            )
        level = rational("confidence", confidence)
        if not 0 < level < 1:
            raise bad_parameter("confidence", "between 0 and 1", confidence, fix=Set(confidence=0.95))
        small = rational("delta", delta, zero=True)
        if small >= 1 or (rho is not None and small):
            raise bad_parameter("delta", "below 1, and 0 with rho", delta, fix=Set(delta=0))
        return cls(
            None if epsilon is None else rational("epsilon", epsilon),
            small,
            None if rho is None else rational("rho", rho),
            level,
            **more,
        )

    @property
    def promised(self) -> dict[str, Fraction]:
        """What the plan promises in total: the parts that are not zero."""
        given = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in given.items() if value}

    def part(self, share: Fraction) -> Self:
        """Return the goal of one step that gets a share of the total."""
        return replace(
            self,
            epsilon=None if self.epsilon is None else self.epsilon * share,
            delta=self.delta * share,
            rho=None if self.rho is None else self.rho * share,
        )

    def noise(
        self, *, l1: int, l2_squared: int, adjacency: Adjacency = "add/remove"
    ) -> DiscreteLaplace | DiscreteGaussian:
        """Return the noise for integers that one unit moves by ``l1``, or by the root of ``l2_squared``.

        With rho it is Gaussian, with epsilon alone Laplace; with epsilon and delta whichever has the smaller
        error.
        """
        if self.rho is not None:
            return DiscreteGaussian(rho=self.rho, sensitivity_squared=l2_squared, adjacency=adjacency)
        assert self.epsilon is not None  # noqa: S101 - read checks it
        laplace = DiscreteLaplace(epsilon=self.epsilon, sensitivity=l1, adjacency=adjacency)
        if not self.delta:
            return laplace
        gaussian = DiscreteGaussian(
            epsilon=self.epsilon, delta=self.delta, sensitivity_squared=l2_squared, adjacency=adjacency
        )
        narrower = gaussian.half_width(self.confidence) < laplace.half_width(self.confidence)
        return gaussian if narrower else laplace

    def to_json(self) -> dict[str, JSON]:
        """Return the goal as JSON, numbers exactly."""
        return {
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": str(self.delta),
            "rho": None if self.rho is None else str(self.rho),
            "confidence": str(self.confidence),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read a goal back."""
        numbers = ("epsilon", "delta", "rho", "confidence")
        exact = {name: None if document[name] is None else read_fraction(document[name]) for name in numbers}
        rest = {name: value for name, value in document.items() if name not in numbers}
        return cls.read(**exact, **rest)  # type: ignore[arg-type]
