"""Tacit's own Spark session beside the user's: same cluster, own settings and views, and nothing in the logs.

The user's session is never changed. The own one takes over where tables are and how fast a query may run, and
nothing else: a setting such as ``spark.sql.ansi.enabled=false`` or ``caseSensitive=false`` would change
results without an error, and ``spark.sql.variable.substitute`` would read ``${...}`` inside a text.
"""

from __future__ import annotations

import contextlib
import logging
import re
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Settings that decide results. Every one of them is set, and read back.
_PINNED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.optimizer.windowGroupLimitThreshold": "1000",
}
#: Settings that are taken over from the user's session: where tables are, how much runs at once, and whether
#: each session compiles its plans by itself (PySpark says no; then all datasets share what is compiled).
_KEPT = re.compile(
    r"spark\.sql\.(catalog|defaultCatalog|shuffle|adaptive|autoBroadcastJoinThreshold|files\.max|files\.min"
    r"|files\.openCostInBytes|hive|broadcastTimeout|sources\.parallelPartitionDiscovery|execution\.arrow"
    r"|artifact|codegen|inMemoryColumnarStorage|warehouse|extensions|cteRecursion|join|leafNodeDefaultParallelism)"
    r"|(?!spark\.sql\.)"
)
_OWN_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
#: Spark's loggers that quote values, or whole statements, when a task or a statement fails.
_LOUD = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.scheduler.DAGScheduler",
    "org.apache.spark.util.Utils",
    "org.apache.spark.sql.execution",
    "org.apache.spark.sql.catalyst",
    "org.apache.spark.sql.connect",
)


def is_connect(session: Any) -> bool:
    """Return whether a session talks to a server of Spark Connect."""
    return ".connect." in type(session).__module__


def is_stopped(session: Any) -> bool:
    """Return whether a session was stopped; a stopped one knows no table."""
    if is_connect(session):
        return bool(session.is_stopped)
    return session.sparkContext._jsc is None  # noqa: SLF001 - PySpark has no other sign of it


def is_local(session: Any) -> bool:
    """Return whether Spark runs in this machine, so that its files are this machine's files."""
    return not is_connect(session) and str(session.conf.get("spark.master", "")).startswith("local")


def open_session(session: Any) -> Any:
    """Open Tacit's own session beside the given one, with every setting that decides results pinned."""
    own_session = session.cloneSession() if is_connect(session) else session.newSession()
    with quiet(own_session):
        theirs, ours = session.conf.getAll, own_session.conf.getAll
        for name, value in theirs.items():
            with contextlib.suppress(Exception):  # a static setting is the same in both
                if _KEPT.match(name) and ours.get(name) != value:
                    own_session.conf.set(name, value)
        for name in ours:
            if not _KEPT.match(name) and name not in _PINNED:
                with contextlib.suppress(Exception):
                    own_session.conf.unset(name)
        for name, value in _PINNED.items():
            if _setting(own_session, name) == value.lower():
                continue
            with contextlib.suppress(Exception):
                own_session.conf.set(name, value)
            if _setting(own_session, name) != value.lower():
                raise TacitError(
                    "bad-parameter",
                    f"the Spark session does not let Tacit set {name} to {value}",
                    why="otherwise the same question could have other results, or one row could make it fail",
                    fix=f"allow sessions of this cluster to set {name}",
                )
    return own_session


def _setting(session: Any, name: str) -> str:
    """Return what a session is set to, or its default; empty where this version does not know the setting."""
    with contextlib.suppress(Exception):
        return str(session.conf.get(name)).lower()
    return ""


@contextlib.contextmanager
def quiet(session: Any) -> Iterator[None]:
    """Keep Spark's loggers from writing statements and values while Tacit works; they are restored after.

    The loggers of a server of Spark Connect, and of executors on other machines, are beyond reach.
    """
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in _OWN_LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    bridge = logging.getLogger("py4j")  # at DEBUG it writes every answer, messages with values included
    level = bridge.level
    bridge.setLevel(logging.CRITICAL + 1)
    restore: Callable[[], None] | None = None if is_connect(session) else _silence(session)
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
        bridge.setLevel(level)
        with contextlib.suppress(Exception):
            if restore is not None:
                restore()


def _silence(session: Any) -> Callable[[], None]:
    """Turn the driver's loggers off; return what turns them on again."""
    log4j = session._jvm.org.apache.logging.log4j  # noqa: SLF001 - there is no other way to its loggers
    context = log4j.LogManager.getContext(False)  # noqa: FBT003 - Java's own signature
    settings = context.getConfiguration()
    loggers = settings.getLoggers()
    before = {name: loggers.get(name).getLevel() for name in _LOUD if loggers.containsKey(name)}
    set_level, off = (
        log4j.core.config.Configurator.setLevel,
        log4j.Level.OFF,
    )  # each name costs a call to Java
    for name in _LOUD:
        set_level(name, off)

    def restore() -> None:
        for name in _LOUD:
            if name in before:
                set_level(name, before[name])
            else:
                settings.removeLogger(name)
        context.updateLoggers()

    return restore
