"""Hostile SQL is refused with its code or answered safely; a refusal changes and charges nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tacit as tc
from tacit import TacitError

CORPUS = [
    tuple(part.strip() for part in line.split("|", 1))
    for line in (Path(__file__).parent / "hostile.sql").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]


@pytest.fixture(scope="module")
def data():
    visits = pa.table(
        {
            "pid": [1, 1, 2, 3, None],
            "h": ["A", "2024-01-01", "", None, "B"],
            "x": [1.0, float("nan"), float("inf"), None, 2.0],
            "y": [0, 1, None, 3, 4],
            "d": pa.array([0, 1, None, 2**60, 5], pa.timestamp("us")),
            "free": ["a", "b", "c", "d", "e"],
            "other": ["a", "b", "c", "d", "e"],
        }
    )
    people = pa.table({"pid": [1, 2, 3], "age": [10.0, 20.0, None], "x": [1, 2, 3]})
    codes = pa.table({"code": ["A", "B"], "chapter": ["x", "y"]})
    return tc.protect(
        {"visits": visits, "people": people},
        unit="pid",
        bounds={"visits.x": (0, 10), "age": (0, 100)},
        keys={"h": ["A", "B"]},
        types={"d": "date", "h": "text", "y": "number", "pid": "number"},
        public={"codes": (codes, "code")},
        budget=tc.Budget(epsilon=10**6, delta=0.5),
    )


def test_the_corpus_is_large():
    assert len(CORPUS) >= 150
    assert len(set(CORPUS)) == len(CORPUS)


@pytest.mark.parametrize(("expected", "statement"), CORPUS, ids=[s[:60] or "nothing" for _, s in CORPUS])
def test_hostile_statement(data, expected, statement):
    before = data.remaining
    if expected == "answered":
        release = data.sql(statement).plan(epsilon=1, delta=1e-6).release()
        assert release.columns
        return
    with pytest.raises(TacitError) as refused:
        data.sql(statement).plan(epsilon=1, delta=1e-6)
    assert refused.value.code == expected, refused.value
    assert str(refused.value.fix)
    assert data.remaining == before


@pytest.mark.parametrize(
    "text",
    [
        "x" * 200_000,
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT COUNT(*) FROM visits WHERE " + "NOT " * 3000 + "x > 1",
        "\x00",
        "SELECT COUNT(*) FROM visits WHERE x > 1e999",
    ],
)
def test_absurd_text_is_refused(data, text):
    with pytest.raises(TacitError):
        data.sql(text).plan(epsilon=1)


@pytest.mark.parametrize("thing", [None, 5, b"SELECT COUNT(*) FROM visits", ["SELECT COUNT(*) FROM visits"]])
def test_what_is_not_text_is_refused(data, thing):
    with pytest.raises(TacitError):
        data.sql(thing)


def test_deep_nesting_cannot_blow_up_the_sql(data):
    nested = "x"
    for _ in range(30):
        nested = f"SQRT({nested})"
    with pytest.raises(TacitError) as refused:
        data.sql(f"SELECT COUNT(*) FROM visits WHERE {nested} > 1").plan(epsilon=1)
    assert refused.value.code == "bad-expression"
