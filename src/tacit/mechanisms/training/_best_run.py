"""The best of several runs, a mechanism of selection: a random number of runs, only the best is shown."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from tacit import noise
from tacit.exact import Number, count
from tacit.mechanisms._mechanism import show
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from tacit.accounting import Cost


class CandidateRuns(Protocol):
    """What a field hands to `BestRun`: it can run each candidate, any number of times, with fresh noise."""

    def run(self, place: int) -> tuple[int, Any]:
        """Run one candidate: return its noisy score, and its noisy result as JSON data.

        Score and result together cost at most what `BestRun` states for one run.
        """


@dataclass(frozen=True, init=False, repr=False)
class BestRun:
    """Run candidates, drawn uniformly, a random number of times, and release the run with the best score.

    Guarantee: `Cost.best_of` of one run with the logarithmic law (Papernot and Steinke 2022). The number of
    runs and the other runs are not released. The running time grows with the number of runs: do not publish
    it.

    Parameters
    ----------
    one
        What one run costs at most, whichever candidate it uses.
    candidates
        How many candidates there are.
    runs
        The mean number of runs, above 1.

    Examples
    --------
    >>> import tacit as tc
    >>> class Coins:
    ...     def run(self, place):
    ...         return place, f"candidate {place}"
    >>> BestRun(tc.Cost.zero(), candidates=1, runs=10).release(Coins())
    [0, 'candidate 0']
    """

    one: Cost
    candidates: int
    runs: Fraction
    #: The parameter of the logarithmic law: P(K = k) is proportional to (1 - gamma)^k / k.
    gamma: Fraction

    def __init__(self, one: Cost, *, candidates: int, runs: Number) -> None:
        from tacit.accounting import Cost

        mean = RealNumber(above=1, instead=10, why="it is the mean of a random number of runs").read(
            "runs", runs
        )
        [(law, _)] = Cost.best_of(Cost.pure(1), runs=mean).parts  # refuses a mean of 1 or less
        for name, attribute in (
            ("one", one),
            ("candidates", count("candidates", candidates, zero=False)),
            ("runs", mean),
            ("gamma", law.parameter),  # type: ignore[union-attr]
        ):
            object.__setattr__(self, name, attribute)

    @property
    def cost(self) -> Cost:
        """The cost of the best of a random number of runs."""
        from tacit.accounting import Cost

        return Cost.best_of(self.one, gamma=self.gamma)

    def release(self, value: CandidateRuns) -> list[Any]:
        """Draw the number of runs, run, and return the place and the result of the best; earlier ones win."""
        best: tuple[int, list[Any]] | None = None
        for _ in range(self.draw_runs()):
            candidate = int(noise.uniform_below(self.candidates))
            score, result = value.run(candidate)
            if best is None or score > best[0]:
                best = (score, [candidate, result])
        assert best is not None  # noqa: S101 - there is at least one run
        return best[1]

    def draw_runs(self) -> int:
        """Draw the number of runs exactly: a geometric k >= 1, accepted with probability 1 / k."""
        while True:
            runs = 1
            while not noise.bernoulli(self.gamma):
                runs += 1
            if noise.bernoulli(Fraction(1, runs)):
                return runs

    def to_json(self) -> dict[str, Any]:
        """Return the name, the law of the number of runs, and the cost."""
        return {
            "mechanism": "best-run",
            "candidates": self.candidates,
            "runs": str(self.runs),
            "gamma": str(self.gamma),
            "numerics": "exact",
            "cost": self.cost.to_json(),
        }

    def describe(self) -> str:
        """Return the mechanism in a few words."""
        return f"the best of about {float(self.runs):g} runs of {self.candidates:,} candidates"

    def __repr__(self) -> str:
        return f"BestRun({self.one!r}, candidates={self.candidates}, runs={show(self.runs)})"
