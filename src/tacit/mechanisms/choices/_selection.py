"""Selection: the candidate with the best score, by scores on a grid, or the k best.

With the exponential mechanism the chance of a candidate grows exponentially with its score. Permute-and-flip
is never worse at the same pure epsilon. Report noisy max chooses the candidate with the largest noisy score,
and shows nothing else. Top-k chooses the k best candidates, in order.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from tacit import noise
from tacit.bisection import first_integer
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Set
from tacit.mechanisms._grid import add, default_grid, to_steps
from tacit.mechanisms._input_values import exact, read_integers, read_numbers
from tacit.mechanisms._mechanism import (
    IntegerMechanism,
    confidence_level,
    figure,
    read_adjacency,
    read_monotone,
    show,
)
from tacit.mechanisms._noise_laws import LaplaceLaw
from tacit.parameters import Choice, Integer, Needed, Omitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost


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
        spent, movement = rational("epsilon", epsilon), exact("sensitivity", sensitivity)
        relation = read_adjacency(adjacency)
        one_way = read_monotone(monotone, relation)
        factor = 1 if one_way else 2
        if grid is None:
            step, steps = default_grid(movement, factor * movement / spent)
        else:
            step = exact("grid", grid)
            steps = -(-movement // step)
        for name, value in (
            ("epsilon", spent),
            ("sensitivity", movement),
            ("monotone", one_way),
            ("adjacency", relation),
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
        needed: Needed[int] = Needed(100, "for a choice: how many candidates there are")
        options = Integer(1, instead=100).read("candidates", needed.read("candidates", candidates))
        why = "choices are not numbers, so several cannot be added up"
        Omitted("for a choice", why, absent=1).read("copies", copies)
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
        index = count("output", output)
        if len(steps_a) != len(steps_b) or index >= len(steps_a):
            raise bad_parameter(
                "output", "the index of a candidate in both lists of scores", output, fix=Set(output=0)
            )
        return float(np.log(self._chances(steps_a)[index]) - np.log(self._chances(steps_b)[index]))

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
    worse_than = mechanism._worse_than  # noqa: SLF001 - a method, remembered
    return first_integer(lambda steps: worse_than(steps, candidates) <= allowed, -1, 1, growing=True)


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


class Exponential(Selection):
    """Pick a candidate with probability proportional to exp(epsilon u / (2 sensitivity)).

    Guarantee: epsilon, pure, and bounded range: all losses of one pair of neighbours lie in an interval of
    length epsilon, so it composes better than pure epsilon (rho = epsilon^2 / 8; Cesar and Rogers 2021).

    Argument: with scores in grid steps moving by at most D, P(r) = exp(u_r / t) / sum_j exp(u_j / t), t =
    2D/epsilon. Between neighbours the numerator changes by a factor within exp(+-D/t), and the sum, common
    to all candidates, too: the losses lie within c +- D/t, an interval of length epsilon, and never exceed
    2D/t = epsilon (McSherry and Talwar 2007). With monotone scores (adding a unit lowers none of them) all
    numerators move in one direction by at most D, so t = D/epsilon is enough; only under add/remove.

    Parameters
    ----------
    epsilon
        The promise.
    sensitivity
        The most that one unit can change any score. For several groups at once: the largest change of a score
        in each group, added up over the groups (more closely, as in the proofs: half the span of changes).
    monotone
        Whether adding a unit never lowers a score, as with counts and votes.
    adjacency
        What makes neighbours: ``"add/remove"`` or ``"replace"``.
    grid
        The public grid of scores; by default fine enough to be invisible.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Exponential(epsilon=0.5, sensitivity=1, monotone=True)
    >>> votes = {"Aquila": 120, "Cygnus": 95, "Lyra": 94, "Orion": 12}
    >>> {name: round(p, 4) for name, p in m.probabilities(votes).items()}
    {'Aquila': 1.0, 'Cygnus': 0.0, 'Lyra': 0.0, 'Orion': 0.0}
    >>> m.release(votes) in votes
    True
    """

    __slots__ = ()

    _name: ClassVar[str] = "exponential"
    _words: ClassVar[str] = "exponential mechanism"

    @property
    def cost(self) -> Cost:
        """Bounded range, epsilon."""
        from tacit.accounting import Cost

        return Cost.exponential(self.epsilon, adjacency=self.adjacency)

    def _pick(self, steps: NDArray[Any], size: int | None) -> int | NDArray[np.int64]:
        scores, scale = shortened(steps, self.lattice.scale)
        return noise.select(scores, scale) if size is None else noise.select(scores, scale, size)

    def _chances(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        weights = np.exp(-gaps(steps, self.lattice.scale))
        return np.asarray(weights / weights.sum())

    def _best_chance(self, steps: NDArray[Any]) -> float:
        gap = gaps(steps, self.lattice.scale)
        return int((gap == 0).sum()) / float(np.exp(-gap).sum())

    def _worse_than(self, steps: int, candidates: int) -> float:
        # one best, all others just too far: more of the best, or others further away, only help
        others = (candidates - 1) * math.exp(-float((steps + 1) / self.lattice.scale))
        return others / (1 + others)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Two candidates, the first rare: its odds move by nearly exp(epsilon)."""
        movement = self.sensitivity
        rare = max(Fraction(1), 4 - self.epsilon)
        behind = rare * (1 if self.monotone else 2) * movement / self.epsilon
        if self.monotone:
            return [0.0, float(behind)], [0.0, float(behind + movement)]
        return [0.0, float(behind)], [-float(movement), float(behind + movement)]


class PermuteAndFlip(Selection):
    """Go through the candidates in random order and take each with chance exp(-gap / t); the first one wins.

    Guarantee: epsilon, pure. It is **not** of bounded range: its losses spread over up to twice epsilon, so
    it must be charged as pure epsilon (an audit of the whole curve proves the cheaper charge wrong).

    Argument: it is report-noisy-max with exponential noise of scale t = 2D/epsilon (Ding et al. 2021). Fix
    the noise of all others: candidate r wins iff its own noise reaches a threshold, which neighbours move
    by at most 2D (D if the scores are monotone and t = D/epsilon), and P(noise >= x + 2D) >= exp(-2D/t)
    P(noise >= x) (McKenna and Sheldon 2020). All coins are independent of the order, hence the first taken
    in a random order is a uniform one of all that are taken: that is how it is drawn, with integer coins
    P(geometric >= gap) = exp(-gap / t).

    Parameters
    ----------
    epsilon, sensitivity, monotone, adjacency, grid
        As for `Exponential`.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.PermuteAndFlip(epsilon=1, sensitivity=1)
    >>> m.probabilities([0, 0]).tolist(), m.probabilities([2, 0]).round(4).tolist()
    ([0.5, 0.5], [0.8161, 0.1839])
    """

    __slots__ = ()

    _name: ClassVar[str] = "permute-and-flip"
    _words: ClassVar[str] = "permute-and-flip"

    @property
    def cost(self) -> Cost:
        """Pure epsilon."""
        from tacit.accounting import Cost

        return Cost.pure(self.epsilon, adjacency=self.adjacency)

    def _pick(self, steps: NDArray[Any], size: int | None) -> int | NDArray[np.int64]:
        gap = steps.max() - steps
        if size is None:
            candidates = np.flatnonzero(np.asarray(noise.geometric(self.lattice.scale, len(gap))) >= gap)
            return int(candidates[int(noise.uniform_below(len(candidates)))])
        coins = np.asarray(noise.geometric(self.lattice.scale, (size, len(gap)))) >= gap
        index = np.asarray(noise.uniform_below(coins.sum(axis=1)))
        return np.asarray(np.argmax(np.cumsum(coins, axis=1) > index[:, None], axis=1), dtype=np.int64)

    def _chances(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Integrate prod_{j != r} (1 - p_j x) over [0, 1] by exact quadrature; p_r times this is P(r)."""
        odds = np.exp(-gaps(steps, self.lattice.scale))
        nodes, weights = np.polynomial.legendre.leggauss(min(len(odds) // 2 + 1, 400))
        x, w = (nodes + 1) / 2, weights / 2
        missed = 1 - np.outer(odds, x)  # every entry is positive, since x < 1
        chances = odds * ((missed.prod(axis=0) / missed) @ w)
        return np.asarray(chances / chances.sum())

    def _best_chance(self, steps: NDArray[Any]) -> float:
        """Integrate m (1 - x)^(m-1) prod (1 - p_j x) over [0, 1], m candidates tie and j are the others.

        Between x and 2x the integrand falls by less than exp(-40) or is negligible, so 32 nodes on each such
        piece are exact up to rounding; before the first piece it is 1 up to 1e-12.
        """
        gap = gaps(steps, self.lattice.scale)
        each, times = np.unique(gap[gap < 60], return_counts=True)
        odds = np.exp(-each)
        best = int(times[0])
        if best == len(gap):
            return 1.0
        times = times - (odds == 1)  # one of those that tie is the one that wins
        pieces = math.ceil(math.log2(float((times * odds).sum()) + 2)) + 42
        ends = np.concatenate([[0.0], 2.0 ** -np.arange(pieces, -1, -1)])
        nodes, weights = np.polynomial.legendre.leggauss(32)
        x = ends[:-1, None] + np.diff(ends)[:, None] * (nodes + 1) / 2
        logs = sum(n * np.log1p(-p * x) for n, p in zip(times.tolist(), odds.tolist(), strict=True))
        integral = best * float((np.exp(logs) @ weights * np.diff(ends) / 2).sum())
        return min(1.0, integral)

    def _worse_than(self, steps: int, candidates: int) -> float:
        # one best and the others just too far: the best wins if it comes before all others that are taken
        p = math.exp(-float((steps + 1) / self.lattice.scale))
        if p == 0:  # too small for a double
            return 0.0
        wins = -math.expm1(candidates * math.log1p(-p)) / (candidates * p) if p < 1 else 1 / candidates
        return 1 - wins

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Two candidates that tie, and the same with one ahead by all that a neighbour can do."""
        movement = float(self.sensitivity)
        return ([0.0, 0.0], [0.0, movement]) if self.monotone else ([0.0, 0.0], [-movement, movement])


_EXACT_UP_TO = 512  # scales, in steps, up to which probabilities are summed on the lattice itself


class NoisyMax(Selection):
    """Add Laplace noise to every score and report which candidate is largest, never its value.

    Guarantee: epsilon, pure, for the choice alone. The winning value is not part of the output. To learn it,
    release it with a `Laplace` mechanism, at its own cost.

    Argument: fix the noise of all others and the order that breaks ties (a random one, independent of the
    scores). Candidate r wins iff its own noise reaches a threshold, which neighbours move by at most 2D
    steps (D if the scores are monotone), and integer noise of scale t has P(k >= x + 2D) >= exp(-2D/t) P(k
    >= x) with t = 2D/epsilon (Dwork and Roth 2014, claim 3.9). Only under add/remove do monotone scores need
    no factor 2.

    Parameters
    ----------
    epsilon, sensitivity, monotone, adjacency, grid
        As for `Exponential`.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.NoisyMax(epsilon=1, sensitivity=1, monotone=True)
    >>> m.release([3, 100, 5])
    1
    """

    __slots__ = ()

    _name: ClassVar[str] = "noisy-max"
    _words: ClassVar[str] = "report noisy max"

    @property
    def cost(self) -> Cost:
        """Pure epsilon."""
        from tacit.accounting import Cost

        return Cost.pure(self.epsilon, adjacency=self.adjacency)

    def _pick(self, steps: NDArray[Any], size: int | None) -> int | NDArray[np.int64]:
        shape = (1 if size is None else size, len(steps))
        noises = np.asarray(LaplaceLaw(self.lattice.scale).draws(shape))
        noisy = np.asarray(add(np.broadcast_to(steps, shape), noises))
        best = noisy == noisy.max(axis=1)[:, None]
        index = np.asarray(noise.uniform_below(best.sum(axis=1)))  # ties: the first in a random order
        chosen = np.asarray(np.argmax(np.cumsum(best, axis=1) > index[:, None], axis=1), dtype=np.int64)
        return int(chosen[0]) if size is None else chosen

    def _chances(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Sum over the winning value; exact on coarse lattices, to about 10^-6 on fine ones."""
        scale = float(self.lattice.scale)
        unit = max(1.0, scale / _EXACT_UP_TO)
        below = np.minimum(gaps(steps, self.lattice.scale) * scale / unit, 40 * scale / unit)
        a = np.exp(-unit / scale)
        reach = int(40 * scale / unit) + 2
        value = np.arange(-reach, reach + 1, dtype=np.float64)  # of the winner, from the best score
        far = value[None, :] + below[:, None]
        mass = (1 - a) / (1 + a) * a ** np.abs(far)
        at_most = np.where(
            far >= 0, 1 - a ** (np.maximum(far, 0) + 1) / (1 + a), a ** -np.minimum(far, 0) / (1 + a)
        )
        exact = len(steps) // 2 + 1  # nodes that integrate the polynomial of ties exactly; rare ties need few
        nodes, weights = np.polynomial.legendre.leggauss(min(exact, 50 if scale < 64 else 4))
        chances = np.zeros(len(steps))
        for x, w in zip((nodes + 1) / 2, weights / 2, strict=True):  # x: how early in the order of ties
            beaten = at_most - mass * x
            chances += w * (mass * (beaten.prod(axis=0) / beaten)).sum(axis=1)
        return np.asarray(chances / chances.sum())

    def _best_chance(self, steps: NDArray[Any]) -> float:
        return float(self._chances(steps)[steps == steps.max()].sum())

    def _worse_than(self, steps: int, candidates: int) -> float:
        # to win from this far behind, two noises must differ by as much; union over the others
        a = math.exp(-1 / float(self.lattice.scale))
        rest = -math.expm1(-1 / float(self.lattice.scale))
        gap = steps + 1
        per_pair = a**gap * rest / (1 + a) ** 2 * (gap + a / rest + (1 + a * a) / (rest * (1 + a)))
        return min(1.0, (candidates - 1) * per_pair)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Two candidates, the first behind: the farther, the closer to epsilon (and the rarer)."""
        movement = self.sensitivity
        rare = max(Fraction(1), 4 - self.epsilon)
        behind = rare * (1 if self.monotone else 2) * movement / self.epsilon
        if self.monotone:
            return [0.0, float(behind)], [0.0, float(behind + movement)]
        return [0.0, float(behind)], [-float(movement), float(behind + movement)]


@dataclass(frozen=True, init=False, repr=False, slots=True)
class TopK(IntegerMechanism):
    """Pick k different candidates, best first, by repeated exponential mechanisms.

    Guarantee: epsilon in total, as k bounded-range choices of epsilon/k each, composed.

    Argument: peeling picks one, removes it and picks again; the later choices depend only on scores and on
    what was already released. The one-shot method adds Gumbel noise once and sorts. It has the same law
    (Yellott 1977; Durfee and Rogers 2019), since exponential times are memoryless.

    Parameters
    ----------
    epsilon
        The promise for all k choices together.
    k
        How many to pick.
    sensitivity, monotone, adjacency, grid
        As for `Exponential`.
    method
        ``"one-shot"`` (fast) or ``"peeling"``; equal in law.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.TopK(epsilon=1, k=2, sensitivity=1, monotone=True)
    >>> m.release({"I10": 400, "E11": 250, "J45": 3, "F32": 1})
    ['I10', 'E11']
    """

    k: int
    method: str
    each: Exponential

    def __init__(
        self,
        epsilon: Number,
        *,
        k: int,
        sensitivity: Number,
        monotone: bool = False,
        adjacency: Adjacency = "add/remove",
        grid: Number | None = None,
        method: Literal["one-shot", "peeling"] = "one-shot",
    ) -> None:
        number = count("k", k, zero=False)
        Choice(("one-shot", "peeling")).read("method", method)
        each = Exponential(
            rational("epsilon", epsilon) / number,
            sensitivity=sensitivity,
            monotone=monotone,
            adjacency=adjacency,
            grid=grid,
        )
        for name, value in (("k", number), ("method", method), ("each", each)):
            object.__setattr__(self, name, value)

    @property
    def cost(self) -> Cost:
        """K times the bounded-range cost of epsilon/k."""
        return self.k * self.each.cost

    @property
    def scale(self) -> Fraction:
        """What scores are divided by in each choice."""
        return self.each.scale

    def release(self, value: object) -> Any:
        """Return k candidates, best first: indices for a sequence of scores, keys for a mapping.

        For a table of scores (one row per group): an array with one row of k indices per group, all of them
        at one cost. The sensitivity is then that of `Exponential` for several groups.
        """
        names, steps = self.each.read(value)
        if steps.ndim == 2:
            picked = [self._pick(row) for row in steps]
            return np.array(picked, dtype=np.int64).reshape(len(picked), self.k)
        chosen = self._pick(steps)
        return chosen if names is None else [names[place] for place in chosen]

    def _pick(self, steps: NDArray[Any]) -> list[int]:
        Integer(1, len(steps), f"the number of candidates is {len(steps):,}", instead=len(steps)).read(
            "k", self.k
        )
        steps, scale = shortened(steps, self.each.lattice.scale)
        if self.method == "one-shot":
            return [int(place) for place in noise.select_top(steps, self.k, scale)]
        candidates = list(range(len(steps)))
        return [candidates.pop(int(noise.select(steps[candidates], scale))) for _ in range(self.k)]

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent rankings (as indices), each at the full cost: for auditors only."""
        _, steps = self.each.read(value)
        groups = steps if steps.ndim == 2 else steps[None]
        choices = np.array([[self._pick(row) for row in groups] for _ in range(count)], dtype=np.int64)
        return choices if steps.ndim == 2 else choices[:, 0]

    def error(self, confidence: Number, *, candidates: int) -> float:
        """Return how far below the best left each choice may lie, all k together, with this confidence."""
        level = confidence_level(confidence)
        return self.each.error(1 - (1 - level) / self.k, candidates=candidates)

    def half_width(self, confidence: Number, *, copies: int = 1, candidates: int | None = None) -> int:
        """Return how far below the best left, in whole steps, each choice may lie, all k together."""
        level = 1 - (1 - confidence_level(confidence)) / self.k
        return self.each.half_width(level, copies=copies, candidates=candidates)

    def chance_of_best(self, value: object) -> Any:
        """Return the chance that the first choice is the best candidate; see `Exponential.chance_of_best`."""
        return self.each.chance_of_best(value)

    def lead_for(self, confidence: Number, options: int) -> float:
        """Return how far each of the k best must lie ahead of the next, for all k choices to be right.

        With this lead, all k are the best ones, in their order, with at least this confidence.

        Examples
        --------
        >>> import tacit as tc
        >>> top = tc.mechanisms.TopK(epsilon=1, k=2, sensitivity=1, monotone=True, grid=1)
        >>> top.lead_for(0.95, options=10)
        12.0
        """
        level = 1 - (1 - confidence_level(confidence)) / self.k
        return self.each.lead_for(level, options)

    def to_json(self) -> dict[str, Any]:
        """Return the name, k, the exact parameters of each choice, and the cost of all."""
        each = self.each.to_json()
        return {**each, "mechanism": "top-k", "k": self.k, "cost": self.cost.to_json()}

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        return f"exponential mechanism, scale {figure(self.scale * unit)}"

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """The pair of the exponential mechanism with k - 1 more candidates that move alike."""
        a, b = self.each.worst_pair
        return [a[0]] * self.k + a[1:], [b[0]] * self.k + b[1:]

    def __repr__(self) -> str:
        total = show(self.k * self.each.epsilon)
        return f"TopK(epsilon={total}, k={self.k}, sensitivity={show(self.each.sensitivity)}, {self.method})"
