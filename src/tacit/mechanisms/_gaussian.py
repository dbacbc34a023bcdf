"""The Gaussian mechanism, on a public grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.mechanisms._grid import FINE, default_grid, fine_grid
from tacit.mechanisms._grid_noise import GridNoise
from tacit.mechanisms._mechanism import Adjacency, check_delta, exactly_one, read_adjacency, show
from tacit.mechanisms._noise_laws import GaussianLaw
from tacit.mechanisms._numbers import exact
from tacit.mechanisms._roots import square_root_up

if TYPE_CHECKING:
    from tacit.accounting import Cost

__all__ = ["Gaussian"]

_PAD = 1 + Fraction(1, FINE)  # the lattice law needs a millionth more noise than the continuous one
_LARGEST_SHIFT = 100  # sensitivity / sigma up to which the continuous cost is proven for the lattice


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Gaussian(GridNoise):
    """Add Gaussian noise to a number, or to an array.

    Guarantee: the whole privacy curve of the Gaussian mechanism with mu = sensitivity / sigma (so also rho
    = mu^2 / 2), where neighbours move the number by at most `sensitivity`, or an array by at most
    `sensitivity` in L2.

    Argument: the value is rounded to a public grid, which moves it by at most N steps (an array of d
    numbers by s/g + sqrt(d) <= N in L2). Discrete Gaussian noise on so fine a lattice is, up to a factor of
    1 +- exp(-20000), a randomised rounding of continuous Gaussian noise with 2^10 steps^2 less variance,
    whatever the dimension (docs/proofs/mechanisms.md, lemma 3); one part in 2^20 more sigma than charged
    covers both. On a coarse grid of your own the cost is that of the discrete Gaussian law itself (one
    number), or its rho (several).

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
        ``"analytic"``: the smallest sigma (Balle and Wang 2018). ``"classic"``: the textbook formula,
        refused above epsilon 1.
    grid
        The public grid; by default fine enough to be invisible. On a grid of your own, arrays must lie on it
        already, unless you state their `size`.
    size
        With a grid of your own: the most numbers that are rounded and released together; 1 for single
        numbers.
    adjacency
        Which neighbours the sensitivity speaks of; carried by the cost.

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
    _size: int | None
    _cost: Cost

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
        adjacency: Adjacency = "add/remove",
    ) -> None:
        from tacit.accounting import Budget, Cost, calibrate, textbook

        moved = exact("sensitivity", sensitivity)
        given = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
        check_delta(given, delta)
        if calibration not in {"analytic", "classic"}:
            raise bad_parameter(
                "calibration", '"analytic" or "classic"', calibration, fix='calibration="analytic"'
            )
        near = read_adjacency(adjacency)
        together = None if size is None else count("size", size, zero=False)
        step, steps = None, 0
        if grid is not None:
            step = exact("grid", grid)
            slack = 0 if together in {None, 1} else math.isqrt(together - 1) + 1
            steps = math.ceil(moved / step) + slack

        def charge(spread: Fraction) -> Cost:
            if moved / spread > _LARGEST_SHIFT:
                return Cost.zcdp(moved**2 / (2 * spread**2), adjacency=near)
            if step is None or spread / step >= FINE:
                return Cost.gaussian(sigma=spread, sensitivity=moved, adjacency=near)
            sampled = steps * spread / moved * _PAD
            if together == 1:
                return Cost.discrete_gaussian(sigma=sampled, sensitivity=steps, adjacency=near)
            return Cost.zcdp(steps**2 / (2 * sampled**2), adjacency=near)

        match given:
            case "sigma":
                spread = rational("sigma", sigma)  # type: ignore[arg-type]
            case "rho":
                spread = moved * square_root_up(1 / (2 * rational("rho", rho)))  # type: ignore[arg-type]
            case _ if calibration == "classic":
                unit = textbook.gaussian_sigma(epsilon, delta=delta, sensitivity=1)  # type: ignore[arg-type]
                spread = moved * rational("sigma", unit)
            case _:
                target = Budget(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
                spread = moved * rational(
                    "sigma", calibrate(lambda s: charge(moved * rational("sigma", s)), target)
                )
        cost = charge(spread)
        if given == "epsilon" and cost.delta(epsilon=epsilon) > delta:  # type: ignore[arg-type,operator]
            raise bad_parameter(
                "grid",
                "fine enough for the classic calibration to keep its promise",
                grid,
                why="the lattice law is charged, not its continuous cousin",
                fix="grid=None",
            )
        if step is None:
            step, steps = default_grid(moved, spread)
        for name, value in (
            ("sensitivity", moved),
            ("sigma", spread),
            ("grid", step),
            ("_steps", steps),
            ("_own_grid", grid is not None),
            ("_size", together),
            ("_cost", cost),
        ):
            object.__setattr__(self, name, value)
        self._check_size(spread)

    def lattice(self, size: int = 1) -> tuple[Fraction, GaussianLaw]:
        """Return the grid and the law, in grid steps, for `size` numbers released together."""
        if self.on_own_grid(size):
            grid, steps = self.grid, self._steps
        else:
            grid = fine_grid(min(self.sensitivity, self.sigma), math.isqrt(size) + 1, scale=self.sigma)
            steps = math.ceil(self.sensitivity / grid) + math.isqrt(size - 1) + 1
        return grid, GaussianLaw(steps * self.sigma / self.sensitivity * _PAD)

    def __repr__(self) -> str:
        return (
            f"Gaussian(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}, "
            f"grid={show(self.grid)}; within {show(self.error(0.95))} at 95 %)"
        )
