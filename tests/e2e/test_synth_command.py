"""`tacit synth`: a price without a charge, rows in a file, the same rows again for free."""

import csv
import json
from fractions import Fraction

import pandas as pd
import pytest

from support.command import tacit


@pytest.fixture
def folder(tmp_path):
    people = pd.DataFrame(
        {"id": range(900), "sex": ["F", "M", "F"] * 300, "age": [k % 80 for k in range(900)], "note": "x"}
    )
    people.to_csv(tmp_path / "people.csv", index=False)
    made = tacit(
        "init", "people.csv", "--unit", "id", "--epsilon", "3", "--delta", "1e-5", "--keys", "sex=F,M",
        "--bounds", "age=0:80", "--limit", "rows=1", cwd=tmp_path,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return tmp_path


ASKED = ("synth", "age,sex", "--bins", "age=4", "--never", "sex=", "--epsilon", "1", "--delta", "1e-6")


def test_a_plan_charges_nothing(folder):
    shown = tacit(*ASKED, "--plan", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "age x sex" in shown.stdout
    assert not (folder / "tacit.ledger").exists()


def test_rows_are_written_and_asking_again_is_free(folder):
    first = tacit(*ASKED, "--out", "rows.csv", "--certificate", "c.json", "--rows", "50", cwd=folder)
    assert first.returncode == 0, first.stderr
    with (folder / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 50
    assert {row["sex"] for row in rows} == {"F", "M"}
    again = tacit(*ASKED, "--out", "again.csv", "--rows", "50", "--json", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert (folder / "again.csv").read_text() == (folder / "rows.csv").read_text()
    told = json.loads(again.stdout)
    assert told["release"]["steps"]
    assert Fraction(told["left"]["epsilon"]) > 1.5  # charged once
    assert tacit("verify", "c.json", cwd=folder).returncode == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [(["--bins", "age=many"], "--bins"), (["--never", "M"], "--never"), (["--method", "gan"], "method")],
)
def test_refusals_say_what_to_type(folder, more, words):
    refused = tacit(*ASKED, *more, cwd=folder)
    assert refused.returncode == 2
    assert words in refused.stderr


def test_free_text_is_refused(folder):
    refused = tacit("synth", "note", "--epsilon", "1", "--delta", "1e-6", cwd=folder)
    assert refused.returncode == 2
    assert "not public" in refused.stderr
