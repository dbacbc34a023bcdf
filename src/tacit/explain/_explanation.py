"""The explanation that `explain` returns: the facts about a cost, and how they are shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from tacit.explain._deployments import DEPLOYMENTS
from tacit.explain._odds import Belief, believe
from tacit.explain._rounding import at_least, at_most, number_up, shown_factor, shown_odds
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from pathlib import Path

    from tacit.accounting import Cost
    from tacit.core import Forecast
    from tacit.explain._question import ExplainedQuestion
    from tacit.show import Figure


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
        most = math.tanh(self.epsilon / 2)
        return most if self.pure and self.advantage < 0.995 * most else None

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
        who = "an attacker who gave 50:50 odds that you are in the data"
        if self.pure:
            reached = shown_odds(believe(0.5, self.epsilon).at_most)
            return f"{who.capitalize()} can reach at most {reached}."
        loss, condition = self.odds_limit
        if math.isinf(loss):
            return (
                "This cost can reveal everything with a probability that is too large to ignore: there is no "
                "limit on the odds."
            )
        reached = shown_odds(believe(0.5, loss).at_most)
        return (
            f"{condition.capitalize()}, the odds move by at most a factor of {shown_factor(loss)}: {who} can "
            f"reach at most {reached}."
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
        from tacit.explain._cost_figures import explanation

        return (explanation(self),)

    def html_report(self) -> str:
        """Return a self-contained page with a slider; it needs no server and contains only public facts."""
        from tacit.explain._page import page

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
            shown = tuple(
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
            tables.append(ReportTable("how far the odds move", header, shown))
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
            known = tuple((what, f"+/- {number_up(error)}") for what, error in self.counts)
            tables.append(
                ReportTable("the counts in this release", ("what", "95 % of the noise within"), known)
            )
        if self.forecasts:
            expected = tuple((one.column, one.meaning, _expected(one)) for one in self.forecasts)
            within = f"{100 * self.confidence:g} % of answers within"
            tables.append(ReportTable("what it buys", ("column", "what", within), expected))
        return tables


def _expected(one: Forecast) -> str:
    error = one.note if one.error is None else f"+/- {number_up(one.error)}"
    return f"{error}; {one.caution}" if one.caution else error


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _part(times: int, epsilon: Fraction) -> str:
    size = str(epsilon) if epsilon.denominator <= 100 else number_up(float(epsilon))
    return f"{times:,} {'part' if times == 1 else 'parts'} of epsilon {size}"
