"""The Gaussian mechanism, for numbers on a public grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._grid import FINE, default_grid, fine_grid
from tacit.mechanisms._grid_noise import GridNoise
from tacit.mechanisms._input_values import exact
from tacit.mechanisms._mechanism import check_delta, exactly_one, read_adjacency, show
from tacit.mechanisms._noise_laws import GaussianLaw
from tacit.mechanisms._roots import square_root_up
from tacit.parameters import Choice

if TYPE_CHECKING:
    from tacit.accounting import Adjacency, Cost

_PAD = 1 + Fraction(1, FINE)  # the lattice law needs a millionth more noise than the continuous law
_LARGEST_SHIFT = 100  # sensitivity / sigma up to which the continuous cost is proven for the lattice


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Gaussian(GridNoise):
    """Add Gaussian noise to a number, or to an array.

    Guarantee: the whole privacy curve of the Gaussian mechanism with mu = sensitivity / sigma (so also rho
    = mu^2 / 2), where neighbours move the number by at most `sensitivity`, or an array by at most
    `sensitivity` in L2.

    Argument: the value is rounded to a public grid, which moves it by at most N steps (an array of d
    numbers by s/g + 2 sqrt(d) <= N in L2). Discrete Gaussian noise on so fine a lattice is, up to a factor of
    1 +- exp(-20000), a randomised rounding of continuous Gaussian noise with 2^10 steps^2 less variance,
    whatever the dimension (docs/proofs/mechanisms.md, lemma 3); one part in 2^20 more sigma than charged
    covers both. On a coarse grid that you choose, the cost is that of the discrete Gaussian law itself (one
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
        ``"analytic"``: the smallest sigma (Balle and Wang 2018). ``"classic"``: the textbook formula, which
        is refused above epsilon 1.
    grid
        The public grid of the outputs; by default fine enough to be invisible. Arrays are rounded to it
        after the noise is added, unless you state their `size`.
    size
        With `grid`: the most numbers that are rounded to it before the noise is added and released together;
        1 for single numbers.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

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
    _own_grid: bool
    _size: int | None
    _law: GaussianLaw
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
        moved = exact("sensitivity", sensitivity)
        given = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
        check_delta(given, delta)
        Choice(("analytic", "classic")).read("calibration", calibration)
        together = None if size is None else count("size", size, zero=False)
        charge = _Charge(moved, read_adjacency(adjacency), *_own_lattice(moved, grid, together), together)
        match given:
            case "sigma":
                spread = rational("sigma", sigma)  # type: ignore[arg-type]
            case "rho":
                spread = moved * square_root_up(1 / (2 * rational("rho", rho)))  # type: ignore[arg-type]
            case _:
                spread = charge.calibrated(epsilon, delta, calibration)  # type: ignore[arg-type]
        step, steps = (charge.grid, charge.steps) if charge.grid is not None else default_grid(moved, spread)
        for name, value in (
            ("sensitivity", moved),
            ("sigma", spread),
            ("grid", step),
            ("_own_grid", grid is not None),
            ("_size", together),
            ("_law", _law(steps, spread, moved)),
            ("_cost", charge(spread)),
        ):
            object.__setattr__(self, name, value)
        self._check_size(spread)

    def lattice(self, size: int = 1) -> tuple[Fraction, GaussianLaw]:
        """Return the grid and the law, in grid steps, for `size` numbers released together."""
        if size <= 1 or self.on_own_grid(size):
            return self.grid, self._law
        slack = 2 * (math.isqrt(size) + 1)  # each step is within 1 of its number
        grid = fine_grid(min(self.sensitivity, self.sigma), slack, scale=self.sigma)
        return grid, _law(math.ceil(self.sensitivity / grid) + slack, self.sigma, self.sensitivity)

    def __repr__(self) -> str:
        return (
            f"Gaussian(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}, "
            f"grid={show(self.grid)}; within {show(self.error(0.95))} at 95 %)"
        )


def _law(steps: int, spread: Fraction, moved: Fraction) -> GaussianLaw:
    """Return the law in grid steps that hides a move of `moved`, which is at most so many steps."""
    return GaussianLaw(steps * spread / moved * _PAD)


def _own_lattice(moved: Fraction, grid: Number | None, together: int | None) -> tuple[Fraction | None, int]:
    """Return a grid of the user's own and the sensitivity in its steps; None and 0 where there is none."""
    if grid is None:
        return None, 0
    step = exact("grid", grid)
    slack = 0 if together is None or together == 1 else math.isqrt(together - 1) + 1
    return step, math.ceil(moved / step) + slack


@dataclass(frozen=True, slots=True)
class _Charge:
    """What noise of a given sigma costs: the continuous law on fine lattices, else the lattice law."""

    moved: Fraction
    adjacency: Adjacency
    grid: Fraction | None
    steps: int
    together: int | None

    def __call__(self, spread: Fraction) -> Cost:
        from tacit.accounting import Cost

        if self.moved / spread > _LARGEST_SHIFT:
            return Cost.zcdp(self.moved**2 / (2 * spread**2), adjacency=self.adjacency)
        if self.grid is None or spread / self.grid >= FINE:
            return Cost.gaussian(sigma=spread, sensitivity=self.moved, adjacency=self.adjacency)
        sampled = self.steps * spread / self.moved * _PAD
        if self.together == 1:
            return Cost.discrete_gaussian(sigma=sampled, sensitivity=self.steps, adjacency=self.adjacency)
        return Cost.zcdp(self.steps**2 / (2 * sampled**2), adjacency=self.adjacency)

    def calibrated(self, epsilon: Number, delta: Number, calibration: str) -> Fraction:
        """Return a sigma that keeps the promise, checked forward."""
        from tacit.accounting import Budget, calibrate, textbook

        if calibration == "analytic":
            target = Budget(epsilon=epsilon, delta=delta)
            found = calibrate(lambda s: self(self.moved * rational("sigma", s)), target)
            return self.moved * rational("sigma", found)
        unit = textbook.gaussian_sigma(epsilon, delta=delta, sensitivity=1)
        spread = self.moved * rational("sigma", unit)
        if self(spread).delta(epsilon=epsilon) > delta:
            raise bad_parameter(
                "grid",
                "fine enough for the classic calibration to keep its promise",
                None if self.grid is None else str(self.grid),
                why="the noise lies on the grid, and its cost differs from that of continuous noise",
                fix=Set(grid=None),
            )
        return spread
