"""The selection mechanisms' common part: choosing a candidate by scores on a grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Set
from tacit.mechanisms._grid import default_grid, to_steps
from tacit.mechanisms._input_values import exact, read_integers, read_numbers
from tacit.mechanisms._integer_mechanism import IntegerMechanism
from tacit.mechanisms._mechanism import (
    confidence_level,
    figure,
    read_adjacency,
    read_monotone,
    show,
)
from tacit.mechanisms._noise_laws import LaplaceLaw
from tacit.parameters import Integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency


@dataclass(frozen=True, slots=True)
class Scale:
    """Scores on a public grid and the factor that divides them."""

    grid: Fraction
    steps: int  # sensitivity in grid steps
    scale: Fraction  # probabilities go with exp(score in steps / scale)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Selection(IntegerMechanism):
    """Pick one candidate by its score, or one in each of several groups.

    Scores are rounded to a public grid by floor(u/g + 1/2), which is part of the sensitivity: ceil(s/g)
    steps. Whole scores take ``grid=1`` and a whole sensitivity.

    Several groups have whole scores. If one unit lowers scores of group j by at most a_j and raises others by
    at most b_j, the sensitivity must be at least half the sum of all a_j + b_j; for monotone scores (a_j = 0)
    at least the sum of all b_j. The choices are independent, so their losses add up. Those of group j lie in
    an interval of length (a_j + b_j) / scale, and these lengths add up to at most epsilon
    (docs/proofs/mechanisms.md, "Several groups").
    """

    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool
    adjacency: Adjacency
    lattice: Scale
    _name: ClassVar[str]
    _words: ClassVar[str]

    def __init__(
        self,
        epsilon: Number,
        *,
        sensitivity: Number,
        monotone: bool = False,
        adjacency: Adjacency = "add/remove",
        grid: Number | None = None,
    ) -> None:
        spent, moved = rational("epsilon", epsilon), exact("sensitivity", sensitivity)
        near = read_adjacency(adjacency)
        one_way = read_monotone(monotone, near)
        factor = 1 if one_way else 2
        if grid is None:
            step, steps = default_grid(moved, factor * moved / spent)
        else:
            step = exact("grid", grid)
            steps = -(-moved // step)
        for name, value in (
            ("epsilon", spent),
            ("sensitivity", moved),
            ("monotone", one_way),
            ("adjacency", near),
            ("lattice", Scale(step, steps, LaplaceLaw(factor * steps / spent).scale)),
        ):
            object.__setattr__(self, name, value)

    @property
    def scale(self) -> Fraction:
        """What scores are divided by: 2 sensitivity / epsilon, without the 2 for monotone scores."""
        return self.lattice.scale * self.lattice.grid

    @abstractmethod
    def _pick(self, steps: NDArray[Any], size: int | None) -> int | NDArray[np.int64]:
        """Pick one index, or an array of `size` independent ones."""

    @abstractmethod
    def _chances(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of each candidate."""

    def release(self, value: object) -> Any:
        """Return the chosen candidate: the index for a sequence of scores, the key for a mapping.

        For a table of scores (one row per group, one column per candidate): an array with one index per
        group, all of them at one cost. The candidates are public: a mapping must list every candidate, not
        only those that occur in the data.
        """
        names, steps = self.read(value)
        if steps.ndim == 2:
            return np.array([int(self._pick(row, None)) for row in steps], dtype=np.int64)
        chosen = int(self._pick(steps, None))
        return chosen if names is None else names[chosen]

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent choices (as indices), each at the full cost: for auditors only."""
        _, steps = self.read(value)
        if steps.ndim == 2:
            return np.stack([np.asarray(self._pick(row, count)) for row in steps], axis=1)
        return cast("NDArray[np.int64]", self._pick(steps, count))

    def half_width(self, confidence: Number, *, copies: int = 1, candidates: int | None = None) -> int:
        """Return how far below the best, in whole steps, a choice among `candidates` may lie.

        The smallest number t of steps such that, whatever the scores, a candidate more than t steps below
        the best is chosen with probability at most 1 - confidence.
        """
        options = Integer(1, instead=100).read("candidates", candidates)
        if copies != 1:
            raise bad_parameter(
                "copies",
                "1 for a choice",
                copies,
                why="choices are not numbers, so several cannot be added up",
                fix=Set(copies=1),
            )
        return _furthest(self, confidence_level(confidence), options)

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact scale, sensitivity and grid of the scores, and the cost."""
        return {
            "mechanism": self._name,
            "scale": str(self.scale),
            "sensitivity": str(self.sensitivity),
            "grid": str(self.lattice.grid),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        return f"{self._words}, scale {figure(self.scale * unit)}"

    def probabilities(self, value: object) -> Any:
        """Return the probability of each candidate: an array for a sequence, a dict for a mapping of scores.

        For teaching and planning on public examples. On private scores these numbers are private too.
        """
        names, steps = self.read(value)
        chances = self._chances(steps)
        return chances if names is None else dict(zip(names, chances.tolist(), strict=True))

    def privacy_loss(self, output: int, a: object, b: object) -> float:
        """Return ln P(output | scores a) / P(output | scores b)."""
        _, steps_a = self.read(a)
        _, steps_b = self.read(b)
        place = count("output", output)
        if len(steps_a) != len(steps_b) or place >= len(steps_a):
            raise bad_parameter(
                "output", "the index of a candidate in both lists of scores", output, fix=Set(output=0)
            )
        return float(np.log(self._chances(steps_a)[place]) - np.log(self._chances(steps_b)[place]))

    def error(self, confidence: Number, *, candidates: int) -> float:
        """Return how far below the best the chosen score may lie, with at least this confidence.

        It holds for all scores: the half-width in grid steps, and one step for the rounding of two scores.
        """
        steps = self.half_width(confidence, candidates=candidates)
        return float((steps + 1) * self.lattice.grid)

    def chance_of_best(self, value: object) -> Any:
        """Return the chance that the best candidate is chosen, or one of those that tie; one for each group.

        For a forecast from public or supposed scores, before anything is spent. On private scores this number
        is private too. The error is below 1e-9 (of `NoisyMax` on a fine grid, about 1e-6).

        Examples
        --------
        >>> import tacit as tc
        >>> vote = tc.mechanisms.PermuteAndFlip(epsilon=0.5, sensitivity=1, monotone=True, grid=1)
        >>> round(vote.chance_of_best({"Aquila": 120, "Cygnus": 114, "Lyra": 94}), 4)
        0.9751
        """
        _, steps = self.read(value)
        if steps.ndim == 2:
            return np.array([self._best_chance(row) for row in steps])
        return self._best_chance(steps)

    @abstractmethod
    def _best_chance(self, steps: NDArray[Any]) -> float:
        """Return the chance that a candidate with the largest score is chosen."""

    def lead_for(self, confidence: Number, options: int) -> float:
        """Return how far the best must lie ahead of all others to be chosen with at least this confidence.

        It holds for all scores of so many options. For `Exponential` and `PermuteAndFlip` it is the smallest
        such lead on the grid: if all others tie, a smaller one is not enough.

        Examples
        --------
        >>> import tacit as tc
        >>> vote = tc.mechanisms.PermuteAndFlip(epsilon=0.5, sensitivity=1, monotone=True, grid=1)
        >>> vote.lead_for(0.95, options=2), vote.lead_for(0.95, options=10)
        (5.0, 9.0)
        """
        many = count("options", options, zero=False)
        if many == 1:
            return 0.0
        return float((self.half_width(confidence, candidates=many) + 1) * self.lattice.grid)

    @abstractmethod
    def _worse_than(self, steps: int, candidates: int) -> float:
        """Return the largest chance, over all scores, to choose more than `steps` below the best."""

    def read(self, value: object) -> tuple[list[Hashable] | None, NDArray[Any]]:
        """Read scores as candidates' names (None for a sequence) and whole grid steps."""
        names = None
        if isinstance(value, Mapping):
            names, value = list(value), list(value.values())
        groups = _has_groups(value)
        numbers = np.asarray(read_integers(value)) if groups else read_numbers(value)
        if not isinstance(numbers, np.ndarray) or numbers.ndim != 1 + groups or numbers.shape[-1] == 0:
            raise TacitError(
                "not-finite",
                "the scores are not a non-empty sequence of finite numbers",
                why="a choice needs at least one candidate, each with a score",
                fix=Code("release([3, 1, 2])"),
            )
        if groups and self.lattice.grid.numerator != 1:
            raise bad_parameter(
                "grid",
                "1, or 1 divided by a whole number, where several groups choose at once",
                str(self.lattice.grid),
                why="rounding the scores of every group would add to the sensitivity",
                fix=Set(grid=1),
            )
        return names, np.asarray(to_steps(numbers, self.lattice.grid))

    def _factor(self) -> str:
        return ", monotone" if self.monotone else ""

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(epsilon={show(self.epsilon)}, sensitivity={show(self.sensitivity)}{self._factor()})"


def _has_groups(value: object) -> bool:
    """Return whether these are scores of several groups, one row for each, by the shape alone."""
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value[0], list | tuple | np.ndarray)
    return getattr(value, "ndim", 1) == 2


@lru_cache(maxsize=1024)
def _furthest(mechanism: Selection, level: Fraction, candidates: int) -> int:
    """Search for the half-width of a choice."""
    allowed = float(1 - level)
    low, high = -1, 1
    while mechanism._worse_than(high, candidates) > allowed:  # noqa: SLF001 - a method, remembered
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        good = mechanism._worse_than(middle, candidates) <= allowed  # noqa: SLF001
        low, high = (low, middle) if good else (middle, high)
    return high


def shortened(steps: NDArray[Any], scale: Fraction) -> tuple[NDArray[Any], Fraction]:
    """Halve scores and scale while all scores are even: the same law, with smaller gaps."""
    if steps.dtype != np.int64:
        return steps, scale
    ones = int(np.bitwise_or.reduce(steps))
    halvings = (ones & -ones).bit_length() - 1 if ones else 0
    return (steps >> halvings, scale / 2**halvings) if halvings else (steps, scale)


def gaps(steps: NDArray[Any], scale: Fraction) -> NDArray[np.float64]:
    """Return how far each score lies below the best, in units of the scale, as floats."""
    if steps.dtype == object:
        best = max(steps.tolist())
        return np.array([float((best - one) / scale) for one in steps.tolist()])
    return cast("NDArray[np.float64]", (steps.max() - steps).astype(np.float64) / float(scale))
