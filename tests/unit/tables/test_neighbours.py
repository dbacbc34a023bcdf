"""No unit changes any exact statistic by more than the plan declares, wherever its rows stand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import neighbours as nb

from tacit import TacitError


def _search(pair, data, questions_per_pair, unit="pid"):
    limit = data.draw(nb.limits())
    small, large = pair
    declared = nb.dataset(large, limit, unit=unit)
    left, right = nb.engine(small, unit=unit), nb.engine(large, unit=unit)
    try:
        for _ in range(questions_per_pair):
            try:
                question = data.draw(nb.questions(declared)).question
                nb.check(question, left, right)
            except TacitError as error:
                assert error.code == "missing-limit"  # a join of unlimited tables, a sum of unlimited rows
    finally:
        left.close()
        right.close()


@given(nb.neighbouring(), st.data())
@settings(max_examples=14)
def test_one_unit_changes_no_statistic_beyond_its_sensitivity(pair, data):
    _search(pair, data, 5)


@pytest.mark.long
@given(nb.neighbouring(), st.data())
def test_one_unit_changes_no_statistic_beyond_its_sensitivity_over_many_plans(pair, data):
    _search(pair, data, 8)


@given(nb.neighbouring_pairs(), st.data())
@settings(max_examples=8)
def test_one_person_s_one_day_changes_no_statistic_beyond_its_sensitivity(pair, data):
    _search(pair, data, 5, unit=nb.PAIR)


@pytest.mark.long
@given(nb.neighbouring_pairs(), st.data())
def test_one_person_s_one_day_changes_no_statistic_beyond_its_sensitivity_over_many_plans(pair, data):
    _search(pair, data, 8, unit=nb.PAIR)


@given(nb.neighbouring(), st.data())
@settings(max_examples=5)
def test_answers_are_the_same_with_and_without_a_snapshot(pair, data):
    limit = data.draw(nb.limits())
    declared = nb.dataset(pair[1], limit)
    plain, stored = nb.engine(pair[1]), nb.engine(pair[1], snapshot=0)
    for _ in range(4):
        try:
            question = data.draw(nb.questions(declared)).question
            who = nb.contribution(question, row_level=False, adjacency="add/remove")
        except TacitError as error:
            assert error.code == "missing-limit"
            continue
        steps, _ = nb.lower(question, by_row=False)
        emitted = tuple(dict.fromkeys(s.statistic for s in steps))
        assert nb.exact_integers(plain, question, emitted) == nb.exact_integers(stored, question, emitted), (
            who
        )
    plain.close()
    stored.close()


@given(nb.neighbouring(), st.data())
@settings(max_examples=5)
def test_replacing_one_unit_changes_no_statistic_beyond_its_sensitivity(pair, data):
    import pyarrow.compute as pc

    limit = data.draw(nb.limits())
    other = data.draw(st.lists(nb.rows, min_size=1, max_size=5))
    _, one = pair
    people = one["people"]
    kept = one["visits"].filter(pc.fill_null(pc.not_equal(one["visits"]["pid"], 77), fill_value=True))
    swapped = nb.pa.concat_tables(
        [
            kept,
            nb.pa.table(
                [list(c) for c in zip(*[(77, *row) for row in other], strict=False)], schema=nb.SCHEMA
            ),
        ]
    )
    two = {"visits": swapped, "people": people}
    declared = nb.dataset(one, limit, adjacency="replace")
    left, right = nb.engine(one), nb.engine(two)
    for _ in range(4):
        try:
            nb.check(data.draw(nb.questions(declared)).question, left, right, adjacency="replace")
        except TacitError as error:
            assert error.code == "missing-limit"
    left.close()
    right.close()


@pytest.mark.parametrize("limit", [{"rows": 2}, {"rows": 3, "groups": 1, "per_group": 1}])
def test_one_row_changes_no_statistic_beyond_its_sensitivity_at_event_level(limit):
    import tacit as tc

    lines = [
        (1, "A", 1.0, 1, None),
        (1, "A", 1.0, 1, None),
        (2, "B", 29.0, 2, None),
        (None, None, None, None, None),
    ]
    small, large = nb._tables(lines, []), nb._tables([*lines[:1], (9, "A", 30.0, 3, None), *lines[1:]], [])
    unit = tc.Unit.row()
    data = nb.dataset(large, limit, unit=unit)
    left = nb.DuckDB(nb.dataset(small, limit, unit=unit)._engine._tables, key=nb.KEY)
    right = nb.DuckDB(data._engine._tables, key=nb.KEY)
    asked = {name: make("x") for name, make in nb.AGGREGATES.items()}
    for answer in (
        data["visits"].agg(**asked),
        data["visits"].group_by("h").agg(**asked),
        data["visits"].where("x > 0").group_by(k="LOWER(h)").agg(**asked),
        data["visits"].join("codes", "h").group_by("chapter").agg(**asked),
    ):
        assert nb.check(answer.question, left, right, unit="") >= 10


def test_the_search_finds_a_sensitivity_that_is_too_small(monkeypatch):
    """The broken twin: with limits left out of the SQL the same search finds the violation."""
    from tacit.engines.sql import _statements

    real = _statements.relation_sql
    monkeypatch.setattr(_statements, "relation_sql", lambda *args: real(*args).replace(" first 1", ""))
    visits = [(77, "A", 1.0, 1, None)] * 3
    small, large = nb._tables([], []), nb._tables(visits, [])
    data = nb.dataset(large, {"rows": 1})
    import tacit as tc

    with pytest.raises(AssertionError):
        nb.check(data.agg(n=tc.count()).question, nb.engine(small), nb.engine(large))


@pytest.mark.parametrize("owner", ['"pid" || "day"', '"pid"'])
def test_the_search_finds_pairs_that_are_taken_for_one_owner(monkeypatch, owner):
    """The broken twin: names without their lengths, or without the day, mix two owners."""
    import tacit as tc
    from tacit.engines.duckdb import _views

    lines = [(0, "A", 0.0, 1, None), *((77, "B", float(i), 1, None) for i in range(9))]
    renamed = {0: ("1", "2"), 77: ("12", "") if "day" in owner else ("1", "3")}
    small, large = (nb._by_pair(nb._tables(some, []), renamed) for some in (lines[:1], lines))
    asked = nb.dataset(large, {"rows": 1}, unit=nb.PAIR)["visits"].group_by("h").agg(n=tc.count())
    assert nb.check(asked.question, nb.engine(small, unit=nb.PAIR), nb.engine(large, unit=nb.PAIR)) == 1
    monkeypatch.setattr(_views, "owner_sql", lambda *_: owner)
    with pytest.raises(AssertionError):
        nb.check(asked.question, nb.engine(small, unit=nb.PAIR), nb.engine(large, unit=nb.PAIR))
