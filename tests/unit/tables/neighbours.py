"""Neighbouring tables and random questions, and the change that one unit causes in every exact statistic."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction

import pyarrow as pa
from hypothesis import strategies as st

import tacit as tc
from tacit.algebra._contribution import contribution
from tacit.algebra._statistics import ScoreSums
from tacit.engines import DuckDB
from tacit.tables.planning._exact_integers import exact_integers
from tacit.tables.planning._pricing import lower
from tacit.tables.planning._steps import ChooseQuantile, ChooseQuantileEnds, ChooseTop

KEY = 987654321
HOSPITALS = ["A", "B", "C"]

numbers = st.one_of(
    st.none(),
    st.sampled_from(
        [0.0, -0.0, 1.0, 2.5, 29.5, 30.0, 31.0, -5.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]
    ),
    st.floats(-3, 40),
)
rows = st.tuples(
    st.sampled_from(["A", "B", "C", "D", "", None, "É", "a"]),
    numbers,
    st.one_of(st.none(), st.integers(-3, 5)),
    st.one_of(
        st.none(),
        st.sampled_from([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59), dt.datetime(2024, 2, 29)]),
        st.datetimes(dt.datetime(2023, 1, 1), dt.datetime(2025, 1, 1)),
    ),
)
owned = st.lists(rows, max_size=7)
SCHEMA = pa.schema(
    [
        ("pid", pa.int64()),
        ("h", pa.string()),
        ("x", pa.float64()),
        ("y", pa.int64()),
        ("d", pa.timestamp("us")),
    ]
)
PEOPLE = pa.schema([("pid", pa.int64()), ("age", pa.float64()), ("w", pa.string())])
CODES = pa.table({"code": ["A", "B", "B", "C", None], "chapter": ["x", "y", "z", "y", "q"]})


@st.composite
def neighbouring(draw):
    """Two datasets (visits, people) that differ in one unit; its rows stand anywhere among the others'."""
    others = draw(st.lists(owned, max_size=4))
    one = draw(st.lists(rows, min_size=1, max_size=9))
    lines = [(pid, *row) for pid, rs in enumerate(others) for row in rs]
    lines += [(None, *row) for row in draw(st.lists(rows, max_size=2))]
    lines = draw(st.permutations(lines))
    more = list(lines)
    for row in one:
        more.insert(draw(st.integers(0, len(more))), (77, *row))
    people = [(pid, draw(numbers), draw(st.sampled_from(["u", "v", None]))) for pid in range(len(others))]
    person = [(77, draw(numbers), draw(st.sampled_from(["u", "v"]))) for _ in range(draw(st.integers(0, 3)))]
    return (_tables(lines, people), _tables(more, person[:1] + people + person[1:]))


def _tables(visits, people):
    return {
        "visits": pa.table([list(c) for c in zip(*visits, strict=False)] or [[]] * 5, schema=SCHEMA),
        "people": pa.table([list(c) for c in zip(*people, strict=False)] or [[]] * 3, schema=PEOPLE),
    }


#: Names of units that differ in one column only, or only in where the first column ends.
NAMES = ["1", "2", "12", "1:", ":2", "a|b", ""]
PAIR = tc.Unit("pid", per="day")


@st.composite
def neighbouring_pairs(draw):
    """Two datasets that differ in one pair of person and day; other pairs share its person or its day."""
    names = st.sampled_from(NAMES)
    pairs = draw(st.lists(st.tuples(names, names), min_size=5, max_size=5, unique=True))
    nobody = draw(st.sampled_from([(None, "1"), ("1", None), (None, None)]))
    renamed = {**dict(zip([0, 1, 2, 3, 77], pairs, strict=True)), None: nobody}
    small, large = draw(neighbouring())
    return _by_pair(small, renamed), _by_pair(large, renamed)


def _by_pair(tables, renamed):
    """Name the owner of each row by two columns of text in place of one number."""
    found = {}
    for name, table in tables.items():
        owners = [renamed[pid] for pid in table["pid"].to_pylist()]
        pid, day = (pa.array([owner[i] for owner in owners], pa.string()) for i in (0, 1))
        found[name] = table.set_column(0, "pid", pid).append_column("day", day)
    return found


def draw_limits(draw, st=st):
    """Random limits; ``draw`` and ``st`` are Hypothesis's, or dice that are thrown alike."""
    some = st.one_of(st.none(), st.integers(1, 3))
    found = {"rows": draw(some), "groups": draw(some), "per_group": draw(some), "joined": draw(some)}
    if found["rows"] is None:
        found["groups"] = found["groups"] or 2
        found["per_group"] = found["per_group"] or 2
    return found


limits = st.composite(draw_limits)


def dataset(tables, limit, *, unit="pid", adjacency="add/remove", codes=CODES, engine=None):
    """A dataset over one side of the pair; its tables and the public one may be on another engine."""
    return tc.protect(
        dict(tables),
        unit=unit,
        name="d",
        bounds={"x": (-2, 30), "age": (0, 100), "y": (0, 3), "m": (0, 5)},
        keys={"h": HOSPITALS, "w": ["u", "v"], "chapter": ["x", "y"], "pid": NAMES[:3], "day": NAMES[3:]},
        types={"d": "date"},
        limits=limit,
        public={"codes": (codes, "code")},
        budget=tc.Budget(epsilon=1),
        adjacency=adjacency,
        engine=engine,
    )


def engine(tables, *, snapshot=None, unit="pid"):
    """An engine over one side of the pair, with the ranking key that both sides share."""
    made = dataset(tables, {"rows": 1}, unit=unit)._engine
    return DuckDB(made._tables, key=KEY, snapshot=snapshot)


CONDITIONS = [
    "x > 3", "h = 'A'", "x / y > 1", "y IS NULL", "NOT (x > 1)", "EXTRACT(year FROM d) = 2024", "h LIKE '%A%' OR x < 0",  # noqa: E501
    "LN(x) > 0", "SQRT(x) >= 1", "d + INTERVAL 7 DAY > '2024-06-01'", "UPPER(h) IN ('A', 'B')", "x % y = 0",
    "CAST(h AS DOUBLE) IS NULL", "LENGTH(h) > 0", "DATE_TRUNC('month', d) = '2024-02-01'", "ABS(x) < 5", "x BETWEEN 0 AND 1",  # noqa: E501
    "DATEDIFF('day', d, '2024-01-01') > 3", "EXP(x) > 5", "ROUND(x, 1) = 2.5", "y * y * 1e200 * 1e200 > 0",
    "REPLACE(h, 'A', 'BB') = 'BB'", "STRFTIME(d, '%Y-%m') = '2024-02'", "DAYNAME(d) = 'Monday'",
    "ISODOW(d) = 7", "POWER(x, 3) > 1 OR POWER(x, -0.5) < 2", "CAST(x AS INTEGER) = 2",
    "x IS DISTINCT FROM y", "h NOT LIKE 'A%'",
    "d + INTERVAL 1 MONTH > '2024-06-01'", "CONCAT(h, x, y) LIKE '%1%'", "TRUNC(x) // 2 = 1", "LOG10(x) > 0",
    "SPLIT_PART(h, 'A', 2) = '' AND STRPOS(h, 'A') > 0", "RIGHT(h, 1) = 'A' OR CONTAINS(h, 'B')",
]  # fmt: skip
FORMULAE = {
    "z": [
        "x * 2",
        "x / y",
        "CASE WHEN x > 3 THEN x ELSE y END",
        "LEAST(GREATEST(x, 0), 5)",
        "x + y",
        "COALESCE(x, 1)",
        "CASE WHEN h = 'A' THEN x END",
        "FLOOR(x / 2)",
        "LN(y + 2)",
        "x % 3",
        "POWER(y, 2)",
        "ROUND(x, -1)",
        "CAST(x AS INTEGER)",
    ],
    "x": ["y", "x + 100", "-x", "1e308 * x"],
}
AGGREGATES = {
    "n": lambda _: tc.count(),
    "nx": tc.count,
    "u": lambda _: tc.count_units(),
    "s": lambda v: tc.sum(v, bounds=(-2, 30)),
    "neg": lambda v: tc.sum(v, bounds=(-7, -1)),
    "m": lambda v: tc.mean(v, bounds=(0, 3)),
    "var": lambda v: tc.variance(v, bounds=(-2, 30)),
    "k": tc.count_distinct,
    "med": lambda v: tc.median(v, bounds=(-2, 30), candidates=range(-2, 31, 4)),
    "ends": lambda v: tc.median(v, bounds=(-2, 30), candidates=range(-2, 31, 4), interval=True),
    "p9": lambda v: tc.quantile(v, 0.9, bounds=(0, 10)),
    "qs": lambda v: tc.quantiles(v, [0.2, 0.8], bounds=(0, 10)),
    "line": lambda v: tc.slope(v, tc.col(v) * tc.col(v), bounds=((-2, 30), (-5, 9))),
    "best": lambda v: tc.best([1, 5, 20], lambda c: tc.when(tc.col(v) >= c, c, -2)),
    "hist": lambda v: tc.histogram(v, [0, 1, 5, 30]),
    "top": lambda _: tc.most_common("h", 2, ["A", "B", "C", ""]),
}


def draw_question(draw, data, st=st):
    """A random question built through the fluent interface; ``draw`` and ``st`` as in `draw_limits`."""
    rows_, value, words = data["visits"], "x", ["h", *(data.unit.columns if data.unit.per else ())]
    if draw(st.booleans()):
        rows_ = rows_.where(draw(st.sampled_from(CONDITIONS)))
    shape = draw(st.sampled_from(["plain", "plain", "columns", "per_unit", "per_unit_by", "people", "codes"]))
    if shape == "columns":
        name = draw(st.sampled_from(["z", "x"]))
        rows_, value = rows_.with_columns(**{name: draw(st.sampled_from(FORMULAE[name]))}), name
    elif shape == "per_unit":
        measure = draw(
            st.sampled_from(
                [tc.count(), tc.sum("x"), tc.mean("x"), tc.max("x"), tc.min("y"), tc.count_distinct("h")]
            )
        )
        try:
            rows_, value, words = rows_.per_unit(v=measure, top=tc.max("y")), "v", []
        except tc.TacitError as error:
            assert error.code == "missing-limit"
    elif shape == "per_unit_by":
        rows_, value = rows_.per_unit(words, v=tc.count(), y=tc.max("y")), "v"
    elif shape == "people":
        how = draw(st.sampled_from(["inner", "left"]))
        rows_, words = rows_.join(data["people"], how=how), ["h", "w"]
    elif shape == "codes":
        rows_, words = (
            rows_.join("codes", "h", how=draw(st.sampled_from(["inner", "left"]))),
            ["h", "chapter"],
        )
    names = draw(st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=4, unique=True))
    names = [n for n in names if n != "top" or "h" in words] or ["n"]
    asked = {name: AGGREGATES[name](value) for name in names}
    by = draw(st.lists(st.sampled_from(words), max_size=2, unique=True)) if words else []
    if not by:
        return rows_.agg(**asked)
    if draw(st.booleans()):
        return rows_.group_by(*by).agg(**asked)
    return (
        rows_.select(
            *list(dict.fromkeys([*by, "h", value])), **{f"{b}_2": tc.col(b).apply("lower") for b in by}
        )
        .group_by(*[f"{b}_2" for b in by])
        .agg(**asked)
    )


questions = st.composite(draw_question)


def check(question, left, right, *, unit="pid", adjacency="add/remove"):
    """Assert that no statistic changes by more than its declared sensitivity between two engines."""
    who = contribution(question, row_level=not unit, adjacency=adjacency)
    steps, _ = lower(question, by_row=not unit)
    emitted = tuple(dict.fromkeys(s.statistic for s in steps))
    a, b = exact_integers(left, question, emitted), exact_integers(right, question, emitted)
    for step in steps:
        l1, l2 = step.statistic.sensitivity(who)
        chosen = isinstance(step.method, ChooseQuantile | ChooseQuantileEnds)
        if chosen:
            mechanism = step.method.pure(step.statistic, who, Fraction(1), Fraction(0))
            l1 = mechanism.sensitivity
        if isinstance(step.method, ChooseQuantileEnds):
            check_ends(mechanism, a[step.statistic], b[step.statistic])
            continue
        changes = []
        wide = 0
        for key in {*a[step.statistic], *b[step.statistic]}:
            zero = [0] * step.statistic.size
            one, two = a[step.statistic].get(key, zero), b[step.statistic].get(key, zero)
            if chosen:
                one, two = scores(step.method.level, one), scores(step.method.level, two)
            moved = [x - y for x, y in zip(one, two, strict=True)]
            changes += moved
            wide += max(moved) - min(moved) if chosen else max([0, *moved]) - min([0, *moved])
        if chosen:
            assert wide <= 2 * l1, (step, wide, l1)
            continue
        if isinstance(step.statistic, ScoreSums):
            assert wide <= l1, (step, wide, l1)
            continue
        assert sum(map(abs, changes)) <= l1, (step, changes, l1)
        assert sum(c * c for c in changes) <= l2, (step, changes, l2)
        if isinstance(step.method, ChooseTop):
            assert wide <= l1
    return len(steps)


def check_ends(mechanism, one, two):
    """Assert that neither choice of a bracket has scores that move by more than its sensitivity in all."""
    zero = [0] * mechanism.candidates
    keys = sorted({*one, *two}, key=str)
    before, after = (
        mechanism.scores([found.get(key, zero) for key in keys] or [zero]) for found in (one, two)
    )
    for x, y in zip(before, after, strict=True):
        assert (x - y).max(axis=1).sum() - (x - y).min(axis=1).sum() <= 2 * mechanism.sensitivity


def scores(level, counts):
    total, below, made = sum(counts), 0, []
    for c in counts:
        many = below - level * total, total - below - c - (1 - level) * total
        made.append(-max(0, *many) * level.denominator)
        below += c
    return made
