"""The discrete Gaussian mechanism: integer noise for whole numbers, without a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._integer_noise import IntegerNoise
from tacit.mechanisms._mechanism import check_delta, exactly_one, figure, read_adjacency, show
from tacit.mechanisms._noise_laws import GaussianLaw
from tacit.mechanisms._roots import square_root_up

if TYPE_CHECKING:
    from tacit.accounting import Adjacency, Cost


@dataclass(frozen=True, init=False, repr=False, slots=True)
class DiscreteGaussian(IntegerNoise):
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
    sensitivity_squared
        Instead of `sensitivity`: its square, a whole number, exactly.
    size
        1 for a single count at a time; by default any number of counts is allowed.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

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
    sensitivity_squared: Fraction
    sigma: Fraction
    size: int | None
    adjacency: Adjacency
    _law: GaussianLaw

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sigma: Number | None = None,
        sensitivity: Number | None = None,
        sensitivity_squared: int | None = None,
        size: int | None = None,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        if size is not None and count("size", size, fix=Set(size=None)) != 1:
            raise bad_parameter("size", "1 or None (any number of counts)", size, fix=Set(size=None))
        moved, squared = _read_move(sensitivity, sensitivity_squared)
        if size == 1 and moved.denominator != 1:
            raise bad_parameter(
                "sensitivity", "a whole number for a single count", sensitivity, fix=Set(sensitivity=1)
            )
        for name, value in (
            ("sensitivity", moved),
            ("sensitivity_squared", squared),
            ("size", size),
            ("adjacency", read_adjacency(adjacency)),
        ):
            object.__setattr__(self, name, value)
        spread = self._calibrated(epsilon=epsilon, delta=delta, rho=rho, sigma=sigma)
        self._check_size(spread)
        object.__setattr__(self, "sigma", spread)
        object.__setattr__(self, "_law", GaussianLaw(spread))

    def _calibrated(
        self, *, epsilon: Number | None, delta: Number | None, rho: Number | None, sigma: Number | None
    ) -> Fraction:
        """Return the sigma for the one promise that is given."""
        from tacit.accounting import Budget, calibrate

        given = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
        check_delta(given, delta)
        match given:
            case "sigma":
                return rational("sigma", sigma)  # type: ignore[arg-type]
            case "rho":
                return square_root_up(self.sensitivity_squared / (2 * rational("rho", rho)))  # type: ignore[arg-type]
            case _:
                target = Budget(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
                return rational("sigma", calibrate(lambda s: self._charge(rational("sigma", s)), target))

    def _charge(self, sigma: Fraction) -> Cost:
        from tacit.accounting import Cost

        if self.size == 1:
            moved = int(self.sensitivity)
            return Cost.discrete_gaussian(sigma=sigma, sensitivity=moved, adjacency=self.adjacency)
        return Cost.zcdp(self.sensitivity_squared / (2 * sigma**2), adjacency=self.adjacency)

    @property
    def cost(self) -> Cost:
        """The curve of the lattice law for a single count, else rho."""
        return self._charge(self.sigma)

    @property
    def scale(self) -> Fraction:
        """The parameter sigma."""
        return self.sigma

    def lattice(self, size: int = 1) -> tuple[Fraction, GaussianLaw]:
        """Return the grid, which is 1, and the law."""
        if self.size == 1 and size > 1:
            raise bad_parameter(
                "value",
                "a single count",
                f"{size} of them",
                why="the curve charged for one count does not hold for several",
                fix=Set(size=None),
            )
        return Fraction(1), self._law

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Zero and the sensitivity, rounded down to a whole number."""
        return 0, max(1, math.isqrt(math.floor(self.sensitivity_squared)))

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact sigma and squared sensitivity, and the cost."""
        return {
            "mechanism": "discrete-gaussian",
            "sigma": str(self.sigma),
            "sensitivity_squared": str(self.sensitivity_squared),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the law in a few words.

        Examples
        --------
        >>> DiscreteGaussian(rho=0.125, sensitivity=1).describe()
        'discrete Gaussian, sigma 2'
        """
        return f"discrete Gaussian, sigma {figure(self.sigma * unit)}"

    def __repr__(self) -> str:
        return (
            f"DiscreteGaussian(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}; "
            f"within {show(self.error(0.95))} at 95 %)"
        )


def _read_move(sensitivity: Number | None, squared: int | None) -> tuple[Fraction, Fraction]:
    """Return the L2 sensitivity (rounded up where only its square is given) and its exact square."""
    if exactly_one(sensitivity=sensitivity, sensitivity_squared=squared) == "sensitivity":
        moved = rational("sensitivity", sensitivity)  # type: ignore[arg-type]
        return moved, moved**2
    whole = Fraction(count("sensitivity_squared", squared, zero=False))  # type: ignore[arg-type]
    return square_root_up(whole), whole
