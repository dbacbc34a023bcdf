"""Cost, the central value of accounting: what a computation takes from a budget. Costs compose.

A cost has a constructor for each law of noise and each kind of guarantee, certified readings (epsilon, delta,
rho, mu, Renyi, a ledger's charge), and a meaning: odds, bits, advantage, the chance of a large loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, SupportsIndex

from tacit.accounting import _laws, _worst_case
from tacit.accounting._algebra import (
    ADD_REMOVE,
    REPLACE,
    Adjacency,
    check,
    check_local,
    grouped,
    holds_between_values,
    the_same,
)
from tacit.accounting._budget import Budget, Spend, read_delta
from tacit.accounting._charge import charge, gamma_for, rounded_within, share_leak, too_little_noise
from tacit.accounting._display import words
from tacit.accounting._json import VERSION, decode, encode
from tacit.accounting._laws import (
    GaussianLoss,
    GDPLoss,
    ParallelLoss,
    Parts,
    canonical,
    check_not_empty,
    checked_runs,
    merged,
)
from tacit.accounting._renyi_curve import divergence_of_sum
from tacit.accounting.numeric import Bracket, exp_up, float_down, float_up, log_down, on_grid, round_up
from tacit.errors import TacitError
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Either, Set
from tacit.parameters import Choice, Instance, Needed, Probability, RealNumber, Share, exactly_one

if TYPE_CHECKING:
    from typing import Self

    from rich.table import Table

    from tacit.accounting._json import Json


_CURVE = Instance(Mapping, "curve={2: 0.1}", "orders with their divergences")
_ADJACENCY: Final = Choice((ADD_REMOVE, REPLACE))


@dataclass(frozen=True, slots=True)
class Cost:
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

    # -- made of noise or of a guarantee

    @classmethod
    def zero(cls, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Return the cost of revealing nothing."""
        return cls((), adjacency)

    @classmethod
    def laplace(
        cls,
        *,
        scale: Number,
        sensitivity: Number,
        dimension: SupportsIndex = 1,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> Self:
        """Return the cost of continuous Laplace noise, for teaching.

        A release charges the lattice law that it samples. For a vector (``dimension`` above 1, L1
        sensitivity), only its pure epsilon is known.

        Examples
        --------
        >>> Cost.laplace(scale=2, sensitivity=1).epsilon(delta=0)
        0.5
        """
        law = _laws.LaplaceLoss(rational("scale", scale), rational("sensitivity", sensitivity))
        if count("dimension", dimension, zero=False) > 1:
            return cls(((_laws.PureLoss(law.sensitivity / law.scale), 1),), adjacency)
        return cls(((law, 1),), adjacency)

    @classmethod
    def gaussian(cls, *, sigma: Number, sensitivity: Number, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Return the cost of continuous Gaussian noise on a number, or on a vector with an L2 sensitivity.

        Examples
        --------
        >>> Cost.gaussian(sigma=10, sensitivity=1).mu
        0.1
        """
        return cls(
            (
                (
                    _laws.GaussianLoss(rational("sigma", sigma), rational("sensitivity", sensitivity)),
                    1,
                ),
            ),
            adjacency,
        )

    @classmethod
    def discrete_laplace(
        cls,
        *,
        scale: Number,
        sensitivity: Number,
        dimension: SupportsIndex = 1,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> Self:
        """Return the cost of discrete Laplace noise on a whole number, in grid steps.

        At sensitivity 1 it equals randomized response. In a vector with L1 sensitivity 1, one number moves by
        1, so the cost is that of one number. With a larger L1 sensitivity and ``dimension`` above 1, only its
        pure epsilon is known.

        Examples
        --------
        >>> round(Cost.discrete_laplace(scale=1, sensitivity=1).rho, 3)
        0.462
        """
        law = _laws.DiscreteLaplaceLoss(rational("scale", scale), rational("sensitivity", sensitivity))
        if count("dimension", dimension, zero=False) > 1 and law.sensitivity > 1:
            return cls(((_laws.PureLoss(law.sensitivity / law.scale), 1),), adjacency)
        return cls(((law, 1),), adjacency)

    @classmethod
    def discrete_gaussian(
        cls,
        *,
        sigma: Number,
        sensitivity: Number,
        dimension: SupportsIndex = 1,
        shares: SupportsIndex = 1,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> Self:
        """Return the cost of discrete Gaussian noise on whole numbers, in grid steps.

        One number (``dimension=1``) has the curve of the discrete law. In a vector with an L2 sensitivity,
        several numbers move at once, and only rho = sensitivity^2 / (2 sigma^2) is known (Canonne, Kamath
        and Steinke 2020), so a vector reads as `Cost.zcdp` of this rho. Samples of it are read at whole Renyi
        orders, where a discrete vector has the values of a continuous one. Numbers move by whole steps, so
        the squared length of a move is whole: a sensitivity whose square is within 1e-12 of a whole number
        counts as its root, and any other square is rounded up (1.73 stands for the root of 3).

        With ``shares``, the noise is the sum of that many independent draws of this sigma, as when each of
        several hospitals adds its share. The sum is nearly one discrete Gaussian with the total variance. The
        difference is a delta: with ``dimension`` numbers and a sigma of 20 grid steps, it is below 1e-60.

        Examples
        --------
        >>> Cost.discrete_gaussian(sigma=8, sensitivity=1).rho == Cost.gaussian(sigma=8, sensitivity=1).rho
        True
        >>> Cost.discrete_gaussian(sigma=8, sensitivity=2**0.5, dimension=10).rho
        0.015625
        >>> Cost.discrete_gaussian(sigma=8, sensitivity=4, dimension=10, shares=4).spend.rho
        Fraction(1, 32)
        """
        spread, move = rational("sigma", sigma), rational("sensitivity", sensitivity)
        parties, numbers = count("shares", shares, zero=False), count("dimension", dimension, zero=False)
        if parties > 1:
            leak = share_leak(spread, parties, numbers)
            if leak >= 1:
                raise too_little_noise(spread)
            # t s / (t sigma)^2 = s / (t sigma^2), without a root; see `DiscreteGaussianVectorLoss`
            law = _laws.DiscreteGaussianVectorLoss(parties * spread, parties * _laws.whole_square(move))
            return cls(((law, 1), (_laws.ApproximateLoss(Fraction(0), leak), 1)), adjacency)
        if numbers == 1:
            return cls(((_laws.DiscreteGaussianLoss(spread, move), 1),), adjacency)
        squared = _laws.whole_square(move)
        if squared == 1:  # one number moves by 1
            return cls(((_laws.DiscreteGaussianLoss(spread, squared), 1),), adjacency)
        return cls(((_laws.DiscreteGaussianVectorLoss(spread, squared), 1),), adjacency)

    @classmethod
    def gaussian_shares(
        cls,
        *,
        sigma: Number,
        sensitivity: Number,
        shares: SupportsIndex,
        dimension: SupportsIndex,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> Self:
        """Return the cost of a sum of shares of discrete Gaussian noise that are many grid steps wide.

        Read as the cost of the continuous Gaussian, with its whole privacy curve, plus a delta. The delta
        falls with the fourth power of sigma: 1000 numbers with noise of a million grid steps need less than
        1e-20. `Cost.discrete_gaussian` is for narrower noise.

        Parameters
        ----------
        sigma
            The sigma of one share, in grid steps.
        sensitivity
            How far one unit can move the numbers together, in L2, in grid steps.
        shares, dimension
            How many shares are hidden in the sum, and how many numbers there are.

        Examples
        --------
        >>> shared = Cost.gaussian_shares(sigma=2**20, sensitivity=2**20, shares=9, dimension=1000)
        >>> whole = Cost.gaussian(sigma=3, sensitivity=1)
        >>> round(shared.epsilon(delta=1e-6), 6) == round(whole.epsilon(delta=1e-6), 6)
        True
        """
        spread, move = rational("sigma", sigma), rational("sensitivity", sensitivity)
        gaussian = rounded_within(
            spread, count("shares", shares, zero=False), count("dimension", dimension, zero=False)
        )
        if gaussian is None:
            raise too_little_noise(spread)
        wide_sigma, leak = gaussian
        return cls(
            ((_laws.GaussianLoss(wide_sigma, move), 1), (_laws.ApproximateLoss(Fraction(0), leak), 1)),
            adjacency,
        )

    @classmethod
    def randomized_response(
        cls, epsilon: Number, *, categories: SupportsIndex | None = None, adjacency: Adjacency = ADD_REMOVE
    ) -> Self:
        """Return the cost of one bit, reported truthfully with probability e^epsilon / (1 + e^epsilon).

        With ``categories``, cost of one of k answers, each wrong one as likely as the others: the truth has
        probability e^epsilon / (e^epsilon + k - 1). More categories reveal less.

        Examples
        --------
        >>> twenty = 100 * Cost.randomized_response(1, categories=20)
        >>> twenty.epsilon(delta=1e-6) < 0.5 * (100 * Cost.randomized_response(1)).epsilon(delta=1e-6)
        True
        """
        if categories is not None:
            law = _laws.CategoricalResponseLoss(rational("epsilon", epsilon), count("categories", categories))
            return cls(((law, 1),), adjacency)
        return cls(((_laws.RandomizedResponseLoss(rational("epsilon", epsilon)), 1),), adjacency)

    @classmethod
    def exponential(cls, epsilon: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Return the cost of the exponential mechanism: rho = epsilon^2/8.

        Its losses lie within an interval of length epsilon.

        Examples
        --------
        >>> Cost.exponential(1).rho
        0.125
        """
        return cls(((_laws.BoundedRangeLoss(rational("epsilon", epsilon)), 1),), adjacency)

    @classmethod
    def pure(cls, epsilon: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Return the cost of any epsilon-DP mechanism.

        Examples
        --------
        >>> (Cost.pure(0.1) + Cost.pure(0.2)).epsilon(delta=0)
        0.3
        """
        return cls(((_laws.PureLoss(rational("epsilon", epsilon)), 1),), adjacency)

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Return the cost of any (epsilon, delta)-DP mechanism; epsilon may be 0, and delta 0 is `Cost.pure`.

        Examples
        --------
        >>> leaks_all_with_probability_one_in_a_thousand = Cost.approximate(0, 0.001)
        """
        mass = read_delta(delta)
        if mass == 0:
            return cls.pure(epsilon, adjacency=adjacency)
        return cls(((_laws.ApproximateLoss(rational("epsilon", epsilon, zero=True), mass), 1),), adjacency)

    @classmethod
    def zcdp(cls, rho: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Return the cost of any rho-zCDP mechanism (zero-concentrated differential privacy)."""
        return cls(((_laws.ZCDPLoss(rational("rho", rho)), 1),), adjacency)

    @classmethod
    def renyi(cls, curve: Mapping[Number, Number], *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Return the cost of a mechanism known by Renyi divergences.

        They are given as ``{order: divergence}`` with orders above 1.

        Examples
        --------
        >>> Cost.renyi({2: 0.1, 8: 0.4}).renyi_divergence(4) <= 0.4
        True
        """
        curve = _CURVE.read("curve", curve)
        points = ((rational("order", a), rational("divergence", d)) for a, d in curve.items())
        return cls(((_laws.RenyiLoss(tuple(points)), 1),), adjacency)

    @classmethod
    def gdp(cls, mu: Number, *, adjacency: Adjacency = ADD_REMOVE) -> Self:
        """Return the cost of any mu-GDP mechanism (Gaussian differential privacy)."""
        return cls(((_laws.GDPLoss(rational("mu", mu)), 1),), adjacency)

    # -- composed

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
        k = count("times", times)
        return Cost(tuple((law, k * often) for law, often in self.parts), self.adjacency)

    __rmul__ = __mul__

    @classmethod
    def parallel(cls, *costs: Cost) -> Cost:
        """Return the cost of computations on disjoint units.

        At every epsilon it has the largest delta of the branches. Each unit takes part in one branch, fixed
        by its data before anyone sees an answer. In sums, every combination of branches counts, so the
        reading is that of the worst unit; epsilons at different deltas are never compared. Refused under
        *replace*: a unit may move from one branch to another, and then both change. Equal branches read like
        one of them but stay a `parallel` cost, because they still say nothing about a unit whose data is
        replaced.

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
        """Return the cost of running candidates a random number of times and showing only the best run.

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
        check_not_empty("candidates", candidates, "[a, b]")
        exactly_one("best_of", fix=Code("Cost.best_of(a, b, runs=10)"), runs=runs, gamma=gamma)
        if law == "poisson":
            Needed[Number](10, "for a Poisson law", why="it has no gamma").read("runs", runs)
        adjacency = the_same(cost.adjacency for cost in candidates)
        checked_runs(law, Fraction(1, 2))
        if runs is None or law == "poisson":
            parameter = rational("runs" if gamma is None else "gamma", gamma if runs is None else runs)  # type: ignore[arg-type]
        else:
            parameter = gamma_for(law, rational("runs", runs))
        options = tuple(cost.parts for cost in candidates)
        if not any(options):
            return cls.zero(adjacency)
        return cls(((_laws.BestOfLoss(law, parameter, options), 1),), adjacency)

    def sampled(self, q: Number) -> Cost:
        """Return the cost when each unit takes part with probability q (Poisson).

        One draw decides for the whole cost. It holds under add/remove and is exact in both directions.
        Batches of fixed size and shuffled batches are not Poisson samples. The sample draws the unit of the
        cost: ``cost.group(2).sampled(q)`` draws couples together. Costs known only by rho or a Renyi curve
        are refused, because they do not define the distributions to mix.

        Examples
        --------
        >>> round(Cost.pure(1).sampled(0.05).epsilon(delta=0), 4)
        0.0824
        """
        rate = rational("q", q)
        Share(instead=0.01, why="it is a probability").read("q", q)
        match self.parts:
            case _ if rate == 1 or not self.parts:
                return self
            case ((_laws.SampledLoss(already, inner), 1),):
                return Cost(((_laws.SampledLoss(rate * already, inner), 1),), self.adjacency)
            case _:
                return Cost(((_laws.SampledLoss(rate, self.parts), 1),), self.adjacency)

    def shuffled(self, n: SupportsIndex, *, categories: SupportsIndex | None = None) -> Cost:
        """Return the cost when n local reports, each of this cost, arrive in random order.

        The result is under replace. The cost is read as that of one local report for *any two values* of the
        report, whatever its own adjacency: state it with the sensitivity between two values. It must be pure.
        Samples and parallel branches are refused, because what they guarantee about a unit that is added or
        removed does not hold for a value that is replaced. n is public. Feldman, McMillan and Talwar 2022.

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
        reports = count("n", n, zero=False)
        check_local(self.parts)
        upper = charge(self.parts)
        if upper.epsilon is None or upper.delta or not upper.epsilon:
            raise TacitError(
                "no-guarantee",
                "only reports with a pure, finite and positive epsilon can be shuffled",
                why="the proof needs a bound on the odds of every single report",
                fix=Code("Cost.randomized_response(1).shuffled(1000)"),
            )
        response = self._response(categories)
        if response is not None:
            return Cost(((_laws.ShuffledResponseLoss(reports, *response), 1),), REPLACE)
        return Cost(((_laws.ShuffledLoss(reports, upper.epsilon), 1),), REPLACE)

    def _response(self, categories: SupportsIndex | None) -> tuple[Fraction, int] | None:
        """Return epsilon and answers of one randomized response; refuse other costs if answers are stated."""
        stated = None if categories is None else count("categories", categories, zero=False)
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
        """Return the cost for m units together: a family of five is ``cost.group(5)``.

        Examples
        --------
        >>> Cost.pure(0.1).group(5).epsilon(delta=0)
        0.5
        """
        size = count("m", m, zero=False)
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
        upper = charge(self.parts)
        if budget.rho is not None:
            return upper.rho is not None and upper.rho <= budget.rho and upper.delta <= budget.delta
        assert budget.epsilon is not None  # noqa: S101 - a budget has one of the two
        if upper.epsilon is not None and upper.epsilon <= budget.epsilon and upper.delta <= budget.delta:
            return True
        if budget.delta == 0:
            return False
        return Fraction(self.delta(epsilon=budget.epsilon)) <= budget.delta

    # -- read

    def epsilon(self, *, delta: Number) -> float:
        """Return the certified epsilon at delta; ``delta=0`` for costs with a finite pure epsilon.

        Examples
        --------
        >>> 6.1487 < (800 * Cost.gaussian(sigma=25, sensitivity=1)).epsilon(delta=1e-7) < 6.52
        True
        """
        mass = read_delta(delta)
        if mass == 0:
            return float_up(self._pure("epsilon at delta 0"))
        upper = _worst_case.epsilon_bounds(self.parts, mass).upper
        if upper == float("inf"):
            leak = charge(self.parts).delta
            raise TacitError(
                "no-guarantee",
                f"no finite epsilon holds at delta {float(mass):.6g}",
                why=f"with probability up to {float(leak):.6g}, this cost guarantees nothing" if leak else "",
                fix=Set(delta=float(f"{float(min(2 * leak, Fraction(1, 2))) if leak else 1e-6:.6g}")),
            )
        return upper

    def delta(self, *, epsilon: Number) -> float:
        """Return the certified delta at epsilon.

        Examples
        --------
        >>> Cost.pure(1).delta(epsilon=1)
        0.0
        """
        return _worst_case.delta_bounds(self.parts, rational("epsilon", epsilon, zero=True)).upper

    def bounds(self, *, delta: Number | None = None, epsilon: Number | None = None) -> Bracket:
        """Return certified lower and upper values: of epsilon at delta, or of delta at epsilon.

        ``method`` names the method. If no tight method converged, it names the next safe bound, which is
        never smaller.

        Examples
        --------
        >>> low, high, _ = Cost.gaussian(sigma=1, sensitivity=1).bounds(delta=1e-5)
        >>> low <= high
        True
        """
        exactly_one("an interval of a cost", fix=Set(delta=1e-6), delta=delta, epsilon=epsilon)
        if epsilon is not None:
            return _worst_case.delta_bounds(self.parts, rational("epsilon", epsilon, zero=True), lower=True)
        mass = read_delta(delta)  # type: ignore[arg-type] # one of the two is given
        if mass == 0:
            exact = self._pure("epsilon at delta 0")
            is_exact = not _worst_case.has_group(self.parts)  # for a group, only an upper bound is known
            return Bracket(float_down(exact) if is_exact else 0.0, float_up(exact), "closed form")
        return _worst_case.epsilon_bounds(self.parts, mass, lower=True)

    @property
    def rho(self) -> float:
        """The smallest known rho of zCDP, rounded up; refused if none is finite or if delta is not 0."""
        upper = charge(self.parts)
        if upper.rho is None or upper.delta:
            raise TacitError(
                "no-guarantee",
                f"this cost has no {'finite rho' if upper.rho is None else 'rho: its delta is not 0'}",
                why="rho bounds the Renyi divergence of every order and allows no exceptions, not even "
                "unlikely ones",
                fix=Code("cost.spend  # epsilon, delta and rho as a ledger charges them"),
            )
        return float_up(upper.rho)

    @property
    def mu(self) -> float:
        """The mu of Gaussian differential privacy; it is exact for Gaussian noise and mu-GDP costs only.

        Examples
        --------
        >>> (Cost.gdp(3) + Cost.gdp(4)).mu
        5.0
        """
        return _root_up(_mu2(self.parts))

    def renyi_divergence(self, order: Number) -> float:
        """Return the certified Renyi divergence of an order above 1, the larger of both directions.

        Examples
        --------
        >>> Cost.zcdp(0.1).renyi_divergence(3) < 0.300001
        True
        """
        exact = RealNumber(above=1, instead=2, why="at order 1 it is the Kullback-Leibler divergence").read(
            "order", order
        )
        return _worst_case.renyi_divergence(self.parts, float(exact))

    @property
    def spend(self) -> Spend:
        """What a ledger charges: epsilon, delta and rho, exact or rounded up; None if not finite.

        Examples
        --------
        >>> Cost.laplace(scale=2, sensitivity=1).spend.epsilon
        Fraction(1, 2)
        """
        return _spend_at(self.parts, ())

    def spend_at(self, orders: tuple[Fraction, ...], promise: Budget | None = None) -> Spend:
        """Return what a ledger charges to a filter with these Renyi orders: `spend` with its curve.

        With ``promise``, also the epsilon and delta that were promised. A promise that the cost does not keep
        is refused.

        Examples
        --------
        >>> Cost.gaussian(sigma=10, sensitivity=1).spend_at((Fraction(4),)).curve
        ((Fraction(4, 1), Fraction(1, 50)),)
        """
        return _spend_at(self.parts, orders) if promise is None else _promised_spend_at(self, orders, promise)

    def _pure(self, reading: str) -> Fraction:
        upper = charge(self.parts)
        if upper.epsilon is None or upper.delta:
            raise TacitError(
                "no-guarantee",
                f"{reading} is not finite: this cost is not pure",
                why="whatever epsilon you choose, a larger privacy loss has a small probability",
                fix=Either(
                    Code("cost.epsilon(delta=1e-6)"),
                    Code("cost.loss_exceeds(1)  # the chance of a loss above 1"),
                ),
            )
        return upper.epsilon

    # -- what it means

    @property
    def odds(self) -> float:
        """The largest factor by which the odds about one unit can move, whatever else is known: exp(epsilon).

        Examples
        --------
        >>> round(Cost.pure(0.01).odds, 5)
        1.01005
        """
        try:
            return float_up(exp_up(self._pure("the largest change of odds")))
        except OverflowError:
            return math.inf

    @property
    def bits(self) -> float:
        """The most that anyone can learn about one unit, in bits: epsilon / ln 2.

        Examples
        --------
        >>> round(Cost.pure(0.1).bits, 4)
        0.1443
        """
        return float_up(self._pure("the information in bits") / log_down(Fraction(2)))

    @property
    def kl(self) -> float:
        """The largest Kullback-Leibler divergence between neighbours' answers, in nats, rounded up.

        It is at most rho, because it is the limit of the Renyi divergences at order 1. It equals rho for
        Laplace noise, randomized response and Gaussian noise.

        Examples
        --------
        >>> round(Cost.laplace(scale=1, sensitivity=1).kl, 6)
        0.367879
        """
        return self.rho

    @property
    def advantage(self) -> float:
        """The most by which an attacker who guesses "in" or "out" beats a coin: delta at epsilon 0.

        It bounds P(says "in" when in) - P(says "in" when out).

        Examples
        --------
        >>> round(Cost.pure(1).advantage, 6)
        0.462117
        """
        return _worst_case.delta_bounds(self.parts, Fraction(0)).upper

    def loss_exceeds(self, t: Number) -> float:
        """Return the probability that the privacy loss exceeds t, rounded up: odds move by more than exp(t).

        It is not delta; it is larger than delta at the same epsilon. For noise with a stated law, it is the
        probability for a unit that moves the answer by the full sensitivity. For costs known only by a bound
        (pure, zCDP, ...), it is the most that the bound allows.

        Examples
        --------
        >>> Cost.pure(1).loss_exceeds(1)
        0.0
        """
        exact = rational("t", t, zero=True)
        return _worst_case.loss_exceeds(self.parts, exact)

    def tradeoff(self, fpr: Number) -> float:
        """Return the smallest miss rate of any attacker whose false-alarm rate is at most fpr, rounded down.

        A blind guess has the miss rate 1 - fpr. The closer the result is to that, the less an attack can do.
        It is computed from (epsilon, delta) at several epsilons: 1 - delta - e^epsilon fpr and
        e^-epsilon (1 - delta - fpr) are both bounds (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath
        2015).

        Examples
        --------
        >>> round(Cost.pure(1).tradeoff(0.1), 4)
        0.7282
        """
        rate = Probability(instead=0.05, why="it is a probability").read("fpr", fpr)
        return _worst_case.miss_rate(self.parts, float_up(rate))

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


@lru_cache(maxsize=4096)
def _promised_spend_at(cost: Cost, orders: tuple[Fraction, ...], promise: Budget) -> Spend:
    spend = _spend_at(cost.parts, orders)
    charged = Spend(spend.epsilon, spend.delta, spend.rho, spend.curve, promise)
    if charged.promise is not None and not cost.fits(charged.promise):
        raise TacitError(
            "bad-parameter",
            f"this cost does not keep the promise of {charged.promise}",
            why="a budget adds up what was promised, so every promise must hold",
            fix=Either(Code("cost.epsilon(delta=1e-6)  # an epsilon that it keeps"), Set(promise=None)),
        )
    return charged


@lru_cache(maxsize=4096)
def _spend_at(parts: Parts, orders: tuple[Fraction, ...]) -> Spend:
    upper = charge(parts)
    curve = [(order, _bounded(divergence_of_sum(parts, order))) for order in orders]
    return Spend(_bounded(upper.epsilon), on_grid(upper.delta), _bounded(upper.rho), curve)


def _mu2(parts: Parts) -> Fraction:
    """Return the sum of the mu^2 of Gaussian parts; of branches, the largest, because mu orders Gaussians."""
    squared = Fraction(0)
    for law, times in parts:
        match law:
            case GaussianLoss(sigma, sensitivity):
                squared += times * (sensitivity / sigma) ** 2
            case GDPLoss(mu):
                squared += times * mu**2
            case ParallelLoss(branches):
                squared += times * max(_mu2(branch) for branch in branches)
            case _:
                raise TacitError(
                    "no-guarantee",
                    f"mu is exact for Gaussian noise only, and this cost contains {words(law)}",
                    fix=Either(Code("cost.epsilon(delta=1e-6)"), Code("cost.rho")),
                )
    return squared


def _bounded(value: Fraction | None) -> Fraction | None:
    """Put a number on the ledger's grid; a number larger than any budget counts as not finite."""
    return None if value is None or value > 2**1000 else on_grid(value)


def _root_up(value: Fraction) -> float:
    """Return the smallest double whose decimal reading is at least the square root."""
    scaled = math.isqrt(value.numerator * value.denominator << 256)
    root = float(Fraction(scaled, value.denominator << 128))
    while Fraction(repr(root)) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root
