"""The installed command: init, plan, query and verify, with good and bad input."""

import gzip
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import duckdb
import pytest

import tacit as tc
from support.command import ENVIRONMENT, TACIT, tacit
from tacit.tables import load_config, open_config

BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(stay) AS days FROM visits GROUP BY ward"
SECRET = "Zebulon"  # a value of the data that no public fact mentions


def refused(done, *said):
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for text in said:
        assert text in done.stderr
    assert done.stdout == ""


def entries(folder):
    """Return the kinds of the ledger's entries, after checking that it holds."""
    with tc.Ledger.open(folder / "tacit.ledger", create=False) as ledger:
        assert ledger.verify().ok
        return [entry.kind for entry in ledger.history()]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A declared dataset and one release with its certificate, made once by the command and then copied."""
    folder = tmp_path_factory.mktemp("made")
    lines = [f"{i // 2},{'AB'[i % 2]},{i % 9},{SECRET}" for i in range(2000)]
    (folder / "visits.csv").write_text("pid,ward,stay,note\n" + "\n".join(lines) + "\n")
    done = tacit(
        "init", "visits.csv", "--unit", "pid", "--epsilon", "3", "--delta", "1e-6", "--bounds", "stay=0:30",
        "--keys", "ward=A,B", "--limit", "rows=2", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (folder / "tacit.ledger").exists()
    done = tacit("query", BY_WARD, "-e", "1", "--certificate", "a.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def data(made, tmp_path):
    shutil.copy(made / "visits.csv", tmp_path)
    return tmp_path


@pytest.fixture
def declared(made, data):
    shutil.copy(made / "tacit.toml", data)
    return data


@pytest.fixture
def released(made, declared):
    """Epsilon 1 of 3 is spent on BY_WARD; its certificate is a.json."""
    for file in made.iterdir():
        shutil.copy(file, declared)
    return declared


# init


def test_init_writes_a_commented_file_from_the_header_alone(data):
    done = tacit("init", "visits.csv", "--unit", "pid", cwd=data)
    assert done.returncode == 0, done.stderr
    text = (data / "tacit.toml").read_text()
    assert "# stay = [LOW, HIGH]" in text
    assert '# ward = ["A", "B"]' in text
    assert "# budget = " in text
    assert SECRET not in text + done.stdout
    assert "next:" not in done.stdout
    assert "first: set the line `budget = ...`" in done.stdout
    assert "then: tacit plan" in done.stdout
    assert not (data / "tacit.ledger").exists()
    refused(tacit("plan", "SELECT COUNT(*) AS n FROM visits", "-e", "1", cwd=data), "no budget")


def test_init_uses_only_the_first_line_of_a_csv(tmp_path):
    written = []
    for cells in (f"1,{SECRET}\n" * 3, ""):
        (tmp_path / "x.csv").write_text(f"pid,stay\n{cells}")
        done = tacit("init", "x.csv", "--unit", "pid", "--force", cwd=tmp_path)
        written.append(((tmp_path / "tacit.toml").read_text(), done.stdout))
    assert written[0] == written[1]


@pytest.mark.parametrize("body", [b"pid,stay\n\xff\xfe,1\n", b"pid,stay\n1,2,3\n", b'pid,stay\n1,"2\n'])
def test_init_writes_nothing_for_a_file_that_is_not_well_formed(tmp_path, body):
    (tmp_path / "x.csv").write_bytes(body)
    refused(tacit("init", "x.csv", "--unit", "pid", cwd=tmp_path), "line 2 of x.csv breaks the form")
    assert not (tmp_path / "tacit.toml").exists()


def test_convert_lists_what_it_repaired_and_its_file_answers(tmp_path):
    lines = [f"{i},A,3" for i in range(99)] + ['99,"A,3', "100,A,3,4"]
    (tmp_path / "x.csv").write_text("pid,ward,stay\n" + "\n".join(lines) + "\n")
    refused(tacit("convert", "x.csv", "x.parquet", cwd=tmp_path), "line 101 of x.csv breaks the form")
    done = tacit("convert", "x.csv", "x.parquet", "--lenient", cwd=tmp_path)
    assert "repaired: 1 line (line 101)" in done.stdout
    assert "dropped: 1 line (line 102)" in done.stdout
    refused(tacit("convert", "x.csv", "x.parquet", "--lenient", cwd=tmp_path), "exists already")
    words = ("--unit", "pid", "--epsilon", "9", "--limit", "rows=1")
    assert tacit("init", "x.parquet", *words, cwd=tmp_path).returncode == 0
    answer = tacit("query", "SELECT COUNT(*) AS n FROM x", "-e", "9", "--json", cwd=tmp_path)
    assert abs(json.loads(answer.stdout)["rows"][0]["n"] - 100) < 9


def test_the_conversion_that_a_refusal_offers_keeps_how_the_file_is_written(tmp_path):
    text = "pid;größe\n" + "".join(f"{i};{i % 9},5\n" for i in range(99)) + '99;"3,5\n'
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    written = ("--encoding", "latin-1", "--decimal", ",")
    done = tacit("convert", "x.csv.gz", "x.parquet", *written, cwd=tmp_path)
    refused(done, "line 101 of x.csv.gz breaks the form")
    command = re.search(r"fix: tacit (convert .*) \(it repairs", done.stderr)
    assert tacit(*command[1].split(), cwd=tmp_path).returncode == 0
    rows = duckdb.sql(f"FROM '{tmp_path}/x.parquet'")
    assert (rows.columns, rows.fetchall()[0]) == (["pid", "größe"], ("0", "0.5"))


def test_a_packed_file_is_converted_as_it_is_written_and_its_cells_take_bounds(tmp_path):
    text = "pid;größe;tag\n" + "".join(f"{i};{i % 9},5;31.12.2023\n" for i in range(99))
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    written = ("--encoding", "latin-1", "--dates", "day.month.year", "--decimal", ",")
    public = ("--unit", "pid", "-e", "99", "--limit", "rows=1", "--bounds", "größe=0:9")
    done = tacit("init", "x.csv.gz", *public, *written, cwd=tmp_path)
    refused(done, "x.csv.gz is not a CSV file")
    command = re.search(r"fix: tacit (convert .*)", done.stderr)
    assert tacit(*command[1].split(), cwd=tmp_path).returncode == 0
    refused(tacit("init", "x.parquet", *public, *written, cwd=tmp_path), "leave them out, or convert")
    assert tacit("init", "x.parquet", *public, cwd=tmp_path).returncode == 0
    question = "SELECT COUNT(*) AS n, AVG(größe) AS mean FROM x WHERE YEAR(tag) = 2023"
    done = tacit("query", question, "-e", "99", "--json", cwd=tmp_path)
    (row,) = json.loads(done.stdout)["rows"]
    assert abs(row["n"] - 99) < 3
    assert abs(row["mean"] - 4.5) < 0.2


def test_a_csv_with_semicolons_is_asked_like_any_other(tmp_path):
    lines = [f"{i};{'AB'[i % 2]};{i % 9},5;{SECRET}" for i in range(900)]
    (tmp_path / "besuche.csv").write_text("pid;station;tage;notiz\n" + "\n".join(lines) + "\n")
    words = ("--unit", "pid", "--epsilon", "9", "--limit", "rows=1", "--keys", "station=A,B")
    done = tacit("init", "besuche.csv", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "semicolons separate the columns" in done.stdout
    assert '# tage = "KIND"' in (tmp_path / "tacit.toml").read_text()
    question = "SELECT station, COUNT(*) AS n FROM besuche GROUP BY station"
    done = tacit("query", question, "-e", "9", "--json", cwd=tmp_path)
    rows = json.loads(done.stdout)["rows"]
    assert [row["station"] for row in rows] == ["A", "B"]
    assert all(abs(row["n"] - 450) < 20 for row in rows)


def test_a_file_as_german_programs_write_it_is_asked_like_any_other(tmp_path):
    """Each line has an umlaut in Latin-1, semicolons, a decimal comma and a day before its month."""
    lines = [f"{i};{('München', 'Köln')[i % 2]};{3 + i % 4},5;{1 + i % 28}.12.2023" for i in range(1000)]
    text = "\r\n".join(["Fall;Stadt;Tage;Aufnahme", *lines, ""])
    (tmp_path / "fälle.csv").write_bytes(text.encode("latin-1"))
    init = [
        "init", "fälle.csv", "--name", "cases", "--unit", "Fall", "--epsilon", "90", "--limit", "rows=1",
        "--bounds", "Tage=0:60", "--keys", "Stadt=Köln,München", "--type", "Aufnahme=date",
    ]  # fmt: skip
    refused(tacit(*init, cwd=tmp_path), "line 2", "--encoding")
    written = ["--encoding", "latin-1", "--decimal", ",", "--dates", "day.month.year"]
    done = tacit(*init, *written, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sql = (
        "SELECT Stadt, COUNT(*) AS n, AVG(Tage) AS tage FROM cases WHERE Aufnahme >= DATE '2023-12-01' "
        "GROUP BY Stadt"
    )
    asked = tacit("query", sql, "--epsilon", "80", "--json", cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr
    rows = json.loads(asked.stdout)["rows"]
    assert [row["Stadt"] for row in rows] == ["Köln", "München"]
    assert [round(row["n"]) for row in rows] == [500, 500]
    assert [row["tage"] for row in rows] == pytest.approx([5.5, 4.5], abs=0.05)


def test_init_takes_types_from_a_schema(tmp_path):
    from tacit.tables import example_visits

    done = tacit(
        "init", str(example_visits()), "--unit", "patient_id", "--epsilon", "1", "--keys", "age=30,40",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "tacit.toml").read_text()
    assert 'admitted = "date"' in text
    assert "age = [30, 40]" in text  # numbers, as the schema says
    visits = load_config(tmp_path / "tacit.toml")["visits"]
    assert visits.unit == tc.Unit("patient_id")


def test_init_takes_a_table_of_a_database(tmp_path):
    import duckdb

    with duckdb.connect(str(tmp_path / "h.duckdb")) as con:
        con.execute("CREATE TABLE visits AS SELECT 1 AS pid, TRUE AS old, 'x' AS ward")
    words = ("init", "h.duckdb", "--unit", "pid", "--name", "visits", "--epsilon", "5")
    done = tacit(*words, "--keys", "old=true,false", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "old = [true, false]" in (tmp_path / "tacit.toml").read_text()
    done = tacit("query", "SELECT old, COUNT(*) AS n FROM visits GROUP BY old", "-e", "5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_init_writes_any_column_name_as_valid_toml(tmp_path):
    import csv

    names = ["pid", 'a "b"', "c=d", "Größe [cm]", "e\x7f", "#f"]
    with (tmp_path / "my data-1.csv").open("w", newline="") as file:
        csv.writer(file).writerow(names)
    done = tacit(
        "init", "my data-1.csv", "--unit", "pid", "-e", "1", "--bounds", "c=d=-1:1.5", "--type", "#f=date",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts = open_config(tmp_path / "tacit.toml").datasets["my_data_1"]
    assert facts["bounds"] == {"c=d": [-1, 1.5]}
    assert facts["types"] == {"#f": "date"}


def test_init_never_overwrites_unless_forced(declared):
    before = (declared / "tacit.toml").read_bytes()
    refused(tacit("init", "visits.csv", "--unit", "pid", cwd=declared), "exists already", "--force")
    assert (declared / "tacit.toml").read_bytes() == before
    assert tacit("init", "visits.csv", "--unit", "pid", "--force", cwd=declared).returncode == 0
    assert (declared / "tacit.toml").read_bytes() != before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nosuch.csv", "--unit", "pid"), "nosuch.csv does not exist"),
        (("nosuch.csv",), "nosuch.csv does not exist"),
        (("visit.csv",), "tacit init visits.csv --unit COLUMN"),
        (("visits.csv",), "say who is protected"),
        (("visits.csv", "--unit", "pid", "--bounds", "stay"), "--bounds stay=..."),
        (("visits.csv", "--unit", "nosuch"), "nosuch"),
        (("visits.csv", "--unit", "pid", "--bounds", "nosuch=0:1"), "no column 'nosuch'"),
        (("visits.csv", "--unit", "pid", "--bounds", "stay=30:0"), "stay"),
        (("visits.csv", "--unit", "pid", "--type", "stay=colour"), "colour"),
        (("visits.csv", "--unit", "pid", "--limit", "cows=1"), "cows"),
        (("visits.csv", "--unit", "pid", "--epsilon", "-1"), "epsilon"),
        (("visits.csv", "--unit", "pid", "--delta", "1e-6"), "--epsilon"),
        (("visits.txt", "--unit", "pid"), "visits.txt"),
    ],
)
def test_what_init_refuses_leaves_nothing_behind(data, words, said):
    refused(tacit("init", *words, cwd=data), said)
    assert [file.name for file in data.iterdir()] == ["visits.csv"]


# plan


def test_a_plan_shows_cost_noise_error_and_odds_and_touches_nothing(declared):
    (declared / "visits.csv").rename(declared / "elsewhere.csv")
    done = tacit("plan", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "-e", "0.5", cwd=declared)
    assert done.returncode == 0, done.stderr
    for text in ("plan for visits: epsilon 0.5", "discrete Laplace, scale 4", "factor of 1.649", "2 public"):
        assert " ".join(done.stdout.split()).count(text) == 1
    assert "\x1b[" not in done.stdout
    assert not (declared / "tacit.ledger").exists()


def test_a_plan_finds_the_epsilon_for_an_error(declared):
    words = ("SELECT COUNT(*) AS n FROM visits", "--within", "10", "--confidence", "0.99", "--json")
    plan = json.loads(tacit("plan", *words, cwd=declared).stdout)
    assert plan["columns"][0]["error"] <= 10
    assert plan["confidence"] == 0.99
    assert 0.5 < plan["promised"]["epsilon"] < 1.5
    assert len(plan["hash"]) == 64


def test_a_plan_is_the_same_as_in_python(declared):
    shown = json.loads(tacit("plan", BY_WARD, "-e", "0.1", "--json", cwd=declared).stdout)
    visits = load_config(declared / "tacit.toml")["visits"]
    asked = visits.group_by("ward").agg(n=tc.count(), days=tc.mean("stay"))
    assert asked.plan(epsilon=0.1).hash == shown["hash"]


# query


def test_a_query_releases_once_and_keeps_what_was_asked_for(declared):
    words = ("query", BY_WARD, "-e", "1", "--who", "ana", "--purpose", "report")
    files = ("--out", "a.csv", "--plot", "a.png", "--certificate", "a.json")
    done = tacit(*words, *files, cwd=declared)
    assert done.returncode == 0, done.stderr
    assert "charged as entry 2" in done.stdout
    assert (declared / "a.csv").read_text().startswith("ward,n,n_low,n_high,days,days_low,days_high\nA,")
    assert (declared / "a.png").read_bytes().startswith(b"\x89PNG")
    for file in ("a.csv", "a.png", "a.json"):
        assert done.stdout.count(f"written: {file}") == 1
    again = tacit(*words, "--out", "a.parquet", "--json", cwd=declared)
    value = json.loads(again.stdout)
    assert value["fresh"] is False
    assert [row["ward"] for row in value["rows"]] == ["A", "B"]
    assert str(value["rows"][0]["n"]) in (declared / "a.csv").read_text()
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(declared / "a.parquet").num_rows == 2
    assert entries(declared) == ["open", "draw", "release"]
    with tc.Ledger.open(declared / "tacit.ledger", create=False) as ledger:
        assert (ledger.history()[1].who, ledger.history()[1].purpose) == ("ana", "report")
        assert ledger.account("visits").spent.epsilon == 1
    assert tacit("verify", "a.json", cwd=declared).returncode == 0


def test_a_query_writes_a_page_to_hand_on_and_the_facts_beside_a_csv_file(declared):
    done = tacit("query", BY_WARD, "-e", "1", "--out", "report.html", "--out", "a.csv", cwd=declared)
    assert done.returncode == 0, done.stderr
    page = (declared / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "How to verify it" in page
    assert "<bdi>A</bdi>" in page
    beside = json.loads((declared / "a.csv-metadata.json").read_text())["tacit"]
    assert beside["plan"] in page
    assert beside["entry"] == 2


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_terminal_without_unicode_gets_the_answer_and_the_files(declared, encoding):
    words = ("query", BY_WARD, "-e", "1", "--out", "n.csv", "--certificate", "n.json")
    done = tacit(*words, cwd=declared, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "charged as entry" in done.stdout
    assert "| A    |" in done.stdout  # lines that it can draw
    assert "?" not in done.stdout
    assert (declared / "n.csv").exists()
    assert (declared / "n.json").exists()


def test_no_colour_and_no_secret_is_ever_printed(declared):
    done = tacit("query", BY_WARD, "-e", "1", cwd=declared, NO_COLOR="1", FORCE_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert "\x1b[3" not in done.stdout
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("SELECT AVG(nosuch) AS a FROM visits", "-e", "1"), "nosuch"),
        (("SELECT COUNT(*) AS n FROM nosuch", "-e", "1"), "nosuch"),
        (("SELECT AVG(pid) AS a FROM visits", "-e", "1"), "bounds"),
        (("SELECT note, COUNT(*) AS n FROM visits GROUP BY note", "-e", "1"), "keys-missing"),
        (("DROP TABLE visits", "-e", "1"), "code:"),
        (("SELECT COUNT(*) AS n FROM visits",), "there is no default epsilon"),
        (("SELECT COUNT(*) AS n FROM visits", "-e", "1", "--rho", "1"), "epsilon and rho"),
        (("SELECT COUNT(*) AS n FROM visits", "-e", "1", "--out", "a.xlsx"), "--out"),
        (("SELECT COUNT(*) AS n FROM visits", "-e", "1", "--out", "no/a.csv"), "nothing was charged"),
        (("SELECT COUNT(*) AS n FROM visits", "-e", "1", "--plot", "a.gif"), "--plot"),
        (("SELECT COUNT(*) AS n FROM visits", "-e", "1", "--dataset", "nosuch"), "--dataset"),
        (("SELECT COUNT(*) AS n FROM visits", "-e", "1", "--config", "nosuch.toml"), "tacit init"),
    ],
)
def test_a_wrong_question_is_refused_before_anything_is_charged(declared, words, said):
    before = sorted(declared.iterdir())
    refused(tacit("query", *words, cwd=declared), said)
    assert sorted(declared.iterdir()) == before  # not even a ledger


def test_a_missing_file_costs_nothing(declared):
    (declared / "visits.csv").unlink()
    refused(
        tacit("query", BY_WARD, "-e", "1", cwd=declared), "visits.csv does not exist", "nothing was charged"
    )
    assert not (declared / "tacit.ledger").exists()


def test_a_broken_config_is_refused(declared):
    (declared / "tacit.toml").write_text("datasets = [")
    refused(tacit("query", BY_WARD, "-e", "1", cwd=declared), "TOML")
    (declared / "tacit.toml").unlink()
    refused(
        tacit("query", BY_WARD, "-e", "1", cwd=declared),
        "there is no file tacit.toml in this folder",
        "tacit init",
    )


def test_an_exhausted_budget_refuses_and_keeps_what_was_released(released):
    refused(tacit("query", BY_WARD, "-e", "2.5", cwd=released), "budget-exceeded")
    assert entries(released) == ["open", "draw", "release"]
    assert "free" in tacit("query", BY_WARD, "-e", "1", cwd=released).stdout


def test_a_changed_budget_in_the_config_resets_nothing(released):
    config = released / "tacit.toml"
    config.write_text(config.read_text().replace("epsilon = 3", "epsilon = 30"))
    refused(tacit("query", BY_WARD, "-e", "2.5", cwd=released), "account-differs")
    assert entries(released) == ["open", "draw", "release"]


@pytest.mark.parametrize("damage", ["truncated", "changed", "removed"])
def test_a_corrupted_ledger_answers_nothing_and_verifies_nothing(released, damage):
    ledger = released / "tacit.ledger"
    good = ledger.read_bytes()
    if damage == "truncated":
        ledger.write_bytes(good[: len(good) // 2])
    elif damage == "changed":
        bad = good.replace(b'"times":1', b'"times":0', 1)
        assert bad != good
        ledger.write_bytes(bad)
    else:
        ledger.unlink()
    checked = tacit("verify", "a.json", cwd=released)
    assert checked.returncode == 3, checked.stdout + checked.stderr
    assert "NOT verified" in checked.stdout
    if damage != "changed":  # a change deep in the log is found by verify, not by each opening
        refused(tacit("query", BY_WARD, "-e", "0.25", cwd=released), "code: ledger-")
    ledger.write_bytes(good)
    assert entries(released) == ["open", "draw", "release"]  # nothing was lost


def test_ctrl_c_in_the_middle_of_a_query_loses_nothing(tmp_path):
    import duckdb

    many = "SELECT hash(i) % 1500000 AS pid, i % 31 AS stay FROM range(6000000) t(i)"
    duckdb.connect().sql(f"COPY ({many}) TO '{tmp_path / 'visits.parquet'}'")
    words = ("--unit", "pid", "--epsilon", "3", "--bounds", "stay=0:30")
    assert tacit("init", "visits.parquet", *words, cwd=tmp_path).returncode == 0
    process = subprocess.Popen(
        [TACIT, "query", "SELECT AVG(stay) AS days FROM visits", "-e", "1", "--out", "a.csv"],
        cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        if (tmp_path / "tacit.ledger.witness").exists() and entries(tmp_path) == ["open", "draw"]:
            break  # charged, and the data is being read
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (process.returncode, out, err)
    assert out == ""
    assert "interrupted" in err
    assert "Traceback" not in err
    assert not (tmp_path / "a.csv").exists()
    assert entries(tmp_path) == ["open", "draw"]  # the charge stays, nothing was released
    with tc.Ledger.open(tmp_path / "tacit.ledger", create=False) as ledger:
        assert ledger.account("visits").spent.epsilon == 1


# verify


def test_a_certificate_is_verified_against_the_ledger(released):
    for words in ((), ("--ledger", "tacit.ledger")):
        done = tacit("verify", "a.json", *words, cwd=released)
        assert done.returncode == 0, done.stderr
        assert "verified: entry 2" in done.stdout
    assert json.loads(tacit("verify", "a.json", "--json", cwd=released).stdout)["ok"] is True


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("plan",), "0" * 64, "another plan"),
        (("ledger", "hash"), "0" * 64, "another hash"),
        (("ledger", "entry"), 99, "no such entry"),
        (("cost", "parts", 0, "epsilon"), "1/100", "another cost"),
        (("mechanisms", 0, "cost", "parts", 0, "epsilon"), "1/100", "add up"),
        (("dataset", "unit"), "visit_id", "unit"),
        (("dataset", "version"), 2, "version"),
        (("dataset", "adjacency"), "replace", "adjacency"),
    ],
)
def test_a_forged_certificate_is_not_verified(released, where, value, said):
    *path, last = where
    certificate = place = json.loads((released / "a.json").read_text())
    for step in path:
        place = place[step]
    place[last] = value
    (released / "forged.json").write_text(json.dumps(certificate))
    done = tacit("verify", "forged.json", cwd=released)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "NOT verified" in done.stdout
    assert said in done.stdout


def test_a_certificate_of_another_ledger_is_not_verified(released, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "other.ledger"
    with tc.Ledger.open(other) as ledger:
        ledger.create_account("visits", unit="pid", budget=tc.Budget(epsilon=3))
    done = tacit("verify", "a.json", "--ledger", str(other), "--json", cwd=released)
    assert done.returncode == 3
    assert json.loads(done.stdout)["ok"] is False


def test_a_certificate_is_verified_without_reading_the_whole_ledger(released):
    """An edit far from the entry that paid is found by --whole alone; an old copy is always noticed."""
    words = ("query", "SELECT COUNT(*) AS n FROM visits", "-e", "0.25")
    ledger = released / "tacit.ledger"
    old = ledger.read_bytes()
    assert tacit(*words, cwd=released).returncode == 0
    newest = ledger.read_bytes()
    done = tacit("verify", "a.json", cwd=released)
    assert "the others were not checked (--whole checks them)" in " ".join(done.stdout.split())
    whole = tacit("verify", "a.json", "--whole", cwd=released)
    assert "consistent, completeness not proven" in whole.stdout
    with sqlite3.connect(ledger) as connection:
        connection.execute("UPDATE ledger_accounts SET state = replace(state, '5/4', '1/4')")
    connection.close()
    assert tacit("verify", "a.json", cwd=released).returncode == 0
    assert tacit("verify", "a.json", "--whole", cwd=released).returncode == 3
    ledger.write_bytes(old)
    done = tacit("verify", "a.json", cwd=released)
    assert done.returncode == 3
    assert "an old copy took its place" in " ".join(done.stdout.split())
    ledger.write_bytes(newest)
    assert tacit("verify", "a.json", "--whole", cwd=released).returncode == 0


@pytest.mark.parametrize("where", [("promised", "epsilon"), ("software",), ("filter", 0), ("question",)])
def test_an_edit_that_nothing_else_contradicts_is_found(released, where):
    *path, last = where
    certificate = place = json.loads((released / "a.json").read_text())
    for step in path:
        place = place[step]
    place[last] = "edited"
    (released / "forged.json").write_text(json.dumps(certificate))
    assert tacit("verify", "forged.json", cwd=released).returncode == 3


def test_what_verify_cannot_read_is_refused(released):
    (released / "no.json").write_text("{}")
    refused(tacit("verify", "no.json", cwd=released), "bad-certificate")
    refused(tacit("verify", "missing.json", cwd=released), "missing.json does not exist")
    refused(tacit("verify", "a.json", "--ledger", "missing.ledger", cwd=released), "missing.ledger")
    assert not (released / "missing.ledger").exists()


def test_verify_from_another_folder_says_what_to_name(released, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    certificate = str(released / "a.json")
    refused(
        tacit("verify", certificate, cwd=elsewhere),
        "--ledger path/of/tacit.ledger",
        "--config path/of/tacit.toml",
    )
    for option, file in (("--ledger", "tacit.ledger"), ("--config", "tacit.toml")):
        done = tacit("verify", certificate, option, str(released / file), cwd=elsewhere)
        assert done.returncode == 0, done.stderr
        told = " ".join(done.stdout.split())
        assert "verified: entry 2" in told
        assert "The latest entries could still have been cut off" in told


def test_explain_takes_a_certificate_as_it_stands(released):
    done = tacit("explain", "a.json", cwd=released)
    assert done.returncode == 0, done.stderr
    assert done.stdout == tacit("explain", "--certificate", "a.json", cwd=released).stdout
    assert "What epsilon 1 means" in done.stdout
    assert "A release from the dataset visits. It protects all data about one pid together." in done.stdout
    page = tacit("explain", "a.json", "--html", "a.html", cwd=released)
    assert page.returncode == 0, page.stderr
    assert "It protects all data about one pid together" in (released / "a.html").read_text()
    refused(tacit("explain", "none.json", cwd=released), "bad-certificate", "does not exist")
    refused(tacit("explain", "a.json", "--epsilon", "1", cwd=released), "one question")


def test_a_csv_has_the_digits_that_mean_something_and_parquet_all(released):
    import pyarrow.parquet as parquet

    for file in ("a.csv", "a.parquet"):
        done = tacit("query", BY_WARD, "-e", "1", "--out", file, cwd=released)
        assert done.returncode == 0, done.stderr
    lines = (released / "a.csv").read_text().splitlines()
    assert lines[0] == "ward,n,n_low,n_high,days,days_low,days_high"
    exact = parquet.read_table(released / "a.parquet").to_pylist()
    for line, row in zip(lines[1:], exact, strict=True):
        value, low, high = map(float, line.split(",")[4:])
        assert all(len(number.partition(".")[2]) <= 4 for number in line.split(",")[4:])
        assert low <= row["days_low"] <= row["days"] <= row["days_high"] <= high
        assert abs(value - row["days"]) <= (row["days_high"] - row["days_low"]) / 1000


def test_init_speaks_of_the_columns_at_hand(data):
    done = tacit("init", "visits.csv", cwd=data)
    refused(done, "--unit COLUMN, one of: pid, ward, stay, note")
    done = tacit("init", "visits.csv", "--unit", "pid", cwd=data, COLUMNS="200")
    assert "bounds of the columns that you average or sum (ward, stay, note)" in done.stdout
    assert "keys of the columns that you group by (ward, stay, note), if they are public" in done.stdout


@pytest.fixture
def days(tmp_path):
    """Two datasets that share one account, and one whose days are charged apart."""
    rows = [f"{i % 50},2026-01-0{1 + i % 3},{i % 2}" for i in range(300)]
    (tmp_path / "tests.csv").write_text("pid,day,positive\n" + "\n".join(rows) + "\n")
    facts = ('source = "tests.csv"', 'unit = "pid"', 'parent = "hospital"', "budget = {epsilon = 2}")
    shared = "\n".join((*facts, "limits = {rows = 5}\n"))
    (tmp_path / "tacit.toml").write_text(
        f'ledger = "tacit.ledger"\n[datasets.visits]\n{shared}[datasets.labs]\n{shared}'
        '[datasets.tests]\nsource = "tests.csv"\nunit = ""\nbudget = {epsilon = 1}\nblocks = "day"\n'
        'types = {day = "date"}\nbounds = {positive = [0, 1]}\n'
    )
    return tmp_path


def test_datasets_of_a_config_share_an_account(days):
    count = "SELECT COUNT(*) AS n FROM"
    assert tacit("plan", f"{count} visits", "-e", "1", "--dataset", "visits", cwd=days).returncode == 0
    question = ("query", f"{count} visits", "-e", "1.5", "--dataset", "visits")
    missing = tacit(*question, cwd=days)
    refused(missing, "code: unknown-account")
    opening = re.search(r"tacit (budget open .* --unit pid .*)", missing.stderr)[1]
    opened = tacit(*opening.split(), cwd=days)
    assert "opened hospital: epsilon 3" in opened.stdout, opened.stderr
    done = tacit(*question, cwd=days)
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    left = "left: one more question of up to epsilon 0.5; none like this one"
    assert f"{left}; left of hospital, which also pays: epsilon 1.5 of 3" in words
    more = tacit("query", f"{count} labs", "-e", "1.75", "--dataset", "labs", cwd=days)
    refused(more, "account 'hospital'", "code: budget-exceeded")


def test_a_query_about_one_day_reports_what_is_left_of_that_day(days):
    question = "SELECT SUM(positive) AS n FROM tests WHERE day"
    for where, cost, left in (
        ("= '2026-01-01'", "1", "left of block 2026-01-01: nothing of epsilon 1"),
        ("= '2026-01-02'", "0.25", "left of block 2026-01-02: epsilon 0.75 of 1"),
        ("IN ('2026-01-03', '2026-01-02')", "0.25", "left of block 2026-01-02: epsilon 0.5 of 1"),
    ):
        done = tacit("query", f"{question} {where}", "-e", cost, "--dataset", "tests", cwd=days)
        assert left in done.stdout, done.stdout + done.stderr


def test_plan_and_query_report_how_many_questions_of_this_kind_fit(days):
    text = (days / "tacit.toml").read_text().replace('parent = "hospital"\n', "")
    (days / "tacit.toml").write_text(text.replace("{epsilon = 2}", "{epsilon = 2, delta = 1e-6}"))
    asked = ("SELECT COUNT(*) AS n FROM visits", "-e", "0.5", "--dataset", "visits")
    assert (
        "a budget of epsilon 2, delta 1e-6 can pay for this plan 4 times"
        in tacit("plan", *asked, cwd=days).stdout
    )
    assert json.loads(tacit("plan", *asked, "--json", cwd=days).stdout)["fits"] == 4
    done = tacit("query", *asked, cwd=days)
    left = "left: one more question of up to epsilon 1.5; or 3 more like this one"
    assert left in done.stdout, done.stderr
    assert json.loads(tacit("query", *asked, "--json", cwd=days).stdout)["more"] == 3
    assert "like this one" not in tacit("query", *asked, cwd=days).stdout  # a stored answer is free


@pytest.mark.parametrize("after", [0.1, 0.3, 0.5, 0.8])
def test_ctrl_c_while_the_command_starts_shows_no_traceback_of_ours(tmp_path, after):
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit", "explain", "--epsilon", "0.5"],
        cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "tacit/cli" not in err, err  # before main() there is only Python's own start
    if "interrupted" in err:
        assert process.returncode == 130


def test_init_warns_of_a_large_delta(data):
    words = ["init", "visits.csv", "--unit", "pid", "--epsilon", "3", "--force", "--delta"]
    done = tacit(*words, "0.01", cwd=data)
    assert done.returncode == 0
    assert " ".join(done.stdout.split()).count("warning: delta 0.01 is above 0.001") == 1
    assert "warning" not in tacit(*words, "1e-6", cwd=data).stdout


def test_the_tables_of_a_question_show_the_dataset(declared):
    with (declared / "tacit.toml").open("a") as file:
        file.write(
            '\n[datasets.other]\nsource = {stays = "visits.csv", wards = "visits.csv"}\nunit = "pid"\n'
            "budget = {epsilon = 3}\n"
        )
    for command, asked in (("plan", "stays"), ("query", "wards"), ("plan", "visits"), ("query", "VISITS")):
        done = tacit(command, f"SELECT COUNT(*) AS n FROM {asked}", "-e", "0.1", cwd=declared)
        assert done.returncode == 0, done.stderr
    refused(tacit("plan", "SELECT COUNT(*) AS n FROM nowhere", "-e", "1", cwd=declared), "--dataset visits")


@pytest.mark.parametrize("given", ["parts", "parts/*.parquet"])
def test_init_takes_a_folder_of_parquet_files(tmp_path, given):
    pd = pytest.importorskip("pandas")
    (tmp_path / "parts").mkdir()
    for i in range(2):
        frame = pd.DataFrame({"pid": range(50 * i, 50 * i + 50), "age": 40})
        frame.to_parquet(tmp_path / "parts" / f"{i}.parquet")
    done = tacit("init", given, "--unit", "pid", "--epsilon", "1000", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    asked = tacit("query", "SELECT COUNT(*) AS n FROM parts", "-e", "500", "--json", cwd=tmp_path)
    assert json.loads(asked.stdout)["rows"][0]["n"] == 100


def test_init_refuses_a_folder_without_parquet_files(tmp_path):
    (tmp_path / "empty").mkdir()
    refused(tacit("init", "empty", "--unit", "pid", cwd=tmp_path), "holds no Parquet files")


def test_the_values_of_a_release_are_verified(tmp_path):
    """Every number of a saved release is bound: an edited one is not verified."""
    visits = tc.protect(
        tc.tables.example_visits(), name="visits", unit="patient_id", budget=tc.Budget(epsilon=1),
        ledger=tmp_path / "l.ledger",
    )  # fmt: skip
    release = visits.agg(n=tc.count()).plan(epsilon=1).release()
    release.save(tmp_path / "r.json")
    words = ("verify", "r.json", "--ledger", "l.ledger")
    done = tacit(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the certificate was made for the values in this file" in " ".join(done.stdout.split())
    saved = json.loads((tmp_path / "r.json").read_text())
    cells = saved["content"]["columns"]["n"]
    cells["value"] = [999_999]
    edited = json.dumps(saved)
    (tmp_path / "r.json").write_text(edited)
    done = tacit(*words, "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["values"]) == (3, "changed")
    (tmp_path / "r.json").write_text(json.dumps({**saved, "marks": ["rounded"]}))
    assert tacit(*words, cwd=tmp_path).returncode == 3
    del saved["certificate"]["values"]
    (tmp_path / "r.json").write_text(json.dumps(saved))
    done = tacit(*words, cwd=tmp_path)
    assert done.returncode == 3
    assert "what binds the values was removed" in " ".join(done.stdout.split())


def test_a_second_account_for_the_same_file_is_reported(declared):
    """`tacit init --force --name other` opens another budget for a file: the command says so."""
    text = (declared / "tacit.toml").read_text()
    first = re.search(r"\[datasets\.(\w+)\]", text)[1]
    one = tacit("query", f"SELECT COUNT(*) AS n FROM {first}", "--epsilon", "0.1", cwd=declared)
    assert one.returncode == 0, one.stderr
    assert "another account" not in one.stdout
    (declared / "tacit.toml").write_text(text.replace(f"[datasets.{first}", "[datasets.again"))
    two = tacit("query", "SELECT COUNT(*) AS n FROM again", "--epsilon", "0.1", cwd=declared)
    assert two.returncode == 0, two.stderr
    assert f"another account ({first}) of this ledger was opened" in " ".join(two.stdout.split())
