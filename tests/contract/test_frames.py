"""The contract of frames: the type that a column infers from all its rows changes nothing of anyone's row.

A frame is asked exact questions, then again with the rows of one more unit whose values change the types of
whole columns. Every exact integer may differ by what the plan declares for one unit, and by nothing else.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
import math
import random
import struct

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from support.asking import subject_of, task_of
from support.duckdb_sql import expression_sql
from support.exact_integers import exact_of, exact_of_plan
from tacit.algebra._contribution import contribution
from tacit.algebra._expressions import Column
from tacit.engines import DuckDB, SourceTable, read_source
from tacit.tables.planning._exact_integers import exact_integers

KEY = 12345
UNITS, EACH = 24, 4
N = UNITS * EACH
RNG = random.Random(3)
MOMENT = dt.datetime(2020, 1, 1, 12, 30, 0, 250)
SPREAD = [i % 12 for i in RNG.sample(range(600), N)]

#: What a column holds before the other unit comes. Few different values, so that groups are large.
COLUMNS = {
    "int": SPREAD,
    "small": np.array(SPREAD, np.int8),
    "unsigned": np.array(SPREAD, np.uint64),
    "float": [k / 4 for k in SPREAD],
    "whole float": [float(k) for k in SPREAD],
    "float32": np.array([k / 10 for k in SPREAD], np.float32),
    "huge": [10.0**k * (-1) ** k for k in SPREAD],
    "infinite": [math.inf if k % 3 else k / 7 for k in SPREAD],
    "bool": [k % 2 == 0 for k in SPREAD],
    "moment": [MOMENT + dt.timedelta(days=k, microseconds=5 * k) for k in SPREAD],
    "nano": pd.to_datetime([10**18 + 10**14 * k + k for k in SPREAD]),
    "old": pd.to_datetime([-(10**18) - 10**14 * k - k for k in SPREAD]),
    "zoned": pd.to_datetime([MOMENT + dt.timedelta(days=k) for k in SPREAD]).tz_localize("Europe/Vienna"),
    "day": [dt.date(2020, 1, 1 + k) for k in SPREAD],
    "span": pd.to_timedelta(SPREAD, unit="h"),
    "decimal": [decimal.Decimal(k) / 4 for k in SPREAD],
    "text": [f"t{k}" for k in SPREAD],
    "missing": [math.nan] * N,
    "Int64": pd.array([None if k == 5 else k for k in SPREAD], dtype="Int64"),
    "boolean": pd.array([None if k == 5 else k % 2 == 0 for k in SPREAD], dtype="boolean"),
}
#: What the other unit brings.
INJECTED = {
    "nan": math.nan,
    "none": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "text": "abc",
    "bad date": "9999-99-99",
    "digits": "7",
    "2**63": 2**63,
    "2**70": 2**70,
    "true": True,
    "half": 1.5,
    "complex": 2j,
    "decimal": decimal.Decimal("1.50"),
    "moment": MOMENT,
    "zoned": pd.Timestamp("2020-01-01", tz="UTC"),
    "far": dt.datetime(9999, 12, 31),
    "day": dt.date(2020, 1, 1),
    "span": dt.timedelta(hours=1),
    "clock": dt.time(1),
    "list": [1],
    "bytes": b"\xff",
    "surrogate": "\ud800",
    "object": object(),
}
OWNERS = [f"p{i // EACH}" for i in range(N)]
TEXT_KEYS = {
    "int": ["0", "1", "2"],
    "float": ["0", "0.25", "1"],
    "bool": ["true", "false"],
    "moment": ["2020-01-01 12:30:00.00025"],
    "decimal": ["0", "0.25", "1"],
}


def _values(column):
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _frame(column, more=(), unit=OWNERS):
    """A frame as its user would make it, of plain values where another unit's come after them."""
    if not len(more):
        return pd.DataFrame({"u": unit, "c": column, "x": range(N)})
    values = [*_values(column), *more]
    return pd.DataFrame({"u": [*unit, *["zz"] * len(more)], "c": values, "x": range(len(values))})


def _exact(frame, question, **facts):
    data = tc.protect(frame, unit="u", budget=tc.Budget(epsilon=100, delta=1e-3), **facts)
    data._engine._key = KEY
    subject = subject_of(question(data))
    who = contribution(subject.asked, row_level=False, adjacency="add/remove")
    return subject.steps, who, exact_integers(subject.engine, subject.asked, subject.statistics)


def _assert_one_unit_apart(before, after, question, **facts):
    (steps, who, a), (_, _, b) = (_exact(frame, question, **facts) for frame in (before, after))
    for step in steps:
        statistic = step.statistic
        x, y = a[statistic], b[statistic]
        zeros = [0] * statistic.size
        apart = [abs(i - j) for k in {*x, *y} for i, j in zip(x.get(k, zeros), y.get(k, zeros), strict=True)]
        l1, l2_squared = statistic.sensitivity(who)
        assert sum(apart) <= l1, statistic
        assert sum(d * d for d in apart) <= l2_squared, statistic


def _readings(names, where="tacit_u::VARCHAR <> 'zz'"):
    """Owner, row and every reading of each column, of the rows that are kept."""
    kinds = ("text", "number", "boolean", "date")
    listed = ", ".join(expression_sql(Column(c, kind)) for c in names for kind in kinds)
    return f'SELECT tacit_u::VARCHAR, x, {listed} FROM "t first 1" WHERE {where} ORDER BY ALL'


KEPT = _readings(["c"])


def _kept(frame, sql=KEPT):
    made = DuckDB({"t": SourceTable(read_source(frame), ("u",))}, key=KEY, snapshot=None)
    try:
        return made.rows(sql, {}, [("t", 1)])
    finally:
        made.close()


def _wide(value=None, *, more=False):
    """All columns beside each other, and below them the other unit's row, which has the value in each."""
    if not more:
        return pd.DataFrame({"u": OWNERS, **COLUMNS, "x": range(N)})
    below = {name: [*_values(column), value] for name, column in COLUMNS.items()}
    if isinstance(value, str) and value == "\ud800":  # pandas itself takes it only among objects
        below |= {name: pd.Series(below[name], dtype=object) for name in ("text", "missing")}
    return pd.DataFrame({"u": [*OWNERS, "zz"], **below, "x": range(N + 1)})


@pytest.fixture(scope="module")
def before():
    return _kept(_wide(), _readings(COLUMNS))


@pytest.mark.parametrize("name", INJECTED)
def test_no_value_of_one_unit_changes_what_is_read_of_another(name, before):
    """Owner, kept row and its values in every reading: the same, whatever types the columns came out as."""
    after = _kept(_wide(INJECTED[name], more=True), _readings(COLUMNS))
    assert len(before) == UNITS
    assert [line[:2] for line in after] == [line[:2] for line in before], "other rows were kept"
    for at, column in enumerate(COLUMNS):
        seen = [[line[2 + 4 * at : 6 + 4 * at] for line in lines] for lines in (after, before)]
        assert seen[0] == seen[1], column


def test_the_injected_values_do_change_types():
    """Else the test above would show nothing."""
    plain = _wide().dtypes
    for name, kind in plain.items():
        if name not in {"u", "x", "day", "decimal"}:  # those are objects from the start
            assert any(_wide(v, more=True).dtypes[name] != kind for v in INJECTED.values()), name


@pytest.mark.parametrize("held", ["int", "whole float", "bool", "moment", "day", "text", "decimal", "Int64"])
def test_no_name_of_one_unit_changes_another_unit(held):
    kinds = [str, lambda k: dt.date(2020, 1, 1) + dt.timedelta(days=k), lambda k: k % 2 == 0, float, int]
    at = {"text": 0, "day": 1, "bool": 2, "whole float": 3}.get(held, 4)
    owners = [kinds[at](i // EACH) for i in range(N)]
    if held == "moment":
        owners = [MOMENT + dt.timedelta(days=i // EACH) for i in range(N)]
    if held == "decimal":
        owners = [decimal.Decimal(k) / 4 for k in owners]
    if held == "Int64":
        owners = pd.array(owners, dtype="Int64")
    base = pd.DataFrame({"u": owners, "c": SPREAD, "x": range(N)})
    sql = _readings(["c"], "x < 1000")
    before = _kept(base, sql)
    assert len(before) == (2 if held == "bool" else UNITS)
    for name in ("zz", 0.3, 2**70, None, dt.timedelta(1), b"\xff", pd.Timestamp("2050-01-01", tz="UTC")):
        after = pd.DataFrame({"u": [*owners, name], "c": [*SPREAD, 5], "x": [*range(N), 1000]})
        assert _kept(after, sql) == before, (name, after["u"].dtype)


QUESTIONS = {
    "sum": lambda d: d.agg(s=tc.sum("c")).plan(epsilon=1),
    "histogram": lambda d: d.agg(h=tc.histogram("x", list(range(0, N + 1, 2)))).plan(epsilon=1),
    "count": lambda d: d.agg(n=tc.count("c"), d=tc.count_distinct("c")).plan(epsilon=1),
    "private groups": lambda d: d.group_by("c").agg(n=tc.count()).plan(epsilon=1, delta=1e-6),
    "where": lambda d: d.where("c = '1'").agg(n=tc.count()).plan(epsilon=1),
}
FACTS = {"sum": {"bounds": {"c": (0, 1)}}, "histogram": {"bounds": {"x": (0, 1000)}}}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("held", "value"), [("int", math.nan), ("int", "abc"), ("bool", None), ("moment", "no")]
)
def test_exact_integers_move_by_one_unit_at_most(held, value, question):
    before, after = _frame(COLUMNS[held]), _frame(COLUMNS[held], [value])
    assert before["c"].dtype != after["c"].dtype
    facts = {"limits": {"rows": 1}, **FACTS.get(question, {})}
    _assert_one_unit_apart(before, after, QUESTIONS[question], **facts)


@pytest.mark.parametrize("held", TEXT_KEYS)
def test_public_text_keys_find_their_rows_in_every_type(held):
    for value in (None, "abc"):
        frame = _frame(COLUMNS[held], [value])
        ask = lambda d: d.group_by("c", keys=TEXT_KEYS[held]).agg(n=tc.count()).plan(epsilon=1)  # noqa: E731
        _assert_one_unit_apart(_frame(COLUMNS[held]), frame, ask, limits={"rows": 1})
        [counts] = _exact(frame, ask)[2].values()
        assert sum(n for (n,) in counts.values()) > 0


def test_tables_join_whatever_types_their_units_have():
    visits = pd.DataFrame({"u": range(20), "x": [5] * 20})
    whole = pd.DataFrame({"u": range(20), "age": range(20)})
    floats = pd.DataFrame({"u": [*map(float, range(20)), math.nan], "age": range(21)})
    named = pd.DataFrame({"u": [*map(float, range(20)), math.nan, "zz"], "age": [*range(21), "old"]})
    texts = pd.DataFrame({"u": [str(i) for i in range(20)], "age": range(20)})
    decimals = pa.table(
        {"u": pa.array([decimal.Decimal(i) for i in range(20)], pa.decimal128(9, 3)), "age": range(20)}
    )
    ask = lambda d: d["visits"].join(d["patients"], rows=1).agg(n=tc.count()).plan(epsilon=1)  # noqa: E731
    for patients in (whole, floats, named, texts, decimals):
        both = {"visits": visits, "patients": patients}
        [counts] = _exact(both, ask, name="h", limits={"rows": 1})[2].values()
        assert counts == {(): [20]}


def _csv(more: str) -> str:
    return "u,w\n" + "".join(f"p{i},{1 + i % 2}\n" for i in range(40)) + more


@pytest.mark.parametrize("cell", ["", "1.5"])
def test_a_reader_that_chose_floats_changes_no_text(cell):
    for read in (pl.read_csv, pd.read_csv):
        before, after = read(io.StringIO(_csv(""))), read(io.StringIO(_csv(f"zz,{cell}\n")))
        ask = lambda d: d.group_by("w", keys=["1", "2"]).agg(n=tc.count()).plan(epsilon=1)  # noqa: E731
        _assert_one_unit_apart(before, after, ask, limits={"rows": 1})


@pytest.mark.parametrize("make", [pa.table, lambda d: pl.DataFrame(d, strict=False)], ids=["arrow", "polars"])
@pytest.mark.parametrize(
    ("values", "value"),
    [
        (SPREAD, 1.5),
        (SPREAD, None),
        ([k / 4 for k in SPREAD], math.nan),
        ([decimal.Decimal(k) / 4 for k in SPREAD], decimal.Decimal("0.123456789")),
        (COLUMNS["moment"], None),
    ],
)
def test_arrow_and_polars_read_value_by_value(make, values, value):
    def frame(more):
        n = N + len(more)
        return make({"u": [*OWNERS, *["zz"] * len(more)], "c": [*values, *more], "x": list(range(n))})

    assert _kept(frame([value])) == _kept(frame([]))


def test_wide_whole_numbers_in_polars_are_read():
    frame = pl.DataFrame(
        {"u": [*OWNERS, "zz"], "c": pl.Series([*SPREAD, 2**100], dtype=pl.Int128), "x": range(N + 1)}
    )
    assert _kept(frame) == _kept(_frame(SPREAD))


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), pa.timestamp("s", "UTC"), pa.timestamp("ns")])
def test_moments_of_arrow_in_pandas_are_read(kind):
    held = pd.Series(COLUMNS["day"], dtype=pd.ArrowDtype(pa.date32())).astype(pd.ArrowDtype(kind))
    assert _kept(_frame(held)) == _kept(_frame(COLUMNS["day"]))


def test_objects_in_polars_do_not_fail():
    held = pl.Series("c", [*SPREAD, object()], dtype=pl.Object)
    frame = pl.DataFrame({"u": [*OWNERS, "zz"], "c": held, "x": range(N + 1)})
    assert _kept(frame) == _kept(_frame(SPREAD))


HUGE = [1e22, -1e22, 2.0**63, -(2.0**63), 2.0**81, 2.0**82, 2.0**91, 2.0**807, 1e300, 1.5e19, math.inf]


@pytest.mark.parametrize("kind", ["float", "whole", "decimal"])
def test_values_are_written_as_duckdb_writes_them(kind):
    rng = random.Random(5)
    con = duckdb.connect(config={"threads": 1})
    if kind == "float":
        bits = [struct.unpack("d", rng.randbytes(8))[0] for _ in range(4000)]
        near = [rng.randint(-(10**17), 10**17) * 10.0 ** rng.randint(-25, 5) for _ in range(4000)]
        ends = [1e16, 1e15, 1e-4, 1e-5, 5e-324, math.inf, -math.inf, -0.0, 2.0**53, *HUGE]
        values = [x for x in (*bits, *near, *ends) if not math.isnan(x)]
    elif kind == "whole":
        values = [rng.randint(-(2**63), 2**63 - 1) >> rng.randint(0, 60) for _ in range(4000)]
    else:
        values = [
            decimal.Decimal(rng.randint(-(10**17), 10**17)).scaleb(-rng.randint(0, 9)) for _ in range(4000)
        ]
    frame = pa.table({"u": range(len(values)), "c": values})
    made = DuckDB({"t": SourceTable(read_source(frame), ("u",))}, key=KEY, snapshot=None)
    typed = made.rows("SELECT tacit_text(c), tacit_number(c) FROM t ORDER BY u", {})
    objects = pd.DataFrame({"u": range(len(values)), "c": pd.Series(values, dtype=object)})
    untyped = DuckDB({"t": SourceTable(read_source(objects), ("u",))}, key=KEY, snapshot=None)
    assert untyped.rows("SELECT tacit_text(c), tacit_number(c) FROM t ORDER BY u", {}) == typed
    untyped.close()
    [(apart,)] = con.execute(
        "SELECT count(*) FROM (SELECT unnest($t) AS t, unnest($n) AS n) "
        "WHERE TRY_CAST(t AS DOUBLE) IS DISTINCT FROM n",
        {"t": [t for t, _ in typed], "n": [n for _, n in typed]},
    ).fetchall()
    assert apart == 0
    made.close()


def test_two_names_never_become_one_unit():
    names = ["v", "v?", "v\ufffd", "v\ud800", "v\udfff", b"v\xff", b"v\xfe", "V", "v ", "v\x00", "v\x00a"]
    made = DuckDB(
        {"t": SourceTable(read_source(pd.DataFrame({"u": pd.Series(names, dtype=object), "c": 1})), ("u",))},
        key=KEY,
    )
    [(rows, owners)] = made.rows("SELECT count(*), count(DISTINCT tacit_u) FROM t", {})
    assert rows == owners == 7


@pytest.mark.parametrize("make", ["pandas", "polars", "arrow"])
def test_columns_that_differ_in_case_are_told_apart(make):
    frame = pd.DataFrame({"ID": range(100), "id": ["one"] * 100, "id_1": ["a", "b"] * 50})
    source = {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": pa.Table.from_pandas(frame)}[make]
    with pytest.raises(tc.TacitError, match="no column 'id'"):
        tc.protect(source, unit="id", budget=tc.Budget(epsilon=1))
    owners = []
    for unit in ("ID", "id_2", "id_1"):
        engine = DuckDB({"t": SourceTable(read_source(source), (unit,))}, key=KEY)
        assert list(engine.columns("t")) == ["ID", "id_2", "id_1"]
        owners += engine.rows("SELECT count(DISTINCT tacit_u) FROM t", {})
    assert owners == [(100,), (1,), (2,)]


def test_columns_of_one_name_in_pandas_are_told_apart():
    frame = pd.DataFrame([[1, 2, "a"]] * 10, columns=["x", "x", "u"])
    engine = DuckDB({"t": SourceTable(read_source(frame), ("u",))}, key=KEY)
    assert engine.rows('SELECT sum(x)::INT, sum("x_1")::INT FROM t', {}) == [(10, 20)]


def test_one_long_decimal_does_not_make_every_answer_fail() -> None:
    """Arrow infers another type for all values as soon as one of them has more than 38 digits."""
    few = [decimal.Decimal(k) / 4 for k in range(8)]
    found = []
    for more in ([], [decimal.Decimal("1" * 39 + ".5")]):
        table = pa.table({"u": [str(k) for k in range(8 + len(more))], "x": pa.array([*few, *more])})
        data = tc.protect(table, name="d", unit="u", bounds={"x": (0, 8)}, budget=tc.Budget(epsilon=10))
        plan = data.sql("SELECT SUM(x) AS s, COUNT(DISTINCT CAST(x AS VARCHAR)) AS d FROM d").plan(epsilon=1)
        task = task_of(plan)
        found.append(
            {
                step.statistic.word: lines
                for step, lines in zip(task.subject.steps, exact_of(task), strict=True)
            }
        )
    words = {word: found[1][word][0][0] - found[0][word][0][0] for word in found[0]}
    assert words == {"sum": 2**30, "distinct values": 1}
    assert pa.types.is_decimal256(table.schema.field("x").type)


def test_half_floats_of_arrow_are_read() -> None:
    half = pa.array(np.array([0.5, 2], dtype="float16"))
    data = tc.protect(
        pa.table({"u": [1, 2], "x": half}), unit="u", bounds={"x": (0, 8)}, budget=tc.Budget(epsilon=1)
    )
    [[[total]]] = exact_of_plan(data.sql("SELECT SUM(x) AS s FROM data").plan(epsilon=1))
    assert total == 5 * 2**26


FAR = pa.Array.from_buffers(pa.timestamp("us"), 2, pa.array([0, 253402300800000000]).buffers())
BROKEN = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"a\xff")]
)
PLACES = pa.array([0, 1, 2], pa.int32())
#: Columns of Arrow with one value that Python cannot hold.
UNHELD = {
    "list of moments": pa.ListArray.from_arrays(PLACES, FAR),
    "struct of moments": pa.StructArray.from_arrays([FAR], ["a"]),
    "list of text": pa.ListArray.from_arrays(PLACES, BROKEN),
    "list of days": pa.ListArray.from_arrays(
        PLACES, pa.Array.from_buffers(pa.date32(), 2, pa.array([0, 2932897], pa.int32()).buffers())
    ),
    "time": pa.Array.from_buffers(pa.time64("us"), 2, pa.array([0, 2**62]).buffers()),
    "map": pa.MapArray.from_arrays(PLACES, BROKEN, pa.array([1, 2])),
    "dictionary of moments": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), FAR),
    "runs of moments": pa.RunEndEncodedArray.from_arrays([1, 2], FAR),
    "moment": FAR,
}


@pytest.mark.parametrize("kind", UNHELD)
def test_a_value_that_python_cannot_hold_is_missing_in_pandas_as_in_arrow(kind):
    """The release of a question that does not use the column failed after its charge."""
    read = []
    for unit in ("u", "c"):
        in_pandas = pd.DataFrame({"u": [1, 2], "c": pd.arrays.ArrowExtensionArray(UNHELD[kind]), "x": [5, 6]})
        in_arrow = pa.table({"u": [1, 2], "c": UNHELD[kind], "x": [5, 6]})
        for frame in (in_pandas, in_arrow):
            made = DuckDB({"t": SourceTable(read_source(frame), (unit,))}, key=KEY, snapshot=None)
            read.append(made.rows(KEPT, {}, [("t", 1)]))
            made.close()
    assert read[0] == read[1]
    assert [row[0] for row in read[0]] == ["1", "2"]
    assert read[2] == read[3]


def test_a_value_that_python_cannot_hold_stops_no_map_graph_or_stream():
    far = pd.arrays.ArrowExtensionArray(UNHELD["list of moments"])
    rows = pd.DataFrame({"u": [1, 2], "lat": [-17.0] * 2, "lon": [170.0] * 2, "c": far})
    budget = tc.Budget(epsilon=2)
    spots = tc.points(rows, unit="u", box=((-22, 165), (-12, 190)), budget=budget)
    spots.grid(2, 2).plan(epsilon=1).release()
    edges = pd.DataFrame({"a": [1, 2], "b": [2, 3], "c": far})
    tc.graph(edges, unit="edge", nodes=5, budget=budget).edges().plan(epsilon=1).release()
    days = tc.stream(None, name="s", level="event", start="2026-01-01", days=3, budget=budget)
    days.begin(days.daily(n=tc.count()).plan(epsilon=1))
    days.append("2026-01-01", rows)
    days.release("2026-01-01")


#: Columns of types that DuckDB does not scan, with the numbers that they hold.
UNSCANNED = {
    "decimal of Arrow": pa.table(
        {"x": pa.array([decimal.Decimal("9E+5"), decimal.Decimal("1E+5")], pa.decimal128(10, -5))}
    ),
    "half float": pd.DataFrame({"x": pd.array([0.5, 2], dtype=pd.ArrowDtype(pa.float16()))}),
    "half float beside Arrow": pd.DataFrame(
        {"x": np.array([0.5, 2], np.float16), "a": pd.array([1, 2], dtype=pd.ArrowDtype(pa.int64()))}
    ),
    "half floats in a dictionary": pa.table(
        {"x": pa.DictionaryArray.from_arrays([0, 1], pa.array(np.array([0.5, 2], np.float16)))}
    ),
    "long double": pd.DataFrame({"x": np.array([0.5, 2], np.longdouble)}),
    "longest double": pd.DataFrame({"x": np.array([-math.inf, np.finfo(np.longdouble).max])}),
    "index of objects": pd.DataFrame({"x": pd.array([0.5, 2], dtype="double[pyarrow]")}, index=[1, "a"]),
}


@pytest.mark.parametrize("kind", UNSCANNED)
def test_numbers_of_types_that_duckdb_does_not_scan_are_read(kind):
    made = DuckDB({"t": SourceTable(read_source(UNSCANNED[kind]), ())}, key=KEY, snapshot=None)
    wanted = {"decimal of Arrow": [(1e5,), (9e5,)], "longest double": [(-math.inf,), (math.inf,)]}
    read = made.rows("SELECT tacit_number(x) AS n FROM t ORDER BY n", {})
    assert read == wanted.get(kind, [(0.5,), (2.0,)])
    assert next(iter(made.columns("t"))) == "x"
    made.close()


def test_one_text_changes_no_owner_that_is_a_large_number():
    """A float column wrote these owners with all digits, a column of objects with the fewest."""
    frame = pd.DataFrame({"u": [x for x in HUGE for _ in range(3)], "c": 1, "x": range(3 * len(HUGE))})
    text = pd.DataFrame({"u": ["zz"], "c": [1], "x": [1000]})
    after = pd.concat([frame.astype({"u": object}), text])
    sql = _readings(["c", "u"], "x < 1000")
    assert _kept(after, sql) == _kept(frame, sql)
    assert len(_kept(frame, sql)) == len(HUGE)
