"""Run a script of `tests/stress` as a process of its own, and read what it saw."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1] / "stress"


def run(script, *words, timeout):
    done = subprocess.run(
        [sys.executable, HERE / script, *map(str, words)], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def crash(script, where, folder, kills):
    found = run(script, where, folder / "key", folder, kills, 1, timeout=60 + 3 * kills)
    assert found["died_at_work"] >= 0.9 * kills
    assert found["seen"] > kills / 2
    assert found["charged"] >= found["seen"]
    return found
