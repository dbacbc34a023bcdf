"""The Laplace mechanism, for numbers on a public grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.exact import Number, count, rational
from tacit.mechanisms._grid import default_grid, fine_grid
from tacit.mechanisms._grid_noise import GridNoise
from tacit.mechanisms._input_values import exact
from tacit.mechanisms._mechanism import confidence_level, exactly_one, read_adjacency, show
from tacit.mechanisms._noise_laws import LaplaceLaw

if TYPE_CHECKING:
    from tacit.accounting import Adjacency, Cost

_CHARGED = 1024  # steps of the lattice that is charged: any refinement of it is dominated by it


@lru_cache(maxsize=1024)
def laplace_cost(epsilon: Fraction, steps: int, adjacency: Adjacency) -> Cost:
    """Return the cost of discrete Laplace noise of scale steps/epsilon on integers moved by `steps` in L1.

    A lattice dominates its refinements (docs/proofs/mechanisms.md, lemma 2). So a fine lattice is charged as
    the coarsest lattice of at least 1024 steps that it refines: the difference is below a millionth.
    """
    from tacit.accounting import Cost

    charged = coarsest(steps)
    return Cost.discrete_laplace(scale=charged / epsilon, sensitivity=Fraction(charged), adjacency=adjacency)


def coarsest(steps: int) -> int:
    """Halve while at least 1024 steps are left.

    Examples
    --------
    >>> coarsest(3 * 2**20), coarsest(7)
    (1536, 7)
    """
    while steps % 2 == 0 and steps // 2 >= _CHARGED:
        steps //= 2
    return steps


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
        moved = exact("sensitivity", sensitivity)
        if exactly_one(epsilon=epsilon, scale=scale) == "epsilon":
            spent = rational("epsilon", epsilon)  # type: ignore[arg-type]
        else:
            spent = moved / rational("scale", scale)  # type: ignore[arg-type]
        together = None if size is None else count("size", size, zero=False)
        if grid is None:
            step, steps = default_grid(moved, moved / spent)
        else:
            step = exact("grid", grid)
            steps = math.ceil(moved / step + (0 if together in {None, 1} else together))
        for name, value in (
            ("sensitivity", moved),
            ("epsilon", spent),
            ("grid", step),
            ("_steps", steps),
            ("_own_grid", grid is not None),
            ("_size", together),
            ("_law", LaplaceLaw(steps / spent)),
            ("_cost", laplace_cost(spent, steps, read_adjacency(adjacency))),
        ):
            object.__setattr__(self, name, value)
        self._check_size(moved / spent)

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
        y, one, two = (rational("value", v, zero=True, negative=True) for v in (output, a, b))
        return float((abs(y - two) - abs(y - one)) * self.epsilon / self.sensitivity)
