"""Facts without data: the same plans, and nothing that reads, charges or opens an account."""

from __future__ import annotations

import copy
import json

import pandas as pd
import pytest

import tacit as tc
from support import random_plans as rp
from support.asking import ledger_of, visits
from support.random_plans import nb
from tacit import TacitError
from tacit.core import Plan
from tacit.tables import open_facts


def without_data(data):
    """Return the dataset as another process opens it, from the text of its facts."""
    return open_facts(json.loads(json.dumps(data.public_facts())), ledger_of(data))


def assert_alike(plan, other):
    assert other.hash == plan.hash
    assert other.cost == plan.cost
    assert other.forecast == plan.forecast
    assert other.facts == plan.facts
    assert other.sql == plan.sql
    assert other.asked == plan.asked
    assert other.to_json() == plan.to_json()
    assert repr(other) == repr(plan)


@pytest.mark.parametrize("unit", ["pid", nb.PAIR])
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_random_plans_are_alike(unit, adjacency):
    tables, seen = rp.crowd(5), 0
    if unit == nb.PAIR:
        tables = nb._by_pair(tables, {i: (str(i), "1") for i in range(5)} | {None: (None, "1")})
    for seed in range(4):
        real = nb.dataset(
            tables, nb.draw_limits(rp.Dice(seed), rp.Dice(seed)), unit=unit, adjacency=adjacency
        )
        facts = without_data(real)
        assert repr(facts) == repr(real)
        for number in range(15):
            found = [planned(data, 100 * seed + number) for data in (real, facts)]
            if isinstance(found[0], Plan):
                assert_alike(*found)
                seen += 1
            else:
                assert found[0] == found[1]
    assert seen >= 30


def planned(data, seed):
    """Plan a random question, or return the words of its refusal."""
    dice = rp.Dice(seed)
    try:
        return nb.draw_question(dice, data, dice).plan(epsilon=1, delta=1e-6)
    except TacitError as refusal:
        return str(refusal)


ASKED = {
    "one number": "SELECT COUNT(*) AS n FROM visits",
    "groups": "SELECT hospital, AVG(length_of_stay) AS stay FROM visits GROUP BY hospital",
    "private groups": "SELECT icd, COUNT(*) AS n FROM visits GROUP BY icd",
    "conditions": "SELECT COUNT(*) AS n FROM visits WHERE admitted > '2024-03-01' AND icd LIKE 'I%'",
    "per unit": "SELECT AVG(n) AS n FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
    "post-processing": "SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital HAVING n > 9 ORDER BY n",
    "quantile": "SELECT MEDIAN(length_of_stay) AS m FROM visits",
    "sample": "SELECT COUNT(*) AS n FROM visits TABLESAMPLE (10 PERCENT)",
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("options", [{}, {"record": "shape"}, {"unit": tc.Unit.row()}], ids=repr)
def test_questions_of_the_tutorial_are_alike(name, options):
    real = visits(types={"admitted": "date"}, **options)
    facts = without_data(real)
    for goal in ({"epsilon": 1, "delta": 1e-6}, {"rho": 0.1, "delta": 1e-6}):
        try:
            plan = real.sql(ASKED[name]).plan(**goal)
        except TacitError as refusal:
            with pytest.raises(TacitError) as other:
                facts.sql(ASKED[name]).plan(**goal)
            assert str(other.value) == str(refusal)
        else:
            assert_alike(plan, facts.sql(ASKED[name]).plan(**goal))
            assert real.plan_from(facts.sql(ASKED[name]).plan(**goal).to_json()) == plan


def test_blocks_limits_and_types_are_alike(tmp_path):
    frame = pd.DataFrame(
        {"pid": [1, 2], "day": pd.to_datetime(["2026-01-01", "2026-01-02"]), "x": [1.5, 2.5]}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    real = tc.protect(
        {"a": tmp_path / "a.parquet", "b": tmp_path / "b.csv"},
        unit=tc.Unit("pid", per="day"),
        types={"day": "date"},
        bounds={"x": (-0.1, 7)},
        keys={"x": [1.5, 2.5], "flag": [True, False, None]},
        never_null=["x"],
        limits={"rows": 4, "groups": 2, "a": {"rows": 3}},
        budget=tc.Budget(epsilon=1),
        blocks=tc.Blocks("day"),
        version=3,
    )
    facts = without_data(real)
    assert facts.tables == real.tables
    assert facts.limits == real.limits
    assert facts.limits.of_tables == real.limits.of_tables
    assert facts.block_column == real.block_column
    assert facts.identity == real.identity
    plan = real["a"].where("day = '2026-01-01'").agg(n=tc.count()).plan(epsilon=1)
    assert_alike(plan, facts["a"].where("day = '2026-01-01'").agg(n=tc.count()).plan(epsilon=1))


def test_keys_of_a_public_table_are_known_without_data():
    codes = pd.DataFrame(
        {"code": ["A", "B"], "chapter": [1.5, None], "day": pd.to_datetime(["2026-01-01"] * 2)}
    )
    data = {"name": "visits", "public": {"codes": (codes, "code")}}
    real = visits(**data)
    facts = without_data(real)
    for keys, column in (("codes", "icd"), ("codes.chapter", "age"), ("codes.day", "admitted")):
        made = [
            d.group_by(k=column, keys={"k": keys})
            .agg(n=tc.count()).plan(epsilon=1)
            for d in (real, facts)
        ]  # fmt: skip
        assert_alike(*made)
    asked = "SELECT COUNT(*) AS n FROM visits WHERE icd IN (SELECT code FROM codes)"
    assert_alike(real.sql(asked).plan(epsilon=1), facts.sql(asked).plan(epsilon=1))


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT MAX(code) FROM codes",
        "SELECT code FROM codes WHERE chapter = 1",
        "SELECT UPPER(code) FROM codes",
    ],
)
def test_what_needs_the_rows_of_a_public_table_is_refused(inner):
    codes = pd.DataFrame({"code": ["A", "B"], "chapter": [1.0, 2.0]})
    facts = without_data(visits(public={"codes": (codes, "code")}))
    with pytest.raises(TacitError, match="cannot be read now") as caught:
        facts.sql(f"SELECT COUNT(*) AS n FROM visits WHERE icd IN ({inner})")
    assert str(caught.value.fix) == "write the values themselves"


def test_a_public_table_with_many_values_is_not_in_the_document():
    codes = pd.DataFrame({"code": [str(i) for i in range(10_001)]})
    real = visits(public={"codes": (codes, "code")})
    assert real.public_facts()["tables"][1]["values"] == []


def test_protected_values_cannot_be_asked_for():
    facts = without_data(visits())
    with pytest.raises(TacitError, match="the table 'visits' is protected"):
        facts._engine.public_values("visits", tc.col("icd").node, 10)


def test_a_draw_is_refused_before_its_charge_and_a_stored_answer_is_found():
    real = visits()
    facts = without_data(real)
    plan = facts.agg(n=tc.count()).plan(epsilon=1)
    before = ledger_of(real).head
    with pytest.raises(TacitError, match="without its data, so nothing was charged"):
        plan.release()
    assert plan.stored() is None
    assert ledger_of(real).head == before
    answer = real.agg(n=tc.count()).plan(epsilon=1).release()
    assert plan.stored().value == plan.release().value == answer.value


def test_no_account_is_opened():
    facts, ledger = visits().public_facts(), tc.Ledger.memory()
    opened = open_facts(facts, ledger)
    assert ledger.accounts() == []
    assert opened.agg(n=tc.count()).plan(epsilon=1).hash == visits().agg(n=tc.count()).plan(epsilon=1).hash


def changed(document, *path, value):
    found = copy.deepcopy(document)
    place = found
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return found


CHANGES = {
    "schema": (("schema",), "tacit/facts/2"),
    "another field": (("more",), 1),
    "a field of a fact": (("tables", 0, "facts", "hospital", "color"), "red"),
    "truth": (("one_table",), 1),
    "main": (("main",), "people"),
    "main is a list": (("main",), ["visits"]),
    "record": (("record",), "all"),
    "adjacency": (("dataset", "adjacency"), "none"),
    "unit of a graph": (("dataset", "unit"), "node"),
    "unit is not a column": (("dataset", "unit"), "nobody"),
    "version": (("dataset", "version"), 0),
    "version is text": (("dataset", "version"), "1"),
    "dialect": (("dialect", "name"), "os"),
    "settings": (("dialect", "settings"), {"cases": "C"}),
    "limit": (("limits", "rows"), 0),
    "limit is a number": (("limits", "rows"), 1.0),
    "limit is true": (("limits", "groups"), True),
    "no pairs": (("limits", "pairs"), None),
    "limit of another table": (("limits", "of_tables"), {"people": 1}),
    "kind": (("tables", 0, "facts", "hospital", "kind"), "number"),
    "no kind": (("tables", 0, "facts", "hospital", "kind"), "object"),
    "stored": (("tables", 0, "facts", "hospital", "stored"), "blob"),
    "bounds": (("tables", 0, "facts", "length_of_stay", "bounds"), ["30", "0"]),
    "bounds are numbers": (("tables", 0, "facts", "length_of_stay", "bounds"), [0, 30]),
    "truth of a fact": (("tables", 0, "facts", "patient_id", "unit"), 1),
    "type that cannot be read": (("tables", 0, "facts", "hospital", "unreadable"), 5),
    "huge bounds": (("tables", 0, "facts", "length_of_stay", "bounds"), ["0", str(10**200)]),
    "three bounds": (("tables", 0, "facts", "length_of_stay", "bounds"), ["0", "1", "2"]),
    "long exponent": (("tables", 0, "facts", "length_of_stay", "bounds"), ["0", "1e999999999"]),
    "keys": (("tables", 0, "facts", "hospital", "keys"), ["A", "A"]),
    "mixed keys": (("tables", 0, "facts", "hospital", "keys"), ["A", True]),
    "keys out of order": (("tables", 0, "facts", "hospital", "keys"), ["B", "A"]),
    "key of a class": (("tables", 0, "facts", "hospital", "keys"), [{"node": "Call"}]),
    "columns": (("tables", 0, "columns"), ["hospital", "hospital"]),
    "reserved name": (("tables", 0, "columns", -1), "tacit_u"),
    "column twice": (("tables", 0, "columns"), "patient_id"),
    "types": (("tables", 0, "types"), {"hospital": "object"}),
    "public": (("tables", 0, "key"), "hospital"),
    "tables": (("tables",), []),
    "not a mapping": (("tables", 0), 5),
    "block column": (("block_column",), {"name": "age", "kind": "blob"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_anything_else_is_refused(name):
    path, value = CHANGES[name]
    document = visits().public_facts()
    if name == "kind":  # text keys of a column that is said to hold numbers
        document["tables"][0]["facts"]["hospital"]["keys"] = [{"number": "0x1p+1"}, {"number": "0x1p+0"}]
    with pytest.raises(TacitError, match="not a document of public facts") as caught:
        open_facts(changed(document, *path, value=value), tc.Ledger.memory())
    assert caught.value.code == "bad-parameter"


@pytest.mark.parametrize("document", [None, [], "facts", 5, {}, {"schema": "tacit/facts/1"}])
def test_another_thing_is_refused(document):
    with pytest.raises(TacitError, match="not a document of public facts"):
        open_facts(document, tc.Ledger.memory())


JUNK = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "row",
    "a\x00b",
    "\ud800",
    [],
    ["x"],
    [[]],
    {},
    {"number": "nan"},
    {"x": 1},
]


def places(thing, path=()):
    """Return the paths of all parts of a document."""
    inside = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    found = [path] if path else []
    for step, part in inside:
        found += places(part, (*path, step))
    return found


def test_no_part_of_a_document_breaks_the_reader():
    """Whatever stands in one place: the document is refused, or it is a dataset that can plan or refuse."""
    codes = pd.DataFrame({"code": ["A", "B"], "day": pd.to_datetime(["2026-01-01", "2026-01-02"])})
    document = json.loads(json.dumps(visits(public={"codes": (codes, "code")}).public_facts()))
    opened = 0
    for path in places(document):
        for junk in JUNK:
            try:
                data = open_facts(changed(document, *path, value=junk), tc.Ledger.memory())
            except TacitError as refusal:
                assert refusal.code == "bad-parameter", (path, junk)
                continue
            opened += 1
            try:
                plan = data.group_by("hospital").agg(n=tc.count()).plan(epsilon=1)
            except TacitError:
                continue
            assert data.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    assert 0 < opened < 100  # names, limits, versions and values may be others
