"""Trade-offs that explain a cost: error against epsilon, between questions, in bits, and in a small crowd.

`tradeoff` finds the epsilon for an error. `what_a_budget_buys` divides one epsilon so that the errors are
smallest. `rate_distortion` compares the information about one person with the squared error of a count.
`small_crowd` shows what noise does to a sum over a few people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

from tacit import mechanisms
from tacit.accounting import Cost
from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.explain._odds import believe, number_up, read_share, shown_odds
from tacit.explain._question import ExplainedQuestion
from tacit.fixes import Choose, Code
from tacit.parameters import Listed, RealNumber
from tacit.report import Report, Reportable, ReportTable, percent, short_percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
        sure = short_percent(self.confidence)
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
        from tacit.explain._figures import tradeoff_curve

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
    largest_error, sure = rational("error", error), rational("confidence", confidence)
    read_share("confidence", confidence, example=0.95)
    needed = _needed(question, largest_error, sure)
    unit = mechanisms.Laplace(epsilon=1, sensitivity=question.sensitivity).textbook
    textbook = unit.error(sure) / float(largest_error)
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
        error=float(largest_error),
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


@dataclass(frozen=True, slots=True)
class Purchase:
    """The part of one question: its share of the budget and its expected error, absolute and relative."""

    name: str
    question: str
    share: float
    epsilon: float
    error: float
    relative: float


@dataclass(frozen=True, slots=True, repr=False)
class Spending(Drawn, Reportable):
    """A budget divided over questions so that the sum of the weighted relative errors is smallest.

    Attributes
    ----------
    epsilon
        The whole budget.
    purchases
        The part of each question.
    total, equal_split
        The sum of the weighted relative errors with this division, and with equal shares.
    price
        How much the sum falls per unit of additional epsilon. With the best division this is the same for
        every question.
    """

    epsilon: float
    purchases: tuple[Purchase, ...]
    total: float
    equal_split: float
    price: float

    def report(self) -> Report:
        """Return the facts to show."""
        saved = 1 - self.total / self.equal_split
        many = "1 question" if len(self.purchases) == 1 else f"{len(self.purchases)} questions"
        lead = (
            (
                f"Epsilon {self.epsilon:g} is divided over {many}. With this division the weighted relative "
                f"errors add up to {percent(self.total, 3)}; equal shares would give "
                f"{percent(self.equal_split, 3)} ({percent(saved)} saved)."
            ),
            (
                f"Another 0.01 of epsilon would lower the sum by about {percent(0.01 * self.price, 3)}, "
                "whichever question gets it."
            ),
        )
        rows = tuple(
            (
                one.name,
                one.question,
                percent(one.share),
                f"{one.epsilon:.4g}",
                f"{one.error:.4g}",
                percent(one.relative, 3),
            )
            for one in self.purchases
        )
        header = ("question", "facts", "share", "epsilon", "expected error", "relative error")
        note = (
            "The expected error is the mean absolute error of Laplace noise by the textbook: sensitivity / "
            "epsilon."
        )
        return Report("What a budget buys", lead, (ReportTable("", header, rows),), (note,))

    def figures(self) -> tuple[Figure, ...]:
        """Return the shares, and how the sum of the errors falls as the budget grows."""
        from tacit.explain._figures import spending

        return (spending(self),)


def what_a_budget_buys(
    questions: Mapping[str, ExplainedQuestion],
    *,
    epsilon: Number,
    weights: Mapping[str, Number] | None = None,
) -> Spending:
    """Divide a budget over questions so that the sum of the weighted relative errors is smallest.

    With Laplace noise the expected relative error of a question is r_i = s_i / (size_i epsilon_i). Under the
    constraint sum epsilon_i = epsilon, the sum of w_i r_i is smallest (Lagrange) where epsilon_i is
    proportional to sqrt(w_i s_i / size_i): a question about half as many people needs about 1.4 times the
    share, not twice the share.

    Parameters
    ----------
    questions
        Questions by name; each needs an `n`.
    epsilon
        The whole budget.
    weights
        The importance of each question; 1 where not given.

    Examples
    --------
    >>> from tacit.explain import ExplainedQuestion
    >>> questions = {"all": ExplainedQuestion("count", 40_000), "rare": ExplainedQuestion("count", 400)}
    >>> plan = what_a_budget_buys(questions, epsilon=1)
    >>> [round(one.share, 3) for one in plan.purchases]
    [0.091, 0.909]
    """
    budget = float(rational("epsilon", epsilon))
    pulls = _pulls(questions, weights or {})
    roots = {name: math.sqrt(pull) for name, pull in pulls.items()}
    total = math.fsum(roots.values())
    purchases = tuple(
        _purchase(name, question, roots[name] / total, budget) for name, question in questions.items()
    )
    best = total**2 / budget
    return Spending(
        epsilon=budget,
        purchases=purchases,
        total=best,
        equal_split=len(pulls) * math.fsum(pulls.values()) / budget,
        price=best / budget,
    )


def _pulls(questions: Mapping[str, ExplainedQuestion], weights: Mapping[str, Number]) -> dict[str, float]:
    """Return w_i s_i / size_i for each question: its weighted relative error at epsilon 1."""
    if not questions:
        raise bad_parameter(
            "questions",
            "at least one question",
            questions,
            fix=Code('what_a_budget_buys({"all": ExplainedQuestion("count", n=1000)}, epsilon=1)'),
        )
    unknown = sorted(set(weights) - set(questions))
    if unknown:
        fix = Choose(tuple(questions), given=str(unknown[0]))
        raise bad_parameter("weights", "given by the names of the questions", unknown, fix=fix)
    pulls: dict[str, float] = {}
    for name, question in questions.items():
        if question.span is None:
            fix_n = Code(f'ExplainedQuestion("{question.statistic}", n=1000, ...)')
            raise bad_parameter(f"the question {name!r}", "one with n", str(question), fix=fix_n)
        weight = rational("weights", weights.get(name, 1))
        pulls[name] = float(weight * question.sensitivity / question.span)
    return pulls


def _purchase(name: str, question: ExplainedQuestion, share: float, budget: float) -> Purchase:
    error = float(question.sensitivity) / (budget * share)
    relative = error / float(question.span or Fraction(1))
    return Purchase(name, str(question), share, budget * share, error, relative)


@dataclass(frozen=True, slots=True)
class RatePoint:
    """At one epsilon: the information given away (KL, in nats) and the error (MSE), drawn and by textbook."""

    epsilon: float
    kl: float
    mse: float
    textbook_kl: float
    textbook_mse: float


@dataclass(frozen=True, slots=True, repr=False)
class RateDistortion(Drawn, Reportable):
    """A count as a channel: the fewer nats about one person it lets through, the larger its squared error.

    For small epsilon the product tends to 1 for Laplace noise. For Gaussian noise it is 1/2 at every sigma,
    but Gaussian noise has no pure epsilon.
    """

    points: tuple[RatePoint, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                "The information about one person is the rate, and the squared error is the distortion. "
                "Half the epsilon lets through a quarter of the information and makes the squared error of "
                "a count four times as large."
            ),
        )
        rows = tuple(
            (
                f"{p.epsilon:g}",
                f"{p.kl:.5g}",
                f"{p.mse:.5g}",
                f"{p.kl * p.mse:.4f}",
                f"{p.textbook_kl * p.textbook_mse:.4f}",
            )
            for p in self.points
        )
        header = ("epsilon", "KL in nats", "MSE", "product", "product, textbook")
        return Report("Rate and distortion of a count", lead, (ReportTable("", header, rows),))

    def figures(self) -> tuple[Figure, ...]:
        """Return MSE over epsilon and MSE over KL."""
        from tacit.explain._figures import rate_distortion_curves

        return (rate_distortion_curves(self),)


def rate_distortion(epsilons: Iterable[Number] = (0.01, 0.03, 0.1, 0.3, 1, 3)) -> RateDistortion:
    """Compare the information about one person with the error of a count, for several epsilons.

    Examples
    --------
    >>> point = rate_distortion([0.01]).points[0]
    >>> round(point.textbook_kl * point.textbook_mse, 2), round(point.kl * point.mse, 2)
    (1.0, 1.0)
    """
    points = []
    for epsilon in Listed("positive numbers", "(0.1, 1)", each=RealNumber()).read("epsilons", epsilons):
        noise = mechanisms.DiscreteLaplace(epsilon=epsilon, sensitivity=1)
        book = mechanisms.Laplace(epsilon=epsilon, sensitivity=1).textbook
        kl = Cost.discrete_laplace(scale=1 / epsilon, sensitivity=1).kl
        points.append(RatePoint(float(epsilon), kl, noise.variance, book.kl, book.variance))
    return RateDistortion(tuple(sorted(points, key=lambda point: point.epsilon)))


@dataclass(frozen=True, slots=True, repr=False)
class SmallCrowd(Drawn, Reportable):
    """A sum over so few people that the noise hides it.

    Attributes
    ----------
    truth, bound, epsilon
        The true sum, the largest value of one person, and the cost.
    useless, useless_textbook
        The probability that the answer is negative or wrong by more than 100 %: for the noise that Tacit
        draws, and for the textbook law.
    needed
        The epsilon at which this probability falls to 5 %.
    """

    truth: float
    bound: float
    epsilon: float
    useless: float
    useless_textbook: float
    needed: float

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"The true sum is {self.truth:g}, each person can add up to {self.bound:g}, and epsilon is "
                f"{self.epsilon:g}. The answer is negative or wrong by more than 100 % with probability "
                f"{self.useless:.4f}."
            ),
            (f"To lower this probability to 5 %, the sum needs epsilon {self.needed:.3g}, or more people."),
        )
        note = f"By the textbook formula exp(-epsilon x truth / bound): {self.useless_textbook:.4f}."
        return Report("Too small a crowd", lead, (), (note,))

    def figures(self) -> tuple[Figure, ...]:
        """Return the density of the answer, with the useless part shaded."""
        from tacit.explain._figures import small_crowd_density

        return (small_crowd_density(self),)


def small_crowd(*, truth: Number = 100, bound: Number = 100, epsilon: Number = 0.5) -> SmallCrowd:
    """Show what noise does to a sum over a few people.

    Examples
    --------
    >>> ages = small_crowd(truth=100, bound=100, epsilon=0.5)  # two people, ages up to 100
    >>> round(ages.useless_textbook, 4), round(ages.useless, 4)
    (0.6065, 0.6065)
    """
    true, cap, spent = rational("truth", truth), rational("bound", bound), rational("epsilon", epsilon)
    noise = mechanisms.Laplace(epsilon=spent, sensitivity=cap)
    return SmallCrowd(
        truth=float(true),
        bound=float(cap),
        epsilon=float(spent),
        useless=noise.exceeds(true),
        useless_textbook=noise.textbook.exceeds(true),
        needed=mechanisms.Laplace.accuracy_to_epsilon(true, 0.95, sensitivity=cap),
    )
