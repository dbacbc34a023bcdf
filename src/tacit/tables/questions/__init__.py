"""Questions about tables: rows and groups, expressions, aggregates, and the forms in which they travel.

In reading order:

- `_python_expressions`: columns and formulas over them, ``tc.col("age") >= 65``; names that columns may have
- `_aggregates`: the aggregates as classes: counts, sums, means and spreads
- `_choice_aggregates`: quantiles, histograms, most common values and best candidates
- `_pair_aggregates`: covariance, correlation and the line of least squares of two columns
- `_aggregate_functions`: the functions that make aggregates, ``tc.mean("age")``
- `_keys`: the keys of groups, and the levels of totals
- `_rows`: rows, groups of rows, and the complete question (`Query`)
- `_workload_questions`: what else rows and datasets can be asked: cross tables, ranges, hierarchies
- `_rows_questions`: how a room below this one declares questions about rows
- `_question_kinds`: every question of this room, declared once
- `_wire`: questions read back from documents, with all checks
- `_limit_advice`: questions about limits and bounds, and what they cut
- `_pandas_hints`: errors that say what replaces `head`, `describe` or `mean`
"""
