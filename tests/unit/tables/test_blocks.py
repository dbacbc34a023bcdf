"""Blocks of tables: which questions concern which blocks, and that no unit is in two of them."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pytest

import tacit as tc
from support.asking import HUGE, ledger_of
from support.exact_integers import exact_of_plan
from tacit import TacitError
from tacit.tables import read_config

DAYS = [dt.date(2026, 1, day) for day in range(1, 8)]
VISITS = pd.DataFrame(
    [(f"p{i}", day.isoformat(), ward, float(i)) for day in DAYS for i in range(10) for ward in "AB"],
    columns=["patient_id", "day", "ward", "stay"],
)
BY_DAY = tc.Blocks("day")
PATIENT_DAY = tc.Unit("patient_id", per="day")
REDEFINED = "(SELECT CAST('2026-01-03' AS DATE) AS day FROM visits) AS t"


def events(source=VISITS, **options):
    return tc.protect(
        source,
        **{
            "name": "visits",
            "unit": tc.Unit.row(),
            "types": {"day": "date"},
            "bounds": {"stay": (0, 30)},
            "keys": {"ward": ["A", "B"]},
            "budget": tc.Budget(epsilon=1),
            "blocks": BY_DAY,
            **options,
        },
    )


def concerned(query, **goal):
    return query.plan(**(goal or {"epsilon": 0.5}))._members[0].blocks


def days(*numbers):
    return tuple(f"2026-01-0{n}" for n in numbers)


def is_on(day):
    return tc.col("day") == day


# a year in one epsilon


def test_five_event_level_days_at_epsilon_0_8_fit_into_epsilon_1():
    data = events()
    for day in DAYS[:5]:
        release = data.where(is_on(day)).agg(n=tc.count()).plan(epsilon=0.8).release()
        assert release.certificate.fields["blocks"] == [day.isoformat()]
        assert release.certificate.matches(ledger_of(data))
    assert ledger_of(data).account("visits").spent.epsilon == Fraction(4, 5)
    assert ledger_of(data).verify().ok


def test_a_year_of_disjoint_days_fits_into_one_epsilon():
    year = [dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(365)]
    frame = pd.DataFrame({"day": [day.isoformat() for day in year for _ in range(3)]})
    data = events(frame, bounds={}, keys={})
    ledger = ledger_of(data)
    for day in year:
        data.where(is_on(day)).agg(n=tc.count()).plan(epsilon=1).release()
    assert ledger.account("visits").spent.epsilon == 1
    assert len(ledger.blocks("visits")) == 365
    for day in (year[0], year[200]):
        with pytest.raises(TacitError, match=f"block '{day}'"):
            data.where(is_on(day)).agg(n=tc.count(), m=tc.count_units()).plan(epsilon=0.01).release()
    with pytest.raises(TacitError, match="code: budget-exceeded"):
        data.agg(n=tc.count()).plan(epsilon=0.01).release()
    assert ledger.verify().ok


def test_one_file_for_each_day_shares_one_account(tmp_path):
    ledger = tc.Ledger.open(tmp_path / "a.ledger")
    plans = set()
    for day, rows in VISITS.groupby("day"):
        data = tc.protect(
            rows, name="visits", unit="patient_id", budget=tc.Budget(epsilon=1), ledger=ledger,
            blocks=BY_DAY, block=day,
        )  # fmt: skip
        plan = data.agg(n=tc.count()).plan(epsilon=0.9)
        plans.add(plan.hash)
        certificate = plan.release().certificate
        assert certificate.fields["dataset"]["block"] == day
        assert certificate.fields["blocks"] == [day]
        assert certificate.problems(ledger) == []
        assert data.remaining.epsilon == Fraction(1, 10)
        assert data.plan_from(plan.to_json()) == plan
        with pytest.raises(TacitError, match=f"block '{day}'"):
            data.agg(n=tc.count()).plan(epsilon=0.2).release()
    assert len(plans) == len(DAYS)
    assert ledger.account("visits").spent.epsilon == Fraction(9, 10)
    assert ledger.verify(witness=ledger.witness).complete


def test_a_plan_of_one_block_is_not_a_plan_of_another():
    ledger = tc.Ledger.memory()
    one, two, plain = (
        tc.protect(VISITS, name=name, unit="patient_id", budget=HUGE, ledger=ledger, **how)
        for name, how in (
            ("visits", {"blocks": BY_DAY, "block": "mo"}),
            ("visits", {"blocks": BY_DAY, "block": "tu"}),
            ("other", {}),
        )
    )
    plan = one.agg(n=tc.count()).plan(epsilon=1)
    for data in (two, plain):
        with pytest.raises(TacitError, match="code: plan-differs"):
            data.plan_from(plan.to_json())
    assert "block" not in plain.identity.document()


# which blocks a question concerns


@pytest.mark.parametrize(
    ("where", "blocks"),
    [
        (is_on(DAYS[2]), days(3)),
        (is_on(dt.datetime(2026, 1, 3)), days(3)),
        (is_on("2026-01-03"), days(3)),
        ("day = '2026-01-03'", days(3)),
        ("'2026-01-03' = day", days(3)),
        ("day = '2026-01-03 00:00:00.000'", days(3)),
        ("day = DATE '2026-01-03'", days(3)),
        ("day IN ('2026-01-03', '2026-01-01')", days(1, 3)),
        ("day IN ('2026-01-03', '2026-01-03 00:00')", days(3)),
        ("day = '2026-01-03' OR day = '2026-01-01'", days(1, 3)),
        ("day = '2026-01-03' AND stay > 1", days(3)),
        ("stay > 1 AND (day = '2026-01-03' AND ward = 'A')", days(3)),
        ("day IN ('2026-01-01', '2026-01-03') AND day IN ('2026-01-03', '2026-01-04')", days(3)),
        ("day = '2026-01-03' AND day = '2026-01-04'", days(3)),
        ("day = '2026-01-03' OR stay > 1", ()),
        ("day <> '2026-01-03'", ()),
        ("NOT day = '2026-01-03'", ()),
        ("day >= '2026-01-03'", ()),
        ("day = NULL", ()),
        ("day IN ('2026-01-03', NULL)", ()),
        ("day = day", ()),
        ("date_trunc('month', day) = '2026-01-01'", ()),
        ("stay > 1", ()),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_by_constants_names_its_blocks(where, blocks):
    assert concerned(events().where(where).agg(n=tc.count())) == blocks


@pytest.mark.parametrize(
    ("sql", "blocks"),
    [
        ("SELECT count(*) AS n FROM visits WHERE day = '2026-01-03'", days(3)),
        ("SELECT ward, sum(stay) AS s FROM visits WHERE day IN ('2026-01-03', '2026-01-04') GROUP BY ward",
         days(3, 4)),
        ("SELECT count(*) AS n FROM (SELECT day AS d FROM visits) AS t WHERE d = '2026-01-03'", days(3)),
        ("WITH t AS (SELECT * FROM visits WHERE day = '2026-01-03') SELECT sum(stay) AS s FROM t", days(3)),
        ("SELECT count(*) AS n FROM (SELECT stay AS day FROM visits) AS t WHERE day = 3", ()),
        (f"SELECT count(*) AS n FROM {REDEFINED} WHERE day = '2026-01-03'", ()),
        ("SELECT count(*) AS n FROM visits", ()),
        ("SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING ward = 'A'", ()),
    ],
    ids=str,
)  # fmt: skip
def test_sql_names_its_blocks_too(sql, blocks):
    assert concerned(events().sql(sql)) == blocks


def test_a_group_by_with_public_keys_concerns_these_keys():
    data = events()
    assert concerned(data.group_by("day", keys=DAYS[1:4]).agg(n=tc.count())) == days(2, 3, 4)
    by_both = data.group_by("ward", "day", keys={"ward": ["A", "B"], "day": DAYS[:2]}).agg(n=tc.count())
    assert concerned(by_both) == days(1, 2)
    within = data.where("day IN ('2026-01-02', '2026-01-05')").group_by("day", keys=DAYS[:3])
    assert concerned(within.agg(n=tc.count())) == days(2)
    renamed = data.select("stay", d=tc.col("day")).group_by("d", keys=DAYS[:2]).agg(n=tc.count())
    assert concerned(renamed) == days(1, 2)
    redefined = data.with_columns(day="CAST('2026-01-01' AS DATE)").group_by("day", keys=DAYS[:2])
    assert concerned(redefined.agg(n=tc.count())) == ()
    private = events(budget=tc.Budget(epsilon=1, delta=1e-6)).group_by("day").agg(n=tc.count())
    assert concerned(private, epsilon=0.5, delta=1e-8) == ()


def test_more_keys_than_a_charge_can_name_concern_all():
    many = [dt.date(2020, 1, 1) + dt.timedelta(days=n) for n in range(1001)]
    data = events()
    assert len(concerned(data.group_by("day", keys=many[:1000]).agg(n=tc.count()))) == 1000
    assert concerned(data.group_by("day", keys=many).agg(n=tc.count())) == ()


def test_joins_concern_what_both_sides_concern():
    people = pd.DataFrame([(f"p{i}", day.isoformat(), 30.0) for i in range(10) for day in DAYS])
    people.columns = ["patient_id", "day", "age"]
    data = events(
        {"visits": VISITS, "people": people}, unit=PATIENT_DAY, limits={"rows": 3},
        public={"wards": (pd.DataFrame({"ward": ["A", "B"], "floor": [1.0, 2.0]}), "ward")},
    )  # fmt: skip
    left, right = data["visits"].where(is_on(DAYS[0])), data["people"]
    assert concerned(left.join(right).agg(n=tc.count())) == ()
    assert concerned(left.join(right.where(is_on(DAYS[1]))).agg(n=tc.count())) == days(1, 2)
    assert concerned(left.join("wards").agg(n=tc.count())) == days(1)
    assert concerned(left.per_unit(n=tc.count()).agg(m=tc.mean("n"))) == days(1)


def test_the_plan_says_which_blocks_are_charged():
    data = events()
    assert "charged to: day 2026-01-03 alone" in repr(
        data.where(is_on(DAYS[2])).agg(n=tc.count()).plan(epsilon=1)
    )
    assert "all of the data" in repr(data.agg(n=tc.count()).plan(epsilon=1))
    assert "charged to" not in repr(events(blocks=None).agg(n=tc.count()).plan(epsilon=1))


# who may declare blocks


def test_a_partition_by_a_column_needs_units_that_are_in_one_block():
    with pytest.raises(TacitError, match="code: not-allowed"):
        events(unit="patient_id")
    with pytest.raises(TacitError, match="code: not-allowed"):
        events(unit=tc.Unit("patient_id", per="ward"))
    with pytest.raises(TacitError, match="code: not-allowed"):
        events(blocks=tc.Blocks("day", per_unit=2))
    events(unit=PATIENT_DAY)
    events(unit="day")


def test_what_is_missing_or_odd_is_refused():
    for wrong in (
        {"types": {}}, {"blocks": "day"}, {"blocks": None, "block": "mo"}, {"block": ""}, {"block": 1.5},
        {"block": " mo"}, {"block": True}, {"block": "a\nb"},
    ):  # fmt: skip
        with pytest.raises(TacitError, match="code: bad-parameter"):
            events(**wrong)
    with pytest.raises(TacitError, match="code: unknown-column"):
        events(blocks=tc.Blocks("date"))
    with pytest.raises(TacitError, match="code: not-allowed"):
        events(adjacency="replace")
    data = events()
    with pytest.raises(TacitError, match="code: account-differs"):
        events(ledger=ledger_of(data), blocks=None)


@pytest.mark.parametrize("block", ["2026-01-03", dt.date(2026, 1, 3), dt.datetime(2026, 1, 3)], ids=repr)
def test_a_day_has_one_name_however_it_is_written(block):
    assert events(block=block).identity.block == "2026-01-03"


def test_a_config_declares_blocks(tmp_path):
    VISITS.to_csv(tmp_path / "v.csv", index=False)
    text = '[datasets.visits]\nsource = "v.csv"\nunit = ""\nbudget = {epsilon = 1}\ntypes = {day = "date"}\n'
    for written in ('blocks = "day"', 'blocks = {by = "day"}', 'blocks = {by = "day", per_unit = 1}'):
        data = read_config(text + written, tmp_path).dataset("visits")
        assert concerned(data.where(is_on(DAYS[2])).agg(n=tc.count())) == days(3)
    data = read_config(text + 'blocks = "day"\nblock = 2026-01-03', tmp_path).dataset("visits")
    assert data.identity.block == "2026-01-03"
    for wrong in ("blocks = 3", 'blocks = {name = "day"}', 'blocks = {by = "day", per_unit = 0}'):
        with pytest.raises(TacitError, match="code: bad-parameter"):
            read_config(text + wrong, tmp_path).dataset("visits")


# certificates


def test_a_certificate_that_claims_other_blocks_is_found_out():
    data = events()
    certificate = data.where(is_on(DAYS[2])).agg(n=tc.count()).plan(epsilon=0.5).release().certificate
    ledger = ledger_of(data)
    assert certificate.problems(ledger) == []
    for others in ([], ["2026-01-04"], ["2026-01-03", "2026-01-04"], "2026-01-03", None):
        forged = tc.Certificate({**certificate.fields, "blocks": others})
        assert any("other blocks" in problem for problem in forged.problems(ledger))
    bare = {name: value for name, value in certificate.fields.items() if name != "blocks"}
    assert any("other blocks" in problem for problem in tc.Certificate(bare).problems(ledger))
    whole = data.agg(n=tc.count()).plan(epsilon=0.25).release().certificate
    assert "blocks" not in whole.fields
    assert tc.Certificate({**whole.fields, "blocks": ["2026-01-03"]}).problems(ledger)


def test_an_analyst_pays_for_the_block_too():
    data = events()
    ledger = ledger_of(data)
    ledger.create_account("ana", parent="visits", budget=tc.Budget(epsilon=1), blocks=BY_DAY)
    for day in DAYS[:3]:
        plan = data.where(is_on(day)).agg(n=tc.count()).plan(epsilon=0.8)
        plan.release()
        certificate = plan.release(account="ana").certificate  # a stored answer
        assert certificate.problems(ledger) == []
    assert ledger.account("ana").spent.epsilon == Fraction(4, 5)


# no unit is in two blocks

CELLS = {
    "date": ["2026-01-03", "2026-1-3", " 2026-01-03", "2026-01-03 00:00:00", "2026-01-03T00:00:00",
             "03.01.2026", "2026-01-04", "2026-01-03 23:59:59.999999", "20260103", "", None, "infinity",
             "2026-01-03 00:00:00+05"],
    "text": ["2026-01-03", "2026-1-3", " 2026-01-03", "2026-01-03 ", "A", "a", "\u00e4", "a\u0308", "", None,
             "NULL"],
    "number": ["1", "1.0", "01", " 1", "1e0", "+1", "1.5", "-0", "0", "nan", "inf", "one", "", None,
               "9007199254740993", "9007199254740992"],
    "boolean": ["true", "TRUE", "t", "1", "yes", "false", "0", "", None],
}  # fmt: skip
LITERALS = {
    "date": [
        "2026-01-03",
        "2026-01-03 00:00",
        "2026-01-04",
        "2026-01-03 23:59:59.999999",
        "2026-01-03 05:00",
    ],
    "text": ["2026-01-03", "2026-1-3", " 2026-01-03", "2026-01-03 ", "A", "a", "\u00e4", "a\u0308", "NULL"],
    "number": [1, 1.0, 1.5, 0, -0.0, 2],
    "boolean": [True, False],
}


def counted(query):
    """Return a question's exact count and the block that it concerns."""
    plan = query.plan(epsilon=1)
    return exact_of_plan(plan)[0][0][0], plan._members[0].blocks


@pytest.mark.parametrize("kind", CELLS)
def test_one_row_is_counted_in_one_block_only(kind):
    """A search for a unit in two blocks: every spelling of a value in the data, every constant asked for."""
    seen = 0
    for cell in CELLS[kind]:
        table = pa.table({"day": pa.array([cell], pa.string())})
        data = events(table, types={"day": kind}, bounds={}, keys={}, budget=HUGE)
        blocks = set()
        for literal in LITERALS[kind]:
            for query in (
                data.where(is_on(literal)).agg(n=tc.count()),
                data.group_by("day", keys=[literal]).agg(n=tc.count()),
                data.where(tc.col("day").is_in([literal])).agg(n=tc.count()),
            ):
                number, named = counted(query)
                assert len(named) <= 1
                if number:
                    blocks.add(named)
        blocks.discard(())  # charged to all of the data
        assert len(blocks) <= 1, (cell, blocks)
        seen += len(blocks)
    assert seen >= 2


def test_another_session_cannot_read_the_block_column_in_another_way():
    """The text '2026-1-3' and the day 2026-01-03 would be two blocks of one row."""
    ledger, table = tc.Ledger.memory(), pa.table({"day": ["2026-1-3"]})
    facts = {"bounds": {}, "keys": {}, "ledger": ledger}
    first = events(table, types={"day": "text"}, **facts)
    first.where(is_on("2026-1-3")).agg(n=tc.count()).plan(epsilon=1).release()
    with pytest.raises(TacitError, match="read as text") as refused:
        events(table, types={"day": "date"}, **facts)
    assert refused.value.code == "account-differs"
    events(table, types={"day": "text"}, **facts)
    events(table, types={}, block="2026-1-3", **facts)  # a block by its name


def test_one_unit_of_two_columns_is_counted_in_one_block_only():
    """Rows of one patient on one day, in two tables."""
    for cell in CELLS["date"]:
        table = pa.table({"patient_id": ["p"], "day": pa.array([cell], pa.string()), "x": [1.0]})
        data = events({"a": table, "b": table}, unit=PATIENT_DAY, bounds={}, keys={}, budget=HUGE)
        found = set()
        for name, literal in itertools.product("ab", LITERALS["date"]):
            number, named = counted(data[name].where(is_on(literal)).agg(n=tc.count()))
            found |= {named} if number else set()
        assert len(found - {()}) <= 1, (cell, found)


def test_the_wire_form_of_a_plan_keeps_its_blocks():
    data = events()
    plan = data.where(is_on(DAYS[2])).agg(n=tc.count()).plan(epsilon=0.5)
    again = data.plan_from(json.loads(json.dumps(plan.to_json())))
    assert again._members[0].blocks == days(3)
