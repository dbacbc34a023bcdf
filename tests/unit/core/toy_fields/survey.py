"""A toy survey: each respondent flips coins, no collector is trusted and no ledger is charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tacit.core import Content, Plan, Unit, read_identity
from tacit.exact import rational
from tacit.mechanisms import RandomizedResponse

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Report(Content):
    """One randomized answer."""

    kind: ClassVar[str] = "toy-report"
    answer: str

    def to_json(self):
        return self.answer

    @classmethod
    def from_json(cls, document):
        return cls(str(document))


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """One respondent's answer to a question with public categories."""

    asked: str
    categories: tuple[str, ...]
    answer: str
    epsilon: Fraction

    @property
    def question(self):
        return {"asked": self.asked, "categories": list(self.categories)}

    @property
    def mechanisms(self):
        return [RandomizedResponse(epsilon=self.epsilon, categories=self.categories)]

    def integers(self):
        yield self.answer

    def read(self, noisy, confidence):
        del confidence
        return Report(noisy[0])


@dataclass(frozen=True, slots=True)
class Survey:
    """A question that anyone can answer on their own machine."""

    asked: str
    categories: tuple[str, ...]
    epsilon: Fraction

    def answer(self, text):
        identity = read_identity(name=self.asked, unit=Unit.client(), adjacency="replace")
        task = AnswerTask(self.asked, self.categories, text, self.epsilon)
        return Plan.local(identity, task, promised={"epsilon": self.epsilon}, asked=self.asked)

    def estimate(self, reports):
        """Estimate how many respondents gave each answer."""
        coin = RandomizedResponse(epsilon=self.epsilon, categories=self.categories)
        return coin.estimate([report.answer for report in reports])


def survey(asked, categories, *, epsilon):
    return Survey(asked, tuple(categories), rational("epsilon", epsilon))
