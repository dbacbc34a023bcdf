"""The installed command, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from support import command

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("tacit")


def run(*words: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **more}
    return subprocess.run(
        [COMMAND, *words], cwd=cwd, capture_output=True, text=True, env=environment, timeout=120
    )


def test_version():
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"tacit {tacit.__version__}\n")


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("nosuch",),
        ("explain", "--epsilon", "0.5"),
        ("budget", "verify"),
        ("doctor", "--json"),
    ],
    ids=" ".join,
)
def test_a_run_that_need_not_import_everything_shows_what_the_installed_command_shows(words, tmp_path):
    for environment in ({}, {"COLUMNS": "60", "FORCE_COLOR": "1"}):
        quick, slow = (
            start(*words, cwd=tmp_path, **environment) for start in (command.tacit, command.installed)
        )
        assert (quick.returncode, quick.stdout, quick.stderr) == (slow.returncode, slow.stdout, slow.stderr)


def test_demo_runs_without_a_terminal_and_leaves_what_it_made(tmp_path):
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b[" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    for said in ("epsilon 0.5", "charges first", "verified: entry 2", "stored answer of entry 2 ("):
        assert said in done.stdout
    for said in ("Exact answers", "5-anonymous table", "Tacit, two counts"):
        assert said in done.stdout
    first = done.stdout.index("source .venv/bin/activate")  # before the first line to type needs it
    assert first < done.stdout.index("$ cd ") < done.stdout.index("$ tacit init")
    folder = tmp_path / "tacit-demo"
    made = {file.name for file in folder.iterdir()}
    assert {"visits.csv", "tacit.toml", "question.py", "stay.csv", "stay.json", "stay.png"} <= made
    with tacit.Ledger.open(folder / "tacit.ledger", create=False) as ledger:
        assert ledger.verify().ok
        assert ledger.account("visits").spent.epsilon == 0.5
    # each step can be repeated by hand, and gives the stored answer
    before = (folder / "stay.csv").read_text()
    again = subprocess.run([sys.executable, "question.py"], cwd=folder, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert (folder / "stay.csv").read_text() == before


def test_demo_never_writes_into_a_folder_that_is_there(tmp_path):
    (tmp_path / "tacit-demo").mkdir()
    mine = tmp_path / "mine"  # nor does it use the user's own config, ledger or key
    done = run("demo", cwd=tmp_path, TACIT_CONFIG=f"{mine}.toml", TACIT_LEDGER=f"{mine}.ledger")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "tacit-demo").iterdir()) == []
    assert (tmp_path / "tacit-demo-2" / "stay.csv").exists()
    assert {file.name for file in tmp_path.iterdir()} == {"tacit-demo", "tacit-demo-2"}


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


def test_make_says_what_it_sets_up_while_one_waits():
    """What ``make -n`` would run on a first ``make demo``: words before each long step."""
    planned = subprocess.run(
        ["make", "-n", "demo", "VENV=nowhere"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    at = [i for i, line in enumerate(planned) if "-m venv nowhere" in line or "pip install" in line]
    assert len(at) == 2
    assert "Setting up nowhere (once; with what follows, one or two minutes)" in planned[at[0] - 1]
    assert "Installing Tacit" in planned[at[1] - 1]
