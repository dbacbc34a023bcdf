"""What happens at the respondent: true answers go through the randomizers, and a report comes out.

Before anything is sent, the respondent reads what would be sent and what it can give away. A survey that is
repeated keeps permanent answers on the respondent's device, and says what a sequence of reports gives away.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import Content, Step, Task, plain_table, visible
from tacit.errors import TacitError
from tacit.exact import count
from tacit.fixes import Code
from tacit.mechanisms import Design, LinearHashing, Memo, NumberWindow, QuestionSample, SubsetSelection
from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from tacit.accounting import Cost
    from tacit.core import JSON, AnswerTable, Measurement
    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion


def what_is_sent(question: SurveyQuestion) -> str:
    """Say in plain words what the report of one question is.

    Examples
    --------
    >>> import tacit as tc
    >>> [smokes] = tc.survey("smoking", ["no", "yes"], epsilon=1).questions
    >>> what_is_sent(smokes)
    'one of the 2 answers: the true one with probability 73.1 %, the other one with 26.9 %'
    """
    match question.randomizer:
        case SubsetSelection(subset=1) as coin:
            p, q = percent(float(coin.p)), percent(float(coin.q))
            other = "the other one" if coin.size == 2 else "each other one"
            return f"one of the {coin.size:,} answers: the true one with probability {p}, {other} with {q}"
        case SubsetSelection() as sets:
            p, q = percent(float(sets.p)), percent(float(sets.q))
            subset_words = f"{sets.subset:,} of the {sets.size:,} answers"
            return f"{subset_words}: the true one is among them with probability {p}, any other one with {q}"
        case LinearHashing() as hashed:
            p, q = percent(float(hashed.p)), percent(float(hashed.q))
            number = f"a number below {2**hashed.bits:,} that many answers share"
            return f"{number}: the true answer fits it with probability {p}, any other one with {q}"
        case NumberWindow() as window:
            return _window_words(question, window)
        case Memo() as memo:
            once = SubsetSelection(odds=memo.once_odds, size=memo.size, subset=1)
            p, q = percent(float(once.p)), percent(float(once.q))
            sent = f"one of the {memo.size:,} answers: the true one with probability {p}, others with {q}"
            return (
                f"{sent}; the device keeps a permanent answer and reports it through a fresh coin each time"
            )
        case Design() as design if design.draws == 1:
            no, yes = map(_label, question.answers)
            p, q = percent(float(design.p)), percent(float(design.q))
            return f"{yes} or {no}: {yes} with probability {p} if that is true, and with {q} if it is not"
        case Design() as design:
            no, yes = map(_label, question.answers)
            p, q = percent(float(design.p)), percent(float(design.q))
            deck = f"from a deck with {p} red cards if {yes} is true"
            return f"how many of {design.draws} cards are red: {deck}, with {q} if {no} is"
    return question.randomizer.describe()


def report_words(question: SurveyQuestion, report: Any) -> str:
    """Say in plain words what one report of a question is, as its respondent sees it before sending.

    Examples
    --------
    >>> import tacit as tc
    >>> [smokes] = tc.survey("smoking", ["no", "yes"], epsilon=1).questions
    >>> report_words(smokes, [1])
    'yes'
    """
    match question.randomizer:
        case SubsetSelection() | Memo():
            return "; ".join(_label(question.answers[place]) for place in report)
        case NumberWindow() as window:
            if abs(report) > window.reach:
                return "high" if report > 0 else "low"
            return f"{float(question.centre + question.radius * report / window.steps):.4g}"
        case Design() as design if design.draws == 1:
            return _label(question.answers[report])
        case Design() as design:
            return f"{report} of {design.draws} cards are red"
        case LinearHashing():
            return f"the number {report['answer']}, with the seed {report['seed']}"
    return str(report)


def _label(answer: Any) -> str:
    return ", ".join(map(str, answer)) if isinstance(answer, tuple) else str(answer)


def _window_words(question: SurveyQuestion, window: NumberWindow) -> str:
    chance = float(window.window_chance)
    centre, radius = float(question.centre), float(question.radius)
    parts = []
    if window.half_width is not None:
        reach = radius * window.half_width / window.steps
        width = radius * window.reach / window.steps
        low, high = centre - width, centre + width
        nearby = percent(
            float(window.probability(0, truth=0) / window.window_chance * (2 * window.half_width + 1))
        )
        parts.append(
            f"a number from {low:.4g} to {high:.4g}, within {reach:.3g} of the true one with chance {nearby}"
        )
    if chance < 1:
        side = "the word low or high, drawn by a coin that leans towards the side of the true number"
        parts.append(f"{side} (in {percent(float(1 - chance))} of cases)" if chance else side)
    return "; or ".join(parts)


def gives_away(epsilon: Fraction | float) -> str:
    """Say in odds what a report can give away.

    Examples
    --------
    >>> gives_away(1)[:77]
    'the report changes the odds between any two answers by at most a factor of 2.'
    """
    factor = odds_factor(float(epsilon))
    after = 100 * math.exp(float(epsilon)) / (1 + math.exp(float(epsilon))) if float(epsilon) < 700 else 100.0
    return (
        f"the report changes the odds between any two answers by at most a factor of {factor}; "
        "somebody who thought that two answers were equally likely will think neither of them more than "
        f"{_up(after)} % likely afterwards"
    )


def odds_factor(epsilon: float) -> str:
    """Show exp(epsilon), rounded up to two decimals."""
    return f"{math.ceil(math.exp(epsilon) * 100 - 1e-9) / 100:.2f}" if epsilon < 20 else f"exp({epsilon:g})"


def _up(value: float) -> str:
    return f"{min(math.ceil(value * 10) / 10, 100.0):.1f}"


MEMORY_SCHEMA = "tacit/memory/1"


@dataclass(slots=True, eq=False)
class Memory:
    """The permanent answers of one respondent, drawn once for each different true answer.

    Guarantee: while the memory is kept, all reports of an unchanged answer together give away at most the
    epsilon of the survey. A memory is secret: whoever reads it sees answers that have been through one coin
    only. A respondent who loses it draws new permanent answers, which cost as much again.

    Parameters
    ----------
    survey
        The digest of the survey.

    Examples
    --------
    >>> import tacit as tc
    >>> poll = tc.survey("smoking, each month", ["no", "yes"], epsilon=2, once=1)
    >>> memory = Memory(poll.digest)
    >>> reports = [poll.answer("yes", memory=memory).release() for month in range(12)]
    >>> round(poll.sequence(12).epsilon, 3)
    2.0
    """

    survey: str
    _kept: dict[str, dict[int, int]] = field(default_factory=dict, repr=False)
    _path: Path | None = field(default=None, repr=False)

    def permanent(self, question: SurveyQuestion, truth: int) -> int:
        """Return the permanent answer for a true one; it is drawn when it is first needed."""
        memo = question.randomizer
        if not isinstance(memo, Memo):
            raise TypeError(f"{question.name} has no memo")
        answers = self._kept.setdefault(question.name, {})
        if truth not in answers:
            answers[truth] = int(memo.permanent(truth))
            if self._path is not None:  # on disk before the first report of it can leave
                self.save(self._path)
        return answers[truth]

    def save(self, path: str | Path) -> None:
        """Write the memory to a file on the respondent's device, readable by its owner only.

        From then on, and after `load`, every new permanent answer is written there before it is reported.
        """
        target = Path(path)
        answers = {
            name: {str(truth): kept for truth, kept in own.items()} for name, own in self._kept.items()
        }
        document = {"schema": MEMORY_SCHEMA, "survey": self.survey, "answers": answers}
        beside = target.with_name(target.name + ".new")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(json.dumps(document) + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
        self._path = target

    @classmethod
    def load(cls, path: str | Path) -> Memory:
        """Read a memory from a file that `save` wrote."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(document, Mapping) or document.get("schema") != MEMORY_SCHEMA:
                raise ValueError  # noqa: TRY301 - one refusal for everything that is not a memory
            answers = {
                str(name): {int(truth): int(answer) for truth, answer in own.items()}
                for name, own in document["answers"].items()
            }
            return cls(str(document["survey"]), answers, Path(path))
        except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
            raise TacitError(
                "bad-survey",
                "this file is not a memory of a survey that this version of Tacit can read",
                why=f"it must be JSON of the schema {MEMORY_SCHEMA}",
                fix=Code("memory.save(path) writes one"),
            ) from None


@dataclass(frozen=True, slots=True)
class MemoisedAnswer:
    """The memo of one question with the respondent's memory: the mechanism of a repeated report."""

    question: SurveyQuestion
    memory: Memory = field(repr=False)

    @property
    def cost(self) -> Cost:
        """What all reports of an unchanged answer cost together."""
        return self.question.randomizer.cost

    def release(self, value: Any) -> int:
        """Return a report of the permanent answer."""
        memo = self.question.randomizer
        if not isinstance(memo, Memo):
            raise TypeError(f"{self.question.name} has no memo")
        return int(memo.report(self.memory.permanent(self.question, int(value))))

    def to_json(self) -> dict[str, Any]:
        """Return the law of the memo."""
        return self.question.randomizer.to_json()


@dataclass(frozen=True, slots=True)
class SequenceLoss:
    """What several reports of one respondent give away together.

    Parameters
    ----------
    reports, different
        How many reports, and how many different true answers lie behind them.
    epsilon
        The bound for all of them together.
    fresh
        The same with a fresh coin for each report, without a memo.
    change_shown
        The chance that a changed answer changes the permanent one; of several questions, the largest.
    """

    reports: int
    different: int
    epsilon: float
    fresh: float
    change_shown: float | None

    @property
    def words(self) -> str:
        """The same in a sentence."""
        behind = "an unchanged answer" if self.different == 1 else f"{self.different} different answers"
        text = f"{self.reports:,} reports of {behind} give away at most epsilon {self.epsilon:.4g} together"
        if self.change_shown is None:
            return f"{text}; every report has fresh coins, so the epsilons add up"
        change = f"with {100 * self.change_shown:.0f} % probability it changes the permanent answer"
        return f"{text} (with fresh coins: {self.fresh:.4g}); a changed answer is not hidden: {change}"

    def __str__(self) -> str:
        return self.words


def sequence_loss(
    questions: Sequence[SurveyQuestion],
    epsilon: Fraction,
    reports: int,
    different: int,
    *,
    single_question: bool,
) -> SequenceLoss:
    """Return what several reports of a respondent give away: the losses of all questions add up."""
    times, values = count("reports", reports, zero=False), count("different", different, zero=False)
    memos = [question.randomizer for question in questions if isinstance(question.randomizer, Memo)]
    if not memos:
        each = [float(question.randomizer.epsilon) for question in questions]
        total = times * (max(each) if single_question else sum(each))
        return SequenceLoss(times, values, min(total, times * float(epsilon)), total, None)
    return SequenceLoss(
        times,
        values,
        sum(memo.loss_after(times, different=min(values, times)) for memo in memos),
        float(sum(times * memo.once for memo in memos)),
        max(memo.change_shown for memo in memos),
    )


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
    questions, single_question = survey.questions, survey.strategy == "one"
    exact = [_exact(survey, q, place, invitation) for q, place in zip(questions, places, strict=True)]
    mechanisms: list[Measurement] = [
        q.randomizer if memory is None else MemoisedAnswer(q, memory) for q in questions
    ]
    if single_question:  # one draw among all questions
        exact, mechanisms = [exact], [QuestionSample([question.randomizer for question in questions])]

    def report(noisy: Sequence[Any], _confidence: Fraction) -> SurveyReport:
        """Read the report off the randomized answers."""
        if single_question:
            [[which, report]] = noisy
            reports = {questions[which].name: _wire(questions[which], report)}
        else:
            reports = {q.name: _wire(q, report) for q, report in zip(questions, noisy, strict=True)}
        words = {q.name: report_words(q, reports[q.name]) for q in questions if q.name in reports}
        return SurveyReport(survey.digest, str(survey.epsilon), reports, invitation, public, words)

    return Task(
        document={"survey": survey.digest, "questions": [question.name for question in questions]},
        open=lambda _: None,
        steps=tuple(_answer(mechanism, value) for mechanism, value in zip(mechanisms, exact, strict=True)),
        reading=report,
    )


def _answer(mechanism: Measurement, exact: Any) -> Step[None]:
    """Return the step that randomizes a true answer, which no text of the step shows."""
    return Step(mechanism, lambda _data, _noisy: exact)


def _exact(survey: Survey, question: SurveyQuestion, index: int, invitation: str | None) -> Any:
    """Return a true answer as its randomizer takes it."""
    if isinstance(question.randomizer, LinearHashing) and invitation is not None:
        label = seed_label(survey.digest, question.name)
        [seed] = question.randomizer.seeds_for([invitation], label=label)
        return {"value": index, "seed": seed}
    return index


def seed_label(survey: str, question: str) -> str:
    """Return the public text from which, with an invitation, the seed of a hash is made."""
    return f"{survey}\n{question}"


def _wire(question: SurveyQuestion, report: Any) -> Any:
    """Return a randomized answer as JSON; the core writes a dictionary as pairs."""
    if isinstance(question.randomizer, Memo):
        return [report]
    return dict(report) if isinstance(question.randomizer, LinearHashing) else report


def _unreadable(why: str) -> TacitError:
    return TacitError(
        "bad-report",
        "this is not a report that this version of Tacit can read",
        why=why,
        fix=Code("survey.answer({...}).release() writes one"),
    )
