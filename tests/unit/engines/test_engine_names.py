"""What is no engine is refused by name, and a message shows no password."""

import pandas as pd
import pytest

import tacit as tc

FRAME = pd.DataFrame({"pid": [1, 2]})


@pytest.mark.parametrize(
    "engine", ["", "DuckDB", "mysql://ann:opensesame@host/db", 5, b"duckdb", ["duckdb"], FRAME], ids=str
)
def test_what_is_no_engine_is_refused(engine):
    with pytest.raises(tc.TacitError) as refused:
        tc.protect(FRAME, unit="pid", limits={"rows": 1}, budget=tc.Budget(epsilon=1), engine=engine)
    assert refused.value.code == "bad-parameter"
    assert "opensesame" not in str(refused.value)


def test_the_address_of_a_server_is_no_source_by_itself():
    """Graphs and streams read sources in the same way."""
    with pytest.raises(tc.TacitError) as refused:
        tc.protect("postgresql://ann:opensesame@host/db", unit="pid", budget=tc.Budget(epsilon=1))
    assert "which table" in str(refused.value)
    assert "opensesame" not in str(refused.value)
