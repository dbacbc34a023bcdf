"""The reporting triangle: what is known by now about the day on which things happened.

Each row enters one cell (day of the report, delay), on the day of its report. So cells are disjoint, each is
released once, and a total over the delays of an event day is post-processing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable, Cells
from tacit.errors import TacitError
from tacit.exact import rational
from tacit.fixes import Choose, Code
from tacit.mechanisms import LinearNoise
from tacit.streams._alarm import counted_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Plan, Value
    from tacit.mechanisms import StreamNoise
    from tacit.streams._series import Series
    from tacit.streams._stream import Stream


def event_days(
    stream: Stream,
    column: str | None = None,
    *,
    delay: str = "delay",
    confidence: float = 0.95,
    plan: Plan[Series] | None = None,
) -> AnswerTable:
    """Add up a count over the delays of each event day, as far as reports have come in. Free.

    Guarantee: post-processing of what the plan has released.

    Parameters
    ----------
    stream
        A stream whose days are days of reports.
    column
        A count of the plan; not needed if it has one count.
    delay
        The column of the plan's groups that holds the delay of a report in days: 0, 1, 2, ...
    confidence
        How often each interval covers the noise.
    plan
        Which plan, if several were begun.

    Returns
    -------
    AnswerTable
        One line for each event day and other group: the count, and ``delays``, the number of delays in it.

    Examples
    --------
    >>> import tacit as tc
    >>> flu = tc.stream(
    ...     None, name="flu", level="event", start="2026-01-01", days=30, keys={"delay": [0, 1, 2]},
    ...     budget=tc.Budget(epsilon=1),
    ... )
    >>> flu.begin(flu.daily(cases=tc.count(), by="delay").plan(epsilon=1))
    >>> flu.append("2026-01-01", [{"delay": 0}, {"delay": 0}])
    >>> flu.append("2026-01-02", [{"delay": 1}, {"delay": 0}])
    >>> _ = flu.release("2026-01-02")
    >>> known = event_days(flu)
    >>> known.keys["day"], known["delays"].value
    (('2026-01-01', '2026-01-02'), (2, 1))
    """
    begun = stream._begun(plan)  # noqa: SLF001 - a part of the stream
    subject = begun.subject
    asked = subject.table.asked
    named = [name for name, _ in asked.by]
    delays = {key[named.index(delay)] for key in asked.keys or ()} if delay in named else set()
    if not delays or not all(_is_delay(one) for one in delays):
        raise TacitError(
            "bad-parameter",
            f"the plan has no groups with a delay in the column {delay!r}",
            why="delays are public keys: whole numbers of days from 0 on",
            fix=Choose(tuple(named), given=delay)
            if named
            else Code('stream.daily(n=tc.count(), by="delay")'),
        )
    found = counted_column(subject, column)
    rows, through = begun.rows()
    noise, at = subject.noises[found.step], named.index(delay)
    days = noise.estimate(rows[found.step])[:, :, 0] if through else []
    keys: list[tuple[Any, ...]] = [tuple(key) for key in asked.keys or ()]
    others = list(dict.fromkeys(key[:at] + key[at + 1 :] for key in keys))
    level = float(1 - rational("confidence", confidence))
    lines: list[tuple[Value, ...]] = []
    for event in range(1, through + 1):
        for other in others:
            own = [n for n, key in enumerate(keys) if key[:at] + key[at + 1 :] == other]
            cells = [(day, n) for n in own if (day := event + int(keys[n][at])) <= through]
            value = float(sum(days[day - 1][n] for day, n in cells))
            half = _half_width(noise, [day for day, _ in cells], through, level)
            lines.append((subject.horizon.name(event), *other, value, value - half, value + half, len(cells)))
    return _table(found.name, [name for name in named if name != delay], lines, confidence)


def _is_delay(value: Any) -> bool:
    return isinstance(value, int | float) and value >= 0 and value == int(value)


def _half_width(noise: StreamNoise, days: Sequence[int], through: int, failing: float) -> float:
    """Return the half-width of a sum over cells of different groups, whose noises are independent.

    It is rounded up: between two whole numbers, whole noise has heavier tails than the continuous law.
    """
    laws = [noise.noise_on(1, day, through) for day in days]
    if not laws:
        return 0.0
    terms = tuple(sorted(scale for law in laws for scale in law.laplace))
    both = LinearNoise(terms, math.hypot(*(law.normal for law in laws)))
    return float(math.ceil(both.half_width(failing, [1.0]).item()))


def _table(column: str, others: list[str], lines: list[tuple[Value, ...]], confidence: float) -> AnswerTable:
    parts = list(zip(*lines, strict=True)) or [()] * (len(others) + 5)
    keys = dict(zip(["day", *others], parts, strict=False))
    value, low, high, known = parts[-4:]
    nothing = (None,) * len(lines)
    columns = {column: Cells(value, low, high), "delays": Cells(known, nothing, nothing)}
    return AnswerTable(keys, columns, float(confidence), counts=(column,), dates=("day",))
