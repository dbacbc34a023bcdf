"""Long results are fetched in parts, and repeated texts are held once."""

import duckdb
import pytest

from tacit.engines.duckdb._connections import all_rows

TEXTS = (
    "SELECT CASE WHEN i % 3 = 0 THEN NULL ELSE 'text ' || (i % 7) END, i, i * 0.5e0, [i] FROM range({}) t(i)"
)


@pytest.mark.parametrize("many", [0, 1, 1_999, 2_000, 2_001, 4_000, 6_500])
@pytest.mark.parametrize("sql", [TEXTS, "SELECT i, -i FROM range({}) t(i)"], ids=["texts", "numbers"])
def test_all_rows_are_those_of_the_engine_and_equal_texts_are_one(sql, many):
    con = duckdb.connect(config={"threads": 1})
    wanted = con.execute(sql.format(many)).fetchall()
    found = all_rows(con.execute(sql.format(many)))
    assert sorted(map(str, found)) == sorted(map(str, wanted))
    assert [tuple(map(type, row)) for row in found[:5]] == [tuple(map(type, row)) for row in wanted[:5]]
    if many > 2_000 and sql is TEXTS:
        assert len({id(row[0]) for row in found}) == 8  # seven texts and None
