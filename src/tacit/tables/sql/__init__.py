"""SQL questions of tables: parsed, checked against a closed list and turned into Tacit's own plan nodes.

In reading order:

- `_select`: the whole question, with fixes in the words of SQL
- `_from`: FROM, joins, WITH, subqueries, and public values
- `_clauses`: WHERE, GROUP BY, ORDER BY and LIMIT, with the levels of ROLLUP, CUBE and GROUPING SETS
- `_select_list`: the columns of the answer, with OVER
- `_expressions`: expressions, with functions of text and dates
- `_names`: tables and columns that a question may name, and units among them
- `_allowed`: the closed list, and refusals that say what to write instead
"""

from tacit.tables.sql._select import parse_expression, parse_query

__all__ = ["parse_expression", "parse_query"]
