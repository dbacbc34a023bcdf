"""What happens at the respondent: true answers go through the randomizers, and a report comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import Content
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.mechanisms import LinearHashing, Memo, QuestionSample
from tacit.surveys._memory import MemoisedAnswer
from tacit.surveys._respondent_words import report_words

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from fractions import Fraction

    from tacit.core import JSON, Measurement
    from tacit.surveys._memory import Memory
    from tacit.surveys._survey_questions import SurveyQuestion

__all__ = ["REPORT_SCHEMA", "AnswerTask", "SurveyReport"]

REPORT_SCHEMA = "tacit/report/1"


@dataclass(frozen=True, slots=True)
class SurveyReport(Content):
    """What one respondent sends: randomized answers, and nothing else.

    Parameters
    ----------
    survey
        The digest of the survey that was answered.
    epsilon
        What the report can give away about its respondent, all answers together.
    answers
        The randomized answers by question, as JSON: places of answers, a whole number, or a seed and a hash.
    invitation
        The number or text of the invitation, so that one person is counted once; or None.
    public
        What else the respondent or the collector states openly, such as a region. It is not protected.
    """

    kind: ClassVar[str] = "survey-report"
    survey: str
    epsilon: str
    answers: Mapping[str, Any]
    invitation: str | None = None
    public: Mapping[str, Any] | None = None
    #: The answers in words, for the respondent alone; they are not part of the document.
    words: Mapping[str, str] | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, JSON]:
        """Return the report as the document that is sent."""
        return {
            "schema": REPORT_SCHEMA,
            "survey": self.survey,
            "epsilon": self.epsilon,
            "invitation": self.invitation,
            "answers": dict(self.answers),
            **({"public": dict(self.public)} if self.public else {}),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read a report; what it lacks is refused."""
        if not isinstance(document, Mapping) or document.get("schema") != REPORT_SCHEMA:
            raise _unreadable(f"a report is a document with the schema {REPORT_SCHEMA}")
        answers, invitation = document.get("answers"), document.get("invitation")
        public = document.get("public") or {}
        if not isinstance(document.get("survey"), str) or not isinstance(answers, Mapping):
            raise _unreadable("a report names its survey and has answers")
        if not isinstance(public, Mapping):
            raise _unreadable("what is public in a report has names")
        number = None if invitation is None else str(invitation)
        return cls(str(document["survey"]), str(document.get("epsilon", "")), answers, number, public or None)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Show what is sent."""
        lines = [f"report for survey {self.survey[:16]}; this is all that is sent:"]
        lines += [f"  {name}: {(self.words or self.answers)[name]}" for name in self.answers]
        lines += [
            f"  {name}: {value} (public, not randomized)" for name, value in (self.public or {}).items()
        ]
        if self.invitation is not None:
            lines.append(f"  invitation: {self.invitation}")
        return "\n".join([*lines, *marks])


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """One respondent's answers to the questions of a survey, for a local plan."""

    survey: str
    epsilon: str
    questions: tuple[SurveyQuestion, ...]
    places: tuple[int, ...] = field(repr=False)
    one: bool
    invitation: str | None
    public: Mapping[str, Any] | None
    memory: Memory | None = field(default=None, repr=False)

    @property
    def question(self) -> JSON:
        """Which survey is answered; nothing about the answers."""
        return {"survey": self.survey, "questions": [question.name for question in self.questions]}

    @property
    def mechanisms(self) -> Sequence[Measurement]:
        """One randomizer for each question, or one draw among all questions."""
        randomizers = [question.randomizer for question in self.questions]
        if self.one:
            return [QuestionSample(randomizers)]
        if self.memory is None:
            return randomizers
        return [MemoisedAnswer(question, self.memory) for question in self.questions]

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the true answers as places or grid steps; they go to the randomizers and nowhere else."""
        exact: list[Any] = [
            self._exact(question, place) for question, place in zip(self.questions, self.places, strict=True)
        ]
        if self.one:
            exact = [exact]
        for value in exact:  # noqa: UP028
            yield value  # `yield from` a list could not receive the reports that come back

    def _exact(self, question: SurveyQuestion, place: int) -> Any:
        if isinstance(question.randomizer, LinearHashing) and self.invitation is not None:
            [seed] = question.randomizer.seeds_for(
                [self.invitation], label=seed_label(self.survey, question.name)
            )
            return {"value": place, "seed": seed}
        return place

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> SurveyReport:
        """Return the report."""
        del confidence
        if self.one:
            [[which, drawn]] = noisy
            found = {self.questions[which].name: _wire(self.questions[which], drawn)}
        else:
            found = {q.name: _wire(q, drawn) for q, drawn in zip(self.questions, noisy, strict=True)}
        words = {q.name: report_words(q, found[q.name]) for q in self.questions if q.name in found}
        return SurveyReport(self.survey, self.epsilon, found, self.invitation, self.public, words)


def seed_label(survey: str, question: str) -> str:
    """Return the public text from which, with an invitation, the seed of a hash is made."""
    return f"{survey}\n{question}"


def _wire(question: SurveyQuestion, drawn: Any) -> Any:
    """Return a randomized answer as JSON; the core writes a dictionary as pairs."""
    if isinstance(question.randomizer, Memo):
        return [drawn]
    return dict(drawn) if isinstance(question.randomizer, LinearHashing) else drawn


def _unreadable(why: str) -> TacitError:
    return TacitError(
        "bad-report",
        "this is not a report that this version of Tacit can read",
        why=why,
        fix=Code("survey.answer({...}).release() writes one"),
    )
