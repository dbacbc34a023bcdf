"""What a question may make the engine and the planner do is bounded by public limits, before any charge."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

import tacit as tc
from support.asking import subject_of
from tacit.engines.sql._relations import MAX_JOINED, MAX_WRITTEN_OUT
from tacit.tables.planning._exact_integers import exact_integers
from tacit.tables.questions._python_expressions import MAX_DEPTH, MAX_PARTS

HUGE = tc.Budget(epsilon=10**6)


def dataset(*, rows: int | None = 10, **limits: int | None) -> tc.Dataset:
    return tc.protect(
        {
            "visits": pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0], "note": ["a", "b", "c"]}),
            "tests": pa.table({"u": [1, 2, 2], "y": [1.0, 2.0, 3.0], "text": ["d", "e", "f"]}),
        },
        unit="u",
        bounds={"x": (0, 10)},
        limits={"rows": rows, **limits},
        public={"codes": (pa.table({"note": ["a"], "chapter": ["z"]}), "note")},
        budget=HUGE,
    )


def refused(ask) -> tc.TacitError:
    with pytest.raises(tc.TacitError) as found:
        ask()
    return found.value


SELF = "SELECT COUNT(*) AS n FROM visits a JOIN visits b USING (u) JOIN visits c USING (u)"


def test_a_self_join_beyond_the_pairs_is_refused_before_the_charge():
    data = dataset(rows=1000)
    error = refused(lambda: data.sql(SELF).plan(epsilon=1e-6))
    assert error.code == "question-too-large"
    assert (
        "1,000,000,000 pairs of rows of one unit (1,000,000 times 1,000), but only 10,000 are allowed"
        in error.what
    )
    assert "aggregate the rows of each unit before the join" in str(error.fix)
    assert "pairs" not in str(error.fix)  # nobody should allow so many
    assert data.remaining.epsilon == HUGE.epsilon
    error = refused(lambda: data["visits"].join(data["tests"]).agg(n=tc.count()).plan(epsilon=1e-6))
    assert error.code == "question-too-large"
    assert 'limits={"pairs": 1000000}' in str(error.fix)


@pytest.mark.parametrize(("rows", "allowed"), [(21, True), (22, False)])
def test_every_join_of_a_chain_is_bounded(rows, allowed):
    """Three tables of 21 rows: 441 pairs with 21 more rows are 9,261."""
    data = dataset(rows=rows)
    if allowed:
        data.sql(SELF).plan(epsilon=1)
    else:
        assert "10,648 pairs" in refused(lambda: data.sql(SELF).plan(epsilon=1)).what


def test_pairs_that_a_limit_drops_later_are_counted():
    """The engine forms all pairs before it drops any."""
    data = dataset(rows=1000, joined=5)
    error = refused(lambda: data["visits"].join(data["tests"]).agg(n=tc.count()).plan(epsilon=1))
    assert error.code == "question-too-large"


def test_tables_without_a_limit_on_rows_are_not_joined():
    data = dataset(rows=None, groups=2, per_group=2, joined=5)
    error = refused(lambda: data["visits"].join(data["tests"]).agg(n=tc.count()).plan(epsilon=1))
    assert error.code == "missing-limit"


def test_a_curator_can_allow_more_pairs_and_an_analyst_cannot():
    data = dataset(rows=200, pairs=40_000)
    assert data["visits"].join(data["tests"]).agg(n=tc.count()).plan(epsilon=1).cost is not None
    assert refused(lambda: data.limit(pairs=10**6)).code == "not-allowed"
    assert refused(lambda: dataset(pairs=0)).code == "bad-parameter"


def test_rows_aggregated_before_the_join_form_one_pair():
    data = dataset(rows=1000)
    first = "SELECT u, COUNT(*) AS n FROM visits GROUP BY u"
    second = "SELECT u, MAX(y) AS y FROM tests GROUP BY u"
    data.sql(f"SELECT COUNT(*) AS m FROM ({first}) a JOIN ({second}) b USING (u)").plan(epsilon=1)


def test_a_subquery_that_is_joined_with_itself_again_and_again_is_refused():
    """With one row for each unit the limits do not multiply, but the question doubles."""
    data = dataset(rows=1)
    parts = ["t0 AS (SELECT u, x AS x0 FROM visits)"]
    for i in range(1, 25):
        made = f"SELECT a.u AS u, a.x{i - 1} AS x{i} FROM t{i - 1} a JOIN t{i - 1} b USING (u)"
        parts.append(f"t{i} AS ({made})")
    started = time.process_time()
    error = refused(
        lambda: data.sql(f"WITH {', '.join(parts)} SELECT COUNT(*) AS n FROM t24").plan(epsilon=1)
    )
    assert error.code == "question-too-large"
    assert "at most 16 joins" in error.what
    assert time.process_time() - started < 5


def test_lookups_in_public_tables_are_joins_too():
    rows = dataset(rows=1)["visits"]
    with pytest.raises(tc.TacitError, match="at most 16 joins"):
        for i in range(20):
            rows = rows.join("codes", "note").select("u", "x", "note", **{f"c{i}": tc.col("chapter")})


def test_a_forged_document_cannot_ask_for_more():
    data, wide = dataset(rows=200), dataset(rows=200, pairs=40_000)
    plan = wide["visits"].join(wide["tests"]).agg(n=tc.count()).plan(epsilon=1)
    with pytest.raises(tc.TacitError) as failed:
        data.plan_from(plan.to_json())
    assert failed.value.code == "question-too-large"


def test_an_expression_that_squares_itself_is_refused():
    started = time.process_time()
    x = tc.col("x")
    with pytest.raises(tc.TacitError) as failed:
        for _ in range(60):
            x = x * x
    assert failed.value.code == "question-too-large"
    assert f"{MAX_PARTS:,} parts" in failed.value.what
    assert time.process_time() - started < 5


#: Each of these uses the column twice; the engines use it several times more to compute it.
DOUBLES = [
    "GREATEST(x, x)",
    "CASE WHEN x > 1 THEN x ELSE x END",
    "x * x",
    "COALESCE(x, x)",
    "ROUND(x) + x",
]


@pytest.mark.parametrize("double", DOUBLES)
@pytest.mark.parametrize("last", ["SUM(LEAST(GREATEST(x, 0), 9))", "COUNT(*)", "COUNT_IF(x > 1)"])
def test_computed_columns_that_double_again_and_again_are_refused_before_the_charge(double, last):
    """Each column is short, but an engine writes the columns out into each other before it reads a row."""
    data = dataset()
    parts = ["t0 AS (SELECT u, x FROM visits)"]
    parts += [f"t{i} AS (SELECT u, {double} AS x FROM t{i - 1})" for i in range(1, 25)]
    started = time.process_time()

    def ask():
        asked = f"WITH {', '.join(parts)} SELECT {last} AS n FROM t24{' WHERE x > 1' * ('*' in last)}"
        data.sql(asked).plan(epsilon=1).release()

    error = refused(ask)
    assert error.code == "question-too-large"
    assert f"only {MAX_WRITTEN_OUT:,} are allowed" in error.what
    assert data.remaining.epsilon == HUGE.epsilon
    assert time.process_time() - started < 5


@pytest.mark.parametrize("double", [*DOUBLES, "x + 1"])
def test_the_longest_chain_of_computed_columns_is_answered_soon(double):
    """Of all chains that are not refused, the longest one; a chain that does not double is never refused."""
    chain = [dataset()["visits"]]
    for _ in range(60):
        chain.append(chain[-1].with_columns(x=double))
    for steps, rows in reversed([*enumerate(chain)]):
        started = time.process_time()
        try:
            rows.agg(n=tc.sum("x", bounds=(0, 9))).plan(epsilon=1).release()
        except tc.TacitError as error:
            assert error.code == "question-too-large"
            continue
        assert time.process_time() - started < 5
        assert steps == 60 if double == "x + 1" else 3 < steps < 16
        return


def test_what_each_unit_adds_up_is_not_written_out_again():
    """Each level is 50 times as long as the one below it, written out; but it is computed first."""
    data, place = dataset(), "visits"
    for _ in range(4):
        place = f"(SELECT u, SUM(LEAST(GREATEST(x * x * x, 0), 9)) AS x FROM {place} GROUP BY u)"
    data.sql(f"SELECT COUNT(*) AS n FROM {place} WHERE x > 1").plan(epsilon=1).release()


def test_a_deep_expression_is_refused_and_a_long_list_is_not():
    x = tc.col("x")
    with pytest.raises(tc.TacitError, match=f"at most {MAX_DEPTH} deep") as failed:
        for _ in range(MAX_DEPTH):
            x = x + 1
    assert failed.value.code == "question-too-large"
    data = dataset()
    data.where(tc.col("x").is_in(range(5000))).agg(n=tc.count()).plan(epsilon=1)
    either = tc.col("x") == 0
    for i in range(1000):
        either = either | (tc.col("x") == i)
    assert either._depth <= 3


def exact(plan) -> list[int]:
    task = subject_of(plan)
    return next(iter(exact_integers(task.engine, task.asked, task.statistics).values()))[()]


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_texts_in_a_large_join_are_bounded_in_bytes(kind):
    """100 times 100 pairs hold at most 256 MiB of one column: a longer text of a unit is missing."""
    most = MAX_JOINED // 10_000
    texts = ["a" * most, "b" * (most + 1), "é" * (most // 2 + 1), None, "c"]
    table = pa.table({"u": [1, 1, 2, 2, 3], "note": texts, "x": [1, 2, 3, 4, 5]})
    data = tc.protect(
        {
            "a": table if kind == "arrow" else table.to_pandas(),
            "b": pa.table({"u": [1, 2, 3], "w": ["p", "q", "r"]}),
        },
        unit="u",
        limits={"rows": 100},
        budget=HUGE,
    )
    joined = data["a"].join(data["b"])
    assert exact(joined.agg(n=tc.count("note")).plan(epsilon=1)) == [2]
    assert exact(joined.where("x > 1 AND x < 5").agg(n=tc.count()).plan(epsilon=1)) == [3]
    assert exact(data["a"].agg(n=tc.count("note")).plan(epsilon=1)) == [4]


def test_texts_in_a_small_join_are_whole():
    table = pa.table({"u": [1], "note": ["é" * 65_536]})
    data = tc.protect(
        {"a": table, "b": pa.table({"u": [1], "w": ["p"]})}, unit="u", limits={"rows": 10}, budget=HUGE
    )
    asked = data["a"].join(data["b"]).where("LENGTH(note) = 65536").agg(n=tc.count())
    assert exact(asked.plan(epsilon=1)) == [1]
