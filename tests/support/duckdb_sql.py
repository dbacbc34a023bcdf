"""Expressions and grids as the DuckDB engine writes them, for tests that run them on their own."""

from tacit.engines.duckdb._dialect import DUCKDB
from tacit.engines.sql._relations import SqlWriter

WRITER = SqlWriter(DUCKDB)
quantised = WRITER.quantised


def expression_sql(node):
    return WRITER.expression(node, {})
