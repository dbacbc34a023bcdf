"""Columns that the schema of their source calls text or dates have no mean: no bounds are searched."""

import pandas as pd
import pytest

import tacit as tc


def refusal(call):
    with pytest.raises(tc.TacitError) as refused:
        call()
    return refused.value


@pytest.fixture
def stored(tmp_path):
    frame = pd.DataFrame({
        "p": range(3000), "name": ["x"] * 3000, "price": ["3.5"] * 3000, "flag": [True, False] * 1500,
        "day": pd.Timestamp("2024-01-01"), "n": 1.5,
    })  # fmt: skip
    frame.to_parquet(tmp_path / "stored.parquet")
    return tmp_path / "stored.parquet"


def of_file(file, **facts):
    return tc.protect(file, unit="p", budget=tc.Budget(epsilon=100), limits={"rows": 1}, **facts)


@pytest.mark.parametrize("function", [tc.mean, tc.sum, tc.median, tc.std, tc.max])
@pytest.mark.parametrize(("column", "kind"), [("name", "text"), ("price", "text"), ("day", "dates or times")])
def test_a_column_that_the_schema_calls_text_or_a_date_is_refused_before_the_charge(
    stored, function, column, kind
):
    data = of_file(stored)
    error = refusal(lambda: data.agg(x=function(column, bounds="auto")).plan(epsilon=5))
    assert error.what.startswith(f"{column} is stored as {kind}, so it has no ")
    assert data.remaining.epsilon == 100


def test_numbers_booleans_and_columns_of_a_declared_type_are_searched(stored):
    data = of_file(stored, types={"price": "number"})
    for column, value in (("n", 1.5), ("flag", 0.5), ("price", 3.5)):
        answer = data.agg(x=tc.mean(column, bounds="auto")).plan(epsilon=10).release()
        assert answer.value == pytest.approx(value, abs=0.1)
    data.sql("SELECT AVG(CAST(name AS DOUBLE)) AS x FROM data", bounds={"name": "auto"}).plan(epsilon=1)


def test_values_never_decide_a_refusal(stored):
    """A CSV file and a frame declare no types, so the same question has the same plan whatever they hold."""
    frame = pd.read_parquet(stored)
    frame.to_csv(stored.with_suffix(".csv"), index=False)
    for source in (frame, stored.with_suffix(".csv")):
        of_file(source).agg(x=tc.mean("name", bounds="auto")).plan(epsilon=5)


def test_tc_start_refuses_a_text_column_and_makes_no_ledger(stored):
    budget = tc.Budget(epsilon=3)
    error = refusal(lambda: tc.start(stored, unit="p", mean="name", epsilon=1, budget=budget))
    assert "stored as text" in error.what
    assert [file.name for file in stored.parent.iterdir()] == ["stored.parquet"]
