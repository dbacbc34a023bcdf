"""What the exam of engines asks through the seam: values of expressions, exact integers of plans."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from support.engine_places import KEY
from support.random_plans import nb
from tacit.algebra import Call, Column, RowCounts, Scan, TableQuestion, kind_of
from tacit.core import Fact, Table
from tacit.engines import DuckDB, SourceTable, open_engine, place_source
from tacit.tables.planning._exact_integers import exact_integers
from tacit.tables.planning._pricing import lower

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from support.engine_places import Place
    from tacit.algebra import Node
    from tacit.engines import Engine, EngineTransaction

__all__ = ["crowd_engine", "exact", "exact_in", "opened", "same", "table_of", "values"]


def opened(place: Place, tables: Mapping[str, Any], unit: tuple[str, ...] = ("u",)) -> Engine:
    """Keep tables in a place and open its engine on them, with the ranks that all engines share."""
    return with_key(
        {
            name: SourceTable(place_source(kept, place.engine), unit)
            for name, kept in place.keep(tables).items()
        }
    )


def crowd_engine(place: Place, tables: Mapping[str, Any], *, unit: Any = "pid") -> Engine:
    """Keep a crowd and its public table in a place; open the engine as `tc.protect` does, grids included."""
    kept = place.keep({**tables, "codes": nb.CODES})
    codes = kept.pop("codes")
    with patch("tacit.tables._protect.ranking_secret", lambda: KEY):
        engine = nb.dataset(kept, {"rows": 1}, unit=unit, codes=codes, engine=place.engine)._engine
    return engine if place.name == "postgres" else with_key(engine._tables)


def with_key(sources: Mapping[str, SourceTable]) -> Engine:
    """Open an engine with the key that all engines share, and with the portable ranks."""
    kinds = {table.source.kind for table in sources.values()}
    if "spark" in kinds:
        from tacit.engines.spark import SparkEngine

        return SparkEngine(sources, key=KEY, portable=True)
    return open_engine(sources, key=KEY) if "postgres" in kinds else DuckDB(sources, key=KEY, portable=True)


def table_of(engine: Engine, name: str = "t") -> Table:
    """Declare a table with all its columns, without any facts."""
    columns = engine.columns(name)
    assert columns is not None
    stored = engine.stored_as(name)
    return Table(name, {c: Fact(stored=stored.get(c)) for c in columns}, tuple(columns))


def exact_in(data: EngineTransaction, question: TableQuestion) -> dict[Any, dict[Any, list[int]]]:
    """Return the exact integers of a question, in one reading of the sources that others may share."""
    steps, _ = lower(question, by_row=False)
    return exact_integers(data, question, tuple(dict.fromkeys(step.statistic for step in steps)))


def exact(engine: Engine, question: TableQuestion) -> dict[Any, dict[Any, list[int]]]:
    """Return the exact integers of a question, as a paid plan computes them."""
    with engine.transaction() as data:
        return exact_in(data, question)


def values(
    engine: Engine, table: Table, nodes: Sequence[Node], unit: str = "u"
) -> dict[Any, tuple[Any, ...]]:
    """Return the values of expressions in every row, by the row's number in the column ``unit``.

    The question groups by the number of the row and by all expressions, so each group is one row and its key
    holds the values. NaN and NULL are one missing key: `IS NULL` beside each value tells them apart.
    """
    found: dict[Any, tuple[Any, ...]] = {}
    asked = [node for value in nodes for node in (value, Call("is_null", (value,)))]
    by = (("row", Column(unit, "number")), *((f"e{i}", node) for i, node in enumerate(asked)))
    question = TableQuestion(Scan(table, None), by, None, (), None, None, missing=True)
    with engine.transaction() as data:
        [(_, lines)] = data.integers(question, (RowCounts(None),), {})
    for line in lines:
        assert line[-1] == 1
        found[line[0]] = tuple(
            _value(line[i], line[i + 1], node)
            for i, node in zip(range(1, len(line) - 1, 2), nodes, strict=True)
        )
    return found


def _value(value: object, is_null: object, node: Node) -> object:
    """Return a value of a row: NaN where the number is there and cannot be a key."""
    assert isinstance(is_null, bool), node
    if value is None and not is_null:
        assert kind_of(node) == "number", node
        return math.nan
    assert (value is None) == is_null, node
    expected = {"number": float, "text": str, "boolean": bool, "date": str, None: str}[kind_of(node)]
    assert value is None or type(value) is expected, (node, type(value))
    return value


def same(a: object, b: object, *, ulps: int = 0) -> bool:
    """Whether two values are the same; doubles bit for bit, or so many units in the last place apart."""
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b) or ulps == 0:
            return struct.pack("<d", a + 0.0) == struct.pack("<d", b + 0.0) or (
                math.isnan(a) and math.isnan(b)
            )
        return a == b or abs(a - b) <= ulps * max(math.ulp(a), math.ulp(b))
    return type(a) is type(b) and a == b
