"""Thresholds: which of many questions lie above a noisy threshold, and which regions are split.

With the sparse vector mechanism only the few answers above a threshold cost. The splitting tree mechanism
finds privately where a map needs fine regions (PrivTree on integers).
"""

from __future__ import annotations

import json
import math
import os
import threading
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Set
from tacit.mechanisms._grid import add, default_grid, to_steps
from tacit.mechanisms._input_values import exact, read_integers, read_numbers, wrong_input
from tacit.mechanisms._mechanism import (
    IntegerMechanism,
    Mechanism,
    confidence_level,
    figure,
    fixed_width,
    half_width_of_sum,
    read_adjacency,
    read_monotone,
    show,
)
from tacit.mechanisms._noise_laws import LaplaceLaw, check_width
from tacit.mechanisms.additive._grid_noise import Laplace
from tacit.mechanisms.additive._lattice_noise import SMALLEST_SCALE, out_of_range
from tacit.parameters import Integer, Listed, Omitted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost


_NUMBERS = Listed("numbers", "[0, 1, 2]", least=0)


def _sequence(value: object) -> NDArray[Any]:
    """Read a sequence of numbers; the numbers are not shown, because they are private."""
    numbers = read_numbers(value)
    if not isinstance(numbers, np.ndarray) or numbers.ndim != 1:
        raise wrong_input("a sequence of numbers", numbers, fix=Code("[0, 1, 2]"))
    return numbers


@dataclass(frozen=True, init=False, repr=False, slots=True)
class SparseVector(Mechanism):
    """Answer for each question in turn whether its value is above a threshold; stop after `c` yeses.

    Guarantee: epsilon, pure, for the whole sequence of yes and no, however many noes; plus, where
    `value_epsilon` is given, the cost of releasing the values of the yeses by a Laplace mechanism with
    fresh noise.

    Argument: Lyu, Su, Li 2017, algorithm 1 (with the budget split of section 4.2). The threshold gets noise
    rho of scale D/e1 once; each answer gets fresh noise of scale 2cD/e2 (cD/e2 if the questions are
    monotone); a yes is noisy answer >= noisy threshold; e1 + e2 = epsilon. Moving rho by D pays e1 and
    makes every no at least as likely; given that, a yes needs its noise moved by at most 2D (D), which pays
    e2/c, and there are at most c yeses. All noise is integer noise, and D a whole number of grid steps, so
    the shifts are possible. What breaks it: no noise on the answers, noise without the factor c, no end
    after c yeses, releasing the noisy answer that was compared (the broken twins of `tests/`).

    Parameters
    ----------
    epsilon
        The promise for all yes and no answers.
    threshold
        Public.
    c
        How many yeses before it stops.
    sensitivity
        The most that one unit can change any answer.
    monotone
        Whether adding a unit moves all answers in the same direction, as with counts; only under add/remove.
    adjacency, grid
        As for `Exponential`.
    value_epsilon
        Also release the value of every yes, with fresh noise, for this much more in total.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.SparseVector(epsilon=2, threshold=1000, c=1, sensitivity=1)
    >>> m.release([3, 10, 5000, 7, 8000])
    [False, False, True]
    """

    epsilon: Fraction
    threshold: Fraction
    c: int
    sensitivity: Fraction
    monotone: bool
    adjacency: Adjacency
    grid: Fraction
    #: The noise of the threshold, and that of each answer.
    _laws: tuple[LaplaceLaw, LaplaceLaw]
    values: Laplace | None

    def __init__(
        self,
        epsilon: Number,
        *,
        threshold: Number,
        c: int = 1,
        sensitivity: Number,
        monotone: bool = False,
        adjacency: Adjacency = "add/remove",
        grid: Number | None = None,
        value_epsilon: Number | None = None,
    ) -> None:
        spent, movement, max_answers = (
            rational("epsilon", epsilon),
            exact("sensitivity", sensitivity),
            count("c", c, zero=False),
        )
        relation = read_adjacency(adjacency)
        one_way = read_monotone(monotone, relation)
        factor = (1 if one_way else 2) * max_answers
        # e1 : e2 = 1 : factor^(2/3) has the least error; any positive split is valid
        threshold_epsilon = spent / (1 + Fraction(round(factor ** (2 / 3) * 1000), 1000))
        if grid is None:
            step, steps = default_grid(movement, movement / threshold_epsilon)
        else:
            step = exact("grid", grid)
            steps = -(-movement // step)
        laws = LaplaceLaw(steps / threshold_epsilon), LaplaceLaw(factor * steps / (spent - threshold_epsilon))
        values = None
        if value_epsilon is not None:
            each = rational("value_epsilon", value_epsilon) / max_answers
            values = Laplace(epsilon=each, sensitivity=movement, grid=grid, adjacency=relation)
        for name, value in (
            ("epsilon", spent),
            ("threshold", exact("threshold", threshold, zero=True, negative=True)),
            ("c", max_answers),
            ("sensitivity", movement),
            ("monotone", one_way),
            ("adjacency", relation),
            ("grid", step),
            ("_laws", laws),
            ("values", values),
        ):
            object.__setattr__(self, name, value)

    @property
    def cost(self) -> Cost:
        """Pure epsilon, and the values' own cost where they are released."""
        from tacit.accounting import Cost

        answers = Cost.pure(self.epsilon, adjacency=self.adjacency)
        return answers if self.values is None else answers + self.c * self.values.cost

    def start(self) -> SparseVectorRun:
        """Start one run, for questions that depend on earlier answers; the whole run costs `cost` once."""
        return SparseVectorRun(self)

    def release(self, value: Any) -> list[Any]:
        """Answer a sequence of true values until `c` of them are above; later ones get no answer.

        Returns True and False, or where values are released, the noisy value instead of True.
        """
        numbers = _sequence(value if isinstance(value, np.ndarray) else _NUMBERS.read("value", value))
        run = self.start()  # only now: every value is read before any noise is drawn
        answers: list[Any] = []
        for number in numbers.tolist():
            if run.stopped:
                break
            answers.append(run.ask(number))
        return answers

    def release_many(self, value: object, count: int) -> NDArray[np.float64]:
        """Return `count` independent runs as rows: 1 above, 0 below, -1 not answered (for auditors only)."""
        numbers = _sequence(value)
        steps = np.asarray(to_steps(numbers, self.grid))
        bar = np.asarray(
            add(np.full(count, self.steps(self.threshold), dtype=np.int64), self._laws[0].draws(count))
        )
        shape = (count, len(steps))
        noisy = np.asarray(add(np.broadcast_to(steps, shape), self._laws[1].draws(shape)))
        above = np.greater_equal(noisy, bar[:, None]).astype(bool)
        before: NDArray[np.int64] = np.cumsum(above, axis=1) - above
        rows = np.where(before < self.c, above.astype(np.float64), -1.0)
        if self.values is not None:
            columns = np.stack([self.values.release_many(one, count) for one in numbers.tolist()], axis=1)
            rows = np.column_stack([rows, np.where(rows == 1, columns, 0.0)])
        return rows

    def release_next(self, value: Any, memory: bytes) -> tuple[list[int], bytes]:
        """Answer for more values of one run: 1 above, 0 below, -1 after the last yes; and the new memory.

        Parameters
        ----------
        value
            The next values, in order; there may be none.
        memory
            What the last call returned; empty at first. It is secret: it holds the noisy threshold.
        """
        Omitted("in a run that is stored").read("value_epsilon", self.values and self.values.epsilon)
        numbers = [read_numbers(one) for one in value]
        state = json.loads(memory) if memory else None
        run = SparseVectorRun(self, state)
        answers = [-1 if run.stopped else int(run.ask(one)) for one in numbers]
        secrets = {"bar": run._bar, "left": run._left}  # noqa: SLF001 - one class in two parts
        return answers, fixed_width(secrets)

    def to_json(self) -> dict[str, Any]:
        """Return the mechanism's name, its exact parameters and its cost as JSON data."""
        values = None if self.values is None else str(self.c * self.values.epsilon)
        return {
            "mechanism": "sparse-vector",
            "epsilon": str(self.epsilon),
            "threshold": str(self.threshold),
            "c": self.c,
            "sensitivity": str(self.sensitivity),
            "monotone": self.monotone,
            "grid": str(self.grid),
            "scales": [str(law.scale) for law in self._laws],
            "value_epsilon": values,
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words; `unit` is what one whole step is worth."""
        once, each = (figure(law.scale * self.grid * unit) for law in self._laws)
        return (
            f"sparse vector, discrete Laplace noise of scale {once} on the threshold, {each} on each answer"
        )

    def false_yes(self, gap: Number, *, queries: int) -> float:
        """Return how likely any of so many values gets a yes, each at most the threshold less a gap.

        The sum over the noise of the threshold is exact up to its far tail, which is counted as a yes.

        Examples
        --------
        >>> import tacit as tc
        >>> m = tc.mechanisms.SparseVector(epsilon=1, threshold=60, sensitivity=1, monotone=True, grid=1)
        >>> round(m.false_yes(19, queries=365), 4), round(m.false_yes(23, queries=365), 4)
        (0.042, 0.0079)
        """
        below = exact("gap", gap, zero=True) // self.grid
        return self._yes(int(below), count("queries", queries, zero=False))

    def true_yes(self, excess: Number) -> float:
        """Return how likely one value gets a yes that exceeds the threshold by so much (or more)."""
        above = exact("excess", excess, zero=True) // self.grid
        return self._yes(-int(above), 1, upper=False)

    def _yes(self, gap: int, queries: int, *, upper: bool = True) -> float:
        bar, answer = self._laws
        reach = bar.half_width(1 - Fraction(1, 10**15))
        chance = 0.0
        for k in range(-reach, reach + 1):
            shortfall = gap + k  # a yes is noise of at least this
            yes = answer.exceeds(shortfall - 1) / 2 if shortfall > 0 else 1 - answer.exceeds(-shortfall) / 2
            some = -math.expm1(queries * math.log1p(-yes)) if yes < 1 else 1.0
            chance += (bar.exceeds(abs(k) - 1) - bar.exceeds(abs(k))) / (2 if k else 1) * some
        return min(1.0, chance + (1e-15 if upper else 0.0))

    def steps(self, number: float | Fraction) -> int:
        """Return a number on the grid."""
        return to_steps(number, self.grid)

    def error(self, confidence: Number, *, queries: int) -> float:
        """Return a margin: every yes is truly above threshold - margin, every no below threshold + margin.

        With this confidence: the noise of the threshold and of `queries` answers each stay within their
        half-width; the error is shared evenly.
        """
        missed = (1 - confidence_level(confidence)) / (1 + count("queries", queries, zero=False))
        halves = sum(law.half_width(1 - missed) for law in self._laws)
        return float((halves + 1) * self.grid)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Many answers that move one way and one that moves the other."""
        bar, movement = float(self.threshold), float(self.sensitivity)
        other = 0.0 if self.monotone else movement
        return [bar] * 8 + [bar + other] * self.c, [bar + movement] * 8 + [bar] * self.c

    def __repr__(self) -> str:
        extra = "" if self.values is None else f", values for {show(self.c * self.values.epsilon)} more"
        return (
            f"SparseVector(epsilon={show(self.epsilon)}, threshold={show(self.threshold)}, c={self.c}{extra})"
        )


class SparseVectorRun:
    """One run of a `SparseVector`: questions one at a time, until it has stopped.

    Guarantee: at most `c` answers above the threshold, also where several threads share a run: they take
    turns. A run belongs to the process that started it, since a forked process has a copy of it with the
    same noisy threshold and would give as many answers again.
    """

    __slots__ = ("_bar", "_left", "_mechanism", "_process", "_turn")

    def __init__(self, mechanism: SparseVector, state: dict[str, int] | None = None) -> None:
        self._mechanism = mechanism
        self._left = mechanism.c if state is None else state["left"]
        self._bar = state["bar"] if state is not None else _noisy_bar(mechanism)
        self._process = (os.getpid(), _process)
        self._turn = threading.Lock()

    @property
    def stopped(self) -> bool:
        """Whether all yeses are used up."""
        return self._left == 0

    def ask(self, value: object) -> Any:
        """Answer one question; refuse after the last yes, and in every process but the one of the run."""
        if self._process != (os.getpid(), _process):  # before the lock, which may be held in the copy
            raise TacitError(
                "run-spent",
                "this run was started in another process",
                why="the promise holds for the answers of one process, not of two",
                fix="start a new run in this process, at its full cost",
            )
        number = read_numbers(value)
        if isinstance(number, np.ndarray):
            raise wrong_input("one number", number, fix=Code("ask(12)"))
        with self._turn:
            return self._answer(number)

    def _answer(self, number: float | Fraction) -> Any:
        m = self._mechanism
        if self.stopped:
            raise TacitError(
                "run-spent",
                f"this run has given its {m.c} answers above the threshold",
                why="the promise covers no more answers",
                fix="start a new run, at its full cost",
            )
        noisy = m.steps(number) + m._laws[1].draw()  # noqa: SLF001
        if noisy < self._bar:
            return False
        self._left -= 1
        return True if m.values is None else m.values.release(number)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a run cannot be copied or pickled: two copies would spend one budget twice")


def _noisy_bar(mechanism: SparseVector) -> int:
    return int(mechanism.steps(mechanism.threshold) + mechanism._laws[0].draw())  # noqa: SLF001 - one class in two parts


_process = object()  # a new one in every forked process: process numbers may be used again


def _forked() -> None:
    global _process  # noqa: PLW0603 - the one mark of this process
    _process = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


DEEPEST = 12  # the finest grid then has 2^24 cells
_DIGITS = 60  # of the decimal arithmetic behind decay and price; half of them are certain
_MAX_COUNT = 2**61  # counts beyond it become it: no sum with a decay and noise then overflows


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
        movement = count("sensitivity", sensitivity, zero=False)
        spent = rational("epsilon", epsilon)
        scale = Fraction(7 * movement, 3) / spent
        check_width(scale, power=50)
        if scale < SMALLEST_SCALE:
            raise out_of_range(scale)
        for name, value in (
            ("epsilon", spent), ("depth", levels), ("sensitivity", movement),
            ("theta", count("theta", theta)), ("adjacency", read_adjacency(adjacency)),
            ("scale", scale), ("decay", decay_of(scale)),
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
        cap = _MAX_COUNT >> (2 * self.depth)
        levels = [np.clip(finest, 0, cap).astype(np.int64)]
        for _ in range(self.depth):
            levels.append(levels[-1].reshape(len(levels[-1]) // 2, 2, -1, 2).sum(axis=(1, 3)))
        return levels[::-1]

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return how far the noise of a decision stays from 0; the value of a region may be off by this."""
        return half_width_of_sum(LaplaceLaw(self.scale), confidence_level(confidence), copies)

    @property
    def worst_pair(self) -> tuple[list[list[int]], list[list[int]]]:
        """All points in one cell, so many that the decisions on its path cost the price, and fewer."""
        peak = max(self.theta + 1 + (self.depth - 2) * self.decay, self.sensitivity)
        size = 2**self.depth
        grids = []
        for points in (peak, peak - self.sensitivity):
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
