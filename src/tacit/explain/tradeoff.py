"""Privacy against accuracy: which epsilon a wanted error needs, and how error moves with epsilon and n."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

from tacit import mechanisms
from tacit.exact import Number, rational
from tacit.explain.odds import believe, number_up, read_share, shown_odds
from tacit.explain.question import Question
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from tacit.explain.pictures import Picture

__all__ = ["Tradeoff", "half_width", "noise_for", "tradeoff"]


@dataclass(frozen=True, slots=True, repr=False)
class Tradeoff(Readable):
    """The epsilon that a wanted error needs.

    Attributes
    ----------
    question
        What is asked.
    error, confidence
        The wanted half-width, and how often the noise must stay within it.
    epsilon
        The smallest epsilon that does it, of the exact integer noise that is drawn.
    textbook
        The same by the continuous Laplace formula, sensitivity x ln(1 / (1 - confidence)) / error.
    curve
        Pairs of epsilon and error around it.
    crowd
        Pairs of n and error at this epsilon, where n matters.
    """

    question: Question
    error: float
    confidence: float
    epsilon: float
    textbook: float
    curve: tuple[tuple[float, float], ...]
    crowd: tuple[tuple[int, float], ...]

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        reached = shown_odds(believe(0.5, self.epsilon).at_most)
        lead = (
            (
                f"To know the {self.question}, up to +/- {self.error:g} in {100 * self.confidence:g} % of "
                f"all cases, you need epsilon {number_up(self.epsilon)}."
            ),
            (
                f"One person moves the answer by at most {float(self.question.sensitivity):g}. At this "
                "epsilon an attacker who gave 50:50 that someone is in the data can reach at most "
                f"{reached}."
            ),
        )
        picked = self.curve[:: max(1, len(self.curve) // 8)]
        grids = [Grid("error over epsilon", ("epsilon", "error"), _rows(picked))]
        if self.crowd:
            grids.append(Grid("error over n, at this epsilon", ("n", "error"), _rows(self.crowd)))
        guess = f" --size {self.question.n}" if self.question.statistic == "mean" else ""
        notes = [
            (
                f"By the textbook formula: epsilon {self.textbook:.4g}. The error is that of the noise; "
                "sampling and values outside the bounds come on top."
            ),
            (
                "One row per person. Where up to k rows of a person count, the same error needs about k "
                "times the epsilon or more; the plan of your own table says it: tacit plan SQL --within "
                f"{self.error:g}{guess}."
            ),
        ]
        if self.question.statistic == "mean":
            notes.append(
                "For a mean, n counts as public and one person's value may change; where n is private too, "
                "as in a table, more is needed still."
            )
        return Sheet("Which epsilon do I need?", lead, tuple(grids), tuple(notes))

    def chart(self) -> str:
        """Draw error over epsilon with letters, the answer marked X."""
        from tacit.explain.terminal import curve

        x, y = zip(*((epsilon, error) for epsilon, error in self.curve if error > 0), strict=True)
        return curve(x, y, xlabel="epsilon", ylabel="error", mark=(self.epsilon, self.error))

    def plot(self) -> Picture:
        """Draw error over epsilon with the answer marked."""
        from tacit.explain.pictures import tradeoff_curve

        return tradeoff_curve(self)


def noise_for(question: Question, epsilon: Number) -> mechanisms.Laplace | mechanisms.DiscreteLaplace:
    """Return the mechanism that answers a question: whole noise for counts, a fine grid for the rest."""
    if question.statistic == "count":
        return mechanisms.DiscreteLaplace(epsilon=epsilon, sensitivity=1)
    return mechanisms.Laplace(epsilon=epsilon, sensitivity=question.sensitivity)


def half_width(question: Question, epsilon: Number, confidence: Number = Fraction(19, 20)) -> float:
    """Return within what the noise stays with the given probability.

    Examples
    --------
    >>> half_width(Question("count"), 1)
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
    """Say which epsilon a wanted error needs, without any data.

    Parameters
    ----------
    statistic
        ``count``, ``sum`` or ``mean``.
    error
        The wanted half-width: the noise stays within it with probability `confidence`.
    n
        How many people; public, or a guess for planning.
    bounds
        The public range of one person's value.
    confidence
        How often the noise stays within the error.

    Examples
    --------
    >>> answer = tradeoff("mean", error=1, n=5000, bounds=(80, 200))
    >>> round(answer.epsilon, 3)
    0.072
    """
    question = Question(statistic, n, bounds)
    wanted, sure = rational("error", error), rational("confidence", confidence)
    read_share("confidence", confidence)
    needed = _needed(question, wanted, sure)
    unit = mechanisms.Laplace(epsilon=1, sensitivity=question.sensitivity).textbook
    textbook = unit.error(sure) / float(wanted)
    steps = [needed * 2.0 ** (step / 4) for step in range(-16, 17)]
    crowd = []
    if question.statistic == "mean" and question.n is not None:
        sizes = sorted({max(1, question.n * times // 4) for times in (1, 2, 4, 8, 16)})
        crowd = [
            (size, half_width(Question(statistic, size, question.bounds), needed, sure)) for size in sizes
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


def _needed(question: Question, error: Fraction, confidence: Fraction) -> float:
    """Return the smallest epsilon whose noise stays within the error; the mechanism checks it forward."""
    if question.statistic == "count":
        return mechanisms.DiscreteLaplace.accuracy_to_epsilon(error, confidence, sensitivity=1)
    return mechanisms.Laplace.accuracy_to_epsilon(error, confidence, sensitivity=question.sensitivity)


def _rows(
    pairs: tuple[tuple[float, float], ...] | tuple[tuple[int, float], ...],
) -> tuple[tuple[str, str], ...]:
    return tuple((f"{x:,}" if isinstance(x, int) else f"{x:.4g}", f"+/- {number_up(y)}") for x, y in pairs)
