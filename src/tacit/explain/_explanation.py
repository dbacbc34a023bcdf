"""The function `explain` and what it returns: what a cost means for one person, from public facts only.

The subject may be a plan, a release, a certificate or a cost; dataset and counts come with the first three.
The interactive page is one HTML file that needs no network.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

import numpy as np

from tacit.accounting import Budget, Cost, Filter, cost_of_budget
from tacit.core import Certificate, Plan, Release
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count
from tacit.explain._deployments import DEPLOYMENTS
from tacit.explain._odds import (
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
from tacit.explain._question import ExplainedQuestion
from tacit.explain._tradeoff import half_width
from tacit.fixes import Code, Set
from tacit.mechanisms import DiscreteLaplace
from tacit.parameters import RealNumber
from tacit.report import Report, Reportable, ReportTable, percent, short_percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tacit.core import Forecast
    from tacit.show import Figure


_COUNTED: Final = {"rows": "number of rows", "units": "number of people (units)"}
_POINTS = 80
_FAR = 10.0  # the end of the slider where no limit on the odds holds with probability 1 - 1e-9


@dataclass(frozen=True, slots=True)
class OddsLimit:
    """The odds move by at most exp(loss), except with this probability; a `loss` of None means no limit."""

    probability: float
    loss: float | None


@dataclass(frozen=True, slots=True)
class FamilyReading:
    """What the cost means for several people together: epsilon, read at delta, and the advantage."""

    size: int
    epsilon: float
    delta: float
    advantage: float

    @property
    def reading(self) -> str:
        """The epsilon as text, with its delta where there is one."""
        if math.isinf(self.epsilon):
            return "no limit"
        return number_up(self.epsilon) + (f" at delta {number_up(self.delta, 3)}" if self.delta else "")


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Drawn, Reportable):
    """What a cost means; print it, show it in a notebook, `plot()` it, or `save_html` an interactive page.

    Attributes
    ----------
    cost
        The cost that is explained.
    epsilon, delta
        The epsilon of the cost. A pure cost has delta 0; otherwise epsilon is read at `delta`.
    advantage
        The largest advantage of any attacker: P(says yes | in) - P(says yes | out).
    bits
        The most information about one person, in bits; None unless the cost is pure.
    beliefs
        For each prior, what an attacker can believe afterwards; empty unless the cost is pure.
    limits
        How far the odds can move, and with which exception; empty where it adds nothing to a pure epsilon.
    tests
        For each rate of false alarms, the highest rate of true alarms of any test.
    families
        What the cost means for several people together.
    errors
        For several epsilons around a pure cost, the error that 95 % of the answers to the question stay
        within.
    forecasts
        For a plan: what it expects of each column.
    confidence
        The share of answers that stay within the stated errors.
    question
        What is asked.
    fits
        How many such costs the given budget can pay.
    about
        For a plan, a release or its certificate: the dataset and who is protected.
    counts
        For a release or its certificate: what is counted, and the error that 95 % of the noise stays within.
    """

    cost: Cost
    epsilon: float
    delta: float
    advantage: float
    bits: float | None
    beliefs: tuple[Belief, ...]
    limits: tuple[OddsLimit, ...]
    tests: tuple[tuple[float, float], ...]
    families: tuple[FamilyReading, ...]
    errors: tuple[tuple[float, float], ...]
    forecasts: tuple[Forecast, ...]
    confidence: float
    question: ExplainedQuestion
    fits: int | None
    about: str = ""
    counts: tuple[tuple[str, float], ...] = ()

    @property
    def any_release(self) -> float | None:
        """The advantage that this epsilon allows in general, where this cost allows less; otherwise None."""
        advantage = math.tanh(self.epsilon / 2)
        return advantage if self.pure and self.advantage < 0.995 * advantage else None

    @property
    def pure(self) -> bool:
        """Whether the promise holds without exception."""
        return self.bits is not None

    @property
    def odds_limit(self) -> tuple[float, str]:
        """How far the log-odds can move, and the condition in words."""
        if self.pure:
            return self.epsilon, "always"
        for limit in reversed(self.limits):
            if limit.loss is not None:
                return limit.loss, f"except with probability {limit.probability:g}"
        return math.inf, "no limit"

    @property
    def sentence(self) -> str:
        """The promise in one sentence."""
        attacker = "an attacker who gave 50:50 odds that you are in the data"
        if self.pure:
            reached = shown_odds(believe(0.5, self.epsilon).at_most)
            return f"{attacker.capitalize()} can reach at most {reached}."
        loss, condition = self.odds_limit
        if math.isinf(loss):
            return (
                "This cost can reveal everything with a probability that is too large to ignore: there is no "
                "limit on the odds."
            )
        reached = shown_odds(believe(0.5, loss).at_most)
        return (
            f"{condition.capitalize()}, the odds move by at most a factor of {shown_factor(loss)}: "
            f"{attacker} can reach at most {reached}."
        )

    def report(self) -> Report:
        """Return the facts to show."""
        tables = (*self._odds_tables(), self._tests_table(), self._families_table(), *self._error_tables())
        rows = tuple((one.name, one.parameters, one.unit, one.where) for one in DEPLOYMENTS)
        published = ReportTable("published elsewhere", ("who", "figure", "protects", "model"), rows)
        note = "Published figures protect different units; compare them only where the unit is the same."
        return Report(self._title, tuple(self._lead()), (*tables, published), (note,))

    def figures(self) -> tuple[Figure, ...]:
        """Return the belief afterwards over the prior, the best test, and the meaning for families."""
        from tacit.explain._figures import explanation

        return (explanation(self),)

    def html_report(self) -> str:
        """Return a self-contained page with a slider; it needs no server and contains only public facts."""
        return page(self)

    def save_html(self, path: str | Path) -> None:
        """Write `html_report()` to a file."""
        from pathlib import Path as File

        File(path).write_text(self.html_report(), encoding="utf-8")

    @property
    def _title(self) -> str:
        at = f" at delta {self.delta:g}" if self.delta else ""
        if math.isinf(self.epsilon):
            return f"What this cost means (no epsilon holds{at})"
        return f"What epsilon {number_up(self.epsilon)}{at} means"

    def _lead(self) -> list[str]:
        lead = [*([self.about] if self.about else []), self.sentence]
        if self.bits is not None:
            lead.append(
                f"No answer is more than {shown_factor(self.epsilon)} times as likely with you in the data "
                f"as without you. Nobody gains more than {number_up(self.bits)} bits about you, whatever "
                "else they know."
            )
        lead.append(
            f"An attacker who guesses whether you are in the data is right at most "
            f"{at_most((1 + self.advantage) / 2)} of the time; a coin is right half of the time. The "
            f"attacker's advantage (the rate of true alarms minus the rate of false alarms) is at most "
            f"{at_most(self.advantage)}." + self._why_less
        )
        if self.fits is not None:
            lead.append(f"The budget can pay for this cost {_times(self.fits)}, one after the other.")
        return lead

    @property
    def _why_less(self) -> str:
        """Explain why no attacker reaches what this epsilon allows in general."""
        if self.any_release is None:
            return ""
        why = "the noise is known, and so is how its parts add up"
        parts = cast("list[dict[str, Any]]", self.cost.to_json()["parts"])
        if all(part["law"] == "pure" for part in parts):
            each = (_part(part["times"], Fraction(part["epsilon"])) for part in parts)
            why = f"the cost is made of {' and '.join(each)}"
        return (
            f" Epsilon {number_up(self.epsilon)} alone would allow an advantage of "
            f"{at_most(self.any_release)}; here it is less because {why}."
        )

    def _odds_tables(self) -> list[ReportTable]:
        tables = []
        if self.beliefs:
            rows = tuple((percent(b.prior), at_least(b.at_least), at_most(b.at_most)) for b in self.beliefs)
            header = ("before", "after, at least", "after, at most")
            tables.append(ReportTable("what an attacker can believe", header, rows))
        if self.limits:
            odds_rows = tuple(
                (f"{limit.probability:g}", "no limit", "no limit")
                if limit.loss is None
                else (
                    f"{limit.probability:g}",
                    f"x {shown_factor(limit.loss)}",
                    shown_odds(believe(0.5, limit.loss).at_most),
                )
                for limit in self.limits
            )
            header = ("except with probability", "factor, at most", "50:50 becomes at most")
            tables.append(ReportTable("how far the odds move", header, odds_rows))
        return tables

    def _tests_table(self) -> ReportTable:
        rows = tuple((percent(fpr), at_most(tpr)) for fpr, tpr in self.tests)
        return ReportTable("the best test for your presence", ("false alarms", "true alarms, at most"), rows)

    def _families_table(self) -> ReportTable:
        rows = tuple((str(f.size), f.reading, at_most(f.advantage)) for f in self.families)
        return ReportTable("groups and families", ("people together", "epsilon", "advantage, at most"), rows)

    def _error_tables(self) -> list[ReportTable]:
        tables = []
        if self.errors:
            bought = tuple((f"{epsilon:.4g}", f"+/- {number_up(error)}") for epsilon, error in self.errors)
            header = ("epsilon", "95 % of answers within")
            tables.append(ReportTable(f"what it buys: {self.question}", header, bought))
        if self.counts:
            rows = tuple((what, f"+/- {number_up(error)}") for what, error in self.counts)
            tables.append(
                ReportTable("the counts in this release", ("what", "95 % of the noise within"), rows)
            )
        if self.forecasts:
            expected = tuple((one.column, one.meaning, _expected(one)) for one in self.forecasts)
            within = f"{short_percent(self.confidence)} of answers within"
            tables.append(ReportTable("what it buys", ("column", "what", within), expected))
        return tables


def _expected(forecast: Forecast) -> str:
    error = forecast.note if forecast.error is None else f"+/- {number_up(forecast.error)}"
    return f"{error}; {forecast.caution}" if forecast.caution else error


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _part(times: int, epsilon: Fraction) -> str:
    size = str(epsilon) if epsilon.denominator <= 100 else number_up(float(epsilon))
    return f"{times:,} {'part' if times == 1 else 'parts'} of epsilon {size}"


class Priced(Protocol):
    """Anything that has a cost: a mechanism, a plan, a release."""

    @property
    def cost(self) -> Cost:
        """What it takes from a budget."""


#: What `explain` can explain.
Explainable: TypeAlias = Cost | Budget | Priced | Release[Any] | Certificate


def cost_of(subject: Explainable) -> Cost:
    """Return the cost of a subject; a budget costs what it takes to spend all of it."""
    if isinstance(subject, Cost):
        return subject
    promise = promise_of(subject)
    if promise is not None:
        return Cost.from_json(promise.fields["cost"])
    if isinstance(subject, Budget):
        return cost_of_budget(subject)
    cost = getattr(subject, "cost", None)
    if isinstance(cost, Cost):
        return cost
    raise bad_parameter(
        "subject",
        "a cost, a budget, or an object that has a cost",
        type(subject).__name__,
        fix=Code("tc.explain(tc.Cost.pure(0.5))"),
    )


def promise_of(subject: object) -> Certificate | None:
    """Return the certificate, if the subject is one or is a release."""
    if isinstance(subject, Release):
        return subject.certificate
    return subject if isinstance(subject, Certificate) else None


def forecasts_of(subject: object) -> tuple[Forecast, ...]:
    """Return what a plan expects of each column; empty for other subjects."""
    return subject.forecast if isinstance(subject, Plan) else ()


def about(subject: object) -> str:
    """Name the dataset of a plan, a release or a certificate, and who is protected."""
    promise = promise_of(subject)
    if isinstance(subject, Plan):
        name, unit = subject.name, str(subject.unit)
    elif promise is not None:
        facts = promise.members[0].fields["dataset"]
        name, unit = promise.names, str(facts.get("unit")) if isinstance(facts, Mapping) else ""
    else:
        return ""
    whom = f"all data about one {unit} together" if unit not in {"", "row"} else "each row separately"
    noun = "plan" if isinstance(subject, Plan) else "release"
    return f"A {noun} from the dataset {name}. It protects {whom}."


def counts_of(certificate: Certificate) -> tuple[tuple[str, float], ...]:
    """Return the 95 % error of each count in a release, from the noise that its certificate states."""
    counts = []
    stated = certificate.fields.get("mechanisms")
    for measurement in stated if isinstance(stated, list | tuple) else ():
        noun = _COUNTED.get(str(measurement.get("statistic"))) if isinstance(measurement, Mapping) else None
        if noun is None or measurement.get("mechanism") != "discrete-laplace":
            continue
        try:
            scale = Fraction(str(measurement.get("scale")))
            counts.append((noun, DiscreteLaplace(epsilon=1 / scale, sensitivity=1).error(Fraction(19, 20))))
        except (
            ArithmeticError,
            ValueError,
            TacitError,
        ):  # not written by Tacit: report nothing, do not guess
            continue
    return tuple(counts)


_FALSE_ALARMS = (0.01, 0.05, 0.1, 0.2)


def explain(
    subject: Explainable,
    *,
    priors: Iterable[Number] = (0.01, 0.1, 0.5, 0.9),
    families: Iterable[int] = (1, 2, 5, 10),
    delta: Number = 1e-6,
    question: ExplainedQuestion | None = None,
    budget: Budget | Filter | None = None,
) -> Explanation:
    """Explain what a cost means: odds, bits, tests, families, errors, and published figures to compare with.

    Every figure is a bound that holds whatever the attacker knows. Nothing is computed from data.

    Parameters
    ----------
    subject
        A `Cost`, a `Budget`, anything with a ``cost`` (a mechanism, a plan), a release or its certificate.
    priors
        What attackers may have believed before.
    families
        Sizes of groups of people.
    delta
        If the cost is not pure: the delta at which epsilon is read.
    question
        What is asked, for the expected error; a count if not given.
    budget
        If given, report how many such costs it can pay, one after the other; a `Filter` is the rest of a
        budget.

    Examples
    --------
    >>> import tacit as tc
    >>> print(tc.explain(tc.Cost.pure(0.5)).sentence)
    An attacker who gave 50:50 odds that you are in the data can reach at most 62:38 (62.3 %).
    """
    cost = cost_of(subject)
    epsilon = pure_epsilon(cost)
    asked_delta = read_share("delta", delta, example=1e-6)
    read_at = 0.0 if epsilon is not None else asked_delta
    try:
        before = tuple(float(RealNumber(above=0, below=1).read("priors", prior)) for prior in priors)
    except TacitError as refused:
        raise refused.but(fix=Set(priors=(0.1, 0.5))) from None
    sizes = tuple(count("families", size, zero=False) for size in families)
    explained = ExplainedQuestion("count") if question is None else question
    forecasts, promise = forecasts_of(subject), promise_of(subject)
    has_errors = bool(forecasts) or (promise is not None and question is None)
    power = best_test(cost)
    return Explanation(
        cost=cost,
        epsilon=epsilon_at(cost, read_at),
        delta=read_at,
        advantage=cost.advantage,
        bits=None if epsilon is None else cost.bits,
        beliefs=() if epsilon is None else tuple(believe(prior, epsilon) for prior in before),
        limits=_limits(cost, epsilon, asked_delta),
        tests=tuple((rate, power(rate)) for rate in _FALSE_ALARMS),
        families=tuple(_family(cost, size, read_at) for size in sizes),
        errors=_errors(epsilon, explained) if epsilon and not has_errors else (),
        forecasts=forecasts,
        confidence=float(subject.confidence) if isinstance(subject, Plan) else 0.95,
        question=explained,
        fits=None if budget is None else _fits(cost, subject, budget),
        about=about(subject),
        counts=() if promise is None else counts_of(promise),
    )


def _limits(cost: Cost, epsilon: float | None, delta: float) -> tuple[OddsLimit, ...]:
    """Return how far the odds move except in rare cases, where that is clearly less than a pure epsilon."""
    chances = sorted({1e-2, 1e-4, delta}, reverse=True)
    limits = tuple(OddsLimit(chance, exceeded_with(cost, chance)) for chance in chances)
    if epsilon is None:
        return limits
    return tuple(limit for limit in limits if limit.loss is not None and limit.loss < 0.95 * epsilon)


def _family(cost: Cost, size: int, delta: float) -> FamilyReading:
    family_cost = cost.group(size)
    epsilon = epsilon_at(family_cost, delta)
    if math.isinf(epsilon):  # delta grows with the group, so read epsilon at the group's own delta
        spend = family_cost.spend
        if spend.epsilon is not None and spend.delta < 1:
            epsilon, delta = float(spend.epsilon), float(spend.delta)
    return FamilyReading(size, epsilon, delta, family_cost.advantage)


def _errors(epsilon: float, question: ExplainedQuestion) -> tuple[tuple[float, float], ...]:
    return tuple((times * epsilon, half_width(question, times * epsilon)) for times in (0.25, 0.5, 1, 2, 4))


def _fits(cost: Cost, subject: object, budget: Budget | Filter) -> int:
    """Count how many such costs, one after the other, a budget (or the rest of one) can pay."""
    promise = subject.promise if isinstance(subject, Plan) else None
    return (budget if isinstance(budget, Filter) else Filter.start(budget)).how_many(cost, promise)


def page(explanation: Explanation) -> str:
    """Return the page; its slider sets epsilon for a pure cost, and otherwise how far the odds move."""
    report = explanation.report()
    rows = tuple((one.name, one.parameters, one.unit, one.where, one.source) for one in DEPLOYMENTS)
    published = ReportTable("", ("who", "figure", "protects", "model", "source"), rows)
    parts = {
        "@TITLE@": html.escape(report.title),
        "@LEAD@": "\n".join(f'<p class="lead">{html.escape(line)}</p>' for line in report.lead),
        "@HEAD@": html.escape(_head(explanation)),
        "@DEPLOYMENTS@": published.html(),
        "@DATA@": json.dumps(_facts(explanation), allow_nan=False).replace("<", "\\u003c"),
    }
    text = files("tacit.explain").joinpath("page.html").read_text(encoding="utf-8")
    for mark, value in parts.items():
        text = text.replace(mark, value)
    return text


def _head(explanation: Explanation) -> str:
    """Say what the slider and everything below it describe: any release, not only the one explained."""
    if not explanation.pure:
        return "Move the slider to see how far the odds can move, and how rarely they move further."
    compared = "For comparison: any" if explanation.any_release is not None or explanation.about else "Any"
    return f"{compared} release with the epsilon that you choose here. Everything below follows the slider."


def _facts(explanation: Explanation) -> dict[str, object]:
    """Collect what the script of the page needs."""
    shared: dict[str, object] = {
        "priors": [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99],
        "advantage": explanation.advantage,
        "question": {
            "name": str(explanation.question),
            "sensitivity": float(explanation.question.sensitivity),
            "lattice": explanation.question.statistic == "count",
            "confidence": 0.95,
        }
        if explanation.errors
        else None,
    }
    if explanation.pure:
        return shared | {
            "mode": "pure",
            "start": explanation.epsilon,
            "families": [family.size for family in explanation.families],
        }
    cost, power = explanation.cost, best_test(explanation.cost)
    start = explanation.epsilon if math.isfinite(explanation.epsilon) else 1.0
    furthest = exceeded_with(cost, 1e-9) or max(start, _FAR)
    losses = np.linspace(0, 1.1 * furthest, _POINTS + 1)
    rates = np.concatenate([[0], np.geomspace(1e-3, 1, 80)])
    return shared | {
        "mode": "loss",
        "start": start,
        "losses": [[float(t), cost.loss_exceeds(float(t))] for t in losses],
        "tests": [[float(rate), power(float(rate))] for rate in rates],
        "families": [[family.size, family.reading] for family in explanation.families],
    }
