"""An explanation: the facts about a cost, and how they are shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from tacit.explain.deployments import DEPLOYMENTS
from tacit.explain.odds import Belief, at_least, at_most, believe, number_up, shown_factor, shown_odds
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from pathlib import Path

    from tacit.accounting import Cost
    from tacit.core import Forecast
    from tacit.explain.pictures import Picture
    from tacit.explain.question import Question

__all__ = ["Explanation", "Family", "Limit"]


@dataclass(frozen=True, slots=True)
class Limit:
    """The odds move by at most exp(loss), except with this probability; `loss` None: no limit."""

    probability: float
    loss: float | None


@dataclass(frozen=True, slots=True)
class Family:
    """What the cost means for several people together: epsilon, read at delta, and the advantage."""

    size: int
    epsilon: float
    delta: float
    advantage: float

    @property
    def reading(self) -> str:
        """The epsilon, with its delta where there is one, as text."""
        if math.isinf(self.epsilon):
            return "no limit"
        return number_up(self.epsilon) + (f" at delta {number_up(self.delta, 3)}" if self.delta else "")


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
        How far the odds can move, except with which probability; left out where it adds nothing to a pure
        epsilon.
    tests
        For each rate of false alarms the most true alarms that any test reaches.
    families
        What the cost means for several people together.
    errors
        For each epsilon around the pure cost, within what a count (or the question) stays with 95 %
        probability.
    forecasts
        For a plan: what it expects of each column.
    confidence
        How often answers stay within the stated errors.
    fits
        How many such costs the given budget can pay.
    about
        For a plan, a release or its certificate: of which dataset, and who is protected.
    counts
        For a release or its certificate: what is counted, and within what it stays with 95 % probability.
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
    forecasts: tuple[Forecast, ...]
    confidence: float
    question: Question
    fits: int | None
    about: str = ""
    counts: tuple[tuple[str, float], ...] = ()

    @property
    def any_release(self) -> float | None:
        """The advantage that a pure epsilon alone allows, where this cost gives less; else None."""
        most = math.tanh(self.epsilon / 2)
        return most if self.pure and self.advantage < 0.995 * most else None

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
            f"{condition.capitalize()}, the odds move by at most a factor {shown_factor(loss)}: an attacker "
            f"who gave 50:50 that you are in the data reaches at most {reached}."
        )

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        grids = [*self._odds_grids(), self._tests_grid(), self._families_grid()]
        if self.errors:
            bought = tuple((f"{epsilon:.4g}", f"+/- {number_up(error)}") for epsilon, error in self.errors)
            grids.append(
                Grid(f"what it buys: {self.question}", ("epsilon", "95 % of answers within"), bought)
            )
        if self.counts:
            known = tuple((what, f"+/- {number_up(error)}") for what, error in self.counts)
            grids.append(Grid("the counts of this release", ("what", "95 % of the noise within"), known))
        if self.forecasts:
            expected = tuple(
                (one.column, one.meaning, one.note if one.error is None else f"+/- {number_up(one.error)}")
                for one in self.forecasts
            )
            within = f"{100 * self.confidence:g} % of answers within"
            grids.append(Grid("what it buys", ("column", "what", within), expected))
        rows = tuple((one.name, one.parameters, one.unit, one.where) for one in DEPLOYMENTS)
        grids.append(Grid("published elsewhere", ("who", "figure", "protects", "model"), rows))
        note = "Figures published elsewhere protect different units; compare only where the unit is the same."
        return Sheet(f"What {self._name} means", tuple(self._lead()), tuple(grids), (note,))

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
                return limit.loss, f"except with probability {limit.probability:g}"
        return math.inf, "no limit"

    @property
    def _name(self) -> str:
        return f"epsilon {number_up(self.epsilon)}" + (f" at delta {self.delta:g}" if self.delta else "")

    def _lead(self) -> list[str]:
        lead = [*([self.about] if self.about else []), self.sentence]
        if self.bits is not None:
            lead.append(
                f"No answer is more than {shown_factor(self.epsilon)} times likelier with you in the data "
                f"than without, and nobody gains more than {number_up(self.bits)} bits about you, whatever "
                "else they know."
            )
        lead.append(
            f"No attacker beats blind guessing by more than {at_most(self.advantage)}: right at most "
            f"{at_most((1 + self.advantage) / 2)} of the time where a coin is right half of the time."
            + self._why_less
        )
        if self.fits is not None:
            lead.append(f"The budget pays for {self.fits:,} of these, asked one after the other.")
        return lead

    @property
    def _why_less(self) -> str:
        """Say why no attacker reaches what the epsilon alone would allow."""
        if self.any_release is None:
            return ""
        why = "its noise is known, and so is how its parts add up"
        parts = cast("list[dict[str, Any]]", self.cost.to_json()["parts"])
        if all(part["law"] == "pure" for part in parts):
            each = (_part(part["times"], Fraction(part["epsilon"])) for part in parts)
            why = f"this is made of {' and '.join(each)}"
        return (
            f" Of epsilon {number_up(self.epsilon)} alone one could only say {at_most(self.any_release)}; it "
            f"is less here because {why}."
        )

    def _odds_grids(self) -> list[Grid]:
        grids = []
        if self.beliefs:
            rows = tuple((f"{b.prior:.1%}", at_least(b.at_least), at_most(b.at_most)) for b in self.beliefs)
            grids.append(Grid("what an attacker can believe", ("before", "after, at least", "at most"), rows))
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
            header = ("except with probability", "at most", "50:50 becomes")
            grids.append(Grid("how far the odds move", header, shown))
        return grids

    def _tests_grid(self) -> Grid:
        rows = tuple((f"{fpr:.1%}", at_most(tpr)) for fpr, tpr in self.tests)
        return Grid("the best test for your presence", ("false alarms", "true alarms, at most"), rows)

    def _families_grid(self) -> Grid:
        rows = tuple((str(f.size), f.reading, at_most(f.advantage)) for f in self.families)
        return Grid("groups and families", ("people together", "epsilon", "advantage, at most"), rows)


def _part(times: int, epsilon: Fraction) -> str:
    size = str(epsilon) if epsilon.denominator <= 100 else number_up(float(epsilon))
    return f"{times:,} {'part' if times == 1 else 'parts'} of epsilon {size}"
