"""The command ``tacit budget-plan``: a year's reports in TOML, a schedule out; nothing is charged or read."""

import json

import pytest

from support.command import tacit

CONFIG = """
ledger = "tacit.ledger"

[datasets.visits]
source = "visits.csv"
unit = "pid"
budget = {epsilon = 3}
bounds = {stay = [0, 30]}
keys = {ward = ["A", "B"]}
limits = {rows = 2}
"""
REPORTS = """
[[report]]
name = "monthly"
sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
within = 40
times = 12

[[report]]
name = "stays"
sql = "SELECT SUM(stay) AS days FROM visits"
epsilon = 0.4
times = 2
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "visits.csv").write_text("pid,ward,stay\n1,A,3\n2,B,4\n")
    (tmp_path / "tacit.toml").write_text(CONFIG)
    (tmp_path / "reports.toml").write_text(REPORTS)
    return tmp_path


def test_a_year_that_fits_and_one_that_does_not(folder):
    done = tacit("budget-plan", "reports.toml", "--plot", "year.png", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything fits" in done.stdout
    assert (folder / "year.png").stat().st_size > 1000
    assert not (folder / "tacit.ledger").exists()
    (folder / "reports.toml").write_text("budget = {epsilon = 2}\n" + REPORTS)
    done = tacit("budget-plan", "reports.toml", "--json", cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert [one["report"] for one in found["reports"]] == ["monthly", "stays"]
    assert not found["fits"]
    assert "pays for everything" in " ".join(found["advice"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no [[report]]"),
        ("[[report]]\nname = 'x'\nepsilon = 1", "has no sql"),
        ("reports = 3", "does not know"),
        ("not toml", "cannot be read"),
        ("budget = 3\n" + REPORTS, "epsilon, delta and rho"),
        (REPORTS.replace("within", "tolerance"), "no field 'tolerance'"),
        (REPORTS.replace("COUNT(*)", "SUM(other)"), "other"),
    ],
)
def test_bad_files_are_refused_in_words(folder, text, words):
    (folder / "reports.toml").write_text(text)
    done = tacit("budget-plan", "reports.toml", cwd=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_refused(folder):
    done = tacit("budget-plan", "nothing.toml", cwd=folder)
    assert done.returncode == 2
    assert "does not exist" in done.stderr
