"""``tacit limits``: it suggests limits, measures what they cut, and charges like a query."""

import json

import pytest

import tacit as tc
from support.command import tacit


@pytest.fixture(scope="module")
def declared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    lines = [f"{i % 500},{'AB'[i % 2]},{i % 9}" for i in range(2000)]  # four rows each, in one ward
    (folder / "visits.csv").write_text("pid,ward,stay\n" + "\n".join(lines) + "\n")
    done = tacit(
        "init", "visits.csv", "--unit", "pid", "--epsilon", "1000", "--bounds", "stay=0:3", "--limit",
        "rows=2", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_limits_are_suggested_and_paid_for(declared):
    done = tacit("limits", "-e", "100", "--by", "ward", "--json", "--who", "Ana", cwd=declared)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [answer["rows"][0][f"{what}_0.95"] for what in ("rows", "groups")] == [4, 1]
    assert any('limits={"rows": 4}' in line for line in answer["left_out"])
    again = json.loads(tacit("limits", "-e", "100", "--by", "ward", "--json", cwd=declared).stdout)
    assert (again["rows"], again["fresh"]) == (answer["rows"], False)
    with tc.Ledger.open(declared / "tacit.ledger", create=False) as ledger:
        assert ledger.account("visits").spent.epsilon == 100


def test_what_is_cut_is_measured(declared):
    cut = json.loads(tacit("limits", "-e", "100", "--cut", "--json", cwd=declared).stdout)
    assert cut["rows"][0]["rows_beyond_limit"] == pytest.approx(0.5, abs=0.05)
    clipped = tacit("limits", "-e", "100", "--column", "stay", cwd=declared)
    assert "of the values of stay in visits are outside the bounds" in clipped.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--column", "nope"], "no column 'nope'"),
        (["--column", "ward"], "no bounds of 'ward'"),
        (["--by", "ward", "--cut"], "--by suggests a limit"),
        (["--dataset", "other"], "declares no dataset 'other'"),
        (["--table", "labs"], "labs"),
    ],
)
def test_a_wrong_question_about_limits_is_refused_and_not_charged(declared, options, said):
    before = (declared / "tacit.ledger").exists() and (declared / "tacit.ledger").read_bytes()
    done = tacit("limits", "-e", "1", *options, cwd=declared)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert ((declared / "tacit.ledger").exists() and (declared / "tacit.ledger").read_bytes()) == before
