"""Tables of invented rows with the declared schema of a dataset: to rehearse a question before one pays.

Every value follows from public facts (kinds, bounds, keys, limits) and from a number that starts the
generator. No row of the data is read, so an answer says nothing about it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tacit.core import open_account
from tacit.engines import DuckDB, SourceTable, grid_columns, quote, read_source
from tacit.ledger import Ledger
from tacit.parameters import Integer

if TYPE_CHECKING:
    import duckdb
    import numpy as np

    from tacit.accounting import Budget
    from tacit.core import Fact, Table
    from tacit.tables._dataset import TableDataset

_UNITS = 1_000
_MOST_ROWS = 12  # of one unit in one table, where its limit is larger
_PUBLIC_ROWS = 60
_WORDS = 20  # different texts of a column without keys
_FIRST_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 - days without a zone, like those of the sources
_DAYS = 730
_TYPES = {"number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "TIMESTAMP"}
_STORED = {"moment": "date", "date": "date", "text": "text", "number": "number", "boolean": "boolean"}
_SECRET = 20_240_229  # which rows beyond a limit are dropped; there is nothing to hide


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
        limit = min(dataset.limits.rows_of(name) or _MOST_ROWS, _MOST_ROWS)
        rows = _PUBLIC_ROWS if public else None
        _invent(database, name, table, owners=() if public else owners, most=limit, rows=rows, by=generator)
        source = read_source((database, name))
        places[name] = SourceTable(source, *((None,) if public else (owners, grid_columns(table.facts))))
    ledger = Ledger.memory()
    open_account(dataset.identity, budget, ledger, record=dataset.record)
    engine = DuckDB(places, key=_SECRET, snapshot=None, memory="25%")
    return replace(dataset, _ledger=ledger, _engine=engine)


def _invent(
    database: duckdb.DuckDBPyConnection,
    name: str,
    table: Table,
    *,
    owners: tuple[str, ...],
    most: int,
    rows: int | None,
    by: np.random.Generator,
) -> None:
    """Write one table; of a protected one, each unit has between one row and the limit."""
    import numpy as np

    kinds = {c: _kind(table.facts.get(c)) for c in dict.fromkeys((*owners, *(table.columns or table.facts)))}
    units = np.arange(0)
    if rows is None:
        each = np.ones(_UNITS, dtype=int) if not owners else by.integers(1, most + 1, _UNITS)
        units = np.repeat(np.arange(1, _UNITS + 1), each)
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
        values = [_FIRST_DAY + timedelta(days=int(i)) for i in by.integers(0, _DAYS, rows)]
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
    drawn = low + (high - low) * by.random(rows)
    return [min(max(float(x), low), high) for x in (drawn.round() if high - low >= 10 else drawn)]


def _keys(fact: Fact | None) -> tuple[object, ...]:
    return () if fact is None else tuple(one for one in fact.keys or () if one is not None)


def _different(kind: str, fact: Fact | None, rows: int) -> list[Any]:
    """Return the keys of a public table: declared, or those that `_values` draws."""
    keys = _keys(fact)
    made: list[Any] = [float(i) for i in range(rows)]
    if kind == "text":
        made = [f"value {i}" for i in range(1, rows + 1)]
    elif kind == "date":
        made = [_FIRST_DAY + timedelta(days=i) for i in range(rows)]
    elif kind == "boolean":
        made = [True, False]
    found = [_key(one, kind) for one in keys] + [one for one in made if one not in keys]
    return (found + [None] * rows)[:rows]


def _key(key: object, kind: str) -> object:
    return datetime.fromisoformat(str(key)) if kind == "date" and not isinstance(key, date) else key


def _unit(number: int, kind: str) -> object:
    made: dict[str, object] = {
        "number": float(number),
        "date": _FIRST_DAY + timedelta(days=number),
        "boolean": number % 2 == 0,
    }
    return made.get(kind, f"unit {number}")
