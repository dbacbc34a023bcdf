"""Invented tables: neighbours for audits, rehearsals of a dataset, example visits. No row in them is real.

Neighbours, for an audit of a table plan: a declared schema and hostile values. Every value comes from public
facts (kinds, bounds, keys), from the constants of the question and from a list of values that break careless
code. Two neighbours differ in the rows of one unit, in all protected tables together, or under ``replace`` in
the rows of one unit that another takes the place of.

Rehearsals have the declared schema of a dataset, so that one can try a question before one pays. Every value
follows from public facts (kinds, bounds, keys, limits) and from a number that starts the generator. No row of
the data is read, so an answer says nothing about it.

The example visits are synthetic, so that nobody needs protection while learning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.algebra import Column, Literal, Scan, contribution
from tacit.core import SharedReadings, Table, open_account
from tacit.engines import DuckDB, SourceTable, grid_columns, quote, read_source
from tacit.ledger import Ledger
from tacit.parameters import Integer
from tacit.tables.planning._exact_integers import exact_integers
from tacit.tables.planning._found_bounds_subject import FoundBoundsSubject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import duckdb
    import numpy as np

    from tacit.accounting import Budget
    from tacit.algebra import Contribution, Statistic, TableQuestion
    from tacit.core import Fact, Identity, Task
    from tacit.engines import SmallTables, StatementRows
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._rows_questions import RowsSubject


#: Draws a whole number below another; the audit brings the randomness.
Pick: TypeAlias = Callable[[int], int]
InventedRows: TypeAlias = list[tuple[object, ...]]

_TYPES = {"number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "TIMESTAMP"}
_NUMBERS = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, 2.0**53)
_TEXTS = ("", "A", "a", " A", "É", "0", "NaN", "a\nb", "'; --", "\u202e")
_DAYS = (datetime(1, 1, 1), datetime(1970, 1, 1), datetime(2024, 2, 29, 23, 59), datetime(9999, 12, 31))  # noqa: DTZ001
_UNITS = 4  # units beside the one that differs
_SIDES = 40  # datasets in one database: with more of them it takes longer to find a table
_SECRET = 20_240_229  # both neighbours rank a unit's rows with the same secret, as one release would
_REHEARSAL_UNITS = 1_000
_MAX_ROWS = 12  # of one unit in one table, where its limit is larger
_PUBLIC_ROWS = 60
_STANDS_OUT = 10**9  # rows in a cell that no noise explains
_WORDS = 20  # different texts of a column without keys
_FIRST_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 - days without a zone, like those of the sources
_CALENDAR_DAYS = 730
_STORED = {"moment": "date", "date": "date", "text": "text", "number": "number", "boolean": "boolean"}
_REHEARSAL_SECRET = 20_240_229  # which rows beyond a limit are dropped; there is nothing to hide
EXAMPLE_HOSPITALS = ("Ahorn", "Birke", "Buche", "Eiche", "Erle", "Fichte", "Linde", "Ulme")


@dataclass(frozen=True, slots=True)
class StepChange:
    """How far one step's exact integers moved between two neighbours, and how far they may."""

    what: str
    l1: int
    l2_squared: int
    declared_l1: int
    declared_l2_squared: int
    columns: str = ""

    @property
    def holds(self) -> bool:
        """Whether the change stays within both declared sensitivities."""
        return self.l1 <= self.declared_l1 and self.l2_squared <= self.declared_l2_squared

    @property
    def share(self) -> Fraction:
        """The change as a part of the declared L1 sensitivity."""
        return Fraction(self.l1, self.declared_l1) if self.declared_l1 else Fraction(self.l1)


@dataclass(frozen=True, slots=True)
class TablePair:
    """A plan's tasks on two neighbouring invented datasets, and the rows that differ."""

    first: tuple[Task[Any, Any], ...]
    second: tuple[Task[Any, Any], ...]
    changes: tuple[StepChange, ...]
    only_first: Mapping[str, InventedRows]
    only_second: Mapping[str, InventedRows]

    @property
    def holds(self) -> bool:
        """Whether every step stays within its declared sensitivity."""
        return all(change.holds for change in self.changes)

    @property
    def least_share(self) -> Fraction:
        """The smallest change of a step, as a part of what is declared: all steps are attacked at once."""
        return min((change.share for change in self.changes), default=Fraction(0))

    @property
    def share(self) -> Fraction:
        """The largest change of a step, as a part of what is declared."""
        return max((change.share for change in self.changes), default=Fraction(0))

    def __str__(self) -> str:
        sides = (("only in the first", self.only_first), ("only in the second", self.only_second))
        return "\n".join(
            f"{side}: {table} {row!r}"
            for side, tables in sides
            for table, rows in tables.items()
            for row in rows
        )


class InventedTables:
    """Makes pairs of neighbouring datasets with the declared schema of a table plan.

    Parameters
    ----------
    subjects
        What the plan measures of which rows; of a batch, each of its parts.
    identity
        Whose rows are protected, and what a neighbour is.
    pick
        Draws a whole number below another.
    """

    def __init__(self, subjects: Sequence[RowsSubject], identity: Identity, pick: Pick) -> None:
        self._subjects, self._identity, self._pick = tuple(subjects), identity, pick
        questions = [one.asked for one in self._subjects]
        inputs = [question.input for question in questions]
        self._tables = {scan.table.name: scan.table for scan in _found(inputs, Scan)}
        self._public = {t.name: t for t in _found(inputs, Table) if t.key is not None}
        self._kinds = {c.name: c.kind for c in _found(questions, Column) if c.kind is not None}
        constants = [literal.value for literal in _found(questions, Literal)]
        keys = [value for question in questions for key in question.keys or () for value in key]
        places = [value for one in self._subjects for axis in one.axes for value in axis.values]
        self._constants = [*constants, *keys, *places]
        by_row = identity.unit.kind == "row"
        self._who = [contribution(q, row_level=by_row, adjacency=identity.adjacency) for q in questions]
        limit = max((scan.rows or 1 for scan in _found(inputs, Scan)), default=1)
        self._most = 1 if by_row else min(limit + 2, 40)
        self._opened: duckdb.DuckDBPyConnection | None = None
        self._sides, self._numbers = 0, count()

    def pair(self) -> TablePair:
        """Invent two neighbours, and compare the exact integers of every step."""
        others = [(name, self._own(name)) for name in range(_UNITS)]
        unit, other = self._own(_UNITS), self._own(_UNITS + 1)
        replaced = self._identity.adjacency == "replace"
        shared = {t: [row for _, rows in others for row in rows[t]] for t in self._tables}
        public = {name: self._looked_up(table) for name, table in self._public.items()}
        sides = (unit, other if replaced else {t: [] for t in self._tables})
        first_engine, second_engine = (
            self._on({t: self._mixed(shared[t], own[t]) for t in self._tables} | public) for own in sides
        )
        changes: list[StepChange] = []
        for subject, contributed in zip(self._subjects, self._who, strict=True):
            if isinstance(subject, FoundBoundsSubject):
                changes += self._adaptive_changes(subject, contributed, first_engine, second_engine)
            else:
                changes += _changes(subject, contributed, first_engine, second_engine)
        before, after = (
            tuple(unit.on(engine) for unit in self._subjects) for engine in (first_engine, second_engine)
        )
        return TablePair(before, after, tuple(changes), unit, other if replaced else {})

    def _adaptive_changes(
        self, subject: FoundBoundsSubject, contribution: Contribution, *engines: Any
    ) -> list[StepChange]:
        """Compare the exact integers of every step on two engines, after the same invented noisy ones."""
        import numpy as np

        tasks = [subject.on(engine) for engine in engines]
        noisy: list[Any] = []
        changes = []
        with SharedReadings.opened() as readings:
            data = [task.open(readings) for task in tasks]
            for measured, *steps in zip(subject.steps, *(task.steps for task in tasks), strict=True):
                a, b = (
                    np.array(step.exact(d, noisy), dtype=object) for step, d in zip(steps, data, strict=True)
                )
                moves = np.abs(a - b).ravel().tolist()
                l1, squared = measured.statistic.sensitivity(contribution)
                word, columns = measured.statistic.word, subject.columns_of(measured.statistic)
                square_sum = sum(move * move for move in moves)
                changes.append(StepChange(word, sum(moves), square_sum, l1, squared, columns))
                noisy.append(self._invented_noisy(a, b))
        return changes

    def _invented_noisy(self, *exact: Any) -> list[list[int]]:
        """Invent what a step may have released: cells that stand out, of one neighbour or of nobody."""
        rows = exact[self._pick(2)] * _STANDS_OUT
        for _ in range(self._pick(3)):
            rows.reshape(-1)[self._pick(rows.size)] += _STANDS_OUT
        lines: list[list[int]] = rows.tolist()
        return lines

    def _on(self, rows: Mapping[str, InventedRows]) -> Any:
        """Return an engine with these rows; the exact integers are computed once and kept."""
        database = self._database()
        owner = self._identity.unit.columns
        places = {}
        for name, table in (self._tables | self._public).items():
            columns, path = self._columns(table), f"{name} {next(self._numbers)}"
            typed = ", ".join(f"{quote(c)} {_TYPES[k]}" for c, k in columns.items())
            database.execute(f"CREATE TABLE {quote(path)} ({typed})")
            if rows[name]:
                marks = f"({', '.join('?' * len(columns))})"
                lines = ", ".join([marks] * len(rows[name]))
                values = [value for row in rows[name] for value in row]
                database.execute(f"INSERT INTO {quote(path)} VALUES {lines}", values)  # noqa: S608
            source = read_source((database, path))
            public = table.key is not None
            places[name] = SourceTable(source, *((None,) if public else (owner, grid_columns(table.facts))))
        return _Kept(DuckDB(places, key=_SECRET, snapshot=None))

    def _database(self) -> duckdb.DuckDBPyConnection:
        """Return the database for the next rows. Many share one, because opening it takes longest."""
        if self._opened is None or self._sides == _SIDES:
            import duckdb

            self._opened, self._sides = duckdb.connect(config={"threads": 1}), 0
        self._sides += 1
        return self._opened

    def _columns(self, table: Table) -> dict[str, str]:
        """Return the columns of a table with their kinds: declared, or as the question reads them."""
        owner = () if table.key is not None else self._identity.unit.columns
        names = dict.fromkeys((*owner, *(table.columns or table.facts)))
        facts = {}
        for name in names:
            fact = table.facts.get(name)
            facts[name] = (fact.kind if fact is not None else None) or self._kinds.get(name) or "text"
        return facts

    def _own(self, unit: int) -> dict[str, InventedRows]:
        """Invent the rows of one unit: in half of the cases all of them are equal, where extremes occur."""
        rows: dict[str, InventedRows] = {}
        for name, table in self._tables.items():
            columns, many = self._columns(table), self._pick(self._most + 1)
            same = self._pick(2) == 0
            row = self._row(unit, columns, table.facts)
            rows[name] = [row if same else self._row(unit, columns, table.facts) for _ in range(many)]
            if self._identity.unit.kind == "row":
                rows[name] = rows[name] or [row]
        return rows

    def _looked_up(self, table: Table) -> InventedRows:
        """Invent a public table; it is the same for both neighbours."""
        columns = self._columns(table)
        return [tuple(self._value(k, table.facts.get(c)) for c, k in columns.items()) for _ in range(6)]

    def _row(self, unit: int, columns: Mapping[str, str], facts: Mapping[str, Fact]) -> tuple[object, ...]:
        owner = self._identity.unit.columns
        return tuple(
            _name_of(unit, kind) if name in owner else self._value(kind, facts.get(name))
            for name, kind in columns.items()
        )

    def _value(self, kind: str, fact: Fact | None) -> object:
        values = self._values(kind, fact)
        return values[self._pick(len(values))]

    def _values(self, kind: str, fact: Fact | None) -> Sequence[object]:
        keys = [] if fact is None else list(fact.keys or ())
        candidates = [value for value in (*keys, *self._constants) if _fits(value, kind)]
        if kind == "boolean":
            return (True, False, None)
        if kind == "text":
            return (*candidates, *candidates, *_TEXTS, None)
        if kind == "date":
            days = [day + timedelta(days=d) for day in _dates(candidates) for d in (-1, 0, 1)]
            return (*days, *_DAYS, None)
        ends = [] if fact is None or fact.bounds is None else [_float(end) for end in fact.bounds]
        neighbours = [
            one + move for value in candidates for one in [_float(value)] for move in (-1.0, 0.0, 1.0)
        ]
        beyond = [math.nextafter(end, way) for end in ends for way in (-math.inf, math.inf)]
        return (*ends, *ends, *ends, sum(ends) / 2, *neighbours, *beyond, *_NUMBERS, None)

    def _mixed(self, rows: InventedRows, more: InventedRows) -> InventedRows:
        """Put rows among others: no operator may depend on positions."""
        mixed = list(rows)
        for row in more:
            mixed.insert(self._pick(len(mixed) + 1), row)
        return mixed


def _changes(subject: RowsSubject, contribution: Contribution, *engines: Any) -> list[StepChange]:
    """Compare the exact integers of every statistic, of all units, on two engines."""
    exact, question = [], replace(subject.asked, sample=None)
    for engine in engines:
        with engine.transaction() as data:
            exact.append(exact_integers(data, question, subject.statistics))
    changes = []
    for statistic in subject.statistics:
        a, b = (_placed(subject, one.get(statistic, {})) for one in exact)
        blank = [0] * statistic.size
        moves = [
            abs(x - y)
            for key in a.keys() | b.keys()
            for x, y in zip(a.get(key, blank), b.get(key, blank), strict=True)
        ]
        l1, squared = statistic.sensitivity(contribution)
        changes.append(
            StepChange(
                statistic.word, sum(moves), sum(move * move for move in moves), l1, squared,
                subject.columns_of(statistic),
            )
        )  # fmt: skip
    return changes


def _placed(subject: RowsSubject, exact: Mapping[Any, list[int]]) -> Mapping[Any, list[int]]:
    """Leave out kinds of rows that have no place on some axis: a task drops them before its mechanisms."""
    if not subject.axes:
        return exact
    return {
        key: numbers
        for key, numbers in exact.items()
        if all(
            value in axis.values or (axis.other and value is not None)
            for value, axis in zip(key, subject.axes, strict=True)
        )
    }


class _Kept:
    """An engine that answers a question it has answered before from memory: the data does not change."""

    def __init__(self, engine: DuckDB) -> None:
        self._engine = engine
        self._seen: dict[object, list[StatementRows]] = {}

    def transaction(self) -> nullcontext[_Kept]:
        """Return itself: every reading is the same."""
        return nullcontext(self)

    def integers(
        self, question: TableQuestion, statistics: tuple[Statistic, ...], tables: SmallTables
    ) -> list[StatementRows]:
        """Return the exact integers of a question."""
        key = (repr(question), statistics, repr(tables))
        if key not in self._seen:
            self._seen[key] = self._engine.integers(question, statistics, tables)
        return self._seen[key]


def _found(thing: object, kind: type) -> Iterator[Any]:
    """Yield all parts of a question that are of one class."""
    if isinstance(thing, kind):
        yield thing
    if isinstance(thing, tuple | list):
        for part in thing:
            yield from _found(part, kind)
    elif is_dataclass(thing) and not isinstance(thing, type):
        for field in fields(thing):
            yield from _found(getattr(thing, field.name), kind)


def _name_of(unit: int, kind: str) -> object:
    names: dict[str, object] = {"number": float(unit), "date": datetime(2024, 1, 1 + unit)}  # noqa: DTZ001
    return names.get(kind, f"unit {unit}") if kind != "boolean" else bool(unit % 2)


def _fits(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, int | float):
        return kind == "number"
    return isinstance(value, str) and kind in {"text", "date"}


def _dates(texts: Sequence[object]) -> list[datetime]:
    dates = []
    for text in texts:
        try:
            dates.append(datetime.fromisoformat(str(text)).replace(tzinfo=None))
        except ValueError:
            continue
    return [day for day in dates if 2 < day.year < 9998]


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def rehearsal(dataset: TableDataset, *, seed: int, budget: Budget) -> TableDataset:
    """Return a dataset with the same declared facts, invented rows, and a ledger of its own in memory.

    Guarantee
    ---------
    Nothing of the dataset's data is read and nothing is charged to its ledger. Plans have the same hash, cost
    and forecast as those of the dataset. The same seed gives the same rows.

    Parameters
    ----------
    dataset
        The dataset, or the one that was opened from its public facts.
    seed
        Starts the generator of the rows. It is not secret.
    budget
        What the ledger in memory may charge.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> trial = tc.tables.rehearsal(visits, seed=1, budget=tc.Budget(epsilon=9))
    >>> plan = trial.agg(n=tc.count_units()).plan(epsilon=9)
    >>> plan == visits.agg(n=tc.count_units()).plan(epsilon=9)
    True
    >>> 950 < plan.release().value < 1050
    True
    """
    import duckdb
    import numpy as np

    database = duckdb.connect(config={"threads": 1, "memory_limit": "512MB"})
    generator = np.random.default_rng(Integer().read("seed", seed))
    owners, places = dataset.unit.columns, {}
    for name, table in dataset.tables.items():
        public = table.key is not None
        limit = min(dataset.limits.rows_of(name) or _MAX_ROWS, _MAX_ROWS)
        rows = _PUBLIC_ROWS if public else None
        _invent(
            database, name, table, owners=() if public else owners, max_rows=limit, rows=rows, by=generator
        )
        source = read_source((database, name))
        places[name] = SourceTable(source, *((None,) if public else (owners, grid_columns(table.facts))))
    ledger = Ledger.memory()
    open_account(dataset.identity, budget, ledger, record=dataset.record)
    engine = DuckDB(places, key=_REHEARSAL_SECRET, snapshot=None, memory="25%")
    return replace(dataset, _ledger=ledger, _engine=engine)


def _invent(
    database: duckdb.DuckDBPyConnection,
    name: str,
    table: Table,
    *,
    owners: tuple[str, ...],
    max_rows: int,
    rows: int | None,
    by: np.random.Generator,
) -> None:
    """Write one table. Each unit of a protected table has at least one row and at most the limit."""
    import numpy as np

    kinds = {c: _kind(table.facts.get(c)) for c in dict.fromkeys((*owners, *(table.columns or table.facts)))}
    units = np.arange(0)
    if rows is None:
        each = (
            np.ones(_REHEARSAL_UNITS, dtype=int)
            if not owners
            else by.integers(1, max_rows + 1, _REHEARSAL_UNITS)
        )
        units = np.repeat(np.arange(1, _REHEARSAL_UNITS + 1), each)
        units = by.permutation(units)
        rows = len(units)
    typed = ", ".join(f"{quote(c)} {_TYPES[kind]}" for c, kind in kinds.items())
    database.execute(f"CREATE TABLE {quote(name)} ({typed})")
    columns: list[list[Any]] = []
    for column, kind in kinds.items():
        if owners and column == owners[0]:
            columns.append([_unit(int(unit), kind) for unit in units])
        elif column == table.key:
            columns.append(_different(kind, table.facts.get(column), rows))
        else:
            columns.append(_values(kind, table.facts.get(column), rows, by))
    _insert(database, name, kinds, columns)


def _insert(
    database: duckdb.DuckDBPyConnection, name: str, kinds: dict[str, str], columns: list[list[Any]]
) -> None:
    """Insert whole columns at once."""
    parts = ", ".join(f"unnest(?::{_TYPES[kind]}[])" for kind in kinds.values())
    database.execute(f"INSERT INTO {quote(name)} SELECT {parts}", columns)


def _kind(fact: Fact | None) -> str:
    return "text" if fact is None else fact.kind or _STORED.get(fact.stored) or "text"


def _values(kind: str, fact: Fact | None, rows: int, by: np.random.Generator) -> list[Any]:
    """Invent values within what is declared; some are missing where that is not excluded."""
    keys = _keys(fact)
    if keys:
        values: list[Any] = [_key(keys[i], kind) for i in by.integers(0, len(keys), rows)]
    elif kind == "boolean":
        values = [bool(i) for i in by.integers(0, 2, rows)]
    elif kind == "text":
        values = [f"value {i}" for i in by.integers(1, _WORDS + 1, rows)]
    elif kind == "date":
        values = [_FIRST_DAY + timedelta(days=int(i)) for i in by.integers(0, _CALENDAR_DAYS, rows)]
    else:
        values = _numbers(fact, rows, by)
    if fact is not None and (fact.never_null or fact.unit):
        return values
    return [None if missing else value for missing, value in zip(by.random(rows) < 0.01, values, strict=True)]


def _numbers(fact: Fact | None, rows: int, by: np.random.Generator) -> list[Any]:
    """Invent numbers within the bounds; whole ones where the range is wide."""
    low, high = 0.0, 100.0
    if fact is not None and fact.bounds is not None:
        low, high = float(fact.bounds[0]), float(fact.bounds[1])
    numbers = low + (high - low) * by.random(rows)
    return [min(max(float(x), low), high) for x in (numbers.round() if high - low >= 10 else numbers)]


def _keys(fact: Fact | None) -> tuple[object, ...]:
    return () if fact is None else tuple(one for one in fact.keys or () if one is not None)


def _different(kind: str, fact: Fact | None, rows: int) -> list[Any]:
    """Return the keys of a public table: declared, or those that `_values` draws."""
    keys = _keys(fact)
    fillers: list[Any] = [float(i) for i in range(rows)]
    if kind == "text":
        fillers = [f"value {i}" for i in range(1, rows + 1)]
    elif kind == "date":
        fillers = [_FIRST_DAY + timedelta(days=i) for i in range(rows)]
    elif kind == "boolean":
        fillers = [True, False]
    keys_and_fillers = [_key(one, kind) for one in keys] + [one for one in fillers if one not in keys]
    return (keys_and_fillers + [None] * rows)[:rows]


def _key(key: object, kind: str) -> object:
    return datetime.fromisoformat(str(key)) if kind == "date" and not isinstance(key, date) else key


def _unit(number: int, kind: str) -> object:
    examples: dict[str, object] = {
        "number": float(number),
        "date": _FIRST_DAY + timedelta(days=number),
        "boolean": number % 2 == 0,
    }
    return examples.get(kind, f"unit {number}")


def example_visits() -> Path:
    """Return the file of synthetic hospital visits: 12,700 visits of 6,000 patients who do not exist.

    Columns: patient_id, hospital, icd, age, length_of_stay (a tenth is missing), admitted. Made by
    ``scripts/make_visits.py``.

    Examples
    --------
    >>> example_visits().name
    'visits.parquet'
    """
    return Path(__file__).parent / "data" / "visits.parquet"
