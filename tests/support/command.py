"""The installed command, run as a person would run it.

`installed` starts the command itself. `tacit` is a quicker way to the same: each run is a process of its own,
with its own folder, environment and streams, and runs the command's `main` until the interpreter ends. That
process is forked from one that has already imported the command's modules, because importing them takes most
of a second. Only the script that the installer writes is left out; the tests that use `installed` go through
it.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

TACIT = Path(sys.executable).with_name("tacit")
ENVIRONMENT = {**os.environ, "COLUMNS": "100", "MPLBACKEND": "Agg", "FORCE_COLOR": ""}
_READY = Path(__file__).with_name("ready_command.py")
_SECONDS = 120


def installed(*words, cwd=None, **environment):
    """Start the installed command and wait for its end."""
    return subprocess.run(
        [TACIT, *words],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )


def tacit(*words, cwd=None, **environment):
    """Run the command in a process of its own that need not import everything again."""
    starts = any(name.startswith("PYTHON") for name in environment)  # what only a new interpreter reads
    if starts or sys.platform != "linux":  # where it is safe to fork a process that has loaded libraries
        return installed(*words, cwd=cwd, **environment)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = _run_ready(
            {
                "words": [str(TACIT), *map(str, words)],
                "folder": str(cwd or Path.cwd()),
                "environment": {**ENVIRONMENT, **environment},
                "streams": [f"/proc/{os.getpid()}/fd/{stream.fileno()}" for stream in (out, err)],
            }
        )
        shown = []
        for stream in (out, err):
            stream.seek(0)
            shown.append(stream.read().decode().replace("\r\n", "\n"))
    return subprocess.CompletedProcess([TACIT, *words], code, *shown)


def _run_ready(order):
    server = _server(os.getpid())
    server.stdin.write(json.dumps(order) + "\n")
    server.stdin.flush()
    if not select.select([server.stdout], [], [], _SECONDS)[0]:
        _server.cache_clear()
        server.kill()
        raise subprocess.TimeoutExpired(order["words"], _SECONDS)
    said = server.stdout.readline()
    if not said:
        message = f"{_READY.name} has ended; its last words are on stderr"
        raise RuntimeError(message)
    return int(said)


@cache
def _server(_process):
    server = subprocess.Popen(
        [sys.executable, _READY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    atexit.register(_close, server)
    return server


def _close(server):
    server.stdin.close()  # which ends it
    server.stdout.close()
    server.wait()
