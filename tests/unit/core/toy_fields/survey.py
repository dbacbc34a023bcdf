"""A toy survey: each respondent flips coins, no collector is trusted and no ledger is charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tacit import core
from tacit.exact import rational
from tacit.mechanisms import RandomizedResponse

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Report(core.Content):
    kind: ClassVar[str] = "toy-report"
    answer: str


@dataclass(frozen=True, slots=True)
class Survey:
    """A question that anyone can answer on their own machine."""

    asked: str
    categories: tuple[str, ...]
    epsilon: Fraction

    @property
    def coin(self):
        return RandomizedResponse(epsilon=self.epsilon, categories=self.categories)

    def answer(self, text):
        identity = core.read_identity(name=self.asked, unit=core.Unit.client(), adjacency="replace")
        task = core.Task(
            document={"asked": self.asked, "categories": list(self.categories)}, open=lambda _: text,
            steps=(core.Step(self.coin, lambda answer, _: answer),),
            reading=lambda noisy, _: Report(noisy[0]),
        )  # fmt: skip
        return core.Plan.local(identity, task, promised={"epsilon": self.epsilon}, asked=self.asked)

    def estimate(self, reports):
        """Estimate how many respondents gave each answer."""
        return self.coin.estimate([report.answer for report in reports])


def survey(asked, categories, *, epsilon):
    return Survey(asked, tuple(categories), rational("epsilon", epsilon))
