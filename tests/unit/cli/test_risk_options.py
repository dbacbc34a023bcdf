"""The options ``--advantage``, ``--attack`` and ``--belief`` wherever a total is given."""

import json

import pytest
from typer.testing import CliRunner

from tacit.cli import app
from tacit.errors import TacitError

CONFIG = """
ledger = "tacit.ledger"
[datasets.visits]
source = "visits.csv"
unit = "pid"
budget = {epsilon = 5}
limits = {rows = 1}
"""
SQL = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "visits.csv").write_text("pid,x\n" + "".join(f"{u},{u}\n" for u in range(30)))
    (tmp_path / "edges.csv").write_text("a,b\nana,ben\nben,eva\n")
    (tmp_path / "tacit.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def run(*words: str):
    return CliRunner().invoke(app, [*words], catch_exceptions=True)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--advantage", "0.05"), "right at most 52.5 % of the time instead of 50 %"),
        (("--attack", "0.01,0.02"), "finds at most 2 % of those of whom it is"),
        (("--belief", "0.01,0.02"), "a belief of 1 % that one pid is in the data becomes at most 2 %"),
    ],
)
def test_a_question_is_planned_and_asked_by_its_risk(folder, option, words):
    plain = run("plan", SQL, *option)
    assert plain.exit_code == 0, plain.exception
    shown = plain.stdout.replace("\n", " ")
    assert words in shown
    assert "risk of the account: with all that its budget (epsilon 5) pays for" in shown
    planned = json.loads(run("plan", SQL, *option, "--json").stdout)
    assert words in planned["risk"]["risk of this plan"]
    assert planned["risk"]["risk of the account"]
    asked = json.loads(run("query", SQL, *option, "--json").stdout)
    again = json.loads(run("query", SQL, "--epsilon", str(planned["promised"]["epsilon"]), "--json").stdout)
    assert asked["rows"] == again["rows"]  # the same plan: the stored answer


def test_a_field_command_takes_a_risk_and_shows_the_account_only_if_it_is_known(folder):
    graph = ("graph", "edges.csv", "edges", "--unit", "edge", "--nodes", "5", "--advantage", "0.05")
    tried = run(*graph, "--plan")
    assert "risk of this plan" in tried.stdout, (tried.stdout, tried.exception)
    assert "risk of the account" not in tried.stdout
    known = run(*graph, "--plan", "--budget", "2")
    assert "risk of the account: with all that its budget (epsilon 2)" in known.stdout
    assert "--budget 3, the whole budget in rho" in str(run(*graph, "--total", "rho").exception)


@pytest.mark.parametrize(
    ("option", "code"),
    [
        (("--attack", "0.01"), "--attack must be two numbers"), (("--belief", "a,b"), "--belief must be two"),
        (("--attack", "0.02,0.01"), "attack must be a pair"), (("--advantage", "2"), "above 0 and below 1"),
        (("--advantage", "0.1", "--epsilon", "1"), "exactly one of"),
        (("--total", "rho", "--epsilon", "1"), "total must be omitted"),
    ],
)  # fmt: skip
def test_a_wrong_risk_is_refused_with_a_line_that_works(folder, option, code):
    refused = run("plan", SQL, *option)
    assert refused.exit_code == 1
    assert isinstance(refused.exception, TacitError)
    assert code in str(refused.exception)


def test_the_fix_of_a_refusal_can_be_typed(folder):
    from tacit.cli._fixes import in_words_of_the_command
    from tacit.fixes import Either, Set

    error = TacitError("bad-parameter", "x", fix=Either(Set(advantage=0.05), Set(attack=(0.01, 0.02))))
    assert str(in_words_of_the_command(error).fix) == "--advantage 0.05, or --attack 0.01,0.02"
