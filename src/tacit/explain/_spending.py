"""The spending of a budget, explained: how to divide one epsilon so that the errors are smallest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Choose, Code
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.explain._question import ExplainedQuestion
    from tacit.show import Figure


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
        from tacit.explain._cost_figures import spending

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
    whole = math.fsum(roots.values())
    purchases = tuple(
        _purchase(name, question, roots[name] / whole, budget) for name, question in questions.items()
    )
    best = whole**2 / budget
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
