"""The one writer of SQL: the algebra of a question, in the dialect of an engine.

- ``_dialect``: what every dialect writes, one total method for each operator.
- ``_relations``: expressions and relations.
- ``_statements``: what a row adds to a statistic, how it is summed and bounded; a question as statements.
"""
