"""Cost, the central value of accounting: what a computation takes from a budget. Costs compose."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, SupportsIndex

from tacit.accounting import _laws
from tacit.accounting._adjacency import (
    ADD_REMOVE,
    REPLACE,
    Adjacency,
    check,
    check_local,
    holds_between_values,
    the_same,
)
from tacit.accounting._algebra import grouped
from tacit.accounting._budget import Budget, read_delta
from tacit.accounting._charge import charge
from tacit.accounting._constructors import Constructors
from tacit.accounting._json import VERSION, decode, encode
from tacit.accounting._law_fields import check_not_empty, checked_runs
from tacit.accounting._laws import Parts, canonical, merged
from tacit.accounting._numbers import exact_number, whole_number
from tacit.accounting._readings import Readings
from tacit.accounting._selection import gamma_for
from tacit.accounting.numeric import round_up
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.parameters import Choice, Instance, Share

if TYPE_CHECKING:
    from rich.table import Table

    from tacit.accounting._json import Json
    from tacit.exact import Number


_ADJACENCY: Final = Choice((ADD_REMOVE, REPLACE))


@dataclass(frozen=True, slots=True)
class Cost(Constructors, Readings):
    """The most that a computation reveals about one unit: a frozen value, built from laws, that composes.

    Guarantee
    ---------
    Every reading is a certified upper value (`bounds` also gives a certified lower value): for any two
    neighbouring datasets and both directions, the computation reveals at most what the reading says. Costs
    that are declared in advance add up, even if the *order and content* of the queries depend on earlier
    answers. Where the costs themselves depend on answers, a `Filter` enforces the budget.

    Parameters
    ----------
    parts
        Laws and how often each occurs. Most users start from a constructor such as `Cost.laplace`.
    adjacency
        ``"add/remove"``: neighbours differ by the presence of one unit. ``"replace"``: by the data of one
        unit. The adjacency is part of the value; costs under different adjacencies cannot be combined.

    Examples
    --------
    >>> gaussian = Cost.gaussian(sigma=25, sensitivity=1)
    >>> (800 * gaussian).rho
    0.64
    >>> Cost.pure(0.1) + Cost.pure(0.2) == Cost.pure(0.2) + Cost.pure(0.1)
    True
    """

    parts: Parts
    adjacency: Adjacency = ADD_REMOVE

    __array_ufunc__: ClassVar[None] = None  # so that NumPy's whole numbers multiply a cost

    def __post_init__(self) -> None:
        _ADJACENCY.read("adjacency", self.adjacency)
        object.__setattr__(self, "parts", canonical(self.parts))
        check(self.parts, self.adjacency)

    # -- algebra

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        if self.adjacency != other.adjacency:
            the_same([self.adjacency, other.adjacency])  # refuses
        total = object.__new__(Cost)  # each law was checked under this adjacency when its cost was made
        object.__setattr__(total, "parts", merged((*self.parts, *other.parts)))
        object.__setattr__(total, "adjacency", self.adjacency)
        return total

    def __radd__(self, other: object) -> Cost:
        if other == 0 and isinstance(other, int):  # sum([a, b]) starts from 0
            return self
        return NotImplemented

    def __mul__(self, times: SupportsIndex) -> Cost:
        if isinstance(times, Cost):
            return NotImplemented
        k = whole_number("times", times, zero=True)
        return Cost(tuple((law, k * often) for law, often in self.parts), self.adjacency)

    __rmul__ = __mul__

    @classmethod
    def parallel(cls, *costs: Cost) -> Cost:
        """Cost of computations on disjoint units: at every epsilon the largest delta of the branches.

        Each unit takes part in one branch, fixed by its data before anyone sees an answer. In sums, every
        combination of branches counts, so the reading is that of the worst unit; epsilons at different
        deltas are never compared. Refused under *replace*: a unit may move from one branch to another, and
        then both change. Equal branches read like one of them but stay a `parallel` cost, because they still
        say nothing about a unit whose data is replaced.

        Examples
        --------
        >>> hospitals = [Cost.pure(0.1), Cost.pure(0.3), Cost.pure(0.2)]
        >>> Cost.parallel(*hospitals).epsilon(delta=0)
        0.3
        """
        check_not_empty("costs", costs, "[a, b]")
        for cost in costs:
            cost = Instance(Cost, "Cost.parallel(a, b)").read("cost", cost)
        adjacency = the_same(cost.adjacency for cost in costs)
        if len(costs) == 1:
            return costs[0]
        check(((_laws.ParallelLoss(tuple(cost.parts for cost in costs)), 1),), adjacency)
        branches: set[Parts] = set()
        for cost in costs:
            match cost.parts:
                case ((_laws.ParallelLoss(inner), 1),):
                    branches.update(inner)
                case parts:
                    branches.add(parts)
        branches.discard(())  # a branch that reveals nothing is never the largest
        if not branches:
            return cls.zero(adjacency)
        return cls(((_laws.ParallelLoss(tuple(branches)), 1),), adjacency)

    @classmethod
    def best_of(
        cls,
        *candidates: Cost,
        runs: Number | None = None,
        gamma: Number | None = None,
        law: str = "logarithmic",
    ) -> Cost:
        """Cost of running candidates a random number of times and showing only the best run.

        Each run uses one candidate, drawn independently of the data, and the runs are independent. The best
        is chosen by a score that is part of the run, so that the candidate's cost covers it. The number of
        runs, the running time and the other runs stay hidden. Papernot and Steinke 2022.

        Parameters
        ----------
        candidates
            What one run of each candidate costs.
        runs
            The mean number of runs, above 1.
        gamma
            The parameter of the law itself, in place of ``runs``.
        law
            ``"logarithmic"`` (the cheapest from about 10 runs on), ``"geometric"``, or ``"poisson"`` (the
            cheapest for a few runs; with probability exp(-runs) nothing is run and nothing is shown).

        Examples
        --------
        >>> one = Cost.gaussian(sigma=4.2248, sensitivity=1)  # epsilon 1 at delta 1e-6
        >>> 1.79 < Cost.best_of(one, runs=10).epsilon(delta=1e-6) < 1.81
        True
        """
        for cost in candidates:
            cost = Instance(Cost, "Cost.best_of(a, b, runs=10)").read("cost", cost)
        if not candidates or (runs is None) == (gamma is None) or (law == "poisson" and runs is None):
            raise TacitError(
                "bad-parameter",
                "best_of needs at least one cost, and runs or gamma (but a Poisson law has no gamma)",
                fix=Code("Cost.best_of(a, b, runs=10)"),
            )
        adjacency = the_same(cost.adjacency for cost in candidates)
        checked_runs(law, Fraction(1, 2))
        if runs is None or law == "poisson":
            parameter = exact_number("runs" if gamma is None else "gamma", gamma if runs is None else runs)  # type: ignore[arg-type]
        else:
            parameter = gamma_for(law, exact_number("runs", runs))
        options = tuple(cost.parts for cost in candidates)
        if not any(options):
            return cls.zero(adjacency)
        return cls(((_laws.BestOfLoss(law, parameter, options), 1),), adjacency)

    def sampled(self, q: Number) -> Cost:
        """Cost when each unit takes part with probability q (Poisson), one draw for the whole cost.

        It holds under add/remove and is exact in both directions. Batches of fixed size and shuffled batches
        are not Poisson samples. The sample draws the unit of the cost: ``cost.group(2).sampled(q)`` draws
        couples together. Costs known only by rho or a Renyi curve are refused, because they do not define
        the distributions to mix.

        Examples
        --------
        >>> round(Cost.pure(1).sampled(0.05).epsilon(delta=0), 4)
        0.0824
        """
        rate = exact_number("q", q)
        Share(instead=0.01, why="it is a probability").read("q", q)
        match self.parts:
            case _ if rate == 1 or not self.parts:
                return self
            case ((_laws.SampledLoss(already, inner), 1),):
                return Cost(((_laws.SampledLoss(rate * already, inner), 1),), self.adjacency)
            case _:
                return Cost(((_laws.SampledLoss(rate, self.parts), 1),), self.adjacency)

    def shuffled(self, n: SupportsIndex, *, categories: SupportsIndex | None = None) -> Cost:
        """Cost when n local reports, each of this cost, arrive in random order; the result is under replace.

        The cost is read as that of one local report for *any two values* of the report, whatever its own
        adjacency: state it with the sensitivity between two values. It must be pure. Samples and parallel
        branches are refused, because what they guarantee about a unit that is added or removed does not hold
        for a value that is replaced. n is public. Feldman, McMillan and Talwar 2022.

        Randomized response among k answers hides better, by its own privacy blanket (Balle, Bell, Gascon and
        Nissim 2019): state ``categories=k`` here, or when the cost is made. The reports must *be* randomized
        response among k answers, each the truth with probability e^epsilon / (e^epsilon + k - 1) and else any
        other answer with equal chances; every other cost is refused. Someone must shuffle: whoever sees who
        sent which report, or the order of arrival, sees the local epsilon.

        Examples
        --------
        >>> Cost.randomized_response(1).shuffled(10_000).epsilon(delta=1e-6) < 0.1
        True
        >>> Cost.randomized_response(1).shuffled(10_000, categories=2).epsilon(delta=1e-6) < 0.0433
        True
        >>> Cost.randomized_response(1, categories=51).shuffled(10_000).epsilon(delta=1e-6) < 0.0104
        True
        """
        reports = whole_number("n", n)
        check_local(self.parts)
        whole = charge(self.parts)
        if whole.epsilon is None or whole.delta or not whole.epsilon:
            raise TacitError(
                "no-guarantee",
                "only reports with a pure, finite and positive epsilon can be shuffled",
                why="the proof needs a bound on the odds of every single report",
                fix=Code("Cost.randomized_response(1).shuffled(1000)"),
            )
        response = self._response(categories)
        if response is not None:
            return Cost(((_laws.ShuffledResponseLoss(reports, *response), 1),), REPLACE)
        return Cost(((_laws.ShuffledLoss(reports, whole.epsilon), 1),), REPLACE)

    def _response(self, categories: SupportsIndex | None) -> tuple[Fraction, int] | None:
        """Return epsilon and answers of one randomized response; refuse other costs if answers are stated."""
        stated = None if categories is None else whole_number("categories", categories)
        match self.parts:
            case ((_laws.CategoricalResponseLoss(epsilon, k), 1),) if stated in (None, k):
                return epsilon, k
            case ((_laws.RandomizedResponseLoss(epsilon), 1),) if stated == 2:
                return epsilon, 2
        if stated is None:
            return None
        raise TacitError(
            "no-guarantee",
            f"this cost is not the cost of one randomized response among {stated} answers",
            why="the bound needs reports whose wrong answers are all equally likely, not reports of the same "
            "epsilon",
            fix=Code(f"Cost.randomized_response(1, categories={max(2, stated)}).shuffled(1000)"),
        )

    def group(self, m: SupportsIndex) -> Cost:
        """Cost for m units together: a family of five is ``cost.group(5)``.

        Examples
        --------
        >>> Cost.pure(0.1).group(5).epsilon(delta=0)
        0.5
        """
        size = whole_number("m", m)
        if size == 1:
            return self
        return Cost(tuple((grouped(law, size), times) for law, times in self.parts), self.adjacency)

    def stated(self, *, delta: Number) -> Cost:
        """Return the cost as a plain (epsilon, delta) cost, which every budget in epsilon and delta accepts.

        A training run is charged this way: thousands of sampled steps, declared in advance, become one
        charge. At ``delta=0``, a cost with samples or branches stays a `parallel` cost: it covers a unit that
        is added or removed, so it cannot be `shuffled`.

        Examples
        --------
        >>> run = 1000 * Cost.gaussian(sigma=100, sensitivity=1)
        >>> run.stated(delta=1e-6).spend.delta
        Fraction(1, 1000000)
        """
        epsilon = round_up(Fraction(self.epsilon(delta=delta)), digits=12)
        plain = Cost.approximate(epsilon, delta, adjacency=self.adjacency)
        return (
            plain
            if read_delta(delta) or holds_between_values(self.parts)
            else Cost.parallel(plain, Cost.zero())
        )

    def fits(self, budget: Budget) -> bool:
        """Return whether this cost, declared in advance as a whole, stays within the budget (tight reading).

        Examples
        --------
        >>> (800 * Cost.gaussian(sigma=25, sensitivity=1)).fits(Budget(epsilon=7, delta=1e-7))
        True
        """
        whole = charge(self.parts)
        if budget.rho is not None:
            return whole.rho is not None and whole.rho <= budget.rho and whole.delta <= budget.delta
        assert budget.epsilon is not None  # noqa: S101 - a budget has one of the two
        if whole.epsilon is not None and whole.epsilon <= budget.epsilon and whole.delta <= budget.delta:
            return True
        if budget.delta == 0:
            return False
        return Fraction(self.delta(epsilon=budget.epsilon)) <= budget.delta

    # -- stored and shown

    def to_json(self) -> Json:
        """Return the cost as JSON data, exact and readable by every later version."""
        return {"version": VERSION, "adjacency": self.adjacency, "parts": encode(self.parts)}

    @classmethod
    def from_json(cls, data: object) -> Cost:
        """Read what `to_json` wrote.

        Examples
        --------
        >>> cost = Cost.pure(1).sampled(0.01)
        >>> Cost.from_json(cost.to_json()) == cost
        True
        """
        parts, adjacency = decode(data)
        return cls(parts, adjacency)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        from tacit.accounting._display import expression

        return expression(self.parts, self.adjacency)

    def _repr_html_(self) -> str:
        from tacit.accounting._display import html

        return html(self)

    def __rich__(self) -> Table:
        from tacit.accounting._display import table

        return table(self)
