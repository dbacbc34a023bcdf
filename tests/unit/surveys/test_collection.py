"""At the collector: the same reports from every source, and every bad report refused."""

import json
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit as tc
from tacit.errors import TacitError

QUESTIONS = {"smokes": ["no", "yes"], "state": [f"s{i}" for i in range(30)], "age": (18, 90), "word": 3000}
POLL = tc.survey("poll", QUESTIONS, epsilon=2)
COIN = tc.survey("coin", ["no", "yes"], epsilon=1)
TWO = tc.survey("two", {"used": ["no", "yes"], "drinks": ["no", "yes"]}, epsilon=1, strategy="split")


@pytest.fixture(scope="module")
def reports():
    rng = np.random.default_rng(0)
    n = 400
    truth = {
        "smokes": rng.choice(["no", "yes"], n),
        "state": rng.choice(QUESTIONS["state"], n),
        "age": rng.uniform(18, 90, n),
        "word": rng.integers(0, 3000, n),
        "region": rng.choice(["north", "south"], n),
        "income": rng.normal(3000, 10, n),
    }
    return POLL.randomize(truth, public=["region", "income"], invitations=range(n))


def same(one, other):
    assert one.respondents == other.respondents
    for name, (rows, own) in one.answered.items():
        assert (rows == other.answered[name].rows).all()
        assert (own == other.answered[name].reports).all()
    assert one.invitations == other.invitations
    for name, values in one.public.items():
        assert (values == other.public[name]).all()


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_files_give_the_same_reports_back(reports, suffix, tmp_path):
    path = tmp_path / f"reports.{suffix}"
    reports.save(path)
    same(reports, POLL.collect(path))
    same(reports, POLL.collect(str(path)))


def test_data_frames_give_the_same_reports_back(reports):
    frame = reports.to_pandas()
    same(reports, POLL.collect(frame))
    same(reports, POLL.collect(pl.from_pandas(frame)))
    same(reports, POLL.collect({name: frame[name].tolist() for name in frame.columns}))
    same(reports, POLL.collect(reports))


def test_documents_and_releases_are_collected():
    releases = [COIN.answer("yes", invitation=i).release() for i in range(5)]
    for source in (releases, [r.content for r in releases], [r.content.to_json() for r in releases]):
        assert COIN.collect(source).respondents == 5
    assert COIN.collect(releases[0]).respondents == 1
    assert COIN.collect(releases[0].content.to_json()).respondents == 1


def document(**changes):
    whole = {"schema": "tacit/report/1", "survey": COIN.digest, "invitation": None}
    return whole | {"answers": {"answer": [1]}} | changes


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"answers": {"answer": [2]}}, "bad-report"),
        ({"answers": {"answer": [0, 1]}}, "bad-report"),
        ({"answers": {"answer": "yes"}}, "bad-report"),
        ({"answers": {"answer": [0.5]}}, "bad-report"),
        ({"answers": {"other": [1]}}, "bad-report"),
        ({"answers": [1]}, "bad-report"),
        ({"schema": "tacit/report/9"}, "bad-report"),
        ({"public": [1]}, "bad-report"),
        ({"survey": "0" * 64}, "other-survey"),
        ({"survey": "0" * 64, "epsilon": "2"}, "mixed-epsilons"),
        ({"epsilon": "nonsense"}, "mixed-epsilons"),
        ({"epsilon": "1e999999999"}, "mixed-epsilons"),  # a number with a billion digits
    ],
)
def test_a_bad_report_is_refused(changes, code):
    assert COIN.collect([document(), document()]).respondents == 2
    with pytest.raises(TacitError) as refusal:
        COIN.collect([document(), document(**changes)])
    assert refusal.value.code == code


def test_nonsense_is_refused_and_never_crashes():
    rng = np.random.default_rng(3)
    many = tc.survey("many", QUESTIONS, epsilon=1, strategy="split")
    pieces = [
        None,
        True,
        0,
        -1,
        10**30,
        2**63,
        1.5,
        "x",
        "",
        [],
        [1, [2]],
        {"seed": [1], "answer": []},
        [None],
    ]
    for _ in range(300):
        two = [
            {
                "schema": "tacit/report/1",
                "survey": many.digest,
                "answers": {name: pieces[rng.integers(len(pieces))] for name in QUESTIONS},
            }
            for _ in range(2)
        ]
        with suppress(TacitError):
            many.collect(two)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.jsonl", b"\xff\xfe"),
        ("r.csv", b"answer\n\xff\n"),
        ("r.csv", b'answer\n"' + b"1" * 200_000 + b'"\n'),
        ("r.parquet", b"PAR1 but nothing else"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TacitError) as refusal:
        COIN.collect(tmp_path / name)
    assert refusal.value.code == "bad-report"


def test_a_line_ends_only_where_a_line_of_json_ends(tmp_path):
    path, invitation = tmp_path / "reports.jsonl", "a\u2028b\x85c"
    lines = [json.dumps(document(invitation=invitation + end), ensure_ascii=False) for end in "xy"]
    path.write_text("\r\n".join(lines), encoding="utf-8", newline="")
    assert COIN.collect(path).invitations == (invitation + "x", invitation + "y")


def test_another_survey_and_another_epsilon_are_told_apart():
    other = tc.survey("other", ["no", "yes"], epsilon=1).answer("no").release()
    louder = tc.survey("coin", ["no", "yes"], epsilon=2).answer("no").release()
    for release, code in ((other, "other-survey"), (louder, "mixed-epsilons")):
        with pytest.raises(TacitError) as refusal:
            COIN.collect([release])
        assert refusal.value.code == code


def test_an_invitation_counts_once():
    twice = [COIN.answer("yes", invitation=i).release() for i in (1, 2, 1)]
    with pytest.raises(TacitError) as refusal:
        COIN.collect(twice)
    assert refusal.value.code == "invitation-reused"
    assert refusal.value.what.startswith("1 report has ")
    kept = COIN.collect(twice, repeated="first")
    assert kept.invitations == ("1", "2")
    assert kept.answered["answer"].reports[0].tolist() == twice[0].answers["answer"]
    with pytest.raises(TacitError, match='"refuse" or "first"'):
        COIN.collect(twice, repeated="last")


def test_a_chosen_seed_is_refused():
    big = tc.survey("words", 5000, epsilon=1)
    report = big.answer(7, invitation="A").release().content.to_json()
    assert big.collect([report]).respondents == 1
    report["answers"]["answer"]["seed"] = [0, 0]  # supports every answer at once
    with pytest.raises(TacitError, match="does not belong to its invitation"):
        big.collect([report])


def test_whoever_answers_several_questions_where_one_is_asked_is_refused(reports):
    frame = reports.to_pandas()
    frame["smokes"] = 1
    with pytest.raises(TacitError, match="asks each respondent one"):
        POLL.collect(frame)


def test_a_table_needs_the_columns_of_the_survey(tmp_path):
    with pytest.raises(TacitError, match="no column with the name of a question"):
        COIN.collect(pd.DataFrame({"answers": [1]}))
    (tmp_path / "bad.csv").write_text("answer,answer\n1,1\n")
    (tmp_path / "bad.jsonl").write_text("{\n")
    (tmp_path / "bad.xml").write_text("<a/>")
    (tmp_path / "words.csv").write_text("answer\nyes\n")
    for name in ("bad.csv", "bad.jsonl", "bad.xml", "words.csv", "none.csv"):
        with pytest.raises(TacitError):
            COIN.collect(tmp_path / name)
    with pytest.raises(TacitError, match="source must be"):
        COIN.collect(5)


def test_answers_that_are_missing_are_left_out(tmp_path):
    (tmp_path / "some.csv").write_text("used,drinks,region\n1,1,a\n,0,b\n0,,a\n")
    found = TWO.collect(tmp_path / "some.csv")
    assert found.respondents == 3
    assert found.answered["used"].rows.tolist() == [0, 2]
    frame = pd.DataFrame({"used": [1.0, None, 0.0], "drinks": [0, 1, 1]})
    assert TWO.collect(frame).answered["used"].rows.tolist() == [0, 2]


def refused(survey, source, **more):
    with pytest.raises(TacitError) as refusal:
        survey.collect(source, **more)
    return refusal.value


def test_a_report_without_an_answer_is_refused_and_named(tmp_path):
    (tmp_path / "some.csv").write_text("answer,region\n1,a\n,b\n0,a\n")
    assert (
        refused(COIN, tmp_path / "some.csv").what == "report 2 (line 3 of some.csv): it answers no question"
    )
    assert refused(COIN, pd.DataFrame({"answer": [1.0, None, 0.0]})).what.startswith("report 2: ")
    assert refused(COIN, [document(answers={})]).code == "bad-report"


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_what_spreadsheets_write_is_read(tmp_path, sign, mark):
    lines = [
        ["used", " drinks", "invitation", "region "],
        ["1", "0", "a", "n"],
        ["0", "1", "b", "s"],
        [""] * 4,
    ]
    text = mark + "\r\n".join(sign.join(line) for line in lines) + "\r\n"
    (tmp_path / "r.csv").write_bytes(text.encode())
    found = TWO.collect(tmp_path / "r.csv")
    assert found.answered["used"].reports.ravel().tolist() == [1, 0]
    assert found.invitations == ("a", "b")
    assert set(found.public) == {"region"}


def test_json_lines_may_start_with_a_mark(tmp_path):
    (tmp_path / "r.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(document()).encode())
    assert COIN.collect(tmp_path / "r.jsonl").respondents == 1


def test_a_name_in_other_capitals_is_refused():
    for name, meant in (("Used", "used"), ("INVITATION", "invitation"), (" used", "used")):
        found = refused(TWO, {"drinks": [1], name: [1]})
        assert found.code == "bad-report"
        assert f"did you mean {meant}?" in str(found.fix)


def test_a_bad_report_is_named_by_its_number_and_line_and_nothing_else(tmp_path):
    many = [document() for _ in range(100)]
    many[73] = document(answers={"answer": [7654]})
    found = refused(COIN, many)
    assert found.what.startswith("report 74, answer: ")
    assert "7654" not in str(found)
    (tmp_path / "r.jsonl").write_text("\n\n".join(map(json.dumps, many)))
    assert refused(COIN, tmp_path / "r.jsonl").what.startswith("report 74 (line 147 of r.jsonl), answer: ")
    (tmp_path / "r.csv").write_text("answer\n0\nyes\n")
    assert refused(COIN, tmp_path / "r.csv").what.startswith("report 2 (line 3 of r.csv): ")
    (tmp_path / "r.csv").write_text("answer,x\n0,1\n0\n")
    assert "line 3" in refused(COIN, tmp_path / "r.csv").what
    (tmp_path / "r.jsonl").write_text(json.dumps(many[0]) + "\n{\n")
    assert "line 2" in refused(COIN, tmp_path / "r.jsonl").what
    assert refused(COIN, [document(), document(survey="0" * 64)]).what.startswith("report 2 belongs")


@pytest.mark.parametrize("given", [True, [True], [0, False], "true", np.True_])
def test_true_and_false_are_not_reports(given):
    dice = tc.surveys.question(["no", "yes"], randomizer=tc.mechanisms.Design.warner("3/4"))
    for survey in (COIN, tc.survey("dice", {"answer": dice}, epsilon=2)):
        assert refused(survey, {"answer": [0, given]}).code == "bad-report"


def test_only_invitations_that_were_sent_count():
    reports = [document(invitation=one) for one in ("a", "b")]
    assert COIN.collect(reports, invitations=["a", "b", "c"]).respondents == 2
    assert refused(COIN, reports, invitations=["a"]).what.startswith("report 2: its invitation")
    assert refused(COIN, [document()], invitations=["a"]).what.startswith("report 1: its invitation")
    frame = {"answer": [0, 1], "invitation": [1, 2]}
    assert COIN.collect(frame, invitations=range(3)).respondents == 2


def test_a_file_name_says_the_form(reports, tmp_path):
    with pytest.raises(TacitError, match=r"jsonl, \.csv or \.parquet"):
        reports.save(tmp_path / "reports.xlsx")


def test_a_line_of_json_is_the_documented_report(reports, tmp_path):
    reports.save(tmp_path / "r.jsonl")
    first = json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])
    assert first["schema"] == "tacit/report/1"
    assert first["invitation"] == "0"
    assert set(first["public"]) == {"region", "income"}


def test_a_stray_quotation_mark_does_not_hide_the_reports_after_it(tmp_path):
    (tmp_path / "r.csv").write_text('answer,region\n0,north\n1,"south\n1,north\n0,south\n', encoding="utf-8")
    with pytest.raises(TacitError) as refused:
        COIN.collect(tmp_path / "r.csv")
    assert refused.value.code == "bad-report"
