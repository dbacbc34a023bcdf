"""Many plans in one Spark job: on tiny tables, Spark takes most of its time for each job and each task.

Every statement is the one that a plan runs: Spark reads, analyses, optimises and plans it alone. What differs
is how it is executed. The rows of each view are laid into one partition in memory once, so that Spark rarely
exchanges rows between tasks (only where the text says ``DISTRIBUTE BY``) and merges where it would broadcast;
and the rows of many statements are fetched by one job.

`PackedPlans.digests` names all that decides the answer of a plan, so that an answer of Spark can be stored
(`stored_answers.py`): the version of Spark, the settings of its session, the rows of every view as Spark
reads them now, and every statement and parameter that the plan hands to Spark. Whatever changes, the digest
is new.
"""

from __future__ import annotations

import contextlib
import gc
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from support.stored_answers import digest
from tacit.algebra import document
from tacit.engines.sql._statements import statements
from tacit.tables.planning._exact_integers import by_group, public_tables
from tacit.tables.planning._pricing import lower

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tacit.algebra import Statistic, TableQuestion

__all__ = ["PackedPlans", "answer_digest"]

_SETTINGS = {"spark.sql.shuffle.partitions": "1", "spark.sql.autoBroadcastJoinThreshold": "-1"}


class RecordedSession:
    """A Spark session that keeps the text and the parameters of every statement."""

    def __init__(self, session: Any) -> None:
        self._session, self.statements = session, list[Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def sql(self, text: str, parameters: Any = None) -> Any:
        self.statements.append((text, parameters))
        return self._session.sql(text, parameters)


class PackedPlans:
    """Ask many questions at once, in one transaction of the Spark engine."""

    def __init__(self, data: Any) -> None:
        from pyspark.sql.functions import lit

        self._data = data
        self._session = data._own_session = RecordedSession(data._own_session)
        self._laid: set[str] = set()
        self._limits: dict[tuple[str, int], list[Any]] = {}
        self._keys: dict[str, Any] = {}
        self._handed_keys: dict[str, list[Any]] = {}
        self._secrets = {name: lit(text)._jc for name, text in data._secrets({}).items()}  # slow to make
        for name, value in _SETTINGS.items():
            self._session.conf.set(name, value)
        for name in data._tables:
            self._lay(name)
        self._basis = digest(
            self._session.version,
            sorted((k, v) for k, v in self._session.conf.getAll.items() if _decides(k)),
            sorted((name, self._rows(name)) for name in data._tables),
            sorted(data._secrets({}).items()),
        )

    def digests(self, questions: Sequence[TableQuestion]) -> list[str]:
        """Return the digest of all that decides the answer of each question. No plan runs."""
        return [self._digest(question) for question in questions]

    def _digest(self, question: TableQuestion) -> str:
        handed: list[Any] = []
        small = public_tables(question)
        if keys := small.get("tacit_keys"):
            if repr(keys) not in self._handed_keys:
                handing = self._recorded(lambda: self._data._lay_keys("tacit_keys", keys))
                self._handed_keys[repr(keys)] = handing
            handed += self._handed_keys[repr(keys)]
        for one in self._statements(question):
            for limit in sorted(one.limited):
                handed += self._limit(*limit)
            handed.append((one.sql, [_document(statistic) for statistic in one.statistics]))
        return digest(self._basis, handed)

    def _statements(self, question: TableQuestion) -> Sequence[Any]:
        steps, _ = lower(question, by_row=False)
        statistics = tuple(dict.fromkeys(step.statistic for step in steps))
        return statements(self._data.writer(), question, statistics)

    def exact(self, questions: Sequence[TableQuestion]) -> list[dict[Any, dict[Any, list[int]]]]:
        """Return the exact integers of every question."""
        frames: list[Any] = []
        asked: list[tuple[int, tuple[Statistic, ...]]] = []
        for number, question in enumerate(questions):
            if small := public_tables(question):
                self._lay_keys(small.pop("tacit_keys"))
            assert not small  # a sample is drawn for each plan
            for one in self._statements(question):
                for name, rows in sorted(one.limited):
                    self._limit(name, rows)
                    if f"{name} first {rows}" not in self._laid:
                        self._lay(f"{name} first {rows}")
                frames.append(self._session._jsparkSession.sql(one.sql, self._secrets))
                asked.append((number, one.statistics))
        found: list[dict[Any, dict[Any, list[int]]]] = [{} for _ in questions]
        with self._settings_of_tasks():
            for (number, together), lines in zip(asked, self._fetched(frames), strict=True):
                found[number] |= by_group(together, lines, len(questions[number].by))
        del frames  # they are in cycles with their methods
        gc.collect()  # Java forgets the statements that Python has forgotten
        return found

    def _lay(self, view: str) -> Any:
        """Put a table of the view's rows, in one partition, into the place of the view."""
        rows = self._session.table(f"`{view}`").coalesce(1).localCheckpoint()
        rows.createOrReplaceTempView(f"`{view}`")
        self._laid.add(view)
        return rows

    def _rows(self, view: str) -> list[str]:
        """Return the columns of a view with their types, and its rows as Spark reads them."""
        frame = self._session.table(f"`{view}`")
        return [str(frame.dtypes), *sorted(repr(tuple(row)) for row in frame.collect())]

    def _recorded(self, run: Any) -> list[Any]:
        before = len(self._session.statements)
        run()
        return self._session.statements[before:]

    def _limit(self, name: str, rows: int) -> list[Any]:
        """Lay the view of the first rows of every owner, as the engine does; return what Spark is handed."""
        if (name, rows) not in self._limits:
            self._limits[name, rows] = self._recorded(lambda: self._data._lay_limit(name, rows))
            assert self._limits[name, rows]
        return self._limits[name, rows]

    def _lay_keys(self, lines: Sequence[Sequence[object]]) -> None:
        """Lay public keys for the statements that are analysed next."""
        if repr(lines) in self._keys:
            self._keys[repr(lines)].createOrReplaceTempView("tacit_keys")
        else:
            self._data._lay_keys("tacit_keys", lines)
            self._keys[repr(lines)] = self._lay("tacit_keys")

    def _fetched(self, frames: Sequence[Any]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of every frame, all from one job; its last stage is one task."""
        from pyspark.serializers import CPickleSerializer

        context, loads = self._session.sparkContext, CPickleSerializer().loads
        listed = context._gateway.new_array(context._jvm.org.apache.spark.api.java.JavaRDD, len(frames))
        owners: list[int] = []  # which frame each partition belongs to
        for i, frame in enumerate(frames):
            listed[i] = frame.javaToPython()
            owners += [i] * listed[i].getNumPartitions()
        numbered = (
            context._jsc.union(listed).glom().zipWithUniqueId()
        )  # one line per partition, with its number
        found: list[list[tuple[Any, ...]]] = [[] for _ in frames]
        for line in _each(numbered.coalesce(1).collect()):
            for batch in _each(line._1()):
                found[owners[line._2()]] += [_integers(row) for row in loads(bytes(batch))]
        return found

    @contextlib.contextmanager
    def _settings_of_tasks(self) -> Iterator[None]:
        """Hand the session's settings to the tasks, as Spark does for a statement that is run alone."""
        context = self._session.sparkContext
        settings = {k: v for k, v in self._session.conf.getAll.items() if k.startswith("spark.sql.")}
        settings |= {"callSite.short": "packed plans", "callSite.long": "packed plans"}  # slow to find out
        for name, value in settings.items():
            context.setLocalProperty(name, value)
        try:
            yield
        finally:
            for name in settings:
                context.setLocalProperty(name, None)


def _decides(setting: str) -> bool:
    """Say whether a setting may decide results: folders of this process do not."""
    return setting.startswith("spark.sql.") and not setting.endswith((".dir", ".directory"))


def _document(statistic: Statistic) -> str:
    """Return a statistic as plans store it: the same text in every version in which it means the same."""
    return json.dumps(document(statistic), sort_keys=True)


def answer_digest(integers: dict[Any, dict[Any, list[int]]]) -> str:
    """Return the digest of the exact integers of a plan: each statistic, and each group with its integers."""
    return digest(
        sorted(
            (_document(statistic), sorted((repr(_group(key)), numbers) for key, numbers in groups.items()))
            for statistic, groups in integers.items()
        )
    )


def _group(key: Sequence[Any]) -> list[object]:
    """Write equal keys in one way: 1, 1.0 and True are one key in Python, and so are 0.0 and -0.0."""
    return [float(k) + 0.0 if isinstance(k, int | float) and float(k) == k else k for k in key]


def _integers(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(int(x) if isinstance(x, Decimal) else x for x in row)


def _each(values: Any) -> Iterator[Any]:
    """Return the elements of a Java list by their numbers: the end of a Java iterator is a slow exception."""
    return (values.get(i) for i in range(values.size()))
