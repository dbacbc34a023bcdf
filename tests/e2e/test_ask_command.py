"""``tacit ask FILE --mean COLUMN``: what is missing is asked at a terminal, and refused elsewhere."""

import json
import os
import pty
import re
import select
import shlex
import signal
import sys
import time
import tomllib

import pytest
from tests.support.command import ENVIRONMENT, TACIT, installed, tacit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the test opens a pseudo-terminal")
ROWS = [f"{i % 500};{'Nord' if i % 3 else 'Süd'};{i % 7},5;{100 + i % 90}" for i in range(3000)]
SENTENCE = ("ask", "fälle.csv", "--mean", "Tage", "--by", "Ort", "--unit", "Patient", "--epsilon", "500")
WRITTEN = ("--encoding", "latin-1", "--decimal", ",")
COMPLETE = (*SENTENCE, *WRITTEN, "--keys", "Ort=Nord,Süd", "--limit", "rows=6", "--budget", "2000")
#: What a person types: the form of the file, the groups, the rows, the budget, yes.
ANSWERS = ("1", "1", "1", "1", "Nord, Süd", "2", "6", "2", "2000", "y")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "fälle.csv").write_text("\r\n".join(["Patient;Ort;Tage;Kosten", *ROWS]), encoding="latin-1")
    return tmp_path


def at_a_terminal(folder, *words, answers=(), columns=100):
    """Run the command on a pseudo-terminal and type the answers; return what it showed, and its status."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(TACIT, [str(TACIT), *words], {**ENVIRONMENT, "COLUMNS": str(columns), "TERM": "dumb"})
    shown, open_answers, deadline = b"", list(answers), time.monotonic() + 120
    while True:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the command has ended
            break
        shown += part
        if shown.endswith(b": "):
            os.write(terminal, (open_answers.pop(0) + "\n").encode() if open_answers else b"\x04")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return shown.decode().replace("\r\n", "\n"), os.waitstatus_to_exitcode(status), open_answers


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_missing_is_asked_and_the_next_question_needs_less(folder):
    shown, status, left = at_a_terminal(folder, *SENTENCE, answers=ANSWERS)
    assert (status, left) == (0, [])
    for title in (
        "fälle.csv is not a UTF-8 file",
        "How are numbers written?",
        "How are dates written?",
        "Which values can Ort have?",
        "How many rows can one Patient have",
        "How much may be learned from this file in total?",
        "Charge epsilon 500 and answer?",
    ):
        assert title in shown
    assert shown.index("cost: epsilon 500") < shown.index("Charge epsilon 500")
    assert "finds the bounds of Tage privately" in " ".join(shown.split())
    assert "charged as entry" in shown
    facts = tomllib.loads((folder / "tacit.toml").read_text(encoding="utf-8"))["datasets"]["fälle"]
    assert (facts["unit"], facts["decimal"], facts["limits"]) == ("Patient", ",", {"rows": 6})
    assert facts["keys"] == {"Ort": ["Nord", "Süd"]}
    assert facts["budget"] == {"epsilon": 2000}

    second = tacit(
        "ask", "--mean", "Kosten", "--by", "Ort", "--epsilon", "500", "--yes", "--json", cwd=folder
    )
    answer = json.loads(second.stdout)
    assert second.returncode == 0
    assert answer["left"]["epsilon"] == "1000"
    assert [row["mean_Kosten"] for row in answer["rows"]] == pytest.approx([144, 144], abs=2)

    again = tacit("ask", "fälle.csv", "--mean", "Tage", "--by", "Ort", "--epsilon", "500", cwd=folder)
    assert "this answer is stored and free" in again.stdout
    assert "cost: " not in again.stdout
    assert "stored answer of entry" in again.stdout
    assert "left: epsilon 1000 of 2000" in again.stdout


def fix_of(refused):
    """Return the line that a refusal proposes, as the words that a shell would make of it."""
    line = next(one for one in refused.stderr.splitlines() if one.startswith("  fix: "))
    return shlex.split(line.removeprefix("  fix: tacit "))


def test_without_a_terminal_the_whole_line_is_shown_and_it_charges_nothing_as_it_stands(folder):
    refused = tacit(*SENTENCE, "--yes", cwd=folder)
    assert refused.returncode == 2
    assert "this question also needs --encoding, --decimal, --keys, --budget" in refused.stderr
    expected = [*SENTENCE, "--encoding", "windows-1252", "--decimal", ",", "--keys", "Ort=...", "--budget"]
    assert fix_of(refused) == [*expected, "1500"]  # what the question costs, three times
    pasted = tacit(*fix_of(refused), "--yes", cwd=folder)
    assert pasted.returncode == 2
    assert "--keys must be the values themselves" in pasted.stderr
    assert files(folder) == ["fälle.csv"]

    complete = [word.replace("...", "Nord,Süd") for word in fix_of(refused)]
    unpaid = tacit(*complete, cwd=folder)
    assert unpaid.returncode == 2
    assert "cost: epsilon 500" in unpaid.stdout
    assert fix_of(unpaid) == [*complete, "--yes"]
    assert files(folder) == ["fälle.csv"]
    answered = tacit(*fix_of(unpaid), cwd=folder)
    assert answered.returncode == 0, answered.stderr
    assert "written: tacit.toml" in answered.stdout
    assert set(files(folder)) >= {"fälle.csv", "tacit.ledger", "tacit.toml"}


def test_how_numbers_are_written_is_settled_before_the_charge(folder):
    undeclared = [word for word in COMPLETE if word not in {"--decimal", ","}]
    refused = tacit(*undeclared, "--yes", cwd=folder)
    assert "this question also needs --decimal" in refused.stderr
    assert fix_of(refused) == [*undeclared, "--decimal", ","]
    assert tacit(*undeclared, "--decimal", ".", "--plan", cwd=folder).returncode == 0
    counted = ("ask", "fälle.csv", "--count", "--unit", "Patient", "--epsilon", "1", "--encoding", "latin-1")
    assert tacit(*counted, "--budget", "3", "--plan", cwd=folder).returncode == 0  # reads no number
    text = tacit(*undeclared, "--decimal", ".", "--yes", cwd=folder)
    assert "no range found for Tage" in text.stdout
    assert "check the column, the decimal mark (--decimal)" in " ".join(text.stdout.split())


def test_a_stored_answer_is_free_and_nobody_is_asked(folder):
    tacit(*COMPLETE, "--yes", cwd=folder)
    again = SENTENCE[:6] + SENTENCE[8:]
    shown, status, _ = at_a_terminal(folder, *again)
    assert status == 0, shown
    assert "this answer is stored and free: nothing is charged" in shown
    assert "[y/N]" not in shown
    told = json.loads(tacit(*again, "--json", cwd=folder).stdout)
    assert (told["fresh"], told["left"]["epsilon"]) == (False, "1500")


def test_the_price_is_in_plain_words_and_the_details_are_behind_plan(folder):
    shown, _, _ = at_a_terminal(folder, *COMPLETE, answers=["n"])
    words = " ".join(shown.split())
    for part in (
        "asked: the mean of Tage, for each Ort, in fälle",
        "groups: Nord, Süd check their spelling",
        "protected: everything about each Patient; at most 6 rows of each Patient count",
        "cost: epsilon 500; left afterwards: one more question of up to epsilon 1500",
        "error of mean_Tage: known only with the answer: it follows from the range that is found",
        "fewer than about",
        "details: add --plan to the line",
    ):
        assert part in words
    assert "sensitivity" not in words
    assert "sensitivity" in tacit(*COMPLETE, "--plan", cwd=folder).stdout
    counted = tacit("ask", *COMPLETE[1:2], "--count", *COMPLETE[4:], cwd=folder)
    assert re.search(r"error of n: \+/- [0-9.]+, with 95 % confidence", counted.stdout)


def test_a_misspelt_group_is_hinted_at_after_the_answer(folder):
    answered = tacit(*[word.replace("Süd", "Sued") for word in COMPLETE], "--yes", cwd=folder)
    words = " ".join(answered.stdout.split())
    assert "hidden by the noise" in words
    assert "a group that is not in the data looks like this too: check its spelling" in words
    assert "large values were counted at the end of the range, so the true value may be higher" in words


def test_the_price_comes_first_and_whoever_declines_has_written_nothing(folder):
    shown, status, _ = at_a_terminal(folder, *COMPLETE, answers=["n"])
    assert status == 1
    assert "cost: epsilon 500" in shown
    assert "nothing was charged, nothing was written" in shown
    assert "charged as entry" not in shown
    assert files(folder) == ["fälle.csv"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--budget", "100"), "does not fit"),
        (("--mean", "Tge"), "there is no column 'Tge'"),
        (("--unit", "Person"), "no column 'Person'"),
        (("--epsilon", "-1"), "epsilon must be"),
        (("--type", "Tage=text"), "Tage"),
    ],
)
def test_a_question_that_is_refused_writes_nothing(folder, words, code):
    refused = tacit(*COMPLETE, "--yes", *words, cwd=folder)
    assert refused.returncode == 2
    assert code in refused.stderr
    assert files(folder) == ["fälle.csv"]


def test_a_ledger_that_refuses_leaves_the_declarations_as_they_were(folder):
    tacit(*COMPLETE, "--yes", cwd=folder)
    before = {path.name: path.read_bytes() for path in folder.glob("tacit.toml")}
    more = ("ask", "--median", "Kosten", "--bounds", "Kosten=0:300", "--epsilon", "1800", "--yes")
    refused = tacit(*more, cwd=folder)
    assert refused.returncode == 2
    assert "does not fit into what is left" in refused.stderr
    assert {path.name: path.read_bytes() for path in folder.glob("tacit.toml")} == before
    answered = tacit(*[word if word != "1800" else "500" for word in more], cwd=folder)
    assert answered.returncode == 0, answered.stderr
    assert "Kosten = [0, 300]" in (folder / "tacit.toml").read_text(encoding="utf-8")


def test_what_is_declared_is_not_changed_by_a_question(folder):
    tacit(*COMPLETE, "--yes", cwd=folder)
    refused = tacit("ask", "--count", "--unit", "Ort", "--epsilon", "1", "--yes", cwd=folder)
    assert refused.returncode == 2
    assert "tacit.toml declares other unit of 'fälle'" in refused.stderr


def test_everything_can_be_asked(folder):
    (folder / "visits.csv").write_text("\n".join(["person,ward,stay", *(f"{i},A,3" for i in range(600))]))
    (folder / "fälle.csv").unlink()
    answers = (
        "1",  # the only file
        "1",  # who is protected: person
        "2",  # the mean
        "2",  # of stay
        "2",  # for each ward
        "1", "A",  # the values are listed
        "1",  # one row for each person
        "4", "300",  # epsilon
        "2", "900",  # budget
        "y",
    )  # fmt: skip
    shown, status, left = at_a_terminal(folder, "ask", "--size", "600", answers=answers)
    assert (status, left) == (0, []), shown
    assert "mean_stay" in shown
    assert "At most 1 row" in shown or "at most 1 row of each person counts" in " ".join(shown.split())


def test_a_wrong_answer_is_asked_again(folder):
    shown, status, left = at_a_terminal(
        folder, *SENTENCE, *WRITTEN, "--dates", "day.month.year", "--limit", "rows=6",
        answers=["0", "x", "1", " , ", "Nord,Süd", "9", "2", "-3", "2000", "n"],
    )  # fmt: skip
    assert (status, left) == (1, []), shown
    assert shown.count("Type a whole number from 1 to 2.") == 3
    assert "must be NAME=" not in shown
    assert "must be a list such as A,B" in " ".join(shown.split())
    assert "must be a positive number" in " ".join(shown.split())


def test_the_data_is_not_used_before_the_charge(folder):
    """Values that no question could read change neither the prompts nor the price."""
    declined = at_a_terminal(folder, *COMPLETE, answers=["n"])
    (folder / "fälle.csv").write_text("Patient;Ort;Tage;Kosten\r\n1;?;-;x\r\n", encoding="latin-1")
    assert at_a_terminal(folder, *COMPLETE, answers=["n"]) == declined


def test_a_listed_value_may_have_a_comma(folder):
    words = [*SENTENCE, *WRITTEN, "--limit", "rows=6", "--budget", "2000"]
    shown, status, _ = at_a_terminal(folder, *words, answers=["1", 'Nord, "Süd, am See"', "y"])
    assert status == 0, shown
    facts = tomllib.loads((folder / "tacit.toml").read_text(encoding="utf-8"))["datasets"]["fälle"]
    assert facts["keys"] == {"Ort": ["Nord", "Süd, am See"]}


def test_a_plan_alone_needs_no_consent_and_writes_nothing(folder):
    planned = tacit(*COMPLETE, "--plan", cwd=folder)
    assert planned.returncode == 0
    assert "can pay for this plan 4 times" in planned.stdout
    told = json.loads(tacit(*COMPLETE, "--plan", "--json", cwd=folder).stdout)
    assert told["columns"][0]["column"] == "mean_Tage"
    assert files(folder) == ["fälle.csv"]


def test_groups_are_found_with_a_delta_if_nobody_lists_them(folder):
    words = [word for word in COMPLETE if word not in {"--keys", "Ort=Nord,Süd"}]
    refused = tacit(*words, "--delta", "1e-7", "--yes", cwd=folder)
    assert "this question also needs --bounds" in refused.stderr
    assert fix_of(refused)[-2:] == ["--bounds", "Tage=LOW:HIGH"]
    answered = tacit(*words, "--delta", "1e-7", "--bounds", "Tage=0:30", "--yes", cwd=folder)
    assert answered.returncode == 0, answered.stderr
    assert "Süd" in answered.stdout
    again = tacit("ask", "--count", "--by", "Ort", "--epsilon", "10", "--plan", cwd=folder)
    assert "selected privately" in again.stdout


def test_kinds_are_asked_as_before(folder):
    assert tacit("ask", "--help", cwd=folder).returncode == 0
    assert "table" in tacit("ask", "--help", cwd=folder).stdout
    assert "No such command 'grph'" in tacit("ask", "grph", cwd=folder).stderr
    missing = tacit("ask", "points", "absent.csv", "grid", cwd=folder)
    assert missing.returncode == 2
    missing = tacit("ask", "absent.csv", "--count", "--unit", "a", "--epsilon", "1", cwd=folder)
    assert "absent.csv does not exist" in missing.stderr


def test_a_narrow_terminal_cuts_no_line(folder):
    shown, status, _ = at_a_terminal(folder, *SENTENCE, answers=(*ANSWERS[:-1], "n"), columns=40)
    assert status == 1
    lines = re.sub(r"\x1b\[\d+m", "", shown).splitlines()
    typed = ("The values", "Charge epsilon", "  tacit ask")  # a line to copy stays in one piece
    assert [line for line in lines if len(line) > 40 and not line.startswith(typed)] == []


def test_the_installed_command_asks_too(folder):
    assert "needs --keys, --budget" in installed(*SENTENCE, *WRITTEN, cwd=folder).stderr


@pytest.mark.parametrize("stop", ["n", "\x03", "\x04"])
def test_whoever_stops_gets_the_line_with_what_was_answered(folder, stop):
    shown, status, _ = at_a_terminal(folder, *SENTENCE, answers=(*ANSWERS[:-1], stop))
    assert status == (130 if stop == "\x03" else 1), shown
    assert "nothing was charged, nothing was written" in " ".join(shown.split())
    line = next(one for one in shown.splitlines() if one.startswith("  tacit ask"))
    again = shlex.split(line)[1:]
    assert files(folder) == ["fälle.csv"]
    assert tacit(*again, "--yes", cwd=folder).returncode == 0


@pytest.mark.parametrize(("typed", "status"), [("ja", 0), ("Yes", 0), ("", 1), ("nein", 1)])
def test_only_a_clear_yes_is_one(folder, typed, status):
    shown, ended, left = at_a_terminal(folder, *COMPLETE, answers=("perhaps", typed))
    assert (ended, left) == (status, []), shown
    assert "Type y for yes, or n for no." in shown
    assert shown.count("[y/N]") == 2


def test_what_is_left_is_said_before_the_menu_and_not_exceeded(folder):
    tacit(*COMPLETE, "--yes", cwd=folder)
    median = ("ask", "--median", "Kosten", "--bounds", "Kosten=0:300")
    shown, status, left = at_a_terminal(
        folder, *median, answers=["4", "1600", "0,5", "n"],
    )  # fmt: skip
    assert (status, left) == (1, []), shown
    words = " ".join(shown.split())
    assert words.index("up to epsilon 1500 is left") < words.index("Number (1 to 4)")
    assert "epsilon must be at most 1500, which is what is left" in words
    assert "cost: epsilon 0.5;" in words
    assert "--epsilon 0.5" in words

    tacit(*median, "--epsilon", "1500", "--yes", cwd=folder)
    exhausted = at_a_terminal(folder, "ask", "--count")[0]
    assert "nothing is left of the budget of 'fälle'" in exhausted
    assert "tacit budget grow --account fälle" in " ".join(exhausted.split())
    refused = tacit("ask", "--count", "--epsilon", "1", "--yes", cwd=folder)
    assert "tacit budget grow --account fälle" in " ".join(refused.stderr.split())
    told, _, _ = at_a_terminal(folder, "ask", "--count", "--by", "Patient", "--epsilon", "1")
    assert " ".join(told.split()).index("tacit budget grow") < told.index("Which values can Patient have?")


@pytest.mark.parametrize(
    ("words", "named"),
    [(("--by", "ort"), "Ort"), (("--mean", "tage"), "Tage"), (("--unit", "Pateint"), "Patient")],
)
def test_a_wrong_column_is_refused_before_anything_else_is_asked(folder, words, named):
    shown, status, _ = at_a_terminal(folder, *SENTENCE, *words, answers=["1"])
    assert status == 2, shown
    assert f"there is no column '{words[1]}'" in shown
    assert f"{named}? one of" in shown
    assert shown.count("Number (") == 1  # the encoding alone, without which the header cannot be read


def test_a_missing_file_is_fixed_in_the_same_line(folder):
    refused = tacit("ask", "fale.csv", *SENTENCE[2:], cwd=folder)
    assert "the file fale.csv does not exist" in refused.stderr
    assert fix_of(refused) == list(SENTENCE)
