"""`tacit.survey`: declare a survey from its questions and an epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.core import Unit, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Choose, Code, Set
from tacit.mechanisms import Memo
from tacit.parameters import Choice
from tacit.surveys._declarations import DeclaredQuestion, read_question
from tacit.surveys._sample_sizes import choose_strategy
from tacit.surveys._survey import Survey
from tacit.surveys._survey_questions import DECLARED, SurveyQuestion, with_randomizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.exact import Number

_STRATEGIES = ("auto", "one", "split")
#: A question as it is asked: its title, and the declared question or two of a pair.
_Group: TypeAlias = tuple[str, tuple[tuple[str, DeclaredQuestion], ...]]
_RESERVED = frozenset({"survey", "invitation", "epsilon", "schema"})


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
    read_identity(name=name, unit=Unit("respondent"), adjacency="replace")
    total = rational("epsilon", epsilon)
    Choice(_STRATEGIES).read("strategy", strategy)
    given = questions if isinstance(questions, Mapping) else {"answer": questions}
    declared = {_name(key): read_question(str(key), value) for key, value in given.items()}
    if not declared:
        raise bad_parameter("questions", "at least one question", questions, fix=Code('["no", "yes"]'))
    groups = _grouped(declared, pairs)
    if once is not None:
        return _repeated(name, groups, total, rational("once", once), strategy)
    if len(groups) == 1:
        return Survey(name, _made(groups, total, Fraction(1)), total, "split")
    part = Fraction(1, len(groups))
    if strategy == "split":
        return Survey(name, _made(groups, total * part, Fraction(1)), total, "split", "as declared")
    one = _made(groups, total, part)
    if strategy == "one":
        return Survey(name, one, total, "one", "as declared")
    if any(question.randomizer.epsilon > total * part for question in one if question.why == DECLARED):
        return Survey(name, one, total, "one", "a declared randomizer needs more than its part of epsilon")
    split = _made(groups, total * part, Fraction(1))
    predicted = [[q.variance() / float(q.share) for q in made] for made in (one, split)]
    chosen = choose_strategy(*predicted)
    return Survey(name, one if chosen.name == "one" else split, total, chosen.name, chosen.why)


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
    found: dict[str, _Group] = {}
    for name in declared:
        asked = partner.get(name, (name,))
        title = " and ".join(asked)
        if len(asked) > 1 and title in declared:
            raise bad_parameter(
                "questions", f"without a question {title!r}, because a pair has this name", title
            )
        found[title] = (title, tuple((one, declared[one]) for one in asked))
    return list(found.values())


def _made(
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
    made = _made(groups, total * part, Fraction(1), once * part)
    if not all(isinstance(question.randomizer, Memo) for question in made):
        raise TacitError(
            "bad-parameter",
            "a survey that is repeated cannot use a declared randomizer",
            why="its fresh coins would give away more with every repetition",
            fix="leave the randomizer out; Tacit then keeps a permanent randomized answer",
        )
    return Survey(name, made, total, "split", why)
