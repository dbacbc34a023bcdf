"""The questions of a survey, as declared and with their randomizers.

A user declares a list of answers, a number between bounds or a scale. True answers become positions in a
list, or steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational, read_fraction
from tacit.fixes import Choose, Code, Either, Set
from tacit.mechanisms import (
    Design,
    Memo,
    NumberWindow,
    SupportRandomizer,
    choose_randomizer,
    randomizer_from_json,
)
from tacit.parameters import refuse_auto

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tacit.exact import Number
    from tacit.mechanisms import LocalRandomizer


#: What a question asks for: one of a list, a number, a point of an ordered scale, two lists together.
AnswerFormat: TypeAlias = Literal["choice", "number", "scale", "pair"]
#: An answer of a list, as it is shown and written.
AnswerLabel: TypeAlias = str | int
#: How answers are written: a list of labels or their number, two bounds as a pair, or a range of a scale.
AnswersGiven: TypeAlias = "Sequence[AnswerLabel] | tuple[Number, Number] | range | int"

#: The most answers of a question.
MOST_LABELS = 1_000_000
_MOST_TEXT = 1_000
_MOST_NUMBER = 2**63  # of a whole number that is an answer
_FORMS = Code('["no", "yes"], (18, 90) or range(1, 6)')
#: Why a question has its randomizer, where its declaration names one.
DECLARED = "the declared randomizer"
_FINE = 1000  # steps between the middle and an end of a number's bounds, at least
_LONG = 1000  # answers: a longer list of the numbers 0, 1, ... is written as their number
_UNIFORM = 1 / 3  # the variance of a number that is anywhere between -1 and 1


@dataclass(frozen=True, slots=True)
class DeclaredQuestion:
    """A question before the survey divides epsilon: what can be answered, and how it is shown.

    Parameters
    ----------
    kind
        A list of answers, a number, or a scale.
    answers
        The labels of a list, or the points of a scale.
    bounds
        The public bounds of a number, or the ends of a scale.
    text
        The question as respondents read it.
    wants
        Of a scale, what it is for: the ``mean``, or the ``shares`` of its points.
    randomizer
        A randomizer of `tacit.mechanisms` to use in place of the one that Tacit would choose.
    """

    kind: AnswerFormat
    answers: tuple[AnswerLabel, ...] = ()
    bounds: tuple[Fraction, Fraction] | None = None
    text: str = ""
    wants: Literal["mean", "shares"] = "shares"
    randomizer: LocalRandomizer | None = None


def question(
    answers: AnswersGiven,
    *,
    text: str = "",
    wants: Literal["mean", "shares"] | None = None,
    randomizer: LocalRandomizer | None = None,
) -> DeclaredQuestion:
    """Declare a question for `tacit.survey`, where its answers alone do not say enough.

    Guarantee: only public facts. What is possible to answer is fixed before anybody answers.

    Parameters
    ----------
    answers
        A list of answers (or their number), a pair of numbers as bounds, or a range as an ordered scale.
    text
        The question as respondents read it.
    wants
        Of a scale: ``"mean"`` (the default) reports a number near the answer, ``"shares"`` reports points of
        the scale. The first gives the better mean, the second also the share of each point.
    randomizer
        A randomizer of `tacit.mechanisms`, in place of the one that Tacit would choose.

    Examples
    --------
    >>> question(["no", "yes"], text="Do you smoke?").kind
    'choice'
    >>> question((18, 90)).kind, question(range(1, 6)).wants
    ('number', 'mean')
    """
    content: object = text
    if not isinstance(content, str) or len(text) > _MOST_TEXT:
        raise bad_parameter("text", f"text of at most {_MOST_TEXT:,} characters", text, fix=Set(text="..."))
    kind, labels, bounds = _read_answers(answers)
    if wants not in {None, "mean", "shares"} or (wants == "mean" and kind == "choice"):
        raise bad_parameter(
            "wants",
            "mean or shares",
            wants,
            why="only a scale can give either; a list gives shares, a number gives a mean",
            fix=Choose(("mean", "shares"), given=str(wants)),
        )
    if wants is None or kind == "number":
        wants = "shares" if kind == "choice" else "mean"
    return DeclaredQuestion(kind, labels, bounds, text, wants, randomizer)


def read_question(name: str, declaration: object) -> DeclaredQuestion:
    """Read one question of a survey: `question` made it, or these are its answers."""
    if isinstance(declaration, DeclaredQuestion):
        return declaration
    try:
        return question(declaration)  # type: ignore[arg-type]
    except TacitError as refused:
        raise refused.but(what=f"question {name!r}: {refused.what}", question=name) from None


def _read_answers(
    answers: object,
) -> tuple[AnswerFormat, tuple[AnswerLabel, ...], tuple[Fraction, Fraction] | None]:
    refuse_auto("a survey", answers, _FORMS)
    match answers:
        case bool():
            pass
        case int() if 2 <= answers <= MOST_LABELS:
            return "choice", tuple(range(answers)), None
        case range():
            short = max(map(abs, (answers.start, answers.stop))) < _MOST_NUMBER  # len() of others can fail
            if short and 2 <= len(answers) <= MOST_LABELS:
                ends = sorted((answers[0], answers[-1]))
                return "scale", tuple(sorted(answers)), (Fraction(ends[0]), Fraction(ends[1]))
        case (int() | float() | Fraction(), int() | float() | Fraction()) if isinstance(answers, tuple):
            low, high = (rational("bounds", end, zero=True, negative=True, fix=_FORMS) for end in answers)
            if low < high:
                return "number", (), (low, high)
        case str():
            pass
        case [int() as low, int() as high] if abs(high - low) > 1 and not isinstance(answers, tuple):
            raise bad_parameter(
                "answers",
                "a pair of bounds in round brackets for a number",
                answers,
                why="a list of two numbers would allow these two answers and nothing between them",
                fix=Either(Code(f"({min(low, high)}, {max(low, high)})"), Code(f'["{low}", "{high}"]')),
            )
        case _ if isinstance(answers, Sequence) or hasattr(answers, "tolist"):
            labels = tuple(getattr(answers, "tolist", lambda: answers)())  # type: ignore[arg-type]
            if are_labels(labels):
                return "choice", labels, None
    raise bad_parameter(
        "answers",
        f"a list of 2 to {MOST_LABELS:,} different texts or whole numbers below 2^63, a pair of bounds, "
        "or a range",
        answers,
        fix=_FORMS,
    )


def are_labels(labels: tuple[object, ...]) -> bool:
    """Whether labels can be answers: all texts or all whole numbers, all different."""
    if not 2 <= len(labels) <= MOST_LABELS or len(set(labels)) != len(labels):
        return False
    texts = [label for label in labels if isinstance(label, str)]
    if texts:
        good = all(label and label.isprintable() and len(label) <= _MOST_TEXT for label in texts)
        return good and len(texts) == len(labels)
    return all(type(label) is int and abs(label) < _MOST_NUMBER for label in labels)


@dataclass(frozen=True, slots=True)
class SurveyQuestion:
    """One question of a survey with the randomizer that protects its answer.

    Parameters
    ----------
    name
        What it is called in reports and estimates.
    kind
        A list of answers (``choice``), a ``number``, an ordered ``scale``, or a ``pair`` of lists.
    text
        The question as respondents read it.
    answers
        The possible answers; of a pair, tuples of two. A number has none.
    bounds
        Of a number or a scale.
    of
        Of a pair: its two names with their answers.
    randomizer
        What draws the report.
    share
        Which part of the respondents is asked: 1, or 1/m where each is asked one of m questions.
    why
        Why this randomizer.
    """

    name: str
    kind: AnswerFormat
    text: str
    answers: tuple[AnswerLabel, ...] | tuple[tuple[AnswerLabel, AnswerLabel], ...]
    bounds: tuple[Fraction, Fraction] | None
    of: tuple[tuple[str, tuple[AnswerLabel, ...]], ...]
    randomizer: LocalRandomizer
    share: Fraction = Fraction(1)
    why: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names under which a respondent gives the true answer: of a pair, both."""
        return tuple(name for name, _ in self.of) if self.of else (self.name,)

    @property
    def law(self) -> LocalRandomizer:
        """The law of a single report; that of a memo is randomized response with the odds of one report."""
        return self.randomizer.randomizer if isinstance(self.randomizer, Memo) else self.randomizer

    @property
    def gives_shares(self) -> bool:
        """Whether reports support answers of a list, so that shares can be estimated."""
        return isinstance(self.law, SupportRandomizer | Design)

    @property
    def support(self) -> SupportRandomizer:
        """The randomizer of a list; a question whose reports are numbers is refused."""
        if isinstance(self.law, SupportRandomizer):
            return self.law
        raise TacitError(
            "bad-parameter",
            f"the reports of {self.name!r} are numbers and give a mean, not shares",
            why="the report of a number lies near the number and does not name an answer",
            fix=Code(f'reports.mean("{self.name}")'),
        )

    @property
    def centre(self) -> Fraction:
        """The middle of the bounds."""
        low, high = self._ends()
        return (low + high) / 2

    @property
    def radius(self) -> Fraction:
        """Half the distance between the bounds."""
        low, high = self._ends()
        return (high - low) / 2

    def _ends(self) -> tuple[Fraction, Fraction]:
        if self.bounds is None:
            raise TacitError(
                "bad-parameter",
                f"the answers of {self.name!r} are not numbers, so they have no mean",
                why="a mean needs a number or a scale",
                fix=Code(f'reports.estimate("{self.name}")'),
            )
        return self.bounds

    def levels(self) -> NDArray[np.float64]:
        """Return the points of a scale as numbers between -1 and 1."""
        return (np.array(self.answers, dtype=float) - float(self.centre)) / float(self.radius)

    def place_of(self, answer: object) -> int:
        """Return the place of an answer in the list, or refuse."""
        if answer in self.answers:
            return self.answers.index(answer)
        raise TacitError(
            "unknown-category",
            f"{self.name!r} has no such answer",
            fix=Choose(tuple(map(str, self.answers)), given=str(answer)),
        )

    def encode(self, columns: Mapping[str, Any]) -> NDArray[np.int64]:
        """Return true answers as the whole numbers that the randomizer takes.

        A list or scale gives places. A number is clipped to its bounds and rounded to a public grid that
        holds every whole number if the bounds are whole.
        """
        if self.of:
            (upper, labels), (second, others) = self.of
            places = _places(upper, labels, columns[upper])
            return places * len(others) + _places(second, others, columns[second])
        values = columns[self.name]
        if self.kind == "number":
            return self._steps(values)
        places = _places(self.name, self.answers, values)  # type: ignore[arg-type]
        if self.gives_shares:
            return places
        steps = self.randomizer.steps  # type: ignore[attr-defined]
        return np.asarray((2 * places - (len(self.answers) - 1)) * steps // (len(self.answers) - 1))

    def _steps(self, values: Any) -> NDArray[np.int64]:
        try:
            numbers = np.asarray(_listed(values), dtype=float)
        except (TypeError, ValueError):
            numbers = np.array([np.nan])
        if np.isnan(numbers).any():
            raise TacitError(
                "not-finite",
                f"an answer to {self.name!r} is not a number",
                why="every respondent sends a report of the same form",
                fix="drop this respondent, or ask for a list of answers that contains 'no answer'",
            )
        steps = self.randomizer.steps  # type: ignore[attr-defined]
        low, high = map(float, self._ends())
        unit = (np.clip(numbers, low, high) - float(self.centre)) / float(self.radius)
        return np.asarray(np.clip(np.floor(unit * steps + 0.5), -steps, steps), dtype=np.int64)

    def variance(self, *, share: float | None = None) -> float:
        """Return the predicted variance of one respondent's contribution, with the sampling of respondents.

        For a list that of one share, by default the share of a list in which all answers are equally common;
        for a number that of the mean on the scale from -1 to 1.
        """
        if isinstance(self.law, SupportRandomizer | Design):
            f = Fraction(1, len(self.answers)) if share is None else Fraction(share)
            return self.law.variance(f, 1, sampling=True)
        window: Any = self.randomizer
        smallest = float(window.variance(0))
        return smallest + (float(window.variance(1)) - smallest) * _UNIFORM + _UNIFORM

    def to_document(self) -> dict[str, Any]:
        """Return the question as JSON, with the randomizer's exact parameters."""
        document: dict[str, Any] = {"name": self.name, "text": self.text, "kind": self.kind}
        if self.of:
            document["of"] = [{"name": name, "answers": list(labels)} for name, labels in self.of]
        elif self.answers:
            is_range = len(self.answers) > _LONG and self.answers == tuple(range(len(self.answers)))
            document["answers"] = len(self.answers) if is_range else list(self.answers)
        if self.bounds is not None:
            document["bounds"] = [str(end) for end in self.bounds]
        return {**document, "randomizer": self.randomizer.to_json(), "share": str(self.share)}


def find_question(questions: Sequence[SurveyQuestion], name: str | None) -> tuple[SurveyQuestion, int | None]:
    """Find a question by its name, or the pair that it is a side of; a single question needs no name."""
    if name is None and len(questions) == 1:
        return questions[0], None
    for question in questions:
        if question.name == name:
            return question, None
        for side, (title, _) in enumerate(question.of):
            if title == name:
                return question, side
    names = tuple(name for question in questions for name in question.columns)
    sentence = "the survey has several questions" if name is None else f"the survey has no question {name!r}"
    raise TacitError("unknown-column", sentence, fix=Choose(names, given=str(name or "")))


def question_from_document(document: Mapping[str, Any]) -> SurveyQuestion:
    """Rebuild a question from the document that `SurveyQuestion.to_document` returned."""
    of = tuple((str(one["name"]), tuple(one["answers"])) for one in document.get("of", ()))
    bounds = tuple(
        rational("bounds", read_fraction(end), zero=True, negative=True) for end in document.get("bounds", ())
    )
    share = rational("share", read_fraction(document["share"]))
    if share > 1:
        raise bad_parameter("share", "at most 1", share)
    listed = document.get("answers", ())
    number = math.prod(len(labels) for _, labels in of) if of else listed
    if isinstance(number, int) and number > MOST_LABELS:
        raise bad_parameter("answers", f"at most {MOST_LABELS:,}", "more")
    answers = _product(of) if of else tuple(range(listed) if isinstance(listed, int) else listed)
    _check_answers(document["kind"], answers, bounds, of)
    for name in ("name", "text"):
        if not isinstance(document[name], str):
            raise bad_parameter(name, "text", document[name])
    question = SurveyQuestion(
        str(document["name"]), document["kind"], str(document["text"]), answers,
        (bounds[0], bounds[1]) if bounds else None, of,
        randomizer_from_json(document["randomizer"]), share,
    )  # fmt: skip
    _check_fit(question)
    return question


def with_randomizer(
    name: str,
    members: tuple[tuple[str, DeclaredQuestion], ...],
    epsilon: Fraction,
    share: Fraction,
    once: Fraction | None = None,
) -> SurveyQuestion:
    """Give a declared question, or a pair of them, the randomizer with the smallest predicted variance.

    With ``once`` it is a memo: epsilon bounds all reports of an unchanged answer, ``once`` a single one.
    """
    declared = members[0][1]
    text = " / ".join(one.text for _, one in members if one.text)
    if len(members) == 1:
        randomizer = declared.randomizer or _chosen(declared, epsilon, once)
        question = SurveyQuestion(
            name, declared.kind, text, declared.answers, declared.bounds, (), randomizer, share
        )
    else:
        of = tuple((own, one.answers) for own, one in members)
        answers = _product(of)
        question = SurveyQuestion(
            name, "pair", text, answers, None, of, _for_list(epsilon, len(answers), once), share
        )
    _check_fit(question)
    if question.randomizer.epsilon > epsilon:
        raise TacitError(
            "bad-parameter",
            f"the randomizer of {name!r} has epsilon {float(question.randomizer.epsilon):.4g}, "
            f"and the survey gives this question {float(epsilon):.4g}",
            why="all reports of one respondent together must stay within the survey's epsilon",
            fix=Set(epsilon=float(question.randomizer.epsilon)),
        )
    return replace(question, why=_why(question, given=len(members) == 1 and declared.randomizer is not None))


def _for_list(epsilon: Fraction, size: int, once: Fraction | None) -> LocalRandomizer:
    return choose_randomizer(epsilon, size) if once is None else Memo(epsilon=epsilon, once=once, size=size)


def _chosen(declared: DeclaredQuestion, epsilon: Fraction, once: Fraction | None) -> LocalRandomizer:
    if declared.wants == "shares":
        return _for_list(epsilon, len(declared.answers), once)
    if once is not None:
        raise TacitError(
            "bad-parameter",
            "a survey that is repeated cannot ask for a number",
            why="Tacit can keep a permanent randomized answer only for a list of answers",
            fix="ask for an age group or another list instead",
        )
    if declared.kind == "scale":
        return NumberWindow(epsilon=epsilon, steps=_coarsest(len(declared.answers) - 1))
    low, high = declared.bounds or (Fraction(0), Fraction(1))
    integral = low.denominator == high.denominator == 1
    base = _coarsest(int(high - low)) if integral else 1
    return NumberWindow(epsilon=epsilon, steps=base * max(1, math.ceil(_FINE / base)))


def _coarsest(gaps: int) -> int:
    """Return the fewest steps from the middle to an end that put ``gaps`` + 1 points on the grid."""
    return gaps // 2 if gaps % 2 == 0 else gaps


def _why(question: SurveyQuestion, *, given: bool) -> str:
    if given:
        return DECLARED
    if isinstance(question.randomizer, Memo):
        return "a permanent coin for the answer and a fresh one for each report"
    if isinstance(question.randomizer, SupportRandomizer):
        return question.randomizer.why
    return _compared(question.randomizer) if isinstance(question.randomizer, NumberWindow) else ""


def _compared(chosen: NumberWindow) -> str:
    """Say how a window compares with the mixture whose variance is the same everywhere, and with the coin."""
    mixed = NumberWindow(odds=chosen.odds, steps=chosen.steps, expected="any")
    coin = float(chosen.coin_value**2)
    variances = {one.describe(): (one.variance(0), one.variance(1)) for one in (chosen, mixed)}
    variances |= {"Duchi's coin": (coin, coin - 1)}
    lines = [f"{name}: {least:.4g}/n to {most:.4g}/n" for name, (least, most) in variances.items()]
    return f"variance of the mean for numbers from the middle to the bounds, as -1 and 1: {'; '.join(lines)}"


def _check_answers(kind: object, answers: Any, bounds: tuple[Fraction, ...], of: Any) -> None:
    """Refuse answers of a document that no declaration would have."""
    match kind:
        case "choice":
            fits = are_labels(answers) and not bounds and not of
        case "scale":
            steps = {b - a for a, b in pairwise(answers)}
            ends = (Fraction(answers[0]), Fraction(answers[-1]))
            fits = are_labels(answers) and len(steps) == 1 and min(steps) > 0 and bounds == ends
        case "number":
            fits = not answers and len(bounds) == 2 and bounds[0] < bounds[1]
        case "pair":
            fits = len(of) == 2 and all(are_labels(labels) for _, labels in of) and not bounds
        case _:
            fits = False
    if not fits:
        raise bad_parameter("answers", "those of a declared question", answers)


def _check_fit(question: SurveyQuestion) -> None:
    """Refuse a randomizer that does not fit the answers."""
    kind = question.law
    if isinstance(kind, SupportRandomizer):
        fits = kind.size == len(question.answers)
    elif isinstance(kind, Design):
        fits = len(question.answers) == 2 and 0 < kind.draws == len(kind.no) - 1
    else:
        points, steps = len(question.answers), getattr(kind, "steps", 0)
        fits = steps > 0 and question.kind in {"number", "scale"}
        fits = fits and (question.kind == "number" or 2 * steps % (points - 1) == 0)
    if not fits:
        raise bad_parameter(
            f"the randomizer of {question.name!r}",
            f"one for its {len(question.answers):,} answers" if question.answers else "one for numbers",
            kind,
            fix="leave it out, and Tacit chooses one",
        )


def _product(of: tuple[tuple[str, tuple[AnswerLabel, ...]], ...]) -> tuple[Any, ...]:
    (_, upper), (_, second) = of
    return tuple((one, other) for one in upper for other in second)


def _listed(values: Any) -> Any:
    return (
        values.tolist()
        if hasattr(values, "tolist")
        else values.to_list()
        if hasattr(values, "to_list")
        else values
    )


def _places(name: str, labels: tuple[AnswerLabel, ...], values: Any) -> NDArray[np.int64]:
    indices = {label: place for place, label in enumerate(labels)}
    try:
        codes = np.array([indices.get(value, -1) for value in _listed(values)], dtype=np.int64)
    except TypeError:  # a list is not an answer
        codes = np.array([-1])
    if (codes < 0).any():
        raise TacitError(
            "unknown-category",
            f"an answer to {name!r} is not one of the declared answers",
            why="the answers are public and fixed before anyone answers",
            fix=Choose(tuple(map(str, labels))),
        )
    return codes
