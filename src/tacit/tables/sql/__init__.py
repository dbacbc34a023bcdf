"""SQL questions of tables: parsed, checked against a closed list and turned into Tacit's own plan nodes."""

from tacit.tables.sql._select import parse_expression, parse_query

__all__ = ["parse_expression", "parse_query"]
