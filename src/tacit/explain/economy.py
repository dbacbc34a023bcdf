"""What a budget buys, as an economist would see it: accuracy per epsilon over competing questions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.explain.pictures import Picture
    from tacit.explain.question import Question

__all__ = ["Purchase", "Spending", "what_a_budget_buys"]


@dataclass(frozen=True, slots=True)
class Purchase:
    """One question's part: its share of the budget, its expected error, absolute and relative."""

    name: str
    question: str
    share: float
    epsilon: float
    error: float
    relative: float


@dataclass(frozen=True, slots=True, repr=False)
class Spending(Readable):
    """A budget divided over questions so that the weighted relative errors add up to the least.

    Attributes
    ----------
    epsilon
        The whole budget.
    purchases
        What each question gets.
    total, equal_split
        The sum of weighted relative errors, by this division and by equal shares.
    price
        What the next small piece of budget is worth: by how much the sum falls per unit of epsilon. At the
        best division this is the same for every question.
    """

    epsilon: float
    purchases: tuple[Purchase, ...]
    total: float
    equal_split: float
    price: float

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        saved = 1 - self.total / self.equal_split
        lead = (
            (
                f"Epsilon {self.epsilon:g} over {len(self.purchases)} questions. Divided so, the weighted "
                f"errors add up to {self.total:.3%} of the questions' sizes; equal shares would give "
                f"{self.equal_split:.3%} ({saved:.1%} saved)."
            ),
            (
                f"The next 0.01 epsilon would lower the sum by about {0.01 * self.price:.3%}, wherever it "
                "is spent."
            ),
        )
        rows = tuple(
            (
                one.name,
                one.question,
                f"{one.share:.1%}",
                f"{one.epsilon:.4g}",
                f"{one.error:.4g}",
                f"{one.relative:.3%}",
            )
            for one in self.purchases
        )
        header = ("question", "facts", "share", "epsilon", "expected error", "relative")
        note = "Expected absolute error of Laplace noise by the textbook: sensitivity / epsilon."
        return Sheet("What a budget buys", lead, (Grid("", header, rows),), (note,))

    def plot(self) -> Picture:
        """Draw the shares and how the sum of errors falls with the budget."""
        from tacit.explain.pictures import spending

        return spending(self)


def what_a_budget_buys(
    questions: Mapping[str, Question], *, epsilon: Number, weights: Mapping[str, Number] | None = None
) -> Spending:
    """Divide a budget over questions so that accuracy is worth the same everywhere.

    With Laplace noise a question's expected relative error is r_i = s_i / (size_i epsilon_i). The sum of
    w_i r_i under
    sum epsilon_i = epsilon is least (Lagrange) at epsilon_i proportional to sqrt(w_i s_i / size_i): half as
    many people need about 1.4 times the share, not twice.

    Parameters
    ----------
    questions
        Named questions; each needs an `n`.
    epsilon
        The whole budget.
    weights
        How much each question matters; 1 where not given.

    Examples
    --------
    >>> from tacit.explain import Question
    >>> questions = {"all": Question("count", 40_000), "rare": Question("count", 400)}
    >>> plan = what_a_budget_buys(questions, epsilon=1)
    >>> [round(one.share, 3) for one in plan.purchases]
    [0.091, 0.909]
    """
    total = rational("epsilon", epsilon)
    if not questions:
        raise bad_parameter(
            "questions", "at least one question", questions, fix='{"all": Question("count", n=1000)}'
        )
    pulls: dict[str, float] = {}
    for name, question in questions.items():
        if question.span is None:
            raise bad_parameter(
                f"questions[{name!r}]", "a question with n", str(question), fix='Question("count", n=1000)'
            )
        weight = rational("weights", (weights or {}).get(name, 1))
        pulls[name] = float(weight * question.sensitivity / question.span)
    unknown = set(weights or {}) - set(questions)
    if unknown:
        raise bad_parameter(
            "weights", "given for the questions only", sorted(unknown), fix=f"one of {list(questions)}"
        )
    roots = {name: math.sqrt(pull) for name, pull in pulls.items()}
    whole = math.fsum(roots.values())
    budget = float(total)
    purchases = []
    for name, question in questions.items():
        share = roots[name] / whole
        error = float(question.sensitivity) / (budget * share)
        relative = error / float(question.span or Fraction(1))
        purchases.append(Purchase(name, str(question), share, budget * share, error, relative))
    best = whole**2 / budget
    return Spending(
        epsilon=budget,
        purchases=tuple(purchases),
        total=best,
        equal_split=len(pulls) * math.fsum(pulls.values()) / budget,
        price=best / budget,
    )
