"""The questions about a stream, each declared once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.core import ANY_TOTAL, SIZE, Argument, Goal, QuestionKind, WireForm
from tacit.exact import read_fraction
from tacit.parameters import Anything, Choice, ColumnName, Day, Integer, RealNumber, Text
from tacit.streams._alarm import draft_silent_alarm, first_watched
from tacit.streams._noise_choice import FOCUSES
from tacit.streams._planning import MEASURES, draft_daily, draft_series, figures_of_series

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import JSON, Question
    from tacit.streams._planning import DayQuestion

_ALL_DAYS = ANY_TOTAL | {SIZE}
_FIGURES = Argument("figures", Anything("the question of one day"), needed=True)
_ERROR = "which error the noise is chosen for"


def _days_written(figures: DayQuestion, goal: Goal, focus: str, charge: str = "run") -> JSON:
    options = {"focus": focus, "charge": charge, "size": goal.size}
    return {"question": figures.document, "goal": goal.to_json() | options}


def _write_daily(question: Question[Any], goal: Goal) -> JSON:
    return _days_written(goal=goal, **question.arguments)


def _read_daily(stream: Any, request: Mapping[str, Any]) -> tuple[dict[str, Any], Goal] | None:
    if "question" not in request or "alarm" in request:
        return None
    goal = request["goal"]
    total: Any = {
        name: read_fraction(goal[name])
        for name in ("epsilon", "delta", "rho", "confidence")
        if goal[name] is not None
    }
    arguments = {
        "figures": stream._day_question(request),  # noqa: SLF001 - a part of the stream
        "focus": goal["focus"],
        "charge": goal["charge"],
    }
    return arguments, Goal.read(**total, size=goal["size"], takes=_ALL_DAYS)


def _write_alarm(question: Question[Any], goal: Goal) -> JSON:
    stream: Any = question.dataset
    arguments = question.arguments
    return {
        "question": arguments["figures"].document,
        "goal": {"confidence": str(goal.confidence)},
        "alarm": {
            "baseline": str(arguments["baseline"]),
            "epsilon": str(goal.epsilon),
            "false_alarm": str(arguments["false_alarm"]),
            "alarms": arguments["alarms"],
            "since": first_watched(stream, arguments["since"]),
        },
    }


def _read_alarm(stream: Any, request: Mapping[str, Any]) -> tuple[dict[str, Any], Goal] | None:
    if "alarm" not in request:
        return None
    alarm = request["alarm"]
    arguments = {
        "figures": stream._day_question(request),  # noqa: SLF001 - a part of the stream
        "baseline": read_fraction(alarm["baseline"]),
        "false_alarm": read_fraction(alarm["false_alarm"]),
        "alarms": alarm["alarms"],
        "since": stream.horizon.name(alarm["since"]),
    }
    return arguments, Goal.read(epsilon=read_fraction(alarm["epsilon"]))


def _write_series(question: Question[Any], goal: Goal) -> JSON:
    stream: Any = question.dataset
    arguments = question.arguments
    return _days_written(figures_of_series(stream, **arguments), goal, arguments["focus"] or "balanced")


DAILY = QuestionKind(
    name="daily", words="Measure every day", draft=draft_daily, takes=_ALL_DAYS, served=False,
    arguments=(
        _FIGURES, Argument("focus", Choice(FOCUSES), needed=True, words=_ERROR),
        Argument("charge", Choice(("run", "day")), needed=True, words="whether all days are charged at once"),
    ),
    wire=WireForm(_write_daily, _read_daily),
)  # fmt: skip
SILENT_ALARM = QuestionKind(
    name="silent_alarm", words="Answer yes or no every day", draft=draft_silent_alarm, takes=frozenset(),
    served=False,
    arguments=(
        _FIGURES,
        Argument("baseline", RealNumber(zero=True), needed=True, words="the quiet level of the count"),
        Argument("false_alarm", RealNumber(), needed=True, words="the accepted chance of a false alarm"),
        Argument("alarms", Integer(1), needed=True, words="after how many alarms it ends"),
        Argument("since", Day(), words="the first day that is watched"),
    ),
    wire=WireForm(_write_alarm, _read_alarm),
)  # fmt: skip
SERIES = QuestionKind(
    name="series", words="One figure for each day, for 7 days and for all days so far", draft=draft_series,
    arguments=(
        Argument("measure", Choice(tuple(MEASURES)), needed=True),
        Argument("column", ColumnName("the column of a sum or a mean")),
        Argument("by", ColumnName("a column with public keys")),
        Argument("where", Text("a condition in SQL, such as result = 'positive'")),
        Argument("focus", Choice(FOCUSES), words=_ERROR),
        Argument("size", Integer(1, 10**12), words="a public guess of the number of rows of a day"),
        Argument("through", Day("the last day to be drawn; the price is the same for all days")),
    ),
    wire=WireForm(_write_series, lambda _stream, _request: None),  # read back as the question of every day
)  # fmt: skip

QUESTIONS = (DAILY, SILENT_ALARM, SERIES)
