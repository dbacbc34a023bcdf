"""What a user declares about a question of a survey: a list of answers, a number between bounds, a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Choose, Code, Either, Set

if TYPE_CHECKING:
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
    given: object = text
    if not isinstance(given, str) or len(text) > _MOST_TEXT:
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


def read_question(name: str, given: object) -> DeclaredQuestion:
    """Read one question of a survey: `question` made it, or these are its answers."""
    if isinstance(given, DeclaredQuestion):
        return given
    try:
        return question(given)  # type: ignore[arg-type]
    except TacitError as refused:
        raise refused.but(what=f"question {name!r}: {refused.what}", question=name) from None


def _read_answers(
    given: object,
) -> tuple[AnswerFormat, tuple[AnswerLabel, ...], tuple[Fraction, Fraction] | None]:
    match given:
        case bool():
            pass
        case int() if 2 <= given <= MOST_LABELS:
            return "choice", tuple(range(given)), None
        case range():
            short = max(map(abs, (given.start, given.stop))) < _MOST_NUMBER  # len() of others can fail
            if short and 2 <= len(given) <= MOST_LABELS:
                ends = sorted((given[0], given[-1]))
                return "scale", tuple(sorted(given)), (Fraction(ends[0]), Fraction(ends[1]))
        case (int() | float() | Fraction(), int() | float() | Fraction()) if isinstance(given, tuple):
            low, high = (rational("bounds", end, zero=True, negative=True, fix=_FORMS) for end in given)
            if low < high:
                return "number", (), (low, high)
        case str():
            pass
        case [int() as low, int() as high] if abs(high - low) > 1 and not isinstance(given, tuple):
            raise bad_parameter(
                "answers",
                "a pair of bounds in round brackets for a number",
                given,
                why="a list of two numbers would allow these two answers and nothing between them",
                fix=Either(Code(f"({min(low, high)}, {max(low, high)})"), Code(f'["{low}", "{high}"]')),
            )
        case _ if isinstance(given, Sequence) or hasattr(given, "tolist"):
            labels = tuple(getattr(given, "tolist", lambda: given)())  # type: ignore[arg-type]
            if are_labels(labels):
                return "choice", labels, None
    raise bad_parameter(
        "answers",
        f"a list of 2 to {MOST_LABELS:,} different texts or whole numbers below 2^63, a pair of bounds, "
        "or a range",
        given,
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
