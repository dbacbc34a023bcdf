"""``tc.start``: a dataset, the price of a first question and the answer, in one call."""

import pandas as pd
import pytest

import tacit as tc
from tacit.ledger import Ledger
from tacit.tables import csv_file

BUDGET = tc.Budget(epsilon=1000, delta=1e-5)
ROWS = [f"{i % 500};{'Nord' if i % 3 else 'Süd'};{i % 7},5" for i in range(3000)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "fälle.csv"
    path.write_text("\n".join(["Patient;Ort;Tage", *ROWS]), encoding="latin-1")
    return csv_file(path, encoding="latin-1", decimal=",")


def asked(file, **given):
    facts = {"unit": "Patient", "mean": "Tage", "epsilon": 500, "limits": {"rows": 6}, "budget": BUDGET}
    return tc.start(file, **{**facts, **given})


def test_one_call_shows_the_price_charges_and_answers(file, capsys, tmp_path):
    data, release = asked(file, by="Ort", keys={"Ort": ["Nord", "Süd"]}, count=True)
    shown = capsys.readouterr().out
    assert shown.startswith("plan for fälle: epsilon 500")
    assert "finds the bounds of Tage privately" in shown
    assert list(release.columns) == ["mean_Tage", "n"]
    assert release.keys["Ort"] == ("Nord", "Süd")
    assert release["n"].value == pytest.approx((2000, 1000), abs=2)
    assert release["mean_Tage"].value == pytest.approx((3.5, 3.5), abs=0.1)
    assert data.remaining.epsilon == 500
    assert (tmp_path / "tacit.ledger").exists()


def test_the_next_call_takes_the_budget_from_the_ledger_and_the_same_call_is_free(file):
    asked(file, epsilon=10)
    data, _ = asked(file, epsilon=10, budget=None, sum="Tage", mean=None)
    assert data.remaining.epsilon == 980
    data, _ = asked(file, epsilon=10, budget=None)
    assert data.remaining.epsilon == 980


def test_it_charges_as_the_question_that_it_stands_for(file):
    data, release = asked(file, bounds={"Tage": (0, 30)}, count=True)
    same = data.agg(n=tc.count(), tage=tc.mean("Tage")).plan(epsilon=500)
    assert release.certificate.plan == same.hash


def test_groups_that_are_not_listed_are_found_with_a_delta_of_the_budget(file, capsys):
    _, release = asked(file, by="Ort", mean=None, count=True)
    assert release.keys["Ort"] == ("Nord", "Süd")
    assert capsys.readouterr().out.startswith("plan for fälle: epsilon 500, delta 1e-07")


@pytest.mark.parametrize(
    ("given", "code", "fix"),
    [
        ({"budget": None}, "bad-parameter", "tc.start(..., budget=tc.Budget(epsilon=3, delta=1e-06))"),
        ({"mean": None}, "bad-parameter", 'mean="length_of_stay"'),
        ({"mean": "Tag"}, "unknown-column", "Tage"),
        ({"epsilon": 2000}, "budget-exceeded", ""),
        ({"by": "Ort", "budget": tc.Budget(epsilon=1000)}, "not-allowed", 'keys={"Ort": ["A", "B"]}'),
        (
            {"by": "Ort", "mean": None, "count": True, "budget": tc.Budget(epsilon=1000)},
            "keys-missing",
            "tc.start",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_needs_a_decision_is_refused_and_makes_no_ledger(file, capsys, tmp_path, given, code, fix):
    with pytest.raises(tc.TacitError) as refused:
        asked(file, **given)
    assert refused.value.code == code
    assert fix in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fälle.csv"]
    assert capsys.readouterr().out == ""


def test_a_frame_has_no_place_for_a_ledger():
    frame = pd.DataFrame({"Patient": range(100), "Tage": [3.0] * 100})
    with pytest.raises(tc.TacitError, match="say where the budget is kept") as refused:
        asked(frame)
    assert 'ledger="visits.ledger"' in str(refused.value)
    data, release = asked(frame, ledger=Ledger.memory(), name="stays")
    assert data.name == "stays"
    assert release.value == pytest.approx(3, abs=0.1)


def test_the_data_is_not_read_before_the_charge(file, monkeypatch):
    """A ledger that refuses: nothing of the file was read for the question."""
    from tacit.engines.duckdb._engine import DuckDB

    opened = []
    real = DuckDB.transaction
    monkeypatch.setattr(DuckDB, "transaction", lambda self: opened.append(self) or real(self))
    with pytest.raises(tc.TacitError, match="does not fit"):
        asked(file, epsilon=2000)
    assert not opened
    asked(file, epsilon=1)
    assert opened


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ["unit", "epsilon", "mean, sum, median or count", "budget", "ledger"]),
        ({"mean": "Tage", "by": "Ort"}, ["unit", "epsilon", "budget", "ledger", "keys"]),
        ({"mean": "Tage", "by": "Ort", "unit": "Patient", "epsilon": 1}, ["budget", "ledger", "keys"]),
        ({"mean": "Tage", "budget": BUDGET, "epsilon": 1, "ledger": Ledger.memory()}, ["unit"]),
        ({"count": True, "by": "Ort", "budget": BUDGET, "unit": "Patient"}, ["epsilon", "ledger"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_all_that_is_missing_is_refused_at_once(given, words):
    frame = pd.DataFrame({"Patient": range(9), "Tage": [3.0] * 9, "Ort": ["Nord"] * 9})
    with pytest.raises(tc.TacitError) as refused:
        tc.start(frame, **given)
    assert refused.value.what == f"tc.start needs: {'; '.join(words)}"
    for word in words:
        assert f"{word.split(',')[0]}=" in str(refused.value.fix)


@pytest.mark.parametrize(
    ("asked_for", "delta"), [({"mean": "Tage"}, 1e-6), ({"mean": None, "count": True}, 0)]
)
def test_groups_without_a_list_are_refused_with_the_list_to_give_first(file, asked_for, delta):
    with pytest.raises(tc.TacitError) as refused:
        asked(file, by="Ort", budget=tc.Budget(epsilon=1000, delta=delta), **asked_for)
    assert refused.value.what.startswith('list the groups of Ort: keys={"Ort": ["A", "B"]}')


def test_a_delta_finds_groups_where_the_columns_have_bounds(file):
    _, release = asked(file, by="Ort", bounds={"Tage": (0, 10)})
    assert release.keys["Ort"] == ("Nord", "Süd")


def test_a_range_that_is_asked_for_is_found_and_other_facts_reach_the_declaration(file, capsys):
    data, release = asked(
        file, by="Ort", keys={"Ort": ["Nord", "West"]}, bounds={"Tage": "auto"}, count=True, version=3,
        minimum_people=100,
    )  # fmt: skip
    assert "finds the bounds of Tage privately" in capsys.readouterr().out
    assert data.identity.version == 3
    assert data.minimum_people == 100
    assert release.keys["Ort"] == ("Nord",)


def test_the_same_call_again_says_that_it_is_free(file, capsys):
    asked(file)
    assert "already answered" not in capsys.readouterr().out
    asked(file)
    assert "already answered: the same question again is free" in " ".join(capsys.readouterr().out.split())
