"""Expressions and grids as the DuckDB engine writes them, for tests that run them on their own."""

from tacit.engines._duckdb_dialect import DUCKDB
from tacit.engines._sql_expressions import SqlWriter

WRITER = SqlWriter(DUCKDB)
quantised = WRITER.quantised


def expression_sql(node):
    return WRITER.expression(node, {})
