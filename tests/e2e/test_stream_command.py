"""`tacit stream`: open, plan, begin, append, release and status, as a person would run them."""

import json

import pytest

import tacit as tc
from support.command import tacit

OPEN = (
    "stream", "open", "flu", "--level", "person-day", "--unit", "patient", "--start", "2026-01-01",
    "--days", "30", "--epsilon", "1", "--keys", "region=north,south", "--bounds", "temp=30:45",
    "--limit", "rows=2",
)  # fmt: skip
ASK = ("--ask", "cases=count", "--by", "region", "--epsilon", "0.5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A stream that the command has declared and begun, with two days."""
    place = tmp_path_factory.mktemp("stream")
    (place / "rows.csv").write_text("patient,region,temp\n1,north,38\n2,south,39\n", encoding="utf-8")
    for words in (
        OPEN,
        ("stream", "begin", "flu", *ASK, "--who", "ana"),
        ("stream", "append", "flu", "2026-01-01", "rows.csv"),
        ("stream", "append", "flu", "2026-01-02", "--nobody"),
        ("stream", "release", "flu", "2026-01-01"),
    ):
        done = tacit(*words, cwd=place)
        assert done.returncode == 0, done.stderr
    return place


def answer(*words, cwd):
    done = tacit("stream", *words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def refusal(*words, cwd):
    done = tacit("stream", *words, "--json", cwd=cwd)
    assert done.returncode == 2, done.stdout + done.stderr
    return json.loads(done.stdout)["error"]


def test_a_release_has_the_day_and_sums_and_is_stored(folder):
    first = answer(
        "release", "flu", "2026-01-02", "--out", "flu.csv", "--plot", "flu.png", "--certificate", "flu.json",
        cwd=folder,
    )  # fmt: skip
    assert [row["region"] for row in first["rows"]] == ["north", "south"]
    assert {"cases", "cases_7_days", "cases_so_far"} <= set(first["rows"][0])
    assert answer("release", "flu", "2026-01-02", "--plan", "1", cwd=folder)["rows"] == first["rows"]
    assert len((folder / "flu.csv").read_text(encoding="utf-8").splitlines()) == 5  # 2 days, 2 regions
    assert (folder / "flu.png").stat().st_size > 1000
    assert tacit("verify", "flu.json", "--ledger", "tacit.ledger", cwd=folder).returncode == 0
    where = answer("status", "flu", cwd=folder)
    assert where["plans"] == [
        {"number": 1, "asked": "each day: cases = count, by region, of flu", "released": "2026-01-02"}
    ]
    assert where["left"]["epsilon"] == "1/2"


def test_a_plan_shows_price_and_errors_and_charges_nothing(folder):
    before = answer("status", "flu", cwd=folder)["left"]
    made = answer("plan", "flu", "--ask", "n=count", "--ask", "fever=mean(temp)", "-e", "0.2", cwd=folder)
    assert made["promised"] == {"epsilon": 0.2}
    assert {"n", "n_7_days", "n_so_far", "fever"} <= {one["column"] for one in made["columns"]}
    assert answer("status", "flu", cwd=folder)["left"] == before


def test_the_same_plan_again_is_free(folder):
    again = answer("begin", "flu", *ASK, cwd=folder)
    assert again["number"] == 1
    assert again["left"]["epsilon"] == "1/2"


def test_an_alarm_is_free_and_says_how_often_it_is_wrong(folder):
    before = answer("status", "flu", cwd=folder)["left"]
    found = answer("alarm", "flu", "--baseline", "900", "--false-alarm", "0.01", cwd=folder)
    assert found["alarms"] == []
    assert 0 < found["rate"] <= 0.01
    shown = tacit("stream", "alarm", "flu", "--baseline", "0", "--days-before", "3", cwd=folder)
    assert shown.returncode == 2
    assert "--baseline 40, or --days-before 14" in shown.stderr
    assert answer("status", "flu", cwd=folder)["left"] == before


@pytest.mark.parametrize(
    ("words", "code", "fix"),
    [
        (("append", "flu", "2026-01-01", "rows.csv"), "day-closed", "separate stream"),
        (("append", "flu", "2025-12-31", "rows.csv"), "day-outside", "another stream"),
        (("append", "flu", "2026-01-03"), "bad-parameter", "--nobody"),
        (("append", "flu", "2026-01-03", "missing.csv"), "bad-parameter", "name of the file"),
        (("append", "flu", "2026-01-03", "other.csv"), "rows-differ", "patient"),
        (("release", "flu", "2026-01-03"), "day-missing", "--nobody"),
        (("release", "flu", "2026-01-01", "--plan", "7"), "not-begun", "tacit stream status"),
        (("release", "flu", "2026-01-01", "--plot", "x.doc"), "bad-parameter", "--plot answer.png"),
        (("begin", "flu", "--ask", "n=count", "-e", "9"), "budget-exceeded", "--epsilon"),
        (("plan", "flu", "--ask", "n=median(temp)", "-e", "1"), "bad-parameter", "mean"),
        (("plan", "flu", "--ask", "n", "-e", "1"), "bad-parameter", "--ask cases=count"),
        (("plan", "flu", "--ask", "n=count", "-e", "1", "--focus", "hour"), "bad-parameter", "week"),
        (("status", "nowhere"), "stream-differs", "tacit stream open"),
        (("open", "new", "--level", "person", "--unit", "p", *OPEN[7:13]), "missing-limit", "--most-days 3"),
        ((*OPEN[1:-1], "rows=3"), "stream-differs", "another folder"),
    ],
)  # fmt: skip
def test_refusals_are_in_words_of_the_command_and_charge_nothing(folder, words, code, fix):
    (folder / "other.csv").write_text("patient,heat\n1,38\n", encoding="utf-8")
    before = answer("status", "flu", cwd=folder)
    error = refusal(*words, cwd=folder)
    assert error["code"] == code, error
    assert fix in error["fix"]
    assert "stream." not in error["fix"]
    assert answer("status", "flu", cwd=folder) == before


def test_an_alarm_that_was_planned_in_python_is_released_by_the_command(tmp_path):
    flu = tc.stream(
        tmp_path / "flu", name="flu", level="event", start="2026-01-01", days=9, budget=tc.Budget(epsilon=1),
        ledger=tmp_path / "ledger",
    )  # fmt: skip
    flu.begin(flu.silent_alarm(baseline=90).plan(epsilon=1))
    flu.append("2026-01-01", [])
    flu._ledger.close()
    assert answer("release", "flu", "2026-01-01", cwd=tmp_path)["lines"] == [["2026-01-01", [], False, None]]
    assert "1 day was watched" in tacit("stream", "release", "flu", "2026-01-01", cwd=tmp_path).stdout


def test_wrong_files_are_refused_or_replaced(tmp_path):
    (tmp_path / "one.csv").write_text("age\n40\n7\n", encoding="utf-8")
    (tmp_path / "two.csv").write_text("age\n41\n", encoding="utf-8")
    declare = ("--level", "event", "--start", "2026-01-01", "--days", "9", "--epsilon", "1")
    assert refusal("open", "one.csv", *declare, cwd=tmp_path)["code"] == "bad-parameter"
    answer("open", "flu", *declare, cwd=tmp_path)
    misspelt = ("--ask", "n=count", "--where", "agee > 3", "--epsilon", "1")
    assert refusal("begin", "flu", *misspelt, cwd=tmp_path)["code"] == "unknown-column"
    answer("append", "flu", "2026-01-01", "one.csv", cwd=tmp_path)
    assert refusal("append", "flu", "2026-01-02", "one.csv", cwd=tmp_path)["code"] == "rows-twice"
    assert refusal("append", "flu", "2026-01-01", "two.csv", cwd=tmp_path)["code"] == "day-twice"
    answer("append", "flu", "2026-01-01", "two.csv", "--replace", cwd=tmp_path)
    answer("append", "flu", "2026-01-02", "two.csv", "--again", cwd=tmp_path)
