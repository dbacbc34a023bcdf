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
