"""`tacit map`, as a person would run it: kinds of regions, files, refusals, and what is charged."""

import json

import pytest

import tacit as tc
from support.command import tacit

BOX = ("--box", *(str(side) for corner in tc.maps.EXAMPLE_BOX for side in corner))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("map")
    lines = (f"{lat},{lon}\n" for lat, lon in tc.maps.example_sites().tolist())
    (place / "sites.csv").write_text("lat,lon\n" + "".join(lines), encoding="utf-8")
    (place / "districts.geojson").write_text(json.dumps(tc.maps.example_districts()), encoding="utf-8")
    return place


def answer(*words, cwd):
    done = tacit("map", "sites.csv", *BOX, *words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def refusal(*words, cwd):
    done = tacit("map", "sites.csv", *BOX, *words, "--json", cwd=cwd)
    assert done.returncode == 2, done.stdout + done.stderr
    return json.loads(done.stdout)["error"]


def test_a_map_is_charged_once_and_written_in_every_format(folder):
    files = [f"map{end}" for end in (".html", ".geojson", ".parquet", ".csv", ".png", ".json")]
    words = ("--grid", "8x6", "--epsilon", "0.5", "--budget", "3", "--name", "once")
    first = answer(*words, *(word for file in files for word in ("--out", file)), cwd=folder)
    assert first["files"] == files
    assert all((folder / file).stat().st_size > 200 for file in files)
    assert first["left"]["epsilon"] == "5/2"
    again = answer("--grid", "8x6", "--epsilon", "0.5", "--name", "once", cwd=folder)  # the budget is known
    assert again["left"] == first["left"]
    assert len(tc.Release.load(folder / "map.json").counts) == 48


@pytest.mark.parametrize(
    "kind",
    [("--tree",), ("--adaptive",), ("--districts", "districts.geojson"), ("--hottest", "3", "--grid", "8x8")],
    ids=lambda kind: kind[0],
)
def test_every_kind_of_map_can_be_planned_without_a_charge(folder, kind):
    made = answer(*kind, "--epsilon", "0.5", "--budget", "3", "--name", "kinds", "--plan", cwd=folder)
    assert made["promised"] == {"epsilon": 0.5}
    assert made["mechanisms"]


def test_a_tree_is_shown_to_people(folder):
    done = tacit(
        "map", "sites.csv", *BOX, "--tree", "--epsilon", "1", "--budget", "1", "--name", "shown", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "boxes" in done.stdout
    assert "left:" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--epsilon", "1", "--budget", "1"), "bad-parameter"),
        (("--grid", "8x8", "--tree", "--epsilon", "1", "--budget", "1"), "bad-parameter"),
        (("--grid", "8by8", "--epsilon", "1", "--budget", "1"), "bad-parameter"),
        (("--grid", "8x8", "--epsilon", "1"), "bad-parameter"),
        (("--tree", "--rho", "0.1", "--budget", "1"), "bad-parameter"),
        (("--tree", "--epsilon", "1", "--budget", "1", "--out", "map.docx"), "bad-parameter"),
        (("--tree", "--epsilon", "1", "--budget", "1", "--out", "nowhere/map.html"), "cannot-write"),
        (("--grid", "8x8", "--epsilon", "1", "--budget", "1", "--lat", "latitude"), "unknown-column"),
    ],
    ids=["none", "two", "shape", "no budget", "rho", "format", "folder", "column"],
)
def test_a_wrong_question_is_refused_before_a_charge(folder, words, code):
    error = refusal(*words, "--name", f"refused {' '.join(words)}", cwd=folder)
    assert error["code"] == code
    assert error["fix"]


def test_a_plan_needs_no_budget_and_makes_no_ledger(folder):
    words = ("map", "sites.csv", *BOX, "--grid", "8x6", "--epsilon", "1", "--plan", "--ledger", "none.ledger")
    done = tacit(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert not list(folder.glob("none.ledger*"))
    assert "left" not in done.stdout
    asked = tacit(*words[:-3], "--budget", "3", "--ledger", "some.ledger", cwd=folder)
    assert asked.returncode == 0, asked.stderr
    done = tacit(*words[:-1], "some.ledger", cwd=folder)
    assert "left now, before this question: epsilon 2 of 3" in done.stdout


@pytest.mark.parametrize(
    "goal", [("--rho", "0.1"), ("--epsilon", "1", "--delta", "1e-6")], ids=["rho", "delta"]
)
def test_the_budget_is_in_the_measure_of_the_first_question(folder, goal):
    left = answer("--grid", "8x6", *goal, "--budget", "1", "--name", f"in {goal[0]}", cwd=folder)["left"]
    assert left["rho" if goal[0] == "--rho" else "delta"] not in {None, "1"}


def test_a_picture_and_a_certificate_are_written_as_by_other_commands(folder):
    words = ("--plot", "plot.svg", "--certificate", "map-certificate.json")
    files = answer("--tree", "--epsilon", "1", "--budget", "1", "--name", "both", *words, cwd=folder)["files"]
    assert files == [words[1], words[3]]
    assert tc.Certificate.load(folder / files[1]).fields["promised"] == {"epsilon": "1"}
