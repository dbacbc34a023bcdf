"""The top-k mechanism: the k best candidates, in order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tacit import noise
from tacit.exact import Number, count, rational
from tacit.mechanisms._exponential import Exponential
from tacit.mechanisms._integer_mechanism import IntegerMechanism
from tacit.mechanisms._mechanism import confidence_level, figure, show
from tacit.mechanisms._selection import shortened
from tacit.parameters import Choice, Integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost


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
        Integer(1, len(steps), f"there are {len(steps):,} candidates", instead=len(steps)).read("k", self.k)
        steps, scale = shortened(steps, self.each.lattice.scale)
        if self.method == "one-shot":
            return [int(place) for place in noise.select_top(steps, self.k, scale)]
        left = list(range(len(steps)))
        return [left.pop(int(noise.select(steps[left], scale))) for _ in range(self.k)]

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent rankings (as indices), each at the full cost: for auditors only."""
        _, steps = self.each.read(value)
        groups = steps if steps.ndim == 2 else steps[None]
        drawn = np.array([[self._pick(row) for row in groups] for _ in range(count)], dtype=np.int64)
        return drawn if steps.ndim == 2 else drawn[:, 0]

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
