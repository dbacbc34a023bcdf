"""Statements are bound to empty tables before a charge, each one once."""

from types import SimpleNamespace

import pytest

from tacit.engines.duckdb._engine import DuckDB, bind
from tacit.engines.sql._statements import Statement
from tacit.errors import TacitError


def test_a_statement_is_bound_once_and_a_refused_one_every_time(monkeypatch):
    described = []
    rows = DuckDB.rows

    def counted(self, sql, *rest):
        described.append(sql)
        return rows(self, sql, *rest)

    monkeypatch.setattr(DuckDB, "rows", counted)
    empty = DuckDB({}, key=0)
    asked = SimpleNamespace(by=(), keys=None, sample=None)
    for keys in (None, [("A",)], [("A",)], [(1.0,)]):
        bind(empty, SimpleNamespace(by=("k",), keys=keys, sample=None), [Statement("SELECT 1", ())])
    assert described == ["DESCRIBE SELECT 1"] * 3
    for _ in range(2):
        with pytest.raises(TacitError, match="DuckDB cannot run this question"):
            bind(empty, asked, [Statement("SELECT nothing", ())])
    assert described[3:] == ["DESCRIBE SELECT nothing"] * len(described[3:])
    assert len(described) >= 5
