"""True answers of respondents: planned for one person, or randomized for many at once to try a survey."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Forecast, Plan, Unit, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Set
from tacit.mechanisms import LinearHashing, Memo, QuestionSample
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
    given = by_name(survey, answers)
    places = tuple(
        int(question.encode({name: [given[name]] for name in question.columns})[0])
        for question in survey.questions
    )
    number = None if invitation is None else str(invitation)
    task = answer_task(survey, places, invitation=number, public=public, memory=memory)
    identity = read_identity(name=survey.name, unit=Unit("respondent"), adjacency="replace")
    forecast = [
        Forecast(q.name, q.text or _asked(q), q.randomizer.describe(), None, "one report says little")
        for q in survey.questions
    ]
    return Plan.local(
        identity, task, promised={"epsilon": survey.epsilon}, forecast=forecast,
        facts=_respondent_facts(survey, public), asked=survey.name,
    )  # fmt: skip


def randomized(
    survey: Survey, answers: Any, *, public: Sequence[str], invitations: Iterable[object] | None
) -> Reports:
    """Randomize the answers of many respondents; see `tacit.surveys.Survey.randomize`."""
    given = by_name(survey, answers)
    encoded = [
        question.encode({name: given[name] for name in question.columns}) for question in survey.questions
    ]
    total = len(encoded[0])
    if any(len(one) != total for one in encoded):
        raise bad_parameter("answers", "as many answers to each question", [len(one) for one in encoded])
    numbers = None if invitations is None else tuple(map(str, invitations))
    if numbers is not None and len(numbers) != total:
        raise bad_parameter("invitations", f"one for each of the {total:,} respondents", len(numbers))
    asked = np.zeros(total, dtype=np.int64)
    if survey.strategy == "one":
        asked = QuestionSample([question.randomizer for question in survey.questions]).draw(total)
    answered = {}
    for place, (question, truth) in enumerate(zip(survey.questions, encoded, strict=True)):
        rows = np.nonzero(asked == place)[0] if survey.strategy == "one" else np.arange(total)
        drawn = _drawn(survey, question, truth[rows], None if numbers is None else [numbers[i] for i in rows])
        answered[question.name] = AnsweredQuestion(rows, drawn)
    kept = {name: _public_column(given, name) for name in _several(public)}
    return Reports(survey, total, answered, kept, numbers)


def by_name(survey: Survey, answers: Any) -> Mapping[str, Any]:
    """Return true answers by question; a question without an answer is refused."""
    columns = [name for question in survey.questions for name in question.columns]
    given = answers
    if not isinstance(answers, Mapping) and not hasattr(answers, "columns"):
        given = {columns[0]: answers} if len(columns) == 1 else {}
    known = set(given.columns if hasattr(given, "columns") else given)
    if missing := [name for name in columns if name not in known]:
        raise TacitError(
            "unknown-category",
            f"there is no answer to {missing[0]!r}",
            why="a skipped question would reveal something about the respondent",
            fix="declare an answer for people who do not answer, such as 'no answer'",
        )
    return given  # type: ignore[no-any-return]


def _respondent_facts(survey: Survey, public: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    facts = [(f"sent for {q.name}", what_is_sent(q)) for q in survey.questions]
    if survey.strategy == "one" and len(survey.questions) > 1:
        facts.insert(0, ("asked", f"one of the {len(survey.questions)} questions, drawn at random"))
    facts += [("public", f"{name} is sent as it is")] if (name := ", ".join(public or {})) else []
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
    drawn: Any = randomizer.release(truth)
    return drawn[:, None] if isinstance(randomizer, Memo) else drawn


def _asked(question: SurveyQuestion) -> str:
    return "your answer" if question.name == "answer" else f"your answer to {question.name}"


def _several(public: Sequence[str]) -> Sequence[str]:
    if isinstance(public, str):
        raise bad_parameter("public", "a list of columns", public, fix=Set(public=[public]))
    return public


def _public_column(given: Any, name: str) -> Any:
    names = tuple(map(str, given.columns if hasattr(given, "columns") else given))
    if name not in names:
        raise TacitError("unknown-column", f"there is no column {name!r}", fix=Choose(names, given=name))
    return np.asarray(given[name])
