"""Workloads: many related counts of a table in one plan, which agree with each other.

In reading order:

- `_axes`: the public places of columns, and public trees of values
- `_coded_rows`: rows as places on axes, and the tasks that count them
- `_crosstabs`: the question for many cross tables, and its noise
- `_cross_tables`: the content of cross tables, its noise and its pictures
- `_ranges`: the question for ranges and running totals of an ordered column
- `_ordered_counts`: their content, with quantiles and pictures
- `_hierarchy`: the question for a tree of counts, and its content
"""
