"""The option ``--limit`` of ``tacit plan`` and ``tacit query``."""

import json

import pytest
from typer.testing import CliRunner

from tacit.cli import app

CONFIG = """
[datasets.visits]
source = "visits.csv"
unit = "pid"
budget = {epsilon = 5}
limits = {rows = 5}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = "".join(f"{u},{i}\n" for u in range(30) for i in range(4))
    (tmp_path / "visits.csv").write_text("pid,x\n" + rows)
    (tmp_path / "tacit.toml").write_text('ledger = "tacit.ledger"\n' + CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str):
    return CliRunner().invoke(app, [*words])


def test_a_limit_holds_for_one_question(folder):
    asked = ("SELECT COUNT(*) AS n FROM visits", "--epsilon", "1", "--json")
    plain, limited = run("plan", *asked), run("plan", *asked, "--limit", "rows=1")
    errors = [json.loads(one.stdout)["columns"][0]["error"] for one in (plain, limited)]
    assert errors[1] < errors[0] / 3
    answer = run("query", *asked, "--limit", "rows=1")
    assert json.loads(answer.stdout)["rows"][0]["n"] < 60  # 30 people, one row each


def test_a_limit_above_the_declared_one_is_refused(folder):
    refused = run("plan", "SELECT COUNT(*) FROM visits", "--epsilon", "1", "--limit", "rows=6")
    assert refused.exit_code == 1
    assert "at most 5 rows of one pid count" in str(refused.exception)


def test_an_unknown_limit_is_refused(folder):
    refused = run("plan", "SELECT COUNT(*) FROM visits", "--epsilon", "1", "--limit", "rowz=6")
    assert refused.exit_code == 1
    assert "one that Tacit knows" in str(refused.exception)
