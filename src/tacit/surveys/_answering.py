"""What happens at the respondent: true answers go through the randomizers, and a report comes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import Content, Step, Task, plain_table, visible
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.mechanisms import LinearHashing, Memo, QuestionSample
from tacit.surveys._memory import MemoisedAnswer
from tacit.surveys._respondent_words import report_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from tacit.core import JSON, AnswerTable, Measurement
    from tacit.surveys._memory import Memory
    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion

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

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the randomized answers."""
        answers = [json.dumps(one, ensure_ascii=False) for one in self.answers.values()]
        yield "randomized answers", plain_table({"question": list(self.answers)}, {"answer": answers})

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Show what is sent."""
        lines = [f"report for survey {self.survey[:16]}; this is all that is sent:"]
        lines += [visible(f"  {name}: {(self.words or self.answers)[name]}") for name in self.answers]
        lines += [
            f"  {name}: {value} (public, not randomized)" for name, value in (self.public or {}).items()
        ]
        if self.invitation is not None:
            lines.append(f"  invitation: {self.invitation}")
        return "\n".join([*lines, *marks])


def answer_task(
    survey: Survey, places: Sequence[int], *, invitation: str | None, public: Mapping[str, Any] | None,
    memory: Memory | None,
) -> Task[None, SurveyReport]:  # fmt: skip
    """Return the task of one respondent: true answers go to the randomizers and nowhere else.

    Parameters
    ----------
    survey
        The survey that is answered.
    places
        The true answers as places or grid steps.
    invitation, public, memory
        See `Survey.answer`.
    """
    questions, one = survey.questions, survey.strategy == "one"
    exact = [_exact(survey, q, place, invitation) for q, place in zip(questions, places, strict=True)]
    mechanisms: list[Measurement] = [
        q.randomizer if memory is None else MemoisedAnswer(q, memory) for q in questions
    ]
    if one:  # one draw among all questions
        exact, mechanisms = [exact], [QuestionSample([question.randomizer for question in questions])]

    def report(noisy: Sequence[Any], _confidence: Fraction) -> SurveyReport:
        """Read the report off the randomized answers."""
        if one:
            [[which, drawn]] = noisy
            found = {questions[which].name: _wire(questions[which], drawn)}
        else:
            found = {q.name: _wire(q, drawn) for q, drawn in zip(questions, noisy, strict=True)}
        words = {q.name: report_words(q, found[q.name]) for q in questions if q.name in found}
        return SurveyReport(survey.digest, str(survey.epsilon), found, invitation, public, words)

    return Task(
        document={"survey": survey.digest, "questions": [question.name for question in questions]},
        open=lambda _: None,
        steps=tuple(_answer(mechanism, value) for mechanism, value in zip(mechanisms, exact, strict=True)),
        reading=report,
    )


def _answer(mechanism: Measurement, exact: Any) -> Step[None]:
    """Return the step that randomizes a true answer, which no text of the step shows."""
    return Step(mechanism, lambda _data, _noisy: exact)


def _exact(survey: Survey, question: SurveyQuestion, place: int, invitation: str | None) -> Any:
    """Return a true answer as its randomizer takes it."""
    if isinstance(question.randomizer, LinearHashing) and invitation is not None:
        label = seed_label(survey.digest, question.name)
        [seed] = question.randomizer.seeds_for([invitation], label=label)
        return {"value": place, "seed": seed}
    return place


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
