"""A survey: its questions with their randomizers, made before anyone answers, from public facts alone.

`survey` declares one from its questions and an epsilon. Its document holds what a respondent's device needs,
as JSON, and has a digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.core import Plan, Unit, read_identity
from tacit.errors import TacitError, bad_parameter, missing_file
from tacit.exact import count, rational, read_fraction
from tacit.fixes import Choose, Code, Either, Say, Set
from tacit.mechanisms import LinearHashing, Memo, QuestionSample, SubsetSelection
from tacit.parameters import Choice
from tacit.report import Report, Reportable, ReportTable
from tacit.surveys._answering import Memory, SequenceLoss, gives_away, sequence_loss, what_is_sent
from tacit.surveys._forecasts import choose_strategy
from tacit.surveys._survey_questions import (
    DECLARED,
    DeclaredQuestion,
    SurveyQuestion,
    question_from_document,
    read_question,
    with_randomizer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tacit.accounting import Cost
    from tacit.exact import Number
    from tacit.surveys._answering import SurveyReport
    from tacit.surveys._forecasts import SurveyForecast
    from tacit.surveys._reports import Reports


SURVEY_SCHEMA = "tacit/survey/1"
_STRATEGIES = ("one", "split")  # of a survey
_ASKED_STRATEGIES = ("auto", *_STRATEGIES)  # of the call that declares one
_RESERVED = frozenset({"survey", "invitation", "epsilon", "schema"})  # reports use these names for themselves
#: A question as it is asked: its title, and the declared question or two of a pair.
_Group: TypeAlias = tuple[str, tuple[tuple[str, DeclaredQuestion], ...]]


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
        return sequence_loss(
            self.questions, self.epsilon, reports, different, single_question=self.strategy == "one"
        )

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
            object.__setattr__(self, "_digest", _digest_of(self.document()))
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
        fields = _read_document(document)
        try:
            _check_name(fields["name"])
            questions = tuple(question_from_document(one) for one in fields["questions"])
            survey = cls(
                str(fields["name"]),
                questions,
                rational("epsilon", read_fraction(fields["epsilon"])),
                fields["strategy"],
            )
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
            raise _not_a_survey("it lacks a part of a survey") from None
        except TacitError as refused:
            raise _not_a_survey(refused.what) from None
        _check_questions(survey)
        return survey

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
        raise missing_file(path, "bad-survey")
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        raise _not_a_survey(f"{Path(path).name} cannot be read as JSON") from None
    return Survey.from_document(document)


def _digest_of(document: Mapping[str, Any]) -> str:
    """Return the digest of a survey's document, however it is written: sorted keys, no spaces, ASCII.

    Examples
    --------
    >>> _digest_of({"a": 1, "b": 2}) == _digest_of({"b": 2, "a": 1})
    True
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _read_document(document: object) -> Mapping[str, Any]:
    """Check the outer form of a survey's document."""
    if (
        isinstance(document, Mapping)
        and document.get("schema") == SURVEY_SCHEMA
        and document.get("strategy") in _STRATEGIES
        and isinstance(document.get("questions"), list)
    ):
        return document
    raise _not_a_survey(f"a survey is a document with the schema {SURVEY_SCHEMA}")


def _check_questions(declared: Survey) -> None:
    """Refuse a document whose memos, names or costs of questions do not fit together.

    Every question of a repeated survey has a memo and is asked each time, a name is used once, and all
    randomizers together stay within the stated epsilon.
    """
    each = [question.randomizer.epsilon for question in declared.questions]
    memos = [isinstance(question.randomizer, Memo) for question in declared.questions]
    if any(memos) and (not all(memos) or declared.strategy == "one"):
        raise _not_a_survey("a survey that is repeated asks every question each time, each with a memo")
    total = max(each, default=0) if declared.strategy == "one" else sum(each)
    names = [name for question in declared.questions for name in question.columns]
    if total > declared.epsilon or len(set(names)) != len(names) or not each:
        raise _not_a_survey("its randomizers give away more than the stated epsilon, or a name is used twice")


def _not_a_survey(why: str) -> TacitError:
    """Refuse a document, with the reason."""
    return TacitError(
        "bad-survey",
        "this is not a survey that this version of Tacit can read",
        why=why,
        fix=Code("survey.save(path) writes one"),
    )


def _check_name(name: str) -> None:
    """Refuse a name that a survey cannot have, by the rule for names of datasets."""
    read_identity(name=name, unit=Unit("respondent"), adjacency="replace")


def _between(question: SurveyQuestion) -> str:
    low, high = question.bounds or (0, 0)
    return f"{float(low):g} to {float(high):g}"


def survey(
    name: str,
    questions: Any,
    *,
    epsilon: Number,
    strategy: str = "auto",
    pairs: Sequence[tuple[str, str]] = (),
    once: Number | None = None,
) -> Survey:
    """Declare a survey in which every respondent randomizes the answers, so that no collector is trusted.

    Guarantee: everything that one respondent sends is at most exp(epsilon) times as likely under one set of
    answers as under another (local privacy). Randomizers and strategy are functions of this call alone.

    Parameters
    ----------
    name
        Of the survey.
    questions
        Answers by question: a list of answers (or their number), a pair of numbers as bounds, a range as an
        ordered scale, or what `tacit.surveys.question` returns. A survey of a single question may give its
        answers alone; the question is then called ``answer``.
    epsilon
        What all answers of one respondent together may give away.
    strategy
        With several questions: ``one`` asks each respondent one question at random, ``split`` asks all and
        divides epsilon; ``auto`` takes the one with the smaller predicted error.
    pairs
        Two lists that are asked together, so that they can be tabulated against each other.
    once
        For a survey that is repeated: what a single report may give away, less than epsilon. The device of
        each respondent keeps a permanent answer (`tacit.surveys.Memory`), and epsilon bounds all reports of
        an unchanged answer together, however many there are.

    Examples
    --------
    >>> import tacit as tc
    >>> poll = tc.survey("smoking", {"smokes": ["no", "yes"], "age": (18, 90)}, epsilon=2)
    >>> poll.strategy, [question.kind for question in poll.questions]
    ('one', ['choice', 'number'])
    """
    _check_name(name)
    total = rational("epsilon", epsilon)
    Choice(_ASKED_STRATEGIES).read("strategy", strategy)
    by_name = questions if isinstance(questions, Mapping) else {"answer": questions}
    declared = {_name(key): read_question(str(key), value) for key, value in by_name.items()}
    if not declared:
        raise bad_parameter("questions", "at least one question", questions, fix=Code('["no", "yes"]'))
    groups = _grouped(declared, pairs)
    if once is not None:
        return _repeated(name, groups, total, rational("once", once), strategy)
    if len(groups) == 1:
        return Survey(name, _with_randomizers(groups, total, Fraction(1)), total, "split")
    part = Fraction(1, len(groups))
    if strategy == "split":
        return Survey(
            name, _with_randomizers(groups, total * part, Fraction(1)), total, "split", "as declared"
        )
    single = _with_randomizers(groups, total, part)
    if strategy == "one":
        return Survey(name, single, total, "one", "as declared")
    if any(question.randomizer.epsilon > total * part for question in single if question.why == DECLARED):
        return Survey(name, single, total, "one", "a declared randomizer needs more than its part of epsilon")
    split = _with_randomizers(groups, total * part, Fraction(1))
    predicted = [[q.variance() / float(q.share) for q in made] for made in (single, split)]
    chosen = choose_strategy(*predicted)
    return Survey(name, single if chosen.name == "one" else split, total, chosen.name, chosen.why)


def _name(key: object) -> str:
    if isinstance(key, str) and key and key.isprintable() and len(key) <= 200 and key not in _RESERVED:
        return key
    raise bad_parameter(
        "the name of a question",
        "printable text, and not survey, invitation, epsilon or schema",
        key,
        why="reports use these names for themselves",
        fix=Code('{"smokes": ["no", "yes"]}'),
    )


def _grouped(declared: Mapping[str, DeclaredQuestion], pairs: Sequence[tuple[str, str]]) -> list[_Group]:
    """Return the questions as they are asked: pairs together, the others alone, in the declared order."""
    partner: dict[str, tuple[str, str]] = {}
    for pair in pairs:
        names: Sequence[str] = pair
        fits = len(names) == 2 and names[0] != names[1] and not partner.keys() & set(names)
        if not fits or not all(name in declared and declared[name].answers for name in pair):
            raise TacitError(
                "bad-parameter",
                f"the pair {tuple(pair)!r} does not name two different lists or scales of the survey",
                why="a pair is asked as one question, and each question is in at most one pair",
                fix=Choose(tuple(name for name, one in declared.items() if one.answers)),
            )
        partner |= dict.fromkeys(pair, (pair[0], pair[1]))
    groups: dict[str, _Group] = {}
    for name in declared:
        members = partner.get(name, (name,))
        title = " and ".join(members)
        if len(members) > 1 and title in declared:
            raise bad_parameter(
                "questions", f"without a question {title!r}, because a pair has this name", title
            )
        groups[title] = (title, tuple((one, declared[one]) for one in members))
    return list(groups.values())


def _with_randomizers(
    groups: Sequence[_Group], epsilon: Fraction, share: Fraction, once: Fraction | None = None
) -> tuple[SurveyQuestion, ...]:
    return tuple(with_randomizer(title, members, epsilon, share, once) for title, members in groups)


def _repeated(name: str, groups: Sequence[_Group], total: Fraction, once: Fraction, strategy: str) -> Survey:
    """Declare a survey with memos; every question is asked each time, as over time all would be anyway."""
    if strategy == "one":
        raise bad_parameter(
            "strategy",
            "auto or split for a survey that is repeated",
            strategy,
            why="a respondent who is asked one question each time answers all of them in the end",
            fix=Choose(("auto", "split"), strategy),
        )
    if once >= total:
        raise bad_parameter("once", "less than epsilon", float(once), fix=Set(epsilon=2, once=1))
    part = Fraction(1, len(groups))
    why = "a repeated survey asks every question each time, with a part of epsilon" if len(groups) > 1 else ""
    survey_questions = _with_randomizers(groups, total * part, Fraction(1), once * part)
    if not all(isinstance(question.randomizer, Memo) for question in survey_questions):
        raise TacitError(
            "bad-parameter",
            "a survey that is repeated cannot use a declared randomizer",
            why="its fresh coins would give away more with every repetition",
            fix="leave the randomizer out; Tacit then keeps a permanent randomized answer",
        )
    return Survey(name, survey_questions, total, "split", why)
