"""A process that has imported the command and forks one run for each line of its input (see `command.py`).

It only imports: it starts no thread, opens no file and draws no random number, so that a run begins as if it
had done the imports itself. Modules that read the environment or start threads are left to the runs.

A run does what an interpreter does at its end (threads, exit functions, streams), but it does not take the
imported modules apart piece by piece: that would take ten times as long as a small command.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import sys
import threading
from pathlib import Path

#: Rooms whose modules a run may import; `learn` and `service` import libraries that start threads.
_ROOMS = (
    "cli", "tables", "ledger", "explain", "audit", "streams", "surveys", "graphs", "maps", "genomes", "synth",
    "inference",
)  # fmt: skip


def prepare() -> None:
    """Import what the runs of the command import, except for libraries that start threads."""
    importlib.import_module("tacit.__main__")
    for name in _ROOMS:
        room = importlib.import_module(f"tacit.{name}")
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    for name in ("duckdb", "scipy.special", "sqlglot.dialects.duckdb", "sqlglot.generators.duckdb"):
        importlib.import_module(name)
    late = ("polars", "pyarrow", "pandas", "matplotlib", "typer.rich_utils")
    loaded = [name for name in late if name in sys.modules]
    if loaded or len(list(Path("/proc/self/task").iterdir())) > 1 or threading.active_count() > 1:
        message = f"a run would inherit threads, or {loaded}"
        raise RuntimeError(message)
    gc.freeze()  # a collection in a run does not touch, and so copy, what was imported here


def serve() -> dict | None:
    """Fork for each order and report its exit code; return the order in the fork, and None at the end."""
    for line in sys.stdin:
        order = json.loads(line)
        run = os.fork()
        if run == 0:
            return order
        _, status = os.waitpid(run, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    return None


def become(order: dict) -> None:
    """Take on the folder, the environment, the streams and the words of a run."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    streams = [nothing, *(os.open(path, os.O_WRONLY | os.O_APPEND) for path in order["streams"])]
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    sys.argv = order["words"]


def run() -> None:
    """Run the command to its end; an error that it does not handle ends the interpreter as usual."""
    from tacit.__main__ import main

    try:
        code = main()
    except SystemExit as end:
        code = end.code
    finally:
        gc.unfreeze()
    if code is not None and not isinstance(code, int):
        sys.exit(code)  # a message: the interpreter shows it
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    prepare()
    if order := serve():
        become(order)
        run()
    gc.unfreeze()
