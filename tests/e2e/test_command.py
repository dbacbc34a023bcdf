"""The installed command, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import tacit

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("tacit")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, env=environment, timeout=120)


def test_version():
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"tacit {tacit.__version__}\n")


def test_demo_runs_without_a_terminal():
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert "epsilon = 0.5" in done.stdout
    assert "\x1b[" not in done.stdout


def test_an_unknown_command_is_refused_with_status_2():
    done = run("nosuch")
    assert done.returncode == 2
    assert "nosuch" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_is_documented():
    import typer.main

    from tacit.cli import app

    page = (ROOT / "docs/reference/cli.md").read_text()
    for name in typer.main.get_command(app).commands:
        assert f"`tacit {name}" in page, f"docs/reference/cli.md does not mention `tacit {name}`"
