"""The trade-off of privacy and accuracy, explained: the epsilon for an error, and the error over epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

from tacit import mechanisms
from tacit.exact import Number, rational
from tacit.explain._odds import believe, read_share
from tacit.explain._question import ExplainedQuestion
from tacit.explain._rounding import number_up, shown_odds
from tacit.report import Report, Reportable, ReportTable
from tacit.show import Drawn

if TYPE_CHECKING:
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, repr=False)
class Tradeoff(Drawn, Reportable):
    """The epsilon that a wanted error needs.

    Attributes
    ----------
    question
        What is asked.
    error, confidence
        The wanted half-width, and the probability with which the noise must stay within it.
    epsilon
        The smallest epsilon that reaches it, with the exact integer noise that Tacit draws.
    textbook
        The epsilon by the continuous Laplace formula, sensitivity x ln(1 / (1 - confidence)) / error.
    curve
        Pairs of epsilon and error around the answer.
    crowd
        Pairs of n and error at this epsilon; empty where n does not matter.
    """

    question: ExplainedQuestion
    error: float
    confidence: float
    epsilon: float
    textbook: float
    curve: tuple[tuple[float, float], ...]
    crowd: tuple[tuple[int, float], ...]

    def report(self) -> Report:
        """Return the facts to show."""
        reached = shown_odds(believe(0.5, self.epsilon).at_most)
        sure = f"{100 * self.confidence:g} %"
        lead = (
            (
                f"To know the {self.question} within +/- {self.error:g} in {sure} of all cases, you need "
                f"epsilon {number_up(self.epsilon)}."
            ),
            (
                f"One person changes the answer by at most {float(self.question.sensitivity):g}. At this "
                "epsilon, an attacker who gave 50:50 odds that someone is in the data can reach at most "
                f"{reached}."
            ),
        )
        picked = self.curve[:: max(1, len(self.curve) // 8)]
        tables = [ReportTable("the error for each epsilon", ("epsilon", "error"), _rows(picked))]
        if self.crowd:
            tables.append(
                ReportTable("the error for each n, at this epsilon", ("n", "error"), _rows(self.crowd))
            )
        return Report("Which epsilon do I need?", lead, tuple(tables), self._notes())

    def _notes(self) -> tuple[str, ...]:
        mean = self.question.statistic == "mean"
        size = f" --size {self.question.n}" if mean else ""
        notes = [
            (
                f"By the textbook formula: epsilon {self.textbook:.4g}. The error is that of the noise only; "
                "sampling and values outside the bounds add to it."
            ),
            (
                "One row per person is assumed. If up to k rows of a person count, the same error needs "
                "about k times the epsilon or more. The plan for your own table shows how much: "
                f"tacit plan SQL --within {self.error:g}{size}."
            ),
        ]
        if mean:
            notes.append(
                "For a mean, n is public and one person's value may change. If n is private too, as in a "
                "table, the same error needs a larger epsilon."
            )
        return tuple(notes)

    def chart(self) -> str:
        """Draw error over epsilon with characters; X marks the answer."""
        from tacit.show import draw_curve

        x, y = zip(*((epsilon, error) for epsilon, error in self.curve if error > 0), strict=True)
        return draw_curve(x, y, xlabel="epsilon", ylabel="error", mark=(self.epsilon, self.error))

    def figures(self) -> tuple[Figure, ...]:
        """Return error over epsilon, with the answer marked."""
        from tacit.explain._cost_figures import tradeoff_curve

        return (tradeoff_curve(self),)


def noise_for(
    question: ExplainedQuestion, epsilon: Number
) -> mechanisms.Laplace | mechanisms.DiscreteLaplace:
    """Return the mechanism that answers a question: integer noise for a count, a fine grid for the others."""
    if question.statistic == "count":
        return mechanisms.DiscreteLaplace(epsilon=epsilon, sensitivity=1)
    return mechanisms.Laplace(epsilon=epsilon, sensitivity=question.sensitivity)


def half_width(question: ExplainedQuestion, epsilon: Number, confidence: Number = Fraction(19, 20)) -> float:
    """Return the error that the noise stays within, with the given probability.

    Examples
    --------
    >>> half_width(ExplainedQuestion("count"), 1)
    3.0
    """
    return float(noise_for(question, epsilon).error(confidence))


def tradeoff(
    statistic: str,
    *,
    error: Number,
    n: SupportsIndex | None = None,
    bounds: tuple[Number, Number] | None = None,
    confidence: Number = 0.95,
) -> Tradeoff:
    """Compute which epsilon a wanted error needs, without any data.

    Parameters
    ----------
    statistic
        ``count``, ``sum`` or ``mean``.
    error
        The wanted half-width: the noise stays within it with probability `confidence`.
    n
        The number of people: a public figure, or an estimate for planning.
    bounds
        The public range of one person's value.
    confidence
        The probability with which the noise stays within the error.

    Examples
    --------
    >>> answer = tradeoff("mean", error=1, n=5000, bounds=(80, 200))
    >>> round(answer.epsilon, 3)
    0.072
    """
    question = ExplainedQuestion(statistic, n, bounds)
    wanted, sure = rational("error", error), rational("confidence", confidence)
    read_share("confidence", confidence, example=0.95)
    needed = _needed(question, wanted, sure)
    unit = mechanisms.Laplace(epsilon=1, sensitivity=question.sensitivity).textbook
    textbook = unit.error(sure) / float(wanted)
    steps = [needed * 2.0 ** (step / 4) for step in range(-16, 17)]
    crowd = []
    if question.statistic == "mean" and question.n is not None:
        sizes = sorted({max(1, question.n * times // 4) for times in (1, 2, 4, 8, 16)})
        crowd = [
            (size, half_width(ExplainedQuestion(statistic, size, question.bounds), needed, sure))
            for size in sizes
        ]
    return Tradeoff(
        question=question,
        error=float(wanted),
        confidence=float(sure),
        epsilon=needed,
        textbook=textbook,
        curve=tuple((epsilon, half_width(question, epsilon, sure)) for epsilon in steps),
        crowd=tuple(crowd),
    )


def _needed(question: ExplainedQuestion, error: Fraction, confidence: Fraction) -> float:
    """Return the smallest epsilon whose noise stays within the error; the mechanism verifies the result."""
    if question.statistic == "count":
        return mechanisms.DiscreteLaplace.accuracy_to_epsilon(error, confidence, sensitivity=1)
    return mechanisms.Laplace.accuracy_to_epsilon(error, confidence, sensitivity=question.sensitivity)


def _rows(
    pairs: tuple[tuple[float, float], ...] | tuple[tuple[int, float], ...],
) -> tuple[tuple[str, str], ...]:
    return tuple((f"{x:,}" if isinstance(x, int) else f"{x:.4g}", f"+/- {number_up(y)}") for x, y in pairs)
