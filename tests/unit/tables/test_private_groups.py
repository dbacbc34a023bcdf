"""Private groups, few or very many: the same integers and the same law, and only shown groups are read."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import neighbours as nb

import tacit as tc
from support.group_parts import compare
from tacit.core import SharedReadings
from tacit.engines import DuckDB
from tacit.mechanisms import KeysBySize, KeySelection
from tacit.tables.planning import _exact_integers


@pytest.fixture
def many(monkeypatch):
    """Every number of groups counts as very many."""
    monkeypatch.setattr(_exact_integers, "MAX_READ", 0)


def task_of(plan):
    [member] = plan._members
    return member.task


@given(nb.neighbouring(), st.data())
@settings(max_examples=8)
def test_groups_by_parts_have_the_integers_of_all_groups_at_once(pair, data):
    _compare_random(pair, data, 3)


@pytest.mark.long
@given(nb.neighbouring(), st.data())
@settings(max_examples=300)
def test_groups_by_parts_have_the_integers_of_all_groups_at_once_over_many_plans(pair, data):
    _compare_random(pair, data, 6)


def _compare_random(pair, data, questions):
    limit = data.draw(nb.limits())
    declared = nb.dataset(pair[1], limit)
    made = nb.engine(pair[1])
    engine = DuckDB(made._tables, key=nb.KEY, snapshot=None, portable=data.draw(st.booleans()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_exact_integers, "MAX_READ", data.draw(st.sampled_from([0, 1, 100])))
        try:
            for _ in range(questions):
                try:
                    question = data.draw(nb.questions(declared)).question
                except tc.TacitError as error:
                    assert error.code == "missing-limit"
                    continue
                if question.by:
                    missing = data.draw(st.booleans())
                    private = replace(question, keys=None, missing=missing, levels=())
                    compare(engine, private, data.draw(st.integers(1, 4)))
        finally:
            engine.close()
            made.close()


VISITS = pd.DataFrame(
    {
        "pid": [1, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 9],
        "word": ["a", None, "a", "b", "", "É", "a|b", "a", "-", None, "b", "b'\\"],
        "number": [0.0, -0.0, 1.5, np.nan, np.inf, -np.inf, 1e300, 5e-324, 2.0, 2.0, 0.0, 3.0],
        "flag": [True, False, None, True, True, None, False, True, True, False, None, True],
        "day": pd.to_datetime(["2024-01-01", None, "2024-01-01 10:00"] + ["0001-01-02"] * 9, errors="coerce"),
        "x": [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, np.nan, 12],
    }
)
GROUPINGS = [["word"], ["number"], ["day"], ["word", "number"], ["flag", "day", "word"]]
TYPES = {"number": "number", "flag": "boolean", "day": "date"}


def asked(by, *, limits=None, missing="drop", frame=VISITS, epsilon=1, **more):
    data = tc.protect(
        frame, unit="pid", limits=limits or {"rows": 3}, types=TYPES, bounds={"x": (0, 12)},
        budget=tc.Budget(epsilon=1e6, delta=0.1), **more,
    )  # fmt: skip
    aggregates = {"n": tc.count(), "s": tc.sum("x"), "m": tc.median("x"), "d": tc.count_distinct("x")}
    return data.group_by(*by, missing=missing).agg(**aggregates).plan(epsilon=epsilon, delta=1e-3)


@pytest.mark.parametrize(
    ("limits", "missing"),
    [({"rows": 3}, "group"), ({"groups": 2, "rows": 3}, "group"), ({"groups": 2, "per_group": 1}, "drop")],
    ids=["rows", "groups", "per group"],
)
@pytest.mark.parametrize("by", GROUPINGS, ids=" ".join)
def test_odd_keys_are_found_by_their_ranks(many, by, limits, missing):
    subject = task_of(asked(by, limits=limits, missing=missing)).subject
    for threshold in (2, 9):
        assert compare(subject.engine, subject.asked, threshold) > 1


@pytest.mark.parametrize("by", GROUPINGS, ids=" ".join)
def test_a_release_of_very_many_groups_shows_what_a_release_of_few_shows(monkeypatch, by):
    """Epsilon is so large that all groups from two units on are shown, with exact numbers."""
    shown = []
    for most in (0, 100_000):
        monkeypatch.setattr(_exact_integers, "MAX_READ", most)
        data = pd.concat([VISITS.assign(pid=VISITS["pid"] + 100 * i) for i in range(9)])
        plan = asked(by, missing="group", frame=data, epsilon=1e4)
        release = plan.release()
        columns = [release[name].value for name in ("n", "s", "d")]
        shown.append({
            key: tuple(round(v) for v in values)
            for key, *values in zip(zip(*(release.keys[b] for b in by), strict=True), *columns, strict=True)
        })  # fmt: skip
    assert shown[0] == shown[1]
    assert len(shown[0]) > 1


def test_only_the_group_of_missing_values_can_be_shown(many):
    """The one key is None, so the table of keys has no value that shows the type of its column."""
    for column in ("word", "number", "day"):
        frame = VISITS.assign(**{column: VISITS[column].where(VISITS["pid"] < 0)})
        frame = pd.concat([frame.assign(pid=frame["pid"] + 100 * i) for i in range(60)])
        release = asked([column], missing="group", frame=frame, epsilon=100).release()
        assert release.keys[column] == (None,)
        assert release["n"].value[0] == pytest.approx(720, abs=20)
        assert release["s"].value[0] == pytest.approx(60 * 67, abs=200)


def test_every_row_may_be_a_unit_of_its_own(many):
    data = tc.protect(
        pa.table({"w": ["a"] * 50 + ["b"] + ["c"] * 50}),
        unit=tc.Unit.row(),
        budget=tc.Budget(epsilon=50, delta=0.1),
    )
    plan = data.group_by("w").agg(n=tc.count()).plan(epsilon=10, delta=1e-9)
    assert plan.release().keys["w"] == ("a", "c")


def test_a_sample_is_the_same_in_all_parts(many):
    n = 4000
    frame = pd.DataFrame({"pid": range(n), "w": ["a", "b"] * (n // 2), "x": [1.0] * n})
    data = tc.protect(
        frame, name="d", unit="pid", limits={"rows": 1}, bounds={"x": (0, 1)},
        budget=tc.Budget(epsilon=500, delta=0.1),
    )  # fmt: skip
    query = "SELECT w, COUNT(*) AS n, SUM(x) AS s FROM d TABLESAMPLE 50 PERCENT GROUP BY w"
    release = data.sql(query).plan(epsilon=200, delta=1e-6).release()
    assert release.keys["w"] == ("a", "b")
    for count, total in zip(release["n"].value, release["s"].value, strict=True):
        assert 700 < count < 1300  # 1,000 expected; P < 1e-15
        assert total == pytest.approx(count, abs=3)  # the same units in both; noise alone differs


class Counted:
    """An engine that counts the lines it returns."""

    def __init__(self, engine):
        self.engine, self.lines = engine, []

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def transaction(self):
        engine = self

        class Transaction:
            def __enter__(self):
                self.inner = engine.engine.transaction()
                self.data = self.inner.__enter__()
                return self

            def __exit__(self, *error):
                return self.inner.__exit__(*error)

            def integers(self, question, statistics, tables):
                found = self.data.integers(question, statistics, tables)
                engine.lines += [len(lines) for _, lines in found]
                return found

        return Transaction()


@pytest.mark.parametrize("most", [1000, 5000])
def test_of_many_groups_few_lines_return_however_many_there_are(monkeypatch, most):
    """3,000 groups of one unit and two large ones: bins and distinct values come for shown groups alone."""
    monkeypatch.setattr(_exact_integers, "MAX_READ", most)
    words = [f"rare {i}" for i in range(3000)] + ["large", "larger"] * 200
    frame = pd.DataFrame({"pid": range(len(words)), "word": words, "x": [float(i % 12) for i in range(3400)]})
    subject = task_of(asked(["word"], frame=frame, limits={"rows": 1}, epsilon=10)).subject
    engine = Counted(subject.engine)
    mechanisms = (KeySelection(5, delta=1e-12, groups=1), *subject.mechanisms[1:])
    noisy = replace(subject, engine=engine, mechanisms=mechanisms).task.draw()
    assert [key for key, _ in noisy[0]] == [["large"], ["larger"]]
    first, *others = engine.lines
    assert first == min(most + 1, 3002)
    assert sum(others) < (4100 if most == 1000 else 100)  # 4,096 cells of size 1 at most; bins of two groups


def test_the_plan_shows_its_statements_and_keeps_its_identity(monkeypatch):
    plan = asked(["word"])
    assert "LIMIT 100001" in plan.sql[0]
    assert len(plan.sql) == 3
    monkeypatch.setattr(_exact_integers, "MAX_READ", 0)
    assert asked(["word"]).hash == plan.hash


def test_a_threshold_beyond_all_groups_reads_them_one_by_one(many):
    """Such a plan shows nothing, whatever the data; it must not fail either."""
    data = tc.protect(VISITS, unit="pid", limits={"rows": 3}, budget=tc.Budget(epsilon=1, delta=0.1))
    plan = data.group_by("word").agg(u=tc.count_units()).plan(epsilon=1e-14, delta=1e-20)
    assert task_of(plan).mechanisms[0].threshold > 2**48
    assert f"LIMIT {2**40 + 1}" in plan.sql[0]
    assert len(plan.release()) == 0


def test_a_file_that_changes_between_the_parts_gives_no_answer(many, tmp_path):
    path = tmp_path / "d.parquet"
    table = pa.table({"pid": range(500), "w": [f"w{i % 7}" for i in range(500)]})
    pq.write_table(table, path)
    data = tc.protect(
        str(path), name="d", unit="pid", limits={"rows": 1}, budget=tc.Budget(epsilon=100, delta=0.1)
    )
    task = task_of(data.group_by("w").agg(n=tc.count(), k=tc.count_distinct("w")).plan(epsilon=1, delta=0.05))
    with SharedReadings.opened() as readings:
        data = task.open(readings)
        assert isinstance(task.steps[0].exact(data, []), KeysBySize)
        pq.write_table(table.slice(0, 400), path)
        with pytest.raises(Exception) as failed:
            task.steps[1].exact(data, [[[["w1"], 70]]])
    assert "400" not in str(failed.value)


def test_an_open_connection_is_read_at_one_moment(many):
    """Somebody writes to the table between the parts: only a plan that begins later sees it."""
    import duckdb

    con = duckdb.connect()
    con.execute("CREATE TABLE v AS SELECT i AS pid, 'w' || (i % 4) AS w FROM range(400) t(i)")
    data = tc.protect(
        (con, "v"), name="d", unit="pid", limits={"groups": 1, "per_group": 1},
        budget=tc.Budget(epsilon=1e6, delta=0.1),
    )  # fmt: skip
    task = task_of(data.group_by("w").agg(n=tc.count()).plan(epsilon=1, delta=0.05))
    for expected in (100, 50):
        with SharedReadings.opened() as readings:
            reading = task.open(readings)
            assert task.steps[0].exact(reading, []).large[("w1",)] == expected
            con.execute("DELETE FROM v WHERE w = 'w1' AND pid < 200")
            assert task.steps[1].exact(reading, [[[["w1"], 100]]]) == [[expected]]


def test_a_failure_between_the_parts_leaves_no_transaction_open():
    import duckdb

    con = duckdb.connect()
    con.execute("CREATE TABLE v AS SELECT i AS pid, 'w' || (i % 4) AS w FROM range(400) t(i)")
    data = tc.protect(
        (con, "v"), name="d", unit="pid", limits={"rows": 1}, budget=tc.Budget(epsilon=1e6, delta=0.1)
    )
    task = task_of(data.group_by("w").agg(n=tc.count()).plan(epsilon=1, delta=0.05))

    class Broken:
        def release(self, value):
            raise RuntimeError("no noise")

    broken = replace(task, steps=(replace(task.steps[0], mechanism=Broken()),))
    with pytest.raises(RuntimeError):
        broken.draw()
    assert task.subject.engine._connection is None  # it is closed, and its transaction with it
    assert len(task.draw()) == 2


@pytest.mark.long
def test_what_a_plan_shows_has_the_same_law_however_many_groups_there_are(monkeypatch):
    """Whole plans, few against many groups: which keys, and their numbers; P < 1e-9 for equal laws."""
    from scipy import stats

    words = ["a", "b", "c", "d", "d", *["e"] * 5, *["f"] * 9]
    frame = pd.DataFrame({"pid": range(len(words)), "word": words})
    data = tc.protect(frame, unit="pid", limits={"rows": 1}, budget=tc.Budget(epsilon=10, delta=0.5))
    task = task_of(data.group_by("word").agg(u=tc.count_units()).plan(epsilon=1, delta=0.1))
    assert task.mechanisms[0].threshold in range(3, 6)
    counts: dict[object, list[int]] = {}
    for side, most in enumerate((100_000, 0)):
        monkeypatch.setattr(_exact_integers, "MAX_READ", most)
        for _ in range(1500):
            [shown] = task.draw()
            keys = tuple(key for [key], _ in shown)
            for seen in [("set", keys), *((key, n) for [key], n in shown)]:
                counts.setdefault(seen, [0, 0])[side] += 1
    assert max(pair[0] for (what, _), pair in counts.items() if what == "a") > 10
    for pair in counts.values():
        table = [pair, [1500 - pair[0], 1500 - pair[1]]]
        assert stats.fisher_exact(table).pvalue > 1e-9 / len(counts)


def test_numbers_that_selected_their_groups_say_that_small_groups_are_too_large():
    frame = pd.DataFrame({"pid": range(60), "g": ["a"] * 40 + ["b"] * 20, "x": 1.0})
    data = tc.protect(
        frame, unit="pid", limits={"rows": 1}, bounds={"x": (0, 2)}, budget=tc.Budget(epsilon=9, delta=0.01)
    )
    asked = data.group_by("g").agg(n=tc.count_units(), rows=tc.count(), m=tc.mean("x"))
    plan = asked.plan(epsilon=2, delta=1e-6)
    notes = plan.release().content.notes
    least = task_of(plan).mechanisms[0].nearly_always
    assert f"a group with fewer than about {least:,} pids is more likely to be shown if noise" in notes["n"]
    assert "too large on average" in notes["n"]
    assert not {"rows", "m"} & set(notes)
    assert "too large" not in str(
        data.group_by("g", keys={"g": ["a"]}).agg(n=tc.count_units()).plan(epsilon=1).release()
    )
