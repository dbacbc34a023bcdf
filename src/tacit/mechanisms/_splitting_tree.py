"""The splitting tree mechanism: where a map needs fine regions, found privately (PrivTree on integers)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._grid_noise import SMALLEST_SCALE, out_of_range
from tacit.mechanisms._input_values import read_integers, wrong_input
from tacit.mechanisms._integer_mechanism import IntegerMechanism, half_width_of_sum
from tacit.mechanisms._mechanism import confidence_level, figure, read_adjacency, show
from tacit.mechanisms._noise_laws import LaplaceLaw, check_width
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost

DEEPEST = 12  # the finest grid then has 2^24 cells
_DIGITS = 60  # of the decimal arithmetic behind decay and price; half of them are certain
_MOST = 2**61  # counts beyond it become it: no sum with a decay and noise then overflows


@dataclass(frozen=True, init=False, repr=False, slots=True)
class SplittingTree(IntegerMechanism):
    """Split a square into quarters, and quarters again, where many points are; return the leaves.

    Guarantee: pure epsilon (the property `price`, at most `epsilon`), where one unit moves at most
    `sensitivity` points of the finest grid: k for a unit with k points, 2 k under replace.

    Argument (PrivTree; Zhang, Xiao and Xie 2016; docs/proofs/map_trees.md has the proof on integers): a
    region with n points at level i is split if max(n - i decay, theta - decay) plus discrete Laplace noise
    exceeds theta. One point changes the decisions on one path only, and there the values fall by at least
    decay from level to level. So at most one of them lies between the floor and theta, and the others lie
    ever farther above it, where a point changes the chance of a split less and less. The decisions cost
    2/scale + sum of ln((1 + c - c^(jd + 1)) / (1 + c - c^(jd))), c = exp(-1/scale), d = decay, j = 1, 2, ...
    With scale = 7/(3 epsilon) and decay = scale ln 4, rounded up, that is at most epsilon.

    Parameters
    ----------
    epsilon
        The promise for the whole tree.
    depth
        The deepest level, a public fact: the finest grid has 2^depth x 2^depth cells.
    sensitivity
        How many points one unit adds or removes at most; under replace, those that it removes and those that
        it adds.
    theta
        The least value that a region must exceed to be split, before noise.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> tree = tc.mechanisms.SplittingTree(epsilon=1, depth=3)
    >>> float(tree.scale), tree.decay, round(float(tree.price), 3)
    (2.3333333333333335, 4, 0.899)
    >>> import numpy as np
    >>> counts = np.zeros((8, 8), dtype=np.int64)
    >>> counts[0, 0] = 1_000
    >>> leaves = tree.release(counts)
    >>> [3, 0, 0] in leaves
    True
    """

    epsilon: Fraction
    depth: int
    sensitivity: int
    theta: int
    adjacency: Adjacency
    scale: Fraction
    decay: int

    def __init__(
        self,
        *,
        epsilon: Number,
        depth: int,
        sensitivity: int = 1,
        theta: int = 0,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        levels = Integer(1, DEEPEST, instead=8).read("depth", depth)
        moved = count("sensitivity", sensitivity, zero=False)
        spent = rational("epsilon", epsilon)
        scale = Fraction(7 * moved, 3) / spent
        check_width(scale, power=50)
        if scale < SMALLEST_SCALE:
            raise out_of_range(scale)
        for name, value in (
            ("epsilon", spent), ("depth", levels), ("sensitivity", moved), ("theta", count("theta", theta)),
            ("adjacency", read_adjacency(adjacency)), ("scale", scale), ("decay", decay_of(scale)),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def price(self) -> Fraction:
        """The exact price of all decisions, rounded up: at most epsilon."""
        return min(self.epsilon, self.sensitivity * price_of_path(self.scale, self.decay, self.depth))

    @property
    def cost(self) -> Cost:
        """Pure epsilon, of the exact price."""
        from tacit.accounting import Cost

        return Cost.pure(self.price, adjacency=self.adjacency)

    def release(self, value: object) -> list[list[int]]:
        """Return the leaves as lists of level, row and column, for the counts of the finest grid.

        A leaf of level i covers 2^(depth - i) x 2^(depth - i) cells of the finest grid. Each cell lies in
        one leaf.
        """
        return self._grow(self._pyramid(value), LaplaceLaw(self.scale).draws)

    def release_many(self, value: object, count: int) -> list[list[list[int]]]:
        """Return `count` independent trees of the same counts, each at the full cost: for auditors only."""
        levels = self._pyramid(value)
        draws = LaplaceLaw(self.scale).draws
        return [self._grow(levels, draws) for _ in range(count)]

    def probability(self, leaves: Sequence[Sequence[int]], value: object) -> float:
        """Return the chance of these leaves for the counts of the finest grid: for auditors only."""
        levels = self._pyramid(value)
        ends = {tuple(leaf) for leaf in leaves}
        chance = 1.0
        inside = {
            (level, row >> up, column >> up)
            for depth, row, column in ends
            for up, level in enumerate(range(depth, -1, -1))
        }
        for level, row, column in inside:
            if level < self.depth:
                split = _chance_of_split(self._above(levels[level][row, column], level), float(self.scale))
                chance *= 1 - split if (level, row, column) in ends else split
        return chance

    def _above(self, counts: Any, level: int) -> Any:
        """Return by how much the values of regions lie above theta, before the noise."""
        return np.maximum(counts - level * self.decay - self.theta, -self.decay)

    def _grow(
        self, levels: list[NDArray[np.int64]], draws: Callable[[tuple[int, ...]], NDArray[np.int64]]
    ) -> list[list[int]]:
        rows = columns = np.zeros(1, np.int64)
        leaves = []
        for level in range(self.depth + 1):
            split = np.zeros(len(rows), np.bool_)
            if level < self.depth:
                above = self._above(levels[level][rows, columns], level)
                split = above + draws(above.shape) > 0
            ends = np.column_stack((np.full(len(rows), level), rows, columns))[~split]
            leaves.extend(ends.tolist())
            quarters = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
            rows, columns = (
                (2 * parent[split][:, None] + quarters[:, side]).ravel()
                for side, parent in enumerate((rows, columns))
            )
        return leaves

    def _pyramid(self, value: object) -> list[NDArray[np.int64]]:
        """Return the counts of every level, the root first."""
        finest = np.asarray(read_integers(value))
        if finest.shape != (2**self.depth, 2**self.depth):
            must_be = f"a square of 2^{self.depth} rows and columns"
            raise wrong_input(must_be, finest, name="counts", fix=Set(depth=8))
        most = _MOST >> (2 * self.depth)
        levels = [np.clip(finest, 0, most).astype(np.int64)]
        for _ in range(self.depth):
            levels.append(levels[-1].reshape(len(levels[-1]) // 2, 2, -1, 2).sum(axis=(1, 3)))
        return levels[::-1]

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return how far the noise of a decision stays from 0; the value of a region may be off by this."""
        return half_width_of_sum(LaplaceLaw(self.scale), confidence_level(confidence), copies)

    @property
    def worst_pair(self) -> tuple[list[list[int]], list[list[int]]]:
        """All points in one cell, so many that the decisions on its path cost the price, and fewer."""
        most = max(self.theta + 1 + (self.depth - 2) * self.decay, self.sensitivity)
        size = 2**self.depth
        grids = []
        for points in (most, most - self.sensitivity):
            grid = [[0] * size for _ in range(size)]
            grid[0][0] = points
            grids.append(grid)
        return grids[0], grids[1]

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact parameters and the cost."""
        return {
            "mechanism": "splitting-tree",
            "depth": self.depth,
            "scale": str(self.scale),
            "decay": self.decay,
            "theta": self.theta,
            "sensitivity": self.sensitivity,
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        size = figure(self.scale * unit)
        return f"splitting tree of {self.depth} levels, discrete Laplace noise, scale {size}"

    def __repr__(self) -> str:
        return (
            f"SplittingTree(epsilon={show(self.epsilon)}, depth={self.depth}, "
            f"sensitivity={self.sensitivity}, scale={show(self.scale)}, decay={self.decay}; "
            f"exact price {show(self.price)})"
        )


@lru_cache(maxsize=1024)
def decay_of(scale: Fraction) -> int:
    """Return scale ln 4, rounded up: the last digits of the product are certain, and it is never whole."""
    with localcontext() as context:
        context.prec = _DIGITS
        exact = Decimal(scale.numerator) * Decimal(4).ln() / Decimal(scale.denominator)
        return int((exact * (1 + Decimal(10) ** (-_DIGITS // 2))).to_integral_value(ROUND_CEILING))


@lru_cache(maxsize=1024)
def price_of_path(scale: Fraction, decay: int, depth: int) -> Fraction:
    """Return what one point costs over all decisions on its path, rounded up to 12 decimals.

    Decisions fall on levels 0 to depth - 1. The two that cost most cost 1/scale each; the further ones cost
    ln((1 + c - c^(j decay + 1)) / (1 + c - c^(j decay))) (docs/proofs/map_trees.md, lemma 2).
    """
    with localcontext() as context:
        context.prec = _DIGITS
        rate = Decimal(scale.denominator) / Decimal(scale.numerator)
        c = (-rate).exp()
        total = min(depth, 2) * rate
        for j in range(1, depth - 1):
            far = (-rate * decay * j).exp()
            total += ((1 + c - far * c) / (1 + c - far)).ln()
        up = total * (1 + Decimal(10) ** (-_DIGITS // 2)) + Decimal(10) ** (-_DIGITS // 2)
        return Fraction(up.quantize(Decimal(1).scaleb(-12), ROUND_CEILING))


def _chance_of_split(above: int, scale: float) -> float:
    """Return P(above + noise > 0)."""
    c = math.exp(-1 / scale)
    if above <= 0:
        return math.exp(-(1 - above) / scale) / (1 + c)
    return 1 - math.exp(-above / scale) / (1 + c)
