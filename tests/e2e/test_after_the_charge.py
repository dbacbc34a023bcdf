"""After a charge nothing depends on terminals, logs, the locale, warnings or packages that may be missing."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import after_the_charge
from support.after_the_charge import HAZARDS, KINDS
from support.command import TACIT, tacit


def _released(kind: str, hazard: str) -> str:
    run = subprocess.run(
        [sys.executable, after_the_charge.__file__, kind, hazard], capture_output=True, text=True, check=False
    )
    return run.stdout


def test_no_charged_answer_of_any_field_needs_what_is_optional():
    assert _released(",".join(KINDS), "everything") == "released"


def test_a_charged_answer_needs_no_open_streams():
    assert _released("csv", "closed_streams") == "released"


@pytest.mark.long
@pytest.mark.parametrize("hazard", sorted(HAZARDS))
@pytest.mark.parametrize("kind", KINDS)
def test_each_hazard_alone_changes_nothing(kind, hazard):
    assert _released(kind, hazard) == "released"


def test_the_hazards_are_seen_where_an_answer_depends_on_them(monkeypatch, tmp_path):
    """The power of the tests above: a progress bar that asks a missing terminal loses the answer."""
    twin = "import tacit.progress\ntacit.progress.is_terminal = lambda stream: stream.isatty()\n"
    (tmp_path / "sitecustomize.py").write_text(twin)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "the release failed" in _released("csv", "missing_streams")


def test_an_answer_that_cannot_be_written_is_stored_and_free(tmp_path):
    (tmp_path / "visits.csv").write_text("id,days\n" + "".join(f"p{n},{n % 9}\n" for n in range(99)))
    assert tacit("init", "visits.csv", "--unit", "id", "-e", "1", cwd=tmp_path).returncode == 0
    question = ("query", "SELECT COUNT(*) AS n FROM visits", "-e", "1", "--json")
    with Path("/dev/full").open("w") as full:
        lost = subprocess.run(
            [TACIT, *question], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
    assert lost.returncode == 1
    assert "Traceback" not in lost.stderr
    assert "run the command again: it is free" in lost.stderr
    again = tacit(*question, cwd=tmp_path)
    assert again.returncode == 0, again.stderr


def test_a_command_answers_with_standard_error_closed(tmp_path):
    (tmp_path / "visits.csv").write_text("id,days\n" + "".join(f"p{n},{n % 9}\n" for n in range(99)))
    assert tacit("init", "visits.csv", "--unit", "id", "-e", "1", cwd=tmp_path).returncode == 0
    words = " ".join(
        shlex.quote(word) for word in (str(TACIT), "query", "SELECT COUNT(*) AS n FROM visits", "-e", "1")
    )
    closed = subprocess.run(["sh", "-c", f"{words} 2>&-"], capture_output=True, text=True, cwd=tmp_path)
    assert closed.returncode == 0, closed.stderr
    assert "release" not in closed.stderr
