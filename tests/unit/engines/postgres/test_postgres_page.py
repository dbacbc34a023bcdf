"""The how-to page runs on a real server, with the address of that server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tacit.tables import example_visits

if TYPE_CHECKING:
    import psycopg
    import pytest

PAGE = Path(__file__).parents[4] / "docs" / "howto" / "postgres.md"


def test_the_code_of_the_page_runs(
    database: psycopg.Connection[Any], postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pq.read_table(example_visits(), columns=["patient_id", "hospital", "length_of_stay"])
    database.execute("CREATE TABLE visits (patient_id text, hospital text, length_of_stay float8)")
    with database.cursor() as cursor, cursor.copy("COPY visits FROM STDIN") as copy:
        for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            copy.write_row(row)
    blocks = re.findall(r"(?ms)^```py\n(.*?)^```$", PAGE.read_text())
    assert blocks
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace("postgresql://analyst@db.example/warehouse", postgres_url), namespace)
    shown = capsys.readouterr().out
    assert "SELECT" in shown
    assert "Ahorn" in shown
