"""A survey: its questions with their randomizers, made before anyone answers, from public facts alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.core import Plan, Unit, read_identity
from tacit.errors import TacitError
from tacit.exact import count, rational, read_fraction
from tacit.fixes import Choose, Either, Say, Set
from tacit.mechanisms import LinearHashing, Memo, QuestionSample, SubsetSelection
from tacit.report import Report, Reportable, ReportTable
from tacit.surveys._memory import Memory, SequenceLoss, sequence_loss
from tacit.surveys._respondent_words import gives_away, what_is_sent
from tacit.surveys._survey_documents import (
    SURVEY_SCHEMA,
    check_total,
    digest_of_survey,
    not_a_survey,
    read_survey_document,
)
from tacit.surveys._survey_questions import SurveyQuestion, question_from_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from fractions import Fraction

    from tacit.accounting import Cost
    from tacit.surveys._answering import SurveyReport
    from tacit.surveys._forecasts import SurveyForecast
    from tacit.surveys._reports import Reports


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Survey(Reportable):
    """A survey whose respondents randomize their own answers; nobody has to trust the collector.

    Guarantee: all that one respondent sends is at most exp(epsilon) times as likely under one set of answers
    as under another. The promise holds for each report and needs no ledger; a second report of the same
    person costs the same again.

    Parameters
    ----------
    name
        Of the survey.
    questions
        The questions with their randomizers.
    epsilon
        What all answers of one respondent together may give away.
    strategy
        ``one``: each respondent is asked one question, drawn at random. ``split``: every question, each with
        a part of epsilon.
    why
        Why this strategy.

    Examples
    --------
    >>> import tacit as tc
    >>> poll = tc.survey("smoking", ["no", "yes"], epsilon=1)
    >>> poll.respondents_for(half_width=0.03)
    4997
    """

    name: str
    questions: tuple[SurveyQuestion, ...]
    epsilon: Fraction
    strategy: str
    why: str = ""
    _digest: str = field(default="", init=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __getitem__(self, name: str) -> SurveyQuestion:
        for question in self.questions:
            if question.name == name:
                return question
        names = tuple(question.name for question in self.questions)
        raise TacitError(
            "unknown-column", f"the survey has no question {name!r}", fix=Choose(names, given=name)
        )

    @property
    def cost(self) -> Cost:
        """What one report takes: of all questions together, or of the one that is drawn."""
        randomizers = [question.randomizer for question in self.questions]
        if self.strategy == "one":
            return QuestionSample(randomizers).cost
        total: Cost = reduce(add, [randomizer.cost for randomizer in randomizers])
        return total

    def shuffled_cost(self, respondents: int, *, invitations: bool = True) -> Cost:
        """Return what one respondent loses if somebody trusted mixes all reports before anyone sees them.

        The mixer must drop everything that can name a sender: the order, the time, the network address, the
        invitation and all public facts of every report. The mixer must not show single reports to anyone. In
        a repeated survey, the same people must answer in every round. Without such a mixer, the cost is that
        of `cost`.

        Guarantee: refused for reports that name their sender after mixing. With an invitation, the report of
        a hash contains a seed that is made from this invitation, and the collector knows all invitations.

        Parameters
        ----------
        respondents
            How many reports are mixed. If public facts stay in the reports, a report hides only among reports
            with equal facts: give the smallest number of people with equal facts.
        invitations
            Whether the respondents answer with invitations. Without them, each device draws its own seed.

        Examples
        --------
        >>> import tacit as tc
        >>> words = tc.survey("words", 100_000, epsilon=1)
        >>> round(words.shuffled_cost(10_000, invitations=False).epsilon(delta=1e-6), 2)
        0.05
        """
        people = count("respondents", respondents, zero=False)
        hashed = [q.name for q in self.questions if isinstance(q.randomizer, LinearHashing)]
        if invitations and hashed:
            raise TacitError(
                "not-allowed",
                f"mixing does not hide who sent a report about {hashed[0]!r}",
                why="the report contains a seed that is made from the invitation; whoever knows the "
                "invitations can tell who sent which report, and only the epsilon of the survey is left; if "
                "nobody has an invitation, each device draws its own seed",
                fix=Either(
                    Set(invitations=False),
                    Say("ask about a shorter list, for which the reports contain no seed"),
                ),
            )
        match self.questions:
            case [SurveyQuestion(randomizer=SubsetSelection(subset=1, size=size))]:
                return self.cost.shuffled(people, categories=size)
        return self.cost.shuffled(people)

    def answer(
        self,
        answers: Any,
        *,
        invitation: str | int | None = None,
        public: Mapping[str, Any] | None = None,
        memory: Memory | None = None,
    ) -> Plan[SurveyReport]:
        """Return the plan of one respondent: what would be sent, and what it can give away.

        ``release()`` then draws the report. It runs on the respondent's device and charges no ledger. Another
        call draws another report, which gives away as much again.

        Parameters
        ----------
        answers
            The true answer to each question, by name; of a single question, the answer itself.
        invitation
            The number of the invitation, by which the collector counts each person once.
        public
            What the respondent states openly, such as a region. It is not protected.
        memory
            The respondent's own memory of permanent answers, for a survey that is repeated.
        """
        from tacit.surveys._true_answers import plan_for

        return plan_for(self, answers, invitation=invitation, public=public, memory=memory)

    @property
    def is_repeated(self) -> bool:
        """Whether respondents keep permanent answers, so that the survey can be repeated."""
        return any(isinstance(question.randomizer, Memo) for question in self.questions)

    def sequence(self, reports: int, *, different: int = 1) -> SequenceLoss:
        """Return what several reports of the same respondent give away together.

        Parameters
        ----------
        reports
            How many times the same person answers.
        different
            How many different true answers to each question lie behind them.
        """
        return sequence_loss(self.questions, self.epsilon, reports, different, one=self.strategy == "one")

    def randomize(
        self, answers: Any, *, public: Sequence[str] = (), invitations: Iterable[object] | None = None
    ) -> Reports:
        """Randomize the answers of many respondents at once, to try a survey out or on a trusted device.

        Parameters
        ----------
        answers
            A data frame, or true answers by question; of a single question, the answers themselves.
        public
            Columns that are not randomized and are kept with the reports, for groups and regressions.
        invitations
            One number for each respondent.
        """
        from tacit.surveys._true_answers import randomized

        return randomized(self, answers, public=public, invitations=invitations)

    def collect(
        self, source: Any, *, repeated: str = "refuse", invitations: Iterable[object] | None = None
    ) -> Reports:
        """Read reports that respondents sent; a report without an answer, or not of this survey, is refused.

        Parameters
        ----------
        source
            A list of reports (documents, releases), a data frame, or a file: JSON lines, CSV or Parquet.
            Columns that are not questions are public facts about the respondents.
        repeated
            What happens if an invitation has two reports: ``refuse``, or keep the ``first`` and drop others.
        invitations
            Those that were sent; a report with another invitation, or with none, is refused.
        """
        from tacit.surveys._collection import collect

        return collect(self, source, repeated=repeated, invitations=invitations)

    def predict(self, respondents: int = 1000, *, confidence: float = 0.95) -> SurveyForecast:
        """Return how wide the intervals will be, before the survey: of the hardest share, and of means."""
        from tacit.surveys._forecasts import forecast_of

        return forecast_of(self, respondents, confidence)

    def respondents_for(
        self,
        *,
        half_width: float,
        question: str | None = None,
        share: float | None = None,
        confidence: float = 0.95,
    ) -> int:
        """Return how many respondents give intervals of this half-width, for one question or for all.

        Parameters
        ----------
        half_width
            Half the width of the interval: 0.03 for 3 points of a share; in its own units for a number.
        question
            Which one, also one side of a pair; by default all of them, if all give shares.
        share
            The expected share of an answer; by default the one that is hardest to estimate.
        confidence
            Of the interval.
        """
        from tacit.surveys._forecasts import respondents_of

        return respondents_of(self, question, half_width, share, confidence)

    @property
    def digest(self) -> str:
        """The identity of the survey: equal for the same name, questions, answers and exact randomizers."""
        if not self._digest:
            object.__setattr__(self, "_digest", digest_of_survey(self.document()))
        return self._digest

    def document(self) -> dict[str, Any]:
        """Return the survey as JSON: all that a respondent's device needs."""
        return {
            "schema": SURVEY_SCHEMA,
            "name": self.name,
            "epsilon": str(self.epsilon),
            "strategy": self.strategy,
            "questions": [question.to_document() for question in self.questions],
        }

    @classmethod
    def from_document(cls, document: Any) -> Survey:
        """Rebuild the survey that `document` described."""
        fields = read_survey_document(document)
        try:
            read_identity(name=fields["name"], unit=Unit("respondent"), adjacency="replace")
            questions = tuple(question_from_document(one) for one in fields["questions"])
            made = cls(
                str(fields["name"]),
                questions,
                rational("epsilon", read_fraction(fields["epsilon"])),
                fields["strategy"],
            )
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
            raise not_a_survey("it lacks a part of a survey") from None
        except TacitError as refused:
            raise not_a_survey(refused.what) from None
        check_total(made)
        return made

    def save(self, path: str | Path) -> None:
        """Write the survey to a file of JSON."""
        text = json.dumps(self.document(), indent=1, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def form(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        intro: str = "",
        post_to: str | None = None,
        invitation: bool = False,
        language: str = "en",
    ) -> None:
        """Write the questionnaire: one HTML file that randomizes the answers in the respondent's browser.

        Guarantee: the page draws by the same whole numbers as the library, from the browser's secure
        generator, and shows what would be sent before anything is sent. It loads nothing from the network.

        Parameters
        ----------
        path
            Of the HTML file.
        title, intro
            What the page says at its top; by default the survey's name.
        post_to
            The address that takes reports (https); without it, the page saves a report as a file.
        invitation
            Whether every respondent needs the number of an invitation; ``form.html?invitation=17`` gives it.
        language
            The language of the questions, for screen readers.

        Examples
        --------
        >>> import tacit as tc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "form.html"
        >>> tc.survey("smoking", ["no", "yes"], epsilon=1).form(path, title="Do you smoke?")
        >>> "crypto.getRandomValues" in path.read_text(encoding="utf-8")
        True
        """
        from tacit.surveys._form import form_page

        page = form_page(
            self, title=title, intro=intro, post_to=post_to, invitation=invitation, language=language
        )
        Path(path).write_text(page, encoding="utf-8")

    def report(self) -> Report:
        """Return the questions, what is sent for each, and what a report can give away."""
        rows = tuple(
            (q.name, q.kind, f"{len(q.answers):,} answers" if q.answers else _between(q), what_is_sent(q))
            for q in self.questions
        )
        return Report(
            f"survey {self.name}: epsilon {float(self.epsilon):g} for each respondent",
            (self.why[:1].upper() + self.why[1:] + ".",) if self.why else (),
            (ReportTable("", ("question", "kind", "answers", "what a respondent sends"), rows),),
            (
                gives_away(self.epsilon) + ".",
                f"This survey's fingerprint, which every report names: {self.digest[:16]}",
            ),
        )


def load(path: str | Path) -> Survey:
    """Read a survey from a file that `Survey.save` wrote.

    Examples
    --------
    >>> import tacit as tc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "poll.json"
    >>> poll = tc.survey("smoking", ["no", "yes"], epsilon=1)
    >>> poll.save(path)
    >>> load(path) == poll
    True
    """
    if not Path(path).is_file():
        raise TacitError("bad-survey", f"there is no file {path}", fix="check its name and its folder")
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        raise not_a_survey(f"{Path(path).name} cannot be read as JSON") from None
    return Survey.from_document(document)


def _between(question: SurveyQuestion) -> str:
    low, high = question.bounds or (0, 0)
    return f"{float(low):g} to {float(high):g}"
