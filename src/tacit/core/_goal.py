"""The goal of a plan: a total, an error to stay within or a risk to stay within, read in one place.

A risk is turned into a total by planning, which is free: the noise is that of the question, and the largest
total is taken at which the law of this very noise keeps the risk.

A large delta is warned of: the promise may fail completely with that probability.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from tacit.accounting import RISKS, TOTALS, Risk, amount_near, out_of_reach
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational, read_fraction
from tacit.fixes import Either, Set
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace
from tacit.parameters import Integer, Mapped, Needed, Omitted, RealNumber, exactly_one

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.accounting import Adjacency
    from tacit.core._plan import Plan
    from tacit.core._protocols import JSON


#: What a question's `plan` may take beside epsilon and the confidence.
DELTA, RHO, RHO_WITH_DELTA, WITHIN, SIZE, WEIGHTS = (
    "delta",
    "rho",
    "rho with delta",
    "within",
    "size",
    "weights",
)
#: What most questions take: epsilon, (epsilon, delta) or rho.
ANY_TOTAL = frozenset({DELTA, RHO})
_SIZE = Integer(1, 10**300, instead=1000)  # rows; errors are divided by it as floats
_CONFIDENCE = Fraction(95, 100)
_BETWEEN_0_AND_1 = RealNumber(above=0, below=1, instead=0.95)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a user gives to ``plan``: a total, an error or a risk, and how often intervals cover.

    Parameters
    ----------
    epsilon, delta, rho
        The total: epsilon, (epsilon, delta), rho or (rho, delta).
    within
        Instead of a total: the error to stay within, of all columns or of each table.
    confidence
        How often each interval covers the noise.
    size
        A public guess of the number of rows in each group; used for planning only.
    weights
        How much of the budget each column gets, relative to the others.
    risk
        Instead of a total: what an attacker may achieve with the plan. No draft gets such a goal: `planned`
        turns it into a total first.
    total
        Of a risk: whether the total is an ``epsilon`` or a ``rho``.

    Examples
    --------
    >>> goal = Goal.read(epsilon=1)
    >>> goal.noise(l1=2, l2_squared=2).describe()
    'discrete Laplace, scale 2'
    >>> Goal.read(rho=0.125).noise(l1=2, l2_squared=1).describe()
    'discrete Gaussian, sigma 2'
    >>> goal.part(Fraction(1, 4)).promised
    {'epsilon': Fraction(1, 4)}
    """

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    within: Any = None
    confidence: Fraction = _CONFIDENCE
    size: int | None = None
    weights: Mapping[str, Fraction] | None = None
    risk: Risk | None = None
    total: str = "epsilon"

    @classmethod
    def read(
        cls,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        within: Any = None,
        confidence: Number = _CONFIDENCE,
        size: int | None = None,
        weights: Mapping[str, Number] | None = None,
        advantage: Number | None = None,
        attack: tuple[Number, Number] | None = None,
        belief: tuple[Number, Number] | None = None,
        total: str | None = None,
        takes: frozenset[str] = ANY_TOTAL,
    ) -> Self:
        """Read a goal, or refuse with what is wrong in it.

        Parameters
        ----------
        epsilon, delta, rho, within, confidence, size, weights, total
            See the class.
        advantage, attack, belief
            A risk; see `tacit.accounting.Risk`.
        takes
            What the question can be planned with beside epsilon and the confidence: ``delta``, ``rho``,
            ``rho with delta``, ``within``, ``size``, ``weights``.
        """
        level = _BETWEEN_0_AND_1.read("confidence", confidence)
        if not 0 < float(level) < 1:  # a fraction next to 1 is refused, too
            _BETWEEN_0_AND_1.read("confidence", float(level))
        rows = None if size is None else _SIZE.read("size", size)
        risks = {"advantage": advantage, "attack": attack, "belief": belief}
        totals = {"epsilon": epsilon, "rho": rho, "within": within, **risks}
        _check_one_total({name: value for name, value in totals.items() if value is not None}, takes)
        for name, value in (("delta", delta or None), ("size", size), ("weights", weights)):
            if value is not None and name not in takes:
                _refuse_not_taken(name, value)
        in_rho = rho is not None or total == "rho"
        small = _read_delta(delta, takes, in_rho=in_rho and belief is None)
        risk = _read_risk(risks, small)
        with_delta = RHO_WITH_DELTA in takes or not in_rho
        return cls(
            None if epsilon is None else rational("epsilon", epsilon),
            small if with_delta else Fraction(0),  # of a belief, it is the chance of an exception
            None if rho is None else rational("rho", rho),
            within,
            level,
            rows,
            None if weights is None else _read_weights(weights),
            risk,
            _read_total(total, risk, takes),
        )

    def at(self, amount: Fraction) -> Self:
        """Return the goal with this total in place of the risk."""
        if self.total == "rho":
            return replace(self, risk=None, total="epsilon", rho=amount)
        return replace(self, risk=None, epsilon=amount)

    def planned(self, plan_of: Callable[[Goal], Plan[Any]]) -> Plan[Any]:
        """Return the plan of the largest total that keeps the risk; without a risk, the plan of this goal.

        Guarantee: the risk is met by the certified reading of the cost of the plan that is returned. The
        plan is the one that its total alone gives: it has the same hash and the same document.

        Parameters
        ----------
        plan_of
            Plans for a goal with a total.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> plan = visits.agg(n=tc.count()).plan(advantage=0.05)
        >>> plan == visits.agg(n=tc.count()).plan(epsilon=plan.promised["epsilon"])
        True
        """
        risk = self.risk
        if risk is None:
            return plan_of(self)
        *others, final = self._with_deltas(risk)
        for goal in others:
            with suppress(TacitError):  # what the last one refuses is said
                plan = _planned_within(goal, risk, plan_of)
                if not plan.cost.spend.delta:
                    return plan
        return _planned_within(final, risk, plan_of)

    def _with_deltas(self, risk: Risk) -> list[Goal]:
        """Return the goals to try one after the other.

        The delta of a belief is the probability of an exception. Where a mechanism has a delta of its own, as
        the choice of private groups has, an answer passes the belief more often than that, and the plan gets
        a smaller delta.
        """
        if not (risk.exception and self.delta):
            return [self]
        part = float(risk.exception) * -math.expm1(-risk.loss) / 2
        smaller = replace(self, delta=Fraction(f"{part:.3g}"))
        return [replace(self, delta=Fraction(0)) if self.total == "rho" else self, smaller]

    @property
    def promised(self) -> dict[str, Fraction]:
        """What the plan promises in total: the parts that are not zero."""
        parts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in parts.items() if value}

    def part(self, share: Fraction) -> Self:
        """Return the goal of one step that gets a share of the total."""
        if share == 1:
            return self
        return replace(
            self,
            epsilon=None if self.epsilon is None else self.epsilon * share,
            delta=self.delta * share,
            rho=None if self.rho is None else self.rho * share,
        )

    def noise(
        self, *, l1: int, l2_squared: int, adjacency: Adjacency = "add/remove"
    ) -> DiscreteLaplace | DiscreteGaussian:
        """Return the noise for integers that one unit moves by ``l1``, or by the root of ``l2_squared``.

        With rho it is Gaussian, with epsilon alone Laplace; with epsilon and delta whichever has the smaller
        error.
        """
        if self.rho is not None:
            return DiscreteGaussian(rho=self.rho, sensitivity_squared=l2_squared, adjacency=adjacency)
        assert self.epsilon is not None  # noqa: S101 - read checks it
        laplace = DiscreteLaplace(epsilon=self.epsilon, sensitivity=l1, adjacency=adjacency)
        if not self.delta:
            return laplace
        gaussian = DiscreteGaussian(
            epsilon=self.epsilon, delta=self.delta, sensitivity_squared=l2_squared, adjacency=adjacency
        )
        narrower = gaussian.half_width(self.confidence) < laplace.half_width(self.confidence)
        return gaussian if narrower else laplace

    def to_json(self) -> dict[str, JSON]:
        """Return the total and the confidence as JSON, numbers exactly."""
        return {
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": str(self.delta),
            "rho": None if self.rho is None else str(self.rho),
            "confidence": str(self.confidence),
        }

    @classmethod
    def from_json(cls, document: Any, takes: frozenset[str] = ANY_TOTAL) -> Self:
        """Read a total and a confidence back; whatever else the document holds is not read."""
        numbers = ("epsilon", "delta", "rho", "confidence")
        exact = {name: None if document[name] is None else read_fraction(document[name]) for name in numbers}
        return cls.read(**exact, takes=takes)  # type: ignore[arg-type]


def _planned_within(goal: Goal, risk: Risk, plan_of: Callable[[Goal], Plan[Any]]) -> Plan[Any]:
    """Return the plan of the largest total at which the law of its own noise keeps a risk."""
    plans: dict[Fraction, Plan[Any]] = {}

    def used(amount: Fraction) -> float:
        try:
            plans[amount] = plan_of(goal.at(amount))
        except TacitError:
            if not plans:
                raise
            return math.inf  # a total that the question does not take
        return risk.used(plans[amount].cost)

    amount = risk.largest(used, amount_near(risk, goal.total, goal.delta), higher=bool(goal.delta))
    if amount is None:
        raise out_of_reach(risk, goal.delta)
    return replace(plans[amount], risk=risk)


def _check_one_total(totals: Mapping[str, object], takes: frozenset[str]) -> None:
    """Refuse a goal that names no total, or several, or one that the question does not take."""
    able = ["epsilon", *(name for name in (RHO, "within") if name in takes), *RISKS]
    for name, value in totals.items():
        if name not in able:
            _refuse_not_taken(name, value)
    if len(totals) == 1:
        return
    if not totals and len(able) == 1 + len(RISKS):
        Needed(0.5, why="there is no default epsilon").read("epsilon", None)
    exactly_one(
        "a plan",
        why="two of them could contradict each other" if totals else "there is no default epsilon",
        fix=Either(
            Set(epsilon=0.5),
            *([Set(within=5)] if "within" in able else [Set(rho=0.1)] if RHO in able else []),
            Set(advantage=0.05),
        ),
        **{name: totals.get(name) for name in able if name in totals or name not in RISKS},
    )


def _refuse_not_taken(name: str, value: object) -> None:
    fix = Set(**{name: None}) if name != "rho" else Set(epsilon=1)
    Omitted("here", why="this question cannot be planned with it", fix=fix).read(name, value)


def _read_delta(delta: Number, takes: frozenset[str], *, in_rho: bool) -> Fraction:
    """Return a delta below 1, or refuse it; in rho, only some questions take one."""
    small = rational("delta", delta, zero=True)
    if small >= 1 or (in_rho and small and RHO_WITH_DELTA not in takes):
        allowed = "below 1" if RHO_WITH_DELTA in takes else "below 1, and 0 with rho"
        raise bad_parameter("delta", allowed, delta, fix=Set(delta=0 if in_rho else 1e-6))
    return small


def _read_risk(risks: Mapping[str, Any], delta: Fraction) -> Risk | None:
    """Return the risk that was given, if any."""
    asked = {name: value for name, value in risks.items() if value is not None}
    return Risk.read(**asked, delta=delta) if asked else None


def _read_total(total: str | None, risk: Risk | None, takes: frozenset[str]) -> str:
    """Return the number in which the total of a risk is stated, or refuse it."""
    if risk is None:
        Omitted("without a risk", why="a total says itself which number it is").read("total", total)
    if total == "rho" and RHO not in takes:
        _refuse_not_taken("total", total)
    return TOTALS.read("total", "epsilon" if total is None else total)


def _read_weights(weights: Mapping[str, Number]) -> dict[str, Fraction]:
    return Mapped("numbers by column", "weights={'n': 2}", each=RealNumber()).read("weights", weights)


#: Without a public size of the data, a delta above this is warned of.
_MAX_DELTA = 1e-3


def warn_of_delta(delta: float, size: int | None = None) -> str:
    """Say that a delta is too large, for a public size of the data if there is one; else return no text.

    A delta of 1/n lets somebody pick one of n people at random and publish their record.

    Examples
    --------
    >>> warn_of_delta(1e-6), warn_of_delta(1e-6, size=1000)
    ('', '')
    >>> warn_of_delta(0.01).partition(";")[0]
    'warning: delta 0.01 is above 0.001'
    >>> warn_of_delta(1e-3, size=50_000).partition(";")[0]
    'warning: delta 0.001 is above 1 / 50,000'
    """
    max_delta = _MAX_DELTA if size is None else 1 / size
    if delta <= max_delta:
        return ""
    above = f"{max_delta:g}" if size is None else f"1 / {size:,}"
    safe = 1e-6 if size is None else 1 / (100 * size)
    return (
        f"warning: delta {delta:g} is above {above}; the promise may fail completely with this probability; "
        f"choose {safe:.0e} or less"
    )
