"""Logs as JSON lines: ids, codes and places in the program, never what people sent or what data holds.

A line holds only the fields listed here. Of an exception it holds the type and the place. Of a library's
message it holds the place alone, because libraries write values into their messages. There is no debug mode:
it would be the way around this page.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from types import TracebackType

#: What a line may hold beside its time, level, event and place.
FIELDS: Final = (
    "request", "method", "route", "status", "person", "code", "kind", "place", "part", "number", "pid",
    "exit_code", "dataset", "query", "job", "checks", "seconds_to_wait",
)  # fmt: skip
_OWN = ("tacit",)
#: Messages of the web server that are fixed text; their arguments are not shown.
_FIXED = ("uvicorn.error",)


class LineFormatter(logging.Formatter):
    """One record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the allowed fields; arguments of messages and texts of exceptions are not among them."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower()}
        if record.name.partition(".")[0] in _OWN or record.name in _FIXED:
            line["event"] = str(record.msg)[:200].strip()
        else:
            line |= {"event": "message of a library", "library": record.name.partition(".")[0]}
            line["place"] = f"{Path(record.pathname).name}:{record.lineno}"
        if record.exc_info and record.exc_info[0] is not None:
            line["kind"] = record.exc_info[0].__name__
            line["place"] = place_of_error(record.exc_info[2])
        line |= {name: vars(record)[name] for name in FIELDS if vars(record).get(name) not in (None, "")}
        return json.dumps(line, ensure_ascii=True, default=lambda value: type(value).__name__)


def place_of_error(trace: TracebackType | None) -> str:
    """Return the file and the line where an error arose; nothing of its text."""
    place = "unknown"
    while trace is not None:
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def start_logging(*, requests: bool = True, stream: TextIO | None = None) -> None:
    """Send every log of this process to standard error as JSON lines; uncaught errors too.

    Parameters
    ----------
    requests
        Whether each request is a line; warnings are shown in any case.
    stream
        Where the lines go.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"  # it would show addresses with their queries
        logger.setLevel(logging.WARNING)
    logging.getLogger("tacit").setLevel(logging.INFO)
    logging.getLogger("tacit.service.requests").setLevel(logging.INFO if requests else logging.CRITICAL)
    logging.captureWarnings(True)  # noqa: FBT003
    log = logging.getLogger("tacit.service")

    def uncaught(kind: type[BaseException], _: BaseException | None, trace: TracebackType | None) -> None:
        log.error("uncaught error", extra={"kind": kind.__name__, "place": place_of_error(trace)})

    sys.excepthook = uncaught
    threading.excepthook = lambda args: uncaught(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: uncaught(args.exc_type, args.exc_value, args.exc_traceback)
