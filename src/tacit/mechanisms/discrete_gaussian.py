"""The discrete Gaussian mechanism for whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.mechanisms._lattice import GaussianLaw
from tacit.mechanisms._mechanism import Adjacency, check_delta, exactly_one, read_adjacency, show
from tacit.mechanisms._roots import square_root_up
from tacit.mechanisms._whole import Whole

if TYPE_CHECKING:
    from tacit.accounting import Cost

__all__ = ["DiscreteGaussian"]


@dataclass(frozen=True, init=False, repr=False, slots=True)
class DiscreteGaussian(Whole):
    """Add discrete Gaussian noise to a count, or to an array of counts.

    Guarantee: rho = sensitivity^2 / (2 sigma^2), zero-concentrated, where neighbours move the counts by at
    most `sensitivity` in L2, whatever their number (Canonne, Kamath, Steinke 2020, theorem 14). For a
    single count (``size=1``) the whole privacy curve of the lattice law is charged, which is tighter; it
    does not hold for several.

    Parameters
    ----------
    epsilon, delta
        Calibrate sigma to this promise; or give `rho`, or `sigma`.
    rho, sigma
        See above.
    sensitivity
        A whole number for ``size=1``; else a number, the most that one unit can move the counts, in L2.
    size
        1 for a single count at a time; by default any number of counts.
    adjacency
        Which neighbours the sensitivity speaks of; carried by the cost.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.DiscreteGaussian(rho=0.125, sensitivity=1)
    >>> m.sigma, m.error(0.95), round(m.variance, 6)
    (Fraction(2, 1), 4.0, 4.0)
    >>> m.release([120, 80]).shape
    (2,)
    """

    sensitivity: Fraction
    sigma: Fraction
    size: int | None
    _cost: Cost

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sigma: Number | None = None,
        sensitivity: Number,
        size: int | None = None,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        from tacit.accounting import Budget, Cost, calibrate

        if size is not None and count("size", size) != 1:
            raise bad_parameter("size", "1 or None (any number of counts)", size, fix="size=None")
        moved = rational("sensitivity", sensitivity)
        if size == 1 and moved.denominator != 1:
            raise bad_parameter(
                "sensitivity", "a whole number for a single count", sensitivity, fix="sensitivity=1"
            )

        near = read_adjacency(adjacency)

        def charge(spread: Fraction) -> Cost:
            if size == 1:
                return Cost.discrete_gaussian(sigma=spread, sensitivity=int(moved), adjacency=near)
            return Cost.zcdp(moved**2 / (2 * spread**2), adjacency=near)

        given = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
        check_delta(given, delta)
        match given:
            case "sigma":
                spread = rational("sigma", sigma)  # type: ignore[arg-type]
            case "rho":
                spread = moved * square_root_up(1 / (2 * rational("rho", rho)))  # type: ignore[arg-type]
            case _:
                target = Budget(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
                spread = rational("sigma", calibrate(lambda s: charge(rational("sigma", s)), target))
        for name, value in (
            ("sensitivity", moved),
            ("sigma", spread),
            ("size", size),
            ("_cost", charge(spread)),
        ):
            object.__setattr__(self, name, value)
        self._check_size(spread)

    def lattice(self, size: int = 1) -> tuple[Fraction, GaussianLaw]:
        """Return the grid, 1, and the law."""
        if self.size == 1 and size > 1:
            raise bad_parameter(
                "value",
                "a single count",
                f"{size} of them",
                why="the curve charged for one count does not hold for several",
                fix="DiscreteGaussian(..., size=None)",
            )
        return Fraction(1), GaussianLaw(self.sigma)

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Zero and the sensitivity, rounded down to a whole number."""
        return 0, max(1, int(self.sensitivity))

    def __repr__(self) -> str:
        return (
            f"DiscreteGaussian(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}; "
            f"within {show(self.error(0.95))} at 95 %)"
        )
