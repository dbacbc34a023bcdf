"""The ``tacit stream`` command: declare a stream, begin a plan, append the rows of a day, release it.

People type its question as ``--ask cases=count --ask "fever=mean(temp)"``.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._context import note_dataset, note_ledger
from tacit.cli._options import (
    Asker,
    Total,
    read_bounds_option,
    read_column_option,
    read_limit_option,
    read_question_keys,
    with_options,
)
from tacit.cli._output import JsonOption, OutputFiles, amount_facts, plan_facts, say, show_json, typed
from tacit.errors import TacitError
from tacit.fixes import Choose, Say

if TYPE_CHECKING:
    from tacit.core import Plan
    from tacit.streams import Series, Stream


_FORM = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<what>\w+)\s*(?:\((?P<inside>.*)\))?\s*")
#: Statistics of one column that can be added up over days.
_OF_A_COLUMN = ("sum", "mean", "variance", "std")
_KNOWN = ("count", *_OF_A_COLUMN, "histogram")


def read_ask_options(texts: list[str]) -> dict[str, Any]:
    """Read what is measured each day, by name of the released column.

    Examples
    --------
    >>> {name: one.words for name, one in read_ask_options(["n=count", "fever=mean(temp)"]).items()}
    {'n': 'count()', 'fever': 'mean(temp)'}
    """
    statistics: dict[str, Any] = {}
    for text in texts:
        name, aggregate = _read(text)
        if name in statistics:
            raise _unclear(text, f"two --ask options have the name {name!r}")
        statistics[name] = aggregate
    return statistics


def _read(text: str) -> tuple[str, Any]:
    import tacit as tc

    form = _FORM.fullmatch(text)
    if form is None:
        raise _unclear(text, f"--ask {text!r} is not a name and a statistic with = between them")
    name, function, inside = form["name"], form["what"].lower(), (form["inside"] or "").strip()
    if function not in _KNOWN:
        raise TacitError(
            "bad-parameter",
            f"--ask {text!r} does not name a statistic that a stream can release",
            why="a stream adds up days, so it needs a statistic that can be added up",
            fix=Choose(_KNOWN, given=function),
        )
    if function == "count":
        if inside not in {"", "*"}:
            raise _unclear(text, f"--ask {text!r}: a count has no column; --where chooses the rows")
        return name, tc.count()
    if not inside:
        raise _unclear(text, f"--ask {text!r} names no column")
    if function in _OF_A_COLUMN:
        return name, getattr(tc, function)(inside)
    column, *edges = [part.strip() for part in inside.split(",")]
    try:
        return name, tc.histogram(column, [float(edge) for edge in edges])
    except ValueError:
        raise _unclear(text, f"--ask {text!r}: the edges of a histogram are numbers") from None


def _unclear(text: str, problem: str) -> TacitError:
    example = "ages=histogram(age,0,18,65,120)" if "histogram" in text else "fever=mean(temp)"
    return TacitError("bad-parameter", problem, fix=Say(f'--ask cases=count --ask "{example}"'))


stream = typer.Typer(
    name="stream",
    help="Count every day: rows come in day by day, and one charge pays for all days.",
    no_args_is_help=True,
)
app.add_typer(stream)

_StreamFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the stream.")]
_StreamDay = Annotated[str, typer.Argument(metavar="DAY", help="A day, such as 2026-01-31.")]


@dataclass(frozen=True, kw_only=True)
class _Daily(Total):
    """A question for every day, and what all days together may cost."""

    ask: Annotated[
        list[str],
        typer.Option(
            "--ask", "-a", show_default=False,
            help='What is measured each day: "cases=count", "fever=mean(temp)", also sum, variance, std, '
            '"ages=histogram(age,0,18,65)"; may be repeated.',
        ),
    ]  # fmt: skip
    by: Annotated[list[str] | None, typer.Option(help="A column with public keys; may be repeated.")] = None
    where: Annotated[str | None, typer.Option(help="Count only these rows: \"result = 'positive'\".")] = None
    focus: Annotated[str, typer.Option(help="Which error counts most: day, week, total, or balanced.")] = (
        "balanced"
    )
    charge: Annotated[str, typer.Option(help="run: all days at once. day: each day when it is released.")] = (
        "run"
    )
    size: Annotated[int | None, typer.Option(help="A public guess of the number of rows of a day.")] = None

    def plan(self, folder: Path) -> tuple[Stream, Plan[Series]]:
        """Open the stream and plan the question."""
        statistics, stream = read_ask_options(self.ask), _opened(folder)
        chosen: Any = {"focus": self.focus, "charge": self.charge}
        question = stream.daily(by=self.by, where=self.where, **chosen, **statistics)
        return stream, question.plan(**self.goal, size=self.size)


@stream.command("open")
def open_(
    folder: _StreamFolder,
    *,
    level: Annotated[str, typer.Option(help="Who is protected: event, person-day or person.")],
    start: Annotated[str, typer.Option(help="The first day: 2026-01-01.")],
    days: Annotated[int, typer.Option(help="How many days; a stream cannot be made longer later.")],
    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="The whole budget.")] = None,
    delta: Annotated[float, typer.Option("--delta", help="The budget's delta.")] = 0,
    rho: Annotated[float | None, typer.Option("--rho", help="Instead of epsilon: the budget in rho.")] = None,
    name: Annotated[str | None, typer.Option(help="By default the name of the folder.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="The column that names the person; not at event level.")
    ] = None,
    most_days: Annotated[
        int | None, typer.Option("--most-days", help="At the level person: on how many days a person counts.")
    ] = None,
    apart: Annotated[int, typer.Option(help="At the level person: at least this many days apart.")] = 1,
    bounds: Annotated[
        list[str] | None, typer.Option("--bounds", help="COLUMN=LOW:HIGH, a public range; may be repeated.")
    ] = None,
    keys: Annotated[
        list[str] | None, typer.Option("--keys", help="COLUMN=A,B,C, public groups; may be repeated.")
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--type", help="COLUMN=number, text, boolean, date; may be repeated.")
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option("--limit", help="rows=3: how much of one person counts on a day; may be repeated."),
    ] = None,
    ledger: Annotated[str, typer.Option(help="Where the budget is kept.")] = "tacit.ledger",
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Declare a stream: who is protected, which days there are, what is public. Charges nothing."""
    import tacit as tc

    stream_name = name or folder.resolve().name
    note_dataset(None, None, stream_name)
    note_ledger(ledger)
    types = dict(_pair("--type", text) for text in kinds or ())
    stream = tc.stream(
        folder, name=stream_name, level=level, start=start, days=days, unit=unit, most_days=most_days,  # type: ignore[arg-type]
        apart=apart, budget=tc.Budget(epsilon, delta, rho=rho), types=types or None,
        bounds=dict(read_bounds_option(text, _column_of(text)) for text in bounds or ()) or None,
        keys=dict(read_question_keys(text, types) for text in keys or ()) or None,
        limits=dict(read_limit_option(text) for text in limits or ()) or None, ledger=ledger,
    )  # fmt: skip
    if as_json:
        show_json({"folder": str(folder), "declaration": stream.declared, "protects": stream.promise})
        return
    say(
        f"stream {stream_name}, protects {stream.promise}; {days:,} days from {stream.horizon.start} to "
        f"{stream.horizon.last}",
        f"Written to {folder}. Next: tacit stream plan {typed(str(folder))} --ask cases=count --epsilon 0.5",
    )


@stream.command()
@with_options
def plan(folder: _StreamFolder, daily: _Daily, *, as_json: JsonOption = False) -> None:
    """Show what a question for every day will cost and how exact it will be. Charges nothing."""
    _, planned = daily.plan(folder)
    show_json(plan_facts(planned)) if as_json else say(repr(planned))


@stream.command()
@with_options
def begin(folder: _StreamFolder, daily: _Daily, asker: Asker, *, as_json: JsonOption = False) -> None:
    """Charge a question for every day; the folder remembers it. The same question again is free."""
    stream, planned = daily.plan(folder)
    stream.begin(planned, who=asker.who, purpose=asker.purpose)
    number = [plan.hash for plan in stream.plans].index(planned.hash) + 1
    if as_json:
        show_json({**plan_facts(planned), "number": number, "left": amount_facts(stream.remaining)})
        return
    say(
        f"plan {number} of stream {stream.name} is charged: {planned.asked}",
        f"left: {stream.remaining}",
        f"Next: tacit stream append {typed(str(folder))} {stream.horizon.start} rows.csv",
    )


@stream.command()
def append(
    folder: _StreamFolder,
    day: _StreamDay,
    rows: Annotated[
        Path | None, typer.Argument(metavar="[ROWS]", help="A .csv or .parquet file with the day's rows.")
    ] = None,
    *,
    nobody: Annotated[bool, typer.Option("--nobody", help="Nobody came on this day.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the rows of a day that no plan has released.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Accept a file that was appended for another day before.")
    ] = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Store the rows of a day, all of them at once. Charges nothing."""
    stream = _opened(folder)
    if (rows is None) != nobody:
        raise TacitError(
            "bad-parameter",
            "the rows of the day are missing" if rows is None else "--nobody stands for a day without rows",
            why="a day needs its rows, or the statement that nobody came",
            fix=Say(f"tacit stream append {typed(str(folder))} {typed(day)} rows.csv, or --nobody instead"),
        )
    stream.append(day, [] if rows is None else rows, replace=replace, again=again)
    name = stream.horizon.name(stream.horizon.number(day))
    if as_json:
        show_json({"day": name, "stored": True})
        return
    say(
        f"the rows of {name} are stored; nothing was charged",
        f"Next: tacit stream release {typed(str(folder))} {name}",
    )


@stream.command()
@with_options
def release(
    folder: _StreamFolder,
    day: _StreamDay,
    files: OutputFiles,
    *,
    number: Annotated[
        int | None, typer.Option("--plan", help="Which plan, by its number in tacit stream status.")
    ] = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Release a day with noise: the day, the last 7 days, all days so far. The same day again is free."""
    files.check()
    stream = _opened(folder)
    instalment = stream.release(day, _numbered(stream, number))
    if instalment.content.kind != "series":  # an alarm that was planned in Python: yes or no, no files
        show_json(instalment.content.to_json()) if as_json else say(repr(instalment))
        return
    files.save(instalment, table=instalment.content.history)
    if as_json:
        show_json({
            "day": instalment.content.day,
            "rows": list(instalment.content.today),
            "confidence": instalment.content.daily.confidence,
            "certificate": dict(instalment.certificate.fields),
        })  # fmt: skip
        return
    say(repr(instalment), f"left: {stream.remaining}")
    files.report()


@stream.command()
def alarm(
    folder: _StreamFolder,
    *,
    column: Annotated[str | None, typer.Option(help="A count of the plan, if it has several.")] = None,
    baseline: Annotated[float | None, typer.Option(help="The quiet level, from public knowledge.")] = None,
    days_before: Annotated[
        int | None,
        typer.Option(
            "--days-before", help="Instead of a baseline: the mean of this many released days before."
        ),
    ] = None,
    false_alarm: Annotated[
        float, typer.Option("--false-alarm", help="The chance of any false alarm over the whole horizon.")
    ] = 0.05,
    window: Annotated[str, typer.Option(help="Watch each day, or 7 days: week.")] = "day",
    number: Annotated[
        int | None, typer.Option("--plan", help="Which plan, by its number in tacit stream status.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say on which released days a count was higher than noise alone would explain. Free."""
    stream = _opened(folder)
    alarms = stream.alarm(
        column, baseline=baseline, days_before=days_before, false_alarm=false_alarm, window=window,  # type: ignore[arg-type]
        plan=_numbered(stream, number),
    )  # fmt: skip
    judged = alarms.check()
    if as_json:
        show_json({"gap": alarms.gap, "rate": alarms.rate, "alarms": [asdict(one) for one in judged.rang]})
        return
    say(repr(judged))


@stream.command()
def status(folder: _StreamFolder, *, as_json: JsonOption = False) -> None:
    """Say which days came in, which were released, and what is left of the budget. Free."""
    stream = _opened(folder)
    state = stream.status()
    if as_json:
        show_json({
            "name": state.name,
            "start": stream.horizon.start.isoformat(),
            "days": stream.horizon.days,
            "appended": list(state.appended),
            "missing": list(state.missing),
            "plans": [
                {"number": n, "asked": asked, "released": stream.horizon.name(last) if last else None}
                for n, (asked, last) in enumerate(state.plans, 1)
            ],
            "left": amount_facts(stream.remaining),
        })  # fmt: skip
        return
    say(repr(state))


def _opened(folder: Path) -> Stream:
    from tacit.streams import open_stream

    note_dataset(None, None, folder.name)
    stream = open_stream(folder)
    note_dataset(None, None, stream.name)
    note_ledger(str(stream.declared.get("ledger", "LEDGER")))
    return stream


def _numbered(stream: Stream, number: int | None) -> Plan[Series] | None:
    """Return the plan with a number, as status counts them; None where none was named."""
    if number is None:
        return None
    plans = stream.plans
    if not 1 <= number <= len(plans):
        raise TacitError(
            "not-begun",
            f"there is no plan {number}; "
            + ("1 plan was begun" if len(plans) == 1 else f"{len(plans)} plans were begun"),
            fix=Say("run tacit stream status to see the plans"),
        )
    return plans[number - 1]


def _pair(option: str, text: str) -> tuple[str, str]:
    return read_column_option(option, text, _column_of(text))


def _column_of(text: str) -> list[str]:
    """Return the column that an option names; the file of the stream's rows is not there yet."""
    return [text.partition("=")[0] or "COLUMN"]
