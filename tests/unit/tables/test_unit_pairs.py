"""A unit of two columns, such as one patient's one day, from the declaration to the certificate."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pytest

import tacit as tc
from support.asking import HUGE, ledger_of
from tacit import TacitError

PATIENT_DAY = tc.Unit("patient_id", per="day")
#: Two patients, three days each, five rows each day: 30 rows, 6 pairs.
VISITS = pd.DataFrame(
    [
        (patient, day, ward, stay)
        for patient in ("ann", "bob")
        for day in ("mo", "tu", "we")
        for ward, stay in (("A", 1.0), ("A", 2.0), ("B", 3.0), ("B", 4.0), ("B", 5.0))
    ],
    columns=["patient_id", "day", "ward", "stay"],
)


def pairs_of(source, **options):
    return tc.protect(
        source,
        **{
            "name": "visits",
            "unit": PATIENT_DAY,
            "bounds": {"stay": (0, 30)},
            "keys": {"ward": ["A", "B"]},
            "budget": HUGE,
            **options,
        },
    )


def exactly(query):
    """Release with noise that rounds away."""
    return query.plan(epsilon=10**7).release()


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 10])
def test_each_pair_counts_with_its_own_rows(rows):
    """The limit is one of each patient and day, not of the patient: six pairs with five rows each."""
    data = pairs_of(VISITS, limits={"rows": rows})
    release = exactly(data.agg(n=tc.count(), u=tc.count_units(), s=tc.sum("stay")))
    assert release["n"].value == (6 * min(rows, 5),)
    assert release["u"].value == (6,)
    if rows >= 5:
        assert release["s"].value[0] == pytest.approx(VISITS["stay"].sum(), abs=1e-2)


def test_the_patient_alone_would_count_with_fewer_rows():
    limits = {"rows": 2}
    assert exactly(pairs_of(VISITS, limits=limits).agg(n=tc.count())).value == 12
    assert exactly(pairs_of(VISITS, limits=limits, unit="patient_id").agg(n=tc.count())).value == 4


def test_limits_of_groups_hold_for_each_pair():
    data = pairs_of(VISITS, limits={"rows": 10, "groups": 1, "per_group": 1})
    plan = data.group_by("ward").agg(n=tc.count()).plan(epsilon=10**7)
    assert plan.mechanisms[0]["sensitivity"] == 1
    assert sum(plan.release()["n"].value) == 6
    by_patient = data.group_by("patient_id", keys=["ann", "bob", "cid"]).agg(u=tc.count_units())
    assert exactly(by_patient)["u"].value == (3, 3, 0)
    assert exactly(data.group_by("day", keys=["mo", "su"]).agg(u=tc.count_units()))["u"].value == (2, 0)


def test_numbers_within_a_pair():
    data = pairs_of(VISITS)
    each = data.per_unit(n=tc.count(), least=tc.min("stay"), longest=tc.max("stay"))
    release = exactly(each.agg(u=tc.count(), n=tc.mean("n"), least=tc.mean("least"), most=tc.mean("longest")))
    assert release["u"].value == (6,)
    for name, value in (("n", 5), ("least", 1), ("most", 5)):
        assert release[name].value[0] == pytest.approx(value, abs=1e-2)


HOSTILE = [
    ("1", "23"), ("12", "3"), ("123", ""), ("", "123"), ("1/2", "3"), ("1", "2/3"), ("a|b", "c"),
    ("a", "b|c"), ("1:", "a"), ("1", ":a"), ("'", '"'), ('"', "'"), ("A", "b"), ("a", "B"), ("a", "b"),
    ("a ", "b"), ("a", " b"),
    ("é", "x"), ("e\u0301", "x"), ("a\x00b", "c"), ("a", "\x00bc"), ("NULL", "x"), ("nan", "x"),
]  # fmt: skip


def test_pairs_that_look_alike_stay_different_units():
    table = pa.table({"patient_id": [p for p, _ in HOSTILE] * 3, "day": [d for _, d in HOSTILE] * 3})
    data = pairs_of(table, limits={"rows": 1})
    release = exactly(data.agg(n=tc.count(), u=tc.count_units()))
    assert release["n"].value == release["u"].value == (len(HOSTILE),)


def test_a_row_without_one_of_the_two_is_not_counted_and_the_release_says_so():
    table = pa.table({"patient_id": ["a", None, "a", None, "b"], "day": ["mo", "mo", None, None, "mo"]})
    release = exactly(pairs_of(table).agg(n=tc.count(), u=tc.count_units()))
    assert release["n"].value == release["u"].value == (2,)
    for text in (" ".join(repr(release).split()), release._repr_html_()):
        assert "rows without a patient_id or day, if any, are not counted" in text


@pytest.mark.parametrize(
    ("patient", "day", "more"),
    [
        ("ann", 5, 1),
        (5, "mo", 1),
        ("ann", float("nan"), 0),
        ("ann", "\ud800", 0),
        (object(), "mo", 0),
        ("ann", [1], 0),
    ],
)
def test_an_odd_pair_neither_fails_the_query_nor_changes_what_others_count(patient, day, more):
    odd = {"patient_id": patient, "day": day, "ward": "A", "stay": 9.0}
    frame = pd.DataFrame([*VISITS.to_dict("records"), odd], dtype=object)
    release = exactly(pairs_of(frame, limits={"rows": 1}).agg(n=tc.count(), u=tc.count_units()))
    assert release["n"].value == release["u"].value == (6 + more,)


def test_the_plan_speaks_of_patient_and_day():
    plan = pairs_of(VISITS, limits={"rows": 2}).group_by("ward").agg(n=tc.count()).plan(epsilon=1)
    text = " ".join(repr(plan).split())
    assert "at most 2 rows of each patient and day count, in at most 2 groups" in text
    assert "one patient and day is added or removed" in text
    assert "unit: patient_id per day" in text
    replaced = pairs_of(VISITS, adjacency="replace").agg(n=tc.count()).plan(epsilon=1)
    assert "the data of one patient and day is replaced" in repr(replaced)
    private = pairs_of(VISITS, keys={}, budget=tc.Budget(epsilon=9, delta=1e-3))
    selected = private.group_by("ward").agg(n=tc.count()).plan(epsilon=1, delta=1e-6)
    assert "pairs of patient and day" in " ".join(repr(selected).split())
    assert "pairs of patient and day" in " ".join(repr(selected.release()).split())


def test_the_certificate_and_the_account_name_both_columns(tmp_path):
    data = pairs_of(VISITS)
    release = data.agg(n=tc.count()).plan(epsilon=0.5).release()
    release.certificate.save(tmp_path / "n.json")
    loaded = tc.Certificate.load(tmp_path / "n.json")
    assert json.loads(loaded.to_json())["dataset"]["unit"] == "patient_id per day"
    assert loaded.matches(ledger_of(data))
    assert ledger_of(data).account("visits").unit == "patient_id per day"


def test_the_unit_is_part_of_the_plan_and_of_the_account():
    ledger = tc.Ledger.memory()
    pair = pairs_of(VISITS, ledger=ledger)
    plans = [pairs_of(VISITS, unit=u).agg(n=tc.count()).plan(epsilon=1) for u in ("patient_id", "day")]
    same = pair.agg(n=tc.count()).plan(epsilon=1)
    assert len({same.hash, *(plan.hash for plan in plans)}) == 3
    assert pair.plan_from(json.loads(json.dumps(same.to_json()))) == same
    for other in ("patient_id", tc.Unit("day", per="patient_id"), tc.Unit.row()):
        with pytest.raises(TacitError) as refused:
            pairs_of(VISITS, ledger=ledger, unit=other)
        assert refused.value.code == "account-differs"


def test_sql_asks_the_same_of_pairs_as_python():
    data = pairs_of(VISITS, limits={"rows": 2})
    asked = data.sql("SELECT ward, COUNT(*) AS n, AVG(stay) AS m FROM visits GROUP BY ward").plan(
        epsilon=10**7
    )
    fluent = data.group_by("ward").agg(n=tc.count(), m=tc.mean("stay")).plan(epsilon=10**7)
    assert asked == fluent
    assert all('"visits first 2"' in statement for statement in asked.sql)
    assert sum(asked.release()["n"].value) == 12
    each = "SELECT patient_id, day, COUNT(*) AS n FROM visits GROUP BY patient_id, day"
    assert exactly(data.sql(f"SELECT SUM(n) AS s FROM ({each})")).value == pytest.approx(12, abs=1e-3)
    with pytest.raises(TacitError) as refused:
        data.sql("SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)")
    assert str(refused.value.fix) == "GROUP BY patient_id, day"


def test_counting_one_column_of_the_pair_is_not_counting_units():
    """Six pairs of two patients; the number of patients is not the number of units."""
    data = pairs_of(VISITS, limits={"rows": 3})
    plan = data.agg(p=tc.count_distinct("patient_id"), u=tc.count_units()).plan(epsilon=10**7)
    assert plan.release()["p"].value == (2,)
    assert plan.release()["u"].value == (6,)


@pytest.mark.parametrize(
    ("unit", "code"),
    [
        (lambda: tc.Unit("patient_id", per="nowhere"), "unknown-column"),
        (lambda: tc.Unit("nowhere", per="day"), "unknown-column"),
        (lambda: tc.Unit("patient_id", per="patient_id"), "bad-parameter"),
        (lambda: tc.Unit("patient/id", per="day"), "unknown-column"),
        (lambda: tc.Unit("patient per id", per="day"), "bad-parameter"),
        (lambda: tc.Unit("patient_id", per="a per b"), "bad-parameter"),
        (lambda: tc.Unit("patient_id", per=3), "bad-parameter"),
        (lambda: tc.Unit("", per="day"), "bad-parameter"),
        (lambda: tc.Unit("row", per="day"), "bad-parameter"),
    ],
)
def test_a_pair_needs_two_columns_of_the_table(unit, code):
    with pytest.raises(TacitError) as refused:
        pairs_of(VISITS, unit=unit())
    assert refused.value.code == code
