"""The Gaussian mechanism, on a public grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.mechanisms._additive import Additive, smallest_epsilon
from tacit.mechanisms._calibration import square_root_up, smallest_sigma
from tacit.mechanisms._grid import FINE, default_grid, fine_grid
from tacit.mechanisms._lattice import GaussianLaw
from tacit.mechanisms._mechanism import exactly_one, show

if TYPE_CHECKING:
    from tacit.accounting import Cost

__all__ = ["Gaussian", "classic_sigma"]

_PAD = 1 + Fraction(1, FINE)  # the lattice law needs a millionth more noise than the continuous one
_LARGEST_SHIFT = 100  # sensitivity / sigma up to which the continuous cost is proven for the lattice


def classic_sigma(epsilon: Number, delta: Number, sensitivity: Number) -> Fraction:
    """Return sensitivity sqrt(2 ln(1.25/delta)) / epsilon, rounded up (Dwork and Roth 2014, theorem A.1).

    Valid for epsilon up to 1 only, and refused above.

    Examples
    --------
    >>> round(float(classic_sigma(0.5, 1e-6, 0.024)), 4)
    0.2543
    """
    spent, chance = rational("epsilon", epsilon), _delta(delta)
    if spent > 1:
        raise bad_parameter(
            "epsilon",
            "at most 1 with the classic calibration",
            epsilon,
            why="the classic formula is proven for epsilon up to 1; above, it can add too little noise",
            fix='calibration="analytic"',
        )
    with localcontext() as context:
        context.prec = 40
        ratio = Decimal(5 * chance.denominator) / Decimal(4 * chance.numerator)
        root = (2 * ratio.ln()).sqrt()
    return rational("sensitivity", sensitivity) * _ceiling(root) / spent


def _ceiling(x: Decimal) -> Fraction:
    """Return a short rational just above x (a relative 2^-50)."""
    exact = Fraction(x)
    return Fraction(math.ceil(exact * 2**50) + 1, 2**50)


def _delta(delta: Number) -> Fraction:
    chance = rational("delta", delta)
    if chance >= 1:
        raise bad_parameter("delta", "below 1", delta, fix="delta=1e-6")
    return chance


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Gaussian(Additive):
    """Add Gaussian noise to a number, or to an array.

    Guarantee: the whole privacy curve of the Gaussian mechanism with mu = sensitivity / sigma (so also rho = mu^2 / 2),
    where neighbours move the number by at most `sensitivity`, or an array by at most `sensitivity` in L2.

    Argument: the value is rounded to a public grid, which moves it by at most N steps (an array of d numbers by
    s/g + sqrt(d) <= N in L2). Discrete Gaussian noise on so fine a lattice is, up to a factor of 1 +- exp(-20000), a
    randomised rounding of continuous Gaussian noise with 2^10 steps^2 less variance, whatever the dimension
    (docs/proofs/mechanisms.md, lemma 3); one part in 2^20 more sigma than charged covers both. On a coarse grid
    of your own the cost is that of the discrete Gaussian law itself (one number), or its rho (several).

    Parameters
    ----------
    epsilon, delta
        Calibrate sigma to this promise; or give `rho`, or `sigma`.
    rho
        Calibrate to zero-concentrated privacy.
    sigma
        The standard deviation, in the units of the value.
    sensitivity
        The most that one unit can move the value, in L2.
    calibration
        ``"analytic"``: the smallest sigma (Balle and Wang 2018). ``"classic"``: the textbook formula, refused above
        epsilon 1.
    grid
        The public grid; by default fine enough to be invisible. With a grid of your own, state the `size` of arrays.
    size
        With a grid of your own: the most numbers released together.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Gaussian(epsilon=0.5, delta=1e-6, sensitivity=0.024)
    >>> classic = tc.mechanisms.Gaussian(epsilon=0.5, delta=1e-6, sensitivity=0.024, calibration="classic")
    >>> round(float(classic.sigma), 4), bool(m.sigma < classic.sigma)
    (0.2543, True)
    >>> m.cost.epsilon(delta=1e-6) <= 0.5
    True
    """

    sensitivity: Fraction
    sigma: Fraction
    grid: Fraction
    _steps: int
    _own_grid: bool
    _size: int
    cost: Cost

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sigma: Number | None = None,
        sensitivity: Number,
        calibration: Literal["analytic", "classic"] = "analytic",
        grid: Number | None = None,
        size: int | None = None,
    ) -> None:
        from tacit.accounting import Cost

        moved = rational("sensitivity", sensitivity)
        given = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
        if (delta is None) == (given == "epsilon"):
            raise bad_parameter(
                "delta", "given together with epsilon, and only then", delta, fix="epsilon=0.5, delta=1e-6"
            )
        if calibration not in {"analytic", "classic"}:
            raise bad_parameter(
                "calibration", '"analytic" or "classic"', calibration, fix='calibration="analytic"'
            )
        match given:
            case "sigma":
                spread = rational("sigma", sigma)  # type: ignore[arg-type]
            case "rho":
                spread = moved * square_root_up(1 / (2 * rational("rho", rho)))  # type: ignore[arg-type]
            case _ if calibration == "classic":
                spread = classic_sigma(epsilon, delta, moved)  # type: ignore[arg-type]
            case _:
                target, chance = rational("epsilon", epsilon), _delta(delta)  # type: ignore[arg-type]
                spread = moved * smallest_sigma(
                    lambda s: Cost.gaussian(sigma=s, sensitivity=1), epsilon=target, delta=chance
                )
        together = 1 if size is None else count("size", size, zero=False)
        if grid is None:
            step, steps = default_grid(moved, spread)
        else:
            step = rational("grid", grid)
            steps = math.ceil(moved / step) + (0 if together == 1 else math.isqrt(together - 1) + 1)
        for name, value in (
            ("sensitivity", moved),
            ("sigma", spread),
            ("grid", step),
            ("_steps", steps),
            ("_own_grid", grid is not None),
            ("_size", together),
        ):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "cost", self._charge(Cost))
        if given == "epsilon" and float(self.cost.epsilon(delta=delta)) > float(epsilon):  # type: ignore[arg-type]
            raise TacitError(  # a coarse grid of one's own can cost more than was asked for
                "over-target",
                "the grid is so coarse that this noise costs more than the epsilon asked for",
                why="the lattice law is charged, not its continuous cousin",
                fix="grid=None",
            )

    def _charge(self, cost: type[Cost]) -> Cost:
        if self.sensitivity / self.sigma > _LARGEST_SHIFT:
            return cost.zcdp(self.sensitivity**2 / (2 * self.sigma**2))
        if not self._own_grid or self.sigma / self.grid >= FINE:
            return cost.gaussian(sigma=self.sigma, sensitivity=self.sensitivity)
        _, law = self.lattice(self._size)
        if self._size == 1:
            return cost.discrete_gaussian(sigma=law.sigma, sensitivity=self._steps)
        return cost.zcdp(self._steps**2 / (2 * law.sigma**2))

    def lattice(self, size: int = 1) -> tuple[Fraction, GaussianLaw]:
        """Return the grid and the law, in grid steps, for `size` numbers released together."""
        if self._own_grid:
            if size > self._size:
                raise bad_parameter(
                    "value",
                    f"at most {self._size} numbers",
                    f"{size} of them",
                    why="on a grid of your own the rounding of each number adds to the sensitivity",
                    fix=f"Gaussian(..., grid=..., size={size})",
                )
            grid, steps = self.grid, self._steps
        elif size <= 1:
            grid, steps = self.grid, self._steps
        else:
            grid = fine_grid(min(self.sensitivity, self.sigma), math.isqrt(size) + 1)
            steps = math.ceil(self.sensitivity / grid) + math.isqrt(size - 1) + 1
        return grid, GaussianLaw(steps * self.sigma / self.sensitivity * _PAD)

    @classmethod
    def accuracy_to_epsilon(
        cls, error: Number, confidence: Number = 0.95, *, sensitivity: Number, delta: Number
    ) -> float:
        """Return the smallest epsilon (at `delta`) whose error at this confidence is at most `error`.

        Examples
        --------
        >>> epsilon = Gaussian.accuracy_to_epsilon(10, 0.95, sensitivity=1, delta=1e-6)
        >>> Gaussian(epsilon=epsilon, delta=1e-6, sensitivity=1).error(0.95) <= 10
        True
        """
        return smallest_epsilon(
            lambda e: cls(epsilon=e, delta=delta, sensitivity=sensitivity), error, confidence, precision=1e-6
        )

    def __repr__(self) -> str:
        return (
            f"Gaussian(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}, grid={show(self.grid)}; "
            f"within {show(self.error(0.95))} at 95 %)"
        )
