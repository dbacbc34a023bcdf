"""A snapshot that is made before the first question: nothing is charged, and answers are the same."""

import tacit as tc
from tacit.engines import DuckDB


def declared(**more):
    return tc.protect(
        tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=10**9), name="visits",
        ledger=tc.Ledger.memory(), **more,
    )  # fmt: skip


def test_the_snapshot_is_made_at_once_and_the_first_question_uses_it(monkeypatch):
    visits = declared()
    visits.prepare()
    assert visits._engine._ranked == {"visits"}
    assert [entry.kind for entry in visits._ledger.history()] == ["open"]
    made = []
    monkeypatch.setattr("tacit.engines.duckdb._engine.ranked_table", lambda *_, **__: made.append(1))
    visits.agg(n=tc.count()).plan(epsilon=10**6).release()
    assert made == []


def test_without_it_the_second_question_makes_the_snapshot():
    visits = declared()
    visits.agg(n=tc.count()).plan(epsilon=10**6).release()
    assert visits._engine._ranked == set()


def test_answers_are_the_same_with_and_without():
    plain, prepared = declared(), declared()
    prepared.prepare()
    ask = {"n": tc.count(), "s": tc.count("age")}
    values = [
        [round(cells.value[0]) for cells in one.agg(**ask).plan(epsilon=10**6).release().columns.values()]
        for one in (plain, prepared)
    ]
    assert values[0] == values[1]


def test_an_engine_that_never_makes_snapshots_makes_none():
    visits = declared()
    engine = DuckDB(visits._engine._tables, key=1, snapshot=None)
    engine.prepare()
    assert engine._ranked == set()


def test_a_dataset_without_data_has_nothing_to_prepare():
    visits = declared()
    tc.tables.open_facts(visits.public_facts(), visits._ledger).prepare()
