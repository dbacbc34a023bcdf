"""Grid noise: the Laplace and Gaussian mechanisms for real numbers, rounded to a public grid first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._grid import FINE, Array, add, default_grid, fine_grid, from_steps, to_steps
from tacit.mechanisms._input_values import exact, in_floats, read_numbers
from tacit.mechanisms._mechanism import (
    check_delta,
    confidence_level,
    exactly_one,
    read_adjacency,
    show,
)
from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw, square_root_up
from tacit.mechanisms.additive._lattice_noise import (
    LARGEST_SCALE,
    SMALLEST_SCALE,
    LatticeNoise,
    coarsest,
    laplace_cost,
    out_of_range,
)
from tacit.parameters import Choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost


_PAD = 1 + Fraction(1, FINE)  # the lattice law needs a millionth more noise than the continuous law
_LARGEST_SHIFT = 100  # sensitivity / sigma up to which the continuous cost is proven for the lattice


class GridNoise(LatticeNoise):
    """Round to a public grid, add integer noise, return floats. All figures are those of the lattice law."""

    __slots__ = ()

    _rounding: ClassVar[Fraction] = Fraction(1, 2)
    _cost: Cost
    _own_grid: bool
    _size: int | None

    @property
    def cost(self) -> Cost:
        """The cost of the lattice law that is sampled."""
        return self._cost

    def on_own_grid(self, size: int) -> bool:
        """Return whether `size` numbers are rounded to `grid` before the noise is added.

        One number is, and as many as were stated. Rounding more of them to a coarse grid would add to the
        sensitivity: they are put on a fine grid, as by default, and the noisy numbers are rounded to `grid`.
        The choice depends on the number of entries, never on whether they lie on the grid.
        """
        if self._own_grid and self._size == 1 and size > 1:
            raise bad_parameter(
                "size",
                "at least the number of entries that are released together",
                1,
                why="rounding many numbers to a coarse grid adds to the sensitivity",
                fix=Set(size=size),
            )
        return size <= max(1, (self._size or 1) if self._own_grid else 1)

    def release(self, value: object) -> Any:
        """Return the value plus noise: a float for a number, an array of floats for an array.

        Rounds to the grid by floor(x/g + 1/2) first. The number of entries of an array is public. NaN and
        infinities are refused: give them a meaning with `clip` before. What lies beyond the largest float is
        released as the largest float.
        """
        numbers = read_numbers(value)
        if not isinstance(numbers, np.ndarray):
            grid, law = self.lattice()
            return from_steps(to_steps(numbers, grid) + law.draw(), grid)
        grid, law = self.lattice(numbers.size)
        steps = to_steps(numbers, grid, many=not self.on_own_grid(numbers.size), stored=in_floats(value))
        return self._shown(add(steps, law.draws(numbers.shape)), grid)

    def _shown(self, noisy: Array, grid: Fraction) -> NDArray[np.float64]:
        """Return noisy steps as floats, rounded to the grid that the user chose: this costs nothing."""
        if grid != self.grid and self._own_grid:
            noisy, grid = to_steps(noisy, self.grid / grid), self.grid
        return np.asarray(from_steps(noisy, grid))

    def release_many(self, value: object, count: int) -> NDArray[np.float64]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        numbers = read_numbers(value)
        if isinstance(numbers, np.ndarray):
            grid, law = self.lattice(numbers.size)
            steps = to_steps(numbers, grid, many=not self.on_own_grid(numbers.size), stored=in_floats(value))
        else:
            grid, law = self.lattice()
            steps = np.asarray(to_steps(numbers, grid))
        shape = (count, *steps.shape)
        return self._shown(add(np.broadcast_to(steps, shape), law.draws(shape)), grid)

    def _check_size(self, scale: Fraction) -> None:
        """Refuse noise that floats cannot show."""
        if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            raise out_of_range(scale)

    def _released_together(self, numbers: int) -> int:
        """Return how many numbers one release holds: with size=1 these are many single releases."""
        return 1 if self._size == 1 else numbers

    def _after_rounding(self, half: Fraction, grid: Fraction, level: Fraction) -> Fraction:
        """Return the half-width on the grid of the user's own."""
        if grid == self.grid or not self._own_grid:
            return half
        # rounded to it afterwards, or many single numbers
        single = self.lattice()[1].half_width(level) + self._rounding
        return max(half + self.grid / 2, single * self.grid)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Laplace(GridNoise):
    """Add Laplace noise to a number, or to an array.

    Guarantee: epsilon = sensitivity / scale, pure, where neighbours move the number by at most
    `sensitivity`, or all entries of an array together by at most `sensitivity` in L1.

    Argument: the value is rounded to a public grid g with s/g = N whole, so that it moves by at most N
    steps (an array of d numbers: N >= s/g + 2d). Discrete Laplace noise of scale N/epsilon then changes no
    probability by more than exp(epsilon). The cost is that of the lattice law; for an array the scalar law
    dominates (docs/proofs/mechanisms.md, lemma 1). Value, sensitivity and grid are read by one rule before
    anything is computed: a float is the decimal number that it is written as, and a float that holds a whole
    number is that number. So |x - y| <= s for the numbers as they are read gives a move of at most ceil(s/g)
    steps, in exact arithmetic.

    Parameters
    ----------
    epsilon, scale
        One of the two; scale = sensitivity / epsilon, in the units of the value.
    sensitivity
        The most that one unit can move the value, in L1.
    grid
        The public grid of the outputs; by default fine enough to be invisible (at least 2^20 steps in one
        scale). Arrays are rounded to it after the noise is added, unless you state their `size`.
    size
        With `grid`: the most numbers that are rounded to it before the noise is added and released together.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Laplace(epsilon=0.8, sensitivity=1)
    >>> float(m.scale), round(m.error(0.95), 3)
    (1.25, 3.745)
    >>> m.cost.epsilon(delta=0)
    0.8
    >>> low, high = m.interval(m.release(100), confidence=0.95)
    """

    sensitivity: Fraction
    epsilon: Fraction
    grid: Fraction
    _steps: int
    _own_grid: bool
    _size: int | None
    _law: LaplaceLaw
    _cost: Cost

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        scale: Number | None = None,
        sensitivity: Number,
        grid: Number | None = None,
        size: int | None = None,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        movement = exact("sensitivity", sensitivity)
        if exactly_one(epsilon=epsilon, scale=scale) == "epsilon":
            spent = rational("epsilon", epsilon)  # type: ignore[arg-type]
        else:
            spent = movement / rational("scale", scale)  # type: ignore[arg-type]
        entries = None if size is None else count("size", size, zero=False)
        if grid is None:
            step, steps = default_grid(movement, movement / spent)
        else:
            step = exact("grid", grid)
            steps = math.ceil(movement / step + (0 if entries in {None, 1} else entries))
        for name, value in (
            ("sensitivity", movement),
            ("epsilon", spent),
            ("grid", step),
            ("_steps", steps),
            ("_own_grid", grid is not None),
            ("_size", entries),
            ("_law", LaplaceLaw(steps / spent)),
            ("_cost", laplace_cost(spent, steps, read_adjacency(adjacency))),
        ):
            object.__setattr__(self, name, value)
        self._check_size(movement / spent)

    @property
    def scale(self) -> Fraction:
        """The noise scale b, in the units of the value."""
        return self._law.scale * self.grid

    def lattice(self, size: int = 1) -> tuple[Fraction, LaplaceLaw]:
        """Return the grid and the law, in grid steps, for `size` numbers released together."""
        if size <= 1 or self.on_own_grid(size):
            return self.grid, self._law
        charged = coarsest(self._steps)
        slack = 2 * size  # each step is within 1 of its number
        grid = fine_grid(self.sensitivity, max(slack, charged), scale=self.sensitivity / self.epsilon)
        steps = charged * math.ceil((self.sensitivity / grid + slack) / charged)  # refines what is charged
        return grid, LaplaceLaw(steps / self.epsilon)

    @property
    def textbook(self) -> LaplaceTextbook:
        """Figures of the continuous law, for teaching; the release follows the lattice law."""
        return LaplaceTextbook(self.sensitivity, self.epsilon)

    def __repr__(self) -> str:
        return (
            f"Laplace(epsilon={show(self.epsilon)}, sensitivity={show(self.sensitivity)}, "
            f"scale={show(self.scale)}, grid={show(self.grid)}; within {show(self.error(0.95))} at 95 %)"
        )


@dataclass(frozen=True, slots=True)
class LaplaceTextbook:
    """The continuous Laplace law, with the density exp(-|x|/b) / (2b). For teaching: nothing samples it.

    Examples
    --------
    >>> import tacit as tc
    >>> two_people = tc.mechanisms.Laplace(epsilon=0.5, sensitivity=100).textbook
    >>> round(two_people.exceeds(100), 4)  # two ages capped at 100 that sum to 100: off by 100 % or more
    0.6065
    """

    sensitivity: Fraction
    epsilon: Fraction

    @property
    def scale(self) -> float:
        """The scale b = sensitivity / epsilon."""
        return float(self.sensitivity / self.epsilon)

    @property
    def mean_absolute_error(self) -> float:
        """The expected size of the noise: b."""
        return self.scale

    @property
    def variance(self) -> float:
        """The variance 2 b^2."""
        return float(2 * (self.sensitivity / self.epsilon) ** 2)

    @property
    def kl(self) -> float:
        """The Kullback-Leibler divergence at full sensitivity: epsilon + exp(-epsilon) - 1, in nats."""
        epsilon = float(self.epsilon)
        return epsilon + math.expm1(-epsilon)

    def exceeds(self, distance: Number) -> float:
        """Return P(|noise| > distance) = exp(-distance / b)."""
        return math.exp(-rational("distance", distance, zero=True) * self.epsilon / self.sensitivity)

    def error(self, confidence: Number) -> float:
        """Return the half-width b ln(1 / (1 - confidence))."""
        return -self.scale * math.log(1 - confidence_level(confidence))

    def privacy_loss(self, output: Number, a: Number, b: Number) -> float:
        """Return the log-ratio of the densities at `output`: (|y - b| - |y - a|) / scale."""
        y, from_a, from_b = (rational("value", v, zero=True, negative=True) for v in (output, a, b))
        return float((abs(y - from_b) - abs(y - from_a)) * self.epsilon / self.sensitivity)


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
        movement = exact("sensitivity", sensitivity)
        promise = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
        check_delta(promise, delta)
        Choice(("analytic", "classic")).read("calibration", calibration)
        entries = None if size is None else count("size", size, zero=False)
        charge = _Charge(movement, read_adjacency(adjacency), *_own_lattice(movement, grid, entries), entries)
        match promise:
            case "sigma":
                spread = rational("sigma", sigma)  # type: ignore[arg-type]
            case "rho":
                spread = movement * square_root_up(1 / (2 * rational("rho", rho)))  # type: ignore[arg-type]
            case _:
                spread = charge.calibrated(epsilon, delta, calibration)  # type: ignore[arg-type]
        step, steps = (
            (charge.grid, charge.steps) if charge.grid is not None else default_grid(movement, spread)
        )
        for name, value in (
            ("sensitivity", movement),
            ("sigma", spread),
            ("grid", step),
            ("_own_grid", grid is not None),
            ("_size", entries),
            ("_law", _law(steps, spread, movement)),
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


def _law(steps: int, spread: Fraction, movement: Fraction) -> GaussianLaw:
    """Return the law in grid steps that hides a move of `movement`, which is at most so many steps."""
    return GaussianLaw(steps * spread / movement * _PAD)


def _own_lattice(movement: Fraction, grid: Number | None, entries: int | None) -> tuple[Fraction | None, int]:
    """Return a grid of the user's own and the sensitivity in its steps; None and 0 where there is none."""
    if grid is None:
        return None, 0
    step = exact("grid", grid)
    slack = 0 if entries is None or entries == 1 else math.isqrt(entries - 1) + 1
    return step, math.ceil(movement / step) + slack


@dataclass(frozen=True, slots=True)
class _Charge:
    """What noise of a given sigma costs: the continuous law on fine lattices, else the lattice law."""

    movement: Fraction
    adjacency: Adjacency
    grid: Fraction | None
    steps: int
    entries: int | None

    def __call__(self, spread: Fraction) -> Cost:
        from tacit.accounting import Cost

        if self.movement / spread > _LARGEST_SHIFT:
            return Cost.zcdp(self.movement**2 / (2 * spread**2), adjacency=self.adjacency)
        if self.grid is None or spread / self.grid >= FINE:
            return Cost.gaussian(sigma=spread, sensitivity=self.movement, adjacency=self.adjacency)
        sampled = self.steps * spread / self.movement * _PAD
        if self.entries == 1:
            return Cost.discrete_gaussian(sigma=sampled, sensitivity=self.steps, adjacency=self.adjacency)
        return Cost.zcdp(self.steps**2 / (2 * sampled**2), adjacency=self.adjacency)

    def calibrated(self, epsilon: Number, delta: Number, calibration: str) -> Fraction:
        """Return a sigma that keeps the promise, checked forward."""
        from tacit.accounting import Budget, calibrate, textbook

        if calibration == "analytic":
            target = Budget(epsilon=epsilon, delta=delta)
            multiple = calibrate(lambda s: self(self.movement * rational("sigma", s)), target)
            return self.movement * rational("sigma", multiple)
        unit = textbook.gaussian_sigma(epsilon, delta=delta, sensitivity=1)
        spread = self.movement * rational("sigma", unit)
        if self(spread).delta(epsilon=epsilon) > delta:
            raise bad_parameter(
                "grid",
                "fine enough for the classic calibration to keep its promise",
                None if self.grid is None else str(self.grid),
                why="the noise lies on the grid, and its cost differs from that of continuous noise",
                fix=Set(grid=None),
            )
        return spread
