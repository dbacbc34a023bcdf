"""Datasets that are declared without a ledger: a cell that runs twice finds its budget as it left it."""

import pandas as pd
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.ledger import KEPT_IN_MEMORY

PEOPLE = {"id": [f"p{i}" for i in range(500)], "value": [1.0] * 500}


def declared(source, name="reg", **facts):
    return tc.protect(source, **{"name": name, "unit": "id", "budget": tc.Budget(epsilon=1)} | facts)


def frames():
    import polars as pl
    import pyarrow as pa

    return [pd.DataFrame(PEOPLE), pl.DataFrame(PEOPLE), pa.table(PEOPLE)]


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_a_cell_that_runs_twice_gets_the_stored_answer_and_no_second_budget(kind):
    """The averaging attack: ten runs of one cell are one answer, and another question is refused."""
    answers = {declared(frames()[kind]).agg(n=tc.count()).plan(epsilon=1).release().value for _ in range(10)}
    assert len(answers) == 1
    data = declared(frames()[kind])
    assert data.remaining.epsilon == 0
    with pytest.raises(TacitError, match="code: budget-exceeded"):
        data.agg(total=tc.count_units()).plan(epsilon=1).release()


def test_a_file_is_known_again_until_it_changes(tmp_path, monkeypatch):
    file = tmp_path / "reg.csv"
    pd.DataFrame(PEOPLE).to_csv(file, index=False)
    declared(file).agg(n=tc.count()).plan(epsilon=1).release()
    monkeypatch.chdir(tmp_path)
    for spelling in (file, str(file), "reg.csv", "./reg.csv", tc.tables.csv_file(file, decimal=",")):
        assert declared(spelling).remaining.epsilon == 0
    pd.DataFrame(PEOPLE).head(100).to_csv(file, index=False)
    assert declared(file).remaining.epsilon == 1


def test_other_data_of_the_same_name_never_gets_an_answer_about_the_first():
    few, many = pd.DataFrame(PEOPLE).head(10), pd.DataFrame(PEOPLE)
    ask = [declared(one, budget=tc.Budget(epsilon=50)).agg(n=tc.count()) for one in (few, many)]
    first, second = (one.plan(epsilon=50).release().value for one in ask)
    assert second - first > 300


def test_another_declaration_of_the_same_data_is_refused_with_lines_that_work(tmp_path):
    data = pd.DataFrame(PEOPLE)
    declared(data).agg(n=tc.count()).plan(epsilon=1).release()
    for facts in ({"budget": tc.Budget(epsilon=2)}, {"unit": tc.Unit.row()}, {"adjacency": "replace"}):
        with pytest.raises(TacitError, match="declared with the same data before") as refusal:
            declared(data, **facts)
        assert refusal.value.code == "account-differs"
    assert declared(data, budget=tc.Budget(epsilon=1)).remaining.epsilon == 0
    assert declared(data, budget=tc.Budget(epsilon=2), ledger=tmp_path / "reg.ledger").remaining.epsilon == 2


def test_everything_says_that_the_budget_is_forgotten():
    data = declared(pd.DataFrame(PEOPLE))
    plan = data.agg(n=tc.count()).plan(epsilon=0.5)
    release = plan.release()
    for one in (data, plan, release, release.certificate):
        assert KEPT_IN_MEMORY in " ".join(str(one).split()), type(one)
    assert KEPT_IN_MEMORY in plan._repr_html_()
    assert KEPT_IN_MEMORY in release._repr_html_()
    assert release.matches(data._ledger)


def test_a_ledger_that_was_given_says_nothing(tmp_path):
    for ledger in (tc.Ledger.memory(), tmp_path / "reg.ledger"):
        data = declared(pd.DataFrame(PEOPLE), ledger=ledger)
        release = data.agg(n=tc.count()).plan(epsilon=0.5).release()
        assert "memory" not in f"{data}{release}{release.certificate}"
        assert "kept" not in release.certificate.fields["ledger"]


def test_every_kind_of_data_shares_its_budget():
    import numpy as np

    points = pd.DataFrame({"id": ["a", "b"], "lat": [1.0, 2.0], "lon": [1.0, 2.0]})
    edges = pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"]})
    one = tc.Budget(epsilon=1)
    makers = [
        lambda: tc.points(points.copy(), lat="lat", lon="lon", unit="id", box=((0, 0), (3, 3)), budget=one),
        lambda: tc.graph(edges.copy(), unit=tc.Unit.edge(), nodes=["x", "y", "z"], budget=one),
        lambda: tc.learn.examples(np.ones((4, 2)), np.ones(4), unit=tc.Unit.row(), size=4, budget=one),
    ]
    for make in makers:
        first = make()
        first._ledger.charge(first.name, tc.Cost.pure(1))
        assert make().remaining.epsilon == 0
        assert KEPT_IN_MEMORY in repr(first)


def test_a_stream_without_a_folder_says_that_its_budget_is_forgotten():
    flu = tc.stream(None, name="flu", level="event", start="2026-01-01", days=3, budget=tc.Budget(epsilon=1))
    assert KEPT_IN_MEMORY in repr(flu)


def test_a_second_account_for_the_same_file_is_noticed(tmp_path):
    file, where = tmp_path / "stays.csv", tmp_path / "study.ledger"
    pd.DataFrame(PEOPLE).to_csv(file, index=False)
    (tmp_path / "link.csv").symlink_to(file)
    first = declared(file, "stays", ledger=where)
    assert "another account" not in f"{first}{first.agg(n=tc.count()).plan(epsilon=1)}"
    for source in (str(file), tmp_path / "link.csv", tc.tables.csv_file(file)):
        second = declared(source, "stays2", ledger=where)
        for shown in (second, second.agg(n=tc.count()).plan(epsilon=1)):
            told = " ".join(str(shown).split())
            assert "another account (stays) of this ledger was opened for the same source" in told
    other = tmp_path / "other.csv"
    pd.DataFrame(PEOPLE).to_csv(other, index=False)  # equal contents: what is in a file is never compared
    assert "another account" not in str(declared(other, "third", ledger=where))
    with tc.Ledger.open(where) as ledger:
        facts = [entry.body for entry in map(ledger.entry, (1, 2, 3))]
        assert "stays.csv" not in str(facts)


def test_accounts_that_share_the_account_above_them_have_one_budget(tmp_path):
    file, one = tmp_path / "stays.csv", tc.Budget(epsilon=1)
    pd.DataFrame(PEOPLE).to_csv(file, index=False)
    ledger = tc.Ledger.memory()
    ledger.create_account("study", unit="id", budget=one)
    for name in ("stays", "stays2"):
        data = declared(file, name, ledger=ledger, parent="study")
    assert "another account" not in str(data)
