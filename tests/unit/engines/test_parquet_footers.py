"""A copied Parquet file has bytes in place of text, and nothing else changed."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.engines.sources._parquet import copy_with_bytes


def test_a_copy_has_bytes_for_texts_and_nothing_else_changed(tmp_path: Any) -> None:
    columns = {
        "whole": [1, 2],
        "text": ["é", None],
        "moment": [dt.datetime(2024, 1, 1)] * 2,
        "true": [True, False],
        "decimal": [decimal.Decimal("1.23")] * 2,
        "list": [["a"]] * 2,
        "nested": [{"a": "b", "c": 1.5}] * 2,
        "label": pa.array(["q", "r"]).dictionary_encode(),
        "day": [dt.date(2024, 1, 1)] * 2,
        "bytes": [b"1"] * 2,
        "clock": [dt.time(1)] * 2,
        "ü" * 40: ["x", "y"],
    }
    columns |= {f"c{i}": [str(i)] * 2 for i in range(40)}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    copy_with_bytes(tmp_path / "x.parquet", tmp_path / "y.parquet")

    def described(name: str) -> dict[str, str]:
        lines = duckdb.connect().sql(f"DESCRIBE FROM '{tmp_path / name}.parquet'").fetchall()
        return {line[0]: line[1] for line in lines}

    before, after = described("x"), described("y")
    assert after == {name: kind.replace("VARCHAR", "BLOB") for name, kind in before.items()}
    assert duckdb.connect().sql(f"SELECT text FROM '{tmp_path / 'y.parquet'}'").fetchall() == [
        ("é".encode(),),
        (None,),
    ]


def test_what_is_no_parquet_file_is_not_copied(tmp_path: Any) -> None:
    (tmp_path / "x").write_bytes(b"PAR1" + b"\xff" * 20)
    with pytest.raises(ValueError, match="footer"):
        copy_with_bytes(tmp_path / "x", tmp_path / "y")
