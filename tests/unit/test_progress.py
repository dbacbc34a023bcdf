"""Progress shows on a terminal, after a second, and nowhere else."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from tacit import progress as module
from tacit.progress import progress

_LONG = (
    "import time; from tacit.progress import progress\nwith progress('Counting', lambda: 0.5): time.sleep(60)"
)
_CHANGING = """
import itertools, time
from tacit.progress import progress
steps = itertools.count(1)
with progress(lambda: f"Step {next(steps)}."): time.sleep(60)
"""
_SHORT = """
import time
import pytest

from tacit import progress as module
module._PATIENCE = 20  # a busy machine may take a second for this
with module.progress("Counting"): time.sleep(0.05)
"""


def _on_a_terminal(work: str, wanted: bytes = b"") -> str:
    """Run a script whose standard error is a terminal of its own, and return what was shown there.

    A script that shows what is wanted is ended then.
    """
    ours, theirs = pty.openpty()
    run = subprocess.Popen([sys.executable, "-c", work], stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    while not wanted or wanted not in shown:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    if wanted:
        run.kill()
    assert run.wait() == (-signal.SIGKILL if wanted else 0)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


def test_a_long_operation_is_shown_on_a_terminal():
    assert "Counting" in _on_a_terminal(_LONG, b"Counting")


def test_a_label_may_change_on_the_way():
    shown = _on_a_terminal(_CHANGING, b"Step 2.")
    assert "Step 1." in shown
    assert "Step 2." in shown


def test_a_short_one_is_not():
    assert _on_a_terminal(_SHORT) == ""


def test_nothing_is_shown_in_a_pipe(monkeypatch, capsys):
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    with progress("Counting"):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_the_block_s_error_passes_through():
    try:
        with progress("Counting"):
            raise ValueError("as it was")
    except ValueError as error:
        assert str(error) == "as it was"
    else:
        raise AssertionError("the error was swallowed")


@pytest.mark.parametrize("stream", [None, io.StringIO(), object()])
def test_a_stream_that_is_missing_closed_or_strange_is_not_a_terminal(stream):
    if isinstance(stream, io.StringIO):
        stream.close()
    assert not module.is_terminal(stream)


def test_work_goes_on_where_no_thread_can_start(monkeypatch):
    monkeypatch.setattr(module, "is_terminal", lambda _: True)
    monkeypatch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError("no room")))
    with progress("Counting"):
        done = True
    assert done
