"""The one writer of SQL: the algebra of a question, in the dialect of an engine.

- ``_dialect``: what every dialect writes, one total method for each operator.
- ``_relations``: expressions and relations.
- ``_statistics``: what a row adds to a statistic, and how it is summed and bounded.
- ``_statements``: a whole question as statements.
"""
