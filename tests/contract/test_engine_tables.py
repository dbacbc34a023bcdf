"""The exam of engines, tables: exact grids, sums beyond 64 bits, ranks, odd names, odd texts, bytes."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import tacit as tc
from support.asking import HUGE, subject_of
from support.engine_exam import opened, table_of, values
from support.engine_places import ENGINES, OTHERS
from tacit.algebra import Column, RowCounts, Scan, Sums, TableQuestion, grid_for
from tacit.tables.planning._exact_integers import exact_integers


@pytest.fixture(scope="module", params=ENGINES)
def place(request, place_of):
    return place_of(request.param)


def protected(place: Any, source: Any, **declared: Any) -> tc.Dataset:
    return tc.protect(source, budget=HUGE, engine=place.engine, **declared)


def integers(plan: Any) -> dict[Any, list[int]]:
    """Return the exact integers of a plan's first statistic."""
    task = subject_of(plan)
    with task.engine.transaction() as data:
        return next(iter(exact_integers(data, task.asked, task.statistics).values()))


# Grids and sums ---------------------------------------------------------------------------------------------

BOUNDS = [(0, 1), (-3, 7), ("0.1", "0.7"), ("1e-290", "3e-290"), (-1e300, 1e300), (0, 1.7976931348623157e308)]


def test_values_fall_on_the_grid_exactly(place):
    """The reference is floor(x/step + 1/2) in fractions, clipped to the grid's whole numbers."""
    grids = [grid_for(tuple(Fraction(b) for b in bounds), bits) for bounds in BOUNDS for bits in (30, 16)]
    columns = {}
    for i, (grid, bounds) in enumerate(zip(grids, [b for b in BOUNDS for _ in "12"], strict=True)):
        near = [grid.step * (n + half) for n in (grid.lo, 0, 1, grid.hi) for half in (0, Fraction(1, 2))]
        there = [x for x in near if abs(x) < Fraction(1.79e308)]
        found = [float(x) for x in (*there, *map(Fraction, bounds))]
        found += [math.nextafter(v, way) for v in found for way in (-math.inf, math.inf)]
        found += [0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, math.inf, -math.inf, math.nan]
        columns[f"x{i}"] = found + [None] * (60 - len(found))
    table = pa.table({"u": range(60), **{c: pa.array(v, pa.float64()) for c, v in columns.items()}})
    engine = opened(place, {"t": table})
    statistics = tuple(Sums(Column(f"x{i}", "number"), grid) for i, grid in enumerate(grids))
    by = (("u", Column("u", "number")),)
    question = TableQuestion(Scan(table_of(engine), None), by, None, (), None, None)
    with engine.transaction() as data:
        got = exact_integers(data, question, statistics)
    engine.close()
    for statistic, grid, column in zip(statistics, grids, columns.values(), strict=True):
        for row, x in enumerate(column):
            [q] = got[statistic][(float(row),)]
            if x is None or math.isnan(x):
                assert q == 0
                continue
            exact = math.floor(Fraction(x) / grid.step + Fraction(1, 2)) if math.isfinite(x) else x
            assert q == min(max(exact, grid.lo), grid.hi), (grid, x)


def test_sums_do_not_overflow_or_round(place):
    n = 4000
    numbers = [1e18] * n + [-1e18] * n + [2.0**53] * 3
    random.Random(1).shuffle(numbers)
    table = pa.table({"u": range(len(numbers)), "x": numbers})
    engine = opened(place, {"t": table})
    grid = grid_for((Fraction(-(10**18)), Fraction(10**18)), 51)
    assert grid.step == 2**10
    statistics = (Sums(Column("x", "number"), grid),)
    question = TableQuestion(Scan(table_of(engine), None), (), None, (), None, None)
    with engine.transaction() as data:
        assert exact_integers(data, question, statistics)[statistics[0]] == {(): [3 * 2**43]}
    engine.close()


def test_whole_numbers_are_divided_exactly(place):
    engine = opened(place, {"t": pa.table({"u": [1]})})
    n = 5_000_000
    [(a, b)] = place.ask(
        f"SELECT {engine.dialect.whole_div(str(10**30), '7')}, {engine.dialect.whole_div(str(3 * n - 1), str(n))}"  # noqa: E501
    )
    assert (int(a), int(b)) == (142857142857142857142857142857, 2)
    engine.close()


# Ranks ------------------------------------------------------------------------------------------------------


def ranked_table(shuffled: int | None = None) -> pa.Table:
    draw = random.Random(4)
    rows = [
        {
            "u": draw.choice([1, 2, 3, None]),
            "x": draw.choice([None, math.nan, 0.0, 0.5, 1e300, math.inf, 2.0]),
            "t": draw.choice([None, "", "a", "b", "1:a", "-", "é", "a'b\\", "|"]),
            "b": draw.choice([None, True, False]),
            "n": draw.choice([None, 2**63 - 1, 0, 7]),
        }
        for _ in range(90)
    ]
    if shuffled is not None:
        random.Random(shuffled).shuffle(rows)
    kinds = {"u": pa.int64(), "x": pa.float64(), "t": pa.string(), "b": pa.bool_(), "n": pa.int64()}
    return pa.table({c: pa.array([row[c] for row in rows], kind) for c, kind in kinds.items()})


def kept_rows(place: Any, table: pa.Table, rows: int = 4, ask: int = 1) -> dict[Any, int]:
    """Return which rows a limit keeps, and how often."""
    engine = opened(place, {"t": table})
    by = tuple(
        (c, Column(c, k))
        for c, k in zip("uxtbn", ("number", "number", "text", "boolean", "number"), strict=True)
    )
    question = TableQuestion(Scan(table_of(engine), rows), by, None, (), None, None, missing=True)
    for _ in range(ask):
        with engine.transaction() as data:
            [(_, lines)] = data.integers(question, (RowCounts(None),), {})
    engine.close()
    return {tuple(line[:-1]): int(line[-1]) for line in lines}


def test_every_engine_keeps_the_same_rows(place, place_of):
    expected = kept_rows(place_of("duckdb"), ranked_table())
    assert sum(expected.values()) == 12
    assert kept_rows(place, ranked_table(5)) == expected
    assert kept_rows(place, ranked_table(), ask=3) == expected  # from a snapshot


# Names and texts --------------------------------------------------------------------------------------------

NAMES = ["a b", 'quo"te', "back`tick", "back\\slash", "it's", "select", "A", "a", "é", "x;--", "$key", "%s", ":x", "{0}", "?"]  # fmt: skip  # noqa: E501
SIGNS = [chr(i) for i in range(32, 127)] + [
    "\\'",
    "\\\\",
    "''",
    "é",
    "😀",
    "\n",
    "${x}",
    "%%s",
    " a ",
    "NULL",
]


def test_odd_names_of_columns(place):
    """A name that differs from another only in case may get a number, as in DuckDB; no values mix."""
    table = pa.table({"u": [1, 2, 3], **{name: [float(i), 1.0, None] for i, name in enumerate(NAMES)}})
    engine = opened(place, {"t": table})
    declared = table_of(engine)
    asked = [name for name in declared.columns if name != "u"]
    assert [name for name in asked if name in NAMES] == [name for name in NAMES if name in asked]
    assert set(NAMES) - set(asked) <= {"a"}
    found = values(engine, declared, [Column(name, "number") for name in asked])
    assert found[1.0] == tuple(float(i) for i in range(len(NAMES)))
    assert found[3.0] == (None,) * len(NAMES)
    engine.close()


HOSTILE = [
    "body.mass", "t.x", "a.b.c", ".x", "x.", "u.", *NAMES, "rowid", "k0", "v0", "count(*)", "*", "-- x", "0",
    "NULL", "true", "a,b", "x'||'y", "new\nline", "b" * 49,
]  # fmt: skip
VALUES = [float(i % 9) for i in range(60)]
AGGREGATES = {
    "count": tc.count,
    "sum": lambda c: tc.sum(c, bounds=(0, 8)),
    "mean": lambda c: tc.mean(c, spread=False),
    "std": tc.std,
    "correlation": lambda c: tc.correlation(c, "plain"),
    "slope": lambda c: tc.slope("plain", c),
}
CELLS = {
    "distinct": tc.count_distinct,
    "median": tc.median,
    "interval": lambda c: tc.median(c, interval=True),
    "quantiles": lambda c: tc.quantiles(c, [0.5]),
    "largest": tc.max,
    "histogram": lambda c: tc.histogram(c, [0, 4, 8]),
    "most common": lambda c: tc.most_common(c, 1, [1.0, 2.0]),
}


def hostile_data(place, names, **more):
    """Return a dataset with the same values in columns of several names, kept as bounded numbers."""
    columns = {"u": range(60), "plain": VALUES, **dict.fromkeys(names, VALUES)}
    source = place.keep({"t": pa.table(columns)})["t"]
    bounds = dict.fromkeys(("plain", *names), (0, 8))
    return protected(place, source, unit="u", limits={"rows": 1}, bounds=bounds, **more)


def all_integers(plan):
    task = subject_of(plan)
    with task.engine.transaction() as data:
        return {
            s: list(found.values()) for s, found in exact_integers(data, task.asked, task.statistics).items()
        }


def test_every_aggregate_of_every_hostile_name_is_that_of_a_plain_name(place):
    """All sums of all names in one plan; the cells of the names that an engine is most likely to split."""
    names = [name for name in HOSTILE if name != "a"]  # differs from another only in case
    data = hostile_data(place, names)
    for asked, among in ((AGGREGATES, names), (CELLS, names if place.name == "duckdb" else names[:2])):
        for aggregate in asked.values():
            plain = list(all_integers(data.agg(m=aggregate("plain")).plan(epsilon=1)).values())
            plan = data.agg(**{f"m{i}": aggregate(name) for i, name in enumerate(among)}).plan(epsilon=1)
            found = list(all_integers(plan).values())
            assert len(found) == len(among) * len(plain)
            assert all(one in plain for one in found)


@pytest.mark.parametrize("name", ["body.mass", "t.x", "x."])
def test_a_column_with_a_dot_in_its_name_is_released(place, name):
    data = hostile_data(place, [name])
    asked = {word: make(name) for word, make in (AGGREGATES | CELLS).items()}
    quick = asked if place.name == "duckdb" else {w: asked[w] for w in ("sum", "mean", "std", "median")}
    answer = data.agg(**quick).plan(epsilon=10_000).release()
    assert answer["sum"].value[0] == pytest.approx(sum(VALUES), abs=1)
    assert answer["mean"].value[0] == pytest.approx(sum(VALUES) / 60, abs=0.1)
    quoted = name.replace('"', '""')
    sql = data.sql(f'SELECT AVG("{quoted}") AS m, SUM("{quoted}") AS s FROM data').plan(epsilon=10_000)
    assert sql.release()["m"].value[0] == pytest.approx(sum(VALUES) / 60, abs=0.1)


def test_a_statement_that_cannot_be_bound_is_refused_before_the_charge(place, monkeypatch):
    """The twin of version 0.1: the grids of columns whose names have a dot are not laid."""
    from tacit.tables import _protect

    laid = _protect.grid_columns
    monkeypatch.setattr(
        _protect, "grid_columns", lambda facts: laid({c: f for c, f in facts.items() if "." not in c})
    )
    data = hostile_data(place, ["body.mass"])
    for aggregate in (tc.sum, tc.mean, tc.std):
        plan = data.agg(m=aggregate("body.mass")).plan(epsilon=1)
        with pytest.raises(tc.TacitError, match="so nothing was charged"):
            plan.release()
    assert data.remaining.epsilon == data.budget.epsilon


@pytest.mark.parametrize("name", ["two words", 'a"b', "back`tick", "it's", "select"])
def test_odd_names_of_tables(place, name):
    kept = place.keep({"t": pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0]})})
    data = protected(place, {name: kept["t"]}, unit="u", limits={"rows": 1})
    assert integers(data.agg(n=tc.count()).plan(epsilon=1)) == {(): [2]}


def test_every_sign_in_texts_and_public_keys(place):
    table = pa.table({"u": range(len(SIGNS)), "t": SIGNS})
    data = protected(place, place.keep({"t": table})["t"], unit="u", types={"t": "text"})
    plan = data.group_by("t", keys=SIGNS).agg(n=tc.count()).plan(epsilon=1)
    assert integers(plan) == {(sign,): [1] for sign in SIGNS}
    private = data.group_by("t").agg(n=tc.count()).plan(epsilon=1, delta=1e-6)
    assert integers(private) == {(sign,): [1] for sign in SIGNS}
    for sign in ("'", "\\", "\\'", "%", "`", '"', "${x}"):
        assert integers(data.where(tc.col("t") == sign).agg(n=tc.count()).plan(epsilon=1)) == {(): [1]}


# Collations and bytes ---------------------------------------------------------------------------------------

PEOPLE = [("p", "a"), ("P", "A"), ("q", "á"), ("r", "a"), ("s", "a ")]


def collated(place: Any) -> Any:
    """Keep people in columns whose collation takes several spellings for one."""
    name = f"c{random.getrandbits(40)}"
    rows = ", ".join(f"('{u}', '{w}')" for u, w in PEOPLE)
    if place.name == "postgres":
        from psycopg.errors import FeatureNotSupported

        try:
            place.ask(
                "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"  # noqa: E501
            )
        except FeatureNotSupported:
            pytest.skip("this PostgreSQL server has no ICU collations")
        place.ask(f'CREATE TABLE "{name}" (u text COLLATE loose, w text COLLATE loose)')
        place.ask(f'INSERT INTO "{name}" VALUES {rows}')
        return f"{place.schema}.{name}"
    place.ask(f"CREATE TABLE {name} (u STRING COLLATE UTF8_LCASE, w STRING COLLATE UNICODE_CI) USING parquet")
    place.ask(f"INSERT INTO {name} VALUES {rows}")
    return name


@pytest.mark.parametrize("name", OTHERS)
def test_a_collation_merges_neither_units_nor_groups(name, place_of):
    place = place_of(name)
    data = protected(place, collated(place), unit="u")
    assert integers(data.agg(n=tc.count_units()).plan(epsilon=1)) == {(): [5]}
    private = data.group_by("w").agg(n=tc.count()).plan(epsilon=1, delta=1e-6)
    assert integers(private) == {("a",): [2], ("A",): [1], ("á",): [1], ("a ",): [1]}
    assert integers(data.where("w = 'a'").agg(n=tc.count()).plan(epsilon=1)) == {(): [2]}


def test_bytes_name_different_people_and_groups(place):
    names = [b"\xff", b"\xfe", b"\\xFF", b"\\xff", "é".encode(), b"e", b""]
    table = pa.table({"u": pa.array(names, pa.binary()), "w": pa.array(names, pa.binary())})
    data = protected(place, place.keep({"t": table})["t"], unit="u")
    assert integers(data.agg(n=tc.count_units()).plan(epsilon=1)) == {(): [len(names)]}
    groups = integers(data.agg(n=tc.count_distinct("w")).plan(epsilon=1))
    assert groups[()][0] in {len(names), len(names) - 1}  # the text of bytes may spell other bytes' text
    assert integers(data.where("w = 'é'").agg(n=tc.count()).plan(epsilon=1)) == {(): [1]}


def test_texts_that_are_not_utf8_stay_apart(place):
    if not place.any_text:
        pytest.skip("this engine refuses such texts when they are stored")
    names = [b"\xff", b"\xfe", b"ok", b"a\x00b"]
    stored = pa.array(names, pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(stored), stored.buffers())
    data = protected(place, place.keep({"t": pa.table({"u": texts, "w": texts})})["t"], unit="u")
    assert integers(data.agg(n=tc.count_units()).plan(epsilon=1)) == {(): [4]}
    private = integers(data.group_by("w").agg(n=tc.count()).plan(epsilon=1, delta=1e-6))
    assert len(private) == 4
    assert private[("ok",)] == [1]


def test_the_smallest_questions(place):
    empty = pa.table({"u": pa.array([], pa.int64()), "x": pa.array([], pa.float64())})
    data = protected(place, place.keep({"t": empty})["t"], unit="u", bounds={"x": (0, 1)}, limits={"rows": 2})
    assert integers(data.agg(s=tc.sum("x")).plan(epsilon=1)) == {(): [0]}
    assert integers(data.agg(n=tc.count_units()).plan(epsilon=1)) == {(): [0]}
    nobody = pa.table({"u": pa.array([None, math.nan], pa.float64()), "x": [1.0, 2.0]})
    data = protected(place, place.keep({"t": nobody})["t"], unit="u", bounds={"x": (0, 1)})
    assert integers(data.agg(n=tc.count()).plan(epsilon=1)) == {(): [0]}


@pytest.mark.parametrize("name", ["heavy", "p", "r", "s", "tacit", "keys", "rows"])
def test_the_name_of_a_table_never_meets_a_name_inside_a_statement(place, name):
    """Without its prefix, a part of a statement would hide a table of the same name after the charge."""
    rows = pa.table({"u": [1, 1, 1, 2, 3], "g": ["a", "b", "b", "a", "c"]})
    sources = place.keep({name: rows, "other": rows})
    data = protected(place, sources, unit="u", limits={"rows": 2, "groups": 1}, keys={"g": ["a", "b", "c"]})
    for sql in (
        f'SELECT COUNT(*) AS n FROM "{name}"',
        f'SELECT g, COUNT(*) AS n FROM "{name}" GROUP BY g',
        f'SELECT COUNT(DISTINCT g) AS n FROM "{name}"',
        f'SELECT COUNT(*) AS n FROM "{name}" AS a JOIN other AS b ON a.u = b.u',
    ):
        assert data.sql(sql).plan(epsilon=1).release() is not None


def test_a_second_account_for_the_same_table_is_noticed(place, tmp_path):
    tables = {"one": pa.table({"u": [1, 2]}), "other": pa.table({"u": [1, 2]})}
    sources, where = place.keep(tables), tmp_path / "study.ledger"
    for name, source in (("first", sources["one"]), ("third", sources["other"])):
        assert "another account" not in str(protected(place, source, unit="u", name=name, ledger=where))
    pair = {"again": sources["one"] if place.name == "duckdb" else (place.engine, sources["one"])}
    second = tc.protect(pair, unit="u", name="second", budget=HUGE, ledger=where)
    told = " ".join(str(second).split())
    assert "another account (first) of this ledger was opened for the same source" in told
