"""Dates: days without a time of day, keys that are dates, and releases that show them as dates."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pytest

import tacit as tc
from support.asking import HUGE
from tacit import TacitError

STAMPS = ["2026-01-03 10:00:00", "2026-01-03 00:00:00", "2026-02-01 05:30:00", None]
DAYS = ["2026-01-03", "2026-01-03", "2026-02-01", None]


def sources(tmp_path):
    frame = pd.DataFrame({"pid": [1, 2, 3, 4], "ts": pd.to_datetime(STAMPS), "day": pd.to_datetime(DAYS)})
    frame.to_parquet(tmp_path / "t.parquet")
    text = pd.DataFrame({"pid": [1, 2, 3, 4], "ts": STAMPS, "day": DAYS})
    text.to_csv(tmp_path / "t.csv", index=False)
    return {
        "moments": frame,
        "text": text,
        "dates": frame.assign(day=frame["day"].dt.date),
        "parquet": tmp_path / "t.parquet",
        "csv": tmp_path / "t.csv",
    }


def protected(source, **facts):
    return tc.protect(source, name="t", unit="pid", budget=HUGE, **facts)


def counted(question):
    release = question.plan(epsilon=10**6).release()
    return dict(zip(next(iter(release.keys.values())), release["n"].value, strict=True))


@pytest.mark.parametrize("kind", ["moments", "text", "dates", "parquet", "csv"])
@pytest.mark.parametrize("types", [{}, {"types": {"ts": "date", "day": "date"}}])
@pytest.mark.parametrize(
    "key", ["2026-01-03", "2026-01-03T00:00", dt.date(2026, 1, 3), "2026-01-03 00:00:00"]
)
def test_a_day_matches_however_it_is_stored_declared_and_written(tmp_path, kind, types, key):
    source = sources(tmp_path)[kind]
    data = protected(source, **types)
    assert counted(data.group_by("day", keys=[key]).agg(n=tc.count())) == {"2026-01-03": 2}
    declared = protected(source, keys={"day": [key]}, **types)
    assert counted(declared.group_by("day").agg(n=tc.count())) == {"2026-01-03": 2}
    for cast in ("CAST(ts AS DATE)", "ts::date", "date_trunc('day', ts)"):
        by_day = data.sql(f"SELECT {cast} AS d, COUNT(*) AS n FROM t GROUP BY d", keys={"d": [key]})
        assert counted(by_day) == {"2026-01-03": 2}, cast


def test_a_cast_to_a_date_drops_the_time_of_day(tmp_path):
    data = protected(sources(tmp_path)["moments"])
    for condition, true in [
        ("CAST(ts AS DATE) = '2026-01-03'", 2),
        ("ts::date = DATE '2026-01-03'", 2),
        ("CAST(ts AS DATE) = CAST('2026-01-03 10:00' AS DATE)", 2),
        ("CAST(ts AS TIMESTAMP) = '2026-01-03'", 1),
        ("ts::timestamp = TIMESTAMP '2026-01-03 10:00:00'", 1),
    ]:
        assert data.where(condition).agg(n=tc.count()).plan(epsilon=10**6).release().value == true, condition


@pytest.mark.parametrize("kind", ["moments", "text", "dates", "parquet", "csv"])
def test_a_column_that_is_compared_with_dates_is_read_as_dates(tmp_path, kind):
    data = protected(sources(tmp_path)[kind])
    for condition, true in [
        ("day = '2026-01-03'", 2),
        ("day <= '2026-02-01'", 3),
        ("day IN ('2026-01-03', '2026-02-01')", 3),
        ("day BETWEEN '2026-01-03' AND '2026-01-31'", 2),
        ("day <> '2026-01-03'", 1),
        ("day LIKE '2026-02%'", 1),
        ("day >= '2026'", 3),
    ]:
        assert data.where(condition).agg(n=tc.count()).plan(epsilon=10**6).release().value == true, condition


def test_months_are_keys(tmp_path):
    data = protected(sources(tmp_path)["csv"])
    months = ["2026-01-01", "2026-02-01", "2026-03-01"]
    sql = "SELECT date_trunc('month', ts) AS month, COUNT(*) AS n FROM t GROUP BY month"
    assert counted(data.sql(sql, keys={"month": months})) == dict(zip(months, (2, 1, 0), strict=True))


@pytest.mark.parametrize("wrong", ["März", "2026-02-30", "2026-3-1", "2026", 2026, True])
def test_what_is_not_a_date_is_no_key_of_dates(tmp_path, wrong):
    data = protected(sources(tmp_path)["csv"], types={"ts": "date"})
    for question in (
        lambda: data.group_by("ts", keys=[wrong]),
        lambda: data.sql(
            "SELECT date_trunc('month', ts) AS m, COUNT(*) AS n FROM t GROUP BY m", keys={"m": [wrong]}
        ),
    ):
        with pytest.raises(TacitError, match="must be dates") as refused:
            question()
        assert '"2026-01-01"' in str(refused.value.fix)
    if isinstance(wrong, str):
        with pytest.raises(TacitError, match="must be dates") as refused:
            protected(sources(tmp_path)["csv"], types={"ts": "date"}, keys={"ts": [wrong]})
        assert '"2026-01-01"' in str(refused.value.fix)


def test_one_moment_is_one_key(tmp_path):
    data = protected(sources(tmp_path)["csv"])
    with pytest.raises(TacitError, match="twice"):
        data.group_by("day", keys=["2026-01-03", "2026-01-03 00:00"])


def test_text_stays_text(tmp_path):
    data = protected(sources(tmp_path)["csv"], types={"day": "text"})
    release = data.group_by("day", keys=["2026-01-03"]).agg(n=tc.count()).plan(epsilon=10**6).release()
    assert release["n"].value == (2,)
    assert release.dates == ()
    declared = protected(sources(tmp_path)["csv"], keys={"day": ["2026-01-03"]})
    assert declared.where("day LIKE '2026-01%'").agg(n=tc.count()).plan(epsilon=10**6).release().value == 2


@pytest.mark.parametrize(
    ("types", "fix"),
    [("date", '["2026-01-01", "2026-02-01"]'), ("number", "[1, 2]"), ("text", '["A", "B"]')],
)  # fmt: skip
def test_missing_keys_are_suggested_in_the_kind_of_their_column(tmp_path, types, fix):
    data = protected(sources(tmp_path)["csv"], types={"day": types})
    with pytest.raises(TacitError) as refused:
        data.group_by("day").agg(n=tc.count()).plan(epsilon=1)
    assert refused.value.code == "keys-missing"
    assert fix in str(refused.value.fix)


def test_data_frames_show_dates_as_dates(tmp_path):
    data = protected(sources(tmp_path)["csv"])
    days = data.sql(
        "SELECT day AS d, COUNT(*) AS n FROM t GROUP BY day ORDER BY n",
        keys={"d": ["2026-01-03", "2026-02-01"]},
    )
    release = days.plan(epsilon=10**6).release()
    assert release.keys["d"] == ("2026-02-01", "2026-01-03")
    frame = release.to_pandas()
    assert frame["d"].dtype.kind == "M"
    assert list(frame["d"].dt.month) == [2, 1]
    assert release.to_arrow().column("d").to_pylist() == [dt.date(2026, 2, 1), dt.date(2026, 1, 3)]
    assert release.to_polars()["d"].to_list() == [dt.date(2026, 2, 1), dt.date(2026, 1, 3)]
    release.save(tmp_path / "r.json")
    assert tc.Release.load(tmp_path / "r.json").to_pandas().equals(frame)
    assert release.to_csv().splitlines()[1].startswith("2026-02-01,")
    moments = data.group_by("ts", keys=["2026-01-03 10:00", "2026-01-03"]).agg(n=tc.count())
    release = moments.plan(epsilon=10**6).release()
    assert release.keys["ts"] == ("2026-01-03 00:00:00", "2026-01-03 10:00:00")
    assert release.to_arrow().column("ts").to_pylist()[1] == dt.datetime(2026, 1, 3, 10)


def test_plans_with_dates_are_rebuilt(tmp_path):
    data = protected(sources(tmp_path)["csv"])
    plan = data.group_by("day", keys=["2026-01-03"]).agg(n=tc.count()).plan(epsilon=1)
    assert data.plan_from(plan.to_json()) == plan
