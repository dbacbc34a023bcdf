"""True answers of respondents: planned for one person, or randomized for many at once to try a survey."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Forecast, Plan, Unit, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code
from tacit.mechanisms import LinearHashing, Memo, QuestionSample
from tacit.parameters import ColumnName, Listed
from tacit.surveys._answering import SurveyReport, answer_task, gives_away, seed_label, what_is_sent
from tacit.surveys._reports import AnsweredQuestion, Reports

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tacit.surveys._answering import Memory
    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion


def plan_for(
    survey: Survey,
    answers: Any,
    *,
    invitation: str | int | None,
    public: Mapping[str, Any] | None,
    memory: Memory | None,
) -> Plan[SurveyReport]:
    """Return the plan of one respondent; see `tacit.surveys.Survey.answer`."""
    _check_memory(survey, memory)
    answers_by_name = by_name(survey, answers)
    places = tuple(
        int(question.encode({name: [answers_by_name[name]] for name in question.columns})[0])
        for question in survey.questions
    )
    number = None if invitation is None else str(invitation)
    task = answer_task(survey, places, invitation=number, public=public, memory=memory)
    identity = read_identity(name=survey.name, unit=Unit("respondent"), adjacency="replace")
    openly = ", ".join(public or {})
    return Plan.local(
        identity, task, promised={"epsilon": survey.epsilon}, forecast=lambda: _forecast(survey),
        facts=lambda: _respondent_facts(survey, openly), asked=survey.name,
    )  # fmt: skip


def _forecast(survey: Survey) -> list[Forecast]:
    return [
        Forecast(q.name, q.text or _asked(q), q.randomizer.describe(), None, "one report says little")
        for q in survey.questions
    ]


def randomized(
    survey: Survey, answers: Any, *, public: Sequence[str], invitations: Iterable[object] | None
) -> Reports:
    """Randomize the answers of many respondents; see `tacit.surveys.Survey.randomize`."""
    answers_by_name = by_name(survey, answers)
    encoded = [
        question.encode({name: answers_by_name[name] for name in question.columns})
        for question in survey.questions
    ]
    total = len(encoded[0])
    if any(len(one) != total for one in encoded):
        raise bad_parameter("answers", "as many answers to each question", [len(one) for one in encoded])
    numbers = None if invitations is None else tuple(map(str, invitations))
    if numbers is not None and len(numbers) != total:
        raise bad_parameter("invitations", f"one for each of the {total:,} respondents", len(numbers))
    sampled_question = np.zeros(total, dtype=np.int64)
    if survey.strategy == "one":
        sampled_question = QuestionSample([question.randomizer for question in survey.questions]).draw(total)
    answered = {}
    for index, (question, truth) in enumerate(zip(survey.questions, encoded, strict=True)):
        rows = np.nonzero(sampled_question == index)[0] if survey.strategy == "one" else np.arange(total)
        reported = _drawn(
            survey, question, truth[rows], None if numbers is None else [numbers[i] for i in rows]
        )
        answered[question.name] = AnsweredQuestion(rows, reported)
    public_columns = {name: _public_column(answers_by_name, name) for name in _several(public)}
    return Reports(survey, total, answered, public_columns, numbers)


def by_name(survey: Survey, answers: Any) -> Mapping[str, Any]:
    """Return true answers by question; a question without an answer is refused."""
    columns = [name for question in survey.questions for name in question.columns]
    columns_of_answers = answers
    if not isinstance(answers, Mapping) and not hasattr(answers, "columns"):
        columns_of_answers = {columns[0]: answers} if len(columns) == 1 else {}
    column_names = set(
        columns_of_answers.columns if hasattr(columns_of_answers, "columns") else columns_of_answers
    )
    if missing := [name for name in columns if name not in column_names]:
        raise TacitError(
            "unknown-category",
            f"there is no answer to {missing[0]!r}",
            why="a skipped question would reveal something about the respondent",
            fix="declare an answer for people who do not answer, such as 'no answer'",
        )
    return columns_of_answers  # type: ignore[no-any-return]


def _respondent_facts(survey: Survey, public: str) -> list[tuple[str, str]]:
    facts = [(f"sent for {q.name}", what_is_sent(q)) for q in survey.questions]
    if survey.strategy == "one" and len(survey.questions) > 1:
        facts.insert(0, ("asked", f"one of the {len(survey.questions)} questions, drawn at random"))
    facts += [("public", f"{public} is sent as it is")] if public else []
    if survey.is_repeated:
        facts.append(("repeated", survey.sequence(12).words))
    return [*facts, ("gives away", gives_away(survey.epsilon))]


def _check_memory(survey: Survey, memory: Memory | None) -> None:
    if memory is None and survey.is_repeated:
        raise TacitError(
            "bad-parameter",
            "a repeated survey needs the respondent's memory",
            why="a new permanent answer each time would give away more than the survey promises",
            fix=Code("memory=tc.surveys.Memory(survey.digest)"),
        )
    if memory is not None and (not survey.is_repeated or memory.survey != survey.digest):
        raise TacitError(
            "other-survey",
            "the memory belongs to another survey",
            why="permanent answers are drawn with the odds of one survey",
            fix=Code("memory=tc.surveys.Memory(survey.digest)"),
        )


def _drawn(survey: Survey, question: SurveyQuestion, truth: Any, numbers: list[str] | None) -> Any:
    randomizer = question.randomizer
    if isinstance(randomizer, LinearHashing) and numbers is not None:
        label = seed_label(survey.digest, question.name)
        return randomizer.release(truth, seeds=randomizer.seeds_for(numbers, label=label))
    reported: Any = randomizer.release(truth)
    return reported[:, None] if isinstance(randomizer, Memo) else reported


def _asked(question: SurveyQuestion) -> str:
    return "your answer" if question.name == "answer" else f"your answer to {question.name}"


def _several(public: Sequence[str]) -> Sequence[str]:
    return Listed("columns", '["age"]', 0, each=ColumnName()).read("public", public)


def _public_column(answers: Any, name: str) -> Any:
    names = tuple(map(str, answers.columns if hasattr(answers, "columns") else answers))
    if name not in names:
        raise TacitError("unknown-column", f"there is no column {name!r}", fix=Choose(names, given=name))
    return np.asarray(answers[name])
