"""Many plans in one Spark statement: Spark takes most of its time per statement, whatever the rows.

The texts are those that plans run, joined by UNION ALL; each line comes back as texts, with its statement's
number. The views that the texts read are kept in memory, as the engine keeps ranked rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.algebra import BinCounts, kind_of
from tacit.engines._sql_statements import statements
from tacit.tables._exact_integers import by_group, public_tables
from tacit.tables._lowering import lower

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.algebra import Statistic, TableQuestion

__all__ = ["PackedPlans"]

_READ: dict[str | None, Callable[[str], object]] = {"number": float, "boolean": "true".__eq__}


class PackedPlans:
    """Ask many questions at once, in one transaction of the Spark engine."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._kept: set[str] = set()
        data._own.conf.set("spark.sql.shuffle.partitions", "1")
        for name in data._tables:
            self._keep(name)

    def exact(self, questions: Sequence[TableQuestion]) -> list[dict[Any, dict[Any, list[int]]]]:
        """Return the exact integers of every question."""
        texts: list[str] = []
        asked: list[tuple[int, tuple[Statistic, ...]]] = []
        for number, question in enumerate(questions):
            keys = f"tacit_keys_{number}"
            if small := public_tables(question):
                self._data._lay_keys(keys, small.pop("tacit_keys"))
            assert not small  # a sample is drawn for each plan
            steps, _ = lower(question, by_row=False)
            statistics = tuple(dict.fromkeys(step.statistic for step in steps))
            for one in statements(self._data.writer(), question, statistics):
                for name, rows in sorted(one.limited):
                    if f"{name} first {rows}" not in self._kept:
                        self._data._lay_limit(name, rows)
                        self._keep(f"{name} first {rows}")
                text = one.sql.replace("tacit_keys", keys)
                texts.append(_packed(text, len(texts), len(question.by) + _integers(one.statistics)))
                asked.append((number, one.statistics))
        lines: list[list[list[Any]]] = [[] for _ in texts]
        for number, line in self._data._own.sql(" UNION ALL ".join(texts), self._data._secrets({})).collect():
            lines[number].append(line)
        found: list[dict[Any, dict[Any, list[int]]]] = [{} for _ in questions]
        for (number, together), some in zip(asked, lines, strict=True):
            by = questions[number].by
            found[number] |= by_group(together, [_read(line, by) for line in some], len(by))
        return found

    def _keep(self, view: str) -> None:
        self._data._own.table(f"`{view}`").persist()
        self._kept.add(view)

    def close(self) -> None:
        """Give the memory back."""
        for view in self._kept:
            self._data._own.table(f"`{view}`").unpersist()


def _packed(sql: str, number: int, width: int) -> str:
    columns = [f"c{i}" for i in range(width)]
    line = ", ".join(f"CAST({column} AS STRING)" for column in columns)
    return f"SELECT {number} AS n, array({line}) AS line FROM ({sql}) AS t({', '.join(columns)})"


def _integers(statistics: tuple[Statistic, ...]) -> int:
    """Return how many columns follow the group's key; a histogram has a cell and its count."""
    return sum(2 if isinstance(s, BinCounts) else s.columns for s in statistics)


def _read(line: list[Any], by: Sequence[tuple[str, Any]]) -> tuple[Any, ...]:
    keys = (
        None if text is None else _READ.get(kind_of(node), str)(text)
        for text, (_, node) in zip(line, by, strict=False)
    )
    return (*keys, *line[len(by) :])
