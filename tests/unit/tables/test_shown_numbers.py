"""Numbers and keys as people and frames read them: supported digits, whole keys, declared order."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import tacit as tc
from tacit.core import AnswerTable, Cells, shown_cell
from tacit.tables import open_facts

EDUCATION = ["primary", "high school", "university"]
YEARS = [1990, 1984, 1987]


def people(**changed):
    frame = pd.DataFrame({
        "id": range(900), "edu": EDUCATION * 300, "year": YEARS * 300, "age": [i % 90 for i in range(900)],
        "score": [float(i % 7) for i in range(900)],
    })  # fmt: skip
    facts = {
        "unit": "id", "budget": tc.Budget(epsilon=1000), "name": "people", "limits": {"rows": 1},
        "keys": {"edu": EDUCATION, "year": YEARS}, "bounds": {"age": (0, 90), "score": (0, 6)},
    }  # fmt: skip
    return tc.protect(frame, **facts | changed)


def test_a_value_has_as_many_decimals_as_its_interval_supports():
    assert shown_cell(29.4631, 28.4402, 30.4815) == ("29.5", "28.4", "30.5")
    assert shown_cell(29.4631, 29.4602, 29.4672) == ("29.4631", "29.4602", "29.4672")
    assert shown_cell(-328.46, -1115.2, 457.3) == ("-328", "-1,116", "458")
    assert shown_cell(-0.02, -3.1, 3.0) == ("0.0", "-3.1", "3.0")
    assert shown_cell(2.0, 1.25, 2.75) == ("2.00", "1.25", "2.75")
    assert shown_cell(0.25, 0.25, 0.25) == ("0.25", "0.25", "0.25")
    assert shown_cell(1e-9, 0.0, 2e-9) == ("1e-09", "0", "2.001e-09")
    assert shown_cell(3, None, None) == ("3", "", "")


def test_a_shown_interval_is_never_narrower():
    for low, high in ((0.123456, 9.87654), (-1e-3, 1e-3), (1e6 + 0.5, 1e6 + 7.25), (-7.77, -7.001)):
        _, first, last = shown_cell((low + high) / 2, low, high)
        assert float(first.replace(",", "")) <= low
        assert float(last.replace(",", "")) >= high


def test_numbers_of_any_size_are_shown():
    for end in (1e15, 1e300, float("inf"), 5e-324):
        assert len("".join(shown_cell(end, -end, end, whole=True))) < 80


def test_estimates_of_counts_are_whole_numbers():
    answer = AnswerTable({}, {"cases": Cells((12.37,), (8.1,), (16.6,))}, 0.95, counts=("cases",))
    assert "12  [8, 17]" in str(answer)


def test_whole_keys_stay_whole_in_frames():
    release = people().group_by("year").agg(n=tc.count()).plan(epsilon=1).release()
    assert release.to_dict()["year"] == YEARS
    assert all(type(line["year"]) is int for line in release)
    assert str(release.to_pandas()["year"].dtype) == "int64"
    assert release.to_polars()["year"].dtype.is_integer()
    assert str(release.to_arrow().schema.field("year").type) == "int64"
    assert [line.split(",")[0] for line in release.to_csv().splitlines()] == ["year", "1990", "1984", "1987"]
    missing = people().group_by("year", missing="group").agg(n=tc.count()).plan(epsilon=1).release()
    assert str(missing.to_pandas()["year"].dtype) == "Int64"
    assert missing.to_pandas()["year"].isna().sum() == 1


def test_keys_with_fractions_stay_as_they_are():
    answer = AnswerTable({"size": (1.0, 2.5)}, {"n": Cells((1, 2), (0, 1), (2, 3))}, 0.95)
    assert answer.to_dict()["size"] == [1.0, 2.5]


def test_groups_stand_in_the_order_in_which_their_keys_were_declared():
    data = people()
    release = data.group_by("edu").agg(n=tc.count(), m=tc.mean("age")).plan(epsilon=50).release()
    assert list(release.keys["edu"]) == EDUCATION
    assert [line["edu"] for line in release] == EDUCATION
    both = data.group_by("edu", "year").agg(n=tc.count()).plan(epsilon=50).release()
    found = dict(zip(zip(both.keys["edu"], both.keys["year"], strict=True), both["n"].value, strict=True))
    assert list(found) == [(edu, year) for edu in EDUCATION for year in YEARS]
    assert all(
        abs(found[pair] - 300) < 5 for pair in zip(EDUCATION, YEARS, strict=True)
    )  # values moved along
    assert tc.inference.mean(
        people(limits={"rows": 1}).group_by("edu").agg(m=tc.mean("score")).plan(epsilon=50).release(),
        "primary",
    ).value == pytest.approx(3, abs=0.2)


def test_totals_stay_below_their_groups():
    release = people().group_by("edu").rollup().agg(n=tc.count()).plan(epsilon=1).release()
    assert list(release.keys["edu"]) == [*EDUCATION, None]


def test_order_by_and_the_order_of_the_plan_are_as_before():
    ordered, declared = people(), people(keys={"edu": sorted(EDUCATION), "year": sorted(YEARS)})
    plans = [data.group_by("edu", "year").agg(n=tc.count()).plan(epsilon=1) for data in (ordered, declared)]
    assert plans[0].hash == plans[1].hash
    assert plans[0].to_json() == plans[1].to_json()
    chosen = ordered.sql("SELECT edu, COUNT(*) AS n FROM people GROUP BY edu ORDER BY edu").plan(epsilon=1)
    assert list(chosen.release().keys["edu"]) == sorted(EDUCATION)


def test_the_order_of_keys_is_a_public_fact():
    facts = json.loads(json.dumps(people().public_facts()))
    opened = open_facts(facts, tc.Ledger.memory())
    assert opened.tables["people"].facts["edu"].order == tuple(EDUCATION)
    assert json.loads(json.dumps(opened.public_facts())) == facts
    sorted_facts = people(keys={"edu": sorted(EDUCATION), "year": sorted(YEARS)}).public_facts()
    assert "order" not in json.dumps(sorted_facts)


def test_a_long_key_does_not_push_the_values_off_the_page(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    answer = AnswerTable({"ward": ("W" * 300, "b")}, {"n": Cells((1, 2), (0, 1), (2, 3))}, 0.95)
    assert max(map(len, str(answer).splitlines())) <= 80
    assert str(answer).count("W") == 300
    assert "overflow-wrap:anywhere" in answer.html()


def test_marks_of_direction_are_shown_and_texts_stand_apart():
    mark = chr(0x202E)
    answer = AnswerTable({"ward": (f"a{mark}b",)}, {"n": Cells((1,), (0,), (2,))}, 0.95)
    for text in (str(answer), answer.html()):
        assert mark not in text
        assert "\\u202e" in text
    assert "<bdi>a\\u202eb</bdi>" in answer.html()
