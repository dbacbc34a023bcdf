"""Reading releases of tables: values and intervals from noisy integers, at no further cost.

In reading order:

- `_readings`: counts, sums, means and spreads with their intervals
- `_quantile_readings`: quantiles with their intervals
- `_release_functions`: functions of released values, and totals over the lines of an answer
- `_postprocessing`: arithmetic on aggregates, HAVING, ORDER BY and LIMIT
- `_captions`: what a plan and a release say beside their numbers, and the question in words
"""
