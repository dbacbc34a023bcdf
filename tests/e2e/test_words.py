"""The installed command in a newcomer's hands: what it says of questions, files and slips of the keyboard."""

import json
import re
import shutil

import pytest

import tacit as tc
from support.command import tacit

BY_WARD = "SELECT Ward, COUNT(*) AS n FROM visits GROUP BY Ward"


def said(*words, cwd, **environment):
    """Return what a command that succeeds prints, on one line."""
    done = tacit(*words, cwd=cwd, **environment)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def refusal(*words, cwd, **environment):
    done = tacit(*words, cwd=cwd, **environment)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return " ".join(done.stderr.replace("│", " ").split())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    lines = [f"{i // 2},{'AB'[i % 2]},{i % 9},{i % 7}" for i in range(2000)]
    text = "Patient ID,Ward,LOS,Cost (EUR)\n" + "\n".join(lines) + "\n"
    (folder / "visits.csv").write_text(text)
    told = tacit(
        "init", "visits.csv", "--unit", "Patient ID", "--epsilon", "2", "--delta", "1e-6",
        "--bounds", "LOS=0:30", "--keys", "Ward=A,B", "--limit", "rows=2", cwd=folder,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    return folder


@pytest.fixture
def folder(made, tmp_path):
    for name in ("visits.csv", "tacit.toml"):
        shutil.copy(made / name, tmp_path)
    return tmp_path


def test_the_history_shows_who_asked_what(folder):
    told = said("query", BY_WARD, "-e", "0.5", cwd=folder)
    assert "no --who was given: recorded as unknown" in told
    named = said(
        "query", "SELECT COUNT(*) FROM visits WHERE LOS > 3", "-e", "0.25", "--who", "ana", cwd=folder
    )
    assert "--who" not in named
    history = said("budget", "history", cwd=folder, COLUMNS="160")
    assert "answer charged: n = count, by Ward, of visits" in history
    assert "answer charged: count, where LOS > 3, of visits" in history
    assert "unknown" in history
    assert "answer stored" not in history
    entries = json.loads(tacit("budget", "history", "--json", cwd=folder).stdout)
    assert [entry["kind"] for entry in entries] == ["open", "draw", "release", "draw", "release"]
    assert entries[1]["asked"] == "n = count, by Ward, of visits"


def test_a_narrow_history_cuts_no_name(folder):
    long = "admissions_of_the_university_hospital"
    text = (folder / "tacit.toml").read_text().replace("datasets.visits", f"datasets.{long}")
    (folder / "tacit.toml").write_text(text)
    said(
        "query",
        f"SELECT COUNT(*) FROM {long}",
        "-e",
        "0.5",
        "--who",
        "ana",
        "--purpose",
        "yearly",
        cwd=folder,
    )
    shown = tacit("budget", "history", cwd=folder, COLUMNS="80").stdout
    assert "…" not in shown
    assert "..." not in shown


def test_a_stored_answer_tells_its_day_and_version_and_how_new_data_is_declared(folder):
    first = said("query", BY_WARD, "-e", "0.5", cwd=folder)
    assert (
        "charged as entry 2; left: one more question of up to epsilon 1.5; or 3 more like this one" in first
    )
    with (folder / "visits.csv").open("a") as file:
        file.write("9999,A,3,3\n" * 2)
    again = said("query", BY_WARD, "-e", "0.5", cwd=folder)
    (day,) = re.findall(r"stored answer of entry 2 \((\d{4}-\d\d-\d\d), version 1\): free", again)
    with tc.Ledger.open(folder / "tacit.ledger", create=False) as ledger:
        assert ledger.history()[1].at.startswith(day)
    assert "(new data? write version = 2 in tacit.toml)" in again
    toml = (folder / "tacit.toml").read_text()
    assert "\n# version = 1\n" in toml
    (folder / "tacit.toml").write_text(toml.replace("\n# version = 1\n", "\nversion = 2\n"))
    assert "charged as entry 5; left: one more question of up to epsilon 1; or 2 more like" in said(
        "query", BY_WARD, "-e", "0.5", cwd=folder
    )


def test_init_refuses_a_file_that_is_not_utf_8_with_the_option_that_reads_it(tmp_path):
    (tmp_path / "good.csv").write_bytes("\ufeffpid,Größe\n1,2\n".encode())
    good = said("init", "good.csv", "--unit", "pid", cwd=tmp_path)
    assert "rows without a pid will not be counted" in good
    for name, text in (("header", "pid,Größe\n1,2\n"), ("cells", "pid,ward\n1,Süd\n")):
        (tmp_path / f"{name}.csv").write_bytes(text.encode("cp1252"))
        begun = ("init", f"{name}.csv", "--unit", "pid", "--force")
        words = refusal(*begun, cwd=tmp_path)
        assert "has a byte that is not UTF-8" in words
        assert "--encoding windows-1252" in words
        said(*begun, "--encoding", "windows-1252", cwd=tmp_path)
        assert 'encoding = "cp1252"' in (tmp_path / "tacit.toml").read_text()
    (tmp_path / "good.csv").write_text("id,ward\n1,2\n")
    assert "rows without an id will not be counted" in said(
        "init", "good.csv", "--unit", "id", "--force", cwd=tmp_path
    )
    rows = said("init", "good.csv", "--row", "--force", cwd=tmp_path)
    assert "will not be counted" not in rows


@pytest.mark.parametrize(
    ("sql", "fix"),
    [
        (
            'SELECT AVG("Cost (EUR)") FROM visits',
            'bounds]: "Cost (EUR)" = [LOW, HIGH] (from public knowledge, not from the data)',
        ),
        (
            "SELECT AVG(LOS / (LOS - 1)) FROM visits",
            "AVG(LEAST(GREATEST(LOS / (LOS - 1), LOW), HIGH)) (from public knowledge, not from the data)",
        ),
        ("SELECT AVG('los') FROM visits", "write a column name without single quotes: LOS"),
        ("SELECT AVG('Cost (EUR)') FROM visits", 'write a column name without single quotes: "Cost (EUR)"'),
        ('SELECT COUNT(*) FROM visits WHERE Ward = "ICU"', "write text in single quotes: 'ICU'"),
        ('SELECT AVG("LOSS") FROM visits', "LOS? one of:"),
        (
            "SELECT COUNT(*) FROM visits WHERE Patient ID = 3",
            'write a name with spaces or special characters in double quotes: "Patient ID"',
        ),
        (
            "SELECT AVG(cost (eur)) FROM visits",
            'write a name with spaces or special characters in double quotes: "Cost (EUR)"',
        ),
        ("SELECT AVG('7') FROM visits", "fix: CAST('7' AS DOUBLE)"),
        ("SELECT COUNT(* FROM visits WHERE 'Patient ID' = 3", "fix: SELECT COUNT(*) FROM visits"),
    ],
)
def test_a_slip_in_a_question_is_told_by_name(folder, sql, fix):
    assert fix in refusal("plan", sql, "-e", "0.5", cwd=folder)


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM visits", "SELECT visits.* FROM visits", "SELECT *, COUNT(*) FROM visits"]
)
def test_a_star_is_told_that_rows_never_leave(folder, sql):
    told = refusal("plan", sql, "-e", "0.5", cwd=folder)
    assert "Tacit never shows rows, only noisy aggregates" in told
    assert "not-allowed" in told


def test_a_number_for_a_certificate_was_meant_as_an_epsilon(tmp_path):
    for word, epsilon in (("1", "1"), ("0,5", "0.5")):
        told = refusal("explain", word, cwd=tmp_path)
        assert f"did you mean --epsilon {epsilon}?" in told
        assert f"fix: tacit explain --epsilon {epsilon} " in told
    for command in ("explain", "verify"):
        told = refusal(command, "mine.json", cwd=tmp_path)
        assert "mine.json does not exist" in told
        assert 'the file that tacit query "..." --certificate FILE.json wrote' in told


@pytest.mark.parametrize("words", [("--epsilon", "0,5"), ("-e", "0,5"), ("--epsilon=0,5",)])
def test_a_decimal_comma_is_told_by_name(folder, words):
    told = refusal("plan", "SELECT COUNT(*) FROM visits", *words, cwd=folder)
    assert f"{words[0].split('=')[0]} 0,5 has a decimal comma" in told
    assert f"fix: {words[0].split('=')[0]} 0.5" in told
    error = json.loads(tacit("plan", "SELECT COUNT(*) FROM visits", *words, "--json", cwd=folder).stdout)
    assert error["error"]["code"] == "bad-parameter"
    assert not (folder / "tacit.ledger").exists()


def test_a_comma_that_is_no_number_stays(folder):
    said("query", "SELECT COUNT(*) FROM visits", "-e", "0.5", "--purpose", "1,5", cwd=folder)


def test_a_plan_beyond_the_whole_budget_says_so(folder):
    told = said("plan", "SELECT COUNT(*) FROM visits", "-e", "5", cwd=folder)
    assert "more than the whole budget (epsilon 2, delta 1e-6), so the budget cannot pay for it" in told
    assert "--epsilon 2 or less" in told
    assert "whole budget" not in said("plan", "SELECT COUNT(*) FROM visits", "-e", "2", cwd=folder)


def test_init_asks_after_a_column_of_a_close_name(folder):
    told = refusal(
        "init", "visits.csv", "--unit", "Patient ID", "--bounds", "Los=0:30", "--force", cwd=folder
    )
    assert "there is no column 'Los'" in told
    assert 'fix: LOS? one of: "Patient ID", Ward' in told
    far = refusal("init", "visits.csv", "--unit", "Patient ID", "--bounds", "xyz=0:30", "--force", cwd=folder)
    assert 'fix: one of: "Patient ID", Ward' in far


def test_a_name_with_a_dot_and_a_name_that_stands_twice_can_both_be_asked(tmp_path):
    (tmp_path / "v.csv").write_text("pid,Lab.Crea,Ward,Ward\n1,2,A,B\n")
    begun = said("init", "v.csv", "--unit", "pid", "-e", "2", "--bounds", "Lab.Crea=0:9", cwd=tmp_path)
    assert begun.count("the header names Ward again: this column is called Ward_1 here") == 1
    told = refusal("plan", "SELECT AVG(Lab.Crea) FROM v", "-e", "1", cwd=tmp_path)
    assert 'in double quotes: "Lab.Crea"' in told
    said("plan", "SELECT AVG(\"Lab.Crea\") FROM v WHERE Ward_1 = 'B'", "-e", "1", cwd=tmp_path)


def test_a_certificate_of_another_ledger_points_at_the_option(folder):
    said("query", BY_WARD, "-e", "0.5", "--certificate", "a.json", cwd=folder)
    (folder / "tacit.ledger").rename(folder / "right.ledger")
    for end in (".key", ".witness"):
        (folder / f"tacit.ledger{end}").rename(folder / f"right.ledger{end}")
    said("query", "SELECT COUNT(*) FROM visits", "-e", "0.25", cwd=folder)
    wrong = tacit("verify", "a.json", cwd=folder)
    assert wrong.returncode == 3
    assert "for another ledger, give --ledger FILE" in " ".join(wrong.stdout.split())
    assert "verified: entry 2 of right.ledger" in said(
        "verify", "a.json", "--ledger", "right.ledger", cwd=folder
    )
    forged = json.loads((folder / "a.json").read_text())
    forged["plan"] = "0" * 64
    (folder / "forged.json").write_text(json.dumps(forged))
    told = tacit("verify", "forged.json", "--ledger", "right.ledger", cwd=folder)
    assert told.returncode == 3
    assert "another ledger" not in told.stdout


def test_the_hints_of_the_config_name_no_kind_that_may_be_wrong(made):
    toml = (made / "tacit.toml").read_text()
    assert '# LOS = "number"' not in toml
    assert '# "Cost (EUR)" = "KIND"' in toml
    assert "# KIND: number, text, boolean or date" in toml
    assert "skip columns of text and dates" in toml
