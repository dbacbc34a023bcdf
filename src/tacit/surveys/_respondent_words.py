"""What a respondent reads before anything is sent: what would be sent, and what it can give away."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tacit.mechanisms import Design, LinearHashing, Memo, NumberWindow, SubsetSelection

if TYPE_CHECKING:
    from fractions import Fraction

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
            p, q = _percent(coin.p), _percent(coin.q)
            other = "the other one" if coin.size == 2 else "each other one"
            return f"one of the {coin.size:,} answers: the true one with probability {p}, {other} with {q}"
        case SubsetSelection() as sets:
            p, q = _percent(sets.p), _percent(sets.q)
            named = f"{sets.subset:,} of the {sets.size:,} answers"
            return f"{named}: the true one is among them with probability {p}, any other one with {q}"
        case LinearHashing() as hashed:
            p, q = _percent(hashed.p), _percent(hashed.q)
            number = f"a number below {2**hashed.bits:,} that many answers share"
            return f"{number}: the true answer fits it with probability {p}, any other one with {q}"
        case NumberWindow() as window:
            return _window_words(question, window)
        case Memo() as memo:
            once = SubsetSelection(odds=memo.once_odds, size=memo.size, subset=1)
            p, q = _percent(once.p), _percent(once.q)
            sent = f"one of the {memo.size:,} answers: the true one with probability {p}, others with {q}"
            return (
                f"{sent}; the device keeps a permanent answer and reports it through a fresh coin each time"
            )
        case Design() as design if design.draws == 1:
            no, yes = map(_label, question.answers)
            p, q = _percent(design.p), _percent(design.q)
            return f"{yes} or {no}: {yes} with probability {p} if that is true, and with {q} if it is not"
        case Design() as design:
            no, yes = map(_label, question.answers)
            deck = f"from a deck with {_percent(design.p)} red cards if {yes} is true"
            return f"how many of {design.draws} cards are red: {deck}, with {_percent(design.q)} if {no} is"
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
        most = radius * window.reach / window.steps
        low, high = centre - most, centre + most
        near = _percent(window.probability(0, truth=0) / window.window_chance * (2 * window.half_width + 1))
        parts.append(
            f"a number from {low:.4g} to {high:.4g}, within {reach:.3g} of the true one with chance {near}"
        )
    if chance < 1:
        side = "the word low or high, drawn by a coin that leans towards the side of the true number"
        parts.append(f"{side} (in {_percent(1 - chance)} of cases)" if chance else side)
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


def _up(percent: float) -> str:
    return f"{min(math.ceil(percent * 10) / 10, 100.0):.1f}"


def _percent(chance: Fraction | float) -> str:
    return f"{100 * float(chance):.1f} %"
