"""Every refusal that a command can meet, met for real: words that can be typed, no Python."""

import json
import os
import re
import shlex
import shutil
import sys

import pytest

from support.command import tacit
from support.python_words import speaks_python
from tacit.cli import main


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Visits with a budget of epsilon 1 and no delta, of which 0.5 is spent; bounds and keys are left out."""
    folder = tmp_path_factory.mktemp("refusals")
    lines = [f"{i // 2},{'AB'[i % 2]},{i % 9},n{i % 3}" for i in range(400)]
    (folder / "stays.csv").write_text("pid,ward,stay,note\n" + "\n".join(lines) + "\n")
    assert tacit("init", "stays.csv", "--unit", "pid", "-e", "1", cwd=folder).returncode == 0
    asked = tacit("query", "SELECT COUNT(*) FROM stays", "-e", "0.5", "--certificate", "a.json", cwd=folder)
    assert asked.returncode == 0, asked.stderr
    return folder


@pytest.fixture
def folder(made, tmp_path):
    for file in made.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


CASES = [
    # (words, code, what the fix says)
    ("plan 'SELECT COUNT(*) FROM stays'", "bad-parameter", "--epsilon 0.5"),
    ("plan 'SELECT COUNT(*) FROM stays' -e 0", "bad-parameter", "--epsilon 0.5"),
    ("plan 'SELECT COUNT(*) FROM stays' -e 1 --delta 2", "bad-parameter", "--delta 1e-6"),
    ("plan 'SELECT COUNT(*) FROM stays' -e 1 --confidence 2", "bad-parameter", "--confidence"),
    ("plan 'SELECT * FROM stays' -e 1", "not-allowed", "SELECT COUNT(*) FROM stays"),
    ("plan 'SELECT ward FROM stays' -e 1", "not-allowed", "SELECT COUNT(*) FROM stays"),
    ("plan SELEC -e 1", "not-allowed", "SELECT COUNT(*) FROM stays"),
    ("plan 'SELECT COUNT(*) FROM stays WHERE ((' -e 1", "bad-sql", "SELECT COUNT(*) FROM stays"),
    ("plan 'SELECT COUNT(*) FROM stay' -e 1", "unknown-table", "FROM stays"),
    ("plan 'SELECT COUNT(*) FROM stays WHERE foo > 1' -e 1", "unknown-column", "note, pid, stay, ward"),
    ("plan 'SELECT COUNT(*) FROM stays WHERE stay = note' -e 1", "unknown-kind", 'types]: stay = "number"'),
    ("plan 'SELECT COUNT(*) FROM stays WHERE UPPER(stay) > 3' -e 1", "bad-expression", "CAST("),
    ("plan 'SELECT AVG(stay) FROM stays' -e 1", "missing-bounds", "bounds]: stay = [LOW, HIGH]"),
    (
        "plan 'SELECT AVG(stay / 2) FROM stays' -e 1",
        "missing-bounds",
        "AVG(LEAST(GREATEST(stay / 2, LOW), HIGH))",
    ),
    (
        "plan 'SELECT AVG(m) FROM (SELECT pid, SUM(stay) AS m FROM stays GROUP BY pid) t' -e 1",
        "missing-bounds",
        "AVG(LEAST(GREATEST(m, LOW), HIGH))",
    ),
    (
        "plan 'SELECT ward, COUNT(*) FROM stays GROUP BY ward' -e 1",
        "keys-missing",
        "--keys ward=A,B (or once for all questions in tacit.toml, under [datasets.stays.keys])",
    ),
    (
        "plan 'SELECT stay % 2 AS odd, COUNT(*) FROM stays GROUP BY odd' -e 1",
        "keys-missing",
        "--keys odd=1,2",
    ),
    ("plan 'SELECT COUNT(*) FROM stays' -e 1 --keys ward", "bad-parameter", "--keys ward=A,B"),
    ("query 'SELECT COUNT(*) FROM stays' -e 2", "budget-exceeded", "epsilon"),
    ("query 'SELECT COUNT(*) FROM stays' -e 0.1 --account x", "unknown-account", "tacit budget"),
    ("query 'SELECT COUNT(*) FROM stays' -e 0.1 --out x.xls", "bad-parameter", "--out answer.csv"),
    ("query 'SELECT COUNT(*) FROM stays' -e 0.1 --out no/x.csv", "cannot-write", "--out ./x.csv"),
    ("init stays.csv", "bad-parameter", "--unit"),
    ("init none.csv --unit pid --force", "bad-parameter", "tacit init"),
    ("init stays.csv --unit foo --force", "unknown-column", "pid, ward"),
    ("init stays.csv --unit pid", "cannot-write", "--force"),
    (
        "init stays.csv --unit pid --force --bounds stay=9:1",
        "bad-parameter",
        "--bounds stay=LOW:HIGH (from public knowledge, not from the data)",
    ),
    ("init stays.csv --unit pid --force --keys ward=A,A", "bad-parameter", "--keys ward=A,B"),
    ("init stays.csv --unit pid --force --limit rows=0", "bad-parameter", "--limit rows=10"),
    ("init stays.csv --unit pid --force --type ward=x", "bad-parameter", "--type ward=number"),
    ("budget none.ledger", "not-a-ledger", "tacit.toml"),
    ("budget stays.csv", "not-a-ledger", "check the path"),
    ("budget open --account a --parent b -e 1", "unknown-account", "tacit budget"),
    ("budget grow --account stays -e 0.1 --who a --statement b", "bad-parameter", "another"),
    ("verify none.json", "bad-certificate", "tacit query"),
    ("verify stays.csv", "bad-certificate", "--certificate"),
    ("explain --epsilon 1 --prior 3", "bad-parameter", "--prior 0.5"),
    ("explain --statistic mean --error 1", "bad-parameter", "--bounds 0 100"),
    ("lab membership --trials 1", "bad-parameter", "--trials 20000"),
    ("audit laplace --epsilon 1 --samples 1", "bad-parameter", "--samples 1000000"),
]


@pytest.mark.parametrize(("words", "code", "fix"), CASES)
def test_a_refusal_can_be_acted_upon(made, words, code, fix, monkeypatch, capsys):
    """Run the command's entry point in this process: the same as installed, without the start of Python."""
    before = (made / "tacit.toml").read_text()
    monkeypatch.chdir(made)
    monkeypatch.setattr(sys, "argv", ["tacit", *shlex.split(words)])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert ended.value.code == 2
    assert told.out == ""
    assert f"code: {code}" in told.err
    said = re.search(r"^  fix: (.*)$", told.err, re.MULTILINE)
    assert said, told.err
    assert fix in said[1]
    assert not speaks_python(said[1])
    assert (made / "tacit.toml").read_text() == before


def test_the_line_that_the_fix_names_is_the_one_to_change(folder):
    asked = ("plan", "SELECT AVG(stay) AS s FROM stays", "-e", "0.5")
    said = re.search(r"tacit\.toml line (\d+), under \S+: (.*)", tacit(*asked, cwd=folder).stderr)
    lines = (folder / "tacit.toml").read_text().splitlines()
    line, public = said[2].removesuffix(" (from public knowledge, not from the data)"), "[0, 30]"
    lines[int(said[1]) - 1] = line.replace("[LOW, HIGH]", public)
    (folder / "tacit.toml").write_text("\n".join(lines))
    assert tacit(*asked, cwd=folder).returncode == 0


def test_an_aggregate_of_an_expression_works_as_the_fix_says(folder):
    said = tacit("plan", "SELECT AVG(stay / 2) FROM stays", "-e", "0.5", cwd=folder).stderr
    aggregate = re.search(r"question: (.*) \(from public", said)[1].replace("LOW", "0").replace("HIGH", "30")
    assert tacit("plan", f"SELECT {aggregate} FROM stays", "-e", "0.5", cwd=folder).returncode == 0


def test_a_larger_budget_is_recorded_as_the_fix_says(folder):
    text = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(text.replace("{epsilon = 1}", "{epsilon = 2}"))
    question = ("query", "SELECT COUNT(*) FROM stays", "-e", "1.25")
    done = tacit(*question, cwd=folder)
    assert "code: account-differs" in done.stderr
    assert "budget = {epsilon = 1}" in done.stderr
    act = re.search(r"tacit (budget grow .*) --statement", done.stderr)[1]
    grown = tacit(*act.split(), "--statement", "board decision 7", "--who", "ana", cwd=folder)
    assert grown.returncode == 0, grown.stderr
    assert tacit(*question, cwd=folder).returncode == 0
    history = tacit("budget", "history", cwd=folder).stdout
    assert "board decision 7" in history


def test_a_share_is_opened_and_pays(folder):
    opened = tacit("budget", "open", "--account", "ana", "--parent", "stays", "-e", "0.2", cwd=folder)
    assert opened.returncode == 0, opened.stderr
    question = ("query", "SELECT COUNT(*) FROM stays", "--account", "ana")
    assert tacit(*question, "-e", "0.3", cwd=folder).returncode == 2
    assert tacit(*question, "-e", "0.1", cwd=folder).returncode == 0


def test_a_missing_file_names_the_line_of_its_source(folder):
    (folder / "stays.csv").unlink()
    done = tacit("query", "SELECT COUNT(*) AS m FROM stays", "-e", "0.1", cwd=folder)
    assert 'fix: tacit.toml line 8, under [datasets.stays]: source = "path/of/stays.csv"' in done.stderr


def test_groups_of_an_expression_get_their_keys_by_an_option(folder):
    question = "SELECT CAST(stay AS DOUBLE) % 2 AS odd, ward, COUNT(*) AS n FROM stays GROUP BY odd, ward"
    said = tacit("plan", question, "-e", "0.5", cwd=folder).stderr
    assert "fix: --keys ward=A,B --keys odd=1,2\n" in said  # no delta in this budget, so none is offered
    years = "SELECT YEAR(ward) AS y, COUNT(*) AS n FROM stays GROUP BY y"
    assert re.search(r"fix: --keys y=20\d\d,20\d\d", tacit("plan", years, "-e", "0.5", cwd=folder).stderr)
    words = ("--keys", "odd=0,1", "--keys", "ward=A,B")
    done = tacit("query", question, "-e", "0.5", *words, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr + done.stdout
    rows = json.loads(done.stdout)["rows"]
    assert [(row["odd"], row["ward"]) for row in rows] == [(0, "A"), (0, "B"), (1, "A"), (1, "B")]


def test_delta_is_offered_where_the_budget_has_one_and_a_plan_says_what_no_budget_pays(folder):
    question = ("plan", "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward", "-e", "0.5")
    done = tacit(*question, "--delta", "1e-7", cwd=folder)
    assert "so the budget cannot pay for this plan now: ask a question that needs no delta" in " ".join(
        done.stdout.split()
    )
    words = ("--unit", "pid", "--force", "-e", "1", "--delta", "1e-6")
    assert tacit("init", "stays.csv", *words, cwd=folder).returncode == 0
    assert "or --delta 1e-7 to select groups privately" in tacit(*question, cwd=folder).stderr
    done = tacit(*question, "--delta", "1e-7", cwd=folder)
    assert done.returncode == 0
    assert "budget cannot pay" not in done.stdout


def test_an_unknown_column_names_the_close_one_and_quotes_odd_ones(tmp_path):
    (tmp_path / "x.csv").write_text("pid,City ,a b\n")
    assert tacit("init", "x.csv", "--unit", "pid", "-e", "1", cwd=tmp_path).returncode == 0
    said = tacit("plan", "SELECT COUNT(*) FROM x WHERE city = 'A'", "-e", "1", cwd=tmp_path).stderr
    assert """fix: "City "? one of: "City ", "a b", pid""" in said


def test_without_a_budget_the_line_to_fill_in_is_named(folder):
    assert tacit("init", "stays.csv", "--unit", "pid", "--force", cwd=folder).returncode == 0
    said = tacit("plan", "SELECT COUNT(*) FROM stays", "-e", "0.5", cwd=folder).stderr
    number = int(re.search(r"tacit\.toml line (\d+), under \[datasets\.stays\]: budget = ", said)[1])
    assert "budget = " in (folder / "tacit.toml").read_text().splitlines()[number - 1]


def test_a_wrong_budget_is_corrected_where_it_is_declared(folder):
    text = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(text.replace("{epsilon = 1}", "{epsilon = -1}"))
    said = tacit("plan", "SELECT COUNT(*) FROM stays", "-e", "0.5", cwd=folder).stderr
    assert "epsilon must be a positive finite number, got -1" in said
    assert re.search(r"fix: tacit\.toml line \d+, under \[datasets\.stays\]: budget = ", said)


@pytest.mark.parametrize(
    ("harm", "code", "fix"),
    [
        (lambda f: (f / "tacit.ledger.key").unlink(), "ledger-key", "export TACIT_LEDGER_KEY_FILE="),
        (
            lambda f: (f / "tacit.ledger").unlink(),
            "ledger-rolled-back",
            "put the latest copy of the ledger back",
        ),
        (lambda f: os.truncate(f / "tacit.ledger", 3000), "ledger-damaged", "verify"),
        (lambda f: (f / "tacit.ledger.key").write_text("zz"), "ledger-key", "restore"),
    ],
)
def test_a_broken_ledger_says_what_to_do(folder, harm, code, fix):
    harm(folder)
    for words in (("budget",), ("query", "SELECT COUNT(*) FROM stays", "-e", "0.1")):
        done = tacit(*words, cwd=folder)
        assert done.returncode == 2
        said = re.search(r"^  fix: (.*)$", done.stderr, re.MULTILINE)[1]
        assert fix in said
        assert not speaks_python(said)
        assert "Traceback" not in done.stderr
    assert f"code: {code}" in done.stderr


def test_a_spent_budget_says_what_would_fit_and_that_fits(folder):
    done = tacit("query", "SELECT COUNT(*) FROM stays", "-e", "0.8", cwd=folder)
    assert "what is left: epsilon 0.5 of 1" in done.stderr
    assert "fix: --epsilon 0.5 or less" in done.stderr
    done = tacit("query", "SELECT COUNT(*) AS m FROM stays WHERE ward = 'A'", "-e", "0.5", cwd=folder)
    assert "left: nothing of epsilon 1" in done.stdout
    done = tacit("query", "SELECT COUNT(*) FROM stays WHERE ward = 'B'", "-e", "0.1", cwd=folder)
    assert "fix: repeat a question that was already answered, which is free" in done.stderr
    assert tacit("query", "SELECT COUNT(*) FROM stays", "-e", "0.5", cwd=folder).returncode == 0


# errors for programs


@pytest.mark.parametrize("words", [("--json", "plan", "SELECT AVG(stay) FROM stays", "-e", "1"),
                                   ("plan", "SELECT AVG(stay) FROM stays", "-e", "1", "--json")])  # fmt: skip
def test_with_json_an_error_is_one_json_value_on_standard_output(made, words):
    done = tacit(*words, cwd=made)
    assert done.returncode == 2
    assert done.stderr == ""
    error = json.loads(done.stdout)["error"]
    assert set(error) == {"code", "what", "why", "fix", "fix_data"}
    assert error["code"] == "missing-bounds"
    assert error["fix"].endswith("bounds]: stay = [LOW, HIGH] (from public knowledge, not from the data)")
    assert error["fix_data"] == {
        "fix": "declare", "fact": "bounds", "column": "stay", "value": [0, 30], "example": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "help_for"),
    [(("foo", "--json"), "tacit"), (("plan", "--json"), "tacit plan"), (("--json", "lab", "x"), "tacit lab")],
)
def test_wrong_words_are_an_error_of_the_same_shape(made, words, help_for):
    done = tacit(*words, cwd=made)
    assert (done.returncode, done.stderr) == (2, "")
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["fix"]) == ("usage", f"{help_for} --help")
    assert error["fix_data"] == {"fix": "say", "text": error["fix"]}


def test_json_may_stand_before_the_command(made, tmp_path):
    for words in (
        ("budget",),
        ("verify", "a.json"),
        ("plan", "SELECT COUNT(*) FROM stays", "-e", "1"),
        ("init", "stays.csv", "--unit", "pid", "--config", str(tmp_path / "other.toml")),
        ("audit", "laplace", "--epsilon", "1", "--samples", "400"),
    ):
        done = tacit("--json", *words, cwd=made)
        assert done.returncode == 0, done.stderr
        assert isinstance(json.loads(done.stdout), dict)


def test_ctrl_c_is_told_to_programs_too(monkeypatch, capsys):
    def pressed(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tacit.audit.lab.membership_attack", pressed)
    monkeypatch.setattr(sys, "argv", ["tacit", "lab", "membership", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "interrupted"


def test_a_question_without_quotes_is_refused_with_the_line_to_type(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tacit", "query", "SELECT", "COUNT", "FROM", "visits", "--epsilon", "1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "the question arrived as 4 separate words; put it in quotes" in told
    assert 'fix: tacit query "SELECT COUNT FROM visits" --epsilon 1' in told
