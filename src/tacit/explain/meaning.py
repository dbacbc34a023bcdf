"""What a cost means for one person, in odds, bits, tests and families; computed from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tacit.accounting import Budget, Cost, Filter, Spend
from tacit.errors import bad_parameter
from tacit.exact import Number, count
from tacit.explain.deployments import DEPLOYMENTS
from tacit.explain.odds import (
    Belief,
    at_least,
    at_most,
    believe,
    best_test,
    epsilon_at,
    exceeded_with,
    number_up,
    pure_epsilon,
    read_share,
    shown_factor,
    shown_odds,
)
from tacit.explain.question import Question
from tacit.explain.tradeoff import half_width
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tacit.explain.pictures import Picture

__all__ = ["Explanation", "Family", "Limit", "Priced", "explain"]


class Priced(Protocol):
    """Whatever has a cost: a mechanism, a plan, a release."""

    @property
    def cost(self) -> Cost:
        """What it takes from a budget."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The odds move by at most exp(loss), except with this probability; `loss` None: no limit."""

    probability: float
    loss: float | None


@dataclass(frozen=True, slots=True)
class Family:
    """What the cost means for several people together."""

    size: int
    epsilon: float
    advantage: float


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Readable):
    """What a cost means; print it, show it in a notebook, `plot()` it, or `save_html` an interactive page.

    Attributes
    ----------
    cost
        The cost that is explained.
    epsilon, delta
        Its reading. A pure cost has delta 0; for others epsilon is read at `delta`.
    advantage
        The most by which any attacker beats blind guessing: P(says yes | in) - P(says yes | out).
    bits
        The most information about one person, in bits; None unless pure.
    beliefs
        For each prior what an attacker can believe afterwards; empty unless pure.
    limits
        For costs that are not pure: how far the odds can move, except with which probability.
    tests
        For each rate of false alarms the most true alarms that any test reaches.
    families
        What the cost means for several people together.
    errors
        For each epsilon around the pure cost, within what a count (or the question) stays with 95 %
        probability.
    fits
        How many such costs the given budget can pay.
    """

    cost: Cost
    epsilon: float
    delta: float
    advantage: float
    bits: float | None
    beliefs: tuple[Belief, ...]
    limits: tuple[Limit, ...]
    tests: tuple[tuple[float, float], ...]
    families: tuple[Family, ...]
    errors: tuple[tuple[float, float], ...]
    question: Question
    fits: int | None

    @property
    def pure(self) -> bool:
        """Whether the promise holds without exception."""
        return self.bits is not None

    @property
    def sentence(self) -> str:
        """The promise in one sentence."""
        if self.pure:
            reached = shown_odds(believe(0.5, self.epsilon).at_most)
            return f"An attacker who gave 50:50 that you are in the data can reach at most {reached}."
        loss, condition = self.odds_limit
        if math.isinf(loss):
            return "This cost may reveal everything with a probability worth naming: the odds have no limit."
        reached = shown_odds(believe(0.5, loss).at_most)
        return (
            f"{condition.capitalize()}, the odds move by at most a factor {shown_factor(loss)}: "
            f"an attacker who gave 50:50 that you are in the data reaches at most {reached}."
        )

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        grids = [self._odds_grid(), self._tests_grid(), self._families_grid()]
        if self.errors:
            bought = tuple((f"{epsilon:.4g}", f"+/- {number_up(error)}") for epsilon, error in self.errors)
            grids.append(
                Grid(f"what it buys: {self.question}", ("epsilon", "95 % of answers within"), bought)
            )
        rows = tuple((one.name, one.parameters, one.unit, one.where) for one in DEPLOYMENTS)
        grids.append(Grid("published elsewhere", ("who", "figure", "protects", "model"), rows))
        notes = [
            (
                "Figures published elsewhere protect different units; compare them only where the unit is "
                "the "
                "same."
            )
        ]
        return Sheet(f"What {self._name} means", tuple(self._lead()), tuple(grids), tuple(notes))

    def plot(self) -> Picture:
        """Draw posterior over prior, the attacker's trade-off, and what the cost means for families."""
        from tacit.explain.pictures import explanation

        return explanation(self)

    def html_report(self) -> str:
        """Return a self-contained page with a slider: no server, no network, nothing but public facts."""
        from tacit.explain.report import page

        return page(self)

    def save_html(self, path: str | Path) -> None:
        """Write `html_report()` to a file."""
        from pathlib import Path as File

        File(path).write_text(self.html_report(), encoding="utf-8")

    @property
    def odds_limit(self) -> tuple[float, str]:
        """How far the log-odds move, and the condition under which."""
        if self.pure:
            return self.epsilon, "always"
        for limit in reversed(self.limits):
            if limit.loss is not None:
                return limit.loss, f"except with probability {limit.probability:.1g}"
        return math.inf, "no limit"

    @property
    def _name(self) -> str:
        return f"epsilon {number_up(self.epsilon)}" + (f" at delta {self.delta:g}" if self.delta else "")

    def _lead(self) -> list[str]:
        lead = [self.sentence]
        if self.bits is not None:
            lead.append(
                f"No answer is more than {shown_factor(self.epsilon)} times likelier with you in the data "
                "than without, and "
                f"nobody gains more than {number_up(self.bits)} bits about you, whatever else they know."
            )
        lead.append(
            f"No attacker beats blind guessing by more than {at_most(self.advantage)}: "
            f"right at most {at_most((1 + self.advantage) / 2)} of the time where a coin is right half of "
            "the time."
        )
        if self.fits is not None:
            lead.append(f"The budget pays for {self.fits:,} of these, asked one after the other.")
        return lead

    def _odds_grid(self) -> Grid:
        if self.beliefs:
            rows = tuple((f"{b.prior:.1%}", at_least(b.at_least), at_most(b.at_most)) for b in self.beliefs)
            return Grid("what an attacker can believe", ("before", "after, at least", "at most"), rows)
        rows = tuple(
            (
                f"{limit.probability:.1g}",
                "no limit" if limit.loss is None else f"x {shown_factor(limit.loss)}",
                "no limit" if limit.loss is None else shown_odds(believe(0.5, limit.loss).at_most),
            )
            for limit in self.limits
        )
        return Grid("how far the odds move", ("except with probability", "at most", "50:50 becomes"), rows)

    def _tests_grid(self) -> Grid:
        rows = tuple((f"{fpr:.1%}", at_most(tpr)) for fpr, tpr in self.tests)
        return Grid("the best test for your presence", ("false alarms", "true alarms, at most"), rows)

    def _families_grid(self) -> Grid:
        rows = tuple((str(f.size), number_up(f.epsilon), at_most(f.advantage)) for f in self.families)
        at = f" at delta {self.delta:g}" if self.delta else ""
        return Grid("groups and families", ("people together", f"epsilon{at}", "advantage, at most"), rows)


def explain(
    subject: Cost | Budget | Priced,
    *,
    priors: Iterable[Number] = (0.01, 0.1, 0.5, 0.9),
    families: Iterable[int] = (1, 2, 5, 10),
    delta: Number = 1e-6,
    question: Question | None = None,
    budget: Budget | Filter | None = None,
) -> Explanation:
    """Say what a cost means: odds, bits, tests, families, error, and how it compares.

    Every figure is a bound that holds whatever the attacker knows. Nothing is computed from data.

    Parameters
    ----------
    subject
        A `Cost`, a `Budget`, or whatever has a ``cost``: a mechanism, a plan, a release.
    priors
        What attackers may have believed before.
    families
        Sizes of groups.
    delta
        Where the cost is not pure: the delta at which epsilon is read.
    question
        What is asked, for the expected error; a count if not given.
    budget
        Say how many such costs it can pay, asked one after the other; a `Filter` is what is left of a budget.

    Examples
    --------
    >>> import tacit as tc
    >>> print(tc.explain(tc.Cost.pure(0.5)).sentence)
    An attacker who gave 50:50 that you are in the data can reach at most 62:38.
    """
    cost = _cost_of(subject)
    epsilon = pure_epsilon(cost)
    read_at = 0.0 if epsilon is not None else read_share("delta", delta)
    before = tuple(read_share("priors", prior) for prior in priors)
    asked = Question("count") if question is None else question
    power = best_test(cost)
    sizes = tuple(count("families", size, zero=False) for size in families)
    return Explanation(
        cost=cost,
        epsilon=epsilon_at(cost, read_at),
        delta=read_at,
        advantage=cost.advantage,
        bits=None if epsilon is None else cost.bits,
        beliefs=() if epsilon is None else tuple(believe(prior, epsilon) for prior in before),
        limits=()
        if epsilon is not None
        else tuple(Limit(p, exceeded_with(cost, p)) for p in (1e-2, 1e-4, read_at)),
        tests=tuple((rate, power(rate)) for rate in (0.01, 0.05, 0.1, 0.2)),
        families=tuple(_family(cost, size, read_at) for size in sizes),
        errors=() if epsilon is None else _errors(epsilon, asked),
        question=asked,
        fits=None if budget is None else _fits(cost, budget),
    )


def _cost_of(subject: Cost | Budget | Priced) -> Cost:
    if isinstance(subject, Cost):
        return subject
    if isinstance(subject, Budget):
        return _whole(subject)
    cost = getattr(subject, "cost", None)
    if isinstance(cost, Cost):
        return cost
    raise bad_parameter(
        "subject",
        "a cost, a budget, or something that has a cost",
        type(subject).__name__,
        fix="tc.Cost.pure(0.5)",
    )


def _whole(budget: Budget) -> Cost:
    """Return the cost of spending a whole budget."""
    if budget.rho is not None:
        inner = Cost.zcdp(budget.rho)
        return inner + Cost.approximate(0, budget.delta) if budget.delta else inner
    return Cost.approximate(budget.epsilon or 0, budget.delta)


def _family(cost: Cost, size: int, delta: float) -> Family:
    together = cost.group(size)
    return Family(size, epsilon_at(together, delta), together.advantage)


def _errors(epsilon: float, question: Question) -> tuple[tuple[float, float], ...]:
    return tuple((times * epsilon, half_width(question, times * epsilon)) for times in (0.25, 0.5, 1, 2, 4))


def _fits(cost: Cost, budget: Budget | Filter) -> int:
    """Count how many such costs, one after the other, a budget (or what is left of it) admits."""
    left = budget if isinstance(budget, Filter) else Filter.start(budget)
    one = cost.spend

    def admits(times: int) -> bool:
        sums = [None if part is None else times * part for part in (one.epsilon, one.rho)]
        return times * one.delta <= 1 and left.admits(Spend(sums[0], times * one.delta, sums[1]))

    if not admits(1):
        return 0
    low, high = 1, 2
    while admits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if admits(middle) else (low, middle)
    return low
