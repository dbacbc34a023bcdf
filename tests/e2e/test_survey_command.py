"""`tacit survey`: design, form, collect and report, as a person would run them."""

import json

import pytest

import tacit as tc
from support.command import tacit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A survey that the command has designed, and 4,000 reports."""
    place = tmp_path_factory.mktemp("survey")
    made = tacit(
        "survey", "design", "poll.json", "--question", "smokes=no,yes", "-q", "mood=1:5",
        "-q", "age=18..90", "--text", "smokes=Do you smoke?", "-e", "2", "--strategy", "split", cwd=place,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "tacit survey form poll.json" in made.stdout
    assert "epsilon 2 for each respondent" in made.stdout
    poll = tc.surveys.load(place / "poll.json")
    answers = {
        "smokes": ["no", "no", "no", "yes"] * 1000,
        "mood": [1, 3, 3, 5] * 1000,
        "age": [20, 40, 50, 70] * 1000,
    }
    answers["region"] = ["north", "south"] * 2000
    poll.randomize(answers, public=["region"], invitations=range(4000)).save(place / "all.jsonl")
    return place


def test_the_design_is_the_survey_that_python_would_make(folder):
    poll = tc.surveys.load(folder / "poll.json")
    assert [(q.name, q.kind) for q in poll.questions] == [
        ("smokes", "choice"),
        ("mood", "scale"),
        ("age", "number"),
    ]
    assert poll["smokes"].text == "Do you smoke?"
    assert poll.name == "poll"


def test_the_form_is_one_file(folder):
    made = tacit("survey", "form", "poll.json", "--title", "Health", "--invitation", cwd=folder)
    assert made.returncode == 0, made.stderr
    page = (folder / "poll.html").read_text(encoding="utf-8")
    assert "<title>Health</title>" in page
    assert tc.surveys.load(folder / "poll.json").digest in page


def test_reports_from_many_files_are_checked_and_written_once(folder):
    lines = (folder / "all.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "in").mkdir()
    for number, line in enumerate(lines[:5]):
        (folder / "in" / f"{number}.json").write_text(line, encoding="utf-8")
    (folder / "rest.jsonl").write_text("\n".join(lines[5:]), encoding="utf-8")
    got = tacit("survey", "collect", "poll.json", "in", "rest.jsonl", "--json", cwd=folder)
    assert got.returncode == 0, got.stderr
    assert json.loads(got.stdout)["respondents"] == 4000
    again = tacit("survey", "collect", "poll.json", "in", "in", "--out", "twice.jsonl", cwd=folder)
    assert again.returncode == 2
    assert not (folder / "twice.jsonl").exists()
    first = tacit(
        "survey", "collect", "poll.json", "in", "in", "--out", "once.csv", "--repeated", "first", cwd=folder
    )
    assert first.returncode == 0, first.stderr
    assert tc.surveys.load(folder / "poll.json").collect(folder / "once.csv").respondents == 5


def test_the_report_has_shares_means_and_intervals(folder):
    shown = tacit("survey", "report", "poll.json", "all.jsonl", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "smokes" in shown.stdout
    assert "\n\nmood: estimated mean" in shown.stdout
    drawn = tacit(
        "survey", "report", "poll.json", "all.jsonl", "-q", "smokes", "--by", "region", "--plot", "bars.png",
        "--json", cwd=folder,
    )  # fmt: skip
    assert drawn.returncode == 0, drawn.stderr
    [table] = json.loads(drawn.stdout)
    assert "smokes" in table["title"]
    assert [(row["group"], row["answer"]) for row in table["rows"]][:2] == [("north", "no"), ("north", "yes")]
    assert all(0 <= row["low"] <= row["high"] <= 1 for row in table["rows"])
    assert table["epsilon"] == 2
    assert (folder / "bars.png").stat().st_size > 5000
    said = tacit("survey", "report", "poll.json", "all.jsonl", "-q", "mood", "--plot", "m.png", cwd=folder)
    assert "written: m.png" in said.stdout


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["design", "x.json", "--question", "smokes", "--epsilon", "1"], "has no name and answers"),
        (
            ["design", "x.json", "--question", "s=@none.txt", "--epsilon", "1"],
            "none.txt does not exist",
        ),
        (["design", "x.json", "--question", "drinks", "--epsilon", "1"], '--question "drinks=no,yes"'),
        (["design", "x.json", "--question", "age=90..18", "--epsilon", "1"], '--question "age=18..90"'),
        (
            ["design", "x.json", "--question", "s=no,yes", "--text", "t=Really?", "--epsilon", "1"],
            "not in the survey",
        ),
        (
            ["design", "x.json", "--question", "s=no,yes", "--text", "t=Really?", "--epsilon", "1"],
            "one of: s",
        ),
        (["design", "x.json", "--question", "s=no", "--epsilon", "1"], "question 's'"),
        (["form", "x.json"], "the file x.json does not exist"),
        (["report", "poll.json", "none.csv"], "none.csv does not exist"),
        (["report", "poll.json", "all.jsonl", "--plot", "x.png"], "--question smokes"),
        (["report", "poll.json", "all.jsonl", "--plot", "x.png"], "a picture shows one question"),
        (["form", "poll.json", "--post-to", "http://example.org"], "https://"),
    ],
)
def test_what_is_not_right_is_refused_and_nothing_is_written(folder, words, part):
    refused = tacit("survey", *words, cwd=folder)
    assert refused.returncode == 2
    assert part in " ".join(refused.stderr.split())
    assert not (folder / "x.json").exists()


def test_a_file_with_another_survey_is_replaced_only_with_force(tmp_path):
    words = ["survey", "design", "poll.json", "--epsilon", "1", "--question"]
    assert tacit(*words, "smokes=no,yes", cwd=tmp_path).returncode == 0
    assert tacit(*words, "smokes=no,yes", cwd=tmp_path).returncode == 0  # the same survey
    before = (tmp_path / "poll.json").read_bytes()
    refused = tacit(*words, "drinks=no,yes", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert (tmp_path / "poll.json").read_bytes() == before
    assert tacit(*words, "drinks=no,yes", "--force", cwd=tmp_path).returncode == 0
    assert "drinks" in (tmp_path / "poll.json").read_text()


def test_collected_reports_are_not_read_again(tmp_path):
    poll = tc.survey("poll", ["no", "yes"], epsilon=1)
    poll.save(tmp_path / "poll.json")
    (tmp_path / "in").mkdir()
    poll.collect({"answer": [0, 1, 1]}).save(tmp_path / "in" / "a.jsonl")
    words = ["survey", "collect", "poll.json", "in", "--out", "in/all.jsonl"]
    for _ in range(2):
        got = tacit(*words, cwd=tmp_path)
        assert got.returncode == 0, got.stderr
        assert "invitation, so repeated reports cannot be found" in got.stdout
    assert poll.collect(tmp_path / "in" / "all.jsonl").respondents == 3
    same = tacit("survey", "collect", "poll.json", "in/all.jsonl", "--out", "in/all.jsonl", cwd=tmp_path)
    assert same.returncode == 2


def test_only_reports_with_an_invitation_from_the_list_are_collected(tmp_path):
    poll = tc.survey("poll", ["no", "yes"], epsilon=1)
    poll.save(tmp_path / "poll.json")
    poll.randomize(["no"] * 3, invitations="abc").save(tmp_path / "r.csv")
    words = ["survey", "collect", "poll.json", "r.csv", "--invitations", "sent.txt"]
    assert "the file sent.txt does not exist" in tacit(*words, cwd=tmp_path).stderr
    for sent, code in (("a\nb\nc\nd\n", 0), ("a\nc\n", 2)):
        (tmp_path / "sent.txt").write_text(sent)
        got = tacit(*words, cwd=tmp_path)
        assert got.returncode == code, got.stderr
    assert "report 2 (line 3 of r.csv)" in got.stderr
    assert "repeated reports cannot be found" not in got.stdout


def test_a_question_without_reports_does_not_hide_the_others(tmp_path):
    poll = tc.survey("poll", {"used": ["no", "yes"], "drinks": ["no", "yes"]}, epsilon=1)
    poll.save(tmp_path / "poll.json")
    (tmp_path / "r.csv").write_text("used\n0\n1\n1\n")
    got = tacit("survey", "report", "poll.json", "r.csv", cwd=tmp_path)
    assert got.returncode == 0, got.stderr
    assert "used: estimated shares" in got.stdout
    assert "No reports yet: drinks." in got.stdout


def test_reports_whose_names_have_no_ending_are_collected(tmp_path):
    poll = tc.survey("poll", ["no", "yes"], epsilon=1)
    poll.save(tmp_path / "poll.json")
    (tmp_path / "in").mkdir()
    for number, name in enumerate(("raa", "rab", "rac.JSON")):
        document = poll.answer("yes", invitation=number).release().content.to_json()
        (tmp_path / "in" / name).write_text(json.dumps(document, indent=1), encoding="utf-8")
    poll.collect({"answer": [0, 1]}).save(tmp_path / "lines.jsonl")
    (tmp_path / "lines.jsonl").rename(tmp_path / "in" / "lines")
    for name in (".DS_Store", "notes.txt"):
        (tmp_path / "in" / name).write_text("not a report", encoding="utf-8")
    got = tacit("survey", "collect", "poll.json", "in", "--json", cwd=tmp_path)
    assert got.returncode == 0, got.stderr
    assert json.loads(got.stdout)["respondents"] == 5
    assert "notes.txt" in got.stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("{}", encoding="utf-8")
    none = tacit("survey", "collect", "poll.json", "other", cwd=tmp_path)
    assert none.returncode == 2
    assert "a.txt" in none.stderr
