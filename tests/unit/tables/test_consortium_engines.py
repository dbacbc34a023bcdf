"""A consortium whose members keep their data on different engines: one plan, noisy integers are added."""

import pyarrow as pa
import pytest

import tacit as tc

psycopg = pytest.importorskip("psycopg")

ROWS = 400


def declared(source, name, **engine):
    return tc.protect(
        source,
        name=name,
        unit="pid",
        bounds={"stay": (0, 30)},
        keys={"ward": ["A", "B"]},
        limits={"rows": 5},
        budget=tc.Budget(epsilon=10**6),
        ledger=tc.Ledger.memory(),
        **engine,
    )


def visits(first):
    """Return columns of visits: two a patient; the patients of two members differ."""
    rows = range(first, first + ROWS)
    return {
        "pid": [i // 2 for i in rows],
        "ward": ["AB"[i % 2] for i in rows],
        "stay": [float(i % 9) for i in rows],
    }


@pytest.fixture
def members(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE visits (pid bigint, ward text, stay float8)")
        with connection.cursor() as cursor:
            lines = list(zip(*visits(ROWS).values(), strict=True))
            cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s)", lines)
    north = declared({"visits": pa.table(visits(0))}, "north")
    south = declared({"visits": "visits"}, "south", engine=postgres_url)
    return [north, south]


def test_members_on_two_engines_answer_together(members):
    plan = tc.consortium(members, disjoint=True).group_by("ward").agg(n=tc.count(), s=tc.sum("stay"))
    release = plan.plan(epsilon=10**5).release()
    stays = [*visits(0)["stay"], *visits(ROWS)["stay"]]
    exact = [sum(stays[0::2]), sum(stays[1::2])]
    assert [round(n) for n in release["n"].value] == [ROWS, ROWS]
    assert release["s"].value == pytest.approx(exact, abs=0.5)


def test_each_member_pays_from_its_own_ledger(members):
    both = tc.consortium(members, disjoint=True)
    both.agg(n=tc.count()).plan(epsilon=1).release()
    assert [float(m.remaining.epsilon) for m in members] == [10**6 - 1, 10**6 - 1]


def test_the_plan_is_the_same_on_every_engine(members):
    plans = [m.group_by("ward").agg(n=tc.count()).plan(epsilon=1).to_json() for m in members]
    assert plans[0]["request"] == plans[1]["request"]
